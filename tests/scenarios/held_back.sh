#!/usr/bin/env bash
# What is published but not offered at once: empty files, and files that look like those of mktemp.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
q=$mnt/q
claimable() { op rename "$q/$1" "$q/claimed/w/$1" | grep -qx OK; }
# NAME [MODE [TEXT]]: like mktemp: O_EXCL, 0600.
exclusive() { op open "$q/$1" 'O_WRONLY|O_CREAT|O_EXCL' "${2:-600}" , write "${3:-x}" , close >/dev/null; }
forget_all() { find "$q" -maxdepth 1 -type f -delete; }

# --- empty files ---
begin=$(now)
errno "an empty file is held back" ETXTBSY@rename open "$q/empty" 'O_WRONLY|O_CREAT' , close , rename "$q/empty" "$q/claimed/w/empty"
soon "and offered soon" 3 claimable empty
between "after 250 ms" 0.24 1.5 "$(awk -v a="$begin" -v b="$(now)" 'BEGIN { print b - a }')"
is "as an empty message" 0 "$(stat -c %s "$q/claimed/w/empty")"
rm "$q/claimed/w/empty"
errno "a file made by mknod is held back" ETXTBSY@rename mknod "$q/touched" file , rename "$q/touched" "$q/claimed/w/touched"
soon "and offered soon, too" 3 claimable touched
rm "$q/claimed/w/touched"

# --- like mktemp ---
errno "an O_EXCL file of mode 0600 is held back" ETXTBSY@rename open "$q/temp" 'O_WRONLY|O_CREAT|O_EXCL' 600 , write x , close , \
    rename "$q/temp" "$q/claimed/w/temp"
soon "and offered soon" 3 claimable temp
is "with its content" x "$(contents q/claimed/w/temp)"
rm "$q/claimed/w/temp"
exclusive public 644
errno "an O_EXCL file of another mode is not held back" OK rename "$q/public" "$q/claimed/w/public"
rm "$q/claimed/w/public"
errno "nor one whose mode was changed before close" OK open "$q/m" 'O_WRONLY|O_CREAT|O_EXCL' 600 , write x , fchmod 644 , close , \
    rename "$q/m" "$q/claimed/w/m" , unlink "$q/claimed/w/m"
errno "nor one of mode 0600 without O_EXCL" OK open "$q/m" 'O_WRONLY|O_CREAT' 600 , write x , close , rename "$q/m" "$q/claimed/w/m" , \
    unlink "$q/claimed/w/m"

# --- what may be done meanwhile ---
published=$(counter q published)
errno "a held back file that is renamed to a final name is published at once" OK open "$q/temp" 'O_WRONLY|O_CREAT|O_EXCL' 600 , write x , close , \
    rename "$q/temp" "$q/m" , rename "$q/m" "$q/claimed/w/m"
is "once" $((published + 1)) "$(counter q published)"
rm "$q/claimed/w/m"
errno "an empty one, too" OK open "$q/temp" 'O_WRONLY|O_CREAT' , close , rename "$q/temp" "$q/m" , rename "$q/m" "$q/claimed/w/m" , unlink "$q/claimed/w/m"
errno "one that is removed" OK open "$q/temp" 'O_WRONLY|O_CREAT|O_EXCL' 600 , write x , close , unlink "$q/temp"
is "leaves nothing" "0 0" "$(counter q waiting) $(counter q staged)"
errno "one that is rewritten" OK open "$q/m" 'O_WRONLY|O_CREAT' , close , open "$q/m" 'O_WRONLY|O_CREAT|O_TRUNC' , write content , close
is "is one message" "m content" "$(names q) $(contents q/m)"
errno "which is offered as soon as it is closed" OK rename "$q/m" "$q/claimed/w/m"
rm "$q/claimed/w/m"
forget_all
errno "one that is appended to" OK open "$q/temp" 'O_WRONLY|O_CREAT|O_EXCL' 600 , write x , close , \
    open "$q/temp" 'O_WRONLY|O_APPEND' , write y , close
soon "is offered" 3 claimable temp
is "as one message" xy "$(contents q/claimed/w/temp)"
rm "$q/claimed/w/temp"
errno "one that is withdrawn" OK open "$q/temp" 'O_WRONLY|O_CREAT|O_EXCL' 600 , write x , close , rename "$q/temp" "$q/.temp"
is "is staged" "0 1" "$(counter q waiting) $(counter q staged)"
rm "$q/.temp"

# --- its place ---
exclusive first
echo x >"$q/second"
soon "a held back file takes its place in the order at close" 3 bash -c '[ "$(awk "\$1 == \"ready\" { print \$2 }" "$1/.stats")" = 2 ]' - "$q"
is "before what was closed after it" "first second" "$(names q)"
forget_all
exclusive first
echo x >"$q/second"
errno "others are not held back with it" OK rename "$q/second" "$q/claimed/w/second"
rm "$q/claimed/w/second"
forget_all
exclusive first
spool_kill
spool_remount
soon "a restart does not hold it for ever" 3 claimable first
is "nor lose it" x "$(contents q/claimed/w/first)"
spool_done
