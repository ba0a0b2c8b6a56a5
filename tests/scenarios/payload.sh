#!/usr/bin/env bash
# Payloads of any size: small ones in the database, large ones as files beside it, streamed, and gone when the message is.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
queue other
q=$mnt/q w=$mnt/q/claimed/w
payload_files() { find "$db.payloads" -type f | wc -l; }
no_payload_files() { [ "$(payload_files)" = 0 ]; }

for size in 0 1 4095 4096 4097 131071 131072 131073 262144 1000000; do
    head -c $size /dev/urandom >"$scratch/m"
    t "$size bytes: cp succeeds" cp "$scratch/m" "$q/m"
    is "$size bytes: the size is shown" $size "$(stat -c %s "$q/m")"
    t "$size bytes: the content is right while it waits" cmp "$scratch/m" "$q/m"
    t "$size bytes: it is claimed" wait_until 3 bash -c 'mv "$1/m" "$1/claimed/w/" 2>/dev/null' - "$q"
    t "$size bytes: the content is right while it is leased" cmp "$scratch/m" "$w/m"
    exec 6<"$w/m"
    rm "$w/m"
    is "$size bytes: a descriptor still reads it after the acknowledgement" "$(sha256sum <"$scratch/m")" "$(sha256sum <&6)"
    exec 6<&-
done
soon "no payload file is left when the last descriptor has closed" 5 no_payload_files

# --- where they are ---
head -c 131072 /dev/urandom >"$q/m"
is "128 KiB is in the database" 0 "$(payload_files)"
head -c 131073 /dev/urandom >"$q/n"
is "one byte more is a file beside it" 1 "$(payload_files)"
is "which only the owner may read" 600 "$(find "$db.payloads" -type f -exec stat -c %a {} +)"
mv "$q/n" "$q/.n"
rm "$q/.n"
soon "a large staged file that is removed leaves no payload file" 5 no_payload_files
head -c 200000 /dev/urandom >"$q/n"
rm "$q/n"
soon "nor does a cancelled message" 5 no_payload_files
head -c 200000 /dev/urandom >"$q/n"
claim q/n && mv "$w/n" "$mnt/other/"
is "a forwarded message has one" 1 "$(payload_files)"
rm "$mnt/other/n"
soon "and it goes with the message" 5 no_payload_files
head -c 200000 /dev/urandom >"$q/n"
mv "$q/n" "$q/dead/"
is "a dead message has one" 1 "$(payload_files)"
rm "$q/dead/n"
soon "which goes with it" 5 no_payload_files
head -c 200000 /dev/urandom >"$q/n"
claim q/n
head -c 300000 /dev/urandom >"$w/n"
soon "a checkpoint leaves one" 5 bash -c '[ "$(find "$1" -type f | wc -l)" = 1 ]' - "$db.payloads"
rm "$w/n"
soon "which goes with the lease" 5 no_payload_files
exec 5>"$q/n"
head -c 500000 /dev/urandom >&5
rm "$q/n"
exec 5>&-
soon "an open file that is removed leaves none" 5 no_payload_files

# --- large ones, without passing through memory ---
head -c 1000000 /dev/urandom >"$scratch/block"
for _ in {1..300}; do cat "$scratch/block"; done >"$scratch/large"
truncate -s 314572800 "$scratch/large"
pid=$(spool_pid)
t "300 MB: cp succeeds" cp "$scratch/large" "$q/large"
t "300 MB: the content is right" cmp "$scratch/large" "$q/large"
claim q/large
exec 6<"$w/large"
t "300 MB: it is acknowledged" rm "$w/large"
t "300 MB: the descriptor still reads it all" eval 'cmp "$scratch/large" - <&6'
exec 6<&-
rm "$scratch/large"
soon "300 MB: the disk is free again" 10 bash -c '[ "$(du -sk "$1" | cut -f1)" -lt 1000 ]' - "$db.payloads"
is_sanitized ||
    between "the daemon stays below 64 MiB" 1 65536 "$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status")"
t "others are served while a large file is written" bash -c 'head -c 200000000 /dev/zero >"$1/big" & slowest=0
    while kill -0 $! 2>/dev/null; do
        begin=${EPOCHREALTIME/./}
        echo x >"$1/small" && mv "$1/small" "$1/claimed/w/" && rm "$1/claimed/w/small" || exit 1
        took=$((${EPOCHREALTIME/./} - begin))
        [ $took -le $slowest ] || slowest=$took
    done
    echo "slowest: $slowest us"; [ $slowest -lt 3000000 ]' - "$q"
rm "$q/big" "$q/m"

# --- crashes orphan nothing ---
exec 5>"$q/.half"
head -c 500000 /dev/urandom >&5
head -c 200000 /dev/urandom >"$q/kept"
sum=$(sha256sum <"$q/kept")
head -c 200000 /dev/urandom >"$q/removed"
exec 6<"$q/removed"
rm "$q/removed"
spool_kill
exec 5>&- 6<&-
spool_remount
is "after a crash the message is whole" "$sum" "$(sha256sum <"$q/kept")"
rm -f "$q/.half" "$q/".recovered*
soon "and no other payload file is left" 5 bash -c '[ "$(find "$1" -type f | wc -l)" = 1 ]' - "$db.payloads"
rm "$q/kept"
soon "nor is that one when the message is gone" 5 no_payload_files
spool_done
