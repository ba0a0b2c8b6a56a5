#!/usr/bin/env bash
# The life of a lease: its end, renewing it, checkpoints, acknowledging, releasing, handing over.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
q=$mnt/q w=$mnt/q/claimed/w
left() { seconds_from_now "$(atime "q/claimed/w/${1:-m}")"; } # seconds until the lease ends

# --- its end, and renewing ---
publish q/m payload
touch -d '2020-02-02 12:00Z' "$q/m"
written=$(mtime q/m)
claim q/m
between "a lease lasts for the setting lease" 55 60.1 "$(left)"
is "the claim does not change mtime" "$written" "$(mtime q/claimed/w/m)"
touch -a -d '+20 min' "$w/m"
between "touch -a -d sets its end" 1195 1200.5 "$(left)"
t "touch succeeds" touch "$w/m"
between "touch makes it lease from now" 58 60.1 "$(left)"
touch -a -d '+20 min' "$w/m"
errno "utimensat(UTIME_NOW, UTIME_OMIT)" OK utimens "$w/m" now omit
between "renews as well" 58 60.1 "$(left)"
touch -a -d '+20 min' "$w/m"
touch -a -d '2001-01-01' "$w/m"
between "so does any other explicit atime that has passed" 58 60.1 "$(left)"
touch -a -d '+2 min' "$w/m"
publish q/n x && claim q/n
touch -a -d '+2 min' "$w/n"
t "touch of the worker's directory succeeds" touch "$w"
between "and renews what is in it" 58 60.1 "$(left)"
between "all of it" 58 60.1 "$(left n)"
rm "$w/n"
echo 10m >"$q/.config/max_lease"
touch -a -d '+20 min' "$w/m"
between "an explicit end goes up to max_lease" 590 600.5 "$(left)"
rm "$q/.config/max_lease"
touch -d '+20 min' "$w/m"
between "touch -d sets the end of the lease" 1195 1200.5 "$(left)"
between "and the due time" 1195 1200.5 "$(seconds_from_now "$(mtime q/claimed/w/m)")"
touch -d '2020-02-02 12:00Z' "$w/m"
is "counters do not move by renewing" "1 0 0" "$(counter q claimed) $(counter q failed) $(counter q released)"
is "nothing of that changes the payload" payload "$(contents q/claimed/w/m)"
fails "touch of a lease that is gone fails" touch "$w/gone"

# --- checkpoint ---
echo half >"$w/m"
is "writing to a lease replaces its payload" half "$(contents q/claimed/w/m)"
echo more >>"$w/m"
is "appending adds to it" $'half\nmore' "$(contents q/claimed/w/m)"
errno "writing from the start without truncating" OK open "$w/m" O_WRONLY , write HALF , close
is "replaces it as well" HALF "$(contents q/claimed/w/m)"
exec 5>"$w/m"
printf new >&5
is "until the last close others see the old payload" HALF "$(contents q/claimed/w/m)"
exec 5>&-
is "then the new one" new "$(contents q/claimed/w/m)"
is "a checkpoint is the same lease" "1 2" "$(counter q claimed) $(counter q published)"
mv "$w/m" "$q/"
is "a release keeps the new payload" new "$(contents q/m)"
is "and is not a new message" 2 "$(counter q published)"
claim q/m
head -c 500000 /dev/urandom >"$scratch/large"
t "a checkpoint may be large" cp "$scratch/large" "$w/m"
t "and is what is read" cmp "$scratch/large" "$w/m"
echo small >"$w/m"
is "or small again" small "$(contents q/claimed/w/m)"
errno "a checkpoint that is open at the acknowledgement" 'OK|ESTALE@(write|close)' open "$w/m" 'O_WRONLY|O_TRUNC' , write x , sh "rm $w/m" , write y , close
is "brings nothing back" "0 0 0" "$(counter q waiting) $(counter q claimed) $(counter q staged)"
publish q/m old && claim q/m
errno "a checkpoint whose lease is lost is ESTALE" 'ESTALE@(write|close)' open "$w/m" 'O_WRONLY' , write new , sh "mv $w/m $q/" , write er , close
is "and changes nothing" old "$(contents q/m)"
claim q/m
errno "also when nothing more is written" ESTALE@close open "$w/m" 'O_WRONLY|O_TRUNC' , write new , sh "mv $w/m $q/" , close
is "it changes nothing" old "$(contents q/m)"

