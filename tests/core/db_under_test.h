/*
 * db_under_test.h - the database with statements and a schema of the tests' own, and a tap that counts and fails
 * calls.
 *
 * The sources of core/db are included here after an `enum db_query` of this file has taken the place of the generated
 * one; the linker then leaves the library's copy aside.
 */
#ifndef SPOOL_DB_UNDER_TEST_H
#define SPOOL_DB_UNDER_TEST_H

#define SPOOL_QUERIES_H /* instead of build/gen/queries.h */

enum db_query {
    Q_item_add,
    Q_item_get,
    Q_item_all,
    Q_item_count,
    Q_child_add,
    Q_bulk_add,
    Q_two_statements,
    Q_no_such_table,
    DB_QUERIES
};

struct db_query_text {
    const char *name;
    const char *sql;
};
extern const struct db_query_text db_query_texts[];

#include "db.c"
#include "db_guard.c"
#include "db_open.c"
#include "db_row.c"
#include "db_vfs.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

const struct db_query_text db_query_texts[] = {
    [Q_item_add] = {"item_add", "INSERT INTO item (id, name, body) VALUES (?1, ?2, ?3); -- and a comment"},
    [Q_item_get] = {"item_get", "SELECT name, body FROM item WHERE id = ?1"},
    [Q_item_all] = {"item_all", "SELECT id FROM item ORDER BY id"},
    [Q_item_count] = {"item_count", "SELECT count(*) FROM item"},
    [Q_child_add] = {"child_add", "INSERT INTO child (item) VALUES (?1)"},
    [Q_bulk_add] = {"bulk_add", "INSERT INTO bulk (body) VALUES (zeroblob(?1))"},
    [Q_two_statements] = {"two_statements", "SELECT 1; SELECT 2"},
    [Q_no_such_table] = {"no_such_table", "SELECT 1 FROM nowhere"},
};

static const char test_schema[] =
    "CREATE TABLE item (id INTEGER PRIMARY KEY CHECK (id > 0), name BLOB UNIQUE, body BLOB);"
    "CREATE TABLE child (item INTEGER REFERENCES item (id));"
    "CREATE TABLE bulk (id INTEGER PRIMARY KEY, body BLOB);";

enum { TEST_VERSION = 3, LOG_BYTES = 256 * 1024, FRAME_BYTES = 24 + 4096 };

/* Counts what it sees. While armed, call number `countdown` (0: the next) of those that match fails, and those after
 * it. */
struct test_tap {
    struct db_tap tap;
    atomic_uint seen[DB_OPEN + 1][DB_FILE_OTHER + 1];
    bool armed, any; /* any: every event of every file matches */
    enum db_event event;
    enum db_file file;
    int countdown, error;
};

struct fixture {
    char directory[64], path[96], copy[96];
    struct test_tap tap;
    struct db_options options;
    struct db *db;
    char why[512];
};

static inline int tap_see(struct db_tap *tap, enum db_event event, enum db_file file, const char *path,
                          const void *bytes, size_t length, int64_t offset) {
    struct test_tap *t = (struct test_tap *)tap;
    (void)path;
    (void)length;
    (void)offset;
    assert_true((bytes != NULL) == (event == DB_WRITE));
    atomic_fetch_add(&t->seen[event][file], 1);
    bool matches = t->armed && (t->any || (event == t->event && file == t->file));
    return matches && t->countdown-- <= 0 ? t->error : 0;
}

static inline void tap_fail(struct fixture *f, enum db_event event, enum db_file file, int countdown, int error) {
    f->tap.event = event;
    f->tap.file = file;
    f->tap.countdown = countdown;
    f->tap.error = error;
    f->tap.any = false;
    f->tap.armed = true;
}

static inline void tap_allow(struct fixture *f) {
    f->tap.armed = false;
}

static inline int try_open(struct fixture *f, struct db **out) {
    f->why[0] = '\0';
    return db_open(f->path, &f->options, out, f->why, sizeof(f->why));
}

static inline void open_db(struct fixture *f) {
    int rc = try_open(f, &f->db);
    if (rc)
        fail_msg("open: %s", f->why);
}

static inline void close_db(struct fixture *f) {
    db_close(f->db);
    f->db = NULL;
}

__attribute__((format(printf, 1, 2))) static inline void run_shell(const char *format, ...) {
    char command[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof(command), format, arguments);
    va_end(arguments);
    assert_int_equal(system(command), 0);
}

static inline int set_up(void **state) {
    const char *scratch = getenv("TMPDIR");
    struct fixture *f = calloc(1, sizeof(*f));
    snprintf(f->directory, sizeof(f->directory), "%s/db-XXXXXX", scratch && strlen(scratch) < 40 ? scratch : "/tmp");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->path, sizeof(f->path), "%s/queue.db", f->directory);
    snprintf(f->copy, sizeof(f->copy), "%s/copy.db", f->directory);
    f->tap.tap.see = tap_see;
    f->options =
        (struct db_options){.schema = test_schema, .version = TEST_VERSION, .log_bytes = LOG_BYTES, .tap = &f->tap.tap};
    *state = f;
    return 0;
}

static inline int set_up_open(void **state) {
    set_up(state);
    open_db(*state);
    return 0;
}

static inline int tear_down(void **state) {
    struct fixture *f = *state;
    tap_allow(f);
    close_db(f);
    run_shell("rm -r '%s'", f->directory);
    free(f);
    return 0;
}

static inline bool exists(const struct fixture *f, const char *suffix) {
    char path[128];
    struct stat status;
    snprintf(path, sizeof(path), "%s%s", f->path, suffix);
    return stat(path, &status) == 0;
}

static inline int add_item(struct fixture *f, int64_t id) {
    char name[32];
    snprintf(name, sizeof(name), "item %lld", (long long)id);
    return db_run(f->db, Q_item_add, db_int(id), db_text(name), db_null());
}

/* One transaction with one item. */
static inline int commit_item(struct fixture *f, int64_t id, uint64_t *ticket) {
    assert_int_equal(db_begin(f->db), 0);
    assert_int_equal(add_item(f, id), 1);
    return db_commit(f->db, ticket);
}

static inline uint64_t commit_item_well(struct fixture *f, int64_t id) {
    uint64_t ticket = 0;
    assert_int_equal(commit_item(f, id, &ticket), 0);
    return ticket;
}

static inline int64_t count_items(struct db *db) {
    struct db_row *row;
    assert_int_equal(db_first(db, &row, Q_item_count), 1);
    int64_t count = db_column_int(row, 0);
    db_done(row);
    return count;
}

static inline struct db_counts counts(struct fixture *f) {
    struct db_counts now;
    db_counts(f->db, &now);
    return now;
}

/* What a new process would find after a kill now: copies what is in the files, opens the copy, counts. The copying
 * is done by another process, since closing a descriptor of the database here would drop SQLite's locks. */
static inline int64_t count_items_after_kill(struct fixture *f) {
    struct db_options options = {.schema = test_schema, .version = TEST_VERSION};
    struct db *db = NULL;
    run_shell("cp '%s' '%s'", f->path, f->copy);
    run_shell("cp '%s-wal' '%s-wal'", f->path, f->copy);
    int rc = db_open(f->copy, &options, &db, f->why, sizeof(f->why));
    if (rc)
        fail_msg("open the copy: %s", f->why);
    int64_t count = count_items(db);
    db_close(db);
    return count;
}

#endif
