#!/usr/bin/env bash
# Every other move: forwarding, burying, cancelling, renaming, and that no rename is ever EXDEV.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
queue other
q=$mnt/q w=$mnt/q/claimed/w other=$mnt/other
forget_all() { find "$q" "$other" -type f -delete; }
counters() { echo "$(counter "$1" waiting) $(counter "$1" claimed) $(counter "$1" dead) $(counter "$1" staged)"; }

# --- forward: from a lease to another queue ---
publish q/m payload
chown 12:34 "$q/m"
claim q/m
errno "mv of a lease into another queue forwards it" OK rename "$w/m" "$other/m"
is "it is acknowledged here" "0 0 0 0 1" "$(counters q) $(counter q acknowledged)"
is "and published there" "m payload 1 1" "$(names other) $(contents other/m) $(counter other waiting) $(counter other published)"
is "it belongs to the forwarder" 0 "$(stat -c %u "$other/m")"
errno "and can be claimed there" OK rename "$other/m" "$other/claimed/w/m"
errno "and be forwarded back under another name" OK rename "$other/claimed/w/m" "$q/n"
is "which is its name then" "n payload" "$(names q) $(contents q/n)"
claim q/n
echo rewritten >"$w/n"
errno "with a payload rewritten in place" OK rename "$w/n" "$other/n"
is "the new payload arrives" rewritten "$(contents other/n)"
forget_all
echo 1 >"$q/.config/max_attempts"
publish q/m x
claim q/m && mv "$w/m" "$other/"
mv "$other/m" "$other/claimed/w/" && mv "$other/claimed/w/m" "$q/"
claim q/m
t "forwarding makes the attempts 0 again" test -e "$w/m"
rm "$q/.config/max_attempts"
touch -m -d '+5 min' "$w/m"
errno "forwarding drops the due time" OK rename "$w/m" "$other/m" , rename "$other/m" "$other/claimed/w/m"
forget_all
head -c 400000 /dev/urandom >"$q/m"
sum=$(sha256sum <"$q/m")
claim q/m
mv "$w/m" "$other/"
is "a large payload is forwarded" "$sum" "$(sha256sum <"$other/m")"
forget_all

# Refused is: nothing happened.
refused() { # SENTENCE ERRNO: the forward of q/claimed/w/m to other/m
    local before
    before="$(counters q) $(counters other) $(counter q acknowledged) $(counter other published)"
    errno "$1" "$2" rename "$w/m" "$other/m"
    is "and nothing has happened" "$before payload" \
        "$(counters q) $(counters other) $(counter q acknowledged) $(counter other published) $(contents q/claimed/w/m)"
}
publish q/m payload
claim q/m
publish other/m taken
echo reject >"$other/.config/on_conflict"
refused "a forward onto a taken name under reject is EEXIST" EEXIST
echo 1 >"$other/.config/max_waiting"
rm "$other/.config/on_conflict"
refused "a forward beyond max_waiting is EDQUOT" EDQUOT
rm "$other/m" "$other/.config/max_waiting"
echo 3 >"$other/.config/max_size"
refused "a forward of more than max_size is EFBIG" EFBIG
rm "$other/.config/max_size"
publish other/m old
errno "a forward onto a taken name under keep" OK rename "$w/m" "$other/m"
is "numbers the older one" "old|payload" "$(payloads other)"
forget_all

# --- waiting ---
for i in 1 2 3; do publish "q/m$i" "$i"; done
number=$(inode q/m2) published=$(counter q published)
errno "waiting, to another name" OK rename "$q/m2" "$q/renamed"
is "keeps place and number" "m1 renamed m3 $number $published" "$(names q) $(inode q/renamed) $(counter q published)"
errno "and can be claimed under it" OK rename "$q/renamed" "$w/renamed" , rename "$w/renamed" "$q/renamed"
errno "waiting, to its own name" OK rename "$q/m1" "$q/m1"
is "changes nothing" "m1 renamed m3" "$(names q)"
errno "waiting, onto another waiting message, under keep" OK rename "$q/m3" "$q/m1"
is "nothing is lost" "1|2|3" "$(payloads q)"
is "the older one is numbered" "m1~1 renamed m1" "$(names q)"
errno "waiting, onto a taken name with RENAME_NOREPLACE, is EEXIST" EEXIST renameat2 "$q/m1" "$q/renamed" NOREPLACE
errno "waiting, to another queue" OK rename "$q/renamed" "$other/renamed"
is "is published there anew" "2 1 $((published)) m1~1 m1" "$(contents other/renamed) $(counter other waiting) $(counter q published) $(names q)"
publish other/later x
mv "$q/m1" "$other/"
is "at the end of the order there" "renamed later m1" "$(names other)"
mv "$other/later" "$other/dead/"
errno "waiting, to dead: buried" ENOENT stat "$other/later"
is "which is counted" "later 1" "$(ls "$other/dead") $(counter other dead)"
is "as buried" 1 "$(counter other buried)"
errno "waiting, to the dead of another queue, is refused" 'EINVAL|EPERM' rename "$other/m1" "$q/dead/m1"
cancelled=$(counter other cancelled)
errno "waiting, removed: cancelled" OK unlink "$other/renamed"
is "which is counted" "$((cancelled + 1)) m1" "$(counter other cancelled) $(names other)"
errno "a second time is ENOENT" ENOENT unlink "$other/renamed"

