/*
 * test_db_faults.c - tickets and flushes in several threads, and what happens when a write or a flush fails.
 */
#include "db_under_test.h"

#include <signal.h>
#include <sys/resource.h>

/* --- flushes ---------------------------------------------------------------------------------------------------- */

struct waiter {
    struct fixture *f;
    uint64_t ticket;
    int result;
    pthread_t thread;
};

static void *wait_for_ticket(void *argument) {
    struct waiter *waiter = argument;
    waiter->result = db_sync(waiter->f->db, waiter->ticket);
    return NULL;
}

static void start_waiter(struct waiter *waiter, struct fixture *f, uint64_t ticket) {
    *waiter = (struct waiter){.f = f, .ticket = ticket, .result = 1};
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_ticket, waiter), 0);
}

static int result_of(struct waiter *waiter) {
    pthread_join(waiter->thread, NULL);
    return waiter->result;
}

/* Stands in for the system's flush of the log: waits while the gate is closed, then answers what it is told to. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool closed, waiting;
    int answer;
    sqlite3_io_methods methods;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int gate_sync(sqlite3_file *file, int flags) {
    (void)file;
    assert_int_equal(flags & SQLITE_SYNC_DATAONLY, SQLITE_SYNC_DATAONLY);
    pthread_mutex_lock(&gate.mutex);
    gate.waiting = true;
    pthread_cond_broadcast(&gate.changed);
    while (gate.closed)
        pthread_cond_wait(&gate.changed, &gate.mutex);
    gate.waiting = false;
    int answer = gate.answer;
    pthread_mutex_unlock(&gate.mutex);
    return answer;
}

static void close_gate(struct fixture *f) {
    sqlite3_file *log = f->db->vfs->log->real;
    gate.methods = *log->pMethods;
    gate.methods.xSync = gate_sync;
    log->pMethods = &gate.methods;
    gate.closed = true;
    gate.answer = SQLITE_OK;
}

static void await_flush(void) {
    pthread_mutex_lock(&gate.mutex);
    while (!gate.waiting)
        pthread_cond_wait(&gate.changed, &gate.mutex);
    pthread_mutex_unlock(&gate.mutex);
}

static void open_gate(int answer) {
    pthread_mutex_lock(&gate.mutex);
    gate.closed = false;
    gate.answer = answer;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.mutex);
}

static void test_sync__one_flush_serves_all_that_wait(void **state) {
    struct fixture *f = *state;
    struct waiter first, others[4];
    uint64_t ticket = commit_item_well(f, 1);
    uint64_t flushes = counts(f).flushes;

    close_gate(f);
    start_waiter(&first, f, ticket);
    await_flush();
    for (int i = 0; i < 4; i++)
        start_waiter(&others[i], f, commit_item_well(f, 2 + i)); /* committing goes on meanwhile */
    assert_int_equal(db_synced(f->db), 0);
    assert_int_equal(db_issued(f->db), 5);
    open_gate(SQLITE_OK);

    assert_int_equal(result_of(&first), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(result_of(&others[i]), 0);
    assert_int_equal(counts(f).flushes - flushes, 2);
    assert_int_equal(db_synced(f->db), 5);
}

static void test_sync__a_ticket_covered_before_needs_no_flush(void **state) {
    struct fixture *f = *state;
    uint64_t first = commit_item_well(f, 1), second = commit_item_well(f, 2);
    uint64_t flushes = counts(f).flushes;
    assert_int_equal(db_sync(f->db, 0), 0);
    assert_int_equal(counts(f).flushes, flushes);
    assert_int_equal(db_sync(f->db, second), 0);
    assert_int_equal(counts(f).flushes, flushes + 1);
    assert_int_equal(db_sync(f->db, first), 0);
    assert_int_equal(db_checkpoint(f->db), 0); /* the log is clean: only the database file is flushed */
    assert_int_equal(counts(f).flushes, flushes + 1);
}

