/*
 * batch.c - running tasks, committing them together, and taking them apart again when that fails.
 */
#include "batch.h"

#include <errno.h>
#include <string.h>

#include "fs.h"
#include "log.h"

void batch_init(struct batch *batch) {
    *batch = (struct batch){0};
    batch->last = &batch->first;
}

static void tell_time(struct fs *fs) {
    bool changed = spool_changed(fs->spool);
    int result;

    fs->now = fs_time();
    result = spool_tick(fs->spool, fs->now);
    fs->frozen = fs->read_only ? -EROFS : result;
    if (result < 0 && result != -EROFS)
        fs->batch.suspect = true;
    if (!changed && spool_changed(fs->spool))
        fs->batch.binding = true;
    fs->batch.promised |= spool_promised(fs->spool);
}

static void run(struct fs *fs, struct task *task) {
    struct batch *batch = &fs->batch;

    if (batch->tasks == 0)
        batch->begun_ns = fs->now.boot_ns;
    task->next = NULL;
    task->pending = false;
    *batch->last = task;
    batch->last = &task->next;
    batch->tasks++;
    batch->running = task;
    task->run(fs, task);
    batch->promised |= spool_promised(fs->spool);
    batch->running = NULL;
}

void batch_run(struct fs *fs, struct task *task) {
    tell_time(fs);
    run(fs, task);
}

void batch_defer(struct fs *fs, struct outcome *outcome, bool awaited) {
    struct batch *batch = &fs->batch;

    outcome->next = batch->outcomes;
    batch->outcomes = outcome;
    batch->running->pending = true;
    batch->awaited |= awaited;
}

int batch_bind(struct fs *fs) {
    fs->batch.binding = true;
    return fs->frozen;
}

void batch_fail(struct fs *fs) {
    fs->batch.failed = true;
}

static int commit(struct fs *fs) {
    struct batch *batch = &fs->batch;
    uint64_t ticket;
    int result;

    if (batch->failed) {
        spool_rollback(fs->spool);
        return -ENOMEM;
    }
    if (!batch->suspect && !spool_changed(fs->spool))
        return 0;
    result = spool_commit(fs->spool, &ticket);
    if (result < 0)
        return result;
    fs->ticket = ticket;
    fs->unsaved = true;
    if (batch->promised)
        flusher_ask(fs->flusher, ticket);
    return 0;
}

static struct outcome *reverse(struct outcome *list) {
    struct outcome *reversed = NULL;

    while (list) {
        struct outcome *next = list->next;

        list->next = reversed;
        reversed = list;
        list = next;
    }
    return reversed;
}

/* What was done is seen to in its order, what was undone in the opposite one. */
static void end_outcomes(struct fs *fs, struct outcome *newest_first, enum verdict verdict, int error) {
    struct outcome *list = newest_first;

    if (verdict == BATCH_COMMITTED || verdict == BATCH_UNKNOWN)
        list = reverse(list);
    while (list) {
        struct outcome *next = list->next;

        list->end(fs, list, verdict, error);
        list = next;
    }
}

/* Ends the tasks that are over; returns those that have to be run again, in their order. */
static struct task *end_tasks(struct fs *fs, struct task *list, bool undone) {
    struct task *again = NULL;
    struct task **last = &again;

    while (list) {
        struct task *next = list->next;

        if (undone && list->pending) {
            list->next = NULL;
            *last = list;
            last = &list->next;
        } else if (list->end) {
            list->end(fs, list);
        }
        list = next;
    }
    return again;
}

static enum verdict judge(int result, bool alone) {
    if (result == 0)
        return BATCH_COMMITTED;
    if (result != -ENOSPC && result != -ENOMEM)
        return BATCH_UNKNOWN;
    return alone ? BATCH_REFUSED : BATCH_UNDONE;
}

static void complain(struct fs *fs, int result) {
    if (result < 0 && !fs->complained)
        log_line(LOG_ERR, "A transaction could not be written: %s.", strerror(-result));
    fs->complained = result < 0;
}

/* Returns the tasks that are to be run again. `alone`: this was the second time. */
static struct task *finish(struct fs *fs, bool alone) {
    struct batch batch = fs->batch;
    enum verdict verdict;
    int result;

    result = commit(fs);
    complain(fs, result);
    verdict = judge(result, alone);
    batch_init(&fs->batch);
    end_outcomes(fs, batch.outcomes, verdict, verdict == BATCH_UNKNOWN ? -EIO : result);
    return end_tasks(fs, batch.first, verdict == BATCH_UNDONE);
}

/* What falls due is a transaction of its own here: if there is no room for that, the task may still succeed. */
static void run_alone(struct fs *fs, struct task *task) {
    tell_time(fs);
    if (commit(fs) < 0)
        fs->frozen = fs->read_only ? -EROFS : 0;
    batch_init(&fs->batch);
    run(fs, task);
    finish(fs, true);
}

void batch_end(struct fs *fs) {
    struct task *again;

    if (fs->batch.tasks == 0)
        return;
    again = finish(fs, false);
    while (again) {
        struct task *task = again;

        again = task->next;
        run_alone(fs, task);
    }
}
