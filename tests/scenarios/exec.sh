#!/usr/bin/env bash
# A program that becomes another one (execve) closes its files on the way, in a system call that holds locks of the kernel's: the
# daemon, which looks into /proc at each close, must not wait for those.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
q=$mnt/q
cat >"$scratch/become.py" <<'EOF2'
"""Writes TEXT to FILE, which closes when the process becomes `true`."""
import os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644)
if sys.argv[2]:
    os.write(fd, sys.argv[2].encode())
os.execv("/bin/true", ["true"])
EOF2
# If the daemon waits for ever, so does everybody else: then it has to go, and the test has failed.
daemon=$(spool_pid)
(sleep 20 && kill -9 "$daemon") 2>/dev/null &
watchdog=$!

t "a file that closes at execve is closed" "$python" "$scratch/become.py" "$q/order" tea
is "and is a message" tea "$(contents q/order)"
t "an empty one too" "$python" "$scratch/become.py" "$q/empty" ""
soon "and is a message" 3 mv "$q/empty" "$q/claimed/w/"
t "the daemon goes on" test -e "/proc/$daemon"

kill "$watchdog" 2>/dev/null
spool_done
