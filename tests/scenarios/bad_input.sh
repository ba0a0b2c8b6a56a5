#!/usr/bin/env bash
# Bad input and its answer, where no other scenario says it.
. "$(dirname "$0")/../lib/mount.sh"
spool_mount
queue q
q=$mnt/q w=$mnt/q/claimed/w

publish q/m hello
claim q/m
rm "$w/m"
errno "a second unlink is ENOENT" ENOENT unlink "$w/m"
publish q/m hello
errno "a setuid bit is dropped, and that is no error" OK chmod "$q/m" 6755
is "as stat shows" 755 "$(stat -c %a "$q/m")"
errno "so at create" OK open "$q/suid" 'O_WRONLY|O_CREAT' 6644 , write x , close
is "as stat shows it" 644 "$(stat -c %a "$q/suid")"
rm "$q/suid"

# --- fallocate, O_TMPFILE, ioctl ---
errno "fallocate extends" OK open "$q/f" 'O_RDWR|O_CREAT' , write x , fallocate 0 0 100 , size 100 , fallocate KEEP_SIZE 0 1000 , size 100 , close
for mode in PUNCH_HOLE ZERO_RANGE COLLAPSE_RANGE INSERT_RANGE; do
    errno "fallocate $mode is EOPNOTSUPP" EOPNOTSUPP@fallocate open "$q/f" O_RDWR , fallocate $mode 0 10
done
rm "$q/f"
errno "O_TMPFILE is EOPNOTSUPP" EOPNOTSUPP open "$q" 'O_RDWR|O_TMPFILE'
errno "an unknown ioctl is ENOTTY" ENOTTY@ioctl open "$q/m" O_RDONLY , ioctl 0x5401
errno "twice" ENOTTY@ioctl open "$q/m" O_RDONLY , ioctl 0x12345678

# --- attributes ---
for name in security.selinux trusted.overlay.x system.nothing; do
    errno "setting $name is EOPNOTSUPP" EOPNOTSUPP setxattr "$q/m" $name x
done
for name in security.capability user.nothing system.posix_acl_access security.selinux; do
    errno "getting $name says there is none" 'ENODATA|EOPNOTSUPP' getxattr "$q/m" $name
done
errno "attributes can be listed" OK listxattr "$q/m"
errno "a setting of an attribute has broken nothing: FLUSH, FSYNC, LSEEK" OK open "$q/g" 'O_RDWR|O_CREAT' , write x , fsync , seek 0 , close
errno "copy_file_range and the like fall back" OK sh "cp --reflink=auto $q/g $q/h && cp --sparse=always $q/g $q/i"
rm "$q/g" "$q/h" "$q/i"
t "poll says ready for ordinary files" "$python" -c 'import os, select, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
poll = select.poll()
poll.register(fd, select.POLLIN | select.POLLOUT)
ready = poll.poll(1000)
assert ready and ready[0][1] & (select.POLLIN | select.POLLOUT) == select.POLLIN | select.POLLOUT, ready' "$q/m"

# --- shapes of calls ---
errno "mkdir on a message's name is EEXIST" EEXIST mkdir "$q/m"
errno "a path through a message is ENOTDIR" ENOTDIR stat "$q/m/x"
errno "opening a directory for writing is EISDIR" EISDIR open "$q" O_WRONLY
errno "O_DIRECTORY on a message is ENOTDIR" ENOTDIR open "$q/m" 'O_RDONLY|O_DIRECTORY'
errno "unlink of a directory is EISDIR or EPERM" 'EISDIR|EPERM' unlink "$q/claimed"
errno "rmdir of the root is refused" 'EBUSY|EPERM' rmdir "$mnt"
fails "readlink of a message fails" readlink "$q/m"
errno "a read beyond the end is empty" OK open "$q/m" O_RDONLY , seek 100 , read 10
errno "writing through a read-only descriptor is EBADF" EBADF@write open "$q/m" O_RDONLY , write x
errno "a symbolic link in a queue is EPERM" EPERM symlink x "$q/link"
errno "a symbolic link with a name of the partial patterns is staged or EPERM" 'OK|EPERM' symlink x "$q/link.tmp"
rm -f "$q/link.tmp"
is "after all that the message is as it was" "m hello" "$(names q) $(contents q/m)"

# --- many at once ---
t "15000 files may be open at once" "$python" -c 'import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
fds = []
for i in range(15000):
    fds.append(os.open(f"{sys.argv[1]}/.o{i}", os.O_WRONLY | os.O_CREAT))
for fd in fds:
    os.write(fd, b"x")
    os.close(fd)
for i in range(15000):
    os.unlink(f"{sys.argv[1]}/.o{i}")' "$q"
is "and leave nothing" "1 0" "$(counter q waiting) $(counter q staged)"
pid=$(spool_pid)
t "100000 failed lookups are harmless" "$python" -c 'import os, sys
for i in range(100000):
    try: os.stat(f"{sys.argv[1]}/nothing{i}")
    except FileNotFoundError: pass' "$q"
is_sanitized ||
    between "the daemon stays below 100 MiB" 1 102400 "$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")"
between "and holds few descriptors" 1 64 "$(find "/proc/$pid/fd" -mindepth 1 | wc -l)"
spool_done
