#!/usr/bin/env bash
# A full disk: publishing is refused in time, acknowledging goes on, and all works again when there is space.
. "$(dirname "$0")/../lib/mount.sh"
disk=$scratch/disk
mkdir "$disk"
if ! mount -t tmpfs -o size=64m none "$disk" 2>/dev/null; then
    skip "a full disk" "a tmpfs cannot be mounted"
    spool_done
fi
db=$disk/spool.db
spool_mount
queue q
q=$mnt/q w=$mnt/q/claimed/w

free_kib() { df -k --output=avail "$disk" | tail -n 1 | tr -d ' '; }
refuses() { rm -f "$q/.probe" && op open "$q/.probe" 'O_WRONLY|O_CREAT' | grep -qx ENOSPC; }
for i in {1..20}; do publish "q/m$i" "$i"; done
head -c 300000 /dev/urandom >"$scratch/large"
cp "$scratch/large" "$q/large"
t "there is space at first" publish q/fine x
head -c 100000000 /dev/zero >"$disk/ballast" 2>/dev/null
is "the disk is full" 0 "$(free_kib)"
soon "which is noticed within a moment" 3 refuses
rm -f "$q/.probe"
errno "creating is ENOSPC" ENOSPC open "$q/new" 'O_WRONLY|O_CREAT'
errno "of a staged file as well" ENOSPC open "$q/.new" 'O_WRONLY|O_CREAT'
fails "a shell sees it" bash -c 'echo x >"$1"' - "$q/new"
fails "cp sees it" cp "$scratch/large" "$q/new"
is "nothing came of it" 0 "$(find "$q" -maxdepth 1 -name '*new*' | wc -l)"
t "reading goes on" cmp "$scratch/large" "$q/large"
for i in 1 2 3 4 5 6 7 8 9 10; do
    { claim "q/m$i" && [ "$(contents "q/claimed/w/m$i")" = "$i" ] && rm "$w/m$i"; } >"$last_output" 2>&1 || break
done
is "claiming and acknowledging go on" "10 " "$i $(cat "$last_output")"
claim q/m11
errno "renewing goes on" OK utimens "$w/m11" now omit
errno "and releasing" OK rename "$w/m11" "$q/m11"
errno "and cancelling" OK unlink "$q/m12"
rm "$disk/ballast"
soon "with space again publishing works" 5 bash -c 'echo again >"$1"' - "$q/again"
is "whole" again "$(contents q/again)"
t "a large one, too" cp "$scratch/large" "$q/large2"

# The disk fills up in the middle of a file.
"$python" -c 'import errno, os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o644)
code = "no error"
try:
    for _ in range(2000):
        os.write(fd, b"x" * 65536)
    os.close(fd)
except OSError as error:
    code = errno.errorcode[error.errno]
print(code)' "$q/huge" >"$scratch/code"
is "a file that is too large is ENOSPC at write" ENOSPC "$(cat "$scratch/code")"
errno "and is not published" ENOENT rename "$q/huge" "$w/huge"
for i in {13..20}; do { claim "q/m$i" && rm "$w/m$i"; } || break; done >"$last_output" 2>&1
is "acknowledging went on" "20 " "$i $(cat "$last_output")"
find "$q" -maxdepth 1 -type f -delete
soon "with everything removed publishing works" 5 bash -c 'echo again >"$1"' - "$q/again"
spool_kill
spool_remount
is "and the message is there after kill -9" again "$(contents q/again)"
spool_done
