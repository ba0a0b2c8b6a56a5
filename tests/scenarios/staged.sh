#!/usr/bin/env bash
# Staged files: names that are not messages yet, and publishing them by a rename or a link.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
queue other
q=$mnt/q

# --- by name: the strong way ---
echo hello >"$q/.m"
is "a dot-name is staged" "0 1 0" "$(counter q waiting) $(counter q staged) $(counter q published)"
number=$(inode q/.m)
errno "it cannot be claimed" EPERM rename "$q/.m" "$q/claimed/w/m"
errno "nor under its own name" EPERM rename "$q/.m" "$q/claimed/w/.m"
errno "nor be buried" EPERM rename "$q/.m" "$q/dead/m"
errno "it can be written to, read, and changed" OK open "$q/.m" 'O_RDWR|O_APPEND' , write more , reads $'hello\nmore' , fchmod 640 , close
errno "it can be renamed and stays staged" OK rename "$q/.m" "$q/.n"
is "nothing was published by all that" "0 1 0" "$(counter q waiting) $(counter q staged) $(counter q published)"
errno "rename to a final name publishes" OK rename "$q/.n" "$q/m"
is "at once" "1 0 1" "$(counter q ready) $(counter q staged) $(counter q published)"
is "with content, mode and number" $'hello\nmore'" 640 $number" "$(contents q/m) $(stat -c '%a %i' "$q/m")"
errno "and it can be claimed" OK rename "$q/m" "$q/claimed/w/m"
rm "$q/claimed/w/m"
errno "in one process, a thousand times as well as once" OK open "$q/.m" 'O_WRONLY|O_CREAT' , write x , fsync , close , rename "$q/.m" "$q/m" , \
    rename "$q/m" "$q/claimed/w/m" , unlink "$q/claimed/w/m"
echo x >"$q/.m"
errno "a staged file is published into another queue as well" OK rename "$q/.m" "$mnt/other/m"
is "where it waits" "m 1 0" "$(names other) $(counter other published) $(counter q staged)"
rm "$mnt/other/m"
echo x >"$q/.m"
errno "a staged file can move to another queue and stay staged" OK rename "$q/.m" "$mnt/other/.m"
is "where it is counted" "0 1 0" "$(counter q staged) $(counter other staged) $(counter other waiting)"
rm "$mnt/other/.m"
echo one >"$q/.m"
errno "RENAME_NOREPLACE publishes" OK renameat2 "$q/.m" "$q/m" NOREPLACE
echo two >"$q/.m"
errno "and is EEXIST for a name that is taken" EEXIST renameat2 "$q/.m" "$q/m" NOREPLACE
errno "RENAME_EXCHANGE is EINVAL" EINVAL renameat2 "$q/.m" "$q/m" EXCHANGE
errno "RENAME_WHITEOUT is EINVAL" EINVAL renameat2 "$q/.m" "$q/n" WHITEOUT
is "and change nothing" "one two" "$(contents q/m) $(contents q/.m)"
rm "$q/.m" "$q/m"

# --- every default pattern ---
for name in 'a~' '#a#' "~\$a" a.tmp a.temp a.part a.partial a.filepart a.crdownload a.download a.upload a.swp a.swpx a.aria2 \
    a.aria2__temp a.lftp Thumbs.db desktop.ini .x '.~lock.a#'; do
    echo x >"$q/$name"
    is "$name is staged" "0 1" "$(counter q waiting) $(counter q staged)"
    errno "$name cannot be claimed" EPERM rename "$q/$name" "$q/claimed/w/a"
    mv "$q/$name" "$q/final" && mv "$q/final" "$q/claimed/w/" && rm "$q/claimed/w/final"
    verdict $? "$name is published by a rename"
done
for name in tmp a.tmpx part a.part1 thumbs.db '#a' 'a#' a.TMP '~a' a.swap; do
    echo x >"$q/$name"
    is "$name is a final name" 1 "$(counter q waiting)"
    rm "$q/$name"
done
echo '*.foo a?c' >"$q/.config/partial"
echo x >"$q/x.foo"
echo x >"$q/abc"
is "the setting partial says what is staged" "0 2" "$(counter q waiting) $(counter q staged)"
echo x >"$q/x.tmp"
is "in place of the default" "1 2" "$(counter q waiting) $(counter q staged)"
echo x >"$q/.dot"
is "names with a dot are always staged" "1 3" "$(counter q waiting) $(counter q staged)"
rm "$q/.config/partial" "$q/x.foo" "$q/abc" "$q/x.tmp" "$q/.dot"

