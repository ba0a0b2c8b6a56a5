#!/usr/bin/env bash
# Starting, refusing to start, and ending: what spoolfs says, returns and leaves behind.
. "$(dirname "$0")/../lib/mount.sh"

# "sentence" arguments of spoolfs...: it must fail, with one sentence on stderr and nothing on stdout.
refused() {
    local sentence=$1 status
    shift
    timeout 20 "$SPOOLFS" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    verdict $((status == 0 || status >= 124 || $(wc -l <"$scratch/err") != 1 || $(wc -c <"$scratch/out") != 0)) "$sentence" \
        "expected: exit 1 to 123 and one line on stderr of: spoolfs $*" "seen: exit $status, stderr:" "$(cat "$scratch/err")"
}

options_of() { awk -v point="$1" '$5 == point { print $6 "," $NF }' /proc/self/mountinfo; }
has_option() { [[ ,$(options_of "$mnt"), == *,$1,* ]]; }
mkdir "$scratch/other" "$scratch/mnt2"

# --- words ---
t "--help succeeds" "$SPOOLFS" --help
t "--help speaks of the mount point" bash -c '"$1" --help | grep -qi mountpoint' - "$SPOOLFS"
t "--version succeeds" bash -c '"$1" --version | grep -q "[0-9]"' - "$SPOOLFS"
fails "without arguments it fails" "$SPOOLFS"
refused "without a mount point it says so" "$db"

# --- the plain mount ---
db=$scratch/made/spool.db
mkdir -p "$mnt"
t "the mount returns 0, and its output is closed" timeout 20 bash -c 'out=$("$@" 2>&1) && [ -z "$out" ]' - "$SPOOLFS" "$db" "$mnt"
mounted=yes
t "it answers as soon as it has returned" mkdir "$mnt/q"
is "the database is made with its directory, for its owner only" 600 "$(stat -c %a "$db")"
is "so is the directory of large payloads" 700 "$(stat -c %a "$db.payloads")"
t "the type is fuse.spoolfs" grep -q " $mnt fuse.spoolfs " /proc/self/mounts
for option in nosuid nodev noexec; do t "it is mounted $option" has_option $option; done
is "the root is 0755 and root's" "755 0 0" "$(stat -c '%a %u %g' "$mnt")"
t "df shows the space left to the database" bash -c '[ "$(stat -f -c %a "$1")" -gt 0 ]' - "$mnt"

# --- refusals ---
publish q/m hello
refused "a second mount of the same database is refused" "$db" "$scratch/mnt2"
is "and the first one goes on" hello "$(contents q/m)"
fails "and nothing is mounted by the refused one" is_mounted "$scratch/mnt2"
echo "plain text, long enough to be looked at as a header of a database, and then some more" >"$scratch/text"
cp "$scratch/text" "$scratch/text.copy"
touch "$scratch/file"
refused "a file that is no database is refused" "$scratch/text" "$scratch/mnt2"
t "and left as it was" cmp "$scratch/text" "$scratch/text.copy"
refused "a database below a file is refused" "$scratch/file/spool.db" "$scratch/mnt2"
refused "a database where nothing can be made is refused" /proc/spool/spool.db "$scratch/mnt2"
refused "a directory as the database is refused" "$scratch/other" "$scratch/mnt2"
refused "a database inside the mount point is refused" "$scratch/mnt2/spool.db" "$scratch/mnt2"
is "and nothing is made there" "" "$(ls -A "$scratch/mnt2")"
mkdir "$scratch/mnt2/sub"
refused "a database deep inside the mount point is refused" "$scratch/mnt2/sub/spool.db" "$scratch/mnt2"
rmdir "$scratch/mnt2/sub"
refused "a database on a FUSE filesystem is refused" "$mnt/q/.spool.db" "$scratch/mnt2"
refused "a mount point that does not exist is refused" "$scratch/new.db" "$scratch/nowhere"
refused "a mount point that is a file is refused" "$scratch/new.db" "$scratch/file"
refused "an unknown option is refused" -o nosuchoption "$scratch/new.db" "$scratch/mnt2"
refused "an unknown flag is refused" --nosuchflag "$scratch/new.db" "$scratch/mnt2"
fails "none of these left a mount" is_mounted "$scratch/mnt2"

