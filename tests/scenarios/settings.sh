#!/usr/bin/env bash
# Settings: reading, writing, resetting and inheriting them, and what each does.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
q=$mnt/q w=$mnt/q/claimed/w c=$mnt/q/.config
claimable() { op rename "$q/$1" "$w/$1" | grep -qx OK; }

# --- values ---
while read -r name value; do
    is "the default of $name" "$value" "$(cat "$c/$name")"
done <<'DEFAULTS'
lease 60s
max_lease 12h
max_attempts 20
retry_delay 1s
retry_max 5m
paused 0
on_conflict keep
max_waiting 0
max_size 0
partial_ttl 7d
partial *~ #*# ~$* *.tmp *.temp *.part *.partial *.filepart *.crdownload *.download *.upload *.swp *.swpx *.aria2 *.aria2__temp *.lftp Thumbs.db desktop.ini
DEFAULTS
for value in 500ms 30s 5m 2h 7d; do
    echo "$value" >"$c/lease"
    is "reading gives the canonical value: $value" "$value" "$(cat "$c/lease")"
done
printf 7s >"$c/lease"
is "a newline at the end is not needed" 7s "$(cat "$c/lease")"
is "a value ends with a newline when read" 3 "$(wc -c <"$c/lease")"
for bad in abc -1s 5x 1e3s '5 s' '' ' ' 99999999999999999999s 5m30; do
    errno "lease '$bad' is EINVAL" EINVAL@write open "$c/lease" O_WRONLY , write "$bad"$'\n'
done
is "the old value stays" 7s "$(cat "$c/lease")"
fails "the shell sees a bad value" bash -c 'echo abc >"$1"' - "$c/lease"
is "and the old value stays, though the shell truncates" 7s "$(cat "$c/lease")"
for bad in "on_conflict bogus" "paused 2" "max_attempts -1" "max_attempts x" "max_waiting -5" "max_size 1.5"; do
    errno "$bad is EINVAL" EINVAL@write open "$c/${bad% *}" O_WRONLY , write "${bad#* }"
done
errno "a value that is too long is E2BIG" E2BIG@fill open "$c/partial" O_WRONLY , fill 65536
errno "truncation alone changes nothing" OK truncate "$c/lease" 0 , open "$c/lease" 'O_WRONLY|O_TRUNC' , ftruncate 0 , close
is "as read" 7s "$(cat "$c/lease")"
errno "one write is one value, the offset ignored" OK open "$c/lease" O_WRONLY , pwrite 100 8s , close
is "as read, too" 8s "$(cat "$c/lease")"
(echo 9s; echo 10s) >"$c/lease"
is "two writes are two values, the last stands" 10s "$(cat "$c/lease")"
echo 11s >"$scratch/value"
t "cp sets a value" cp "$scratch/value" "$c/lease"
is "as read after cp" 11s "$(cat "$c/lease")"
t "tee sets a value" bash -c 'echo 12s | tee "$1"' - "$c/lease"
t "rm returns to the default" rm "$c/lease"
is "which is read then" 60s "$(cat "$c/lease")"
t "rm of one that is not set is no error" rm -f "$c/lease"

# --- what there is ---
t "the settings are listed in .config" bash -c 'cd "$1" && for s in lease max_lease max_attempts retry_delay retry_max on_conflict paused max_size max_waiting partial; do
    ls | grep -qx "$s" || { echo "$s"; exit 1; }; done' - "$c"
for root in "$c" "$mnt/.config"; do
    errno "an unknown setting is ENOENT" ENOENT open "$root/bogus" O_RDONLY
    errno "and cannot be made" EPERM open "$root/bogus" 'O_WRONLY|O_CREAT'
    errno "nor any directory" EPERM mkdir "$root/bogus"
    errno "nor by a rename" EPERM rename "$root/lease" "$root/bogus"
    errno "nor a link" EPERM symlink x "$root/.bogus"
done
fails "sed -i cannot make its file there" sed -i s/1/2/ "$c/lease"
is "and has changed nothing" 60s "$(cat "$c/lease")"
errno ".config cannot be removed" 'EPERM|ENOTEMPTY|EBUSY' rmdir "$c"
errno ".stats cannot be written" 'EACCES|EPERM' open "$q/.stats" O_WRONLY
errno ".stats cannot be removed" EPERM unlink "$q/.stats"