static void *sync_until_all_is_done(void *argument) {
    struct fixture *f = argument;
    uint64_t synced = 0;
    while (synced < 300) {
        uint64_t ticket = db_issued(f->db);
        if (db_sync(f->db, ticket))
            return (void *)"a flush failed";
        if (db_synced(f->db) < ticket || ticket < synced)
            return (void *)"a ticket went back";
        synced = ticket;
    }
    return NULL;
}

static void test_sync__goes_on_beside_commits_and_checkpoints(void **state) {
    struct fixture *f = *state;
    pthread_t threads[2];
    void *complaint;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, sync_until_all_is_done, f), 0);
    for (int64_t id = 1; id <= 300; id++) {
        commit_item_well(f, id);
        if (id % 7 == 0)
            assert_int_equal(db_checkpoint(f->db), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &complaint);
        assert_null(complaint);
    }
    assert_int_equal(count_items_after_kill(f), 300);
}

/* --- the latch -------------------------------------------------------------------------------------------------- */

static void assert_broken_for_good(struct fixture *f, uint64_t ticket, int64_t items) {
    tap_allow(f);
    unsigned syncs = f->tap.seen[DB_SYNC][DB_FILE_LOG];
    assert_true(db_broken(f->db));
    assert_int_equal(db_sync(f->db, ticket), -EIO);
    assert_int_equal(db_checkpoint(f->db), -EIO);
    assert_int_equal(commit_item(f, 1000, NULL), -EIO);
    assert_false(db_in_transaction(f->db));
    assert_int_equal(f->tap.seen[DB_SYNC][DB_FILE_LOG], syncs);

    assert_int_equal(db_begin(f->db), 0); /* reading goes on */
    assert_int_equal(count_items(f->db), items);
    assert_int_equal(db_commit(f->db, NULL), 0);

    close_db(f);
    assert_true(exists(f, "-wal"));
    open_db(f);
    assert_false(db_broken(f->db));
    assert_int_equal(count_items(f->db), items);
}

static void test_latch__a_failed_flush_is_the_last(void **state) {
    struct fixture *f = *state;
    uint64_t ticket = commit_item_well(f, 1);
    tap_fail(f, DB_SYNC, DB_FILE_LOG, 0, -EIO);
    assert_int_equal(db_sync(f->db, ticket), -EIO);
    assert_int_equal(db_synced(f->db), 0);
    assert_broken_for_good(f, ticket, 1);
}

static void test_latch__fails_all_that_wait(void **state) {
    struct fixture *f = *state;
    struct waiter waiters[3];
    commit_item_well(f, 1);
    close_gate(f);
    start_waiter(&waiters[0], f, 1);
    await_flush();
    commit_item_well(f, 2);
    for (int i = 1; i < 3; i++)
        start_waiter(&waiters[i], f, 2);
    open_gate(SQLITE_IOERR_FSYNC);
    for (int i = 0; i < 3; i++)
        assert_int_equal(result_of(&waiters[i]), -EIO);
    assert_broken_for_good(f, 2, 2);
}

static void test_latch__is_set_by_a_failed_flush_of_the_database_file(void **state) {
    struct fixture *f = *state;
    uint64_t ticket = commit_item_well(f, 1);
    assert_int_equal(db_sync(f->db, ticket), 0);
    tap_fail(f, DB_SYNC, DB_FILE_MAIN, 0, -EIO);
    assert_int_equal(db_checkpoint(f->db), -EIO);
    assert_broken_for_good(f, ticket, 1);
}

static void test_latch__is_set_by_a_failed_flush_of_a_restarted_log(void **state) {
    struct fixture *f = *state;
    tap_fail(f, DB_SYNC, DB_FILE_LOG, 0, -EIO);
    assert_int_equal(commit_item(f, 1, NULL), -EIO);
    assert_broken_for_good(f, 0, 0);
}

static void test_latch__can_be_set_by_hand(void **state) {
    struct fixture *f = *state;
    uint64_t ticket = commit_item_well(f, 1);
    db_break(f->db);
    assert_broken_for_good(f, ticket, 1);
}

