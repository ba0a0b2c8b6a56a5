/*
 * crash_run.h - a workload while it runs: requests in batches, commits and flushes as the mount makes them, and what is believed
 * from when on.
 */
#ifndef CRASH_RUN_H
#define CRASH_RUN_H

#include "crash_recovery.h"

enum { MOST_COMMITS = 256, MOST_MOMENTS = 16, MOST_GIVEN = 256, MOST_OPEN = 8, CHUNK_BYTES = 100000 };

/* How requests are put together. In percent. */
struct habits {
    int commit; /* after a request */
    int flush;  /* after a commit that somebody waits for, rather than later */
    int reap;   /* after a flush */
};

struct commit {
    size_t begun, done; /* events */
    size_t flushed;     /* SIZE_MAX: not yet */
};

/* A number that was given by that event. */
struct given {
    size_t at;
    int64_t number;
};

/* From this event on it is that time. */
struct moment {
    size_t from;
    struct spool_time now;
};

struct run {
    struct spool *spool;
    struct recording *recording;
    struct model *model;
    struct arena *arena;
    struct chance chance;
    struct habits habits;
    char path[128];
    bool answer_early; /* a bug: what is committed is taken for answered */
    bool quiet, failed;

    struct moment moments[MOST_MOMENTS];
    int moment_count;
    struct commit commits[MOST_COMMITS];
    int commit_count;
    struct given given[MOST_GIVEN];
    int given_count;
    uint64_t ticket;   /* the last one */
    bool promised;     /* the open batch holds an answer that waits for a flush */
    bool wants_flush;  /* a commit does */
    size_t begun;      /* of the present request */
    int64_t queues[4]; /* numbers: ordinary ones, one with on_conflict=replace, one that is empty */
    int64_t worker;
    struct spool_writer *open[MOST_OPEN]; /* what the steps left open */
    struct object *open_object[MOST_OPEN];
    struct spool_reader *readers[MOST_OPEN];
    int open_count, reader_count;
};

enum { MAIN_QUEUE, OTHER_QUEUE, REPLACING_QUEUE, EMPTY_QUEUE };

static struct spool_time time_of(const struct run *run) {
    return run->moments[run->moment_count - 1].now;
}

static void advance(struct run *run, int64_t ns) {
    struct spool_time now = time_of(run);
    assert(run->moment_count < MOST_MOMENTS);
    now.wall_ns += ns;
    now.boot_ns += ns;
    run->moments[run->moment_count++] = (struct moment){run->recording->count, now};
}

static void note_number(struct run *run, int64_t number) {
    assert(run->given_count < MOST_GIVEN);
    run->given[run->given_count++] = (struct given){run->recording->count, number};
}

/* Which of the moments it was at an event. */
static int moment_at(const struct run *run, size_t at) {
    int moment = 0;
    while (moment + 1 < run->moment_count && run->moments[moment + 1].from <= at)
        moment++;
    return moment;
}

__attribute__((format(printf, 2, 3))) static void run_failed(struct run *run, const char *format, ...) {
    va_list arguments;
    run->failed = true;
    if (run->quiet)
        return;
    printf("# ");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
}

/* --- flushes and commits --------------------------------------------------------------------------------------------- */

static void now_durable(struct run *run, int commit, size_t at) {
    for (int i = 0; i < run->model->object_count; i++) {
        struct object *object = &run->model->objects[i];
        for (int k = 0; k < object->belief_count; k++) {
            struct belief *belief = &object->beliefs[k];
            if (belief->commit != NOT_YET && belief->commit <= commit && belief->durable > at)
                belief->durable = at;
        }
    }
}

static void flush_log(struct run *run) {
    run->wants_flush = false;
    int rc = spool_sync(run->spool, run->ticket);
    if (rc)
        run_failed(run, "a flush fails: %s", strerror(-rc));
    for (int i = 0; i < run->commit_count; i++) {
        if (run->commits[i].flushed == SIZE_MAX)
            run->commits[i].flushed = run->recording->count;
    }
    now_durable(run, run->commit_count - 1, run->recording->count);
    if (draw_percent(&run->chance, run->habits.reap) && spool_wants_reap(run->spool))
        spool_reap(run->spool);
}

static void commit_batch(struct run *run) {
    size_t begun = run->recording->count;
    uint64_t ticket;
    int rc = spool_commit(run->spool, &ticket);
    if (rc)
        run_failed(run, "a commit fails: %s", strerror(-rc));
    if (ticket > run->ticket) {
        assert(run->commit_count < MOST_COMMITS);
        run->commits[run->commit_count++] = (struct commit){begun, run->recording->count, SIZE_MAX};
    }
    run->ticket = ticket;
    for (int i = 0; i < run->model->object_count; i++) {
        struct object *object = &run->model->objects[i];
        for (int k = 0; k < object->belief_count; k++) {
            if (object->beliefs[k].commit == NOT_YET)
                object->beliefs[k].commit = run->commit_count - 1;
        }
    }
    if (run->promised && run->answer_early)
        now_durable(run, run->commit_count - 1, run->recording->count);
    run->wants_flush |= run->promised;
    run->promised = false;
    if (run->wants_flush && draw_percent(&run->chance, run->habits.flush))
        flush_log(run);
}

/* --- requests -------------------------------------------------------------------------------------------------------- */

static void request(struct run *run) {
    run->begun = run->recording->count;
    int rc = spool_tick(run->spool, time_of(run));
    if (rc)
        run_failed(run, "a tick fails: %s", strerror(-rc));
    run->promised |= spool_promised(run->spool);
}

enum { NO_PROMISE, A_PROMISE };

/* The request's answer was `rc`. */
static void answered(struct run *run, const char *what, int rc, int promise) {
    bool promised = spool_promised(run->spool);
    if (rc)
        run_failed(run, "%s fails: %s", what, strerror(-rc));
    else if (promise == A_PROMISE && !promised)
        run_failed(run, "%s does not wait for a flush", what);
    run->promised |= promised;
    if (draw_percent(&run->chance, run->habits.commit))
        commit_batch(run);
}

/* --- starting and ending --------------------------------------------------------------------------------------------- */

static bool run_open(struct run *run) {
    struct spool_options options = {.boot_id = "first", .log_bytes = LOG_BYTES, .tap = &run->recording->tap};
    char why[400] = "";
    size_t begun = run->recording->count;
    int rc = spool_open(run->path, &options, time_of(run), &run->spool, why, sizeof why);
    if (rc)
        run_failed(run, "it does not start: %s", why);
    run->ticket = 0;
    run->commits[run->commit_count++] = (struct commit){begun, run->recording->count, run->recording->count};
    return rc == 0;
}

/* Everything is on stable storage after that. */
static void run_close(struct run *run) {
    commit_batch(run);
    flush_log(run);
    spool_close(run->spool);
    run->spool = NULL;
}

#endif
