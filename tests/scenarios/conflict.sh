#!/usr/bin/env bash
# A name that is taken: creating, renaming onto and overwriting a waiting message under keep, replace and reject.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue keep
queue replace on_conflict=replace
queue reject on_conflict=reject
is "the default is keep" keep "$(cat "$mnt/keep/.config/on_conflict")"
forget() { find "$mnt/$1" -maxdepth 1 -type f -delete; }
ready() { [ "$(counter "$1" ready)" = "$2" ]; }

# The ways to overwrite q/$1 with $2, each as one program would.
overwrite_create() { printf '%s' "$2" >"$1"; }
overwrite_rename() { printf '%s' "$2" >"${1%/*}/.new" && mv -f "${1%/*}/.new" "$1"; }
overwrite_truncating_later() { op open "$1" 'O_WRONLY|O_CREAT' , ftruncate 0 , write "$2" , close; }           # vsftpd, .NET
overwrite_without_truncating() { op open "$1" 'O_WRONLY|O_CREAT' , write "$2" , ftruncate ${#2} , close; }      # scp
overwrite_read_write() { op open "$1" 'O_RDWR|O_CREAT|O_TRUNC' , write "$2" , reads "$2" , close; }
overwrite_in_pieces() { op open "$1" 'O_WRONLY|O_CREAT|O_TRUNC' , write "${2:0:1}" , fsync , write "${2:1}" , close; }
ways="create rename truncating_later without_truncating read_write in_pieces"

# --- keep: nothing is lost ---
for way in $ways; do
    publish keep/before x
    publish keep/order.xml "old content"
    publish keep/after x
    number=$(inode keep/order.xml)
    t "keep, $way: succeeds" overwrite_"$way" "$mnt/keep/order.xml" new
    is "keep, $way: the old message has a numbered name and its place" "before order~1.xml after order.xml" "$(names keep)"
    is "keep, $way: both contents are there" "old content|new" "$(contents keep/order~1.xml)|$(contents keep/order.xml)"
    case $way in # a descriptor that was opened without O_TRUNC stays with its file, which becomes the new message
    *trunc*) t "keep, $way: one of the two keeps the number" test "$number" = "$(inode keep/order.xml)" -o "$number" = "$(inode keep/order~1.xml)" ;;
    *) is "keep, $way: the old message keeps its number" "$number" "$(inode keep/order~1.xml)" ;;
    esac
    t "keep, $way: again" overwrite_"$way" "$mnt/keep/order.xml" newer
    is "keep, $way: makes a second number" "before order~1.xml after order~2.xml order.xml" "$(names keep)"
    is "keep, $way: nothing is lost" "x|old content|x|new|newer" "$(payloads keep)"
    is "keep, $way: all can be claimed" "5 0" "$(counter keep ready) $(counter keep staged)"
    forget keep
done
for name in plain a.tar.gz name. x.y; do
    publish "keep/$name" old
    publish "keep/$name" new
    case $name in plain) numbered=plain~1 ;; a.tar.gz) numbered=a.tar~1.gz ;; name.) numbered=name~1. ;; x.y) numbered=x~1.y ;; esac
    is "keep: the number of $name comes before the last dot, or at the end" "$numbered $name" "$(names keep)"
    forget keep
done
echo '*~1' >"$mnt/keep/.config/partial"
publish keep/m old
publish keep/m new
is "keep: a numbered name is never a staged name" "2 0" "$(counter keep waiting) $(counter keep staged)"
rm "$mnt/keep/.config/partial"
forget keep

publish keep/m one
claim keep/m
publish keep/m two
is "keep: a claimed message holds no name" "m two" "$(names keep) $(contents keep/m)"
mv "$mnt/keep/claimed/w/m" "$mnt/keep/"
is "keep: what is released to a taken name is numbered and has its place" "m~1 m|one two" "$(names keep)|$(contents keep/m~1) $(contents keep/m)"
mv "$mnt/keep/m~1" "$mnt/keep/dead/m"
is "keep: a dead message holds no name" "m two" "$(names keep) $(contents keep/m)"
t "keep: requeueing to a taken name" mv "$mnt/keep/dead/m" "$mnt/keep/"
is "keep: numbers it as well" "one|two" "$(payloads keep)"
forget keep
publish keep/m old
exec 6<"$mnt/keep/m"
publish keep/m new
is "keep: who had the old message open reads the old content" old "$(cat <&6)"
exec 6<&-
forget keep

# --- replace: one pending message ---
for way in $ways; do
    publish replace/before x
    publish replace/m "old content"
    publish replace/after x
    t "replace, $way: succeeds" overwrite_"$way" "$mnt/replace/m" new
    is "replace, $way: the payload is replaced and keeps its place" "before m after|new" "$(names replace)|$(contents replace/m)"
    for i in 1 2 3 4 5; do overwrite_"$way" "$mnt/replace/m" "version $i"; done >/dev/null
    is "replace, $way: many writes are one pending message" "3 version 5" "$(counter replace waiting) $(contents replace/m)"
    is "replace, $way: which can be claimed" "3 0" "$(counter replace ready) $(counter replace staged)"
    forget replace
