#!/usr/bin/python3
"""System calls exactly as asked, and the errno they end with.

    op.py STEP [, STEP]...        e.g.  op.py open m O_WRONLY , write hello , close

A step is a call and its arguments. Prints OK when all steps succeeded. The first that fails ends the run: its errno's name
is printed (ESTALE), followed by @ and the step when there are several (ESTALE@write). Exit status 0 only for OK.
Steps on descriptors work on the last one opened; `fd N` goes back to the N-th (from 1).
"""
import ctypes
import errno
import fcntl
import os
import stat
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
RENAME_FLAGS = {"0": 0, "NOREPLACE": 1, "EXCHANGE": 2, "WHITEOUT": 4, "UNKNOWN": 1 << 10}
FALLOCATE_MODES = {"0": 0, "KEEP_SIZE": 1, "PUNCH_HOLE": 3, "COLLAPSE_RANGE": 8, "ZERO_RANGE": 16, "INSERT_RANGE": 32}
NODE_TYPES = {"file": stat.S_IFREG, "fifo": stat.S_IFIFO, "char": stat.S_IFCHR, "block": stat.S_IFBLK, "socket": stat.S_IFSOCK}
UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
errno.errorcode[errno.EOPNOTSUPP] = "EOPNOTSUPP"  # Python calls it ENOTSUP
descriptors = []
current = -1


class Expected(Exception):
    """A step that found something else than it was told to find."""


class Timespec(ctypes.Structure):
    _fields_ = [("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long)]


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")


def timespec(text):
    """now, omit, or seconds since 1970; +N and -N count from now."""
    if text in ("now", "omit"):
        return Timespec(0, UTIME_NOW if text == "now" else UTIME_OMIT)
    if text[0] in "+-":
        import time
        text = str(time.time() + float(text))
    return Timespec(int(float(text)), int(float(text) % 1 * 1e9))


def utimens(path, atime, mtime):
    times = (Timespec * 2)(timespec(atime), timespec(mtime))
    checked(libc.utimensat(-100, os.fsencode(path), times, 0))


def renameat2(source, target, flags):
    bits = sum(RENAME_FLAGS[flag] for flag in flags.split("|"))
    checked(libc.renameat2(-100, os.fsencode(source), -100, os.fsencode(target), ctypes.c_uint(bits)))


def fallocate(mode, offset, length):
    checked(libc.fallocate(current, FALLOCATE_MODES[mode], ctypes.c_long(int(offset)), ctypes.c_long(int(length))))


def open_(path, flags, mode="0644"):
    global current
    bits = 0
    for flag in flags.split("|"):
        bits |= getattr(os, flag)
    current = os.open(path, bits, int(mode, 8))
    descriptors.append(current)


def fd(number):
    global current
    current = descriptors[int(number) - 1]


def write(text):
    data = os.fsencode(text)
    if os.write(current, data) != len(data):
        raise OSError(errno.EIO, "short write")


def pwrite(offset, text):
    data = os.fsencode(text)
    if os.pwrite(current, data, int(offset)) != len(data):
        raise OSError(errno.EIO, "short write")


def fill(size):
    """Writes so many bytes of 'x', in pieces of 64 KiB."""
    left = int(size)
    while left:
        left -= os.write(current, b"x" * min(left, 65536))


def reads(text):
    """What pread finds from the start must be TEXT."""
    seen = os.pread(current, 1 << 20, 0)
    if seen != os.fsencode(text):
        raise Expected(repr(seen))


def size(number):
    seen = os.fstat(current).st_size
    if seen != int(number):
        raise Expected(str(seen))


def sh(command):
    """A shell command in the middle of it; must exit with 0."""
    done = subprocess.run(command, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode:
        raise Expected(os.fsdecode(done.stderr).strip() or f"exit {done.returncode}")


STEPS = {
    "open": open_, "fd": fd, "close": lambda: os.close(current), "write": write, "pwrite": pwrite, "fill": fill, "reads": reads, "size": size,
    "sh": sh, "utimens": utimens, "renameat2": renameat2, "fallocate": fallocate,
    "ftruncate": lambda length: os.ftruncate(current, int(length)),
    "fsync": lambda: os.fsync(current),
    "fdatasync": lambda: os.fdatasync(current),
    "fchmod": lambda mode: os.fchmod(current, int(mode, 8)),
    "seek": lambda offset: os.lseek(current, int(offset), os.SEEK_SET),
    "read": lambda length: os.read(current, int(length)),
    "ioctl": lambda number: fcntl.ioctl(current, int(number, 0)),
    "flock": lambda: fcntl.flock(current, fcntl.LOCK_EX | fcntl.LOCK_NB),
    "rename": os.rename, "unlink": os.unlink, "rmdir": os.rmdir, "link": os.link, "symlink": lambda t, p: os.symlink(t, p),
    "mkdir": lambda path, mode="0755": os.mkdir(path, int(mode, 8)),
    "mknod": lambda path, kind: os.mknod(path, NODE_TYPES[kind] | 0o644, os.makedev(1, 3)),
    "truncate": lambda path, length: os.truncate(path, int(length)),
    "chmod": lambda path, mode: os.chmod(path, int(mode, 8)),
    "chown": lambda path, uid, gid: os.chown(path, int(uid), int(gid)),
    "stat": os.stat, "access": os.listdir,
    "setxattr": lambda path, name, value: os.setxattr(path, name, os.fsencode(value)),
    "getxattr": os.getxattr, "removexattr": os.removexattr, "listxattr": os.listxattr,
}


def main(arguments):
    steps = [[]]
    for argument in arguments:
        if argument == ",":
            steps.append([])
        else:
            steps[-1].append(argument)
    for step in steps:
        where = "@" + step[0] if len(steps) > 1 else ""
        try:
            STEPS[step[0]](*step[1:])
        except OSError as error:
            print(errno.errorcode.get(error.errno, error.errno), where, sep="")
            return 1
        except Expected as found:
            print(f"found {found}{where}")
            return 1
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
