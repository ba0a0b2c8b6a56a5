#!/usr/bin/env bash
# Claiming: of any number of callers exactly one gets the message, and everybody else is told why not.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
queue other
q=$mnt/q

# --- the plain way ---
publish q/m hello
chown 1234:55 "$q/m" && chmod 664 "$q/m"
number=$(inode q/m)
t "mv into a worker's directory claims" mv "$q/m" "$q/claimed/w/"
errno "the message is gone from the queue" ENOENT stat "$q/m"
is "and can be read" "hello $number" "$(contents q/claimed/w/m) $(inode q/claimed/w/m)"
is "a claim gives it to the claimer, mode 0600, the group unchanged" "0 55 600" "$(stat -c '%u %g %a' "$q/claimed/w/m")"
between "its atime is the end of the lease" 55 60.1 "$(seconds_from_now "$(atime q/claimed/w/m)")"
is "it is counted" "0 1" "$(counter q waiting) $(counter q claimed)"
mv "$q/claimed/w/m" "$q/"
is "a release restores owner, group and mode" "1234 55 664" "$(stat -c '%u %g %a' "$q/m")"
errno "a claim may choose another name" OK rename "$q/m" "$q/claimed/w/job"
is "which is the lease's" "job hello" "$(ls "$q/claimed/w") $(contents q/claimed/w/job)"
t "releasing it into the queue" mv "$q/claimed/w/job" "$q/"
is "brings back its own name" "m hello" "$(names q) $(contents q/m)"
t "claimed itself works as a worker's directory" mv "$q/m" "$q/claimed/"
is "where the lease is listed" "m w" "$(ls "$q/claimed" | paste -sd' ' -)"
rm "$q/claimed/m"
publish q/m x
errno "RENAME_NOREPLACE claims as well" OK renameat2 "$q/m" "$q/claimed/w/m" NOREPLACE
rm "$q/claimed/w/m"
publish q/m x
publish q/n x && claim q/n
errno "RENAME_EXCHANGE is EINVAL" EINVAL renameat2 "$q/m" "$q/claimed/w/n" EXCHANGE
errno "RENAME_WHITEOUT is EINVAL" EINVAL renameat2 "$q/m" "$q/claimed/w/x" WHITEOUT
errno "unknown flags are EINVAL" EINVAL renameat2 "$q/m" "$q/claimed/w/x" UNKNOWN
is "and change nothing" "m|n" "$(names q)|$(ls "$q/claimed/w")"
rm "$q/claimed/w/n" "$q/m"

# --- the table, in its order ---
errno "gone: ENOENT" ENOENT rename "$q/m" "$q/claimed/w/m"
publish q/m x
errno "a worker's directory that is not there: ENOENT" ENOENT rename "$q/m" "$q/claimed/v/m"
rm "$q/m"
exec 5>"$q/m"
echo x >&5
errno "being written: ETXTBSY" ETXTBSY rename "$q/m" "$q/claimed/w/m"
echo 1 >"$q/.config/paused"
errno "gone comes before paused" ENOENT rename "$q/n" "$q/claimed/w/m"
errno "being written comes before paused" ETXTBSY rename "$q/m" "$q/claimed/w/m"
exec 5>&-
wait_until 2 grep -qx "waiting 1" "$q/.stats"
errno "paused: EAGAIN" EAGAIN rename "$q/m" "$q/claimed/w/m"
echo 0 >"$q/.config/paused"
touch -d '+5 min' "$q/m"
errno "not due: EAGAIN" EAGAIN rename "$q/m" "$q/claimed/w/m"
publish q/held x && mv "$q/held" "$q/claimed/w/"
errno "not due comes before a name in use" EAGAIN rename "$q/m" "$q/claimed/w/held"
errno "not due comes before another queue's claimed" EAGAIN rename "$q/m" "$mnt/other/claimed/w/m"
rm "$q/m" && publish q/m x
errno "a name in use among the leases there: EEXIST" EEXIST rename "$q/m" "$q/claimed/w/held"
errno "with RENAME_NOREPLACE as well" EEXIST renameat2 "$q/m" "$q/claimed/w/held" NOREPLACE
publish other/held x && mv "$mnt/other/held" "$mnt/other/claimed/w/"
errno "a name in use comes before another queue" EEXIST rename "$q/m" "$mnt/other/claimed/w/held"
errno "claimed of another queue: EINVAL" EINVAL rename "$q/m" "$mnt/other/claimed/w/m"
errno "without a worker's directory, too" EINVAL rename "$q/m" "$mnt/other/claimed/m"
publish q/.s x
errno "staged: EPERM" EPERM rename "$q/.s" "$q/claimed/w/s"
errno "a claim onto a worker's directory is refused" 'EISDIR|EEXIST' rename "$q/m" "$q/claimed/w"
is "none of these has done anything" "m x 1" "$(names q) $(contents q/m) $(counter q claimed)"
rm "$q/.s" "$q/m" "$q/claimed/w/held" "$mnt/other/claimed/w/held"

# --- creating in claimed and dead ---
publish q/m x && claim q/m
for place in claimed claimed/w dead; do
    errno "creating a file in $place is EPERM" EPERM open "$q/$place/new" 'O_WRONLY|O_CREAT'
    errno "O_EXCL, too, in $place" EPERM open "$q/$place/new" 'O_WRONLY|O_CREAT|O_EXCL'
    errno "mknod in $place is EPERM" EPERM mknod "$q/$place/new" file
    errno "O_TMPFILE in $place is refused" 'EPERM|EOPNOTSUPP' open "$q/$place" 'O_WRONLY|O_TMPFILE'
    errno "linking in $place is EPERM" EPERM link "$q/claimed/w/m" "$q/$place/new"
    fails "cp into $place fails" cp /etc/hostname "$q/$place/new"
    fails "touch of what is not in $place fails" touch "$q/$place/new"
done
rm "$q/claimed/w/m"
errno "a touch of a lost lease is EPERM, since it creates" EPERM open "$q/claimed/w/m" 'O_WRONLY|O_CREAT|O_NONBLOCK'
publish q/m x
echo 1 >"$q/.config/paused"
fails "shutil.move, which copies when rename fails, fails" "$python" -c 'import shutil, sys; shutil.move(*sys.argv[1:])' "$q/m" "$q/claimed/w/m"
fails "so does File::Copy::move" perl -MFile::Copy=move -e 'exit !move(@ARGV)' "$q/m" "$q/claimed/w/m"
fails "and mv" mv "$q/m" "$q/claimed/w/"
echo 0 >"$q/.config/paused"
is "and the message is still there, once" "m x 0" "$(names q) $(contents q/m) $(counter q claimed)"
rm "$q/m"
spool_done
