#!/usr/bin/env bash
# What the daemon keeps of root's privileges, and that this is enough; and a mount of an ordinary user.
# Where /dev/fuse is for root only, it is for everybody in a mount namespace of the test's own.
if [ -c /dev/fuse ] && [ -z "${SPOOL_NAMESPACE:-}" ] && [ "$(stat -c %a /dev/fuse)" != 666 ] && unshare -m true 2>/dev/null; then
    SPOOL_NAMESPACE=own exec unshare -m bash -c 'mount -t tmpfs none /mnt && mknod -m 666 /mnt/fuse c 10 229 &&
        mount --bind /mnt/fuse /dev/fuse && umount -l /mnt; exec bash "$0"' "$0"
fi
. "$(dirname "$0")/../lib/mount.sh"
if ! setpriv --reuid 4001 --regid 4001 --clear-groups true 2>/dev/null; then
    skip "privileges" "setpriv cannot change the user"
    spool_done
fi
chmod 755 "$scratch"
chmod o+x "$(dirname "$scratch")"
as() { setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"; }
kept() { awk -v name="$1:" '$1 == name { print $2 }' "/proc/$(spool_pid)/status"; }

# --- root ---
spool_mount -o allow_other
queue q
chmod 777 "$mnt/q"
is "in effect are CAP_DAC_OVERRIDE and CAP_SYS_PTRACE" 0000000000080002 "$(kept CapEff)"
is "CAP_SYS_ADMIN is kept in reserve, for unmounting" 0000000000280002 "$(kept CapPrm)"
is "nothing can be gained by executing a program" "0000000000000000 0000000000000000 1" "$(kept CapBnd) $(kept CapAmb) $(kept NoNewPrivs)"
is "every thread has given up the same" 0000000000080002 "$(awk '/^CapEff/ { print $2 }' "/proc/$(spool_pid)"/task/*/status | sort -u)"
as 4001 sh -c 'exec 3>"$1/killed"; echo half >&3; kill -9 $$' - "$mnt/q" 2>/dev/null
soon "a killed writer of another user is seen" 5 test -e "$mnt/q/.killed.killed"
fails "and its file is not published" test -e "$mnt/q/killed"
head -c 3000000 /dev/urandom >"$scratch/large"
t "a large payload is written" as 4001 sh -c 'cat >"$1/large"' - "$mnt/q" <"$scratch/large"
t "and read" cmp "$scratch/large" "$mnt/q/large"
t "and removed" rm "$mnt/q/large"
publish q/m hello
pid=$(spool_pid)
kill "$pid"
t "SIGTERM ends the daemon" wait_until 10 process_ended "$pid"
fails "and unmounts" is_mounted
spool_remount
is "the message is there afterwards" hello "$(contents q/m)"
tail -f "$mnt/q/m" >/dev/null 2>&1 &
wait_until 5 test -e "/proc/$!/fd/3"
pid=$(spool_pid)
kill "$pid"
t "SIGTERM ends it also while a file is open" wait_until 10 process_ended "$pid"
fails "and unmounts then, too" is_mounted
mounted=no

# --- an ordinary user ---
user=65534 # nobody: fusermount3 looks for a name
db=$scratch/home/spool.db mnt=$scratch/home/mnt
mkdir -p "$mnt"
chown -R "$user:$user" "$scratch/home"
if as "$user" "$SPOOLFS" "$db" "$mnt" </dev/null 2>"$scratch/said"; then
    t "an ordinary user mounts and makes a queue" as "$user" mkdir "$mnt/q"
    t "publishes" as "$user" sh -c 'echo x >"$1/q/m"' - "$mnt"
    t "claims" as "$user" mv "$mnt/q/m" "$mnt/q/claimed/"
    fails "root has no access" ls "$mnt"
    fails "nor has another user" as 4002 ls "$mnt"
    t "the user unmounts with fusermount3" as "$user" fusermount3 -u "$mnt"
    as "$user" "$SPOOLFS" "$db" "$mnt" </dev/null
    pid=$(spool_pid)
    as "$user" kill "$pid"
    t "SIGTERM ends the user's daemon" wait_until 10 process_ended "$pid"
    fails "and unmounts" is_mounted
else
    skip "an ordinary user mounts" "$(cat "$scratch/said")"
fi
if grep -qx user_allow_other /etc/fuse.conf; then
    skip "allow_other needs user_allow_other" "it is set"
else
    fails "without user_allow_other an ordinary user cannot let others in" as "$user" "$SPOOLFS" -o allow_other "$db" "$mnt"
    if grep -q /dev/fuse "$last_output"; then
        skip "and is told so" "/dev/fuse is not accessible"
    else
        is "and is told so" 1 "$(grep -c user_allow_other "$last_output")"
    fi
fi
spool_done
