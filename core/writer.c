/*
 * writer.c - open-for-writing: which draft a writer's bytes belong to, and when that is decided.
 *
 * Opening a message decides nothing unless it truncates. The first admitted write or truncation does:
 *
 *     file is          write at 0, or truncation to 0     append, or a write further on
 *     staged, held     the same file again                the same file again
 *     open             shared with its other writers      shared
 *     waiting          on_conflict: keep, replace         edit: a copy, in effect at last close
 *     claimed          checkpoint                         checkpoint, of a copy
 */
#include "writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- memory --- */

int spool__new_writer(struct spool *spool, int64_t file, bool append, struct spool_caller caller,
                      const struct message *message, struct spool_writer **out) {
    struct spool_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return -ENOMEM;
    *writer = (struct spool_writer){
        .spool = spool,
        .serial = ++spool->writer_serial,
        .file = file,
        .append = append,
        .caller = caller,
        .opened_as = message->state,
        .claim = message->flushed,
    };
    int rc = spool__later(spool, NULL, free, writer);
    if (rc)
        free(writer);
    else
        *out = writer;
    return rc;
}

/* Nobody gets to see it: it goes with the batch, whichever way that ends. */
int spool__drop_writer(struct spool_writer *writer, int rc) {
    int later = spool__later(writer->spool, free, NULL, writer);
    return rc ? rc : later;
}

struct joining {
    struct spool_writer *writer;
    struct draft *before;
};

static void rejoin(void *what) {
    struct joining *joining = what;
    joining->writer->draft = joining->before;
    free(joining);
}

int spool__join_draft(struct spool_writer *writer, struct draft *draft) {
    struct joining *joining = malloc(sizeof *joining);
    if (!joining)
        return -ENOMEM;
    *joining = (struct joining){writer, writer->draft};
    int rc = spool__later(writer->spool, free, rejoin, joining);
    if (rc) {
        free(joining);
        return rc;
    }
    rc = spool__save_draft(draft);
    if (rc)
        return rc;
    draft->state.writers++;
    writer->draft = draft;
    return 0;
}

int spool__begin_and_join(struct spool_writer *writer, enum draft_kind kind, int64_t number,
                          const struct message *from) {
    struct draft *draft;
    if (number < 0)
        return (int)number;
    int rc = spool__begin_draft(writer->spool, kind, writer->file, number, from, writer->caller, &draft);
    return rc ? rc : spool__join_draft(writer, draft);
}

enum on_conflict spool__conflict_rule(struct spool *spool, int64_t queue) {
    const struct settings *settings;
    return spool__settings(spool, queue, &settings) == 0 ? (enum on_conflict)settings->value[SPOOL_ON_CONFLICT]
                                                         : CONFLICT_KEEP;
}

/* What is written becomes, or may become, a message of its own under the name of this one. */
int spool__begin_beside(struct spool_writer *writer, enum draft_kind kind, const struct message *message) {
    int rc = spool__begin_and_join(writer, kind, spool__number(writer->spool), NULL);
    if (rc)
        return rc;
    struct draft *draft = writer->draft;
    draft->queue = message->queue;
    draft->state.mode = message->mode;
    memcpy(draft->name, message->name, sizeof draft->name);
    return 0;
}

/* The same file is written again: a staged one, or one that is held back. */
int spool__reopen(struct spool_writer *writer, const struct message *old, bool truncate) {
    struct spool *spool = writer->spool;
    struct message message = *old;
    int64_t flushed = spool__number(spool); /* what it holds is what a crash brings back */
    if (flushed < 0)
        return (int)flushed;
    message.state = SPOOL_OPEN;
    message.flushed = flushed;
    message.end_boot_ns = message.end_ns = message.due_ns = 0;
    int rc = spool__update_message(spool, old, &message);
    if (!rc)
        rc = spool__begin_and_join(writer, WRITES_NEW, old->number, truncate ? NULL : old);
    if (rc)
        return rc;
    writer->draft->state.exclusive =
        old->state == SPOOL_HELD; /* mktemp's, most likely: a rename follows this time too */
    writer->draft->state.stored = true;
    writer->draft->state.stored_boot_ns = spool->now.boot_ns;
    return 0;
}

int spool__begin_checkpoint(struct spool_writer *writer, const struct message *message, bool truncate) {
    struct draft *draft = spool__draft_of(writer->spool, message->number, WRITES_CHECKPOINT);
    if (draft)
        return truncate ? spool__truncate_shared(writer, draft) : spool__join_draft(writer, draft);
    return spool__begin_and_join(writer, WRITES_CHECKPOINT, spool__number(writer->spool), truncate ? NULL : message);
}

void spool__mark_begun(struct draft *draft) {
    draft->state.timed = false;
    draft->state.begun = true;
    draft->state.dirty = true;
}

