/*
 * draft.c - the content of files that are being written, from the first byte to the last close.
 *
 * What is in memory of a draft besides its bytes (struct draft_state) is part of the batch: saved before it changes, brought back
 * by a rollback. The bytes are not: an operation that is tried again writes the same ones again.
 */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONTENT_MEMORY_BYTES (32 * 1024 * 1024) /* of all drafts; beyond it they go to files early */

static struct draft *first_of(struct spool *spool, int64_t file) {
    return (struct draft *)table_find(&spool->drafts, file);
}

static struct draft *next_of(struct draft *draft) {
    return (struct draft *)table_next(&draft->entry);
}

int spool__draft_error(const struct draft *draft) {
    return draft->state.error ? draft->state.error : atomic_load(&draft->failure);
}

struct draft *spool__draft_of(struct spool *spool, int64_t file, enum draft_kind kind) {
    struct draft *draft = first_of(spool, file);
    while (draft && (draft->state.kind != kind || draft->state.error == -ESTALE || draft->state.finished))
        draft = next_of(draft);
    return draft;
}

struct edits {
    struct spool *spool;
    int64_t queue; /* the root: of all queues */
    int64_t count;
    int rc;
};

static void count_edit(struct table_entry *entry, void *context) {
    struct draft *draft = (struct draft *)entry;
    struct edits *edits = context;
    struct message message;
    if (draft->state.kind != WRITES_EDIT || draft->state.error == -ESTALE || draft->state.finished)
        return;
    int rc = spool__message(edits->spool, draft->entry.key, &message);
    if (rc == 0 && message.state == SPOOL_WAITING && (edits->queue == SPOOL_ROOT || edits->queue == message.queue))
        edits->count++;
    else if (rc < 0 && rc != -ENOENT)
        edits->rc = rc;
}

int spool__count_edited(struct spool *spool, int64_t queue, int64_t *count) {
    struct edits edits = {spool, queue, 0, 0};
    table_each(&spool->drafts, count_edit, &edits);
    if (!edits.rc)
        *count = edits.count;
    return edits.rc;
}

/* --- memory --- */

static void free_draft(void *what) {
    struct draft *draft = what;
    if (!draft->content.in_file) /* else they were given back on the way into the file */
        draft->spool->content_memory_bytes -= (int64_t)draft->content.capacity;
    table_remove(&draft->spool->drafts, &draft->entry);
    content_end(&draft->content);
    free(draft);
}

static void forget_draft(struct table_entry *entry, void *context) {
    struct draft *draft = (struct draft *)entry;
    (void)context;
    content_end(&draft->content);
    free(draft);
}

void spool__forget_drafts(struct spool *spool) {
    table_each(&spool->drafts, forget_draft, NULL);
    table_clear(&spool->drafts);
}

struct saved {
    struct draft *draft;
    struct draft_state state;
};

static void restore(void *what) {
    struct saved *saved = what;
    saved->draft->state = saved->state;
    free(saved);
}

int spool__end_draft(struct draft *draft) {
    return spool__later(draft->spool, free_draft, NULL, draft);
}

int spool__save_draft(struct draft *draft) {
    struct saved *saved = malloc(sizeof *saved);
    if (!saved)
        return -ENOMEM;
    *saved = (struct saved){draft, draft->state};
    int rc = spool__later(draft->spool, free, restore, saved);
    if (rc)
        free(saved);
    return rc;
}

/* Begin with the bytes of a payload that stands in the database. */
static int load_bytes(struct spool *spool, const struct content_summary *from, struct content *content) {
    struct db_row *row = NULL;
    size_t length;
    int rc = db_first(spool->db, &row, Q_payload_get, db_int(from->payload));
    if (rc == 1) {
        const void *bytes = db_column_bytes(row, 0, &length);
        rc = content_begin_bytes(content, &spool->payloads, bytes, length);
    } else if (rc == 0) {
        rc = -EIO;
    }
    db_done(row);
    return rc;
}

