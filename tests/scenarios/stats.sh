#!/usr/bin/env bash
# Counters: .stats equals what a listing finds, after every kind of operation.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q retry_delay=5m
queue other
q=$mnt/q w=$mnt/q/claimed/w

# What a listing counts of a queue: waiting claimed dead staged.
listed() {
    local top=$mnt/$1
    echo "$(find "$top" -maxdepth 1 -type f ! -name '.*' ! -name '*.tmp' | wc -l) $(find "$top/claimed" -type f | wc -l)" \
        "$(find "$top/dead" -type f | wc -l) $(find "$top" -maxdepth 1 -type f \( -name '.*' -o -name '*.tmp' \) | wc -l)"
}
counted() { echo "$(counter "$1" waiting) $(counter "$1" claimed) $(counter "$1" dead) $(counter "$1" staged)"; }
since() { for name in published acknowledged released failed buried cancelled; do printf '%s ' "$(counter q $name)"; done; }
sum_is_right() { [ $(($(counter "$1" ready) + $(counter "$1" delayed) + $(counter "$1" blocked))) = "$(counter "$1" waiting)" ]; }
# AFTER "published acknowledged released failed buried cancelled" of q
check() {
    is "after $1: counters equal the listing" "$(listed q) $(listed other)" "$(counted q) $(counted other)"
    t "after $1: waiting is ready, delayed and blocked" sum_is_right q
    is "after $1: since creation" "$2 " "$(since)"
}

t "each line is a name and a value" bash -c '! grep -vE "^[a-z_]+ [0-9.]+$" "$1" && [ "$(wc -l <"$1")" -ge 15 ]' - "$q/.stats"
for name in waiting ready delayed blocked claimed dead staged oldest_ready_seconds bytes published acknowledged released failed buried \
    cancelled staged_removed; do
    is "a new queue has $name 0" 0 "$(counter q $name | sed 's/^0\.0*$/0/')"
done

for i in 1 2 3 4 5 6 7 8 9; do publish "q/m$i" "12345"; done
check "publishing" "9 0 0 0 0 0"
is "all are ready" 9 "$(counter q ready)"
is "bytes are the payloads'" 45 "$(counter q bytes)"
publish q/.s x
publish q/s.tmp x
check "staging" "9 0 0 0 0 0"
mv "$q/.s" "$q/m10"
check "publishing by rename" "10 0 0 0 0 0"
mv "$q/m10" "$q/.s"
check "withdrawing, which is counted as cancelling" "10 0 0 0 0 1"
rm "$q/.s" "$q/s.tmp"
check "removing staged files" "10 0 0 0 0 1"
claim q/m1 && claim q/m2 && claim q/m3
check "claiming" "10 0 0 0 0 1"
rm "$w/m1"
check "acknowledging" "10 1 0 0 0 1"
mv "$w/m2" "$q/"
check "releasing" "10 1 1 0 0 1"
touch -a -d @0 "$w/m3"
check "failing" "10 1 1 1 0 1"
is "what waits out a backoff is delayed" "1 7" "$(counter q delayed) $(counter q ready)"
touch -d '+1 hour' "$q/m4"
check "delaying" "10 1 1 1 0 1"
is "two are delayed" "2 6" "$(counter q delayed) $(counter q ready)"
rm "$q/m4"
check "cancelling what is delayed" "10 1 1 1 0 2"
mv "$q/m5" "$q/dead/"
check "burying what waits" "10 1 1 1 1 2"
claim q/m6 && mv "$w/m6" "$q/dead/"
check "burying a lease" "10 1 1 1 2 2"
mv "$q/dead/m5" "$q/"
check "requeueing" "10 1 1 1 2 2"
rm "$q/dead/m6"
is "after discarding: counters equal the listing" "$(listed q)" "$(counted q)"
after_discard=$(since)
claim q/m7 && mv "$w/m7" "$mnt/other/"
is "after forwarding: counters equal the listing" "$(listed q) $(listed other)" "$(counted q) $(counted other)"
is "after forwarding: it is acknowledged here and published there" "2 1" "$(counter q acknowledged) $(counter other published)"
t "after forwarding: nothing else has moved" test "${after_discard#* * }" = "$(since | cut -d' ' -f3-)"
publish q/m8 "a longer text"
is "after a conflict: counters equal the listing" "$(listed q)" "$(counted q)"
echo edit >>"$q/m9"
is "after an edit: counters equal the listing" "$(listed q)" "$(counted q)"
is "after an edit: bytes are right" "$(cat "$q"/m* | wc -c)" "$(counter q bytes)"
mv "$q/m9" "$q/renamed"
is "after a rename: counters equal the listing" "$(listed q)" "$(counted q)"
claim q/renamed && mv "$w" "$q/claimed/v" && mkdir "$w"
is "after renaming a worker: counters equal the listing" "$(listed q)" "$(counted q)"
rm -r "$q/claimed/v"
is "after rm -r of a worker: counters equal the listing" "$(listed q)" "$(counted q)"
echo 1 >"$q/.config/paused"
t "while it is paused the sum is right" sum_is_right q
rm "$q/.config/paused"
exec 5>"$q/open"
echo x >&5
t "with a file being written the sum is right" sum_is_right q
exec 5>&-
before=$(counted q; since)
spool_kill
spool_remount
is "after kill -9 and remount the counters are the same" "$before" "$(counted q; since)"
is "and equal the listing" "$(listed q)" "$(counted q)"
between "oldest_ready_seconds says how long the oldest has waited" 0 60 "$(counter q oldest_ready_seconds)"
is "the counters of the mount are those of all its queues" "$(($(counter q waiting) + $(counter other waiting)))" \
    "$(awk '$1 == "waiting" { print $2 }' "$mnt/.stats")"
mv "$mnt/q" "$mnt/renamed"
is "a queue's counters follow its renaming" "$before" "$(counted renamed; for name in published acknowledged released failed buried cancelled; do
    printf '%s ' "$(counter renamed $name)"; done)"
rm -r "$mnt/renamed"
mkdir "$mnt/renamed"
is "a queue made anew begins with 0" "0 0 0 0 0" "$(counted renamed) $(counter renamed published)"
spool_done
