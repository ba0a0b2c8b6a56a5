/* test_directory.c - modes, owners and times of directories and messages, as stat shows them. */
#include "spool_fixture.h"

static int change_mode(struct fixture *f, int64_t number, uint32_t mode) {
    return (int)DO(f, spool_chmod(f->spool, number, mode));
}

static int change_owner(struct fixture *f, int64_t number, uid_t uid, gid_t gid) {
    return (int)DO(f, spool_chown(f->spool, number, uid, gid));
}

/* --- claimed and dead follow their queue --- */

static void test_follow__the_mode_is_derived_from_the_queues(void **state) {
    struct fixture *f = *state;
    static const struct {
        uint32_t queue, derived;
    } modes[] = {
        {0755, 0755}, {02770, 03770}, {01733, 0700},  {0775, 01775}, {0700, 0700},  {0777, 01777},
        {0730, 0700}, {0733, 0700},   {02755, 02755}, {0750, 0750},  {0772, 01770}, {01777, 01777},
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_ok(change_mode(f, f->queue, modes[i].queue));
        assert_true(f->promised);
        assert_int_equal(entry_of_number(f, f->queue).mode, 040000 | modes[i].queue);
        for (int j = 0; j < 2; j++) {
            uint32_t derived = entry_of(f, f->queue, j ? "dead" : "claimed").mode;
            if (derived != (040000 | modes[i].derived))
                fail_msg("%o makes %o, not %o", modes[i].queue, derived, modes[i].derived);
        }
    }
}

static void test_follow__the_owner_is_the_queues(void **state) {
    struct fixture *f = *state;
    assert_ok(change_owner(f, f->queue, 2000, 200));
    assert_int_equal(entry_of(f, f->queue, "claimed").uid, 2000);
    assert_int_equal(entry_of(f, f->queue, "dead").gid, 200);
    assert_ok(change_owner(f, f->queue, (uid_t)-1, 300));
    assert_int_equal(entry_of(f, f->queue, "claimed").uid, 2000);
    assert_int_equal(entry_of(f, f->queue, "claimed").gid, 300);
}

static void test_follow__ends_when_they_are_changed_themselves(void **state) {
    struct fixture *f = *state;
    int64_t claimed = find(f, f->queue, "claimed");
    assert_ok(change_mode(f, f->queue, 02770));
    assert_ok(change_owner(f, claimed, 3000, (gid_t)-1));
    assert_ok(change_mode(f, f->queue, 0755));
    assert_int_equal(entry_of(f, f->queue, "claimed").mode, 043770); /* as it was at that moment */
    assert_int_equal(entry_of(f, f->queue, "claimed").uid, 3000);
    assert_int_equal(entry_of(f, f->queue, "claimed").gid, 100);
    assert_int_equal(entry_of(f, f->queue, "dead").mode, 040755);
    assert_ok(change_mode(f, claimed, 0711));
    reopen_after_kill(f);
    assert_int_equal(entry_of(f, f->queue, "claimed").mode, 040711);
    assert_ok(DO(f, spool_rmdir(f->spool, find(f, f->queue, "claimed"), "w")));
    assert_ok(DO(f, spool_rmdir(f->spool, f->queue, "claimed")));
    assert_int_equal(entry_of(f, f->queue, "claimed").mode, 040755); /* the reborn one follows */
}

/* --- the root and the others --- */

static void test_root__is_the_openers_and_keeps_its_changes(void **state) {
    struct fixture *f = *state;
    struct spool_entry root = entry_of_number(f, SPOOL_ROOT);
    assert_int_equal(root.mode, 040755);
    assert_int_equal(root.uid, 1000);
    assert_int_equal(root.gid, 100);
    assert_ok(change_mode(f, SPOOL_ROOT, 01777));
    f->options.uid = 5000;
    reopen_after_kill(f);
    assert_int_equal(entry_of_number(f, SPOOL_ROOT).mode, 041777);
    assert_int_equal(entry_of_number(f, SPOOL_ROOT).uid, 1000);
}

static void test_mode__of_new_directories_is_what_was_asked_for(void **state) {
    struct fixture *f = *state;
    struct spool_entry entry;
    assert_ok(DO(f, spool_mkdir(f->spool, SPOOL_ROOT, "drop", 01733, f->caller, &entry)));
    assert_int_equal(entry.mode, 041733);
    assert_int_equal(entry.uid, 1000);
    assert_ok(DO(f, spool_mkdir(f->spool, find(f, f->queue, "claimed"), "v", 0700, f->caller, &entry)));
    assert_int_equal(entry.mode, 040700);
}

/* --- messages --- */

static void test_message__keeps_the_writers_mode_without_set_ids(void **state) {
    struct fixture *f = *state;
    int64_t number = put(f, f->queue, "order", "tea");
    assert_ok(change_mode(f, number, 06777));
    assert_int_equal(entry_of_number(f, number).mode, 0100777);
    assert_ok(change_mode(f, number, 0));
    assert_int_equal(entry_of_number(f, number).mode, 0100600); /* a message always has u+rw */
    assert_fails(change_mode(f, 4711, 0644), ENOENT);
    assert_fails(change_owner(f, 4711, 1, 1), ENOENT);
}

