#!/usr/bin/env bash
# A consumer that is driven by inotify alone: whatever it is shown it can claim at once, and it is shown everything.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
q=$mnt/q
if ! command -v inotifywait >/dev/null; then
    skip "a consumer driven by inotifywait" "inotifywait is not installed"
    spool_done
fi

cat >"$scratch/consumer.py" <<'PYTHON'
"""Claims what inotifywait names on standard input, at once; one line of its payload to DONE, refusals to REFUSED."""
import errno, os, sys

q, worker, done, refused = sys.argv[1:]
with open(done, "a", 1) as done, open(refused, "a", 1) as refused:
    for line in sys.stdin:
        name = line.rstrip("\n")
        if name.startswith("."):
            continue
        try:
            os.rename(f"{q}/{name}", f"{q}/claimed/{worker}/{name}")
        except FileNotFoundError:
            continue
        except OSError as error:
            refused.write(f"{name}: {errno.errorcode[error.errno]}\n")
            continue
        with open(f"{q}/claimed/{worker}/{name}") as file:
            done.write(file.read())
        os.unlink(f"{q}/claimed/{worker}/{name}")
PYTHON
start_consumer() { # WORKER
    mkfifo "$scratch/events.$1"
    mkdir -p "$q/claimed/$1"
    "$python" "$scratch/consumer.py" "$q" "$1" "$scratch/done" "$scratch/refused" <"$scratch/events.$1" &
    inotifywait -m -e close_write,moved_to --format '%f' "$q" >"$scratch/events.$1" 2>"$scratch/watch.$1" &
    wait_until 10 grep -q established "$scratch/watch.$1" || bail "inotifywait does not watch: $(cat "$scratch/watch.$1")"
}
touch "$scratch/done" "$scratch/refused"
lines() { [ "$(wc -l <"$scratch/done")" -ge "$1" ]; }
expect() { # SENTENCE COUNT: so many lines, each once, nothing refused
    soon "$1: everything is consumed" 30 lines "$2"
    is "$1: exactly once" "$(seq "$2" | sha256sum)" "$(sort -n "$scratch/done" | sha256sum)"
    is "$1: nothing was refused" "" "$(head -n 3 "$scratch/refused")"
    is "$1: nothing is left" "0 0 0" "$(counter q waiting) $(counter q claimed) $(counter q staged)"
    : >"$scratch/done"
    : >"$scratch/refused"
}

start_consumer w
"$python" -c 'import sys
for i in range(1, 501):
    with open(f"{sys.argv[1]}/m{i}", "w") as file: file.write(f"{i}\n")' "$q"
expect "500 messages by close, written by one process" 500
"$python" -c 'import os, sys
for i in range(1, 501):
    with open(f"{sys.argv[1]}/.m", "w") as file: file.write(f"{i}\n")
    os.rename(f"{sys.argv[1]}/.m", f"{sys.argv[1]}/m{i}")' "$q"
expect "500 messages by rename" 500
for i in {1..100}; do echo "$i" >"$q/m$i"; done
expect "100 redirections of a shell" 100
for i in {1..50}; do (echo "$i" && /bin/true) >"$q/m$i"; done
expect "50 subshells" 50
for i in {1..20}; do echo "$i" >"$scratch/file" && cp "$scratch/file" "$q/m$i"; done
expect "20 runs of cp" 20
for i in {1..20}; do (sleep 0.02; echo "$i") | tee "$q/m$i" >/dev/null & done
wait_until 20 lines 20
expect "20 runs of tee at once" 20

start_consumer v
for producer in 0 1 2 3; do
    "$python" -c 'import sys
q, first = sys.argv[1], int(sys.argv[2])
for i in range(first + 1, 501, 4):
    with open(f"{q}/m{i}", "w") as file:
        file.write(f"{i}")
        file.flush()
        file.write("\n")' "$q" $producer &
done
expect "two consumers, four producers, 500 messages" 500
spool_done
