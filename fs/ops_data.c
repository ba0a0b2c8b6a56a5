/*
 * ops_data.c - what is in files: read and write.
 *
 * Contents in memory are served at once. Those that are files are the pool's: a write takes the buffer of its request
 * along.
 */
#include "ops.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "fs.h"
#include "log.h"
#include "reply.h"
#include "request.h"
#include "work.h"

static void free_work(struct fs *fs, struct task *task) {
    (void)fs;
    free(work_of_task(task));
}

/* --- read --------------------------------------------------------------------------------------------------------- */

struct reading {
    struct work work;
    struct spool_reader *reader; /* NULL: read back what `writer` has written */
    struct spool_writer *writer;
    int64_t number;
    int64_t offset;
    size_t size;
    ssize_t result;
    char bytes[];
};

static void read_text(struct fs *fs, fuse_req_t req, const struct handle *handle, size_t size, off_t offset) {
    size_t rest = offset < (off_t)handle->text_length ? handle->text_length - (size_t)offset : 0;

    reply_bytes(fs, req, rest ? handle->text + offset : NULL, rest < size ? rest : size);
}

static void answer_read(struct fs *fs, fuse_req_t req, ssize_t result, const char *bytes) {
    if (result < 0)
        reply_error(fs, req, (int)result);
    else
        reply_bytes(fs, req, bytes, (size_t)result);
}

static void run_reading(struct job *job) {
    struct reading *reading = (struct reading *)work_of_job(job);

    reading->result = reading->reader
                          ? spool_read(reading->reader, reading->bytes, reading->size, reading->offset)
                          : spool_read_back(reading->writer, reading->bytes, reading->size, reading->offset);
}

static void end_reading(struct fs *fs, struct task *task) {
    struct reading *reading = (struct reading *)work_of_task(task);

    if (reading->result == -EIO)
        log_line(LOG_ERR, "Message %" PRId64 " cannot be read, or does not match its checksum.", reading->number);
    answer_read(fs, reading->work.req, reading->result, reading->bytes);
}

/* A content that is a file. */
static void read_later(struct fs *fs, fuse_req_t req, const struct reading *what, int64_t key) {
    struct reading *reading = malloc(sizeof *reading + what->size);

    if (!reading) {
        reply_error(fs, req, -ENOMEM);
        return;
    }
    *reading = *what;
    reading->work.job = (struct job){.run = run_reading, .key = key, .bytes = what->size};
    reading->work.task = (struct task){.run = end_reading, .end = free_work};
    reading->work.req = req;
    work_defer(fs, &reading->work);
}

static void read_file(struct fs *fs, fuse_req_t req, struct handle *handle, size_t size, off_t offset) {
    struct reading what = {.reader = handle->reader, .number = handle->number, .offset = offset, .size = size};

    if (spool_reader_blocks(handle->reader))
        read_later(fs, req, &what, spool_reader_key(handle->reader));
    else
        answer_read(fs, req, spool_read(handle->reader, fs->page, size, offset), fs->page);
}

static void read_back(struct fs *fs, fuse_req_t req, struct handle *handle, size_t size, off_t offset) {
    struct reading what = {.writer = handle->writer, .number = handle->number, .offset = offset, .size = size};

    if (spool_writer_blocks(handle->writer))
        read_later(fs, req, &what, spool_writer_key(handle->writer));
    else
        answer_read(fs, req, spool_read_back(handle->writer, fs->page, size, offset), fs->page);
}

void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *file) {
    struct fs *fs = fuse_req_userdata(req);
    struct handle *handle = handle_of(file);

    (void)ino;
    if (size > sizeof fs->page)
        size = sizeof fs->page;
    if (handle->text)
        read_text(fs, req, handle, size, offset);
    else if (handle->writer && spool_has_written(handle->writer))
        read_back(fs, req, handle, size, offset);
    else if (handle->reader)
        read_file(fs, req, handle, size, offset);
    else
        reply_error(fs, req, -EBADF);
}

/* --- write -------------------------------------------------------------------------------------------------------- */

struct writing {
    struct work work;
    struct handle *handle;
    struct request *request; /* whose buffer holds the bytes */
    void *buffer;            /* that buffer, once it is ours */
    const char *bytes;
    size_t size;
    int64_t offset;
    int result;
};

