/* test_settings.c - what can be set for a queue: values, bad values, where they come from, and when they count. */
#include "spool_fixture.h"

static const char *get(struct fixture *f, int64_t queue, enum spool_setting setting) {
    static char text[SPOOL_SETTING_MAX];
    assert_ok(DO(f, spool_get_setting(f->spool, queue, setting, text)));
    return text;
}

static int try_set(struct fixture *f, enum spool_setting setting, const char *text) {
    return (int)DO(f, spool_set_setting(f->spool, f->queue, setting, text, strlen(text)));
}

/* --- values --- */

static void test_setting__each_has_a_name_a_default_and_help(void **state) {
    struct fixture *f = *state;
    static const char *const expected[SPOOL_SETTINGS][2] = {
        [SPOOL_LEASE] = {"lease", "60s\n"},
        [SPOOL_MAX_LEASE] = {"max_lease", "12h\n"},
        [SPOOL_MAX_ATTEMPTS] = {"max_attempts", "20\n"},
        [SPOOL_RETRY_DELAY] = {"retry_delay", "1s\n"},
        [SPOOL_RETRY_MAX] = {"retry_max", "5m\n"},
        [SPOOL_ON_CONFLICT] = {"on_conflict", "keep\n"},
        [SPOOL_MAX_WAITING] = {"max_waiting", "0\n"},
        [SPOOL_MAX_SIZE] = {"max_size", "0\n"},
        [SPOOL_PARTIAL] = {"partial", NULL},
        [SPOOL_PARTIAL_TTL] = {"partial_ttl", "7d\n"},
        [SPOOL_PAUSED] = {"paused", "0\n"},
    };
    for (enum spool_setting setting = 0; setting < SPOOL_SETTINGS; setting++) {
        assert_string_equal(spool_setting_name(setting), expected[setting][0]);
        assert_int_equal(spool_setting_find(expected[setting][0]), setting);
        assert_true(strlen(spool_setting_help(setting)) > 10);
        const char *text = get(f, f->queue, setting);
        if (expected[setting][1])
            assert_string_equal(text, expected[setting][1]);
        assert_memory_equal(text, spool_setting_default(setting), strlen(text) - 1);
        assert_string_equal(get(f, SPOOL_ROOT, setting), text);
    }
    assert_int_equal(spool_setting_find("unknown"), SPOOL_SETTINGS);
    assert_int_equal(spool_setting_find(""), SPOOL_SETTINGS);
}

static void test_setting__is_read_back_in_its_canonical_form(void **state) {
    struct fixture *f = *state;
    const struct {
        enum spool_setting setting;
        const char *written, *read;
    } values[] = {
        {SPOOL_LEASE, "120s", "2m\n"},
        {SPOOL_LEASE, " 90s\n", "90s\n"},
        {SPOOL_MAX_LEASE, "\t1d\r\n", "24h\n"},
        {SPOOL_MAX_ATTEMPTS, "007", "7\n"},
        {SPOOL_RETRY_DELAY, "0", "0\n"},
        {SPOOL_RETRY_MAX, "1000ms", "1s\n"},
        {SPOOL_ON_CONFLICT, "replace\n", "replace\n"},
        {SPOOL_ON_CONFLICT, "reject", "reject\n"},
        {SPOOL_MAX_WAITING, "1000", "1000\n"},
        {SPOOL_MAX_SIZE, "10M", "10485760\n"},
        {SPOOL_PARTIAL, "  *.up \n *.down\t\n", "*.up *.down\n"},
        {SPOOL_PARTIAL, "", "\n"},
        {SPOOL_PARTIAL_TTL, "48h", "2d\n"},
        {SPOOL_PAUSED, "1", "1\n"},
        {SPOOL_PAUSED, "0", "0\n"},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        assert_ok(try_set(f, values[i].setting, values[i].written));
        assert_true(f->promised);
        assert_string_equal(get(f, f->queue, values[i].setting), values[i].read);
    }
    reopen_after_kill(f);
    assert_string_equal(get(f, f->queue, SPOOL_LEASE), "90s\n");
    assert_string_equal(get(f, f->queue, SPOOL_PARTIAL), "\n");
}

