#!/usr/bin/env bash
# Several users on one mount: a claim gives the message to the claimer, and takes it back to its writer.
. "$(dirname "$0")/../lib/mount.sh"
if ! setpriv --reuid 4001 --regid 4000 --clear-groups true 2>/dev/null; then
    skip "several users" "setpriv cannot change the user"
    spool_done
fi
chmod 755 "$scratch"
chmod o+x "$(dirname "$scratch")"
spool_mount -o allow_other
mkdir "$mnt/q"
echo 20ms >"$mnt/q/.config/retry_delay"
chmod 777 "$mnt/q"
chmod 777 "$mnt/q/claimed" "$mnt/q/dead"
q=$mnt/q
as() { # UID COMMAND...
    local user=$1
    shift
    setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
}

t "a producer publishes" as 4001 sh -c 'umask 077; echo secret >"$1/m"' - "$q"
is "a message that is its own" "4001 4001 600" "$(stat -c '%u %g %a' "$q/m")"
fails "which others cannot read" as 4002 cat "$q/m"
t "a worker makes its directory" as 4002 mkdir "$q/claimed/w"
t "and claims, whatever the mode is" as 4002 mv "$q/m" "$q/claimed/w/"
is "the lease belongs to the claimer, mode 0600, the group unchanged" "4002 4001 600" "$(stat -c '%u %g %a' "$q/claimed/w/m")"
is "it can read it" secret "$(as 4002 cat "$q/claimed/w/m")"
t "renew it" as 4002 touch "$q/claimed/w/m"
t "set its end" as 4002 touch -a -d '+5 min' "$q/claimed/w/m"
t "and rewrite it" as 4002 sh -c 'echo rewritten >"$1"' - "$q/claimed/w/m"
fails "the producer cannot read it any more" as 4001 cat "$q/claimed/w/m"
fails "nor a third one remove it" as 4003 rm -f "$q/claimed/w/m"
fails "nor renew it" as 4003 touch -c -a -d '+5 min' "$q/claimed/w/m"
t "the worker releases it" as 4002 mv "$q/claimed/w/m" "$q/"
is "and it is the producer's again" "4001 4001 600" "$(stat -c '%u %g %a' "$q/m")"
t "claims it again" as 4002 mv "$q/m" "$q/claimed/w/"
t "and gives it up" as 4002 touch -a -d @0 "$q/claimed/w/m"
is "which gives it back, too" "4001 4001 600" "$(stat -c '%u %g %a' "$q/m")"
wait_until 5 as 4002 mv "$q/m" "$q/claimed/w/" 2>/dev/null
as 4003 mkdir -m 777 "$q/claimed/v"
t "hands it over to another worker" as 4002 mv "$q/claimed/w/m" "$q/claimed/v/"
is "whose it is then" "4003 600 rewritten" "$(stat -c '%u %a' "$q/claimed/v/m") $(as 4003 cat "$q/claimed/v/m")"
t "who may call it otherwise" as 4003 mv "$q/claimed/v/m" "$q/claimed/v/job"
chmod 777 "$q/claimed/w"
as 4003 mv "$q/claimed/v/job" "$q/claimed/w/m"
t "the worker acknowledges" as 4002 rm "$q/claimed/w/m"
is "and it is gone" "0 0" "$(counter q waiting) $(counter q claimed)"

t "another message" as 4001 sh -c 'echo x >"$1/m"' - "$q"
fails "another user cannot write to it" as 4002 sh -c 'echo y >>"$1/m"' - "$q"
fails "or change its mode" as 4002 chmod 666 "$q/m"
fails "or delay it" as 4002 touch -d '+5 min' "$q/m"
mkdir "$mnt/forwarded"
chmod 777 "$mnt/forwarded"
as 4002 mv "$q/m" "$q/claimed/w/"
t "a forward" as 4002 mv "$q/claimed/w/m" "$mnt/forwarded/"
is "belongs to the forwarder" 4002 "$(stat -c %u "$mnt/forwarded/m")"
fails "nobody but root makes queues at first" as 4001 mkdir "$mnt/mine"
chmod 1777 "$mnt"
t "chmod of the root opens it" as 4001 mkdir "$mnt/mine"
fails "others cannot remove such a queue from a sticky root" as 4002 rmdir "$mnt/mine"
fails "or write to it" as 4002 sh -c 'echo x >"$1/mine/m"' - "$mnt"
fails "or change its settings" as 4002 sh -c 'echo 5s >"$1/mine/.config/lease"' - "$mnt"
t "its owner can do both" as 4001 sh -c 'echo x >"$1/mine/m" && echo 5s >"$1/mine/.config/lease"' - "$mnt"
spool_done