/* --- writes that fail in a commit ------------------------------------------------------------------------------- */

/* A transaction that reaches the log in `WRITES` writes. */
enum { BULK_PAGES = 56, WRITES = 4 };

static int commit_bulk(struct fixture *f, int64_t id) {
    uint64_t ticket = 99;
    assert_int_equal(db_begin(f->db), 0);
    assert_int_equal(add_item(f, id), 1);
    assert_int_equal(db_run(f->db, Q_bulk_add, db_int(BULK_PAGES * 4096)), 1);
    int rc = db_commit(f->db, &ticket);
    if (rc)
        assert_int_equal(ticket, 99);
    return rc;
}

static void test_commit__a_full_disk_undoes_it_and_it_may_be_tried_again(void **state) {
    struct fixture *f = *state;
    commit_item_well(f, 1);
    for (int write = 0; write < WRITES; write++) {
        struct db_counts before = counts(f);
        tap_fail(f, DB_WRITE, DB_FILE_LOG, write, -ENOSPC);
        assert_int_equal(commit_bulk(f, 2 + write), -ENOSPC);
        assert_int_equal(counts(f).log_writes - before.log_writes, write);
        assert_false(db_in_transaction(f->db));
        assert_false(db_broken(f->db));
        assert_int_equal(db_issued(f->db), 1 + write);
        assert_int_equal(count_items(f->db), 1 + write);
        assert_int_equal(count_items_after_kill(f), 1 + write);
        tap_allow(f);
        before = counts(f);
        assert_int_equal(commit_bulk(f, 2 + write), 0);
        assert_in_range(counts(f).log_writes - before.log_writes, WRITES, WRITES + 1);
        assert_int_equal(db_sync(f->db, db_issued(f->db)), 0);
        assert_int_equal(count_items_after_kill(f), 2 + write);
    }
}

static void test_commit__an_io_error_sets_the_latch(void **state) {
    struct fixture *f = *state;
    commit_item_well(f, 1);
    for (int write = 0; write < WRITES; write++) {
        tap_fail(f, DB_WRITE, DB_FILE_LOG, write, -EIO);
        assert_int_equal(commit_bulk(f, 2), -EIO);
        assert_false(db_in_transaction(f->db));
        assert_broken_for_good(f, 0, 1);
    }
}

