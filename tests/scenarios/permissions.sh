#!/usr/bin/env bash
# Who may do what: every operation, by everybody, in queues of the modes that spoolfs(5) recommends.
. "$(dirname "$0")/../lib/mount.sh"
if ! setpriv --reuid 4001 --regid 4000 --clear-groups true 2>/dev/null; then
    skip "who may do what" "setpriv cannot change the user"
    spool_done
fi
chmod 755 "$scratch"
chmod o+x "$(dirname "$scratch")"
spool_mount -o allow_other

# Persons: the owner of the queue; a producer and a consumer in its group, 4100; a stranger; root.
as() { # PERSON COMMAND...
    local person=$1
    shift
    case $person in
    owner) setpriv --reuid 4001 --regid 4001 --clear-groups "$@" ;;
    producer) setpriv --reuid 4002 --regid 4002 --groups 4100 "$@" ;;
    consumer) setpriv --reuid 4003 --regid 4100 --clear-groups "$@" ;;
    stranger) setpriv --reuid 4004 --regid 4004 --clear-groups "$@" ;;
    root) "$@" ;;
    esac
}

# Each attempt starts with a message m of somebody else (4005, in the queue's group, mode 0644), and a lease of the owner's.
# shellcheck disable=SC2054 # the commas are for op.py
attempt() { # PERSON OPERATION
    local person=$1 operation=$2 steps
    case $operation in
    publish) steps=(open "$q/mine" 'O_WRONLY|O_CREAT|O_EXCL' 0644 , write x , close) ;;
    list) steps=(access "$q") ;;
    read) steps=(open "$q/m" O_RDONLY) ;;
    edit) steps=(open "$q/m" 'O_WRONLY|O_APPEND') ;;
    claim) steps=(mkdir "$q/claimed/$person" , rename "$q/m" "$q/claimed/$person/m") ;;
    finish) steps=(mkdir "$q/claimed/$person" , rename "$q/m" "$q/claimed/$person/m" , open "$q/claimed/$person/m" O_RDWR ,
        read 1 , close , utimens "$q/claimed/$person/m" now omit , unlink "$q/claimed/$person/m") ;;
    cancel) steps=(unlink "$q/m") ;;
    peek) steps=(open "$q/claimed/his/lease" O_RDONLY) ;;
    renew) steps=(utimens "$q/claimed/his/lease" now omit) ;;
    acknowledge) steps=(unlink "$q/claimed/his/lease") ;;
    configure) steps=(open "$q/.config/lease" O_WRONLY , write 1m) ;;
    settings) steps=(open "$q/.config/lease" O_RDONLY) ;;
    statistics) steps=(open "$q/.stats" O_RDONLY) ;;
    dead) steps=(access "$q/dead") ;;
    chmod) steps=(chmod "$q" "$mode") ;;
    esac
    as "$person" "$python" -SE "$lib_dir/op.py" "${steps[@]}" 2>&1
}

prepare() {
    rm -rf "$q"
    mkdir "$q"
    chown 4001:4100 "$q"
    chmod "$mode" "$q"
    echo m >"$q/m"
    echo m >"$q/lease"
    chown 4005:4100 "$q/m"
    as owner mkdir "$q/claimed/his"
    chown 4001 "$q/lease"
    as owner mv "$q/lease" "$q/claimed/his/"
}

q=$mnt/q
# shellcheck disable=SC2034 # the columns are read by their names
while read -r mode operation owner producer consumer stranger root; do
    [[ $mode == [0-9]* ]] || continue
    for person in owner producer consumer stranger root; do
        prepare
        seen=$(attempt $person "$operation")
        is "$mode: $operation, by $person" "${!person}" "${seen%@*}"
    done
