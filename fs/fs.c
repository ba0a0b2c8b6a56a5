/*
 * fs.c - the state of a mount, and who and when.
 */
#include "fs.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

struct fs *fs_new(struct spool *spool, const struct serve_options *options) {
    struct fs *fs = calloc(1, sizeof *fs);

    if (!fs)
        return NULL;
    fs->spool = spool;
    fs->read_only = options->read_only;
    batch_init(&fs->batch);
    return fs;
}

void fs_free(struct fs *fs) {
    free(fs);
}

static int64_t read_clock(clockid_t clock) {
    struct timespec time;

    clock_gettime(clock, &time);
    return time.tv_sec * FS_SECOND_NS + time.tv_nsec;
}

struct spool_time fs_time(void) {
    return (struct spool_time){.wall_ns = read_clock(CLOCK_REALTIME), .boot_ns = read_clock(CLOCK_BOOTTIME)};
}

int64_t fs_boot_ns(void) {
    return read_clock(CLOCK_BOOTTIME);
}

struct spool_caller fs_caller(fuse_req_t req) {
    const struct fuse_ctx *context = fuse_req_ctx(req);

    return (struct spool_caller){.uid = context->uid, .gid = context->gid};
}

struct spool_caller fs_creator(fuse_req_t req, const struct spool_entry *parent) {
    struct spool_caller caller = fs_caller(req);

    if (parent->mode & S_ISGID)
        caller.gid = parent->gid;
    return caller;
}
