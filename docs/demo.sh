#!/bin/sh
# demo.sh: a queue from its first message to the daemon's death and after, in ordinary shell commands. `make demo` runs it.
# Each command is shown as one would type it, then run. Everything happens in a scratch directory.
set -eu

build=${BUILD:-$(cd "$(dirname "$0")/../build" && pwd)}
PATH=$build:$PATH
scratch=$(mktemp -d)
cd "$scratch"
[ "$(id -u)" -eq 0 ] && unmount=umount || unmount='fusermount3 -u'

tidy() {
    cd /
    umount -l "$scratch/spool" 2>/dev/null || fusermount3 -u -z "$scratch/spool" 2>/dev/null || :
    rm -rf "$scratch"
}
trap tidy EXIT
trap 'exit 1' INT TERM

say() { printf '\n# %s\n' "$*"; }
run() {
    printf '$ %s\n' "$1"
    eval "$1"
}
# The command must fail: it is there to show with what.
run_refused() {
    printf '$ %s\n' "$1"
    if eval "$1" 2>&1; then
        echo "demo: this should have been refused" >&2
        exit 1
    fi
}

# The daemon's process: the one that serves a database of that name.
daemon() {
    for process in /proc/[0-9]*; do
        case $(tr '\0' ' ' 2>/dev/null <"$process/cmdline") in
        *"spoolfs $1 "*) echo "${process#/proc/}" ;;
        esac
    done
}

say "A database file, made when it is absent, and a directory to mount it on."
run 'mkdir spool'
run "spoolfs $scratch/spool.db spool"

say "A directory is a queue. A file written into it is a message, on the disk once the command has returned."
run 'mkdir spool/mail'
run 'echo "Dear Ada" > spool/mail/ada'
run 'echo "Dear Bob" > spool/mail/bob'
run 'ls spool/mail'

say "A worker makes a directory of its own and claims a message by moving it there. A second claim comes too late."
run 'mkdir spool/mail/claimed/w1 spool/mail/claimed/w2'
run 'mv spool/mail/ada spool/mail/claimed/w1/'
run_refused 'mv spool/mail/ada spool/mail/claimed/w2/'

say "It does the work, and acknowledges the message by removing it."
run 'cat spool/mail/claimed/w1/ada'
run 'rm spool/mail/claimed/w1/ada'
run "grep -E '^(waiting|claimed|published|acknowledged) ' spool/mail/.stats"

say "The daemon is killed in the middle of it all, with a message waiting and one that is leased."
run 'mv spool/mail/bob spool/mail/claimed/w1/'
run 'echo "Dear Eve" > spool/mail/eve'
victim=$(daemon "$scratch/spool.db")
run "kill -9 $victim"
while cat spool/mail/eve >/dev/null 2>&1; do sleep 0.01; done
run_refused 'cat spool/mail/eve'

say "Mounted again, both are where they were."
run "spoolfs $scratch/spool.db spool"
run 'cat spool/mail/eve spool/mail/claimed/w1/bob'

say "What was not finished can go back to the queue, for anybody else."
run 'mv spool/mail/claimed/w1/bob spool/mail/'
run 'ls spool/mail'

run "$unmount spool"