/* The system's own refusal, with a write that is cut short before it: a limit of the size of files. */
static void test_commit__a_real_limit_undoes_it_too(void **state) {
    struct fixture *f = *state;
    struct rlimit before, limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (rlim_t pages = 20; pages < 120; pages += 7) {
        limit = before;
        limit.rlim_cur = LOG_BYTES + pages * 1000;
        assert_int_equal(db_checkpoint(f->db), 0);
        assert_int_equal(db_begin(f->db), 0);
        assert_int_equal(db_run(f->db, Q_bulk_add, db_int(2 * LOG_BYTES)), 1);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        int rc = db_commit(f->db, NULL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(rc, -ENOSPC);
        assert_false(db_broken(f->db));
        int64_t items = count_items(f->db);
        commit_item_well(f, items + 1);
        assert_int_equal(count_items_after_kill(f), items + 1);
    }
}

static void test_transaction__that_is_lost_applies_nothing_more(void **state) {
    struct fixture *f = *state;
    assert_int_equal(sqlite3_exec(f->db->sqlite, "PRAGMA max_page_count = 30", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(db_begin(f->db), 0);
    assert_int_equal(add_item(f, 1), 1);
    assert_int_equal(db_run(f->db, Q_bulk_add, db_int(100 * 4096)), -ENOSPC);
    assert_false(db_in_transaction(f->db));
    assert_int_equal(add_item(f, 2), -ENOSPC);
    assert_int_equal(db_run(f->db, Q_child_add, db_int(1)), -ENOSPC);
    assert_int_equal(db_commit(f->db, NULL), -ENOSPC);
    assert_int_equal(count_items(f->db), 0);
    assert_false(db_broken(f->db));
    commit_item_well(f, 3);
    assert_int_equal(count_items(f->db), 1);
}

/* --- elsewhere -------------------------------------------------------------------------------------------------- */

static void test_checkpoint__on_a_full_disk_keeps_the_log(void **state) {
    struct fixture *f = *state;
    commit_item_well(f, 1);
    int64_t log_bytes = db_log_bytes(f->db);
    tap_fail(f, DB_WRITE, DB_FILE_MAIN, 0, -ENOSPC);
    assert_int_equal(db_checkpoint(f->db), -ENOSPC);
    assert_int_equal(db_log_bytes(f->db), log_bytes);
    assert_false(db_broken(f->db));
    assert_int_equal(counts(f).checkpoints, 0);
    commit_item_well(f, 2);
    close_db(f);
    assert_true(exists(f, "-wal"));
    open_db(f); /* on the full disk still */
    assert_int_equal(count_items(f->db), 2);
    tap_allow(f);
    assert_int_equal(db_checkpoint(f->db), 0);
    close_db(f);
    assert_false(exists(f, "-wal"));
}

static void test_open__works_when_the_log_cannot_grow(void **state) {
    struct fixture *f = *state;
    close_db(f);
    tap_fail(f, DB_WRITE, DB_FILE_LOG, 1, -ENOSPC);
    open_db(f);
    tap_allow(f);
    commit_item_well(f, 1);
    assert_int_equal(count_items_after_kill(f), 1);
}

/* Whatever call fails while a database is made or opened, nothing is left open, and the next open finds it in order.
 * */
static void test_open__survives_a_failure_of_any_call(void **state) {
    struct fixture *f = *state;
    struct db *db = NULL;
    int failures[2] = {0, 0};
    for (int made = 0; made < 2; made++) {
        for (int rc = -1, call = 0; rc; call++) {
            tap_fail(f, DB_WRITE, DB_FILE_LOG, call, -EIO);
            f->tap.any = true;
            rc = try_open(f, &db);
            if (!rc)
                break;
            failures[made]++;
            assert_null(db);
            assert_true(strlen(f->why) > strlen(f->path));
            assert_false(exists(f, ".lock"));
            if (made)
                continue;
            tap_allow(f);
            open_db(f);
            assert_int_equal(count_items(f->db), 0);
            close_db(f);
            run_shell("rm '%s'", f->path);
        }
        tap_allow(f);
        db_close(db);
        db = NULL;
    }
    assert_in_range(failures[0], 18, 40);
    assert_in_range(failures[1], 4, 20);
    open_db(f);
}

int main(void) {
#define ON_NOTHING(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define ON_DATABASE(test) cmocka_unit_test_setup_teardown(test, set_up_open, tear_down)
    const struct CMUnitTest tests[] = {
        ON_DATABASE(test_sync__one_flush_serves_all_that_wait),
        ON_DATABASE(test_sync__a_ticket_covered_before_needs_no_flush),
        ON_DATABASE(test_sync__goes_on_beside_commits_and_checkpoints),
        ON_DATABASE(test_latch__a_failed_flush_is_the_last),
        ON_DATABASE(test_latch__fails_all_that_wait),
        ON_DATABASE(test_latch__is_set_by_a_failed_flush_of_the_database_file),
        ON_DATABASE(test_latch__is_set_by_a_failed_flush_of_a_restarted_log),
        ON_DATABASE(test_latch__can_be_set_by_hand),
        ON_DATABASE(test_commit__a_full_disk_undoes_it_and_it_may_be_tried_again),
        ON_DATABASE(test_commit__an_io_error_sets_the_latch),
        ON_DATABASE(test_commit__a_real_limit_undoes_it_too),
        ON_DATABASE(test_transaction__that_is_lost_applies_nothing_more),
        ON_DATABASE(test_checkpoint__on_a_full_disk_keeps_the_log),
        ON_DATABASE(test_open__works_when_the_log_cannot_grow),
        ON_NOTHING(test_open__survives_a_failure_of_any_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
