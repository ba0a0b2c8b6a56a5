/*
 * ops_open.c - from open to close.
 *
 * Who writes only does so past the page cache (each write to a cached file costs a question for its capabilities);
 * who may want to map a new file does not. Reading needs no FLUSH.
 *
 * RELEASE is the last close, and where a file is published. Nobody waits for its answer.
 */
#include "ops.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "control.h"
#include "fs.h"
#include "log.h"
#include "reply.h"
#include "work.h"

static bool wants_to_write(const struct fuse_file_info *file) {
    return (file->flags & O_ACCMODE) != O_RDONLY || file->flags & O_TRUNC;
}

static void describe_file(struct fuse_file_info *file, struct handle *handle) {
    file->fh = (uint64_t)(uintptr_t)handle;
    /* What is written to a message that exists is seen by others from the last close on: the page cache knows no such
     * difference. */
    file->direct_io = handle->text || (file->flags & O_ACCMODE) == O_WRONLY || (handle->writer && !handle->is_new);
    file->noflush = !handle->writer;
}

/* --- open --------------------------------------------------------------------------------------------------------- */

/* Of a file that is open for writing as well: it sees what has been written by now. */
static int open_reader(struct fs *fs, struct handle *handle, int flags) {
    if ((flags & O_ACCMODE) != O_RDWR)
        return 0;
    return spool_open_reader(fs->spool, handle->number, &handle->reader);
}

static int open_to_read(struct fs *fs, int64_t number, struct handle **out) {
    struct spool_entry entry;
    struct spool_reader *reader;
    struct handle *handle;
    int result = spool_stat(fs->spool, number, &entry);

    if (result == 0)
        result = spool_open_reader(fs->spool, number, &reader);
    if (result == -EIO && !spool_broken(fs->spool))
        log_line(LOG_ERR, "Message %" PRId64 " does not match its checksum; it is put into dead/.", number);
    if (result < 0)
        return result;
    handle = handle_new(fs, &entry);
    if (!handle) {
        spool_close_reader(reader);
        return -ENOMEM;
    }
    handle->reader = reader;
    *out = handle;
    return 0;
}

static int give_up(struct handle *handle, int result) {
    if (handle)
        handle_forget(handle);
    return result < 0 ? result : -ENOMEM;
}

/* The handle of a writer. When there can be none, the writer is closed; a file that was just made is `abandoned`. */
static int handle_for_writer(struct fs *fs, const struct spool_entry *entry, struct spool_writer *writer, int flags,
                             bool abandoned, struct handle **out) {
    struct handle *handle = handle_new(fs, entry);
    int result = handle ? open_reader(fs, handle, flags) : -ENOMEM;

    if (result < 0) {
        spool_close_writer(writer, abandoned);
        return give_up(handle, result);
    }
    handle->writer = writer;
    *out = handle;
    return 0;
}

/* Truncate what was opened in place: the caller has a descriptor of this very message. */
static int empty(struct spool_writer *writer) {
    int result = spool_admit_resize(writer, 0);

    return result < 0 ? result : spool_resize(writer, 0);
}

/* An open with O_TRUNC, which may be sent away to another file of that name: see overwrite.h. */
static int open_truncating(struct fs *fs, fuse_req_t req, int64_t number, bool append, struct spool_entry *entry,
                           struct spool_writer **writer) {
    pid_t thread = fuse_req_ctx(req)->pid;
    enum overwrite_case found = overwrite_judge(fs, thread, number);
    int result;

    if (found == OVERWRITE_AWAY)
        return -ESTALE;
    result = spool_open_writer(fs->spool, number, found == OVERWRITE_FRESH, append, fs_caller(req), entry, writer);
    if (result == -ESTALE && overwrite_is_sent(fs, thread))
        return spool_open_writer(fs->spool, entry->number, true, append, fs_caller(req), entry, writer);
    if (result == -ESTALE)
        overwrite_remember(fs, thread, number, entry->number);
    if (result < 0 || found == OVERWRITE_FRESH)
        return result;
    result = empty(*writer);
    if (result < 0)
        spool_close_writer(*writer, false);
    return result;
}

