#!/usr/bin/env bash
# Types the first ```console block of README.md into one shell, in a scratch directory, and compares what it prints.
#
# A line that begins with "$ " is a command; the lines up to the next are what it prints, standard error included.
# What may differ:
#   * white space: `ls` puts names side by side on a terminal, below each other here;
#   * time: after `kill -9` the daemon's end is waited for. A person needs longer than that to type the next line. (What
#     follows there reads a message: for a second the kernel still knows directories, and `ls` may come as far as opening one.)
. "$(dirname "$0")/../lib/mount.sh"

mkdir "$scratch/bin"
ln -s "$(realpath "$SPOOLFS")" "$scratch/bin/spoolfs"
PATH=$scratch/bin:$PATH
cd "$scratch" || exit 1

commands=() outputs=()

# Fills commands[i] and outputs[i] from the block.
read_block() {
    local line inside=no last=-1
    while IFS= read -r line; do
        case $inside:$line in
        no:'```console') inside=yes ;;
        yes:'```') return 0 ;;
        yes:'$ '*) last=$((last + 1)) commands[last]=${line#'$ '} outputs[last]='' ;;
        yes:*) outputs[last]+=$line$'\n' ;;
        esac
    done <"$project/README.md"
    return 1
}

squeeze() { tr -s '[:space:]' ' ' | sed 's/^ //; s/ $//'; }

# COMMAND OUTPUT: runs it in this very shell.
type_in() {
    local daemon=''
    [[ $1 != 'kill -9 '* ]] || daemon=$(spool_pid)
    eval "$1" >"$last_output" 2>&1
    [ -z "$daemon" ] || wait_until 10 process_ended "$daemon"
    is "$1" "$(squeeze <<<"$2")" "$(squeeze <"$last_output")"
}

read_block || bail "README.md has no console block"
for i in "${!commands[@]}"; do type_in "${commands[i]}" "${outputs[i]}"; done
fails "the transcript unmounts what it mounted" is_mounted "$scratch/spool"
spool_done