done
publish replace/m old
exec 5>"$mnt/replace/m"
printf new >&5
t "replace: until the last close the old one stands" claim replace/m
is "replace: and is what is claimed" old "$(contents replace/claimed/w/m)"
exec 5>&-
soon "replace: if it has been claimed by then the new content is a new message" 3 ready replace 1
is "replace: of that name" "m new" "$(names replace) $(contents replace/m)"
is "replace: and the lease keeps its payload" old "$(contents replace/claimed/w/m)"
rm "$mnt/replace/claimed/w/m"
forget replace

# --- reject ---
for way in $ways; do
    publish reject/m "old content"
    case $way in
    create) errno "reject, create: EEXIST" EEXIST open "$mnt/reject/m" 'O_WRONLY|O_CREAT|O_TRUNC' ;;
    rename)
        publish reject/.new new
        errno "reject, rename: EEXIST" EEXIST rename "$mnt/reject/.new" "$mnt/reject/m"
        is "reject, rename: the staged file stays" new "$(contents reject/.new)"
        ;;
    truncating_later) errno "reject, truncating later: EEXIST" EEXIST@ftruncate open "$mnt/reject/m" 'O_WRONLY|O_CREAT' , ftruncate 0 ;;
    without_truncating) errno "reject, without truncating: EEXIST" EEXIST@write open "$mnt/reject/m" 'O_WRONLY|O_CREAT' , write new ;;
    *) errno "reject, $way: EEXIST" EEXIST open "$mnt/reject/m" 'O_RDWR|O_CREAT|O_TRUNC' ;;
    esac
    is "reject, $way: the old message is untouched and can be claimed" "m old content 1" "$(names reject) $(contents reject/m) $(counter reject ready)"
    forget reject
    rm -f "$mnt/reject/.new"
done
publish reject/m old
fails "reject: the shell sees it" bash -c 'echo new >"$1"' - "$mnt/reject/m"
claim reject/m
errno "reject: a claimed message holds its name" EEXIST open "$mnt/reject/m" 'O_WRONLY|O_CREAT|O_TRUNC'
publish reject/.new new
errno "reject: against a rename, too" EEXIST rename "$mnt/reject/.new" "$mnt/reject/m"
mv "$mnt/reject/claimed/w/m" "$mnt/reject/dead/"
errno "reject: a dead message holds its name" EEXIST open "$mnt/reject/m" 'O_WRONLY|O_CREAT|O_TRUNC'
errno "reject: against a rename" EEXIST rename "$mnt/reject/.new" "$mnt/reject/m"
rm "$mnt/reject/dead/m"
errno "reject: the name is free again when the message is finished" OK rename "$mnt/reject/.new" "$mnt/reject/m"
forget reject

# --- two writers at once never mix ---
for queue in keep replace; do
    for first in "" "aaaa"; do
        exec 5>"$mnt/$queue/m"
        printf '%s' "$first" >&5
        exec 6>"$mnt/$queue/m"
        printf bbbb >&6
        printf AAAA >&5
        printf BBBB >&6
        exec 5>&-
        exec 6>&-
        expected="${first}AAAA bbbbBBBB"
        [ $queue = keep ] || expected="bbbbBBBB|${first}AAAA|$expected"
        seen=$(payloads $queue | tr '|' '\n' | sort | paste -sd' ' -)
        [[ "|$expected|" == *"|$seen|"* ]]
        verdict $? "$queue: two writers at once (first wrote '$first') make messages of their own" "expected: $expected" "seen: $seen"
        is "$queue: and leave nothing open" "$(counter $queue waiting) 0" "$(counter $queue ready) $(counter $queue staged)"
        forget $queue
    done
done
exec 5>"$mnt/reject/m"
printf aaaa >&5
errno "reject: a name that is being written is taken" EEXIST open "$mnt/reject/m" 'O_WRONLY|O_CREAT|O_TRUNC'
exec 5>&-
is "reject: and the first writer's message is whole" "m aaaa" "$(names reject) $(contents reject/m)"
for i in {1..20}; do
    (yes "$i" | head -n 50) >"$mnt/keep/busy.txt" &
    writers[i]=$!
done
wait "${writers[@]}"
is "keep: 20 writers of one name at once make 20 whole messages" "$(for i in {1..20}; do echo "50 $i"; done)" \
    "$(for file in "$mnt"/keep/busy*; do uniq -c "$file"; done | awk '{ print $1, $2 }' | sort -k2n)"
is "keep: and nothing is left open" "20 20 0" "$(counter keep waiting) $(counter keep ready) $(counter keep staged)"
spool_done
