/*
 * crash_steps_files.h - steps: files become messages, and messages are written, renamed, withdrawn and cancelled. Each step finds the
 * message that it needs, or makes one.
 */
#ifndef CRASH_STEPS_FILES_H
#define CRASH_STEPS_FILES_H

#include "crash_files.h"

static int64_t main_queue(const struct run *run) {
    return run->queues[MAIN_QUEUE];
}

static struct object *waiting(struct run *run, long length) {
    struct object *object = pick(run, IN_QUEUE, main_queue(run), length);
    return object ? object : publish(run, main_queue(run), length == ANY_SIZE ? SMALL_BYTES : (size_t)length);
}

static struct object *staged(struct run *run, long length) {
    struct object *object = pick_staged(run, length);
    return object ? object : stage(run, main_queue(run), length == ANY_SIZE ? SMALL_BYTES : (size_t)length);
}

/* --- publishing ------------------------------------------------------------------------------------------------------ */

static void step_publish(struct run *run, long length) {
    publish(run, main_queue(run), (size_t)length);
}

static void step_stage(struct run *run, long length) {
    stage(run, main_queue(run), (size_t)length);
}

static void step_publish_staged(struct run *run, long length) {
    struct object *object = staged(run, length);
    move(run, object, main_queue(run), object->name,
         (struct turn){"a publishing rename", IN_QUEUE, main_queue(run), next_place(run), A_PROMISE});
    object->staged = false;
}

static void step_publish_elsewhere(struct run *run, long length) {
    struct object *object = staged(run, length);
    int64_t queue = run->queues[OTHER_QUEUE];
    move(run, object, queue, object->name,
         (struct turn){"a publishing rename", IN_QUEUE, queue, next_place(run), A_PROMISE});
    object->staged = false;
}

/* The link is the message from then on; the staged file goes. */
static void step_link(struct run *run, long length) {
    struct object *object = staged(run, length);
    struct spool_entry entry = {0};
    char name[SPOOL_NAME_MAX + 1] = "";
    request(run);
    int rc = find_name(run, object, name);
    if (!rc)
        rc = spool_link(run->spool, object->number, main_queue(run), object->name, somebody, &entry);
    believe_now(run, object, IN_QUEUE, main_queue(run), next_place(run));
    object->number = entry.number;
    object->staged = false;
    note_number(run, entry.number);
    answered(run, "a link", rc, A_PROMISE);
    request(run);
    rc = spool_unlink(run->spool, object->directory, name);
    object->directory = main_queue(run);
    answered(run, "the removal of a staged file", rc, NO_PROMISE);
}

static void step_drop_staged(struct run *run, long length) {
    erase(run, staged(run, length), "the removal of a staged file");
}

static void step_killed_writer(struct run *run, long length) {
    struct object *object = new_message(run, (size_t)length);
    struct spool_writer *writer = create(run, main_queue(run), object->name, object);
    if (!writer)
        return;
    write_bytes(run, writer, object->bytes, object->length, 0);
    release(run, writer, true, NULL, 0);
}

/* Written on after a flush, and left open until the end of the workload. */
static void step_unfinished(struct run *run, long length) {
    struct object *object = new_message(run, (size_t)length);
    struct spool_writer *writer = create(run, main_queue(run), object->name, object);
    if (!writer)
        return;
    write_bytes(run, writer, object->bytes, object->length, 0);
    flush(run, writer, object, main_queue(run), place_of_unclosed(run));
    bool append = draw_percent(&run->chance, 50);
    size_t from = append ? object->length : 0, count = 3000;
    if (append)
        renew_content(run->model, run->arena, object, object->length, object->length + count);
    else
        renew_beginning(run->model, run->arena, object, count < object->length ? count : object->length);
    count = append || count < object->length ? count : object->length;
    run->begun = run->recording->count;
    believe_now(run, object, GONE, 0, 0); /* kept aside, under a staged name */
    write_bytes(run, writer, object->bytes + from, count, (int64_t)from);
    leave_open(run, writer, object);
}

/* Two at once, flushed in the opposite order, and left open. */
static void step_open_two(struct run *run, long length) {
    struct object *objects[2];
    struct spool_writer *writers[2];
    for (int i = 0; i < 2; i++) {
        objects[i] = new_message(run, (size_t)length);
        writers[i] = create(run, main_queue(run), objects[i]->name, objects[i]);
        if (!writers[i])
            return;
        write_bytes(run, writers[i], objects[i]->bytes, objects[i]->length, 0);
    }
    for (int i = 1; i >= 0; i--) {
        flush(run, writers[i], objects[i], main_queue(run), place_of_unclosed(run));
        leave_open(run, writers[i], objects[i]);
    }
}

/* --- waiting messages ------------------------------------------------------------------------------------------------ */

static void step_cancel(struct run *run, long length) {
    erase(run, waiting(run, length), "a cancellation");
}