static void test_setting__a_bad_value_is_refused_and_the_old_stays(void **state) {
    struct fixture *f = *state;
    const struct {
        enum spool_setting setting;
        const char *bad[8];
    } all[] = {
        {SPOOL_LEASE, {"", "5", "-1s", "soon", "1h30m"}},
        {SPOOL_MAX_LEASE, {"", "12", "12hours"}},
        {SPOOL_MAX_ATTEMPTS, {"", "-1", "many", "1K", "1.5", "99999999999999999999"}},
        {SPOOL_RETRY_DELAY, {"1", "s"}},
        {SPOOL_RETRY_MAX, {"1", "s"}},
        {SPOOL_ON_CONFLICT, {"", "Keep", "keep replace", "drop"}},
        {SPOOL_MAX_WAITING, {"", "-1", "10K", "ten"}},
        {SPOOL_MAX_SIZE, {"", "-1", "10X", "1KB"}},
        {SPOOL_PARTIAL_TTL, {"", "7"}},
        {SPOOL_PAUSED, {"", "2", "yes", "-1", "true"}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char before[SPOOL_SETTING_MAX];
        snprintf(before, sizeof before, "%s", get(f, f->queue, all[i].setting));
        for (int j = 0; j < 8 && all[i].bad[j]; j++) {
            if (try_set(f, all[i].setting, all[i].bad[j]) != -EINVAL)
                fail_msg("%s: \"%s\" is taken", spool_setting_name(all[i].setting), all[i].bad[j]);
            assert_string_equal(get(f, f->queue, all[i].setting), before);
        }
    }
    assert_int_equal(rows_in(f, "setting"), 0);
}

static void test_setting__bytes_that_are_no_text_and_too_many_of_them(void **state) {
    struct fixture *f = *state;
    static char text[SPOOL_SETTING_MAX + 10];
    assert_fails(DO(f, spool_set_setting(f->spool, f->queue, SPOOL_LEASE, "5s\0x", 4)), EINVAL);
    assert_fails(DO(f, spool_set_setting(f->spool, f->queue, SPOOL_LEASE, "5s\0", 3)), EINVAL);
    assert_fails(DO(f, spool_set_setting(f->spool, f->queue, SPOOL_PARTIAL, "*.a\0*.b", 7)), EINVAL);
    memset(text, 'x', sizeof text - 1);
    assert_fails(try_set(f, SPOOL_PARTIAL, text), E2BIG);
    text[SPOOL_SETTING_MAX - 1] = '\0';
    assert_fails(try_set(f, SPOOL_PARTIAL, text), E2BIG);
    text[SPOOL_SETTING_MAX - 2] = '\0';
    assert_ok(try_set(f, SPOOL_PARTIAL, text));
    assert_int_equal(strlen(get(f, f->queue, SPOOL_PARTIAL)), SPOOL_SETTING_MAX - 1);
    memset(text, ' ', sizeof text - 1);
    text[0] = 'x';
    assert_ok(try_set(f, SPOOL_PARTIAL, text)); /* space around it does not count */
    assert_fails(DO(f, spool_set_setting(f->spool, 4711, SPOOL_LEASE, "5s", 2)), ENOENT);
}

/* --- where they come from --- */

static void test_inheritance__own_value_before_the_roots_before_the_default(void **state) {
    struct fixture *f = *state;
    int64_t other = make_directory(f, SPOOL_ROOT, "other");
    set(f, SPOOL_ROOT, SPOOL_LEASE, "30s");
    assert_string_equal(get(f, f->queue, SPOOL_LEASE), "30s\n");
    set(f, f->queue, SPOOL_LEASE, "10s");
    assert_string_equal(get(f, f->queue, SPOOL_LEASE), "10s\n");
    assert_string_equal(get(f, other, SPOOL_LEASE), "30s\n");
    set(f, SPOOL_ROOT, SPOOL_LEASE, "20s");
    assert_string_equal(get(f, f->queue, SPOOL_LEASE), "10s\n");
    assert_string_equal(get(f, other, SPOOL_LEASE), "20s\n");
    assert_ok(DO(f, spool_reset_setting(f->spool, f->queue, SPOOL_LEASE)));
    assert_true(f->promised);
    assert_string_equal(get(f, f->queue, SPOOL_LEASE), "20s\n");
    assert_ok(DO(f, spool_reset_setting(f->spool, SPOOL_ROOT, SPOOL_LEASE)));
    assert_string_equal(get(f, f->queue, SPOOL_LEASE), "60s\n");
    assert_ok(DO(f, spool_reset_setting(f->spool, f->queue, SPOOL_LEASE))); /* nothing is set: nothing happens */
}

static void test_inheritance__a_queue_made_anew_has_nothing_of_the_old(void **state) {
    struct fixture *f = *state;
    int64_t first = make_directory(f, SPOOL_ROOT, "other");
    set(f, first, SPOOL_LEASE, "10s");
    assert_ok(DO(f, spool_rmdir(f->spool, SPOOL_ROOT, "other")));
    int64_t second = make_directory(f, SPOOL_ROOT, "other");
    assert_string_equal(get(f, second, SPOOL_LEASE), "60s\n");
    assert_int_equal(rows_in(f, "setting"), 0);
}

static void test_inheritance__a_renamed_queue_keeps_its_own(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_LEASE, "10s");
    assert_ok(rename_entry(f, SPOOL_ROOT, "q", SPOOL_ROOT, "renamed"));
    assert_string_equal(get(f, find(f, SPOOL_ROOT, "renamed"), SPOOL_LEASE), "10s\n");
    assert_ok(rename_entry(f, SPOOL_ROOT, "renamed", SPOOL_ROOT, "q"));
}

