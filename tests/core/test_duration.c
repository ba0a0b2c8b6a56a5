/* test_duration.c - durations and sizes as people write them. */
#include "spool_fixture.h"

#include "duration.h"

static void assert_duration(const char *text, int64_t expected, const char *canonical) {
    int64_t ns = -1;
    char out[32];
    if (duration_parse(text, &ns))
        fail_msg("%s is refused", text);
    assert_int_equal(ns, expected);
    duration_format(ns, out, sizeof out);
    assert_string_equal(out, canonical);
}

static void test_duration__in_every_unit(void **state) {
    (void)state;
    assert_duration("0", 0, "0");
    assert_duration("500ms", 500 * MILLISECONDS, "500ms");
    assert_duration("30s", 30 * SECONDS, "30s");
    assert_duration("5m", 5 * MINUTES, "5m");
    assert_duration("2h", 2 * HOURS, "2h");
    assert_duration("7d", 7 * DAYS, "7d");
}

static void test_duration__is_written_in_the_unit_that_reads_best(void **state) {
    (void)state;
    assert_duration("0s", 0, "0");
    assert_duration("0d", 0, "0");
    assert_duration("1s", 1 * SECONDS, "1s");
    assert_duration("60s", 60 * SECONDS, "60s");
    assert_duration("90s", 90 * SECONDS, "90s");
    assert_duration("120s", 2 * MINUTES, "2m");
    assert_duration("1000ms", 1 * SECONDS, "1s");
    assert_duration("1500ms", 1500 * MILLISECONDS, "1500ms");
    assert_duration("1d", 1 * DAYS, "24h");
    assert_duration("48h", 2 * DAYS, "2d");
    assert_duration("007d", 7 * DAYS, "7d");
    assert_duration("36525d", 36525 * DAYS, "36525d"); /* a hundred years is the longest */
}

static void test_duration__of_no_sense_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      " ",
                                      "s",
                                      "5",
                                      "-5s",
                                      "+5s",
                                      "5 s",
                                      "5S",
                                      "1h30m",
                                      "1.5s",
                                      "5s ",
                                      " 5s",
                                      "0x5s",
                                      "5ss",
                                      "5min",
                                      "36526d",
                                      "999999999999999999999s",
                                      "9223372036854775807d",
                                      "1w",
                                      "ms"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t ns = 4711;
        if (duration_parse(bad[i], &ns) != -EINVAL)
            fail_msg("\"%s\" is taken", bad[i]);
        assert_int_equal(ns, 4711);
    }
}

static void test_size__with_and_without_a_suffix(void **state) {
    (void)state;
    const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"0", 0},
                {"1000", 1000},
                {"4K", 4096},
                {"2M", 2 << 20},
                {"3G", INT64_C(3) << 30},
                {"1T", INT64_C(1) << 40},
                {"9223372036854775807", INT64_MAX}};
    static const char *const bad[] = {"", "K", "-1", "1k", "1KB", "1 K", "1.5M", "9223372036854775808", "9000000T"};
    int64_t bytes;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_ok(size_parse(good[i].text, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (size_parse(bad[i], &bytes) != -EINVAL)
            fail_msg("\"%s\" is taken", bad[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_duration__in_every_unit),
        cmocka_unit_test(test_duration__is_written_in_the_unit_that_reads_best),
        cmocka_unit_test(test_duration__of_no_sense_is_refused),
        cmocka_unit_test(test_size__with_and_without_a_suffix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
