# shellcheck shell=bash
# Sourced by the benchmarks: a scratch directory on a real disk, and spoolfs mounted in it with its database beside.
#
#   BENCH_DIR   the disk to measure: scratch directories are made there (default: build/, beside the sources)
#   SPOOLFS     the program to mount (default: build/spoolfs)
#
# scratch_make sets $scratch and removes it at exit, with whatever is mounted in it. mount_spoolfs mounts $database on
# $mountpoint and sets $daemon, the process id; unmount_spoolfs ends it and fails if it did not end well.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
SPOOLFS=${SPOOLFS:-$root/build/spoolfs}
daemon=

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

scratch_make() {
    mkdir -p "${BENCH_DIR:=$root/build}"
    scratch=$(mktemp -d -p "$BENCH_DIR" bench.XXXXXX)
    database=$scratch/spool.db
    mountpoint=$scratch/mnt
    mkdir "$mountpoint"
    trap scratch_remove EXIT
    trap 'exit 1' INT TERM
}

scratch_remove() {
    if [ -n "$daemon" ]; then
        umount -l "$mountpoint" 2>/dev/null || true
        kill -KILL "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    fi
    rm -rf "$scratch"
}

# The daemon stays in front of a background job, so that its process id is known.
mount_spoolfs() {
    [ -x "$SPOOLFS" ] || die "$SPOOLFS is not there: build it first"
    "$SPOOLFS" -f "$database" "$mountpoint" &
    daemon=$!
    until mountpoint -q "$mountpoint"; do
        kill -0 "$daemon" 2>/dev/null || die "$SPOOLFS did not mount"
        sleep 0.02
    done
}

unmount_spoolfs() {
    local ended=$daemon status=0
    umount "$mountpoint" || fusermount3 -u "$mountpoint" || die "cannot unmount $mountpoint"
    wait "$ended" || status=$?
    daemon=
    [ "$status" -eq 0 ] || die "$SPOOLFS ended with status $status"
}
