/*
 * db_guard.c - one opener at a time: a flock on `<database>.lock`.
 *
 * SQLite's own locks are POSIX locks, which a process loses when it closes any descriptor of the file, and they are
 * taken late. The lock file is there while the database is open, and is removed by its holder: a name that was
 * mistaken for a database is not left with a lock file beside it. A process that got the lock of a file removed
 * meanwhile sees that no name is left to it, and starts over; a file can lose its name only to the one who holds its
 * lock.
 *
 * The holder's process id stands in it. It is stale after a kill, so it is believed only while somebody holds the
 * lock exclusively.
 */
#include "db_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int lock_path(const char *path, char *out, size_t size) {
    return snprintf(out, size, "%s.lock", path) < (int)size ? 0 : -ENAMETOOLONG;
}

static int read_pid(int guard) {
    char text[16] = "";
    ssize_t length = pread(guard, text, sizeof(text) - 1, 0);
    return length > 0 ? atoi(text) : 0;
}

/* The number only serves a message, which is shorter without it. */
static void write_pid(int guard) {
    char text[16];
    int length = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    if (ftruncate(guard, 0) || pwrite(guard, text, (size_t)length, 0) != length)
        (void)!ftruncate(guard, 0);
}

static int lock(int guard, bool shared, int *pid) {
    if (flock(guard, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0)
        return 0;
    if (errno != EWOULDBLOCK)
        return -errno;
    /* A shared lock is granted if the holders only read: then the number is not theirs. */
    *pid = flock(guard, LOCK_SH | LOCK_NB) ? read_pid(guard) : 0;
    return -EBUSY;
}

int db__guard_take(const char *path, bool shared, int *out, int *pid) {
    char name[4096];
    int flags = shared ? O_RDONLY : O_RDWR | O_CREAT;
    struct stat status = {.st_nlink = 0};
    int guard = -1;

    int rc = lock_path(path, name, sizeof(name));
    while (!rc && status.st_nlink == 0) {
        if (guard >= 0)
            close(guard);
        guard = open(name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (guard < 0 && errno == ENOENT && shared)
            break;
        rc = guard < 0 ? -errno : lock(guard, shared, pid);
        if (!rc && fstat(guard, &status))
            rc = -errno;
    }
    if (rc) {
        if (guard >= 0)
            close(guard);
        return rc;
    }
    if (!shared)
        write_pid(guard);
    *out = guard;
    return 0;
}

void db__guard_release(const char *path, int guard, bool shared) {
    char name[4096];
    if (guard < 0)
        return;
    if (!shared && !lock_path(path, name, sizeof(name)))
        unlink(name);
    close(guard);
}
