#!/usr/bin/env bash
# Under load for a while nothing grows: not the log of the database, nor the memory, nor the descriptors of the daemon.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
q=$mnt/q
pid=$(spool_pid)
cat >"$scratch/worker.py" <<'PYTHON'
"""Publishes, claims and acknowledges COUNT messages of its own, every hundredth a large one, every tenth staged and renamed."""
import os, sys

q, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.makedirs(f"{q}/claimed/{name}", exist_ok=True)
for i in range(count):
    message = f"{name}-{i}"
    path = f"{q}/.{message}" if i % 10 == 0 else f"{q}/{message}"
    with open(path, "wb") as file:
        file.write(b"x" * (200000 if i % 100 == 0 else 1000))
    if i % 10 == 0:
        os.rename(path, f"{q}/{message}")
    os.rename(f"{q}/{message}", f"{q}/claimed/{name}/{message}")
    if i % 7 == 0:
        os.utime(f"{q}/claimed/{name}/{message}")
    os.unlink(f"{q}/claimed/{name}/{message}")
PYTHON
round() {
    local worker workers=()
    for worker in a b c d; do
        "$python" "$scratch/worker.py" "$q" "$worker" 1000 &
        workers+=($!)
    done
    wait "${workers[@]}"
}
memory_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$pid/status"; }
descriptors() { find "/proc/$pid/fd" -mindepth 1 | wc -l; }
disk_kib() { du -sk "$db" "$db-wal" | awk '{ sum += $1 } END { print sum }'; }

round
is "4000 messages went through" "4000 4000 0 0" "$(counter q published) $(counter q acknowledged) $(counter q waiting) $(counter q claimed)"
memory=$(memory_kib) files=$(descriptors) disk=$(disk_kib)
for _ in 1 2 3; do round; done
is "12000 more" "16000 16000 0 0" "$(counter q published) $(counter q acknowledged) $(counter q waiting) $(counter q claimed)"
is_sanitized ||
    between "the memory of the daemon does not grow" 1 $((memory + 4096)) "$(memory_kib)"
between "nor the number of its descriptors" 1 $((files + 4)) "$(descriptors)"
between "nor the database and its log" 1 $((disk + 8192)) "$(disk_kib)"
soon "no payload file is left" 5 bash -c '[ -z "$(ls "$1")" ]' - "$db.payloads"
spool_done
