/*
 * reply.h - the only door back to the kernel.
 *
 * An answer leaves when it is true. If nothing has been changed in the open batch (closes aside, see batch.h), that
 * is at once; else when the batch is committed; and if it is a promise of durability (spool_promised()) when the
 * flusher has made it so. Errors are those of the engine, negative; this is the one place that turns them into what
 * the kernel gets.
 */
#ifndef REPLY_H
#define REPLY_H

#include <sys/statvfs.h>

#include "batch.h"
#include "serve.h"

struct handle;

/* An answer that waits. */
struct reply {
    struct outcome outcome;
    struct reply *next;
    uint64_t ticket;
    fuse_req_t req;
    enum reply_kind {
        REPLY_ERROR,
        REPLY_ENTRY,
        REPLY_ATTRIBUTES,
        REPLY_OPENED,
        REPLY_CREATED,
        REPLY_WRITTEN,
        REPLY_BYTES,
        REPLY_OFFSET,
    } kind;
    bool durable;
    bool changed;          /* it speaks of what the batch has changed */
    int error;             /* REPLY_ERROR: 0 or negative */
    struct handle *handle; /* REPLY_OPENED, REPLY_CREATED */
    struct fuse_entry_param entry;
    struct fuse_file_info file;
    int64_t number; /* bytes written, or offset */
    size_t length;
    char bytes[];
};

void reply_error(struct fs *fs, fuse_req_t req, int error);
/* As reply_error(), but a success waits for stable storage in any case. */
void reply_synced(struct fs *fs, fuse_req_t req, int error);
void reply_entry(struct fs *fs, fuse_req_t req, const struct fuse_entry_param *entry);
/* The attributes in `entry`, and their timeout. */
void reply_attributes(struct fs *fs, fuse_req_t req, const struct fuse_entry_param *entry);
/* If the batch is not committed, or the caller is gone, the handle is disposed of. */
void reply_opened(struct fs *fs, fuse_req_t req, const struct fuse_file_info *file, struct handle *handle);
void reply_created(struct fs *fs, fuse_req_t req, const struct fuse_entry_param *entry,
                   const struct fuse_file_info *file, struct handle *handle);
void reply_written(struct fs *fs, fuse_req_t req, size_t bytes);
void reply_bytes(struct fs *fs, fuse_req_t req, const void *bytes, size_t length);
void reply_offset(struct fs *fs, fuse_req_t req, int64_t offset);

/* Answers that the engine has no part in. */
void reply_nothing(fuse_req_t req); /* to a request that will be run again */
void reply_refused(fuse_req_t req, int error);
void reply_ready(fuse_req_t req, unsigned events);
void reply_space(fuse_req_t req, const struct statvfs *space);
void reply_attribute_bytes(fuse_req_t req, size_t bytes);

/* Any thread: send an answer that waited, or `error` instead unless it is 0, and free it. */
void reply_send(struct reply *reply, int error);

#endif
