#!/usr/bin/env bash
# Queues as directories: making, renaming, removing, listing them; what may not be made where.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
root=$(ls -A "$mnt")
is "a new mount is empty" "" "$root"

# --- making and listing ---
t "mkdir makes a queue" mkdir "$mnt/q"
is "the root lists queues only" q "$(ls -A "$mnt")"
is "a new queue lists claimed and dead" "claimed dead" "$(ls "$mnt/q" | paste -sd' ' -)"
is "ls -A adds nothing to it" "claimed dead" "$(ls -A "$mnt/q" | paste -sd' ' -)"
is "find meets no control entry" "$mnt $mnt/q $mnt/q/claimed $mnt/q/dead" "$(find "$mnt" | sort | paste -sd' ' -)"
t "control entries are there by name" test -d "$mnt/q/.config" -a -f "$mnt/q/.stats" -a -d "$mnt/.config" -a -f "$mnt/.stats"
is "the mode is as mkdir asked" 750 "$(mkdir -m 750 "$mnt/r" && stat -c %a "$mnt/r")"
errno "mkdir of a queue that is there is EEXIST" EEXIST mkdir "$mnt/q"
is "directories have one link" "1 1 1 1" "$(stat -c %h "$mnt" "$mnt/q" "$mnt/q/claimed" "$mnt/q/dead" | paste -sd' ' -)"
is "directories have numbers of their own" 4 "$(stat -c %i "$mnt" "$mnt/q" "$mnt/q/claimed" "$mnt/q/dead" | sort -u | wc -l)"
rmdir "$mnt/r"

# --- what may not be made where ---
errno "a regular file in the root is EPERM" EPERM open "$mnt/f" 'O_WRONLY|O_CREAT'
errno "a file made by mknod in the root is EPERM" EPERM mknod "$mnt/f" file
errno "a symbolic link in the root is EPERM" EPERM symlink x "$mnt/f"
errno "mkdir in a queue is EPERM" EPERM mkdir "$mnt/q/sub"
errno "mkdir with a dot-name in a queue is staged" OK mkdir "$mnt/q/.sub"
errno "rmdir removes it" OK rmdir "$mnt/q/.sub"
for place in claimed dead; do
    errno "claimed and dead cannot be made: $place" EEXIST mkdir "$mnt/q/$place"
    errno "a file in $place is EPERM" EPERM open "$mnt/q/$place/f" 'O_WRONLY|O_CREAT'
    errno "a symbolic link in $place is EPERM" EPERM symlink x "$mnt/q/$place/.f"
done
errno "mkdir in dead is EPERM" EPERM mkdir "$mnt/q/dead/sub"
errno "mkdir in claimed makes a worker's directory" OK mkdir "$mnt/q/claimed/w"
errno "a file in a worker's directory is EPERM" EPERM open "$mnt/q/claimed/w/f" 'O_WRONLY|O_CREAT'
errno "a staged file in a worker's directory is EPERM" EPERM open "$mnt/q/claimed/w/.f" 'O_WRONLY|O_CREAT'
errno "mkdir in a worker's directory is EPERM" EPERM mkdir "$mnt/q/claimed/w/sub"
errno "a worker's directory cannot be made twice" EEXIST mkdir "$mnt/q/claimed/w"
errno "an empty worker's directory is removed by rmdir" OK rmdir "$mnt/q/claimed/w"
publish q/m hello
errno "a message cannot be moved into the root" EPERM rename "$mnt/q/m" "$mnt/m"
errno "a staged file cannot be moved into the root" EPERM@rename open "$mnt/q/.s" 'O_WRONLY|O_CREAT' , close , rename "$mnt/q/.s" "$mnt/s"
errno "claimed cannot be moved away" 'EPERM|EBUSY' rename "$mnt/q/claimed" "$mnt/taken"
errno "a queue cannot be moved into itself" EINVAL rename "$mnt/q" "$mnt/q/q"
errno "rmdir of a file is ENOTDIR" ENOTDIR rmdir "$mnt/q/m"
errno "unlink of a queue is EISDIR or EPERM" 'EISDIR|EPERM' unlink "$mnt/q"
is "after all that the message is there" hello "$(contents q/m)"
rm "$mnt/q/.s"

