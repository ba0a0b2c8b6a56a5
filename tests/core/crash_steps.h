/*
 * crash_steps.h - what workloads are made of: steps with queues, settings and the log, and the list of all.
 */
#ifndef CRASH_STEPS_H
#define CRASH_STEPS_H

#include "crash_steps_leases.h"

static const char *queue_name(const struct object *queue, char name[64]) {
    snprintf(name, 64, "%s.v%d", queue->name, queue->version);
    return name;
}

static struct object *make_queue(struct run *run) {
    struct object *queue = new_object(run->model, QUEUE, "queue");
    struct spool_entry entry = {0};
    char name[64];
    request(run);
    int rc = spool_mkdir(run->spool, SPOOL_ROOT, queue_name(queue, name), 0755, somebody, &entry);
    queue->number = entry.number;
    note_number(run, entry.number);
    believe_now(run, queue, IN_QUEUE, queue->number, 0);
    answered(run, "the making of a queue", rc, A_PROMISE);
    return queue;
}

static void step_make_queue(struct run *run, long length) {
    (void)length;
    make_queue(run);
}

static struct object *empty_queue(struct run *run) {
    for (int i = run->model->object_count - 1; i >= 0; i--) {
        struct object *object = &run->model->objects[i];
        if (object->kind == QUEUE && now_believed(object)->where == IN_QUEUE &&
            object->number >= run->queues[EMPTY_QUEUE])
            return object;
    }
    return make_queue(run);
}

static void step_remove_queue(struct run *run, long length) {
    struct object *queue = empty_queue(run);
    char name[64];
    (void)length;
    request(run);
    int rc = spool_rmdir(run->spool, SPOOL_ROOT, queue_name(queue, name));
    believe_now(run, queue, GONE, 0, 0);
    answered(run, "the removal of a queue", rc, A_PROMISE);
}

/* Of the main queue, with all that is in it (1), or of an empty one (0). */
static void step_rename_queue(struct run *run, long which) {
    struct object *queue = which ? &run->model->objects[0] : empty_queue(run);
    char from[64], to[64];
    queue_name(queue, from);
    queue->version++;
    request(run);
    int rc = spool_move(run->spool, SPOOL_ROOT, from, SPOOL_ROOT, queue_name(queue, to), true, somebody, NULL);
    believe_now(run, queue, IN_QUEUE, queue->number, 0);
    answered(run, "the renaming of a queue", rc, A_PROMISE);
}

static struct object *find_setting(struct run *run) {
    for (int i = 0; i < run->model->object_count; i++) {
        if (run->model->objects[i].kind == SETTING)
            return &run->model->objects[i];
    }
    return NULL;
}

static void step_set(struct run *run, long length) {
    struct object *setting = find_setting(run);
    char text[32];
    (void)length;
    int written = snprintf(text, sizeof text, "%d\n", ++setting->version);
    request(run);
    int rc = spool_set_setting(run->spool, setting->directory, SPOOL_MAX_ATTEMPTS, text, (size_t)written);
    believe_now(run, setting, IN_QUEUE, setting->directory, 0);
    answered(run, "a setting", rc, A_PROMISE);
}

static void step_log(struct run *run, long length) {
    (void)length;
    commit_batch(run);
    flush_log(run);
    int rc = spool_checkpoint(run->spool);
    if (rc)
        run_failed(run, "a checkpoint fails: %s", strerror(-rc));
}

/* More than half a block of numbers: the next block is asked for. */
static void step_use_numbers(struct run *run, long count) {
    int64_t claimed = special(run, main_queue(run), "claimed");
    struct spool_entry entry = {0};
    int rc = 0;
    request(run);
    for (long i = 0; i < count && !rc; i++) {
        rc = spool_mkdir(run->spool, claimed, "short-lived", 0700, somebody, &entry);
        if (!rc)
            rc = spool_rmdir(run->spool, claimed, "short-lived");
    }
    note_number(run, entry.number);
    answered(run, "using up numbers", rc, NO_PROMISE);
}

/* What is undone must leave no trace. */
static void step_roll_back(struct run *run, long length) {
    struct object *one = waiting(run, length);
    char name[SPOOL_NAME_MAX + 1] = "";
    commit_batch(run);
    request(run);
    int rc = find_name(run, one, name);
    if (!rc)
        rc = spool_unlink(run->spool, one->directory, name);
    if (rc)
        run_failed(run, "a cancellation fails: %s", strerror(-rc));
    spool_rollback(run->spool);
}