static void test_message__is_hidden_from_classes_that_may_not_read_the_queue(void **state) {
    struct fixture *f = *state;
    int64_t number = put(f, f->queue, "order", "tea");
    assert_ok(change_mode(f, number, 0666));
    assert_ok(change_mode(f, f->queue, 01733));
    assert_int_equal(entry_of_number(f, number).mode, 0100600);
    assert_ok(change_mode(f, f->queue, 02770));
    assert_int_equal(entry_of_number(f, number).mode, 0100660);
    assert_ok(change_mode(f, f->queue, 0755));
    assert_int_equal(entry_of_number(f, number).mode, 0100666);
}

static void test_message__a_leases_mode_cannot_be_widened(void **state) {
    struct fixture *f = *state;
    int64_t number = put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    assert_ok(change_mode(f, number, 0666));
    assert_int_equal(entry_of_number(f, number).mode, 0100600);
    assert_ok(change_owner(f, number, 2000, (gid_t)-1));
    assert_int_equal(entry_of_number(f, number).uid, 2000);
    assert_ok(release(f, "order"));
    assert_int_equal(entry_of_number(f, number).uid, 1000);
    assert_int_equal(entry_of_number(f, number).mode, 0100644);
}

static void test_message__shows_its_times(void **state) {
    struct fixture *f = *state;
    int64_t written_ns = f->now.wall_ns;
    int64_t number = put(f, f->queue, ".order", "tea");
    advance(f, 10 * SECONDS);
    assert_ok(rename_entry(f, f->queue, ".order", f->queue, "order"));
    int64_t published_ns = f->now.wall_ns;
    struct spool_entry entry = entry_of_number(f, number);
    assert_int_equal(entry.mtime_ns, written_ns);
    assert_int_equal(entry.atime_ns, published_ns);
    assert_int_equal(entry.ctime_ns, published_ns);
    advance(f, 10 * SECONDS);
    assert_ok(DO(f, spool_touch(f->spool, number, SPOOL_OMIT, 0, SPOOL_AT, f->now.wall_ns + HOURS)));
    assert_int_equal(entry_of_number(f, number).mtime_ns, f->now.wall_ns + HOURS);
    assert_int_equal(entry_of_number(f, number).ctime_ns, f->now.wall_ns);
    assert_ok(DO(f, spool_touch(f->spool, number, SPOOL_OMIT, 0, SPOOL_AT, 5 * SECONDS)));
    assert_int_equal(entry_of_number(f, number).mtime_ns, 5 * SECONDS); /* the past is recorded, and delays nothing */
    assert_ok(claim(f, "order"));
    assert_int_equal(entry_of_number(f, number).mtime_ns, 5 * SECONDS);
    assert_int_equal(entry_of_number(f, number).atime_ns, f->now.wall_ns + 60 * SECONDS);
}

static void test_message__times_set_before_publication_mean_nothing_to_the_queue(void **state) {
    struct fixture *f = *state;
    int64_t number = put(f, f->queue, ".order", "tea");
    assert_ok(DO(f, spool_touch(f->spool, number, SPOOL_AT, f->now.wall_ns + DAYS, SPOOL_AT, f->now.wall_ns + DAYS)));
    assert_int_equal(entry_of_number(f, number).mtime_ns, f->now.wall_ns + DAYS);
    assert_ok(rename_entry(f, f->queue, ".order", f->queue, "order"));
    assert_ok(claim(f, "order"));
}

static void test_directory__its_mtime_changes_with_its_entries(void **state) {
    struct fixture *f = *state;
    const char *const steps[] = {"create", "publish", "claim", "acknowledge"};
    int64_t claimed_ns = f->now.wall_ns;
    for (int i = 0; i < 4; i++) {
        advance(f, 1 * SECONDS);
        if (i == 0)
            put(f, f->queue, ".order", "tea");
        else if (i == 1)
            assert_ok(rename_entry(f, f->queue, ".order", f->queue, "order"));
        else if (i == 2)
            assert_ok(claim(f, "order"));
        else
            assert_ok(erase(f, f->worker, "order"));
        if (entry_of_number(f, i == 3 ? f->worker : f->queue).mtime_ns != f->now.wall_ns)
            fail_msg("%s changes no time", steps[i]);
    }
    assert_int_equal(entry_of(f, f->queue, "claimed").mtime_ns, claimed_ns);
    reopen_after_kill(f);
    assert_int_equal(entry_of_number(f, f->worker).mtime_ns, f->now.wall_ns);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        spool_test(test_follow__the_mode_is_derived_from_the_queues),
        spool_test(test_follow__the_owner_is_the_queues),
        spool_test(test_follow__ends_when_they_are_changed_themselves),
        spool_test(test_root__is_the_openers_and_keeps_its_changes),
        spool_test(test_mode__of_new_directories_is_what_was_asked_for),
        spool_test(test_message__keeps_the_writers_mode_without_set_ids),
        spool_test(test_message__is_hidden_from_classes_that_may_not_read_the_queue),
        spool_test(test_message__a_leases_mode_cannot_be_widened),
        spool_test(test_message__shows_its_times),
        spool_test(test_message__times_set_before_publication_mean_nothing_to_the_queue),
        spool_test(test_directory__its_mtime_changes_with_its_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