/* A new file's content goes on in its own file; every other draft works on a copy. */
static int load_content(struct spool *spool, struct draft *draft, const struct content_summary *from) {
    if (!from || from->size == 0) {
        content_begin(&draft->content, &spool->payloads);
        return 0;
    }
    if (!from->in_file)
        return load_bytes(spool, from, &draft->content);
    if (draft->state.kind == WRITES_NEW) {
        content_begin_file(&draft->content, &spool->payloads, from->payload, from->size);
        draft->content.hash = from->hash;
        return 0;
    }
    int64_t copy = spool__number(spool);
    if (copy < 0)
        return (int)copy;
    content_begin_copy(&draft->content, &spool->payloads, copy, from->payload, from->size);
    return 0;
}

int spool__begin_draft(struct spool *spool, enum draft_kind kind, int64_t file, int64_t number,
                       const struct message *from, struct spool_caller caller, struct draft **out) {
    struct draft *draft = calloc(1, sizeof *draft);
    if (!draft)
        return -ENOMEM;
    draft->spool = spool;
    draft->entry.key = file;
    draft->number = number;
    draft->caller = caller;
    draft->state.kind = kind;
    int rc = load_content(spool, draft, from ? &from->content : NULL);
    if (!rc)
        rc = table_add(&spool->drafts, &draft->entry);
    if (rc) {
        content_end(&draft->content);
        free(draft);
        return rc;
    }
    spool->content_memory_bytes += (int64_t)draft->content.capacity;
    rc = spool__later(spool, NULL, free_draft, draft);
    if (rc)
        free_draft(draft);
    else
        *out = draft;
    return rc;
}

/* --- growing --- */

int spool__admit_draft(struct draft *draft, int64_t size) {
    struct spool *spool = draft->spool;
    struct content *content = &draft->content;
    if (content_outgrows(content, size, CONTENT_MEMORY_BYTES - spool->content_memory_bytes)) {
        int64_t payload = spool__number(spool);
        if (payload < 0)
            return (int)payload;
        spool->content_memory_bytes -= (int64_t)content->capacity;
        content_enter_file(content, payload);
    }
    if (content->in_file) {
        if (size > content->size)
            content->size = size;
        return 0;
    }
    spool->content_memory_bytes -= (int64_t)content->capacity;
    int rc = content_reserve(content, size);
    spool->content_memory_bytes += (int64_t)content->capacity;
    return rc;
}

/* --- storing --- */

/* Put bytes that are in memory into the database, and say what the row has to say. Each time under a number of their own: a reader
 * may be at the last ones. */
int spool__record_content(struct draft *draft, struct content_summary *summary) {
    struct spool *spool = draft->spool;
    struct content *content = &draft->content;
    if (!content->in_file && content->size > 0) {
        int64_t payload = spool__number(spool);
        if (payload < 0)
            return (int)payload;
        int rc = spool__run(spool, Q_payload_put, db_int(payload), db_bytes(content->bytes, (size_t)content->size));
        if (rc)
            return rc;
        content->payload = payload;
    }
    content_summary(content, summary);
    return 0;
}

/* The payload that the row had is no longer its. */
int spool__replace_content(struct spool *spool, struct message *message, const struct content_summary *content,
                           bool timed) {
    int rc = 0;
    if (message->content.payload != content->payload)
        rc = spool__doom(spool, &message->content);
    message->content = *content;
    message->ctime_ns = spool->now.wall_ns;
    if (!timed)
        message->mtime_ns = spool->now.wall_ns;
    return rc;
}

/* Until it is stored for the first time, a draft of an existing message has no row. A replacement can do without the message. */
static int insert_draft_row(struct draft *draft, const struct content_summary *content, int64_t flushed) {
    struct spool *spool = draft->spool;
    bool replaces = draft->state.kind == WRITES_REPLACE;
    struct message target = {.number = draft->entry.key, .mode = draft->state.mode}, row;
    int rc = spool__message(spool, draft->entry.key, &target);
    if (rc && !(rc == -ENOENT && replaces))
        return rc == -ENOENT ? -ESTALE : rc;
    row = (struct message){
        .number = draft->number,
        .state = SPOOL_DRAFT,
        .queue = replaces ? draft->queue : target.queue,
        .place = draft->number,
        .attempts = target.attempts,
        .holder = -1,
        .uid = draft->caller.uid,
        .gid = draft->caller.gid,
        .mode = target.mode,
        .mtime_ns = spool->now.wall_ns,
        .ctime_ns = spool->now.wall_ns,
        .content = *content,
        .flushed = flushed,
        .target = target.number,
        .draft_kind = draft->state.kind,
    };
    memcpy(row.home_name, draft->name, sizeof row.home_name);
    return spool__insert_message(spool, &row);
}

