/* The two protocols that queue_bench compares, as one table of operations on a process's own queue.
 *
 *   operation     spoolfs                            maildir
 *   publish       create q/m, write, close           create tmp/m, write, fsync, close, rename to new/m, fsync new
 *   claim         rename q/m to q/claimed/w/m        rename new/m to cur/m, fsync cur
 *   acknowledge   unlink q/claimed/w/m               unlink cur/m, fsync cur
 *   forward       rename to the other queue          rename to the other new/, fsync both directories
 *
 * The first also runs in an ordinary directory, without its promise of durability: what the client itself costs.
 * Paths are relative to the working directory. Every operation returns 0, or -1 after a sentence on stderr. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIRS_MAX = 4, PATH_BYTES = 64 };

/* One process's own queue: its directories, and the two that the maildir protocol flushes (else -1). */
struct queue {
    char root[PATH_BYTES];
    char waiting[PATH_BYTES];
    char leased[PATH_BYTES];
    int waiting_fd;
    int leased_fd;
    const char *payload;
    size_t payload_bytes;
};

struct peer {
    const char *name;
    const char *dirs[DIRS_MAX];
    const char *waiting;
    const char *leased;
    bool flushes_directories;
    int (*publish)(const struct queue *q, const char *name);
    int (*claim)(const struct queue *q, const char *name);
    int (*acknowledge)(const struct queue *q, const char *name);
    int (*forward)(const struct queue *from, const struct queue *to, const char *name);
};

static int failed(const char *what, const char *path) {
    fprintf(stderr, "queue_bench: %s %s: %s\n", what, path, strerror(errno));
    return -1;
}

static void join(char out[2 * PATH_BYTES], const char *dir, const char *name) {
    snprintf(out, 2 * PATH_BYTES, "%s/%s", dir, name);
}

static int move(const char *from_dir, const char *to_dir, const char *name) {
    char from[2 * PATH_BYTES], to[2 * PATH_BYTES];
    join(from, from_dir, name);
    join(to, to_dir, name);
    return rename(from, to) ? failed("rename", from) : 0;
}

static int flush(int fd, const char *path) {
    return fsync(fd) ? failed("fsync", path) : 0;
}

static int write_new(const struct queue *q, const char *path, bool flushed) {
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0) {
        return failed("create", path);
    }
    int rc = 0;
    if (write(fd, q->payload, q->payload_bytes) != (ssize_t)q->payload_bytes) {
        rc = failed("write", path);
    } else if (flushed) {
        rc = flush(fd, path);
    }
    if (close(fd) && !rc) {
        rc = failed("close", path);
    }
    return rc;
}

static int remove_leased(const struct queue *q, const char *name) {
    char path[2 * PATH_BYTES];
    join(path, q->leased, name);
    return unlink(path) ? failed("unlink", path) : 0;
}

static int spoolfs_publish(const struct queue *q, const char *name) {
    char path[2 * PATH_BYTES];
    join(path, q->waiting, name);
    return write_new(q, path, false);
}

static int spoolfs_claim(const struct queue *q, const char *name) {
    return move(q->waiting, q->leased, name);
}

static int spoolfs_forward(const struct queue *from, const struct queue *to, const char *name) {
    return move(from->leased, to->waiting, name);
}

static int maildir_publish(const struct queue *q, const char *name) {
    char staging[PATH_BYTES + 4], staged[2 * PATH_BYTES];
    snprintf(staging, sizeof staging, "%s/tmp", q->root);
    join(staged, staging, name);
    if (write_new(q, staged, true) || move(staging, q->waiting, name)) {
        return -1;
    }
    return flush(q->waiting_fd, q->waiting);
}

static int maildir_claim(const struct queue *q, const char *name) {
    return move(q->waiting, q->leased, name) ? -1 : flush(q->leased_fd, q->leased);
}

static int maildir_acknowledge(const struct queue *q, const char *name) {
    return remove_leased(q, name) ? -1 : flush(q->leased_fd, q->leased);
}

static int maildir_forward(const struct queue *from, const struct queue *to, const char *name) {
    if (move(from->leased, to->waiting, name) || flush(to->waiting_fd, to->waiting)) {
        return -1;
    }
    return flush(from->leased_fd, from->leased);
}

static const struct peer peers[] = {
    {
        .name = "spoolfs",
        .dirs = {"", "/claimed", "/claimed/w"},
        .waiting = "",
        .leased = "/claimed/w",
        .publish = spoolfs_publish,
        .claim = spoolfs_claim,
        .acknowledge = remove_leased,
        .forward = spoolfs_forward,
    },
    {
        .name = "maildir",
        .dirs = {"", "/tmp", "/new", "/cur"},
        .waiting = "/new",
        .leased = "/cur",
        .flushes_directories = true,
        .publish = maildir_publish,
        .claim = maildir_claim,
        .acknowledge = maildir_acknowledge,
        .forward = maildir_forward,
    },
};

/* The process that opens a queue keeps it until it exits. */
static int queue_open(struct queue *q, const struct peer *peer, size_t payload_bytes, int index) {
    snprintf(q->root, sizeof q->root, "q%d", index);
    snprintf(q->waiting, sizeof q->waiting, "q%d%s", index, peer->waiting);
    snprintf(q->leased, sizeof q->leased, "q%d%s", index, peer->leased);
    q->waiting_fd = q->leased_fd = -1;
    if (peer->flushes_directories) {
        q->waiting_fd = open(q->waiting, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        q->leased_fd = open(q->leased, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (q->waiting_fd < 0 || q->leased_fd < 0) {
            return failed("open", q->root);
        }
    }
    char *payload = malloc(payload_bytes + 1);
    if (!payload) {
        return failed("allocate a payload for", q->root);
    }
    memset(payload, 'x', payload_bytes);
    q->payload = payload;
    q->payload_bytes = payload_bytes;
    return 0;
}

#endif
