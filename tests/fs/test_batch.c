/*
 * test_batch.c - tasks on a real engine, whose disk fails when it is told to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "db.h"
#include "fs.h"

#define TASKS 3

struct disk {
    struct db_tap tap;
    int error;          /* of writes to the log */
    int failures;       /* so many more; < 0: for ever */
    const char *poison; /* only writes that contain this; NULL: all */
};

static int see(struct db_tap *tap, enum db_event event, enum db_file file, const char *path, const void *bytes,
               size_t length, int64_t offset) {
    struct disk *disk = (struct disk *)tap;

    (void)path, (void)offset;
    if (event != DB_WRITE || file != DB_FILE_LOG || disk->failures == 0)
        return 0;
    if (disk->poison && !memmem(bytes, length, disk->poison, strlen(disk->poison)))
        return 0;
    if (disk->failures > 0)
        disk->failures--;
    return disk->error;
}

/* Makes a queue and leaves an outcome. */
struct step {
    struct task task;
    struct outcome outcome;
    const char *name;
    bool silent; /* leaves none */
    int result;
    int runs, task_ends, outcome_ends;
    enum verdict verdict[4];
    int error;
    int order[4]; /* among the ends of outcomes */
};

struct fixture {
    char directory[64];
    struct disk disk;
    struct spool *spool;
    struct fs *fs;
    int wake;
    struct step step[TASKS];
};

static int ends;

static void end_outcome(struct fs *fs, struct outcome *outcome, enum verdict verdict, int error) {
    struct step *step = (struct step *)((char *)outcome - offsetof(struct step, outcome));

    (void)fs;
    step->order[step->outcome_ends] = ++ends;
    step->verdict[step->outcome_ends++] = verdict;
    step->error = error;
}

static void run_step(struct fs *fs, struct task *task) {
    struct step *step = (struct step *)task;
    struct spool_entry entry;

    step->runs++;
    step->result = batch_bind(fs);
    if (step->result == 0)
        step->result = spool_mkdir(fs->spool, SPOOL_ROOT, step->name, 0755, (struct spool_caller){0, 0}, &entry);
    step->outcome.end = end_outcome;
    if (!step->silent)
        batch_defer(fs, &step->outcome, true);
}

static void end_step(struct fs *fs, struct task *task) {
    (void)fs;
    ((struct step *)task)->task_ends++;
}

static void remove_all(const char *directory) {
    char command[128];

    snprintf(command, sizeof command, "rm -r '%s'", directory);
    assert_int_equal(system(command), 0);
}