done <<'TABLE'
mode  operation    owner    producer consumer stranger root
0755  publish      OK       EACCES   EACCES   EACCES   OK
0755  list         OK       OK       OK       OK       OK
0755  read         OK       OK       OK       OK       OK
0755  edit         EACCES   EACCES   EACCES   EACCES   OK
0755  claim        OK       EACCES   EACCES   EACCES   OK
0755  finish       OK       EACCES   EACCES   EACCES   OK
0755  cancel       OK       EACCES   EACCES   EACCES   OK
0755  peek         OK       EACCES   EACCES   EACCES   OK
0755  renew        OK       EPERM    EPERM    EPERM    OK
0755  acknowledge  OK       EACCES   EACCES   EACCES   OK
0755  configure    OK       EACCES   EACCES   EACCES   OK
0755  settings     OK       OK       OK       OK       OK
0755  statistics   OK       OK       OK       OK       OK
0755  dead         OK       OK       OK       OK       OK
0755  chmod        OK       EPERM    EPERM    EPERM    OK
2770  publish      OK       OK       OK       EACCES   OK
2770  list         OK       OK       OK       EACCES   OK
2770  read         EACCES   OK       OK       EACCES   OK
2770  edit         EACCES   EACCES   EACCES   EACCES   OK
2770  claim        OK       OK       OK       EACCES   OK
2770  finish       OK       OK       OK       EACCES   OK
2770  cancel       OK       OK       OK       EACCES   OK
2770  peek         OK       EACCES   EACCES   EACCES   OK
2770  renew        OK       EPERM    EPERM    EACCES   OK
2770  acknowledge  OK       EACCES   EACCES   EACCES   OK
2770  configure    OK       EACCES   EACCES   EACCES   OK
2770  settings     OK       OK       OK       EACCES   OK
2770  statistics   OK       OK       OK       EACCES   OK
2770  dead         OK       OK       OK       EACCES   OK
2770  chmod        OK       EPERM    EPERM    EPERM    OK
0777  publish      OK       OK       OK       OK       OK
0777  list         OK       OK       OK       OK       OK
0777  read         OK       OK       OK       OK       OK
0777  edit         EACCES   EACCES   EACCES   EACCES   OK
0777  claim        OK       OK       OK       OK       OK
0777  finish       OK       OK       OK       OK       OK
0777  cancel       OK       OK       OK       OK       OK
0777  peek         OK       EACCES   EACCES   EACCES   OK
0777  renew        OK       EPERM    EPERM    EPERM    OK
0777  acknowledge  OK       EACCES   EACCES   EACCES   OK
0777  configure    OK       EACCES   EACCES   EACCES   OK
0777  settings     OK       OK       OK       OK       OK
0777  statistics   OK       OK       OK       OK       OK
0777  dead         OK       OK       OK       OK       OK
0777  chmod        OK       EPERM    EPERM    EPERM    OK
1733  publish      OK       OK       OK       OK       OK
1733  list         OK       EACCES   EACCES   EACCES   OK
1733  read         EACCES   EACCES   EACCES   EACCES   OK
1733  edit         EACCES   EACCES   EACCES   EACCES   OK
1733  claim        OK       EACCES   EACCES   EACCES   OK
1733  finish       OK       EACCES   EACCES   EACCES   OK
1733  cancel       OK       EPERM    EPERM    EPERM    OK
1733  peek         OK       EACCES   EACCES   EACCES   OK
1733  renew        OK       EACCES   EACCES   EACCES   OK
1733  acknowledge  OK       EACCES   EACCES   EACCES   OK
1733  configure    OK       EACCES   EACCES   EACCES   OK
1733  settings     OK       EACCES   EACCES   EACCES   OK
1733  statistics   OK       EACCES   EACCES   EACCES   OK
1733  dead         OK       EACCES   EACCES   EACCES   OK
1733  chmod        OK       EPERM    EPERM    EPERM    OK
TABLE

# --- claimed and dead follow their queue until they are changed themselves ---
q=$mnt/f
mkdir "$q"
chown 4001:4100 "$q"
for modes in 00755:755 02770:3770 00777:1777 01733:700; do
    chmod "${modes%:*}" "$q"
    for directory in claimed dead; do
        soon "$directory of a queue of mode ${modes%:*} has mode ${modes#*:}" 3 test \
            "$(stat -c '%a %u %g' "$q/$directory")" = "${modes#*:} 4001 4100"
    done
done
chmod 00750 "$q/dead"
chmod 02770 "$q"
spool_umount
spool_remount
is "what was changed by itself follows no longer, mounted anew" 750 "$(stat -c %a "$q/dead")"
is "owner, group and mode persist" "2770 4001 4100" "$(stat -c '%a %u %g' "$q")"
as producer sh -c 'echo x >"$1/m"' - "$q"
is "a message in a setgid queue has its group" "4002 4100" "$(stat -c '%u %g' "$q/m")"
as consumer mkdir "$q/claimed/w"
is "so has a worker's directory" "4003 4100 2755" "$(stat -c '%u %g %a' "$q/claimed/w")"
as producer chmod 0 "$q/m"
is "a message always has u+rw" 600 "$(stat -c %a "$q/m")"

# --- a drop box tells a stranger nothing through its listing and control entries ---
chmod 01733 "$q"
errno_as() { is "$1" "$3" "$(as "$2" "$python" -SE "$lib_dir/op.py" "${@:4}" 2>&1)"; }
errno_as "a stranger cannot list a drop box" stranger EACCES access "$q"
errno_as "nor its claimed" stranger EACCES stat "$q/claimed/w"
errno_as "nor read its counters" stranger EACCES open "$q/.stats" O_RDONLY
errno_as "nor look for settings" stranger EACCES stat "$q/.config/lease"
as stranger sh -c 'umask 0; echo x >"$1/own"' - "$q"
is "a message there has no bits for those who may not read the queue" "4004 4004 600" "$(stat -c '%u %g %a' "$q/own")"
chmod 01753 "$q"
is "nor for a group of the writer's, where only the queue's group may read it" 600 "$(stat -c %a "$q/own")"
chmod 01733 "$q"
errno_as "he can read his own" stranger OK open "$q/own" O_RDONLY
errno_as "and cancel it" stranger OK unlink "$q/own"
errno_as "a name that is taken by another cannot be made" stranger EEXIST open "$q/m" 'O_WRONLY|O_CREAT|O_EXCL'
spool_done