static void step_cancel_while_read(struct run *run, long length) {
    struct object *object = waiting(run, length);
    struct spool_reader *reader = NULL;
    request(run);
    int rc = spool_open_reader(run->spool, object->number, &reader);
    answered(run, "opening for reading", rc, NO_PROMISE);
    erase(run, object, "a cancellation");
    if (draw_percent(&run->chance, 50) && run->reader_count < MOST_OPEN) {
        run->readers[run->reader_count++] = reader;
        return;
    }
    request(run);
    spool_close_reader(reader);
    answered(run, "a close", 0, NO_PROMISE);
}

static void step_withdraw(struct run *run, long length) {
    struct object *object = waiting(run, length);
    char name[64];
    move(run, object, main_queue(run), staged_name(object, name), (struct turn){"a withdrawal", GONE, 0, 0, A_PROMISE});
    object->staged = true;
}

static void step_delay(struct run *run, long length) {
    struct object *object = waiting(run, length);
    request(run);
    int rc = spool_touch(run->spool, object->number, SPOOL_OMIT, 0, SPOOL_AT, time_of(run).wall_ns + 3600 * SECOND);
    object->delayed = true;
    answered(run, "a delay", rc, NO_PROMISE);
}

static void step_rename(struct run *run, long length) {
    struct object *object = waiting(run, length);
    char name[32];
    snprintf(name, sizeof name, "renamed%u", ++run->model->names);
    move(run, object, main_queue(run), name,
         (struct turn){"a rename", IN_QUEUE, main_queue(run), now_believed(object)->place, NO_PROMISE});
}

static void step_edit(struct run *run, long length) {
    struct object *object = waiting(run, length);
    struct spool_writer *writer = open_writer(run, object, false, true);
    size_t kept = object->length;
    if (!writer)
        return;
    renew_content(run->model, run->arena, object, kept, kept + 300);
    write_bytes(run, writer, object->bytes + kept, 300, (int64_t)kept);
    flush(run, writer, object, main_queue(run), now_believed(object)->place);
    release(run, writer, false, NULL, 0);
}

/* A truncating open, which puts a new file in the place of the name. */
static int64_t open_over(struct run *run, struct object *object) {
    struct spool_writer *writer;
    struct spool_entry entry = {0};
    request(run);
    int rc = spool_open_writer(run->spool, object->number, true, false, somebody, &entry, &writer);
    note_number(run, entry.number);
    answered(run, "a truncating open", rc == -ESTALE ? 0 : rc ? rc : -EIO, NO_PROMISE);
    return entry.number;
}

static void step_overwrite(struct run *run, long length) {
    struct object *fresh = new_message(run, (size_t)length);
    fresh->number = open_over(run, waiting(run, ANY_SIZE));
    fresh->directory = main_queue(run);
    struct spool_writer *writer = open_writer(run, fresh, true, false);
    if (writer)
        finish_message(run, writer, fresh, main_queue(run));
}

static void step_undo_overwrite(struct run *run, long length) {
    struct object *object = waiting(run, length);
    int64_t placeholder = open_over(run, object);
    request(run);
    int rc = spool_undo_overwrite(run->spool, object->number, placeholder);
    answered(run, "taking back a truncating open", rc, NO_PROMISE);
}

/* The way of scp: no truncation, a write at the start. The older message gets another number. */
static void step_overwrite_in_place(struct run *run, long length) {
    struct object *older = waiting(run, ANY_SIZE);
    struct spool_writer *writer = open_writer(run, older, false, false);
    struct object *fresh = new_message(run, (size_t)length);
    if (!writer)
        return;
    fresh->number = older->number;
    fresh->directory = main_queue(run);
    older->busy = true;
    finish_message(run, writer, fresh, main_queue(run));
}

static struct object *replaceable(struct run *run) {
    int64_t queue = run->queues[REPLACING_QUEUE];
    struct object *object = pick(run, IN_QUEUE, queue, ANY_SIZE);
    return object ? object : publish(run, queue, SMALL_BYTES);
}

static void step_replace(struct run *run, long length) {
    struct object *object = replaceable(run);
    struct spool_writer *writer = open_writer(run, object, true, false);
    if (!writer)
        return;
    renew_content(run->model, run->arena, object, 0, (size_t)length);
    write_bytes(run, writer, object->bytes, object->length, 0);
    flush(run, writer, object, run->queues[REPLACING_QUEUE], now_believed(object)->place);
    release(run, writer, false, NULL, 0);
}

static void step_replace_by_rename(struct run *run, long length) {
    struct object *older = replaceable(run), *fresh = staged(run, length);
    int64_t queue = run->queues[REPLACING_QUEUE];
    char name[SPOOL_NAME_MAX + 1] = "";
    int64_t place = now_believed(older)->place;
    if (find_name(run, older, name) != 0)
        run_failed(run, "%s has no name", older->name);
    run->begun = run->recording->count;
    believe_now(run, older, GONE, 0, 0);
    move(run, fresh, queue, name, (struct turn){"a publishing rename", IN_QUEUE, queue, place, A_PROMISE});
    fresh->staged = false;
}

#endif