# --- inheritance ---
echo 30s >"$mnt/.config/lease"
is "the root's settings are the defaults of queues" 30s "$(cat "$c/lease")"
echo 20s >"$c/lease"
is "a queue's own comes first" 20s "$(cat "$c/lease")"
mkdir "$mnt/r"
is "a new queue has the root's" 30s "$(cat "$mnt/r/.config/lease")"
rm "$c/lease"
is "rm returns to the inherited one" 30s "$(cat "$c/lease")"
publish q/m x && claimable m
between "which is what counts" 25 30.1 "$(seconds_from_now "$(atime q/claimed/w/m)")"
rm "$w/m" "$mnt/.config/lease"
is "rm in the root returns to the built-in one" "60s 60s" "$(cat "$c/lease") $(cat "$mnt/.config/lease")"

# --- paused ---
publish q/m x
echo 1 >"$c/paused"
errno "paused: a claim is EAGAIN" EAGAIN rename "$q/m" "$w/m"
t "paused: publishing goes on" publish q/n x
is "paused: and is counted" 2 "$(counter q waiting)"
echo 0 >"$c/paused"
errno "not paused any more: a claim succeeds" OK rename "$q/m" "$w/m"
echo 1 >"$c/paused"
errno "paused: an acknowledgement succeeds" OK unlink "$w/m"
rm "$c/paused" "$q/n"

# --- limits ---
echo 2 >"$c/max_waiting"
publish q/a x
publish q/b x
errno "max_waiting: one more is EDQUOT at create" EDQUOT open "$q/c" 'O_WRONLY|O_CREAT'
fails "max_waiting: the shell sees it" bash -c 'echo x >"$1"' - "$q/c"
errno "max_waiting: a staged file may be made" OK open "$q/.c" 'O_WRONLY|O_CREAT' , write x , close
errno "max_waiting: its rename is EDQUOT" EDQUOT rename "$q/.c" "$q/c"
errno "max_waiting: so is a link" EDQUOT link "$q/.c" "$q/c"
errno "max_waiting: so is mknod" EDQUOT mknod "$q/c" file
is "max_waiting: nothing came of it" "a b 2 1" "$(names q) $(counter q waiting) $(counter q staged)"
errno "max_waiting: what waits may be renamed" OK rename "$q/b" "$q/bb"
errno "max_waiting: and claimed" OK rename "$q/a" "$w/a"
errno "max_waiting: which makes room" OK rename "$q/.c" "$q/c"
errno "max_waiting: a release is never refused" OK rename "$w/a" "$q/a"
is "max_waiting: though it is one too many" "a bb c 3" "$(names q) $(counter q waiting)"
rm "$c/max_waiting" "$q/a" "$q/bb" "$q/c"
echo 10 >"$c/max_size"
errno "max_size: as many bytes are fine" OK open "$q/m" 'O_WRONLY|O_CREAT' , write 0123456789 , close
published=$(counter q published)
errno "max_size: one more is EFBIG at write" EFBIG@write open "$q/n" 'O_WRONLY|O_CREAT' , write 0123456789 , write x
is "max_size: and what is incomplete is not published" "m $published" "$(names q) $(counter q published)"
errno "max_size: far out as well" EFBIG@pwrite open "$q/.n" 'O_WRONLY|O_CREAT' , pwrite 1000 x
errno "max_size: ftruncate, too" EFBIG@ftruncate open "$q/.n" 'O_WRONLY|O_CREAT' , ftruncate 11
errno "max_size: and fallocate" EFBIG@fallocate open "$q/.n" 'O_WRONLY|O_CREAT' , fallocate 0 0 11
errno "max_size: appending to a waiting message as well" EFBIG@write open "$q/m" 'O_WRONLY|O_APPEND' , write x
is "max_size: which stays as it was" 0123456789 "$(contents q/m)"
t "max_size: cp reports it" bash -c '! cp /etc/services "$1" 2>/dev/null' - "$q/.services"
rm -f "$c/max_size" "$q/m" "$q"/.*.n "$q/n" "$q/.n" "$q/.services"

spool_done
