/*
 * db_guard.c - one opener at a time: a flock on `<database>.lock`.
 *
 * SQLite's own locks are POSIX locks: they do not keep out a second opener in this process, and are dropped when
 * anybody closes any descriptor of the database. The lock file is never removed, because a file that is removed while
 * another process waits to lock it lets two in. Its holder's process id stands in it; it is stale after a kill, so it
 * is believed only while somebody holds the lock exclusively.
 */
#include "db_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

static int read_pid(int guard) {
    char text[16] = "";
    ssize_t length = pread(guard, text, sizeof(text) - 1, 0);
    return length > 0 ? atoi(text) : 0;
}

static void write_pid(int guard) {
    char text[16];
    int length = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    /* The number only serves a message: without it the message is shorter. */
    if (ftruncate(guard, 0) || pwrite(guard, text, (size_t)length, 0) != length)
        (void)!ftruncate(guard, 0);
}

int db__guard_take(const char *path, bool shared, int *out, int *pid) {
    char name[4096];
    if (snprintf(name, sizeof(name), "%s.lock", path) >= (int)sizeof(name))
        return -ENAMETOOLONG;
    int flags = shared ? O_RDONLY : O_RDWR | O_CREAT;
    int guard = open(name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (guard < 0 && errno == ENOENT && shared) {
        *out = -1;
        return 0;
    }
    if (guard < 0)
        return -errno;
    if (flock(guard, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) {
        if (!shared)
            write_pid(guard);
        *out = guard;
        return 0;
    }
    int error = errno;
    if (error == EWOULDBLOCK) {
        error = EBUSY;
        /* A shared lock is granted if the holders only read: then the number is not theirs. */
        *pid = flock(guard, LOCK_SH | LOCK_NB) ? read_pid(guard) : 0;
    }
    close(guard);
    return -error;
}

void db__guard_release(int guard, bool shared) {
    if (guard < 0)
        return;
    if (!shared)
        (void)!ftruncate(guard, 0);
    close(guard);
}