# --- acknowledge ---
claim q/m
exec 6<"$w/m"
acknowledged=$(counter q acknowledged)
errno "unlink acknowledges" OK unlink "$w/m"
is "and is counted" "0 0 $((acknowledged + 1))" "$(counter q waiting) $(counter q claimed) $(counter q acknowledged)"
errno "a second unlink is ENOENT" ENOENT unlink "$w/m"
is "a descriptor open on it still reads" old "$(cat <&6)"
exec 6<&-
for i in 1 2 3; do publish "q/m$i" x && claim "q/m$i"; done
t "rm -r of a worker's directory acknowledges all of it" rm -r "$w"
is "three more" $((acknowledged + 4)) "$(counter q acknowledged)"
mkdir "$w"

# --- release ---
for i in 1 2 3 4; do publish "q/m$i" "$i"; done
claim q/m2
released=$(counter q released)
errno "a rename into the queue releases" OK rename "$w/m2" "$q/m2"
is "to its old place" "m1 m2 m3 m4 $((released + 1))" "$(names q) $(counter q released)"
errno "at once" OK rename "$q/m2" "$w/m2"
errno "another last part renames it" OK rename "$w/m2" "$q/other"
is "in its old place" "m1 other m3 m4" "$(names q)"
claim q/other
touch -m -d '+5 min' "$w/other"
errno "after touch -m -d '+5 min' a release" OK rename "$w/other" "$q/other"
errno "delays it" EAGAIN rename "$q/other" "$w/other"
between "by so much" 290 300.5 "$(seconds_from_now "$(mtime q/other)")"
is "which is counted" "4 3 1" "$(counter q waiting) $(counter q ready) $(counter q delayed)"
is "find -newermt now shows it" "$q/other" "$(find "$q" -maxdepth 1 -type f -newermt now)"
rm "$q/other"
echo 1 >"$q/.config/max_attempts"
for i in 1 2 3; do claim q/m1 && mv "$w/m1" "$q/"; done
is "a release gives the attempt back: with max_attempts 1, three claims later" "m1 m3 m4 0" "$(names q) $(counter q dead)"
claim q/m1
touch -a -d @0 "$w/m1"
is "but a failure is the end" "m3 m4|m1|1" "$(names q)|$(ls "$q/dead")|$(counter q dead)"
rm "$q/.config/max_attempts" "$q/dead/m1"
claim q/m3 && claim q/m4
t "mv of a worker's directory into the queue releases all of it" mv "$w" "$q/"
is "to their places" "m3 m4" "$(names q)"
errno "and removes the directory" ENOENT stat "$w"
errno "the queue has no new directory" ENOENT stat "$q/w"
mkdir "$w"
errno "an empty worker's directory can be released, too" OK rename "$w" "$q/w"
errno "and is gone" ENOENT stat "$w"
mkdir "$w"

# --- hand over ---
mkdir "$q/claimed/v"
claim q/m3
touch -a -d '+20 min' "$w/m3"
errno "a rename between workers' directories hands a lease over" OK rename "$w/m3" "$q/claimed/v/m3"
errno "the first has it no more" ENOENT unlink "$w/m3"
is "the second reads it" 3 "$(contents q/claimed/v/m3)"
is "it is the same lease" "1 1" "$(counter q claimed) $(counter q waiting)"
claim q/m4
errno "onto a name in use it is EEXIST" EEXIST rename "$w/m4" "$q/claimed/v/m3"
errno "a lease may change its name" OK rename "$w/m4" "$w/job"
errno "a worker's directory may change its name" OK rename "$w" "$q/claimed/u"
is "with its leases" "job 4" "$(ls "$q/claimed/u") $(contents q/claimed/u/job)"
errno "a worker's directory is not renamed onto one with leases" 'ENOTEMPTY|EEXIST' rename "$q/claimed/u" "$q/claimed/v"
errno "unlink acknowledges there" OK unlink "$q/claimed/u/job" , unlink "$q/claimed/v/m3"
is "and all is done" "0 0 0" "$(counter q waiting) $(counter q claimed) $(counter q dead)"
mkdir -p "$w"
spool_done