/* Close what is open, as the end of a mount does. */
static void close_files(struct run *run) {
    for (int i = 0; i < run->open_count; i++) {
        struct object *object = run->open_object[i];
        flush(run, run->open[i], object, main_queue(run), place_of_unclosed(run));
        release(run, run->open[i], false, object, main_queue(run));
    }
    for (int i = 0; i < run->reader_count; i++) {
        request(run);
        spool_close_reader(run->readers[i]);
        answered(run, "a close", 0, NO_PROMISE);
    }
    run->open_count = run->reader_count = 0;
}

static void step_restart(struct run *run, long length) {
    (void)length;
    close_files(run);
    run_close(run);
    run_open(run);
}

static const struct step {
    const char *name;
    void (*run)(struct run *run, long argument);
    long argument;
} steps[] = {
    {"publish small", step_publish, SMALL_BYTES},
    {"publish large", step_publish, LARGE_BYTES},
    {"publish empty", step_publish, 0},
    {"stage large", step_stage, LARGE_BYTES},
    {"publish staged small", step_publish_staged, SMALL_BYTES},
    {"publish staged large", step_publish_staged, LARGE_BYTES},
    {"publish staged in another queue", step_publish_elsewhere, LARGE_BYTES},
    {"link small", step_link, SMALL_BYTES},
    {"link large", step_link, LARGE_BYTES},
    {"drop staged large", step_drop_staged, LARGE_BYTES},
    {"killed writer", step_killed_writer, LARGE_BYTES},
    {"unfinished small", step_unfinished, SMALL_BYTES},
    {"unfinished large", step_unfinished, LARGE_BYTES},
    {"open two", step_open_two, SMALL_BYTES},
    {"claim small", step_claim, SMALL_BYTES},
    {"claim as worker", step_claim_as_worker, LARGE_BYTES},
    {"hand over", step_hand_over, ANY_SIZE},
    {"release", step_release, ANY_SIZE},
    {"acknowledge small", step_acknowledge, SMALL_BYTES},
    {"acknowledge large", step_acknowledge, LARGE_BYTES},
    {"forward small", step_forward, SMALL_BYTES},
    {"forward large", step_forward, LARGE_BYTES},
    {"forward waiting", step_forward_waiting, ANY_SIZE},
    {"bury", step_bury, ANY_SIZE},
    {"requeue", step_requeue, ANY_SIZE},
    {"discard", step_discard, ANY_SIZE},
    {"expire", step_expire, ANY_SIZE},
    {"give up", step_give_up, ANY_SIZE},
    {"checkpoint small", step_checkpoint, SMALL_BYTES + 1},
    {"checkpoint large", step_checkpoint, LARGE_BYTES + 1},
    {"worker", step_worker, ANY_SIZE},
    {"cancel small", step_cancel, SMALL_BYTES},
    {"cancel large", step_cancel, LARGE_BYTES},
    {"cancel small while read", step_cancel_while_read, SMALL_BYTES},
    {"cancel large while read", step_cancel_while_read, LARGE_BYTES},
    {"withdraw", step_withdraw, ANY_SIZE},
    {"delay", step_delay, ANY_SIZE},
    {"rename", step_rename, ANY_SIZE},
    {"edit small", step_edit, SMALL_BYTES},
    {"edit large", step_edit, LARGE_BYTES},
    {"overwrite small", step_overwrite, SMALL_BYTES},
    {"overwrite large", step_overwrite, LARGE_BYTES},
    {"undo overwrite", step_undo_overwrite, ANY_SIZE},
    {"overwrite in place small", step_overwrite_in_place, SMALL_BYTES},
    {"overwrite in place large", step_overwrite_in_place, LARGE_BYTES},
    {"replace small", step_replace, SMALL_BYTES + 2},
    {"replace large", step_replace, LARGE_BYTES + 2},
    {"replace by rename", step_replace_by_rename, SMALL_BYTES},
    {"make queue", step_make_queue, 0},
    {"remove queue", step_remove_queue, 0},
    {"rename empty queue", step_rename_queue, 0},
    {"rename queue", step_rename_queue, 1},
    {"set", step_set, 0},
    {"log checkpoint", step_log, 0},
    {"roll back", step_roll_back, ANY_SIZE},
    {"restart", step_restart, 0},
    {"use numbers", step_use_numbers, 33000},
};
enum { STEPS = sizeof steps / sizeof steps[0] - 1, USE_NUMBERS = STEPS }; /* numbers: not in pairs, it takes its time */

#endif
