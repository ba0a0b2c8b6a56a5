/* test_name.c - names: which are staged, how they are numbered, and what fits. */
#include "spool_fixture.h"

#include "engine.h"

static void assert_staged(const char *name, const char *patterns, bool staged) {
    if (spool__name_is_staged(name, patterns) != staged)
        fail_msg("%s is %s by \"%s\"", name, staged ? "not staged" : "staged", patterns);
}

static void test_staged__by_the_default_patterns(void **state) {
    (void)state;
    static const char *const staged[] = {".",
                                         ".x",
                                         "..x",
                                         "a~",
                                         "#a#",
                                         "~$report.docx",
                                         "a.tmp",
                                         "a.temp",
                                         "a.part",
                                         ".tmp",
                                         "a.lftp",
                                         "a.partial",
                                         "a.crdownload",
                                         "a.swp",
                                         "a.swpx",
                                         "a.aria2",
                                         "a.filepart",
                                         "a.aria2__temp",
                                         "a.upload",
                                         "a.download",
                                         "Thumbs.db",
                                         "desktop.ini"};
    static const char *const final[] = {"a",     "a.b",  "a.tmp.1",   "tmp",        "a~b", "#a",       "a#",     "$a",
                                        "a.TMP", "atmp", "thumbs.db", "Thumbs.db2", " .x", "a.partly", "order~1"};
    const char *patterns = spool_setting_default(SPOOL_PARTIAL);
    for (size_t i = 0; i < sizeof staged / sizeof *staged; i++)
        assert_staged(staged[i], patterns, true);
    for (size_t i = 0; i < sizeof final / sizeof *final; i++)
        assert_staged(final[i], patterns, false);
}

static void test_staged__by_patterns_of_ones_own(void **state) {
    (void)state;
    assert_staged("a", "", false);
    assert_staged(".a", "", true);
    assert_staged("a.up", "*.up", true);
    assert_staged("x1", "a b x[0-9] c", true);
    assert_staged("xy", "a b x[0-9] c", false);
    assert_staged("c", "a b x[0-9] c", true);
    assert_staged("ab", "?b", true);
    assert_staged("a b", "a b", false); /* patterns end at a space */
    assert_staged("\xff.tmp", "*.tmp", true);
    assert_staged("anything", "*", true);
}

static void assert_numbered(const char *name, int64_t number, const char *expected) {
    char out[SPOOL_NAME_MAX + 1];
    spool__number_name(name, number, out);
    assert_string_equal(out, expected);
}

static void test_number__stands_before_the_last_dot(void **state) {
    (void)state;
    assert_numbered("order", 1, "order~1");
    assert_numbered("order.xml", 2, "order~2.xml");
    assert_numbered("order.tar.gz", 3, "order.tar~3.gz");
    assert_numbered("order.", 4, "order~4.");
    assert_numbered(".hidden", 5, ".hidden~5");
    assert_numbered(".hidden.xml", 6, ".hidden~6.xml");
    assert_numbered("a", INT64_MAX, "a~9223372036854775807");
    assert_numbered("order~1.xml", 1, "order~1~1.xml");
}

static void fill(char *name, const char *piece, size_t length) {
    size_t at = 0, step = strlen(piece);
    for (; at + step <= length; at += step)
        memcpy(name + at, piece, step);
    for (; at < length; at++)
        name[at] = 'x';
    name[length] = '\0';
}

static void test_number__of_255_bytes_is_shortened_to_fit(void **state) {
    (void)state;
    char name[SPOOL_NAME_MAX + 1], out[SPOOL_NAME_MAX + 1];
    fill(name, "n", 255);
    spool__number_name(name, 10, out);
    assert_int_equal(strlen(out), 255);
    assert_string_equal(out + 252, "~10");
    fill(name, "n", 251);
    strcpy(name + 251, ".xml");
    spool__number_name(name, 7, out);
    assert_int_equal(strlen(out), 255);
    assert_string_equal(out + 249, "~7.xml");
    fill(name, "n", 253); /* just room enough */
    spool__number_name(name, 1, out);
    assert_int_equal(strlen(out), 255);
    assert_memory_equal(out, name, 253);
}

static void test_number__a_very_long_extension_is_none(void **state) {
    (void)state;
    char name[SPOOL_NAME_MAX + 1], out[SPOOL_NAME_MAX + 1];
    fill(name, "n", 255);
    name[1] = '.';
    spool__number_name(name, 1, out);
    assert_int_equal(strlen(out), 255);
    assert_string_equal(out + 253, "~1");
}

