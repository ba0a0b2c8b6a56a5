#!/usr/bin/env bash
# A writer that is killed by a signal publishes nothing: what it wrote is kept staged, as .killed.NAME.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
q=$mnt/q
cat >"$scratch/writer.py" <<'EOF2'
"""Opens FILE with FLAGS, writes TEXT (at OFFSET), says so by making READY, and waits to be killed."""
import os, signal, sys
path, ready, text, flags, offset = sys.argv[1], sys.argv[2], sys.argv[3].encode(), sys.argv[4], int(sys.argv[5])
bits = 0
for flag in flags.split("|"):
    bits |= getattr(os, flag)
fd = os.open(path, bits, 0o644)
if text:
    os.write(fd, text) if bits & os.O_APPEND else os.pwrite(fd, text, offset)
open(ready, "w").close()
signal.pause()
EOF2
# FILE TEXT [SIGNAL [FLAGS [OFFSET]]]: a writer killed in the middle.
killed_writer() {
    local pid
    rm -f "$scratch/ready"
    "$python" "$scratch/writer.py" "$1" "$scratch/ready" "$2" "${4:-O_WRONLY|O_CREAT|O_TRUNC}" "${5:-0}" 2>"$last_output" &
    pid=$!
    wait_until 10 test -e "$scratch/ready" || echo "# the writer did not start: $(cat "$last_output")"
    kill -s "${3:-KILL}" "$pid"
    wait "$pid" 2>/dev/null
}

for signal in KILL TERM SEGV; do
    killed_writer "$q/m" "half a mess" "$signal"
    soon "a writer killed by SIG$signal leaves .killed.m" 3 test -e "$q/.killed.m"
    errno "and no m" ENOENT stat "$q/m"
    is "what it wrote is kept" "half a mess" "$(contents q/.killed.m)"
    is "it is counted as staged, not as published" "1 0 0" "$(counter q staged) $(counter q waiting) $(counter q published)"
    errno "it cannot be claimed" EPERM rename "$q/.killed.m" "$q/claimed/w/m"
    rm "$q/.killed.m"
done
killed_writer "$q/m" ""
soon "a writer killed before its first write leaves .killed.m" 5 test -e "$q/.killed.m"
errno "and no m either" ENOENT stat "$q/m"
is "nothing waits" 0 "$(counter q waiting)"
killed_writer "$q/m" "second"
soon "a second one does not take away the first" 5 bash -c '[ "$(find "$1" -maxdepth 1 -name ".killed*" | wc -l)" = 2 ]' - "$q"
find "$q" -maxdepth 1 -name '.killed*' -delete

killed_writer "$q/m" "to be sent all the same"
soon "a killed file can be renamed to be published" 5 mv "$q/.killed.m" "$q/m"
is "which makes it a message" "to be sent all the same 1" "$(contents q/m) $(counter q published)"
rm "$q/m"
killed_writer "$q/.staged" "half"
is "a staged file whose writer was killed stays staged" "0 1" "$(counter q waiting) $(counter q staged)"
find "$q" -maxdepth 1 -name '.*' -type f -delete

# A large file, killed in the middle of writing.
"$python" -c 'import sys
with open(sys.argv[1], "wb") as file:
    while True:
        file.write(b"x" * 65536)' "$q/large" &
pid=$!
wait_until 10 bash -c '[ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -gt 1000000 ]' - "$q/large"
kill -9 $pid
wait $pid 2>/dev/null
soon "a writer killed in the middle of a large file leaves .killed.large" 5 test -s "$q/.killed.large"
errno "and no message" ENOENT stat "$q/large"
rm "$q/.killed.large"

# A shell whose pipeline is killed, and one that ends in order.
bash -c 'echo begin; kill -9 $$' >"$q/shell" 2>/dev/null
soon "a shell that kills itself leaves .killed.shell" 5 bash -c '[ -e "$1/.killed.shell" ] && [ ! -e "$1/shell" ]' - "$q"
rm -f "$q/.killed.shell" "$q/shell"
bash -c 'echo all; exit 3' >"$q/shell"
is "an exit with a failure is an end in order" all "$(contents q/shell)"
rm "$q/shell"

# Rewriting what is there already.
for mode in keep replace; do
    queue "$mode" on_conflict=$mode
    publish "$mode/m" old
    killed_writer "$mnt/$mode/m" new
    soon "$mode: a killed overwriter leaves the old message" 3 bash -c '[ "$(awk "\$1 == \"ready\" { print \$2 }" "$1/.stats")" = 1 ]' - "$mnt/$mode"
    is "$mode: with its content" old "$(payloads "$mode")"
    killed_writer "$mnt/$mode/$(names "$mode")" new KILL 'O_WRONLY|O_CREAT'
    soon "$mode: one without O_TRUNC as well" 3 bash -c '[ "$(awk "\$1 == \"ready\" { print \$2 }" "$1/.stats")" = 1 ]' - "$mnt/$mode"
    is "$mode: and leaves its content, too" old "$(payloads "$mode")"
done
publish q/m "first "
number=$(inode q/m)
killed_writer "$q/m" "second" KILL 'O_WRONLY|O_APPEND'
soon "a killed edit ends" 5 bash -c '[ "$(awk "\$1 == \"ready\" { print \$2 }" "$1/.stats")" = 1 ]' - "$q"
is "and leaves the message unchanged" "first  $number" "$(contents q/m) $(inode q/m)"
killed_writer "$q/m" "XX" KILL O_WRONLY 2
soon "a killed edit in the middle ends" 5 bash -c '[ "$(awk "\$1 == \"ready\" { print \$2 }" "$1/.stats")" = 1 ]' - "$q"
is "and leaves it unchanged too" "first  $number" "$(contents q/m) $(inode q/m)"
errno "it can be claimed" OK rename "$q/m" "$q/claimed/w/m"
killed_writer "$q/claimed/w/m" "half a checkpoint"
is "a killed checkpoint leaves the payload of the lease as it was" "first " "$(contents q/claimed/w/m)"
t "and the lease" rm "$q/claimed/w/m"
spool_done
