/*
 * test_sql.c - core/sql.sh: what comes out of the C it makes is what went in, and mistakes are refused.
 *
 * Runs in the root of the project, with a C compiler.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static int set_up(void **state) {
    static char directory[64];
    const char *scratch = getenv("TMPDIR");
    snprintf(directory, sizeof(directory), "%s/sql-XXXXXX", scratch && strlen(scratch) < 40 ? scratch : "/tmp");
    assert_non_null(mkdtemp(directory));
    *state = directory;
    return 0;
}

/* `command` runs in sh with $d, the scratch directory. */
static int shell(const char *directory, const char *command) {
    char line[1024];
    snprintf(line, sizeof(line), "d='%s'; %s", directory, command);
    return system(line);
}

static int tear_down(void **state) {
    return shell(*state, "rm -r \"$d\"");
}

static void put(const char *directory, const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Everything that C reads differently inside quotes: backslashes, quotes, trigraphs, line ends, and no last newline.
 * */
static const char odd_text[] =
    "SELECT '\\n \\', \"a\\\\\", '\?\?/ \?\?= \?\?\?', '%s \t \xc3\xbc \xf0\x9f\x90\x9f', -- ?1\r\n"
    "  '-- not a comment', ?1\n\n;";

static void test_sql__schema_comes_out_byte_for_byte(void **state) {
    put(*state, "schema.sql", odd_text);
    put(*state, "main.c",
        "#include <stdio.h>\n#include \"schema.c\"\nint main(void) { fputs(spool_schema, stdout); }\n");
    assert_int_equal(shell(*state, "core/sql.sh schema \"$d/schema.sql\" \"$d/schema.c\""), 0);
    assert_int_equal(shell(*state, "cc -std=c11 -Wall -Werror -o \"$d/main\" \"$d/main.c\""), 0);
    assert_int_equal(shell(*state, "echo >> \"$d/schema.sql\"; \"$d/main\" | cmp - \"$d/schema.sql\""), 0);
}

static void test_sql__statements_come_out_under_their_names(void **state) {
    char queries[512];
    snprintf(queries, sizeof(queries), "-- About all.\n-- name: first_one\n%s\n\n-- name: second\n-- Why.\nDELETE\n",
             odd_text);
    put(*state, "queries.sql", queries);
    put(*state, "main.c",
        "#include <stdio.h>\n#include \"queries.c\"\n"
        "int main(void) { if (Q_first_one != 0 || Q_second != 1 || DB_QUERIES != 2) return 1;\n"
        "for (int i = 0; i < DB_QUERIES; i++) printf(\"-- name: %s%s\\n\", db_query_texts[i].name, "
        "db_query_texts[i].sql); }");
    assert_int_equal(shell(*state, "core/sql.sh queries \"$d/queries.sql\" \"$d/queries.h\" \"$d/queries.c\""), 0);
    assert_int_equal(shell(*state, "cc -std=c11 -Wall -Werror -o \"$d/main\" \"$d/main.c\""), 0);
    assert_int_equal(shell(*state, "\"$d/main\" > \"$d/out\" && tail -n +2 \"$d/queries.sql\" | cmp - \"$d/out\""), 0);
}

static void test_sql__mistakes_are_refused(void **state) {
    static const char *const mistakes[][2] = {
        {"", "no statement"},
        {"SELECT 1;\n", "without a name"},
        {"-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;\n", "twice"},
        {"-- name: a\n-- nothing\n-- name: b\nSELECT 1;\n", "a has no statement"},
        {"-- name: a\nSELECT 1;\n-- name: b\n", "b has no statement"},
        {"-- name: Not-a-name\nSELECT 1;\n", "not a name"},
    };
    char command[128];
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        put(*state, "queries.sql", mistakes[i][0]);
        assert_int_not_equal(
            shell(*state, "core/sql.sh queries \"$d/queries.sql\" \"$d/q.h\" \"$d/q.c\" 2> \"$d/said\""), 0);
        snprintf(command, sizeof(command), "grep -q '%s' \"$d/said\"", mistakes[i][1]);
        assert_int_equal(shell(*state, command), 0);
        assert_int_equal(shell(*state, "test \"$(cd \"$d\" && echo q*)\" = queries.sql"), 0);
    }
    assert_int_not_equal(shell(*state, "core/sql.sh schema \"$d/absent\" \"$d/s.c\" 2> /dev/null"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sql__schema_comes_out_byte_for_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sql__statements_come_out_under_their_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sql__mistakes_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
