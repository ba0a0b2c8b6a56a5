/*
 * message.c - a message's row: read, written, described.
 *
 * Every change of a row goes through insert, update and delete here: they keep the counters of queues, the times of directories
 * and the seal in step. An update writes as few indexes as the change allows.
 */
#include "engine.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <xxhash.h>

bool spool__is_published(enum spool_state state) {
    return spool__is_waiting(state) || state == SPOOL_CLAIMED_STATE || state == SPOOL_DEAD_STATE;
}

static void read_name(struct db_row *row, int column, char *out, size_t size) {
    size_t length = 0;
    const void *bytes = db_column_bytes(row, column, &length);
    if (length >= size)
        length = size - 1;
    if (length)
        memcpy(out, bytes, length);
    out[length] = '\0';
}

int spool__read_message(struct db_row *row, struct message *out) {
    out->number = db_column_int(row, 0);
    out->state = (enum spool_state)db_column_int(row, 1);
    out->queue = db_column_int(row, 2);
    out->directory = db_column_int(row, 3);
    read_name(row, 4, out->name, sizeof out->name);
    read_name(row, 5, out->home_name, sizeof out->home_name);
    out->place = db_column_int(row, 6);
    out->due_ns = db_column_int(row, 7);
    out->end_ns = db_column_int(row, 8);
    out->end_boot_ns = db_column_int(row, 9);
    out->attempts = db_column_int(row, 10);
    out->holder = db_column_null(row, 11) ? -1 : db_column_int(row, 11);
    out->uid = (uid_t)db_column_int(row, 12);
    out->gid = (gid_t)db_column_int(row, 13);
    out->mode = (uint32_t)db_column_int(row, 14);
    out->mtime_ns = db_column_int(row, 15);
    out->ctime_ns = db_column_int(row, 16);
    out->published_ns = db_column_int(row, 17);
    out->content.size = db_column_int(row, 18);
    out->content.payload = db_column_int(row, 19);
    out->content.in_file = db_column_int(row, 20) != 0;
    out->content.hash = db_column_int(row, 21);
    out->seal = db_column_int(row, 22);
    out->flushed = db_column_int(row, 23);
    out->unsure = db_column_int(row, 24) != 0;
    out->target = db_column_int(row, 25);
    out->draft_kind = (enum draft_kind)db_column_int(row, 26);
    read_name(row, 27, out->reason, sizeof out->reason);
    out->priority = db_column_int(row, 28);
    out->ttl_ns = db_column_int(row, 29);
    out->expires_ns = db_column_int(row, 30);
    out->claimed_ns = db_column_int(row, 31);
    out->held = db_column_int(row, 32) != 0;
    out->attributes = db_column_int(row, 33);
    return 0;
}

int spool__message(struct spool *spool, int64_t number, struct message *out) {
    struct db_row *row = NULL;
    int rc = db_first(spool->db, &row, Q_message_get, db_int(number));
    if (rc == 1)
        spool__read_message(row, out);
    db_done(row);
    return rc == 1 ? 0 : rc == 0 ? -ENOENT : rc;
}

int spool__find_message(struct spool *spool, int64_t directory, const char *name, struct message *out) {
    struct db_row *row = NULL;
    int rc = db_first(spool->db, &row, Q_message_find, db_int(directory), db_text(name));
    if (rc == 1)
        spool__read_message(row, out);
    db_done(row);
    return rc == 1 ? 0 : rc == 0 ? -ENOENT : rc;
}

int64_t spool__seal(const struct message *message) {
    const char *name = spool__own_name(message);
    const int64_t facts[] = {message->content.hash, message->content.size, message->number, message->queue,
                             message->place};
    unsigned char bytes[sizeof facts + SPOOL_NAME_MAX];
    size_t length = strlen(name);
    memcpy(bytes, facts, sizeof facts);
    memcpy(bytes + sizeof facts, name, length);
    return (int64_t)XXH3_64bits(bytes, sizeof facts + length);
}

static struct db_value or_null(int64_t value) {
    return value ? db_int(value) : db_null();
}

static struct db_value or_no_name(const char *name) {
    return name[0] ? db_text(name) : db_null();
}

#define MESSAGE_COLUMNS 34

/* In the order of the columns in message_insert and message_update. */
static void bind_message(const struct message *message, struct db_value values[MESSAGE_COLUMNS]) {
    const struct content_summary *content = &message->content;
    const struct db_value all[MESSAGE_COLUMNS] = {
        db_int(message->number),
        db_int(message->state),
        db_int(message->queue),
        or_null(message->directory),
        or_no_name(message->name),
        or_no_name(message->home_name),
        db_int(message->place),
        db_int(message->due_ns),
        db_int(message->end_ns),
        or_null(message->end_boot_ns),
        db_int(message->attempts),
        message->holder < 0 ? db_null() : db_int(message->holder),
        db_int(message->uid),
        db_int(message->gid),
        db_int(message->mode),
        db_int(message->mtime_ns),
        db_int(message->ctime_ns),
        db_int(message->published_ns),
        db_int(content->size),
        or_null(content->payload),
        db_int(content->in_file),
        db_int(content->hash),
        db_int(message->seal),
        or_null(message->flushed),
        db_int(message->unsure),
        or_null(message->target),
        message->target ? db_int(message->draft_kind) : db_null(),
        or_no_name(message->reason),
        db_int(message->priority),
        or_null(message->ttl_ns),
        db_int(message->expires_ns),
        db_int(message->claimed_ns),
        db_int(message->held),
        db_int(message->attributes),
    };
    memcpy(values, all, sizeof all);
}

