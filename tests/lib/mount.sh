# shellcheck shell=bash
# Fixture of the scenarios: a mount in a scratch directory, assertions that print TAP, and a clean end whatever happens.
#
#     . "$(dirname "$0")/../lib/mount.sh"
#     spool_mount                      # sets $scratch $db $mnt; arguments are passed on to spoolfs
#     queue q lease=500ms              # mkdir q, settings, a worker directory q/claimed/w
#     publish q/m hello
#     t "a sentence" command...        # the command must succeed
#     spool_done                       # unmounts, checks the database, prints the plan, exits 0 or 1
#
# SPOOLFS and SPOOL name the programs (default: those of build/). After SPOOL_TIMEOUT seconds the daemon is killed, then the
# script. Without /dev/fuse a script says SKIP.

set -u
export LC_ALL=C.UTF-8
umask 022
lib_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$lib_dir/../.." && pwd)
SPOOLFS=${SPOOLFS:-$project/build/spoolfs}
SPOOL=${SPOOL:-$project/build/spool}
python=/usr/bin/python3
[ -x "$python" ] || python=python3
tests_run=0 tests_failed=0 mounted=no mount_options=()

if [ ! -c /dev/fuse ]; then
    echo "1..0 # SKIP /dev/fuse is absent"
    exit 0
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/spool-test.XXXXXX")
db=$scratch/spool.db mnt=$scratch/mnt last_output=$scratch/last-output

# --- the mount ---------------------------------------------------------------------------------------------------

# Prints the process that serves the database $1 (default $db).
spool_pid() {
    local dir name argument
    for dir in /proc/[0-9]*; do
        name=
        { read -r name <"$dir/comm"; } 2>/dev/null
        [[ $name == spoolfs* ]] || continue
        while IFS= read -r -d '' argument; do
            [ "$argument" = "${1:-$db}" ] && [ "$(process_state "${dir#/proc/}")" != Z ] && echo "${dir#/proc/}" && return
        done 2>/dev/null <"$dir/cmdline"
    done
    return 1
}

process_state() { sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null; }
# The first thread is a zombie already while others, and with them what they have open, are still there.
process_ended() {
    case $(process_state "$1") in
    '') ;;
    Z) [ "$(echo /proc/"$1"/task/*)" = "/proc/$1/task/$1" ] || [ ! -e "/proc/$1" ] ;;
    *) return 1 ;;
    esac
}
is_mounted() { awk -v point="${1:-$mnt}" '$5 == point { found = 1 } END { exit !found }' /proc/self/mountinfo; }

spool_mount() {
    mkdir -p "$mnt"
    mount_options=("$@")
    spool_remount
}

spool_remount() {
    mounted=yes
    "$SPOOLFS" "${mount_options[@]}" "$db" "$mnt" </dev/null || bail "spoolfs ${mount_options[*]} $db $mnt failed with $?"
}

spool_kill() {
    local pid
    pid=$(spool_pid) || bail "no daemon to kill"
    kill -9 "$pid"
    wait_until 10 process_ended "$pid" || bail "the daemon $pid survives kill -9"
}

spool_umount() {
    local pid
    pid=$(spool_pid)
    umount "$mnt" || return
    mounted=no
    [ -z "$pid" ] || wait_until 10 process_ended "$pid" && return
    echo "the daemon $pid runs on after umount; its threads are in $(cat /proc/"$pid"/task/*/wchan | sort | uniq -c | paste -sd, -)"
    return 1
}

# Sanitizers keep freed memory for a while: sizes mean nothing then.
is_sanitized() { ldd "$SPOOLFS" | grep -qE 'lib(asan|tsan)'; }

bail() {
    echo "Bail out! $*"
    exit 1
}