static int open_to_write(struct fs *fs, fuse_req_t req, int64_t number, int flags, struct handle **out) {
    bool truncate = flags & O_TRUNC, append = flags & O_APPEND;
    struct spool_entry entry;
    struct spool_writer *writer;
    struct handle *handle;
    int result = truncate ? open_truncating(fs, req, number, append, &entry, &writer)
                          : spool_open_writer(fs->spool, number, false, append, fs_caller(req), &entry, &writer);

    if (result < 0)
        return result;
    result = handle_for_writer(fs, &entry, writer, flags, false, &handle);
    if (result < 0)
        return result;
    overwrite_arrived(fs, fuse_req_ctx(req)->pid, number);
    handle->is_new = entry.state == SPOOL_OPEN;
    handle->wrote = handle->unfinished = truncate;
    if (truncate)
        handle->entry.size_bytes = 0;
    *out = handle;
    return 0;
}

static int open_node(struct fs *fs, fuse_req_t req, struct node node, struct fuse_file_info *file,
                     struct handle **out) {
    bool write = wants_to_write(file);
    int result = write ? batch_bind(fs) : 0;

    if (result < 0)
        return result;
    if (node.kind == NODE_STATISTICS && write)
        return -EPERM;
    if (node.kind != NODE_ENTRY)
        return control_open(fs, node, out);
    return write ? open_to_write(fs, req, node.number, file->flags, out) : open_to_read(fs, node.number, out);
}

void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file) {
    struct fs *fs = fuse_req_userdata(req);
    struct handle *handle;
    int result = open_node(fs, req, node_of(ino), file, &handle);

    if (result < 0) {
        reply_error(fs, req, result == -ENOENT ? -ESTALE : result);
        return;
    }
    describe_file(file, handle);
    reply_opened(fs, req, file, handle);
}

/* --- create ------------------------------------------------------------------------------------------------------- */

static int create(struct fs *fs, fuse_req_t req, struct node parent, const char *name, mode_t mode, int flags,
                  struct handle **out) {
    struct spool_entry directory, entry;
    struct spool_writer *writer;
    struct handle *handle;
    int result = batch_bind(fs);

    if (result == 0 && (parent.kind != NODE_ENTRY || control_is_entry(fs, parent.number, name)))
        result = -EPERM;
    if (result == 0)
        result = spool_stat(fs->spool, parent.number, &directory);
    if (result == 0)
        result = spool_create(fs->spool, parent.number, name, mode & 0777, flags & O_EXCL, fs_creator(req, &directory),
                              &entry, &writer);
    if (result < 0)
        return result;
    result = handle_for_writer(fs, &entry, writer, flags, true, &handle);
    if (result < 0)
        return result;
    handle->is_new = true;
    *out = handle;
    return 0;
}

void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *file) {
    struct fs *fs = fuse_req_userdata(req);
    struct fuse_entry_param entry;
    struct handle *handle;
    int result = create(fs, req, node_of(parent), name, mode, file->flags, &handle);

    if (result < 0) {
        reply_error(fs, req, result);
        return;
    }
    entry = node_describe(&handle->entry);
    describe_file(file, handle);
    reply_created(fs, req, &entry, file, handle);
}

/* --- close -------------------------------------------------------------------------------------------------------- */

/* Closing, until it is committed. When that fails the file is open again for the engine, and nobody is left to
 * close it. */
struct closing {
    struct outcome outcome;
    struct handle *handle;
};

static void end_closing(struct fs *fs, struct outcome *outcome, enum verdict verdict, int error) {
    struct closing *closing = (struct closing *)outcome;

    (void)error;
    if (verdict == BATCH_REFUSED || verdict == BATCH_UNKNOWN)
        handle_orphan(fs, closing->handle);
    else if (verdict != BATCH_UNDONE)
        handle_forget(closing->handle);
    free(closing);
}