/* --- when they count --- */

static void test_moment__lease_at_the_claim(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "a", "1");
    put(f, f->queue, "b", "2");
    assert_ok(claim(f, "a"));
    set(f, f->queue, SPOOL_LEASE, "10s");
    assert_ok(claim(f, "b"));
    advance(f, 10 * SECONDS);
    assert_string_equal(messages_in(f, f->worker), "a");
}

static void test_moment__max_attempts_and_backoff_at_the_failure(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "a", "1");
    assert_ok(claim(f, "a"));
    set(f, f->queue, SPOOL_MAX_ATTEMPTS, "1");
    advance(f, 60 * SECONDS);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_DEAD), 1);
    put(f, f->queue, "b", "1");
    set(f, f->queue, SPOOL_MAX_ATTEMPTS, "2");
    assert_ok(claim(f, "b"));
    set(f, f->queue, SPOOL_RETRY_DELAY, "7s");
    advance(f, 60 * SECONDS);
    advance(f, 7 * SECONDS - 1);
    assert_fails(claim(f, "b"), EAGAIN);
    advance(f, 1);
    assert_ok(claim(f, "b"));
}

static void test_moment__partial_at_publishing(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order.up", "1");
    put(f, f->queue, "order.tmp", "2");
    struct spool_writer *writer = create(f, f->queue, "late.up");
    assert_ok(write_text(f, writer, "3", 0));
    set(f, f->queue, SPOOL_PARTIAL, "*.up");
    assert_ok(close_file(f, writer));
    assert_int_equal(entry_of(f, f->queue, "order.up").state, SPOOL_WAITING);
    assert_int_equal(entry_of(f, f->queue, "order.tmp").state, SPOOL_STAGED);
    assert_int_equal(entry_of(f, f->queue, "late.up").state, SPOOL_STAGED);
    assert_ok(claim(f, "order.up"));
    assert_ok(release(f, "order.up")); /* it is a message already */
    assert_int_equal(entry_of(f, f->queue, "order.up").state, SPOOL_WAITING);
}

static void test_moment__pause_and_limits_at_once(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "a", "1");
    set(f, f->queue, SPOOL_PAUSED, "1");
    assert_fails(claim(f, "a"), EAGAIN);
    put(f, f->queue, "b", "2"); /* publishing goes on */
    set(f, f->queue, SPOOL_PAUSED, "0");
    assert_ok(claim(f, "a"));
    set(f, f->queue, SPOOL_MAX_WAITING, "1");
    assert_fails(try_create(f, f->queue, "c", 0644, 0, NULL), EDQUOT);
}

static void test_moment__partial_ttl_of_0_is_never(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_PARTIAL_TTL, "0");
    put(f, f->queue, ".a", "1");
    advance(f, 1000 * DAYS);
    assert_string_equal(messages_in(f, f->queue), ".a");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        spool_test(test_setting__each_has_a_name_a_default_and_help),
        spool_test(test_setting__is_read_back_in_its_canonical_form),
        spool_test(test_setting__a_bad_value_is_refused_and_the_old_stays),
        spool_test(test_setting__bytes_that_are_no_text_and_too_many_of_them),
        spool_test(test_inheritance__own_value_before_the_roots_before_the_default),
        spool_test(test_inheritance__a_queue_made_anew_has_nothing_of_the_old),
        spool_test(test_inheritance__a_renamed_queue_keeps_its_own),
        spool_test(test_moment__lease_at_the_claim),
        spool_test(test_moment__max_attempts_and_backoff_at_the_failure),
        spool_test(test_moment__partial_at_publishing),
        spool_test(test_moment__pause_and_limits_at_once),
        spool_test(test_moment__partial_ttl_of_0_is_never),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