clean_up() {
    local pid
    trap - EXIT
    cd /
    [ -z "${watchdog:-}" ] || kill "$watchdog" 2>/dev/null
    for pid in $(jobs -p); do kill "$pid" 2>/dev/null; done
    exec 5>&- 6>&- 7>&- 8>&-
    while read -r point; do umount "$point" 2>/dev/null || umount -l "$point"; done < <(
        awk -v top="$scratch/" 'index($5, top) == 1 { print $5 }' /proc/self/mountinfo | sort -r
    )
    pid=$(spool_pid) && ! wait_until 5 process_ended "$pid" && kill -9 "$pid"
    [ -n "${SPOOL_KEEP:-}" ] || rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

# A daemon that hangs takes its callers with it: end it first, then the script.
(
    trap - EXIT INT TERM HUP
    for ((second = 0; second < ${SPOOL_TIMEOUT:-180}; second++)); do
        sleep 1
        kill -0 $$ 2>/dev/null || exit 0
    done
    pid=$(spool_pid) && kill -9 "$pid"
    kill -TERM $$
    sleep 5
    kill -KILL $$
) >/dev/null 2>&1 &
watchdog=$!
disown "$watchdog"

# Unmount, look at what is left behind, print the plan, exit.
spool_done() {
    local job
    for job in $(jobs -p); do kill "$job" 2>/dev/null; done
    exec 5>&- 6>&- 7>&- 8>&-
    cd "$scratch" || exit 1
    if [ "$mounted" = yes ]; then
        t "the mount ends with umount" wait_until 5 spool_umount
        [ -x "$SPOOL" ] && t "spool check finds nothing wrong" "$SPOOL" check "$db"
    fi
    echo "1..$tests_run"
    [ $tests_failed = 0 ] || echo "# $tests_failed of $tests_run failed in ${0##*/}"
    exit $((tests_failed > 0))
}

# --- assertions --------------------------------------------------------------------------------------------------

verdict() { # RESULT(0: good) SENTENCE [DETAIL...]
    local result=$1 sentence=$2 detail
    shift 2
    tests_run=$((tests_run + 1))
    if [ "$result" = 0 ]; then
        echo "ok $tests_run - $sentence"
        return
    fi
    tests_failed=$((tests_failed + 1))
    echo "not ok $tests_run - $sentence"
    for detail; do printf '%s\n' "$detail" | head -n 20 | sed 's/^/#   /'; done
}

# "sentence" command...: the command must exit with 0.
t() {
    local sentence=$1 status
    shift
    "$@" >"$last_output" 2>&1
    status=$?
    verdict "$status" "$sentence" "expected: exit 0 of: $*" "seen: exit $status: $(tr -d '\0' <"$last_output")"
}

# "sentence" command...: the command must fail.
fails() {
    local sentence=$1 status
    shift
    "$@" >"$last_output" 2>&1
    status=$?
    verdict $((status == 0)) "$sentence" "expected: failure of: $*" "seen: exit 0: $(tr -d '\0' <"$last_output")"
}

# "sentence" expected seen
is() { verdict "$([ "$2" = "$3" ] && echo 0 || echo 1)" "$1" "expected: $2" "seen: $3"; }

# "sentence" 'ERRNO|ERRNO@step|OK' op...: what op.py says of these system calls.
errno() {
    local sentence=$1 expected=$2 seen result=1
    shift 2
    seen=$(op "$@" 2>&1)
    [[ $seen =~ ^($expected)$ ]] && result=0
    verdict $result "$sentence" "expected: $expected of: $*" "seen: $seen"
}

# "sentence" seconds command...: the command must succeed within so many seconds.
soon() {
    local sentence=$1 seconds=$2
    shift 2
    wait_until "$seconds" "$@" >"$last_output" 2>&1
    verdict $? "$sentence" "expected within ${seconds}s: $*" "seen: $("$@" 2>&1)"
}

# "sentence" low high seen: a number in a range; fractions are allowed.
between() {
    awk -v low="$2" -v high="$3" -v seen="$4" 'BEGIN { exit !(seen != "" && seen + 0 >= low + 0 && seen + 0 <= high + 0) }'
    verdict $? "$1" "expected: $2 to $3" "seen: $4"
}

skip() {
    tests_run=$((tests_run + 1))
    echo "ok $tests_run - $1 # SKIP $2"
}

wait_until() { # SECONDS COMMAND...: tries again every 20 ms
    local end=$((${EPOCHREALTIME/./} + ${1%.*} * 1000000))
    shift
    until "$@"; do
        [ "${EPOCHREALTIME/./}" -lt "$end" ] || return 1
        sleep 0.02
    done
}

op() { "$python" -SE "$lib_dir/op.py" "$@"; }

# --- words of the trade ------------------------------------------------------------------------------------------

# NAME [setting=value...]: makes a queue (if it is not there) with settings and the worker directory claimed/w.
queue() {
    local name=$1 setting
    shift
    [ -d "$mnt/$name" ] || mkdir "$mnt/$name" || bail "mkdir $name"
    [ -d "$mnt/$name/claimed/w" ] || mkdir "$mnt/$name/claimed/w" || bail "mkdir $name/claimed/w"
    for setting; do echo "${setting#*=}" >"$mnt/$name/.config/${setting%%=*}" || bail "setting $setting of $name"; done
}

publish() { printf '%s' "$2" >"$mnt/$1"; }                    # QUEUE/NAME CONTENT
claim() { mv "$mnt/$1" "$mnt/${1%%/*}/claimed/${2:-w}/"; }    # QUEUE/NAME [WORKER]
contents() { tr -d '\0' <"$mnt/$1" 2>&1; }                    # QUEUE/NAME: prints it
counter() { awk -v name="$2" '$1 == name { print $2 }' "$mnt/$1/.stats"; } # QUEUE COUNTER
now() { echo "$EPOCHREALTIME"; }
seconds_from_now() { awk -v then="$1" -v now="$EPOCHREALTIME" 'BEGIN { printf "%.6f\n", then - now }'; }
atime() { stat -c %.X "$mnt/$1"; }
mtime() { stat -c %.Y "$mnt/$1"; }
inode() { stat -c %i "$mnt/$1"; }

# DIRECTORY [all]: the names in it but claimed and dead, in the order of the listing, on one line; `all`: staged ones too.
names() {
    local option=-U
    [ -z "${2:-}" ] || option=-UA
    ls $option "$mnt/$1" | grep -vxE 'claimed|dead' | paste -sd' ' -
}

# DIRECTORY: the payloads of the messages in it, in the order of the listing, on one line.
payloads() {
    local name
    ls -U "$mnt/$1" | grep -vxE 'claimed|dead' | while IFS= read -r name; do tr '\n\0' '  ' <"$mnt/$1/$name"; echo; done |
        sed 's/ *$//' | paste -sd'|' -
}