/* A file that others write too is truncated for all of them; not while their writes are on the way to the disk. */
int spool__truncate_shared(struct spool_writer *writer, struct draft *draft) {
    if (content_blocks(&draft->content))
        return -ETXTBSY;
    int rc = spool__draft_error(draft);
    if (!rc)
        rc = spool__join_draft(writer, draft);
    if (!rc)
        rc = spool_admit_resize(writer, 0);
    return rc ? rc : spool_resize(writer, 0);
}

/* --- admitting --- */

/* A first write at the start of a waiting message, by a program that did not ask to truncate it (scp, vsftpd). The writer has this
 * number open, so that the new content keeps it: the older message goes on under a number of its own. */
static int overwrite_in_place(struct spool_writer *writer, const struct message *old) {
    struct spool *spool = writer->spool;
    struct message older = *old, fresh;
    older.number = spool__number(spool);
    if (older.number < 0)
        return (int)older.number;
    int rc = spool__has_room(spool, old->queue, 0, true);
    if (!rc)
        rc = spool__fit_name(spool, old->directory, old->name, 0, older.name);
    if (rc)
        return rc;
    older.ctime_ns = spool->now.wall_ns;
    fresh = *old;
    fresh.state = SPOOL_OPEN;
    fresh.place = spool__number(spool);
    if (fresh.place < 0)
        return (int)fresh.place;
    fresh.content = (struct content_summary){.hash = content_hash_bytes(NULL, 0)};
    fresh.uid = writer->caller.uid;
    fresh.gid = writer->caller.gid;
    fresh.attempts = 0;
    fresh.published_ns = fresh.due_ns = fresh.end_ns = fresh.end_boot_ns = 0;
    fresh.mtime_ns = fresh.ctime_ns = spool->now.wall_ns;
    rc = spool__update_message(spool, old, &fresh);
    if (!rc)
        rc = spool__insert_message(spool, &older);
    return rc ? rc : spool__begin_and_join(writer, WRITES_NEW, old->number, NULL);
}

static int begin_on_waiting(struct spool_writer *writer, const struct message *message, bool overwrites) {
    struct draft *draft = spool__draft_of(writer->spool, message->number, WRITES_EDIT);
    if (draft)
        return spool__join_draft(writer, draft); /* it is being edited already */
    if (!overwrites)
        return spool__begin_and_join(writer, WRITES_EDIT, spool__number(writer->spool), message);
    switch (spool__conflict_rule(writer->spool, message->queue)) {
    case CONFLICT_REPLACE:
        return spool__begin_beside(writer, WRITES_REPLACE, message);
    case CONFLICT_REJECT:
        spool__promise(writer->spool);
        return -EEXIST;
    case CONFLICT_KEEP:
        break;
    }
    return overwrite_in_place(writer, message);
}

/* Decide what this writer's bytes belong to. */
static int begin_writing(struct spool_writer *writer, bool overwrites) {
    struct spool *spool = writer->spool;
    struct message message;
    struct draft *shared;
    int rc = spool__message(spool, writer->file, &message);
    if (rc)
        return rc == -ENOENT ? -ESTALE : rc;
    rc = spool__change(spool);
    if (rc)
        return rc;
    if (writer->opened_as == SPOOL_CLAIMED_STATE)
        return message.state == SPOOL_CLAIMED_STATE && message.flushed == writer->claim
                   ? spool__begin_checkpoint(writer, &message, overwrites)
                   : -ESTALE;
    switch (message.state) {
    case SPOOL_STAGED:
    case SPOOL_HELD:
        return spool__reopen(writer, &message, false);
    case SPOOL_OPEN:
        shared = spool__draft_of(spool, writer->file, WRITES_NEW);
        return shared ? spool__join_draft(writer, shared) : -ESTALE;
    case SPOOL_WAITING:
    case SPOOL_DELAYED:
        return begin_on_waiting(writer, &message, overwrites);
    default:
        return -ESTALE;
    }
}

static int leave(struct draft *draft) {
    int rc = spool__save_draft(draft);
    if (rc || --draft->state.writers > 0)
        return rc;
    return spool__finish_draft(draft);
}

/* This writer and another one both opened a new file to write it from the start, and the other was first to write. */
static int part_ways(struct spool_writer *writer) {
    struct spool *spool = writer->spool;
    struct draft *shared = writer->draft;
    struct message message;
    bool staged = false;
    int rc = spool__message(spool, writer->file, &message);
    if (!rc)
        rc = spool__is_staged(spool, message.directory, message.name, &staged);
    if (rc || staged)
        return rc == -ENOENT ? 0 : rc; /* removed, or staged: as on any file system */
    rc = spool__change(spool);
    if (!rc)
        rc = spool__begin_beside(writer, WRITES_APART, &message);
    return rc ? rc : leave(shared);
}

static bool is_second(const struct spool_writer *writer) {
    const struct draft *draft = writer->draft;
    return writer->fresh && draft && draft->state.kind == WRITES_NEW && draft->state.owner &&
           draft->state.owner != writer->serial;
}