/* The counter that counts messages of a state; COUNTERS for drafts, which are not counted. */
static enum counter counter_of(enum spool_state state) {
    switch (state) {
    case SPOOL_STAGED:
    case SPOOL_OPEN:
    case SPOOL_HELD:
        return COUNT_STAGED;
    case SPOOL_WAITING:
        return COUNT_READY;
    case SPOOL_DELAYED:
        return COUNT_DELAYED;
    case SPOOL_CLAIMED_STATE:
        return COUNT_CLAIMED;
    case SPOOL_DEAD_STATE:
        return COUNT_DEAD;
    case SPOOL_DRAFT:
        break;
    }
    return COUNTERS;
}

static void count_message(struct spool *spool, const struct message *message, int64_t amount) {
    enum counter counter = counter_of(message->state);
    if (counter == COUNTERS)
        return;
    spool__count(spool, message->queue, counter, amount);
    if (message->content.size)
        spool__count(spool, message->queue, COUNT_BYTES, amount * message->content.size);
}

/* Let the tick know of what this message waits for. */
static void set_alarms(struct spool *spool, const struct message *message) {
    if (message->end_boot_ns)
        spool__wake_at(spool, message->end_boot_ns);
    if (message->due_ns && (message->state == SPOOL_STAGED || message->state == SPOOL_DELAYED))
        spool__due_at(spool, message->due_ns);
}

int spool__insert_message(struct spool *spool, struct message *message) {
    struct db_value values[MESSAGE_COLUMNS];
    message->seal = spool__seal(message);
    bind_message(message, values);
    int rc = spool__ran(spool, db_run_values(spool->db, Q_message_insert, values, MESSAGE_COLUMNS));
    if (rc)
        return rc;
    count_message(spool, message, 1);
    if (message->directory)
        spool__touch_directory(spool, message->directory);
    set_alarms(spool, message);
    return 0;
}

static bool same_content(const struct message *a, const struct message *b) {
    return a->content.size == b->content.size && a->content.payload == b->content.payload &&
           a->content.in_file == b->content.in_file && a->content.hash == b->content.hash;
}

/* Nothing that an index holds differs, nor anything that only the full update writes. */
static bool same_standing(const struct message *a, const struct message *b) {
    return a->queue == b->queue && a->directory == b->directory && strcmp(a->name, b->name) == 0 &&
           strcmp(a->home_name, b->home_name) == 0 && a->place == b->place && a->due_ns == b->due_ns &&
           a->end_ns == b->end_ns && a->end_boot_ns == b->end_boot_ns && a->attempts == b->attempts &&
           a->holder == b->holder && a->uid == b->uid && a->gid == b->gid && a->mode == b->mode &&
           a->target == b->target && a->draft_kind == b->draft_kind && strcmp(a->reason, b->reason) == 0 &&
           a->priority == b->priority && a->ttl_ns == b->ttl_ns && a->expires_ns == b->expires_ns &&
           a->claimed_ns == b->claimed_ns && a->held == b->held && a->attributes == b->attributes;
}

static int write_update(struct spool *spool, const struct message *old, const struct message *message) {
    const struct content_summary *content = &message->content;
    if (same_standing(old, message) && old->state == message->state && old->published_ns == message->published_ns)
        return spool__run(spool, Q_message_store, db_int(message->number), db_int(message->mtime_ns),
                          db_int(message->ctime_ns), db_int(content->size), or_null(content->payload),
                          db_int(content->in_file), db_int(content->hash), db_int(message->seal),
                          or_null(message->flushed), db_int(message->unsure));
    if (same_standing(old, message) && same_content(old, message) && old->unsure == message->unsure)
        return spool__run(spool, Q_message_publish, db_int(message->number), db_int(message->state),
                          db_int(message->mtime_ns), db_int(message->ctime_ns), db_int(message->published_ns),
                          db_int(message->seal), or_null(message->flushed));
    struct db_value values[MESSAGE_COLUMNS];
    bind_message(message, values);
    return spool__ran(spool, db_run_values(spool->db, Q_message_update, values, MESSAGE_COLUMNS));
}

int spool__update_message(struct spool *spool, const struct message *old, struct message *message) {
    message->seal = spool__seal(message);
    int rc = write_update(spool, old, message);
    if (rc)
        return rc;
    if (old->queue != message->queue || old->state != message->state || old->content.size != message->content.size) {
        count_message(spool, old, -1);
        count_message(spool, message, 1);
    }
    if (old->directory != message->directory || strcmp(old->name, message->name) != 0) {
        if (old->directory)
            spool__touch_directory(spool, old->directory);
        if (message->directory)
            spool__touch_directory(spool, message->directory);
    }
    set_alarms(spool, message);
    return 0;
}

int spool__delete_message(struct spool *spool, const struct message *message) {
    int rc = spool__run(spool, Q_message_delete, db_int(message->number));
    if (!rc)
        rc = spool__doom(spool, &message->content);
    if (rc)
        return rc;
    count_message(spool, message, -1);
    if (message->directory)
        spool__touch_directory(spool, message->directory);
    return 0;
}