static int update_row(struct draft *draft, const struct content_summary *content, int64_t flushed) {
    struct spool *spool = draft->spool;
    struct message old, row;
    int rc = spool__message(spool, draft->number, &old);
    if (rc)
        return rc == -ENOENT ? -ESTALE : rc;
    row = old;
    row.flushed = flushed;
    row.unsure = false;
    rc = spool__replace_content(spool, &row, content, draft->state.timed);
    return rc ? rc : spool__update_message(spool, &old, &row);
}

/* May a crash lose it for all that was promised? Under a staged name the publishing rename is the promise. */
static int promise_store(struct draft *draft) {
    struct message message;
    bool staged = false;
    int rc = 0;
    if (draft->state.kind == WRITES_NEW) {
        rc = spool__message(draft->spool, draft->number, &message);
        if (!rc)
            rc = spool__is_staged(draft->spool, message.directory, message.name, &staged);
    }
    if (!rc && !staged)
        spool__promise(draft->spool);
    return rc == -ENOENT ? 0 : rc;
}

static int store_now(struct draft *draft) {
    struct spool *spool = draft->spool;
    struct content_summary content;
    int rc = spool__change(spool);
    if (!rc)
        rc = spool__save_draft(draft);
    if (!rc)
        rc = spool__record_content(draft, &content);
    int64_t flushed = rc ? 0 : spool__number(spool);
    if (flushed < 0)
        rc = (int)flushed;
    if (!rc && draft->state.kind != WRITES_NEW && !draft->state.stored)
        rc = insert_draft_row(draft, &content, flushed);
    else if (!rc)
        rc = update_row(draft, &content, flushed);
    if (rc)
        return rc;
    draft->state.stored = true;
    draft->state.dirty = draft->state.unsure = false;
    draft->state.ticket = spool__ticket(spool);
    draft->state.stored_boot_ns = spool->now.boot_ns;
    if (spool->next_linger_boot_ns > spool->now.boot_ns + SPOOL_LINGER_NS)
        spool->next_linger_boot_ns = spool->now.boot_ns + SPOOL_LINGER_NS;
    return promise_store(draft);
}

int spool__store_draft(struct draft *draft, bool last_here) {
    int rc = spool__draft_error(draft);
    if (rc)
        return rc;
    bool is_new = draft->state.kind == WRITES_NEW;
    if (draft->state.dirty || draft->state.unsure || (is_new && !draft->state.stored && last_here))
        return store_now(draft);
    if (draft->state.stored && db_synced(draft->spool->db) < draft->state.ticket)
        return promise_store(draft);
    return 0;
}

int spool__measure(struct spool *spool, struct content_summary *content) {
    int rc = payload_size(&spool->payloads, content->payload, &content->size);
    if (rc == -ENOENT)
        content->size = rc = 0;
    if (!rc && content->size > 0)
        rc = payload_hash(&spool->payloads, content->payload, content->size, &content->hash);
    else if (!rc)
        *content = (struct content_summary){.hash = content_hash_bytes(NULL, 0)};
    return rc;
}

struct copied_file {
    struct payloads *payloads;
    int64_t payload;
};

static void remove_copy(void *what) {
    struct copied_file *copied = what;
    (void)payload_doom(copied->payloads, copied->payload, 0);
    free(copied);
}

/* When it fails, or its batch is undone, nothing stays of it. */
static int copy_file(struct spool *spool, const struct content_summary *from, int64_t to) {
    struct copied_file *copied = malloc(sizeof *copied);
    if (!copied)
        return -ENOMEM;
    *copied = (struct copied_file){&spool->payloads, to};
    int rc = payload_copy(&spool->payloads, from->payload, to, from->size);
    if (!rc)
        rc = payload_sync(&spool->payloads, to);
    if (!rc)
        rc = spool__later(spool, free, remove_copy, copied);
    if (rc)
        remove_copy(copied);
    return rc;
}