/* No character of UTF-8 is cut in two, wherever the cut falls; bytes that are none are cut anywhere. */
static void test_number__cuts_between_characters(void **state) {
    (void)state;
    static const char *const pieces[] = {"\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x90\x9f"};
    char name[SPOOL_NAME_MAX + 1], out[SPOOL_NAME_MAX + 1];
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        for (int64_t number = 1; number < 100000; number *= 10) {
            size_t step = strlen(pieces[i]);
            fill(name, pieces[i], 255);
            spool__number_name(name, number, out);
            size_t kept = (size_t)(strchr(out, '~') - out);
            assert_true(((unsigned char)name[kept] & 0xc0) != 0x80);
            assert_memory_equal(out, name, kept);
            assert_true(strlen(out) > 255 - step);
        }
    }
    fill(name, "\x80", 255);
    spool__number_name(name, 1, out);
    assert_int_equal(strlen(out), 255);
}

static void test_prefix__is_shortened_to_fit(void **state) {
    (void)state;
    char name[SPOOL_NAME_MAX + 1], out[SPOOL_NAME_MAX + 1];
    spool__prefix_name(".killed.", "order", out);
    assert_string_equal(out, ".killed.order");
    fill(name, "\xc3\xbc", 255);
    spool__prefix_name(".killed.", name, out);
    assert_true(strlen(out) >= 253 && strlen(out) <= 255);
    assert_int_equal((strlen(out) - 8) % 2, 0);
    spool__prefix_name(".killed.", strcpy(name, ""), out);
    assert_string_equal(out, ".killed.");
}

static void test_valid__names_are_1_to_255_bytes_without_a_slash(void **state) {
    (void)state;
    char name[300];
    fill(name, "n", 255);
    assert_ok(spool__name_is_valid(name));
    fill(name, "n", 256);
    assert_fails(spool__name_is_valid(name), ENAMETOOLONG);
    assert_ok(spool__name_is_valid("\xff \n\t\x01"));
    assert_ok(spool__name_is_valid("..."));
    assert_fails(spool__name_is_valid(""), EINVAL);
    assert_fails(spool__name_is_valid("."), EINVAL);
    assert_fails(spool__name_is_valid(".."), EINVAL);
    assert_fails(spool__name_is_valid("a/b"), EINVAL);
}

/* --- in a queue --- */

static void test_fit__skips_numbers_that_are_taken_or_would_be_staged(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_PARTIAL, "*~1 *~2");
    put(f, f->queue, "a", "1");
    put(f, f->queue, "a~3", "1");
    assert_ok(overwrite(f, f->queue, "a", "2"));
    assert_string_equal(messages_in(f, f->queue), "a~4 a~3 a");
}

static void test_fit__gives_up_where_every_number_is_staged(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_PARTIAL, "*~*");
    put(f, f->queue, "a", "1");
    assert_fails(overwrite(f, f->queue, "a", "2"), EEXIST);
    assert_string_equal(messages_in(f, f->queue), "a");
}

static void test_fit__long_names_of_one_kind_stay_apart(void **state) {
    struct fixture *f = *state;
    char name[SPOOL_NAME_MAX + 1], out[SPOOL_NAME_MAX + 1];
    fill(name, "\xe2\x82\xac", 255);
    for (int i = 0; i < 12; i++)
        assert_ok(overwrite(f, f->queue, name, "1"));
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_READY), 12);
    spool__number_name(name, 11, out);
    assert_true(find(f, f->queue, out) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_staged__by_the_default_patterns),
        cmocka_unit_test(test_staged__by_patterns_of_ones_own),
        cmocka_unit_test(test_number__stands_before_the_last_dot),
        cmocka_unit_test(test_number__of_255_bytes_is_shortened_to_fit),
        cmocka_unit_test(test_number__a_very_long_extension_is_none),
        cmocka_unit_test(test_number__cuts_between_characters),
        cmocka_unit_test(test_prefix__is_shortened_to_fit),
        cmocka_unit_test(test_valid__names_are_1_to_255_bytes_without_a_slash),
        spool_test(test_fit__skips_numbers_that_are_taken_or_would_be_staged),
        spool_test(test_fit__gives_up_where_every_number_is_staged),
        spool_test(test_fit__long_names_of_one_kind_stay_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