# --- dead ---
errno "dead, to a staged name, is EPERM" EPERM rename "$other/dead/later" "$other/.later"
errno "dead, to a staged name in dead, is EPERM" EPERM rename "$other/dead/later" "$other/dead/.later"
[ -e "$other/dead/later" ] || mv "$other/dead/.later" "$other/dead/later"
errno "dead, to claimed, is EPERM" EPERM rename "$other/dead/later" "$other/claimed/w/later"
errno "dead, to claimed itself, is EPERM" EPERM rename "$other/dead/later" "$other/claimed/later"
errno "dead, to another queue" OK rename "$other/dead/later" "$q/later"
is "is published there anew" "later x 0" "$(names q | grep -ow later) $(contents q/later) $(counter other dead)"
mv "$q/later" "$q/dead/"
errno "dead, to another name in the queue" OK rename "$q/dead/later" "$q/again"
is "is requeued under it" "x 0" "$(contents q/again) $(counter q dead)"

# --- claimed ---
claim q/again
errno "claimed, to a staged name, is EPERM" EPERM rename "$w/again" "$q/.again"
errno "claimed, to a staged name of another queue, is EPERM" EPERM rename "$w/again" "$other/.again"
errno "claimed, to claimed of another queue, is refused" 'EINVAL|EPERM' rename "$w/again" "$other/claimed/w/again"
errno "claimed, to the dead of another queue, is refused" 'EINVAL|EPERM' rename "$w/again" "$other/dead/again"
errno "claimed, to the root, is EPERM" EPERM rename "$w/again" "$mnt/again"
t "and the lease stands" test -e "$w/again"
errno "claimed, to dead" OK rename "$w/again" "$q/dead/renamed"
is "may be renamed on the way" renamed "$(ls "$q/dead")"
errno "a worker's directory, to another queue, is refused" 'EINVAL|EPERM' rename "$w" "$other/w"
errno "a worker's directory, to another queue's claimed, is refused" 'EINVAL|EPERM' rename "$w" "$other/claimed/x"
errno "a worker's directory, to dead, is refused" 'EINVAL|EPERM' rename "$w" "$q/dead/w"
forget_all

# --- open, held back, editing ---
exec 5>"$q/m"
printf x >&5
errno "open, to claimed, is ETXTBSY" ETXTBSY rename "$q/m" "$w/m"
errno "open, to dead, is refused" 'ETXTBSY|EPERM' rename "$q/m" "$q/dead/m"
printf y >&5
exec 5>&-
is "and it is published whole" "m xy" "$(names q) $(contents q/m)"
rm "$q/m"

# --- no rename is EXDEV, loses or doubles anything ---
cat >"$scratch/matrix.py" <<'PYTHON'
"""Renames one of each kind onto a place of each kind; after each, exactly one message or staged file of that content is there."""
import errno, os, sys, time

top = sys.argv[1]
q, other = f"{top}/q", f"{top}/other"
def write(path, text):
    with open(path, "w") as file:
        file.write(text)
def move(source, target):
    os.rename(source, target)
def make(kind, text):
    """A new thing of that kind with that content; returns its path."""
    if kind == "staged":
        write(f"{q}/.new", text)
        return f"{q}/.new"
    if kind == "in a dot directory":
        write(f"{q}/.dir/new", text)
        return f"{q}/.dir/new"
    write(f"{q}/new", text)
    if kind == "claimed":
        move(f"{q}/new", f"{q}/claimed/w/new")
        return f"{q}/claimed/w/new"
    if kind == "dead":
        move(f"{q}/new", f"{q}/dead/new")
        return f"{q}/dead/new"
    return f"{q}/new"
kinds = ["waiting", "staged", "in a dot directory", "claimed", "dead"]
places = [f"{top}/to", f"{q}/to", f"{q}/.to", f"{q}/.dir/to", f"{q}/claimed/to", f"{q}/claimed/w/to", f"{q}/dead/to", f"{other}/to",
    f"{other}/.to", f"{other}/claimed/to", f"{other}/claimed/w/to", f"{other}/dead/to", f"{top}/.config/lease", f"{q}/.config/lease",
    f"{q}/.config/to", f"{q}/.stats", q, other, f"{q}/claimed", f"{q}/claimed/w", f"{q}/dead", f"{q}/.dir"]
os.mkdir(f"{q}/.dir")
trouble = []
for kind in kinds:
    for place in places:
        text = f"{kind} to {place}"
        source = make(kind, text)
        result = "OK"
        try:
            os.rename(source, place)
        except OSError as error:
            result = errno.errorcode[error.errno]
        if result in ("EXDEV", "EIO", "ENOSYS"):
            trouble.append(f"{text}: {result}")
        found = []
        for directory, _, files in os.walk(top):
            found += [path for path in (f"{directory}/{name}" for name in files) if open(path).read() == text]
        if len(found) != 1 or (result == "OK") == (found == [source]):
            trouble.append(f"{text}: {result}, and there is {found}")
        for path in found:
            os.unlink(path)
controls = [f"{top}/.config", f"{top}/.stats", f"{top}/.config/lease", f"{q}/.config", f"{q}/.stats", f"{q}/.config/lease", f"{q}/claimed",
    f"{q}/dead", q]
for source in controls:
    for place in [f"{top}/to", f"{q}/to", f"{q}/claimed/to", f"{q}/claimed/w/to", f"{other}/to", f"{q}/.to"]:
        if source == q and place == f"{top}/to":
            continue
        try:
            os.rename(source, place)
            trouble.append(f"{source} to {place} is allowed")
        except OSError as error:
            if error.errno in (errno.EXDEV, errno.EIO, errno.ENOSYS):
                trouble.append(f"{source} to {place}: {errno.errorcode[error.errno]}")
print("\n".join(trouble))
sys.exit(bool(trouble))
PYTHON
t "whatever is renamed onto whatever: never EXDEV, never lost, never doubled" "$python" "$scratch/matrix.py" "$mnt"
is "and the counters say nothing is left" "0 0 0 0 0 0 0 0" "$(counters q) $(counters other)"
spool_done