int spool__copy_content(struct spool *spool, const struct content_summary *from, struct content_summary *to) {
    struct content bytes = {0};
    struct content_summary copy = *from;
    if (!from->payload) {
        *to = copy;
        return 0;
    }
    copy.payload = spool__number(spool);
    if (copy.payload < 0)
        return (int)copy.payload;
    int rc;
    if (from->in_file) {
        rc = copy_file(spool, from, copy.payload);
    } else {
        rc = load_bytes(spool, from, &bytes);
        if (!rc)
            rc = spool__run(spool, Q_payload_put, db_int(copy.payload), db_bytes(bytes.bytes, (size_t)bytes.size));
        content_end(&bytes);
    }
    if (!rc)
        *to = copy;
    return rc;
}

/* --- lingering --- */

struct linger {
    struct spool *spool;
    int64_t next_boot_ns;
    int rc;
};

int spool__mark_unsure(struct draft *draft) {
    struct spool *spool = draft->spool;
    struct message old, row;
    int rc = spool__change(spool);
    if (!rc)
        rc = spool__save_draft(draft);
    if (!rc)
        rc = spool__message(spool, draft->number, &old);
    if (rc)
        return rc == -ENOENT ? 0 : rc;
    draft->state.unsure = true;
    row = old;
    row.unsure = true;
    spool__promise(spool);
    return spool__update_message(spool, &old, &row);
}

static void mark_if_lingering(struct table_entry *entry, void *context) {
    struct draft *draft = (struct draft *)entry;
    struct linger *linger = context;
    if (!draft->state.stored || draft->state.unsure || draft->state.finished || linger->rc)
        return;
    int64_t end = draft->state.stored_boot_ns + SPOOL_LINGER_NS;
    if (end <= linger->spool->now.boot_ns)
        linger->rc = spool__mark_unsure(draft);
    else if (end < linger->next_boot_ns)
        linger->next_boot_ns = end;
}

int spool__mark_lingering(struct spool *spool, int64_t *next_boot_ns) {
    struct linger linger = {spool, INT64_MAX, 0};
    table_each(&spool->drafts, mark_if_lingering, &linger);
    if (!linger.rc)
        *next_boot_ns = linger.next_boot_ns;
    return linger.rc;
}

/* --- losing its message --- */

int spool__lose_draft(struct draft *draft) {
    int rc = spool__save_draft(draft);
    if (!rc && draft->state.kind != WRITES_NEW && draft->state.stored) {
        struct message row;
        rc = spool__message(draft->spool, draft->number, &row);
        if (rc == 0 && row.state == SPOOL_DRAFT) /* else it has become a message in this batch */
            rc = spool__delete_message(draft->spool, &row);
        else if (rc == -ENOENT)
            rc = 0;
    }
    draft->state.error = -ESTALE;
    draft->state.stored = false;
    return rc;
}

int spool__drop_drafts(struct spool *spool, int64_t file) {
    int rc = 0;
    for (struct draft *draft = first_of(spool, file); draft && !rc; draft = next_of(draft)) {
        if (draft->state.kind == WRITES_APART)
            continue; /* it has nothing to do with the file any more */
        if (draft->state.kind != WRITES_NEW) {
            rc = spool__lose_draft(draft);
            continue;
        }
        rc = spool__save_draft(draft);
        draft->state.gone = true; /* writing goes on as on any removed file; nothing comes of it */
    }
    return rc;
}

struct removal {
    int64_t queue;
    int rc;
};

static void lose_with_queue(struct table_entry *entry, void *context) {
    struct draft *draft = (struct draft *)entry;
    struct removal *removal = context;
    if (!removal->rc && draft->queue == removal->queue)
        removal->rc = spool__lose_draft(draft);
}

int spool__drop_replacements(struct spool *spool, int64_t queue) {
    struct removal removal = {queue, 0};
    table_each(&spool->drafts, lose_with_queue, &removal);
    return removal.rc;
}

int spool__end_checkpoints(struct spool *spool, int64_t file) {
    int rc = 0;
    for (struct draft *draft = first_of(spool, file); draft && !rc; draft = next_of(draft)) {
        if (draft->state.kind == WRITES_CHECKPOINT && draft->state.error != -ESTALE)
            rc = spool__lose_draft(draft);
    }
    return rc;
}