static int set_up(void **state) {
    static const char *const names[TASKS] = {"first", "middle", "last"};
    struct fixture *fixture = calloc(1, sizeof *fixture);
    const struct serve_options serve_options = {.read_only = false};
    struct spool_options options = {.boot_id = "boot", .reserve_bytes = 0};
    char path[96], why[256];

    strcpy(fixture->directory, "/tmp/batch-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(path, sizeof path, "%s/spool.db", fixture->directory);
    fixture->disk.tap.see = see;
    options.tap = &fixture->disk.tap;
    assert_int_equal(spool_open(path, &options, fs_time(), &fixture->spool, why, sizeof why), 0);
    fixture->wake = eventfd(0, EFD_NONBLOCK);
    fixture->fs = fs_new(fixture->spool, &serve_options);
    assert_int_equal(flusher_new(fixture->spool, fixture->wake, &fixture->fs->flusher), 0);
    for (int i = 0; i < TASKS; i++) {
        fixture->step[i].task = (struct task){.run = run_step, .end = end_step};
        fixture->step[i].name = names[i];
    }
    ends = 0;
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;

    fixture->disk.failures = 0;
    flusher_free(fixture->fs->flusher);
    fs_free(fixture->fs);
    close(fixture->wake);
    spool_close(fixture->spool);
    remove_all(fixture->directory);
    free(fixture);
    return 0;
}

static void run_all(struct fixture *fixture) {
    for (int i = 0; i < TASKS; i++)
        batch_run(fixture->fs, &fixture->step[i].task);
    batch_end(fixture->fs);
}

static void assert_exists(struct fixture *fixture, const char *name, bool exists) {
    struct spool_entry entry;

    assert_int_equal(spool_lookup(fixture->spool, SPOOL_ROOT, name, &entry), exists ? 0 : -ENOENT);
}

static void assert_ended(const struct step *step, int runs, enum verdict last) {
    assert_int_equal(step->result, 0);
    assert_int_equal(step->runs, runs);
    assert_int_equal(step->task_ends, 1);
    assert_int_equal(step->outcome_ends, runs);
    for (int i = 0; i < runs - 1; i++)
        assert_int_equal(step->verdict[i], BATCH_UNDONE);
    assert_int_equal(step->verdict[runs - 1], last);
}

static void test_batch__outcomes_come_with_the_commit_in_order(void **state) {
    struct fixture *fixture = *state;

    for (int i = 0; i < TASKS; i++) {
        batch_run(fixture->fs, &fixture->step[i].task);
        assert_int_equal(fixture->step[i].outcome_ends, 0);
    }
    batch_end(fixture->fs);
    for (int i = 0; i < TASKS; i++) {
        assert_ended(&fixture->step[i], 1, BATCH_COMMITTED);
        assert_int_equal(fixture->step[i].order[0], i + 1);
        assert_exists(fixture, fixture->step[i].name, true);
    }
}

static void test_batch__one_that_does_not_fit_is_tried_again_in_pieces(void **state) {
    struct fixture *fixture = *state;

    fixture->disk.error = -ENOSPC;
    fixture->disk.failures = 1;
    run_all(fixture);
    for (int i = 0; i < TASKS; i++) {
        assert_ended(&fixture->step[i], 2, BATCH_COMMITTED);
        assert_exists(fixture, fixture->step[i].name, true);
    }
}

static void test_batch__the_task_that_does_not_fit_is_refused_alone(void **state) {
    struct fixture *fixture = *state;

    fixture->disk.error = -ENOSPC;
    fixture->disk.failures = -1;
    fixture->disk.poison = "middle";
    run_all(fixture);
    assert_ended(&fixture->step[0], 2, BATCH_COMMITTED);
    assert_ended(&fixture->step[1], 2, BATCH_REFUSED);
    assert_ended(&fixture->step[2], 2, BATCH_COMMITTED);
    assert_int_equal(fixture->step[1].error, -ENOSPC);
    assert_exists(fixture, "first", true);
    assert_exists(fixture, "middle", false);
    assert_exists(fixture, "last", true);
}

static void test_batch__what_was_undone_ends_in_the_opposite_order(void **state) {
    struct fixture *fixture = *state;

    for (int i = 0; i < TASKS; i++)
        batch_run(fixture->fs, &fixture->step[i].task);
    batch_fail(fixture->fs);
    batch_end(fixture->fs);
    for (int i = 0; i < TASKS; i++) {
        assert_ended(&fixture->step[i], 2, BATCH_COMMITTED);
        assert_int_equal(fixture->step[i].order[0], TASKS - i);
        assert_int_equal(fixture->step[i].order[1], TASKS + i + 1);
    }
}

static void test_batch__a_task_that_has_said_all_is_not_run_again(void **state) {
    struct fixture *fixture = *state;

    fixture->step[1].silent = true;
    fixture->disk.error = -ENOSPC;
    fixture->disk.failures = 1;
    run_all(fixture);
    assert_int_equal(fixture->step[1].runs, 1);
    assert_int_equal(fixture->step[1].task_ends, 1);
    assert_ended(&fixture->step[0], 2, BATCH_COMMITTED);
    assert_ended(&fixture->step[2], 2, BATCH_COMMITTED);
}

static void test_batch__after_an_io_error_nothing_can_be_changed(void **state) {
    struct fixture *fixture = *state;

    fixture->disk.error = -EIO;
    fixture->disk.failures = 1;
    run_all(fixture);
    for (int i = 0; i < TASKS; i++) {
        assert_ended(&fixture->step[i], 1, BATCH_UNKNOWN);
        assert_int_equal(fixture->step[i].error, -EIO);
    }
    assert_true(spool_broken(fixture->spool));
    fixture->step[0].name = "later";
    fixture->step[0].outcome_ends = 0;
    batch_run(fixture->fs, &fixture->step[0].task);
    assert_int_equal(fixture->step[0].result, -EROFS);
    batch_end(fixture->fs);
    assert_int_equal(fixture->step[0].verdict[0], BATCH_COMMITTED);
    assert_exists(fixture, "later", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_batch__outcomes_come_with_the_commit_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_batch__one_that_does_not_fit_is_tried_again_in_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_batch__the_task_that_does_not_fit_is_refused_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_batch__what_was_undone_ends_in_the_opposite_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_batch__a_task_that_has_said_all_is_not_run_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_batch__after_an_io_error_nothing_can_be_changed, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
