#!/usr/bin/env bash
# Racing callers: exactly one claims, exactly one acknowledges, and the others are told ENOENT.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
q=$mnt/q
cat >"$scratch/race.py" <<'PYTHON'
"""Forks N processes that make the same kind of call at the same moment; prints how many got what: `1 OK 199 ENOENT`."""
import collections, errno, os, sys

count, source, target = int(sys.argv[1]), sys.argv[2], sys.argv[3]
start_read, start_write = os.pipe()
result_read, result_write = os.pipe()
for number in range(count):
    if os.fork() == 0:
        os.close(start_write)
        os.read(start_read, 1)  # returns for all when the parent closes its end
        outcome = "OK"
        try:
            os.rename(source, target.replace("%", str(number))) if target else os.unlink(source)
        except OSError as error:
            outcome = errno.errorcode[error.errno]
        os.write(result_write, (outcome + "\n").encode())
        os._exit(0)
os.close(start_write)
for _ in range(count):
    os.wait()
os.close(result_write)
with os.fdopen(result_read) as results:
    outcomes = collections.Counter(results.read().split())
print(" ".join(f"{outcomes[name]} {name}" for name in sorted(outcomes, key=lambda name: outcomes[name])))
PYTHON
race() { "$python" "$scratch/race.py" "$@"; }

for i in {0..199}; do mkdir "$q/claimed/w$i"; done
for round in 1 2 3; do
    publish q/m x
    is "200 racing renames of one message: one wins, round $round" "1 OK 199 ENOENT" "$(race 200 "$q/m" "$q/claimed/w%/m")"
    is "there is one lease" "0 1" "$(counter q waiting) $(counter q claimed)"
    holder=$(echo "$q"/claimed/*/m)
    is "200 racing unlinks of one lease: one wins, round $round" "1 OK 199 ENOENT" "$(race 200 "$holder" "")"
    is "one message is acknowledged" "0 0 $round" "$(counter q waiting) $(counter q claimed) $(counter q acknowledged)"
done
publish q/m x
is "racing for one name in one directory: one wins" "1 OK 99 ENOENT" "$(race 100 "$q/m" "$q/claimed/w/m")"
is "racing releases: one wins" "1 OK 99 ENOENT" "$(race 100 "$q/claimed/w/m" "$q/m")"
is "racing cancels: one wins" "1 OK 99 ENOENT" "$(race 100 "$q/m" "")"
publish q/.s x
is "racing to publish one staged file: one wins" "1 OK 99 ENOENT" "$(race 100 "$q/.s" "$q/m%")"
is "one message is published" 1 "$(counter q waiting)"
rm "$q"/m*

# The same with mv, as a person would.
publish q/m x
for i in {0..199}; do
    { mv "$q/m" "$q/claimed/w$i/" && echo "won $i"; } >"$scratch/mv.$i" 2>&1 &
    movers[i]=$!
done
wait "${movers[@]}"
is "200 racing mv: one wins" 1 "$(cat "$scratch"/mv.* | grep -c '^won')"
is "the others say there is no such file" 199 "$(cat "$scratch"/mv.* | grep -c 'No such file')"
winner=$(cat "$scratch"/mv.* | sed -n 's/^won //p')
is "the winner has it" x "$(contents "q/claimed/w$winner/m")"
is "and nobody else" "1" "$(find "$q/claimed" -type f | wc -l)"
rm "$q/claimed/w$winner/m"

# Four workers empty a queue together.
"$python" -c 'import sys
for i in range(500):
    with open(f"{sys.argv[1]}/m{i:03}", "w") as file: file.write(f"{i}\n")' "$q"
for worker in 0 1 2 3; do
    "$python" -c 'import os, sys
q, w, done = sys.argv[1:4]
with open(done, "w") as log:
    while True:
        names = [n for n in os.listdir(q) if n.startswith("m")]
        if not names: break
        for name in names:
            try: os.rename(f"{q}/{name}", f"{q}/claimed/w{w}/{name}")
            except FileNotFoundError: continue
            log.write(open(f"{q}/claimed/w{w}/{name}").read())
            os.unlink(f"{q}/claimed/w{w}/{name}")' "$q" "$worker" "$scratch/done.$worker" &
    workers[worker]=$!
done
wait "${workers[@]}"
is "four workers get each of 500 messages exactly once" "$(seq 0 499 | sha256sum)" "$(sort -n "$scratch"/done.* | sha256sum)"
is "and leave none" "0 0 0" "$(counter q waiting) $(counter q claimed) $(counter q dead)"

# The path is the lease: two workers with the same name in directories of their own do not meet.
publish q/m one && claim q/m w1
publish q/m two && claim q/m w2
is "the same name may be leased twice, in two directories" "one two" "$(contents q/claimed/w1/m) $(contents q/claimed/w2/m)"
rm "$q/claimed/w1/m"
is "an acknowledgement is of its own" "two 1" "$(contents q/claimed/w2/m) $(counter q claimed)"
spool_done
