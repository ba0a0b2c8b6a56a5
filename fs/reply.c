/*
 * reply.c - answers: now, after the commit, or after the flush.
 *
 * What the kernel says to an answer is of interest only when a file was opened: if nobody takes the handle, no RELEASE
 * will come for it.
 */
#include "reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flusher.h"
#include "fs.h"
#include "handle.h"

/* Returns what the kernel says: 0 or a negative errno. */
static int send(const struct reply *reply) {
    switch (reply->kind) {
    case REPLY_ERROR:
        return fuse_reply_err(reply->req, -reply->error);
    case REPLY_ENTRY:
        return fuse_reply_entry(reply->req, &reply->entry);
    case REPLY_ATTRIBUTES:
        return fuse_reply_attr(reply->req, &reply->entry.attr, reply->entry.attr_timeout);
    case REPLY_OPENED:
        return fuse_reply_open(reply->req, &reply->file);
    case REPLY_CREATED:
        return fuse_reply_create(reply->req, &reply->entry, &reply->file);
    case REPLY_WRITTEN:
        return fuse_reply_write(reply->req, (size_t)reply->number);
    case REPLY_BYTES:
        return fuse_reply_buf(reply->req, reply->bytes, reply->length);
    case REPLY_OFFSET:
        return fuse_reply_lseek(reply->req, reply->number);
    }
    return -EINVAL;
}

void reply_send(struct reply *reply, int error) {
    if (error < 0)
        fuse_reply_err(reply->req, -error);
    else
        send(reply);
    free(reply);
}

static void end_committed(struct fs *fs, struct reply *reply) {
    struct handle *handle = reply->handle;

    if (reply->durable) {
        flusher_add(fs->flusher, reply, fs->ticket);
        return;
    }
    if (send(reply) == -ENOENT && handle)
        handle_orphan(fs, handle);
    free(reply);
}

static void end(struct fs *fs, struct outcome *outcome, enum verdict verdict, int error) {
    struct reply *reply = (struct reply *)outcome;

    if (verdict == BATCH_COMMITTED) {
        end_committed(fs, reply);
        return;
    }
    /* The engine has taken back what it opened. */
    if (reply->handle) {
        handle_forget(reply->handle);
        reply->changed = true;
    }
    if (verdict == BATCH_UNDONE) {
        fuse_reply_none(reply->req);
        free(reply);
        return;
    }
    /* After an I/O error, what does not speak of the batch's changes is as good as before. */
    reply_send(reply, verdict == BATCH_REFUSED || reply->changed || reply->durable ? error : 0);
}

/* These may mean that the engine gave the batch up: nothing in it is true then. */
static bool is_suspect(const struct reply *reply) {
    return reply->kind == REPLY_ERROR && (reply->error == -ENOSPC || reply->error == -ENOMEM || reply->error == -EIO);
}

static void answer(struct fs *fs, const struct reply *draft, const void *bytes) {
    struct reply *reply;
    bool promised = spool_promised(fs->spool) || draft->durable;
    bool changed = spool_changed(fs->spool) && fs->batch.binding;
    bool suspect = is_suspect(draft);

    if (!promised && !changed && !suspect && !draft->handle) {
        if (draft->kind == REPLY_BYTES)
            fuse_reply_buf(draft->req, bytes, draft->length);
        else
            send(draft);
        return;
    }
    reply = malloc(sizeof *reply + draft->length);
    if (!reply) {
        fuse_reply_err(draft->req, ENOMEM);
        if (draft->handle)
            handle_forget(draft->handle);
        batch_fail(fs);
        return;
    }
    *reply = *draft;
    if (draft->length > 0)
        memcpy(reply->bytes, bytes, draft->length);
    reply->outcome.end = end;
    reply->durable = promised;
    reply->changed = changed;
    fs->batch.suspect |= suspect;
    batch_defer(fs, &reply->outcome, true);
}

void reply_error(struct fs *fs, fuse_req_t req, int error) {
    answer(fs, &(struct reply){.req = req, .kind = REPLY_ERROR, .error = error}, NULL);
}

void reply_synced(struct fs *fs, fuse_req_t req, int error) {
    answer(fs, &(struct reply){.req = req, .kind = REPLY_ERROR, .error = error, .durable = error == 0}, NULL);
}

void reply_entry(struct fs *fs, fuse_req_t req, const struct fuse_entry_param *entry) {
    answer(fs, &(struct reply){.req = req, .kind = REPLY_ENTRY, .entry = *entry}, NULL);
}

void reply_attributes(struct fs *fs, fuse_req_t req, const struct fuse_entry_param *entry) {
    answer(fs, &(struct reply){.req = req, .kind = REPLY_ATTRIBUTES, .entry = *entry}, NULL);
}

void reply_opened(struct fs *fs, fuse_req_t req, const struct fuse_file_info *file, struct handle *handle) {
    answer(fs, &(struct reply){.req = req, .kind = REPLY_OPENED, .file = *file, .handle = handle}, NULL);
}

void reply_created(struct fs *fs, fuse_req_t req, const struct fuse_entry_param *entry,
                   const struct fuse_file_info *file, struct handle *handle) {
    answer(fs, &(struct reply){.req = req, .kind = REPLY_CREATED, .entry = *entry, .file = *file, .handle = handle},
           NULL);
}

void reply_written(struct fs *fs, fuse_req_t req, size_t bytes) {
    answer(fs, &(struct reply){.req = req, .kind = REPLY_WRITTEN, .number = (int64_t)bytes}, NULL);
}

void reply_bytes(struct fs *fs, fuse_req_t req, const void *bytes, size_t length) {
    answer(fs, &(struct reply){.req = req, .kind = REPLY_BYTES, .length = length}, bytes);
}

void reply_offset(struct fs *fs, fuse_req_t req, int64_t offset) {
    answer(fs, &(struct reply){.req = req, .kind = REPLY_OFFSET, .number = offset}, NULL);
}

void reply_nothing(fuse_req_t req) {
    fuse_reply_none(req);
}

void reply_refused(fuse_req_t req, int error) {
    fuse_reply_err(req, -error);
}

void reply_ready(fuse_req_t req, unsigned events) {
    fuse_reply_poll(req, events);
}

void reply_space(fuse_req_t req, const struct statvfs *space) {
    fuse_reply_statfs(req, space);
}

void reply_attribute_bytes(fuse_req_t req, size_t bytes) {
    fuse_reply_xattr(req, bytes);
}
