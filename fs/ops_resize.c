/*
 * ops_resize.c - truncation, by descriptor and by path, and fallocate.
 *
 * By path there is no open file: a writer is opened for the purpose, and closed when the new length is stored.
 */
#include "ops.h"

#include <errno.h>
#include <linux/falloc.h>
#include <stdlib.h>

#include "fs.h"
#include "reply.h"
#include "work.h"

struct resizing {
    struct work work;
    struct spool_writer *writer;
    struct handle *handle; /* NULL: by path */
    int64_t number;
    int64_t length;
    bool allocate; /* a success is answered without attributes */
    int result;
};

static void note(struct handle *handle, fuse_req_t req, int64_t length) {
    handle->wrote = handle->unfinished = true;
    handle->entry.size_bytes = length;
    witness_write(&handle->witness, fuse_req_ctx(req)->pid);
}

/* The end of both ways, with the writer's content as long as it should be, or `result` < 0. */
static void finish(struct fs *fs, struct resizing *resizing) {
    int result = resizing->result;
    int closed;

    if (resizing->handle) {
        if (result == 0)
            note(resizing->handle, resizing->work.req, resizing->length);
    } else {
        if (result == 0)
            result = spool_store(resizing->writer, true);
        closed = spool_close_writer(resizing->writer, false);
        if (result == 0)
            result = closed;
    }
    if (result < 0 || resizing->allocate)
        reply_error(fs, resizing->work.req, result);
    else
        answer_attributes(fs, resizing->work.req, resizing->number, resizing->handle);
}

static void run_job(struct job *job) {
    struct resizing *resizing = (struct resizing *)work_of_job(job);

    resizing->result = spool_resize(resizing->writer, resizing->length);
    if (resizing->result == 0 && !resizing->handle)
        resizing->result = spool_settle(resizing->writer);
}

static void run_task(struct fs *fs, struct task *task) {
    fs->batch.binding = true;
    finish(fs, (struct resizing *)work_of_task(task));
}

static void free_resizing(struct fs *fs, struct task *task) {
    (void)fs;
    free(work_of_task(task));
}

static void start(struct fs *fs, struct resizing *resizing) {
    struct resizing *later;

    resizing->result = spool_admit_resize(resizing->writer, resizing->length);
    if (resizing->result < 0 || !spool_writer_blocks(resizing->writer)) {
        if (resizing->result == 0)
            resizing->result = spool_resize(resizing->writer, resizing->length);
        finish(fs, resizing);
        return;
    }
    later = malloc(sizeof *later);
    if (!later) {
        resizing->result = -ENOMEM;
        finish(fs, resizing);
        return;
    }
    *later = *resizing;
    later->work.job = (struct job){.run = run_job, .key = spool_writer_key(resizing->writer)};
    later->work.task = (struct task){.run = run_task, .end = free_resizing};
    work_defer(fs, &later->work);
}

static void start_by_path(struct fs *fs, struct resizing *resizing) {
    struct spool_entry entry;
    int result = spool_open_writer(fs->spool, resizing->number, false, false, fs_caller(resizing->work.req), &entry,
                                   &resizing->writer);

    if (result < 0)
        reply_error(fs, resizing->work.req, result == -ENOENT ? -ESTALE : result);
    else
        start(fs, resizing);
}

void resize(struct fs *fs, fuse_req_t req, int64_t number, struct handle *handle, int64_t length) {
    struct resizing resizing = {.work.req = req, .number = number, .length = length};

    if (handle && handle->writer) {
        resizing.handle = handle;
        resizing.writer = handle->writer;
        start(fs, &resizing);
    } else {
        start_by_path(fs, &resizing);
    }
}

void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length, struct fuse_file_info *file) {
    struct fs *fs = fuse_req_userdata(req);
    struct handle *handle = handle_of(file);
    int result = batch_bind(fs);

    (void)ino;
    if (result == 0 && mode != 0 && mode != FALLOC_FL_KEEP_SIZE)
        result = -EOPNOTSUPP;
    if (result == 0 && !handle->writer)
        result = -EOPNOTSUPP;
    if (result < 0 || mode != 0 || offset + length <= handle_size(fs, handle))
        reply_error(fs, req, result);
    else
        start(fs, &(struct resizing){.work.req = req,
                                     .writer = handle->writer,
                                     .handle = handle,
                                     .number = handle->number,
                                     .length = offset + length,
                                     .allocate = true});
}