# --- the ends ---
pid=$(spool_pid)
t "umount ends it" umount "$mnt"
t "the daemon is gone soon after" wait_until 10 process_ended "$pid"
t "and no log of the database is left" test ! -e "$db-wal"
spool_remount
is "what was published is there after umount and mount" hello "$(contents q/m)"
pid=$(spool_pid)
kill "$pid"
t "SIGTERM ends it" wait_until 10 process_ended "$pid"
fails "SIGTERM unmounts" is_mounted
t "SIGTERM leaves no log of the database" test ! -e "$db-wal"
spool_remount
pid=$(spool_pid)
t "fusermount3 -u ends it" fusermount3 -u "$mnt"
t "the daemon is gone after fusermount3 -u" wait_until 10 process_ended "$pid"
for signal in INT HUP; do
    spool_remount
    pid=$(spool_pid)
    kill -s $signal "$pid"
    t "SIG$signal ends it" wait_until 10 process_ended "$pid"
    fails "SIG$signal unmounts" is_mounted
done

# --- a dead mount ---
spool_remount
spool_kill
errno "after kill -9 the mount point says ENOTCONN" ENOTCONN access "$mnt"
t "mounting again replaces the dead mount" "$SPOOLFS" "$db" "$mnt"
is "there is one mount there, not two" 1 "$(grep -c " $mnt " /proc/self/mounts)"
is "and the message" hello "$(contents q/m)"

spool_kill
t "it is replaced at once, whatever the kernel still remembers of it" spool_remount
stat "$mnt" "$mnt/q" >/dev/null
spool_kill
t "also when it was just looked at" "$SPOOLFS" "$db" "$mnt"

# --- in the foreground ---
spool_umount
"$SPOOLFS" -f "$db" "$mnt" </dev/null &
pid=$!
soon "-f mounts" 10 is_mounted
soon "-f answers" 10 test -d "$mnt/q"
fails "-f stays in front" process_ended "$pid"
kill "$pid"
wait "$pid"
is "-f exits with 0 at SIGTERM" 0 $?
fails "-f unmounts at SIGTERM" is_mounted

# --- options ---
spool_mount -o ro
is "a read-only mount reads" hello "$(contents q/m)"
errno "nothing is published on a read-only mount" EROFS open "$mnt/q/n" 'O_WRONLY|O_CREAT'
errno "no queue is made on a read-only mount" EROFS mkdir "$mnt/r"
errno "nothing is claimed on a read-only mount" EROFS rename "$mnt/q/m" "$mnt/q/claimed/m"
errno "nothing is cancelled on a read-only mount" EROFS unlink "$mnt/q/m"
fails "no setting is changed on a read-only mount" bash -c 'echo 5s >"$1"' - "$mnt/q/.config/lease"
spool_umount
before=$(sha256sum <"$db")
spool_mount -o ro
ls -lR "$mnt" >/dev/null
spool_umount
is "a read-only mount does not change the database" "$before" "$(sha256sum <"$db")"
spool_mount -o fsname=orders
is "fsname= names the mount" orders "$(awk -v point="$mnt" '$2 == point { print $1 }' /proc/self/mounts)"
spool_umount
spool_mount -o allow_other
t "allow_other is taken" has_option allow_other
t "and implies default_permissions" has_option default_permissions
spool_umount
(cd "$scratch/made" && "$SPOOLFS" spool.db "../mnt")
mounted=yes
is "relative paths work" hello "$(contents q/m)"
umount "$mnt"
relative_daemon_ended() { ! spool_pid spool.db >/dev/null; }
wait_until 10 relative_daemon_ended

# --- as mount(8) and fstab call it ---
if command -v mount.fuse3 >/dev/null; then
    programs=$(dirname "$SPOOLFS")
    t "mount.fuse3 spoolfs#DATABASE works" env PATH="$programs:$PATH" mount.fuse3 "spoolfs#$db" "$mnt" -o rw,noatime,nofail
    is "and shows the messages" hello "$(contents q/m)"
    spool_umount
    t "mount.fuse3 DATABASE -t spoolfs works" env PATH="$programs:$PATH" mount.fuse3 "$db" "$mnt" -t spoolfs -o rw,allow_other
    is "and shows the messages too" hello "$(contents q/m)"
    t "nosuid holds there as well" has_option nosuid
    spool_umount
else
    skip "mount.fuse3 spoolfs#DATABASE works" "mount.fuse3 is not installed"
fi
spool_mount
spool_done
