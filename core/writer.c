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
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct spool_writer {
    struct spool *spool;
    int64_t serial;
    int64_t file;
    bool append;
    struct spool_caller caller;
    enum spool_state opened_as;
    int64_t claim;       /* the lease it was opened under */
    bool fresh;          /* opened to write the file from its start */
    struct draft *draft; /* NULL until something is written */
};

/* --- memory --- */

static int new_writer(struct spool *spool, int64_t file, bool append, struct spool_caller caller,
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
static int drop_writer(struct spool_writer *writer, int rc) {
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

static int join(struct spool_writer *writer, struct draft *draft) {
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

static int begin_and_join(struct spool_writer *writer, enum draft_kind kind, int64_t number,
                          const struct message *from) {
    struct draft *draft;
    if (number < 0)
        return (int)number;
    int rc = spool__begin_draft(writer->spool, kind, writer->file, number, from, writer->caller, &draft);
    return rc ? rc : join(writer, draft);
}

/* --- creating --- */

static int insert_open_file(struct spool *spool, int64_t directory, int64_t queue, const char *name, uint32_t mode,
                            struct spool_caller caller, struct message *message) {
    int64_t number = spool__number(spool);
    if (number < 0)
        return (int)number;
    *message = (struct message){
        .number = number,
        .state = SPOOL_OPEN,
        .queue = queue,
        .directory = directory,
        .place = number,
        .holder = -1,
        .uid = caller.uid,
        .gid = caller.gid,
        .mode = mode & 0777,
        .mtime_ns = spool->now.wall_ns,
        .ctime_ns = spool->now.wall_ns,
        .content.hash = content_hash_bytes(NULL, 0),
    };
    memcpy(message->name, name, strlen(name) + 1);
    return spool__insert_message(spool, message);
}

/* May a file of that name be made there? */
static int may_create(struct spool *spool, int64_t directory, const char *name, int64_t *queue) {
    struct directory *parent;
    struct spool_entry taken;
    bool staged;
    int rc = spool__name_is_valid(name);
    if (!rc)
        rc = spool__directory(spool, directory, &parent);
    if (!rc && parent->kind != SPOOL_QUEUE && parent->kind != SPOOL_FOLDER)
        rc = -EPERM;
    if (rc)
        return rc;
    *queue = spool__queue_of(spool, parent);
    rc = spool_lookup(spool, directory, name, &taken);
    if (rc == 0) {
        spool__promise(spool);
        return -EEXIST;
    }
    if (rc == -ENOENT)
        rc = spool__is_staged(spool, directory, name, &staged);
    if (!rc && staged)
        return spool__free_bytes(spool) < spool->reserve_bytes ? -ENOSPC : 0;
    return rc ? rc : spool__has_room(spool, *queue, 0, true);
}

int spool_create(struct spool *spool, int64_t directory, const char *name, uint32_t mode, bool exclusive,
                 struct spool_caller caller, struct spool_entry *entry, struct spool_writer **out) {
    struct message message;
    struct spool_writer *writer;
    int64_t queue, place = 0;
    int rc = may_create(spool, directory, name, &queue);
    if (rc == -EEXIST && !exclusive)
        rc = -ESTALE; /* it has come into being since the caller looked: let them look again, and open it */
    if (!rc)
        rc = spool__take_name(spool, directory, name, 0, &place);
    if (!rc)
        rc = spool__change(spool);
    if (!rc)
        rc = insert_open_file(spool, directory, queue, name, mode, caller, &message);
    if (!rc)
        rc = new_writer(spool, message.number, false, caller, &message, &writer);
    if (rc)
        return rc;
    rc = begin_and_join(writer, WRITES_NEW, message.number, NULL);
    if (rc)
        return drop_writer(writer, rc);
    writer->draft->state.exclusive = exclusive;
    writer->fresh = true;
    spool__describe_message(spool, &message, entry);
    *out = writer;
    return 0;
}

/* --- opening --- */

static enum on_conflict conflict_rule(struct spool *spool, int64_t queue) {
    const struct settings *settings;
    return spool__settings(spool, queue, &settings) == 0 ? (enum on_conflict)settings->value[SPOOL_ON_CONFLICT]
                                                         : CONFLICT_KEEP;
}

static int move_aside(struct spool *spool, const struct message *old) {
    struct message aside = *old;
    int rc = spool__fit_name(spool, old->directory, old->name, 0, aside.name);
    aside.ctime_ns = spool->now.wall_ns;
    spool__vanish(spool, old);
    return rc ? rc : spool__update_message(spool, old, &aside);
}

/* A truncating open of a name that is taken: the older file gets a numbered name, a new one stands in its stead. */
static int make_placeholder(struct spool *spool, const struct message *old, struct spool_caller caller,
                            struct spool_entry *entry) {
    struct message message;
    struct draft *draft;
    int rc = spool__has_room(spool, old->queue, 0, true);
    if (!rc)
        rc = move_aside(spool, old);
    if (!rc)
        rc = insert_open_file(spool, old->directory, old->queue, old->name, old->mode | 0600, caller, &message);
    if (!rc)
        rc = spool__begin_draft(spool, WRITES_NEW, message.number, message.number, NULL, caller, &draft);
    if (rc)
        return rc;
    spool__describe_message(spool, &message, entry);
    return -ESTALE;
}

/* What is written becomes, or may become, a message of its own under the name of this one. */
static int begin_beside(struct spool_writer *writer, enum draft_kind kind, const struct message *message) {
    int rc = begin_and_join(writer, kind, spool__number(writer->spool), NULL);
    if (rc)
        return rc;
    struct draft *draft = writer->draft;
    draft->queue = message->queue;
    draft->state.mode = message->mode;
    memcpy(draft->name, message->name, sizeof draft->name);
    return 0;
}

/* The same file is written again: a staged one, or one that is held back. */
static int reopen(struct spool_writer *writer, const struct message *old, bool truncate) {
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
        rc = begin_and_join(writer, WRITES_NEW, old->number, truncate ? NULL : old);
    if (rc)
        return rc;
    writer->draft->state.exclusive =
        old->state == SPOOL_HELD; /* mktemp's, most likely: a rename follows this time too */
    writer->draft->state.stored = true;
    writer->draft->state.stored_boot_ns = spool->now.boot_ns;
    return 0;
}

static int truncate_shared(struct spool_writer *writer, struct draft *draft);

static int begin_checkpoint(struct spool_writer *writer, const struct message *message, bool truncate) {
    struct draft *draft = spool__draft_of(writer->spool, message->number, WRITES_CHECKPOINT);
    if (draft)
        return truncate ? truncate_shared(writer, draft) : join(writer, draft);
    return begin_and_join(writer, WRITES_CHECKPOINT, spool__number(writer->spool), truncate ? NULL : message);
}

static void mark_begun(struct draft *draft) {
    draft->state.begun = true;
    draft->state.dirty = true;
}

static int open_truncating(struct spool_writer *writer, const struct message *message, struct spool_entry *entry) {
    struct spool *spool = writer->spool;
    enum on_conflict rule = conflict_rule(spool, message->queue);
    int rc;
    if (message->state == SPOOL_CLAIMED_STATE) {
        rc = begin_checkpoint(writer, message, true);
    } else if (message->state == SPOOL_STAGED || message->state == SPOOL_HELD) {
        rc = reopen(writer, message, true);
    } else if (rule == CONFLICT_REJECT) {
        spool__promise(spool);
        return -EEXIST;
    } else if (rule == CONFLICT_REPLACE) {
        rc = begin_beside(writer, WRITES_REPLACE, message);
    } else {
        return make_placeholder(spool, message, writer->caller, entry);
    }
    if (!rc)
        rc = spool__save_draft(writer->draft);
    if (!rc)
        mark_begun(writer->draft);
    return rc;
}

/* A file that others write too is truncated for all of them; not while their writes are on the way to the disk. */
static int truncate_shared(struct spool_writer *writer, struct draft *draft) {
    if (content_blocks(&draft->content))
        return -ETXTBSY;
    int rc = spool__draft_error(draft);
    if (!rc)
        rc = join(writer, draft);
    if (!rc)
        rc = spool_admit_resize(writer, 0);
    return rc ? rc : spool_resize(writer, 0);
}

/*
 * Somebody else writes it already. Two who write a file from its start never share a message: when the first has written something,
 * the second gets a file of its own here; when not, whoever is second to write parts ways then.
 */
static int open_shared(struct spool_writer *writer, const struct message *message, bool truncate,
                       struct spool_entry *entry) {
    struct spool *spool = writer->spool;
    struct draft *draft = spool__draft_of(spool, message->number, WRITES_NEW);
    if (!draft)
        return -EIO;
    writer->fresh = truncate;
    if (!truncate || !draft->state.begun || draft->content.size == 0)
        return join(writer, draft);
    bool staged = true;
    int rc = spool__is_staged(spool, message->directory, message->name, &staged);
    if (rc)
        return rc;
    if (staged)
        return truncate_shared(writer, draft);
    if (conflict_rule(spool, message->queue) == CONFLICT_REJECT) {
        spool__promise(spool);
        return -EEXIST;
    }
    return make_placeholder(spool, message, writer->caller, entry);
}

int spool_open_writer(struct spool *spool, int64_t number, bool truncate, bool append, struct spool_caller caller,
                      struct spool_entry *entry, struct spool_writer **out) {
    struct message message;
    struct spool_writer *writer;
    int rc = spool__message(spool, number, &message);
    if (!rc && (message.state == SPOOL_DEAD_STATE || message.state == SPOOL_DRAFT))
        rc = -EPERM;
    if (!rc)
        rc = spool__change(spool);
    if (!rc)
        rc = new_writer(spool, number, append, caller, &message, &writer);
    if (rc)
        return rc;
    if (message.state == SPOOL_OPEN)
        rc = open_shared(writer, &message, truncate, entry);
    else if (truncate)
        rc = open_truncating(writer, &message, entry);
    if (rc)
        return drop_writer(writer, rc);
    spool__message(spool, number, &message);
    spool__describe_message(spool, &message, entry);
    *out = writer;
    return 0;
}

int spool_undo_overwrite(struct spool *spool, int64_t number, int64_t placeholder) {
    struct message old, empty, back;
    struct draft *draft = spool__draft_of(spool, placeholder, WRITES_NEW);
    if (!draft || draft->state.writers > 0 || draft->state.begun)
        return -ENOENT;
    int rc = spool__message(spool, placeholder, &empty);
    if (!rc)
        rc = spool__message(spool, number, &old);
    if (!rc && old.directory != empty.directory)
        rc = -ENOENT;
    if (!rc)
        rc = spool__change(spool);
    if (!rc)
        rc = spool__drop_drafts(spool, placeholder);
    if (!rc)
        rc = spool__finish_draft(draft);
    if (!rc)
        rc = spool__delete_message(spool, &empty);
    if (rc)
        return rc;
    spool__vanish(spool, &empty);
    spool__vanish(spool, &old);
    back = old;
    memcpy(back.name, empty.name, sizeof back.name);
    return spool__update_message(spool, &old, &back);
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
    return rc ? rc : begin_and_join(writer, WRITES_NEW, old->number, NULL);
}

static int begin_on_waiting(struct spool_writer *writer, const struct message *message, bool overwrites) {
    struct draft *draft = spool__draft_of(writer->spool, message->number, WRITES_EDIT);
    if (draft)
        return join(writer, draft); /* it is being edited already */
    if (!overwrites)
        return begin_and_join(writer, WRITES_EDIT, spool__number(writer->spool), message);
    switch (conflict_rule(writer->spool, message->queue)) {
    case CONFLICT_REPLACE:
        return begin_beside(writer, WRITES_REPLACE, message);
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
                   ? begin_checkpoint(writer, &message, overwrites)
                   : -ESTALE;
    switch (message.state) {
    case SPOOL_STAGED:
    case SPOOL_HELD:
        return reopen(writer, &message, false);
    case SPOOL_OPEN:
        shared = spool__draft_of(spool, writer->file, WRITES_NEW);
        return shared ? join(writer, shared) : -ESTALE;
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
    bool staged;
    int rc = spool__message(spool, writer->file, &message);
    if (!rc)
        rc = spool__is_staged(spool, message.directory, message.name, &staged);
    if (rc || staged)
        return rc == -ENOENT ? 0 : rc; /* removed, or staged: as on any file system */
    rc = spool__change(spool);
    if (!rc)
        rc = begin_beside(writer, WRITES_APART, &message);
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
    if (!rc && (!draft->state.begun || !draft->state.dirty || !draft->state.owner))
        rc = spool__save_draft(draft);
    if (rc)
        return rc;
    mark_begun(draft);
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
