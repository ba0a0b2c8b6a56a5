/*
 * test_db.c - opening, refusing, transactions, statements, the log's form.
 */
#include "db_under_test.h"

/* --- opening ---------------------------------------------------------------------------------------------------- */

static void test_open__makes_a_private_file_and_finds_it_again(void **state) {
    struct fixture *f = *state;
    struct stat status;
    open_db(f);
    assert_int_equal(stat(f->path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    commit_item_well(f, 1);
    close_db(f);
    open_db(f);
    assert_int_equal(count_items(f->db), 1);
}

static void test_open__second_opener_is_refused(void **state) {
    struct fixture *f = *state;
    struct db *second = NULL;
    char pid[32];
    open_db(f);
    snprintf(pid, sizeof(pid), "(pid %d)", (int)getpid());
    for (int read_only = 0; read_only < 2; read_only++) {
        f->options.read_only = read_only;
        assert_int_equal(try_open(f, &second), -EBUSY);
        assert_null(second);
        assert_non_null(strstr(f->why, "in use by another spoolfs or spool"));
        assert_non_null(strstr(f->why, pid));
    }
    assert_int_equal(commit_item_well(f, 1), 1);
    close_db(f);
    open_db(f);
}

static void test_open__a_link_to_the_database_is_the_same_database(void **state) {
    struct fixture *f = *state;
    struct db *second = NULL;
    open_db(f);
    assert_int_equal(symlink(f->path, f->copy), 0);
    assert_int_equal(db_open(f->copy, &f->options, &second, f->why, sizeof(f->why)), -EBUSY);
    close_db(f);
    assert_int_equal(db_open(f->copy, &f->options, &f->db, f->why, sizeof(f->why)), 0);
}

/* Readers take no lock file when there is none: SQLite's locks must do. */
static void test_open__readers_share_and_keep_a_writer_out(void **state) {
    struct fixture *f = *state;
    struct db *reader = NULL, *writer = NULL;
    open_db(f);
    close_db(f);
    for (int with_lock_file = 0; with_lock_file < 2; with_lock_file++) {
        if (with_lock_file)
            run_shell("touch '%s.lock'", f->path);
        f->options.read_only = true;
        open_db(f);
        assert_int_equal(try_open(f, &reader), 0);
        f->options.read_only = false;
        assert_int_equal(try_open(f, &writer), -EBUSY);
        assert_null(strstr(f->why, "pid"));
        db_close(reader);
        close_db(f);
    }
    open_db(f);
}

/* A file stays byte for byte what it was when it is refused. */
static void assert_refused(struct fixture *f, int error, const char *sentence) {
    struct db *db = NULL;
    run_shell("cp '%s' '%s'", f->path, f->copy);
    assert_int_equal(try_open(f, &db), error);
    assert_null(db);
    assert_non_null(strstr(f->why, sentence));
    assert_non_null(strstr(f->why, f->path));
    run_shell("cmp '%s' '%s'", f->path, f->copy);
    assert_false(exists(f, ".lock"));
}

static void test_open__what_is_not_a_database_is_refused(void **state) {
    struct fixture *f = *state;
    run_shell("seq 5000 > '%s'", f->path);
    assert_refused(f, -EINVAL, "is not a database");
    run_shell("echo short > '%s'", f->path);
    assert_refused(f, -EINVAL, "is not a database");
}

static void test_open__database_of_another_program_is_refused(void **state) {
    struct fixture *f = *state;
    static const char *const programs[] = {"PRAGMA application_id = 7", "CREATE TABLE theirs (x)",
                                           "PRAGMA journal_mode = WAL; CREATE TABLE theirs2 (x)"};
    for (size_t i = 0; i < 3; i++) {
        sqlite3 *sqlite = NULL;
        assert_int_equal(sqlite3_open(f->path, &sqlite), SQLITE_OK);
        assert_int_equal(sqlite3_exec(sqlite, programs[i], NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(sqlite);
        assert_refused(f, -EINVAL, "another program");
    }
}

static void test_open__another_version_is_refused(void **state) {
    struct fixture *f = *state;
    open_db(f);
    close_db(f);
    f->options.version = TEST_VERSION - 1;
    assert_refused(f, -ENOTSUP, "a newer spoolfs");
    f->options.version = TEST_VERSION + 1;
    assert_refused(f, -ENOTSUP, "an older spoolfs");
}

static void test_open__what_cannot_hold_a_database_is_refused(void **state) {
    struct fixture *f = *state;
    struct db *db = NULL;
    assert_int_equal(db_open(f->directory, &f->options, &db, f->why, sizeof(f->why)), -EINVAL);
    assert_int_equal(db_open("/nowhere/at/all", &f->options, &db, f->why, sizeof(f->why)), -ENOENT);
    f->options.read_only = true;
    assert_int_equal(try_open(f, &db), -ENOENT);
    assert_false(exists(f, ""));
    run_shell("touch '%s'", f->path);
    assert_refused(f, -EINVAL, "is empty");
}

static void test_open__a_schema_that_fails_leaves_a_new_file(void **state) {
    struct fixture *f = *state;
    struct db *db = NULL;
    f->options.schema = "CREATE TABLE item (id); CREATE TABLE item (id)";
    assert_int_equal(try_open(f, &db), -EINVAL);
    assert_non_null(strstr(f->why, "already exists"));
    f->options.schema = test_schema;
    open_db(f);
    assert_int_equal(count_items(f->db), 0);
}

static void test_close__leaves_the_database_alone(void **state) {
    struct fixture *f = *state;
    open_db(f);
    commit_item_well(f, 1);
    assert_true(exists(f, "-wal"));
    assert_true(exists(f, ".lock"));
    assert_false(exists(f, "-shm"));
    close_db(f);
    assert_false(exists(f, "-wal"));
    assert_false(exists(f, "-journal"));
    assert_false(exists(f, ".lock"));
    db_close(NULL);
}

/* --- reading only ----------------------------------------------------------------------------------------------- */

static void test_read_only__reads_a_log_left_behind_and_changes_nothing(void **state) {
    struct fixture *f = *state;
    struct db *reader = NULL;
    struct db_options options = {.version = TEST_VERSION, .read_only = true, .tap = &f->tap.tap};
    open_db(f);
    commit_item_well(f, 1);
    run_shell("cp '%s' '%s'", f->path, f->copy);
    run_shell("cp '%s-wal' '%s-wal'", f->path, f->copy);
    run_shell("cd '%s' && sha256sum copy.db* > sums", f->directory);
    memset(f->tap.seen, 0, sizeof(f->tap.seen));

    assert_int_equal(db_open(f->copy, &options, &reader, f->why, sizeof(f->why)), 0);
    assert_int_equal(count_items(reader), 1);
    assert_int_equal(db_begin(reader), 0);
    assert_int_equal(db_run(reader, Q_child_add, db_int(1)), -EROFS);
    assert_int_equal(db_commit(reader, NULL), 0);
    assert_int_equal(db_sync(reader, 0), 0);
    db_close(reader);

    run_shell("cd '%s' && sha256sum --status -c sums && test \"$(echo copy*)\" = 'copy.db copy.db-wal'", f->directory);
    for (int event = DB_WRITE; event < DB_OPEN; event++)
        for (int file = DB_FILE_MAIN; file <= DB_FILE_OTHER; file++)
            assert_int_equal(f->tap.seen[event][file], 0);
}

static void test_read_only__needs_no_log_and_makes_none(void **state) {
    struct fixture *f = *state;
    open_db(f);
    commit_item_well(f, 1);
    close_db(f);
    f->options.read_only = true;
    open_db(f);
    assert_int_equal(count_items(f->db), 1);
    assert_false(exists(f, "-wal"));
    assert_false(exists(f, "-shm"));
    assert_false(exists(f, ".lock"));
}

/* --- transactions ----------------------------------------------------------------------------------------------- */

static void test_commit__keeps_and_rollback_undoes(void **state) {
    struct fixture *f = *state;
    assert_false(db_in_transaction(f->db));
    assert_int_equal(db_begin(f->db), 0);
    assert_true(db_in_transaction(f->db));
    assert_int_equal(add_item(f, 1), 1);
    db_rollback(f->db);
    assert_false(db_in_transaction(f->db));
    assert_int_equal(count_items(f->db), 0);
    commit_item_well(f, 2);
    assert_int_equal(count_items(f->db), 1);
    assert_int_equal(count_items_after_kill(f), 1);
}

static void test_commit__of_reading_takes_the_newest_ticket(void **state) {
    struct fixture *f = *state;
    uint64_t ticket = 99;
    assert_int_equal(db_issued(f->db), 0);
    assert_int_equal(commit_item_well(f, 1), 1);
    assert_int_equal(db_begin(f->db), 0);
    assert_int_equal(count_items(f->db), 1);
    assert_int_equal(db_commit(f->db, &ticket), 0);
    assert_int_equal(ticket, 1);
    assert_int_equal(commit_item_well(f, 2), 2);
    assert_int_equal(db_issued(f->db), 2);
    assert_int_equal(counts(f).commits, 2);
}

static void test_commit__reaches_the_log_in_one_write(void **state) {
    struct fixture *f = *state;
    commit_item_well(f, 1); /* the log starts over here, with a header */
    struct db_counts before = counts(f);
    unsigned seen = f->tap.seen[DB_WRITE][DB_FILE_LOG];
    commit_item_well(f, 2);
    struct db_counts after = counts(f);
    assert_int_equal(after.log_writes - before.log_writes, 1);
    assert_int_equal(f->tap.seen[DB_WRITE][DB_FILE_LOG] - seen, 1);
    assert_int_equal(after.log_bytes - before.log_bytes, 2 * FRAME_BYTES);
    assert_int_equal(after.flushes, before.flushes);

    assert_int_equal(db_begin(f->db), 0);
    assert_int_equal(db_run(f->db, Q_bulk_add, db_int(200 * 4096)), 1);
    assert_int_equal(db_commit(f->db, NULL), 0);
    uint64_t frames = (counts(f).log_bytes - after.log_bytes) / FRAME_BYTES;
    assert_in_range(frames, 200, 210);
    assert_int_equal(counts(f).log_writes - after.log_writes, (frames + 15) / 16);
}

static void test_log__is_grown_with_zeros_that_end_it(void **state) {
    struct fixture *f = *state;
    char log[128];
    struct stat status;
    snprintf(log, sizeof(log), "%s-wal", f->path);
    assert_int_equal(stat(log, &status), 0);
    assert_int_equal(status.st_size, LOG_BYTES);
    assert_int_equal(f->db->vfs->log->synced, f->db->vfs->log->writes);
    run_shell("tail -c 100000 '%s' | cmp -n 100000 - /dev/zero", log);
    for (int64_t id = 1; id <= 5; id++) {
        commit_item_well(f, id);
        assert_int_equal(count_items_after_kill(f), id);
    }
    assert_int_equal(stat(log, &status), 0);
    assert_int_equal(status.st_size, LOG_BYTES);
}

static void test_log__left_by_a_kill_is_flushed_and_moved_when_opened(void **state) {
    struct fixture *f = *state;
    struct db_options options = f->options;
    struct db *db = NULL;
    commit_item_well(f, 1);
    run_shell("cp '%s' '%s'", f->path, f->copy);
    run_shell("cp '%s-wal' '%s-wal'", f->path, f->copy);
    memset(f->tap.seen, 0, sizeof(f->tap.seen));
    assert_int_equal(db_open(f->copy, &options, &db, f->why, sizeof(f->why)), 0);
    assert_int_equal(f->tap.seen[DB_SYNC][DB_FILE_LOG], 1);
    assert_in_range(f->tap.seen[DB_WRITE][DB_FILE_MAIN], 1, 20);
    assert_int_equal(f->tap.seen[DB_SYNC][DB_FILE_MAIN], 1);
    assert_int_equal(db_log_bytes(db), 0);
    assert_int_equal(count_items(db), 1);
    db_close(db);
}

static void test_checkpoint__moves_the_log_and_starts_it_over(void **state) {
    struct fixture *f = *state;
    struct db_row *row;
    for (int64_t id = 1; id <= 10; id++)
        commit_item_well(f, id);
    assert_int_equal(db_log_bytes(f->db), 20 * FRAME_BYTES);
    assert_int_equal(db_first(f->db, &row, Q_item_all), 1);
    assert_int_equal(db_checkpoint(f->db), -EBUSY);
    db_done(row);
    assert_int_equal(db_checkpoint(f->db), 0);
    assert_int_equal(db_log_bytes(f->db), 0);
    assert_int_equal(db_synced(f->db), 10);
    assert_int_equal(counts(f).checkpoints, 1);
    assert_int_equal(counts(f).checkpoint_pages, 2);
    commit_item_well(f, 11);
    assert_int_equal(db_log_bytes(f->db), 2 * FRAME_BYTES);
    assert_int_equal(count_items_after_kill(f), 11);
}

/* --- statements ------------------------------------------------------------------------------------------------- */

static void test_row__values_come_back_as_they_were(void **state) {
    struct fixture *f = *state;
    struct db_row *row = NULL;
    size_t length = 99;
    assert_int_equal(db_begin(f->db), 0);
    assert_int_equal(db_run(f->db, Q_item_add, db_int(INT64_MAX), db_bytes("a\0b\xff", 4), db_null()), 1);
    assert_int_equal(db_run(f->db, Q_item_add, db_int(1), db_bytes(NULL, 0), db_text("text")), 1);
    assert_int_equal(db_run(f->db, Q_item_add, db_int(2), db_text(NULL), db_int(INT64_MIN)), 1);

    assert_int_equal(db_first(f->db, &row, Q_item_get, db_int(INT64_MAX)), 1);
    assert_memory_equal(db_column_bytes(row, 0, &length), "a\0b\xff", 4);
    assert_int_equal(length, 4);
    assert_true(db_column_null(row, 1));
    assert_int_equal(db_column_int(row, 1), 0);
    assert_int_equal(db_next(row), 0);
    db_done(row);

    assert_int_equal(db_first(f->db, &row, Q_item_get, db_int(1)), 1);
    assert_false(db_column_null(row, 0));
    db_column_bytes(row, 0, &length);
    assert_int_equal(length, 0);
    assert_memory_equal(db_column_bytes(row, 1, &length), "text", 4);
    db_done(row);

    assert_int_equal(db_first(f->db, &row, Q_item_get, db_int(2)), 1);
    assert_true(db_column_null(row, 0));
    assert_int_equal(db_column_int(row, 1), INT64_MIN);
    db_done(row);

    assert_int_equal(db_first(f->db, &row, Q_item_get, db_int(3)), 0);
    assert_null(row);
    db_done(row);
    assert_int_equal(db_commit(f->db, NULL), 0);
}

static void test_row__rows_of_several_queries_stand_at_once(void **state) {
    struct fixture *f = *state;
    struct db_row *outer, *inner;
    int rc, found = 0;
    for (int64_t id = 1; id <= 3; id++)
        commit_item_well(f, id);
    assert_int_equal(db_begin(f->db), 0);
    for (rc = db_first(f->db, &outer, Q_item_all); rc == 1; rc = db_next(outer)) {
        assert_int_equal(db_column_int(outer, 0), ++found);
        assert_int_equal(db_first(f->db, &inner, Q_item_get, db_int(found)), 1);
        assert_int_equal(db_run(f->db, Q_child_add, db_int(found)), 1);
        db_done(inner);
    }
    db_done(outer);
    assert_int_equal(rc, 0);
    assert_int_equal(found, 3);
    assert_int_equal(db_commit(f->db, NULL), 0);
}

static void test_run__a_violated_constraint_undoes_its_statement_only(void **state) {
    struct fixture *f = *state;
    assert_int_equal(db_begin(f->db), 0);
    assert_int_equal(add_item(f, 1), 1);
    assert_int_equal(add_item(f, 1), -EEXIST);
    assert_int_equal(db_run(f->db, Q_item_add, db_int(2), db_text("item 1"), db_null()), -EEXIST);
    assert_int_equal(db_run(f->db, Q_item_add, db_int(0), db_text("zero"), db_null()), -EINVAL);
    assert_int_equal(db_run(f->db, Q_item_add, db_text("not a number"), db_null(), db_null()), -EINVAL);
    assert_true(db_in_transaction(f->db));
    assert_int_equal(add_item(f, 2), 1);
    assert_int_equal(db_commit(f->db, NULL), 0);
    assert_int_equal(count_items(f->db), 2);
}

static void test_first__refuses_what_is_not_one_good_statement(void **state) {
    struct fixture *f = *state;
    struct db_row *row = NULL;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(db_first(f->db, &row, Q_two_statements), -EINVAL);
        assert_int_equal(db_first(f->db, &row, Q_no_such_table), -EINVAL);
    }
    assert_null(row);
}

/* --- integrity -------------------------------------------------------------------------------------------------- */

static void note_finding(void *context, const char *sentence) {
    strncat(context, sentence, 1000);
}

static void test_integrity__says_what_it_finds(void **state) {
    struct fixture *f = *state;
    char findings[8192] = "";
    for (int64_t id = 1; id <= 300; id++)
        commit_item_well(f, id);
    assert_int_equal(db_integrity(f->db, note_finding, findings), 0);
    assert_string_equal(findings, "");

    assert_int_equal(db_begin(f->db), 0);
    assert_int_equal(db_run(f->db, Q_child_add, db_int(301)), 1);
    assert_int_equal(db_commit(f->db, NULL), 0);
    assert_int_equal(db_integrity(f->db, note_finding, findings), 1);
    assert_string_equal(findings, "row 1 of table child refers to a row of item that does not exist");
}

static void test_integrity__sees_a_damaged_page(void **state) {
    struct fixture *f = *state;
    char findings[8192] = "";
    struct db_row *row;
    for (int64_t id = 1; id <= 300; id++)
        commit_item_well(f, id);
    close_db(f);
    /* Page 2 is the root of the table. */
    run_shell("head -c 4096 /dev/zero | tr '\\0' x | dd of='%s' bs=4096 seek=1 conv=notrunc status=none", f->path);
    open_db(f);
    assert_int_not_equal(db_integrity(f->db, note_finding, findings), 0);
    assert_int_equal(db_first(f->db, &row, Q_item_get, db_int(7)), -EUCLEAN);
}

int main(void) {
#define ON_NOTHING(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define ON_DATABASE(test) cmocka_unit_test_setup_teardown(test, set_up_open, tear_down)
    const struct CMUnitTest tests[] = {
        ON_NOTHING(test_open__makes_a_private_file_and_finds_it_again),
        ON_NOTHING(test_open__second_opener_is_refused),
        ON_NOTHING(test_open__a_link_to_the_database_is_the_same_database),
        ON_NOTHING(test_open__readers_share_and_keep_a_writer_out),
        ON_NOTHING(test_open__what_is_not_a_database_is_refused),
        ON_NOTHING(test_open__database_of_another_program_is_refused),
        ON_NOTHING(test_open__another_version_is_refused),
        ON_NOTHING(test_open__what_cannot_hold_a_database_is_refused),
        ON_NOTHING(test_open__a_schema_that_fails_leaves_a_new_file),
        ON_NOTHING(test_close__leaves_the_database_alone),
        ON_NOTHING(test_read_only__reads_a_log_left_behind_and_changes_nothing),
        ON_NOTHING(test_read_only__needs_no_log_and_makes_none),
        ON_DATABASE(test_commit__keeps_and_rollback_undoes),
        ON_DATABASE(test_commit__of_reading_takes_the_newest_ticket),
        ON_DATABASE(test_commit__reaches_the_log_in_one_write),
        ON_DATABASE(test_log__is_grown_with_zeros_that_end_it),
        ON_DATABASE(test_log__left_by_a_kill_is_flushed_and_moved_when_opened),
        ON_DATABASE(test_checkpoint__moves_the_log_and_starts_it_over),
        ON_DATABASE(test_row__values_come_back_as_they_were),
        ON_DATABASE(test_row__rows_of_several_queries_stand_at_once),
        ON_DATABASE(test_run__a_violated_constraint_undoes_its_statement_only),
        ON_DATABASE(test_first__refuses_what_is_not_one_good_statement),
        ON_DATABASE(test_integrity__says_what_it_finds),
        ON_DATABASE(test_integrity__sees_a_damaged_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