/* The limits on what is written. */
static int check_size(struct spool_writer *writer, int64_t size) {
    struct spool *spool = writer->spool;
    const struct settings *settings;
    struct message message;
    int rc = spool__message(spool, writer->file, &message);
    if (rc)
        return rc == -ENOENT ? 0 : rc; /* removed while it is open: it may be written, and nothing comes of it */
    rc = spool__settings(spool, message.queue, &settings);
    if (rc)
        return rc;
    int64_t limit = settings->value[SPOOL_MAX_SIZE];
    if (limit && size > limit)
        return -EFBIG;
    return spool__free_bytes(spool) < spool->reserve_bytes ? -ENOSPC : 0;
}

static int admit(struct spool_writer *writer, bool overwrites, int64_t size, bool writes) {
    int rc = writer->draft ? 0 : begin_writing(writer, overwrites);
    if (!rc && writes && is_second(writer))
        rc = part_ways(writer);
    if (rc)
        return rc;
    struct draft *draft = writer->draft;
    rc = spool__draft_error(draft);
    if (!rc && draft->state.stored && !draft->state.unsure && !draft->state.gone)
        rc = spool__mark_unsure(draft);
    if (!rc && (!draft->state.begun || !draft->state.dirty || !draft->state.owner || draft->state.timed))
        rc = spool__save_draft(draft);
    if (rc)
        return rc;
    spool__mark_begun(draft);
    if (writes && !draft->state.owner)
        draft->state.owner = writer->serial;
    if (writes || size > draft->content.size)
        rc = check_size(writer, size);
    if (!rc)
        rc = spool__admit_draft(draft, size);
    if (rc)
        draft->state.error = rc;
    return rc;
}

int spool_admit_write(struct spool_writer *writer, size_t length, int64_t *offset) {
    int64_t at = *offset;
    if (writer->append) {
        int rc = writer->draft ? 0 : begin_writing(writer, false);
        if (rc)
            return rc;
        at = writer->draft->content.size;
    }
    if (at < 0 || (int64_t)length > INT64_MAX - at)
        return -EFBIG;
    int rc = admit(writer, at == 0 && !writer->append, at + (int64_t)length, true);
    if (!rc)
        *offset = at;
    return rc;
}

int spool_admit_resize(struct spool_writer *writer, int64_t length) {
    if (length < 0)
        return -EINVAL;
    int rc = admit(writer, length == 0, length, false);
    if (!rc && writer->draft->content.in_file)
        writer->draft->content.size = length;
    return rc;
}

bool spool_writer_blocks(const struct spool_writer *writer) {
    return writer->draft && content_blocks(&writer->draft->content);
}

int64_t spool_writer_key(const struct spool_writer *writer) {
    return writer->draft ? writer->draft->number : writer->file;
}

int spool_write(struct spool_writer *writer, const void *bytes, size_t length, int64_t offset) {
    int rc = content_write(&writer->draft->content, bytes, length, offset);
    if (rc)
        atomic_store(&writer->draft->failure, rc);
    return rc;
}

int spool_resize(struct spool_writer *writer, int64_t length) {
    int rc = content_resize(&writer->draft->content, length);
    if (rc)
        atomic_store(&writer->draft->failure, rc);
    return rc;
}

/* --- reading back --- */

bool spool_has_written(const struct spool_writer *writer) {
    return writer->draft && writer->draft->state.begun;
}

ssize_t spool_read_back(struct spool_writer *writer, void *bytes, size_t length, int64_t offset) {
    return content_read(&writer->draft->content, bytes, length, offset);
}

/* --- flush and close --- */

bool spool_writer_dirty(const struct spool_writer *writer) {
    return writer->draft && writer->draft->state.dirty && !writer->draft->state.gone;
}

int spool_settle(struct spool_writer *writer) {
    if (!writer->draft)
        return 0;
    int rc = atomic_load(&writer->draft->failure);
    if (rc)
        return rc; /* it is not whole: that it cannot be summed up says nothing of the disk */
    rc = content_settle(&writer->draft->content);
    if (rc)
        atomic_store(&writer->draft->failure, rc);
    if (rc == -EIO)
        db_break(writer->spool->db);
    return rc;
}

int spool_store(struct spool_writer *writer, bool last_here) {
    if (!writer->draft || writer->draft->state.gone)
        return 0;
    return spool__store_draft(writer->draft, last_here);
}

int spool_close_writer(struct spool_writer *writer, bool killed) {
    struct spool *spool = writer->spool;
    struct draft *draft = writer->draft;
    int rc = spool__later(spool, free, NULL, writer);
    if (rc || !draft)
        return rc;
    rc = spool__change(spool);
    if (!rc)
        rc = spool__save_draft(draft);
    if (rc)
        return rc;
    if (killed)
        draft->state.killed = true;
    return leave(draft);
}

bool spool_is_closing(struct spool *spool, int64_t directory, const char *name) {
    struct message message;
    if (spool__find_message(spool, directory, name, &message) != 0)
        return false;
    struct draft *draft = spool__draft_of(spool, message.number, WRITES_NEW);
    if (!draft)
        draft = spool__draft_of(spool, message.number, WRITES_EDIT);
    return draft && draft->state.stored && !draft->state.dirty;
}
