#!/usr/bin/env bash
# What stat shows of messages and directories: times, numbers, links, owners.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q retry_delay=20ms
q=$mnt/q w=$mnt/q/claimed/w
ctime() { stat -c %.Z "$mnt/$1"; }
later() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(b > a) }'; }

# --- mtime: the writer's, unless it is due later ---
touch -d '2011-11-11 11:11:11Z' "$scratch/old"
touch -d '+1 hour' "$scratch/future"
echo x | tee -a "$scratch/old" >"$scratch/new"
touch -d '2011-11-11 11:11:11Z' "$scratch/old"
cp -p "$scratch/old" "$q/m"
is "mtime is as the writer set it" "2011-11-11 11:11:11" "$(date -u -d "@$(mtime q/m | cut -d. -f1)" '+%F %T')"
between "atime is the time of publication" -2 0.1 "$(seconds_from_now "$(atime q/m)")"
is "the size is the payload's" 2 "$(stat -c %s "$q/m")"
number=$(inode q/m)
echo x >>"$scratch/future"
touch -d '+1 hour' "$scratch/future"
cp -p "$scratch/future" "$q/skewed"
errno "a time set before publication, though in the future, means nothing" OK rename "$q/skewed" "$w/skewed" , unlink "$w/skewed"
publish q/plain x
between "without one it is the time of writing" -2 0.1 "$(seconds_from_now "$(mtime q/plain)")"
publish q/last x
touch -d '2001-01-01' "$q/plain"
is "a time in the past changes nothing in the order" "m plain last" "$(names q)"
touch -d '+5 min' "$q/plain"
between "a future time on a waiting message delays it" 290 300.1 "$(seconds_from_now "$(mtime q/plain)")"
errno "so that it cannot be claimed" EAGAIN rename "$q/plain" "$w/plain"
touch -d '+1 hour' "$q/last"
touch -d '2001-01-01' "$q/last"
errno "a time in the past ends the delay" OK rename "$q/last" "$w/last" , rename "$w/last" "$q/last"
touch -d '+1 second' "$q/plain"
errno "until it is due" EAGAIN rename "$q/plain" "$w/plain"
soon "then it can" 4 bash -c 'mv "$1/plain" "$1/claimed/w/" 2>/dev/null' - "$q"
rm "$w/plain" "$q/last"

# --- the number stays ---
claim q/m
is "the number is the same when it is claimed" "$number" "$(inode q/claimed/w/m)"
mv "$w/m" "$q/"
is "when it is released" "$number" "$(inode q/m)"
claim q/m && touch -a -d @0 "$w/m"
is "when it has failed" "$number" "$(inode q/m)"
wait_until 5 claim q/m 2>/dev/null
mv "$w/m" "$q/dead/"
is "when it is dead" "$number" "$(inode q/dead/m)"
mv "$q/dead/m" "$q/"
is "and when it is requeued" "$number" "$(inode q/m)"
rm "$q/m"
publish q/m xyz
t "another message of that name has another number" test "$(inode q/m)" -gt "$number"
is "a listing shows the numbers of stat" "$(inode q/m)" "$(ls -iU "$q" | awk '$2 == "m" { print $1 }')"
is "a message has one link" 1 "$(stat -c %h "$q/m")"

# --- ctime ---
for change in "claim q/m" "touch $w/m" "mv $w/m $q/m" "chmod 600 $q/m" "mv $q/m $q/n" "truncate -s 2 $q/n"; do
    path=$(find "$q" -type f -printf '%P\n')
    before=$(ctime "q/$path")
    sleep 0.01
    $change 2>/dev/null
    path=$(find "$q" -type f -printf '%P\n')
    case $change in
    claim* | *"$w/m $q/m") t "ctime is the last change of state: $change" later "$before" "$(ctime "q/$path")" ;;
    truncate*) t "ctime is the last change of payload: ${change/$q/q}" later "$before" "$(ctime "q/$path")" ;;
    esac
done
find "$q" -maxdepth 1 -type f -delete

# --- directories ---
for change in "publish q/m x" "claim q/m" "mv $w/m $q/n" "mv $q/n $q/o" "rm $q/o" "mkdir $q/.d" "rmdir $q/.d"; do
    before=$(stat -c %.Y "$q")
    sleep 0.01
    $change
    t "the queue's mtime changes with its entries: ${change//$mnt\//}" later "$before" "$(stat -c %.Y "$q")"
done
before=$(stat -c %.Y "$w")
publish q/m x
claim q/m
t "so does a worker's directory's" later "$before" "$(stat -c %.Y "$w")"
rm "$w/m"
before=$(stat -c %.Y "$mnt")
mkdir "$mnt/new"
t "and the root's" later "$before" "$(stat -c %.Y "$mnt")"
errno "times set on a queue are accepted" OK utimens "$q" 1000 1000
errno "and on its directories" OK utimens "$q/claimed" 1000 1000 , utimens "$q/dead" now now , utimens "$mnt" 5 5
t "chmod and chown of a queue" bash -c 'chmod 2770 "$1" && chown 12:34 "$1"' - "$q"
is "are shown" "2770 12 34" "$(stat -c '%a %u %g' "$q")"
chmod 711 "$mnt"
spool_kill
spool_remount
is "and stay, the root's too" "2770 12 34 711" "$(stat -c '%a %u %g' "$q") $(stat -c %a "$mnt")"
publish q/m x
is "a message in a setgid queue has its group" 34 "$(stat -c %g "$q/m")"
is "umask is obeyed" 640 "$(umask 027; : >"$q/n"; stat -c %a "$q/n")"
spool_done
