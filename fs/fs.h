/*
 * fs.h - the state of one mount, shared by the files of this folder. All of it is the loop's; other threads see what
 * their own headers say.
 */
#ifndef FS_H
#define FS_H

#include "batch.h"
#include "flusher.h"
#include "handle.h"
#include "notice.h"
#include "overwrite.h"
#include "pool.h"
#include "serve.h"

#define FS_WRITE_MAX_BYTES (256 * 1024) /* of one request, reads too */
#define FS_SECOND_NS INT64_C(1000000000)

struct parked;

struct fs {
    struct spool *spool;
    struct fuse_session *session;
    bool read_only;

    struct spool_time now; /* of the running task */
    int frozen;            /* the error of everything that changes something, or 0: see batch_bind() */
    struct batch batch;
    uint64_t ticket; /* of the last commit */
    bool unsaved;    /* something was committed since the last checkpoint */
    bool complained; /* the last commit failed */

    struct handles handles;
    struct overwrites overwrites;
    struct notices notices;
    struct parked *parked; /* a rename that waits for a last close; NULL: none */
    bool released;         /* a file was closed since it was tried */

    struct pool *pool;
    struct flusher *flusher;
    char page[FS_WRITE_MAX_BYTES]; /* for an answer that is being put together */
};

struct spool_time fs_time(void);
int64_t fs_boot_ns(void);
/* Who asks. In a directory with the set-group-ID bit, what is made gets the directory's group. */
struct spool_caller fs_caller(fuse_req_t req);
struct spool_caller fs_creator(fuse_req_t req, const struct spool_entry *parent);

#endif
