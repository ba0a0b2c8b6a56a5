#!/usr/bin/env bash
# What survives kill -9 of the daemon and a new mount, and what becomes of files that were open.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q max_attempts=7 on_conflict=replace retry_delay=5m
queue other
q=$mnt/q w=$mnt/q/claimed/w
restart() {
    spool_kill
    spool_remount
}
# The same without searching for the daemon first: $daemon, found before something is flushed that must not grow old.
restart_at_once() {
    kill -9 "$daemon"
    wait_until 10 process_ended "$daemon"
    spool_remount
}
# Everything that can be seen of the mount.
state() {
    (cd "$mnt" && find . -printf '%p %y %m %U %G %n %i %s\n' | sort && find . -type f -printf '%p %TT %AT\n' | sort &&
        find . -type f -exec sha256sum {} + | sort && ls -U q other && cat q/.config/* .config/* && grep -v oldest q/.stats other/.stats .stats)
}

# --- everything at once ---
for name in zebra apple mango claimed1 claimed2 dying delayed failed; do publish "q/$name" "$name"; done
chown 12:34 "$q/apple" && chmod 640 "$q/apple"
head -c 300000 /dev/urandom >"$q/large"
mv "$q/dying" "$q/dead/"
publish q/.staged staged
publish q/part.tmp staged
mkdir "$q/.dir"
publish q/.dir/file x
ln -s somebody@host "$q/.#lock"
claim q/claimed1
claim q/claimed2
claim q/failed && touch -a -d @0 "$w/failed"
touch -a -d '+20 min' "$w/claimed2"
touch -d '+1 hour' "$q/delayed"
mv "$q/apple" "$q/pear"
claim q/mango && mv "$w/mango" "$mnt/other/"
echo edited >>"$q/zebra"
echo 45s >"$mnt/.config/lease"
chmod 751 "$mnt/q" && chown 0:77 "$mnt/q"
state >"$scratch/before" 2>&1
restart
state >"$scratch/after" 2>&1
t "kill -9 and a new mount change nothing of what can be seen" diff "$scratch/before" "$scratch/after"
restart
state >"$scratch/after" 2>&1
t "nor do two" diff "$scratch/before" "$scratch/after"
spool_umount
spool_remount
state >"$scratch/after" 2>&1
t "nor does umount and a new mount" diff "$scratch/before" "$scratch/after"
errno "a lease that lived through it can be acknowledged" OK unlink "$w/claimed1"
errno "and be released" OK rename "$w/claimed2" "$q/claimed2"
errno "the delayed one is still not due" EAGAIN rename "$q/delayed" "$w/delayed"
restart
errno "what was acknowledged is never seen again" ENOENT stat "$w/claimed1"
errno "what was released is in the queue" OK stat "$q/claimed2"
for number in {1..300}; do publish "q/n$number" "$number"; done
last=$(inode q/n300)
find "$q" -maxdepth 1 -type f -delete
restart
publish q/new x
t "numbers are never used again" test "$(inode q/new)" -gt "$last"
rm "$q/new"
echo 300ms >"$q/.config/lease"
publish q/m x
claim q/m
restart
t "a lease is there after a restart" test -e "$w/m" -o -e "$q/m"
soon "and runs out as it would have" 5 test -e "$q/m"
rm "$q/m" "$q/.config/lease"
for i in {1..20}; do
    publish "q/m$i" "$i"
    restart
done
is "20 messages, a kill after each: all are there, in order" "$(seq -s'|' 20)" "$(payloads q)"
for i in {1..10}; do
    claim "q/m$i" && rm "$w/m$i"
    restart
done
is "10 acknowledgements, a kill after each: none is undone" "$(seq -s'|' 11 20)" "$(payloads q)"
find "$q" -maxdepth 1 -type f -delete

# --- what was open ---
# PATH TEXT...: a process writes the texts one by one, each followed by a flush (as close of a duplicate is), and keeps PATH open.
# The last text is written without a flush after it when it begins with '-'. Says so by making $scratch/ready.
hold_open() {
    rm -f "$scratch/ready"
    "$python" -c 'import os, signal, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o644)
for text in sys.argv[3:]:
    os.write(fd, text.lstrip("-").encode())
    if not text.startswith("-"):
        os.close(os.dup(fd))
open(sys.argv[2], "w").close()
signal.pause()' "$1" "$scratch/ready" "${@:2}" &
    holder=$!
    disown "$holder"
    wait_until 10 test -e "$scratch/ready" || bail "the writer did not start"
}
let_go() { kill -9 "$holder" && wait_until 10 process_ended "$holder"; }

daemon=$(spool_pid)
hold_open "$q/flushed" "all of it"
restart_at_once
let_go
is "a file that was flushed when the daemon died is published" "flushed|all of it" "$(names q)|$(payloads q)"
errno "and can be claimed" OK rename "$q/flushed" "$w/flushed" , unlink "$w/flushed"
hold_open "$q/torn" "first" "-second"
restart
let_go
errno "one that was written to after its last flush is not" ENOENT stat "$q/torn"
t "but kept as .recovered" test -f "$q/.recovered.torn"
t "with what had been flushed at least" grep -q '^first' "$q/.recovered.torn"
errno "it can be renamed to be published" OK rename "$q/.recovered.torn" "$q/torn"
rm "$q/torn"
hold_open "$q/never" "-unflushed"
restart
let_go
errno "one that was never flushed is not published" ENOENT stat "$q/never"
rm -f "$q/.recovered.never"
hold_open "$q/lingering" "flushed once"
sleep 1.3
restart
let_go
errno "one that stayed open for a second after its flush is not published" ENOENT stat "$q/lingering"
is "but kept as .recovered, whole" "flushed once" "$(contents q/.recovered.lingering)"
rm "$q/.recovered.lingering"
hold_open "$q/.staged" "text"
restart
let_go
is "a staged file stays staged" "text 0" "$(contents q/.staged) $(counter q waiting)"
rm "$q/.staged"
publish q/c first
daemon=$(spool_pid)
rm -f "$scratch/ready"
"$python" -c 'import os, signal, sys
fds = [os.open(sys.argv[1] + name, os.O_WRONLY | os.O_CREAT, 0o644) for name in ("/a", "/b")]
for fd, text in ((fds[0], b"over"), (fds[1], b"second"), (fds[0], b"third")):
    os.pwrite(fd, text, 0)
    os.close(os.dup(fd))
os.ftruncate(fds[0], 5)
os.close(os.dup(fds[0]))
open(sys.argv[2], "w").close()
signal.pause()' "$q" "$scratch/ready" &
holder=$!
disown "$holder"
wait_until 10 test -e "$scratch/ready"
restart_at_once
let_go
is "flushed files are published in the order of their last flush" "first|second|third" "$(payloads q)"
find "$q" -maxdepth 1 -type f -delete
head -c 400000 /dev/urandom >"$scratch/large"
daemon=$(spool_pid)
"$python" -c 'import os, signal, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o644)
data = open(sys.argv[3], "rb").read()
while data: data = data[os.write(fd, data):]
os.close(os.dup(fd))
open(sys.argv[2], "w").close()
signal.pause()' "$q/large" "$scratch/large.ready" "$scratch/large" &
wait_until 10 test -e "$scratch/large.ready"
restart_at_once
t "a large one is whole" cmp "$scratch/large" "$q/large"
rm "$q/large"

# A producer that goes on by itself: what was answered with success is there.
"$python" -c 'import os, sys
q, done = sys.argv[1:]
with open(done, "w", 1) as log:
    for i in range(100000):
        try:
            fd = os.open(f"{q}/p{i:05}", os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(fd, f"{i}\n".encode())
            os.close(fd)
        except OSError: break
        log.write(f"p{i:05}\n")' "$q" "$scratch/answered" &
wait_until 10 bash -c '[ "$(cat "$1" 2>/dev/null | wc -l)" -ge 200 ]' - "$scratch/answered"
restart
wait $!
is "of a producer's closes that were answered none is lost" "" "$(comm -23 "$scratch/answered" <(ls "$q"))"
between "and at most one that was not is there" 0 1 "$(comm -13 "$scratch/answered" <(ls "$q" | grep '^p') | wc -l)"
spool_done
