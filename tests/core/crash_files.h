/*
 * crash_files.h - what programs do with files, as requests: create, write, close; and the messages to do it with.
 */
#ifndef CRASH_FILES_H
#define CRASH_FILES_H

#include "crash_run.h"

static const struct spool_caller somebody = {1000, 1000};

static int64_t next_place(struct run *run) {
    return ++run->model->places;
}

static void believe_now(struct run *run, struct object *object, enum where where, int64_t queue, int64_t place) {
    const struct belief last = *now_believed(object);
    struct belief *belief = believe(object, where, queue, place, run->begun);
    if (where == CLAIMED)
        belief->end_ns = last.where == CLAIMED ? last.end_ns : time_of(run).wall_ns + 60 * SECOND;
}

static struct object *new_message(struct run *run, size_t length) {
    struct object *object = new_object(run->model, MESSAGE, "m");
    if (length)
        renew_content(run->model, run->arena, object, 0, length);
    return object;
}

/* The first message that is there, of that size (ANY_SIZE). */
static struct object *pick(struct run *run, enum where where, int64_t queue, long length) {
    for (int i = 0; i < run->model->object_count; i++) {
        struct object *object = &run->model->objects[i];
        const struct belief *belief = now_believed(object);
        if (object->kind == MESSAGE && !object->busy && !object->delayed && belief->where == where && where != GONE &&
            belief->queue == queue && (length == ANY_SIZE || object->length == (size_t)length))
            return object;
    }
    return NULL;
}

static struct object *pick_staged(struct run *run, long length) {
    for (int i = 0; i < run->model->object_count; i++) {
        struct object *object = &run->model->objects[i];
        if (object->staged && (length == ANY_SIZE || object->length == (size_t)length))
            return object;
    }
    return NULL;
}

/* --- writing ---------------------------------------------------------------------------------------------------------- */

static void write_piece(struct run *run, struct spool_writer *writer, const unsigned char *bytes, size_t length,
                        int64_t offset) {
    request(run);
    int rc = spool_admit_write(writer, length, &offset);
    if (!rc && spool_writer_blocks(writer)) {
        run->promised |= spool_promised(run->spool);
        commit_batch(run); /* the bytes are moved elsewhere, and that begins when the batch is committed */
    }
    if (!rc)
        rc = spool_write(writer, bytes, length, offset);
    answered(run, "a write", rc, NO_PROMISE);
}

static void write_bytes(struct run *run, struct spool_writer *writer, const unsigned char *bytes, size_t length,
                        int64_t offset) {
    for (size_t done = 0; done < length; done += CHUNK_BYTES)
        write_piece(run, writer, bytes + done, length - done < CHUNK_BYTES ? length - done : CHUNK_BYTES,
                    offset + (int64_t)done);
}

/* The FLUSH of a close. `object`: what it makes a message of, in `queue`; NULL: nothing. */
static void flush(struct run *run, struct spool_writer *writer, struct object *object, int64_t queue, int64_t place) {
    int rc = 0;
    bool stores =
        spool_writer_dirty(writer) || (object && (object->length == 0 || now_believed(object)->where == GONE));
    if (spool_writer_dirty(writer) && spool_writer_blocks(writer)) {
        request(run);
        commit_batch(run);
        rc = spool_settle(writer);
    }
    request(run);
    if (!rc)
        rc = spool_store(writer, true);
    if (object && stores)
        believe_now(run, object, now_believed(object)->where == CLAIMED ? CLAIMED : IN_QUEUE, queue, place);
    answered(run, "a flush", rc, object && stores ? A_PROMISE : NO_PROMISE);
}

/* The last close. `object`: what it makes a message of, as above. */
static void release(struct run *run, struct spool_writer *writer, bool killed, struct object *object, int64_t queue) {
    request(run);
    int rc = spool_close_writer(writer, killed);
    if (object)
        believe_now(run, object, IN_QUEUE, queue, next_place(run));
    answered(run, "a close", rc, NO_PROMISE);
}

static struct spool_writer *create(struct run *run, int64_t queue, const char *name, struct object *object) {
    struct spool_writer *writer = NULL;
    struct spool_entry entry;
    request(run);
    int rc = spool_create(run->spool, queue, name, 0640, false, somebody, &entry, &writer);
    if (!rc) {
        object->number = entry.number;
        object->directory = queue;
        note_number(run, entry.number);
    }
    answered(run, "a creation", rc, NO_PROMISE);
    return writer;
}