static void run_writing(struct job *job) {
    struct writing *writing = (struct writing *)work_of_job(job);

    writing->result = spool_write(writing->handle->writer, writing->bytes, writing->size, writing->offset);
}

static void begin_writing(struct fs *fs, struct work *work) {
    struct writing *writing = (struct writing *)work;

    (void)fs;
    writing->buffer = request_take_buffer(writing->request);
}

static void answer_write(struct fs *fs, fuse_req_t req, int result, size_t size) {
    if (result < 0)
        reply_error(fs, req, result);
    else
        reply_written(fs, req, size);
}

static void end_writing(struct fs *fs, struct task *task) {
    struct writing *writing = (struct writing *)work_of_task(task);

    answer_write(fs, writing->work.req, writing->result, writing->size);
}

static void free_writing(struct fs *fs, struct task *task) {
    struct writing *writing = (struct writing *)work_of_task(task);

    (void)fs;
    free(writing->buffer);
    free(writing);
}

static void write_later(struct fs *fs, fuse_req_t req, struct handle *handle, const char *bytes, size_t size,
                        int64_t offset) {
    struct writing *writing = calloc(1, sizeof *writing);

    if (!writing) {
        batch_fail(fs);
        reply_error(fs, req, -ENOMEM);
        return;
    }
    writing->work.job = (struct job){.run = run_writing, .key = spool_writer_key(handle->writer), .bytes = size};
    writing->work.task = (struct task){.run = end_writing, .end = free_writing};
    writing->work.begin = begin_writing;
    writing->work.req = req;
    writing->handle = handle;
    writing->request = request_of(fs->batch.running);
    writing->bytes = bytes;
    writing->size = size;
    writing->offset = offset;
    work_defer(fs, &writing->work);
}

static void write_file(struct fs *fs, fuse_req_t req, struct handle *handle, const char *bytes, size_t size,
                       int64_t offset) {
    int result = batch_bind(fs);

    if (result == 0)
        result = spool_admit_write(handle->writer, size, &offset);
    if (result < 0) {
        reply_error(fs, req, result);
        return;
    }
    handle->wrote = handle->unfinished = true;
    if (handle->entry.size_bytes < offset + (int64_t)size)
        handle->entry.size_bytes = offset + (int64_t)size;
    witness_write(&handle->witness, fuse_req_ctx(req)->pid);
    if (spool_writer_blocks(handle->writer))
        write_later(fs, req, handle, bytes, size, offset);
    else
        answer_write(fs, req, spool_write(handle->writer, bytes, size, offset), size);
}

static void write_control(struct fs *fs, fuse_req_t req, struct node node, struct handle *handle, const char *bytes,
                          size_t size) {
    int result = batch_bind(fs);

    if (result == 0)
        result = control_write(fs, node, handle, bytes, size);
    answer_write(fs, req, result, size);
}

void op_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
              struct fuse_file_info *file) {
    struct fs *fs = fuse_req_userdata(req);
    struct handle *handle = handle_of(file);

    if (handle->text)
        write_control(fs, req, node_of(ino), handle, bytes, size);
    else if (!handle->writer)
        reply_error(fs, req, -EBADF);
    else
        write_file(fs, req, handle, bytes, size, offset);
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

/* Files have no holes. */
void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, struct fuse_file_info *file) {
    struct fs *fs = fuse_req_userdata(req);
    int64_t size = handle_size(fs, handle_of(file));

    (void)ino;
    if (whence != SEEK_DATA && whence != SEEK_HOLE)
        reply_error(fs, req, -EINVAL);
    else if (offset >= size)
        reply_error(fs, req, -ENXIO);
    else
        reply_offset(fs, req, whence == SEEK_DATA ? offset : size);
}

/* Ordinary files are always ready. Programs that poll every file they open must not wait. */
void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file, struct fuse_pollhandle *waiting) {
    unsigned ready = POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;

    (void)ino;
    if (waiting)
        fuse_pollhandle_destroy(waiting);
    reply_ready(req, file->poll_events ? file->poll_events & ready : ready);
}