# --- renaming ---
number=$(inode q/m) queue_number=$(inode q)
t "mv renames a queue" mv "$mnt/q" "$mnt/r"
is "its messages come along" "m hello" "$(names r) $(contents r/m)"
is "and keep their numbers" "$number $queue_number" "$(inode r/m) $(inode r)"
errno "the old name is gone" ENOENT stat "$mnt/q"
mkdir "$mnt/q"
publish q/n other
errno "a queue cannot be renamed onto one with messages" 'ENOTEMPTY|EEXIST' rename "$mnt/r" "$mnt/q"
errno "nor with RENAME_NOREPLACE onto any" EEXIST renameat2 "$mnt/r" "$mnt/q" NOREPLACE
errno "RENAME_EXCHANGE of queues is EINVAL" EINVAL renameat2 "$mnt/r" "$mnt/q" EXCHANGE
is "both are as they were" "hello other" "$(contents r/m) $(contents q/n)"
rm "$mnt/q/n"
t "a renamed queue publishes and claims" bash -c 'cd "$1" && echo x >r/x && mkdir r/claimed/w && mv r/x r/claimed/w/ && rm r/claimed/w/x' - "$mnt"

# --- removing ---
mkdir "$mnt/s"
for kind in waiting claimed dead staged; do
    case $kind in
    waiting) publish s/m x && path=s/m ;;
    claimed) publish s/m x && mv "$mnt/s/m" "$mnt/s/claimed/" && path=s/claimed/m ;;
    dead) publish s/m x && mv "$mnt/s/m" "$mnt/s/dead/m" && path=s/dead/m ;;
    staged) publish s/.m x && path=s/.m ;;
    esac
    errno "rmdir of a queue with a $kind file is ENOTEMPTY" ENOTEMPTY rmdir "$mnt/s"
    t "which is still there" cat "$mnt/$path"
    rm "$mnt/$path"
done
queue s
publish s/m x && claim s/m
errno "rmdir of claimed with a lease is ENOTEMPTY" ENOTEMPTY rmdir "$mnt/s/claimed"
errno "rmdir of a worker's directory with a lease is ENOTEMPTY" ENOTEMPTY rmdir "$mnt/s/claimed/w"
rm "$mnt/s/claimed/w/m"
rmdir "$mnt/s/claimed/w"
errno "rmdir of an empty queue works" OK rmdir "$mnt/s"
errno "and it is gone" ENOENT stat "$mnt/s"
errno "a second rmdir is ENOENT" ENOENT rmdir "$mnt/s"

for place in claimed dead; do
    before=$(inode "q/$place")
    errno "rmdir of an empty $place works" OK rmdir "$mnt/q/$place"
    t "it is back at the next lookup" test -d "$mnt/q/$place"
    [ "$(inode "q/$place")" != "$before" ]
    verdict $? "as another directory, with another number" "was and is: $before"
done

# A shell that sits in claimed while others remove it must break it for nobody.
(cd "$mnt/q/claimed" && exec sleep 60) &
sitter=$!
wait_until 5 test "$(readlink "/proc/$sitter/cwd")" = "$mnt/q/claimed" || true
errno "rmdir of claimed works with a shell inside" OK rmdir "$mnt/q/claimed"
publish q/m x
t "a worker's directory can be made in the new one" mkdir "$mnt/q/claimed/w"
t "and messages claimed into it" claim q/m
is "where they are listed" m "$(ls "$mnt/q/claimed/w")"
publish q/.staged x
publish q/waiting x
publish q/dying x
mv "$mnt/q/dying" "$mnt/q/dead/"
mkdir "$mnt/q/.dir"
publish q/.dir/file x
: >"$mnt/q/heldback"
ln -s somebody@host "$mnt/q/.#lock"
t "rm -r removes a queue with everything in it" rm -r "$mnt/q"
errno "the queue is gone" ENOENT stat "$mnt/q"
t "the queue can be made again" mkdir -p "$mnt/q/claimed/w"
publish q/m again
t "and works, the shell still sitting in the old one" claim q/m
is "with the new content" again "$(contents q/claimed/w/m)"
kill "$sitter"
(cd "$mnt/r" && exec sleep 60) &
t "rm -rf works with a shell inside the queue" rm -rf "$mnt/r"
is "and the root does not list it" q "$(ls -A "$mnt")"
t "an empty mount is left after rm -r of all queues" bash -c 'rm -r "$1"/*; [ -z "$(ls -A "$1")" ]' - "$mnt"
spool_done