static void close_handle(struct fs *fs, struct handle *handle) {
    struct closing *closing = calloc(1, sizeof *closing);

    if (!closing) {
        batch_fail(fs);
        handle_orphan(fs, handle);
        return;
    }
    closing->outcome.end = end_closing;
    closing->handle = handle;
    spool_close_reader(handle->reader);
    /* An error has nobody to go to: FLUSH told what there was to tell, and if nothing can be written any more the
     * next mount takes it from there. */
    if (handle->writer)
        spool_close_writer(handle->writer, handle->witness.verdict != WITNESS_ORDERLY);
    fs->released = true;
    batch_defer(fs, &closing->outcome, false);
}

/* --- what was written after the last flush (through a mapping) is brought to the disk first, if it is a file ------ */

struct settling {
    struct work work;
    struct handle *handle;
    int result;
};

static void settle(struct job *job) {
    struct settling *settling = (struct settling *)work_of_job(job);

    settling->result = spool_settle(settling->handle->writer);
}

static void store_and_close(struct fs *fs, struct task *task) {
    struct settling *settling = (struct settling *)work_of_task(task);
    int result = settling->result;

    if (result == 0 && spool_writer_dirty(settling->handle->writer))
        result = spool_store(settling->handle->writer, true);
    if (result < 0)
        settling->handle->witness.verdict = WITNESS_KILLED;
    close_handle(fs, settling->handle);
}

static void refuse_settling(struct fs *fs, struct work *work, int error) {
    (void)error;
    handle_orphan(fs, ((struct settling *)work)->handle);
}

static void free_settling(struct fs *fs, struct task *task) {
    (void)fs;
    free(work_of_task(task));
}

static void settle_and_close(struct fs *fs, struct handle *handle) {
    struct settling *settling = calloc(1, sizeof *settling);

    if (!settling) {
        handle_orphan(fs, handle);
        return;
    }
    settling->work.job.run = settle;
    settling->work.job.key = spool_writer_key(handle->writer);
    settling->work.task = (struct task){.run = store_and_close, .end = free_settling};
    settling->work.refuse = refuse_settling;
    settling->handle = handle;
    work_defer(fs, &settling->work);
}

static void release(struct fs *fs, struct handle *handle) {
    if (handle->writer && spool_writer_dirty(handle->writer) && spool_writer_blocks(handle->writer))
        settle_and_close(fs, handle);
    else
        close_handle(fs, handle);
}

void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file) {
    struct fs *fs = fuse_req_userdata(req);

    (void)ino;
    release(fs, handle_of(file));
    reply_refused(req, 0);
}

/* --- files that nobody will close --------------------------------------------------------------------------------- */

struct orphan_task {
    struct task task;
    struct handle *handle;
};

static void run_orphan(struct fs *fs, struct task *task) {
    release(fs, ((struct orphan_task *)task)->handle);
}

static void end_orphan(struct fs *fs, struct task *task) {
    (void)fs;
    free(task);
}

void close_orphans(struct fs *fs) {
    while (fs->handles.orphans) {
        struct orphan_task *orphan = calloc(1, sizeof *orphan);

        if (!orphan)
            return;
        orphan->task = (struct task){.run = run_orphan, .end = end_orphan};
        orphan->handle = handle_adopt(fs);
        batch_run(fs, &orphan->task);
    }
}

/* Unmounted, every file had been closed, and the kernel has dropped its word of that on the way. Otherwise they
 * are open, unless they were flushed just now: the same line that recovery after a crash draws. What was not
 * flushed is not finished in any case. */
void close_all(struct fs *fs, bool unmounted) {
    int64_t lingering_ns = fs_boot_ns() - SPOOL_LINGER_NS;

    for (unsigned i = 0; i < HANDLE_BUCKETS; i++)
        while (fs->handles.bucket[i]) {
            struct handle *handle = fs->handles.bucket[i];

            if (handle->unfinished || (!unmounted && handle->flushed_boot_ns < lingering_ns))
                handle->witness.verdict = WITNESS_KILLED;
            handle_orphan(fs, handle);
        }
    close_orphans(fs);
}
