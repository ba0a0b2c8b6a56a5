#!/usr/bin/env bash
# What a listing shows, in which order, and how it bears changes while it is read.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q

for name in zebra apple mango; do publish "q/$name" "$name"; done
is "ls -U lists in the order of publication" "zebra apple mango" "$(names q)"
is "plain ls sorts" "apple mango zebra" "$(ls "$mnt/q" | grep -vxE 'claimed|dead' | paste -sd' ' -)"
publish q/.staged x
is "ls does not show staged files" "zebra apple mango" "$(names q)"
t "ls -A shows them" grep -qw .staged <(names q all)
publish q/part.tmp x
t "a staged file without a dot is listed" grep -qw part.tmp <(names q)
is "find -type f at one level finds messages and staged files" 5 "$(find "$mnt/q" -maxdepth 1 -type f | wc -l)"
rm "$mnt/q/.staged" "$mnt/q/part.tmp"

# Publication is the last close, not the creation.
exec 5>"$mnt/q/early"
echo x >&5
publish q/late x
exec 5>&-
is "a file takes its place when it is closed" "zebra apple mango late early" "$(wait_until 2 grep -qw early <(names q); names q)"
publish q/.s x
publish q/before x
mv "$mnt/q/.s" "$mnt/q/renamed"
is "a staged file takes its place when it is renamed" "zebra apple mango late early before renamed" "$(names q)"
mv "$mnt/q/apple" "$mnt/q/pear"
is "renaming a message keeps its place" "zebra pear mango late early before renamed" "$(names q)"
claim q/mango
is "a claimed message is listed below claimed" "zebra pear late early before renamed|mango" "$(names q)|$(ls "$mnt/q/claimed/w")"
find "$mnt/q" -maxdepth 1 -type f -delete

cat >"$scratch/listing.py" <<'PYTHON'
"""Reads a directory in small pieces while messages come and go: each that stays is seen exactly once."""
import ctypes, os, struct, sys

queue, count = sys.argv[1], int(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open(queue, os.O_RDONLY | os.O_DIRECTORY)
seen, changes, buffer = [], 0, ctypes.create_string_buffer(1024)
while True:
    length = libc.syscall(217, fd, buffer, 1024)  # getdents64
    if length < 0:
        raise OSError(ctypes.get_errno(), "getdents64")
    if length == 0:
        break
    at = 0
    while at < length:
        ino, off, size, kind = struct.unpack_from("<QqHB", buffer.raw, at)
        name = buffer.raw[at + 19:at + size].split(b"\0")[0].decode()
        if name.startswith("keep"):
            seen.append(name)
            if ino != os.stat(f"{queue}/{name}").st_ino:
                sys.exit(f"{name} is listed as number {ino}")
            if kind != 8:
                sys.exit(f"{name} is listed as type {kind}")
        at += size
    changes += 1
    if changes % 4 == 0:  # remove one ahead and one behind, rename one, add one
        for victim in (f"drop{changes:05}", f"drop{count - changes:05}"):
            if os.path.exists(f"{queue}/{victim}"):
                os.unlink(f"{queue}/{victim}")
        with open(f"{queue}/added{changes}", "w") as file:
            file.write("x")
expected = [f"keep{i:05}" for i in range(count)]
if seen != expected:
    missing, twice = set(expected) - set(seen), len(seen) - len(set(seen))
    sys.exit(f"{len(missing)} missing {sorted(missing)[:5]}, {twice} seen twice, in order: {seen == sorted(seen)}")
PYTHON
"$python" - "$mnt/q" <<'PYTHON'
import sys
for i in range(1200):
    for kind in "keep", "drop":
        with open(f"{sys.argv[1]}/{kind}{i:05}", "w") as file:
            file.write("x")
PYTHON
is "2400 messages are counted" 2400 "$(counter q waiting)"
is "and listed once each, in order" "$(for ((i = 0; i < 1200; i++)); do printf 'keep%05d\ndrop%05d\n' $i $i; done | sha256sum)" \
    "$(ls -U "$mnt/q" | grep -vxE 'claimed|dead' | sha256sum)"
t "a listing in small pieces bears changes: each entry that stays is returned once" "$python" "$scratch/listing.py" "$mnt/q" 1200
t "rm of thousands through a glob works" bash -c 'cd "$1" && rm keep* drop* added*' - "$mnt/q"
is "and leaves none" 0 "$(counter q waiting)"

# rewinddir and seekdir
for name in a b c; do publish "q/$name" x; done
t "a directory can be read again after rewinddir" perl -e 'opendir(D, $ARGV[0]); @a = readdir D; rewinddir D; @b = readdir D;
    exit !("@a" eq "@b" && @a >= 5)' "$mnt/q"
t "telldir and seekdir come back to the same entry" perl -e 'opendir(D, $ARGV[0]); readdir D for 1..3; $p = telldir D; @a = readdir D;
    seekdir(D, $p); @b = readdir D; exit !("@a" eq "@b" && @a)' "$mnt/q"
exec 6<"$mnt/q"
exec 6<&-
t "du, find, grep -r and tar walk a queue without hanging" timeout 20 bash -c \
    'cd "$1" && du -a . && find . -ls && ! grep -r nothing . && tar cf - . | tar tf -' - "$mnt/q"
t "cp -r copies a queue out" bash -c 'timeout 20 cp -r "$1/q" "$2/copy" && [ "$(cat "$2/copy/b")" = x ]' - "$mnt" "$scratch"
spool_done
