/*
 * ops_flush.c - making it last: FLUSH (somebody closes a descriptor), FSYNC, and FSYNC of a directory.
 *
 * FLUSH is the only answer that a writer gets from close(), so it waits until what was written is on stable storage.
 * It is not the last close: that is RELEASE.
 */
#include "ops.h"

#include <errno.h>
#include <stdlib.h>

#include "fs.h"
#include "reply.h"
#include "work.h"

struct flush {
    struct work work;
    struct handle *handle;
    bool last_here;
    bool always; /* FSYNC: promise durability, even of a staged file */
    int result;
};

static void store(struct fs *fs, fuse_req_t req, struct handle *handle, bool last_here, bool always) {
    int result = spool_store(handle->writer, last_here);

    if (result == 0 && (handle->unfinished || handle->flushed_boot_ns == 0)) {
        handle->unfinished = false;
        handle->flushed_boot_ns = fs->now.boot_ns;
    }
    if (always)
        reply_synced(fs, req, result);
    else
        reply_error(fs, req, result);
}

static void settle(struct job *job) {
    struct flush *flush = (struct flush *)work_of_job(job);

    flush->result = spool_settle(flush->handle->writer);
}

static void finish(struct fs *fs, struct task *task) {
    struct flush *flush = (struct flush *)work_of_task(task);

    int result = batch_bind(fs);

    if (flush->result < 0)
        result = flush->result;
    if (result < 0)
        reply_error(fs, flush->work.req, result);
    else
        store(fs, flush->work.req, flush->handle, flush->last_here, flush->always);
}

static void free_flush(struct fs *fs, struct task *task) {
    (void)fs;
    free(work_of_task(task));
}

static void settle_and_store(struct fs *fs, fuse_req_t req, struct handle *handle, bool last_here, bool always) {
    struct flush *flush = calloc(1, sizeof *flush);

    if (!flush) {
        reply_error(fs, req, -ENOMEM);
        return;
    }
    flush->work.job.run = settle;
    flush->work.job.key = spool_writer_key(handle->writer);
    flush->work.task = (struct task){.run = finish, .end = free_flush};
    flush->work.req = req;
    flush->handle = handle;
    flush->last_here = last_here;
    flush->always = always;
    work_defer(fs, &flush->work);
}

static void save(struct fs *fs, fuse_req_t req, struct handle *handle, bool last_here, bool always) {
    int result = batch_bind(fs);

    if (result < 0)
        reply_error(fs, req, result);
    else if (spool_writer_dirty(handle->writer) && spool_writer_blocks(handle->writer))
        settle_and_store(fs, req, handle, last_here, always);
    else
        store(fs, req, handle, last_here, always);
}

void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file) {
    struct fs *fs = fuse_req_userdata(req);
    struct handle *handle = handle_of(file);
    pid_t thread = fuse_req_ctx(req)->pid;
    bool last_here;

    (void)ino;
    if (handle->is_new || handle->wrote)
        witness_close(&handle->witness, thread);
    if (!handle->writer || handle->witness.verdict != WITNESS_ORDERLY) {
        reply_error(fs, req, 0);
        return;
    }
    last_here = !handle->is_new || handle->wrote || !writer_has_open(thread, handle->number);
    save(fs, req, handle, last_here, false);
}

void op_fsync(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *file) {
    struct fs *fs = fuse_req_userdata(req);
    struct handle *handle = handle_of(file);

    (void)ino, (void)data_only;
    if (handle->writer)
        save(fs, req, handle, true, true);
    else
        reply_synced(fs, req, 0);
}

/* Everything that was answered before lasts when this is answered. */
void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *file) {
    (void)ino, (void)data_only, (void)file;
    reply_synced(fuse_req_userdata(req), req, 0);
}