/* Until it is closed it comes after all that were: a crash publishes it when recovery does. */
static int64_t place_of_unclosed(struct run *run) {
    return (INT64_C(1) << 40) + next_place(run);
}

/* Write, flush, close: `object` is a message in `queue` then. */
static void finish_message(struct run *run, struct spool_writer *writer, struct object *object, int64_t queue) {
    write_bytes(run, writer, object->bytes, object->length, 0);
    flush(run, writer, object, queue, place_of_unclosed(run));
    release(run, writer, false, object, queue);
    object->delayed = object->length == 0; /* held back */
}

static struct object *publish(struct run *run, int64_t queue, size_t length) {
    struct object *object = new_message(run, length);
    struct spool_writer *writer = create(run, queue, object->name, object);
    if (writer)
        finish_message(run, writer, object, queue);
    return object;
}

static const char *staged_name(const struct object *object, char name[64]) {
    snprintf(name, 64, ".%s.tmp", object->name);
    return name;
}

static struct object *stage(struct run *run, int64_t queue, size_t length) {
    struct object *object = new_message(run, length);
    char name[64];
    struct spool_writer *writer = create(run, queue, staged_name(object, name), object);
    if (!writer)
        return object;
    write_bytes(run, writer, object->bytes, object->length, 0);
    flush(run, writer, NULL, queue, 0);
    release(run, writer, false, NULL, queue);
    object->staged = true;
    return object;
}

static struct spool_writer *open_writer(struct run *run, struct object *object, bool truncate, bool append) {
    struct spool_writer *writer = NULL;
    struct spool_entry entry;
    request(run);
    int rc = spool_open_writer(run->spool, object->number, truncate, append, somebody, &entry, &writer);
    answered(run, "an opening", rc, NO_PROMISE);
    return writer;
}

static void leave_open(struct run *run, struct spool_writer *writer, struct object *object) {
    assert(run->open_count < MOST_OPEN);
    run->open[run->open_count] = writer;
    run->open_object[run->open_count++] = object;
    object->busy = true;
}

/* --- renaming --------------------------------------------------------------------------------------------------------- */

/* Under the name it has there now. */
static int find_name(struct run *run, const struct object *object, char name[SPOOL_NAME_MAX + 1]) {
    struct found entries[MOST_DIRECTORIES];
    struct look look = {.found = entries};
    int rc = spool_list(run->spool, object->directory, 0, note_entry, &look);
    for (int i = 0; i < look.found_count && !rc; i++) {
        if (entries[i].number == object->number) {
            memcpy(name, entries[i].name, SPOOL_NAME_MAX + 1);
            return 0;
        }
    }
    return rc ? rc : -ENOENT;
}

/* What a rename makes of a message. */
struct turn {
    const char *what;
    enum where where;
    int64_t queue, place;
    int promise;
};

static void move(struct run *run, struct object *object, int64_t to, const char *to_name, struct turn turn) {
    char name[SPOOL_NAME_MAX + 1];
    request(run);
    int rc = find_name(run, object, name);
    if (!rc)
        rc = spool_move(run->spool, object->directory, name, to, to_name ? to_name : name, false, somebody, NULL);
    if (!rc) {
        object->directory = to;
        believe_now(run, object, turn.where, turn.queue, turn.place);
    }
    answered(run, turn.what, rc, turn.promise);
}

static void erase(struct run *run, struct object *object, const char *what) {
    char name[SPOOL_NAME_MAX + 1];
    request(run);
    int rc = find_name(run, object, name);
    if (!rc)
        rc = spool_unlink(run->spool, object->directory, name);
    if (!object->staged)
        believe_now(run, object, GONE, 0, 0);
    answered(run, what, rc, object->staged ? NO_PROMISE : A_PROMISE);
    object->staged = false;
}

static int64_t special(struct run *run, int64_t queue, const char *name) {
    struct spool_entry entry = {0};
    int rc = spool_lookup(run->spool, queue, name, &entry);
    if (rc)
        run_failed(run, "%s is not found: %s", name, strerror(-rc));
    return entry.number;
}

#endif
