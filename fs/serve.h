/*
 * serve.h - the front of the mount as main sees it.
 *
 *     struct fs *fs = fs_new(spool, &options);
 *     struct fuse_session *session = fuse_session_new(&args, &fs_operations, sizeof fs_operations, fs);
 *     ... mount ...
 *     result = serve(fs, session);
 *     ... unmount, destroy the session ...
 *     fs_free(fs);
 *     spool_close(spool);
 *
 * SIGTERM, SIGINT and SIGHUP must be blocked before any thread starts: serve() hears of them through a descriptor. It
 * starts its threads itself and has ended them when it returns. All calls belong to one thread.
 */
#ifndef SERVE_H
#define SERVE_H

#include <stdbool.h>

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "spool.h"

struct fs;

struct serve_options {
    bool read_only; /* whatever changes something is answered EROFS */
};

extern const struct fuse_lowlevel_ops fs_operations;

/* NULL when there is no memory. `spool` stays the caller's and must outlive the result. */
struct fs *fs_new(struct spool *spool, const struct serve_options *options);
/* NULL is fine. */
void fs_free(struct fs *fs);

/*
 * Answer requests until the mount is gone or a signal says so. Then everything that was asked is answered, what is
 * owed to the disk is on it, and all files are closed. Returns 0 or a negative errno (the threads or descriptors
 * could not be made).
 */
int serve(struct fs *fs, struct fuse_session *session);

#endif