# --- withdrawing ---
echo a >"$q/a"
echo b >"$q/b"
echo c >"$q/c"
published=$(counter q published)
errno "renaming a waiting message to a staged name withdraws it" OK rename "$q/a" "$q/.a"
is "it waits no more" "b c 2 1" "$(names q) $(counter q waiting) $(counter q staged)"
errno "it cannot be claimed" EPERM rename "$q/.a" "$q/claimed/w/a"
errno "publishing it again" OK rename "$q/.a" "$q/a"
is "gives it a new place at the end" "b c a $((published + 1))" "$(names q) $(counter q published)"
errno "withdrawing to a name of the default patterns works as well" OK rename "$q/a" "$q/a.tmp"
is "it waits no more, too" 2 "$(counter q waiting)"
mv "$q/b" "$q/claimed/w/" && mv "$q/c" "$q/dead/"
errno "a lease cannot be withdrawn" EPERM rename "$q/claimed/w/b" "$q/.b"
errno "nor can it become staged in its worker's directory" EPERM rename "$q/claimed/w/b" "$q/claimed/w/.b"
errno "a dead message cannot be withdrawn" EPERM rename "$q/dead/c" "$q/.c"
rm -f "$q"/claimed/w/*b "$q/claimed/w/.b" "$q/dead/c" "$q/a.tmp"

# --- directories and links with a dot-name ---
t "a directory with a dot-name is staged" mkdir "$q/.dir"
echo x >"$q/.dir/f"
is "what is in it is no message" "0 1" "$(counter q waiting) $(find "$q/.dir" -type f | wc -l)"
errno "it is not removed while there is something in it" ENOTEMPTY rmdir "$q/.dir"
errno "a file in it cannot be claimed" EPERM rename "$q/.dir/f" "$q/claimed/w/f"
errno "a rename out of it publishes" OK rename "$q/.dir/f" "$q/f"
is "as any staged file" "f x" "$(names q) $(contents q/f)"
errno "a staged file can be moved into it" OK open "$q/.s" 'O_WRONLY|O_CREAT' , write x , close , rename "$q/.s" "$q/.dir/s"
is "and is listed there" s "$(ls "$q/.dir")"
rm "$q/.dir/s" "$q/f"
errno "an empty one is removed" OK rmdir "$q/.dir"
t "a symbolic link with a dot-name is staged" ln -s user@host.123 "$q/.#f"
is "and says where it points" user@host.123 "$(readlink "$q/.#f")"
is "it is no message" 0 "$(counter q waiting)"
errno "it cannot be published" 'EPERM|EINVAL' rename "$q/.#f" "$q/f"
errno "it can be removed" OK unlink "$q/.#f"
errno "a symbolic link with a final name is EPERM" EPERM symlink x "$q/f"
for kind in fifo socket char block; do
    errno "mknod of a $kind is EPERM" EPERM mknod "$q/f" $kind
    errno "also with a staged name" EPERM mknod "$q/.f" $kind
done

# --- link ---
echo x >"$q/.s"
published=$(counter q published)
errno "link of a staged file to a final name publishes a copy" OK link "$q/.s" "$q/m"
is "the staged file stays" "x x" "$(contents q/.s) $(contents q/m)"
is "the message is one of its own" "1 1 $((published + 1))" "$(counter q waiting) $(counter q staged) $(counter q published)"
t "with a number of its own" test "$(inode q/m)" != "$(inode q/.s)"
is "and one link each" "1 1" "$(stat -c %h "$q/m" "$q/.s" | paste -sd' ' -)"
errno "changing the staged file does not change the message" OK open "$q/.s" O_WRONLY , write changed , close
is "which is as it was published" x "$(contents q/m)"
errno "link onto a name that is taken is EEXIST" EEXIST link "$q/.s" "$q/m"
errno "link of a message is EPERM" EPERM link "$q/m" "$q/n"
errno "link of a message to a staged name is EPERM" EPERM link "$q/m" "$q/.n"
errno "link of a staged file to a staged name is EPERM" EPERM link "$q/.s" "$q/.n"
errno "link into claimed is EPERM" EPERM link "$q/.s" "$q/claimed/w/s"
errno "link into dead is EPERM" EPERM link "$q/.s" "$q/dead/s"
mv "$q/m" "$q/claimed/w/"
errno "link of a lease is EPERM" EPERM link "$q/claimed/w/m" "$q/n"
rm "$q/claimed/w/m" "$q/.s"
head -c 300000 /dev/urandom >"$q/.s"
errno "a large staged file is linked as well" OK link "$q/.s" "$q/m"
sum=$(sha256sum <"$q/.s")
rm "$q/.s"
is "and its copy lives on without it" "$sum" "$(sha256sum <"$q/m")"
rm "$q/m"

# --- age ---
echo 300ms >"$q/.config/partial_ttl"
echo x >"$q/.old"
soon "a staged file is removed partial_ttl after its last change" 5 test ! -e "$q/.old"
is "which is counted" "1 0" "$(counter q staged_removed) $(counter q staged)"
spool_done
