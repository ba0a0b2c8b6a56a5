/*
 * test_plans.c - no statement of core/queries.sql costs more the more there is, unless it says so.
 *
 * The plan of each is read on a fresh schema: a scan or a temporary b-tree fails, unless the comment directly above the
 * statement contains `scan:` and says why. Runs in the root of the project.
 */
#include "spool_fixture.h"

#include <sqlite3.h>

extern const char spool_schema[];

static char *read_file(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot read %s", path);
    char *text = calloc(1, 1 << 20);
    size_t length = fread(text, 1, (1 << 20) - 1, file);
    assert_true(length > 0 && length < (1 << 20) - 1);
    fclose(file);
    return text;
}

/* Do the comment lines directly above `-- name: NAME` contain `scan:`? */
static bool is_excused(const char *queries, const char *name) {
    char heading[128];
    snprintf(heading, sizeof heading, "\n-- name: %s\n", name);
    const char *end = strstr(queries, heading); /* of the line above */
    if (!end)
        fail_msg("%s is not in core/queries.sql", name);
    for (;;) {
        const char *line = end;
        while (line > queries && line[-1] != '\n')
            line--;
        if (strncmp(line, "--", 2) != 0)
            return false;
        const char *excuse = strstr(line, "scan:");
        if (excuse && excuse < end)
            return true;
        if (line == queries)
            return false;
        end = line - 1;
    }
}

/* The first step of the plan that costs more the more there is; "" when there is none. */
static void find_costly_step(sqlite3 *database, const char *sql, char *step, size_t size) {
    char explain[8192];
    sqlite3_stmt *statement = NULL;
    snprintf(explain, sizeof explain, "EXPLAIN QUERY PLAN %s", sql);
    if (sqlite3_prepare_v2(database, explain, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sqlite3_errmsg(database), sql);
    step[0] = '\0';
    while (sqlite3_step(statement) == SQLITE_ROW && !step[0]) {
        const char *detail = (const char *)sqlite3_column_text(statement, 3);
        if (strncmp(detail, "SCAN", 4) == 0 || strstr(detail, "TEMP B-TREE"))
            snprintf(step, size, "%s", detail);
    }
    sqlite3_finalize(statement);
}

static sqlite3 *fresh_schema(void) {
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(":memory:", &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, spool_schema, NULL, NULL, NULL), SQLITE_OK);
    return database;
}

static void test_plans__every_scan_is_excused(void **state) {
    (void)state;
    char *queries = read_file("core/queries.sql"), step[256];
    sqlite3 *database = fresh_schema();
    int costly = 0;
    for (int query = 0; query < DB_QUERIES; query++) {
        const struct db_query_text *text = &db_query_texts[query];
        find_costly_step(database, text->sql, step, sizeof step);
        if (step[0] && !is_excused(queries, text->name)) {
            print_message("%s: %s\n", text->name, step);
            costly++;
        }
    }
    sqlite3_close(database);
    free(queries);
    assert_int_equal(costly, 0);
}

static void test_plans__no_excuse_is_left_over(void **state) {
    (void)state;
    char *queries = read_file("core/queries.sql"), step[256];
    sqlite3 *database = fresh_schema();
    int idle = 0;
    for (int query = 0; query < DB_QUERIES; query++) {
        const struct db_query_text *text = &db_query_texts[query];
        find_costly_step(database, text->sql, step, sizeof step);
        if (!step[0] && is_excused(queries, text->name)) {
            print_message("%s scans nothing\n", text->name);
            idle++;
        }
    }
    sqlite3_close(database);
    free(queries);
    assert_int_equal(idle, 0);
}

static void test_plans__the_test_sees_scans_and_excuses(void **state) {
    (void)state;
    char step[256];
    sqlite3 *database = fresh_schema();
    find_costly_step(database, "SELECT number FROM message WHERE size = ?1", step, sizeof step);
    assert_true(step[0]);
    find_costly_step(database, "SELECT number FROM message WHERE directory = ?1 ORDER BY size", step, sizeof step);
    assert_true(step[0]);
    find_costly_step(database, "SELECT number FROM message WHERE number = ?1", step, sizeof step);
    assert_false(step[0]);
    sqlite3_close(database);
    const char queries[] = "-- scan: of others\n\n-- name: a\nSELECT 1\n\n-- It is short.\n-- scan: a short table\n"
                           "-- name: b\nSELECT 2\n-- name: c\nSELECT 3\n";
    assert_false(is_excused(queries, "a"));
    assert_true(is_excused(queries, "b"));
    assert_false(is_excused(queries, "c"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans__every_scan_is_excused),
        cmocka_unit_test(test_plans__no_excuse_is_left_over),
        cmocka_unit_test(test_plans__the_test_sees_scans_and_excuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
