#!/usr/bin/env bash
# Failure: a lease that runs out or is given up, backoff, attempts, death, and coming back from it.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q lease=1s retry_delay=3s
queue slow retry_delay=400ms retry_max=1200ms
q=$mnt/q w=$mnt/q/claimed/w
claimable() { op rename "$mnt/$1" "$mnt/${1%%/*}/claimed/w/${1##*/}" | grep -qx OK; }
elapsed() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.6f\n", b - a }'; }
gone() { [ ! -e "$1" ]; }

# --- running out ---
publish q/before x
publish q/m payload
publish q/after x
chmod 640 "$q/m"
number=$(inode q/m) begin=$(now)
claim q/m
exec 5>>"$w/m"
t "before its end the lease is there" test -e "$w/m"
soon "a lease that is not renewed ends" 5 gone "$w/m"
between "at its end, not before, and soon after" 1 2.5 "$(elapsed "$begin")"
is "the message is back at its place, with number and mode" "before m after $number 640" "$(names q) $(inode q/m) $(stat -c %a "$q/m")"
is "it is counted as failed" "3 0 1" "$(counter q waiting) $(counter q claimed) $(counter q failed)"
errno "it waits out a backoff" EAGAIN rename "$q/m" "$w/m"
errno "the late worker's unlink is ENOENT" ENOENT unlink "$w/m"
errno "its rename as well" ENOENT rename "$w/m" "$q/m"
fails "its write is an error" bash -c 'printf late >&5'
exec 5>&-
errno "its touch, which creates, is EPERM" EPERM open "$w/m" 'O_WRONLY|O_CREAT'
is "and the payload is what it was" payload "$(contents q/m)"
soon "after the backoff it can be claimed again" 5 claimable q/m
begin=$(now)
t "renewals" "$python" -c 'import os, sys, time
for _ in range(40):
    os.utime(sys.argv[1])
    time.sleep(0.05)' "$w/m"
t "keep it beyond its first end" test -e "$w/m"
between "which was twice as long ago" 2 9 "$(elapsed "$begin")"
errno "and it is acknowledged" OK unlink "$w/m"
is "nothing has failed since" 1 "$(counter q failed)"

# A write through an old descriptor, told exactly.
queue q lease=300ms retry_delay=20ms
publish q/m payload
errno "a write after the end is ESTALE" 'ESTALE@(write|close)' rename "$q/m" "$w/m" , open "$w/m" O_WRONLY , write half , \
    sh "until [ ! -e $w/m ]; do sleep 0.05; done" , write late , close
is "and changes nothing" payload "$(contents q/m)"
rm "$q/m" "$q/before" "$q/after"

# --- giving up ---
publish slow/m x
for expected in 0.4 0.8 1.2 1.2; do
    claim slow/m
    begin=$(now)
    touch -a -d @0 "$mnt/slow/claimed/w/m"
    end=$(now)
    errno "atime 0 gives the attempt up" ENOENT stat "$mnt/slow/claimed/w/m"
    due=$(mtime slow/m)
    between "the backoff doubles up to retry_max: now $expected s" "$(awk -v t="$begin" -v e=$expected 'BEGIN { printf "%.6f", t + e }')" \
        "$(awk -v t="$end" -v e=$expected 'BEGIN { printf "%.6f", t + e }')" "$due"
    soon "it is due after that" 5 claimable slow/m
    between "not before" $expected 5 "$(elapsed "$begin")"
    mv "$mnt/slow/claimed/w/m" "$mnt/slow/"
done
is "four attempts have failed" 4 "$(counter slow failed)"
rm "$mnt/slow/m"

# --- death ---
queue q lease=60s retry_delay=50ms max_attempts=3
publish q/first x
publish q/m payload
chmod 640 "$q/m" && chown 12:34 "$q/m"
publish q/last x
for attempt in 1 2 3; do
    soon "attempt $attempt" 5 claimable q/m
    touch -a -d @0 "$w/m"
done
is "after max_attempts it is dead" "first last|m" "$(names q)|$(ls "$q/dead")"
is "which is counted" "2 0 1" "$(counter q waiting) $(counter q claimed) $(counter q dead)"
between "mtime is when it died" -5 0.1 "$(seconds_from_now "$(mtime q/dead/m)")"
is "it belongs to its writer again, and can be read" "12 34 640 payload" "$(stat -c '%u %g %a' "$q/dead/m") $(contents q/dead/m)"
errno "it cannot be claimed" EPERM rename "$q/dead/m" "$w/m"
errno "a rename into the queue tries again" OK rename "$q/dead/m" "$q/m"
is "at the old place" "first m last 0" "$(names q) $(counter q dead)"
for attempt in 1 2; do
    soon "with no attempts: $attempt" 5 claimable q/m
    touch -a -d @0 "$w/m"
done
is "so it lives on" "first m last" "$(names q)"
soon "until the last one" 5 claimable q/m
touch -a -d @0 "$w/m"
is "dies again" m "$(ls "$q/dead")"
errno "unlink discards" OK unlink "$q/dead/m"
is "and it is gone" "2 0" "$(counter q waiting) $(counter q dead)"
publish q/m x
claim q/m
buried=$(counter q buried)
errno "a lease may be buried" OK rename "$w/m" "$q/dead/m"
is "which is counted" "m $((buried + 1)) 1" "$(ls "$q/dead") $(counter q buried) $(counter q dead)"
publish q/m y
claim q/m
mv "$w/m" "$q/dead/" 2>/dev/null
is "two dead messages of one name are both kept" "x y" "$(cat "$q"/dead/* | fold -w1 | sort | paste -sd' ' -)"
rm "$q"/dead/*
[ -z "$(ls "$w")" ] || rm "$w"/*
echo 0 >"$q/.config/max_attempts"
publish q/m x
for attempt in 1 2 3 4; do
    wait_until 5 claimable q/m
    touch -a -d @0 "$w/m"
done
is "with max_attempts 0 there is no end" "first last m 0" "$(names q) $(counter q dead)"

# A name that is taken by the time it comes back.
wait_until 5 claimable q/m
publish q/m new
touch -a -d @0 "$w/m"
is "what fails with its name taken comes back under a number" "first last m~1 m|x|new" "$(names q)|$(contents q/m~1)|$(contents q/m)"
queue q lease=300ms
rm "$q/m~1"
claim q/m
publish q/m newer
soon "what runs out with its name taken has a number" 5 test -e "$q/m~1"
is "and its content" "new newer" "$(contents q/m~1) $(contents q/m)"
spool_done
