/* test_lease.c - claim, renew, lose, fail, release, acknowledge: what becomes of a message that is somebody's. */
#include "spool_fixture.h"

static int64_t lease_ns(struct fixture *f, const char *name) {
    return entry_of(f, f->worker, name).atime_ns - f->now.wall_ns;
}

static int64_t dead_of(struct fixture *f) {
    return find(f, f->queue, "dead");
}

static int64_t second_worker(struct fixture *f) {
    return make_directory(f, find(f, f->queue, "claimed"), "v");
}

static int touch(struct fixture *f, int64_t number, enum spool_when atime, int64_t atime_ns) {
    return (int)DO(f, spool_touch(f->spool, number, atime, atime_ns, SPOOL_OMIT, 0));
}

static int delay(struct fixture *f, int64_t number, int64_t due_ns) {
    return (int)DO(f, spool_touch(f->spool, number, SPOOL_OMIT, 0, SPOOL_AT, due_ns));
}

/* Claim it and let it fail at once. */
static void fail_once(struct fixture *f, const char *name) {
    assert_ok(claim(f, name));
    assert_ok(touch(f, find(f, f->worker, name), SPOOL_AT, 0));
}

/* --- claiming --- */

static void test_claim__gives_the_file_to_the_claimer(void **state) {
    struct fixture *f = *state;
    int64_t number = put(f, f->queue, "order", "tea");
    f->caller = (struct spool_caller){2000, 200};
    advance(f, 5 * SECONDS);
    assert_ok(claim(f, "order"));
    assert_false(f->promised);
    struct spool_entry entry = entry_of(f, f->worker, "order");
    assert_int_equal(entry.number, number);
    assert_int_equal(entry.state, SPOOL_CLAIMED_STATE);
    assert_int_equal(entry.uid, 2000);
    assert_int_equal(entry.gid, 100);
    assert_int_equal(entry.mode & 0777, 0600);
    assert_int_equal(lease_ns(f, "order"), 60 * SECONDS);
    assert_string_equal(messages_in(f, f->queue), "");
    assert_ok(release(f, "order"));
    entry = entry_of(f, f->queue, "order");
    assert_int_equal(entry.uid, 1000);
    assert_int_equal(entry.mode & 0777, 0644);
}

static void test_claim__second_is_refused(void **state) {
    struct fixture *f = *state;
    int64_t other = second_worker(f);
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    assert_fails(claim(f, "order"), ENOENT);
    assert_fails(rename_entry(f, f->queue, "order", other, "order"), ENOENT);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_CLAIMED), 1);
}

static void test_claim__errors_are_looked_for_in_their_order(void **state) {
    struct fixture *f = *state;
    int64_t queue = make_directory(f, SPOOL_ROOT, "other");
    int64_t elsewhere = find(f, queue, "claimed");
    put(f, queue, "taken", "salt");
    assert_ok(rename_entry(f, queue, "taken", elsewhere, "taken"));
    put(f, f->queue, "lease", "tea");
    assert_ok(claim_as(f, "lease", "taken"));

    assert_fails(rename_entry(f, f->queue, "order", elsewhere, "taken"), ENOENT);
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_fails(rename_entry(f, f->queue, "order", elsewhere, "taken"), ETXTBSY);
    assert_ok(close_file(f, writer));
    assert_fails(rename_entry(f, f->queue, "order", elsewhere, "taken"), ETXTBSY); /* empty: held back */
    advance(f, 1 * SECONDS);
    assert_ok(delay(f, find(f, f->queue, "order"), f->now.wall_ns + 5 * SECONDS));
    assert_fails(rename_entry(f, f->queue, "order", elsewhere, "taken"), EAGAIN);
    advance(f, 5 * SECONDS);
    set(f, f->queue, SPOOL_PAUSED, "1");
    assert_fails(claim_as(f, "order", "taken"), EAGAIN);
    set(f, f->queue, SPOOL_PAUSED, "0");
    assert_fails(claim_as(f, "order", "taken"), EEXIST);
    assert_fails(rename_entry(f, f->queue, "order", elsewhere, "taken"), EEXIST);
    assert_fails(rename_entry(f, f->queue, "order", elsewhere, "order"), EINVAL);
    assert_ok(claim(f, "order"));
}

static void test_claim__under_the_name_of_a_workers_directory_is_refused(void **state) {
    struct fixture *f = *state;
    int64_t claimed = find(f, f->queue, "claimed");
    put(f, f->queue, "order", "tea");
    assert_fails(rename_entry(f, f->queue, "order", claimed, "w"), EEXIST);
    assert_ok(rename_entry(f, f->queue, "order", claimed, "order"));
    assert_fails(rename_entry(f, claimed, "order", claimed, "w"), EEXIST);
    assert_int_equal(entry_of(f, claimed, "w").kind, SPOOL_WORKER);
}

static void test_claim__directly_in_claimed_works_too(void **state) {
    struct fixture *f = *state;
    int64_t claimed = find(f, f->queue, "claimed");
    put(f, f->queue, "order", "tea");
    assert_ok(rename_entry(f, f->queue, "order", claimed, "job"));
    assert_ok(erase(f, claimed, "job"));
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_ACKNOWLEDGED), 1);
}

/* --- renewing --- */

static void test_renew__a_touch_of_now_gives_lease_from_now(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    int64_t number = find(f, f->worker, "order");
    for (int i = 0; i < 5; i++) {
        advance(f, 50 * SECONDS);
        assert_ok(touch(f, number, SPOOL_NOW, 0));
        assert_int_equal(lease_ns(f, "order"), 60 * SECONDS);
    }
    set(f, f->queue, SPOOL_LEASE, "2m"); /* counts at the next touch */
    assert_int_equal(lease_ns(f, "order"), 60 * SECONDS);
    assert_ok(touch(f, number, SPOOL_NOW, 0));
    assert_int_equal(lease_ns(f, "order"), 120 * SECONDS);
}

static void test_renew__an_explicit_end_is_taken_up_to_max_lease(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    int64_t number = find(f, f->worker, "order");
    assert_ok(touch(f, number, SPOOL_AT, f->now.wall_ns + 20 * MINUTES));
    assert_int_equal(lease_ns(f, "order"), 20 * MINUTES);
    assert_ok(touch(f, number, SPOOL_AT, f->now.wall_ns + 5 * SECONDS));
    assert_int_equal(lease_ns(f, "order"), 5 * SECONDS);
    assert_ok(touch(f, number, SPOOL_AT, f->now.wall_ns + 3 * DAYS));
    assert_int_equal(lease_ns(f, "order"), 12 * HOURS);
    assert_ok(touch(f, number, SPOOL_AT, f->now.wall_ns - 3 * DAYS)); /* any other time renews */
    assert_int_equal(lease_ns(f, "order"), 60 * SECONDS);
    set(f, f->queue, SPOOL_MAX_LEASE, "30s");
    assert_ok(touch(f, number, SPOOL_NOW, 0));
    assert_int_equal(lease_ns(f, "order"), 30 * SECONDS);
}

static void test_renew__a_touch_of_mtime_alone_does_not(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    advance(f, 30 * SECONDS);
    assert_ok(delay(f, find(f, f->worker, "order"), f->now.wall_ns + 5 * MINUTES));
    assert_int_equal(lease_ns(f, "order"), 30 * SECONDS);
}

static void test_renew__a_touch_of_the_workers_directory_renews_all(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "a", "1");
    put(f, f->queue, "b", "2");
    assert_ok(claim(f, "a"));
    assert_ok(claim(f, "b"));
    advance(f, 50 * SECONDS);
    assert_ok(touch(f, f->worker, SPOOL_NOW, 0));
    assert_int_equal(lease_ns(f, "a"), 60 * SECONDS);
    assert_int_equal(lease_ns(f, "b"), 60 * SECONDS);
    assert_ok(touch(f, f->worker, SPOOL_AT, 0)); /* gives all of them up */
    assert_string_equal(messages_in(f, f->worker), "");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_FAILED), 2);
}

static void test_renew__a_queue_can_be_touched_and_nothing_happens(void **state) {
    struct fixture *f = *state;
    assert_ok(touch(f, f->queue, SPOOL_AT, 0));
    assert_ok(touch(f, find(f, f->queue, "claimed"), SPOOL_AT, 0));
    assert_fails(touch(f, 4711, SPOOL_NOW, 0), ENOENT);
}

/* --- failing --- */

static void test_expiry__brings_the_message_back_under_its_own_name(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    put(f, f->queue, "other", "salt");
    assert_ok(claim_as(f, "order", "job"));
    advance(f, 60 * SECONDS - 1);
    assert_string_equal(messages_in(f, f->worker), "job");
    advance(f, 1);
    assert_string_equal(messages_in(f, f->worker), "");
    assert_string_equal(messages_in(f, f->queue), "order other"); /* at its old place */
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_FAILED), 1);
    assert_fails(claim(f, "order"), EAGAIN);
    advance(f, 1 * SECONDS);
    assert_ok(claim(f, "order"));
}

static void test_expiry__is_seen_by_whoever_looks(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    assert_true(spool_next_tick_ns(f->spool) <= f->now.boot_ns + 60 * SECONDS);
    f->now.boot_ns += 61 * SECONDS; /* no timer has fired */
    assert_fails(erase(f, f->worker, "order"), ENOENT);
}

static void test_expiry__under_a_name_that_is_taken_numbers_it(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    put(f, f->queue, "order", "milk");
    advance(f, 61 * SECONDS);
    assert_string_equal(messages_in(f, f->queue), "order~1 order");
    assert_string_equal(content_of(f, f->queue, "order~1"), "tea");
}

static void test_failure__backoff_doubles_up_to_its_end(void **state) {
    struct fixture *f = *state;
    static const int seconds[] = {2, 4, 8, 10, 10};
    set(f, f->queue, SPOOL_RETRY_DELAY, "2s");
    set(f, f->queue, SPOOL_RETRY_MAX, "10s");
    int64_t number = put(f, f->queue, "order", "tea");
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        fail_once(f, "order");
        assert_int_equal(entry_of_number(f, number).state, SPOOL_DELAYED);
        assert_int_equal(entry_of_number(f, number).mtime_ns, f->now.wall_ns + seconds[i] * SECONDS);
        assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_DELAYED), 1);
        advance(f, seconds[i] * SECONDS - 1);
        assert_fails(claim(f, "order"), EAGAIN);
        advance(f, 1);
        assert_int_equal(entry_of_number(f, number).state, SPOOL_WAITING);
    }
}

static void test_failure__after_max_attempts_it_is_dead(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_MAX_ATTEMPTS, "3");
    set(f, f->queue, SPOOL_RETRY_DELAY, "0");
    int64_t number = put(f, f->queue, "order", "tea");
    for (int i = 0; i < 2; i++)
        fail_once(f, "order");
    assert_ok(claim_as(f, "order", "job"));
    advance(f, 61 * SECONDS);
    struct spool_entry dead = entry_of(f, dead_of(f), "order");
    assert_int_equal(dead.number, number);
    assert_int_equal(dead.state, SPOOL_DEAD_STATE);
    assert_int_equal(dead.uid, 1000);
    assert_int_equal(dead.mtime_ns, f->now.wall_ns);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_DEAD), 1);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_FAILED), 3);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_BURIED), 0);
    assert_int_equal(rows_in(f, "message WHERE reason = x'"
                                "617474656d70742033206f662033206661696c65643a20746865206c656173652072616e206f7574'"),
                     1); /* attempt 3 of 3 failed: the lease ran out */
    assert_fails(try_open(f, number, OPEN_APPEND, NULL), EPERM);
    assert_string_equal(content_of(f, dead_of(f), "order"), "tea");
}

static void test_failure__of_no_end_goes_on(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_MAX_ATTEMPTS, "0");
    set(f, f->queue, SPOOL_RETRY_DELAY, "0");
    put(f, f->queue, "order", "tea");
    for (int i = 0; i < 50; i++)
        fail_once(f, "order");
    assert_int_equal(entry_of(f, f->queue, "order").state, SPOOL_WAITING);
}

static void test_dead__requeued_it_has_all_its_attempts_again(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_MAX_ATTEMPTS, "2");
    set(f, f->queue, SPOOL_RETRY_DELAY, "0");
    put(f, f->queue, "order", "tea");
    put(f, f->queue, "other", "salt");
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2; i++)
            fail_once(f, "order");
        assert_string_equal(messages_in(f, dead_of(f)), "order");
        assert_ok(rename_entry(f, dead_of(f), "order", f->queue, "order"));
        assert_true(f->promised);
        assert_string_equal(messages_in(f, f->queue), "order other");
        assert_int_equal(rows_in(f, "message WHERE reason IS NOT NULL"), 0);
    }
}

/* --- releasing --- */

static void test_release__gives_place_and_attempt_back(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_MAX_ATTEMPTS, "1");
    put(f, f->queue, "order", "tea");
    put(f, f->queue, "other", "salt");
    for (int i = 0; i < 5; i++) {
        assert_ok(claim(f, "order"));
        assert_ok(release(f, "order"));
        assert_string_equal(messages_in(f, f->queue), "order other");
    }
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_RELEASED), 5);
    assert_int_equal(rows_in(f, "message WHERE attempts = 0"), 2);
}

static void test_release__under_the_leases_name_is_home_and_under_another_renames(void **state) {
    struct fixture *f = *state;
    bool elsewhere = false;
    put(f, f->queue, "order", "tea");
    assert_ok(claim_as(f, "order", "job"));
    assert_ok(DO(f, spool_move(f->spool, f->worker, "job", f->queue, "job", false, f->caller, &elsewhere)));
    assert_true(elsewhere);
    assert_string_equal(messages_in(f, f->queue), "order");
    assert_ok(claim_as(f, "order", "job"));
    assert_ok(DO(f, spool_move(f->spool, f->worker, "job", f->queue, "again", false, f->caller, &elsewhere)));
    assert_false(elsewhere);
    assert_string_equal(messages_in(f, f->queue), "again");
}

static void test_release__under_a_leases_name_that_looks_staged_is_home_too(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(claim_as(f, "order", "order.tmp"));
    assert_ok(release(f, "order.tmp"));
    assert_ok(claim_as(f, "order", ".order"));
    assert_ok(release(f, ".order"));
    assert_string_equal(messages_in(f, f->queue), "order");
    assert_ok(claim_as(f, "order", ".order"));
    assert_fails(rename_entry(f, f->worker, ".order", f->queue, ".other"), EPERM);
}

static void test_release__to_a_due_time_waits_for_it(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    assert_ok(delay(f, find(f, f->worker, "order"), f->now.wall_ns + 5 * MINUTES));
    assert_int_equal(entry_of(f, f->worker, "order").mtime_ns, f->now.wall_ns + 5 * MINUTES);
    assert_ok(release(f, "order"));
    assert_fails(claim(f, "order"), EAGAIN);
    advance(f, 5 * MINUTES);
    assert_ok(claim(f, "order"));
}

static void test_release__of_the_workers_directory_releases_all_and_removes_it(void **state) {
    struct fixture *f = *state;
    bool elsewhere = false;
    put(f, f->queue, "a", "1");
    put(f, f->queue, "b", "2");
    assert_ok(claim_as(f, "a", "job"));
    assert_ok(claim(f, "b"));
    int64_t claimed = find(f, f->queue, "claimed");
    assert_ok(DO(f, spool_move(f->spool, claimed, "w", f->queue, "w", false, f->caller, &elsewhere)));
    assert_true(elsewhere);
    assert_string_equal(names_in(f, f->queue), "claimed dead a b");
    assert_string_equal(names_in(f, claimed), "");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_RELEASED), 2);
}

/* --- acknowledging, handing over --- */

static void test_acknowledge__counts_once_and_promises(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    assert_ok(erase(f, f->worker, "order"));
    assert_true(f->promised);
    assert_fails(erase(f, f->worker, "order"), ENOENT);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_ACKNOWLEDGED), 1);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_CANCELLED), 0);
    assert_int_equal(rows_in(f, "payload"), 0);
}

static void test_acknowledge__too_late_finds_nothing(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    advance(f, 60 * SECONDS);
    advance(f, 1 * SECONDS);
    int64_t other = second_worker(f);
    assert_ok(rename_entry(f, f->queue, "order", other, "order"));
    assert_fails(erase(f, f->worker, "order"), ENOENT);
    assert_ok(erase(f, other, "order"));
}

static void test_hand_over__keeps_the_lease_and_its_end(void **state) {
    struct fixture *f = *state;
    int64_t other = second_worker(f);
    put(f, f->queue, "order", "tea");
    assert_ok(claim_as(f, "order", "job"));
    int64_t end_ns = entry_of(f, f->worker, "job").atime_ns;
    advance(f, 10 * SECONDS);
    assert_ok(rename_entry(f, f->worker, "job", other, "task"));
    assert_int_equal(entry_of(f, other, "task").atime_ns, end_ns);
    put(f, f->queue, "next", "salt");
    assert_ok(claim(f, "next"));
    assert_fails(rename_entry(f, f->worker, "next", other, "task"), EEXIST);
    assert_ok(rename_entry(f, other, "task", other, "order"));
    assert_ok(rename_entry(f, other, "order", f->queue, "order"));
    assert_string_equal(messages_in(f, f->queue), "order");
}

static void test_hand_over__gives_the_file_to_the_owner_of_the_directory(void **state) {
    struct fixture *f = *state;
    int64_t other = second_worker(f);
    assert_ok(DO(f, spool_chown(f->spool, other, 4002, (gid_t)-1)));
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    uid_t claimer = entry_of(f, f->worker, "order").uid;
    assert_int_not_equal(claimer, 4002);
    assert_ok(rename_entry(f, f->worker, "order", f->worker, "job"));
    assert_int_equal(entry_of(f, f->worker, "job").uid, claimer);
    assert_ok(rename_entry(f, f->worker, "job", other, "task"));
    assert_int_equal(entry_of(f, other, "task").uid, 4002);
    assert_ok(rename_entry(f, other, "task", f->queue, "task"));
    assert_int_not_equal(entry_of(f, f->queue, "order").uid, 4002);
}

/* --- clocks --- */

static void test_clock__steps_of_the_wall_clock_change_no_lease_and_no_backoff(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "a", "1");
    put(f, f->queue, "b", "2");
    fail_once(f, "b");
    assert_ok(claim(f, "a"));
    step_wall_clock(f, 30 * DAYS);
    assert_string_equal(messages_in(f, f->worker), "a");
    assert_fails(claim(f, "b"), EAGAIN);
    step_wall_clock(f, -60 * DAYS);
    advance(f, 1 * SECONDS);
    assert_ok(claim(f, "b"));
    advance(f, 58 * SECONDS);
    assert_string_equal(messages_in(f, f->worker), "a b");
    advance(f, 1 * SECONDS);
    assert_string_equal(messages_in(f, f->worker), "b");
}

static void test_clock__a_due_time_is_wall_time(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(delay(f, find(f, f->queue, "order"), f->now.wall_ns + 5 * MINUTES));
    assert_true(f->promised);
    step_wall_clock(f, 5 * MINUTES);
    assert_ok(claim(f, "order"));
}

static void test_clock__of_the_same_boot_goes_on_after_a_restart(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    reopen_after_kill(f);
    advance(f, 59 * SECONDS);
    assert_string_equal(messages_in(f, f->worker), "order");
    advance(f, 1 * SECONDS);
    assert_string_equal(messages_in(f, f->worker), "");
}

static void test_clock__of_another_boot_gives_leases_at_most_lease(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "long", "1");
    put(f, f->queue, "short", "2");
    assert_ok(claim(f, "long"));
    assert_ok(claim(f, "short"));
    assert_ok(touch(f, find(f, f->worker, "long"), SPOOL_AT, f->now.wall_ns + 10 * HOURS));
    f->options.boot_id = "second boot";
    f->now.boot_ns = 7 * SECONDS;
    f->now.wall_ns += 30 * SECONDS;
    reopen_after_kill(f);
    advance(f, 29 * SECONDS);
    assert_string_equal(messages_in(f, f->worker), "long short");
    advance(f, 1 * SECONDS);
    assert_string_equal(messages_in(f, f->worker), "long");
    advance(f, 30 * SECONDS);
    assert_string_equal(messages_in(f, f->worker), "");
}

static void test_clock__of_another_boot_gives_backoffs_at_most_retry_max(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    set(f, f->queue, SPOOL_RETRY_DELAY, "4m");
    fail_once(f, "order");
    set(f, f->queue, SPOOL_RETRY_MAX, "1m");
    f->options.boot_id = "second boot";
    f->now.boot_ns = 7 * SECONDS;
    f->now.wall_ns -= 300 * DAYS; /* and the clock of this boot is wrong */
    reopen_after_kill(f);
    advance(f, 59 * SECONDS);
    assert_fails(claim(f, "order"), EAGAIN);
    advance(f, 1 * SECONDS);
    assert_ok(claim(f, "order"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        spool_test(test_claim__gives_the_file_to_the_claimer),
        spool_test(test_claim__second_is_refused),
        spool_test(test_claim__errors_are_looked_for_in_their_order),
        spool_test(test_claim__under_the_name_of_a_workers_directory_is_refused),
        spool_test(test_claim__directly_in_claimed_works_too),
        spool_test(test_renew__a_touch_of_now_gives_lease_from_now),
        spool_test(test_renew__an_explicit_end_is_taken_up_to_max_lease),
        spool_test(test_renew__a_touch_of_mtime_alone_does_not),
        spool_test(test_renew__a_touch_of_the_workers_directory_renews_all),
        spool_test(test_renew__a_queue_can_be_touched_and_nothing_happens),
        spool_test(test_expiry__brings_the_message_back_under_its_own_name),
        spool_test(test_expiry__is_seen_by_whoever_looks),
        spool_test(test_expiry__under_a_name_that_is_taken_numbers_it),
        spool_test(test_failure__backoff_doubles_up_to_its_end),
        spool_test(test_failure__after_max_attempts_it_is_dead),
        spool_test(test_failure__of_no_end_goes_on),
        spool_test(test_dead__requeued_it_has_all_its_attempts_again),
        spool_test(test_release__gives_place_and_attempt_back),
        spool_test(test_release__under_the_leases_name_is_home_and_under_another_renames),
        spool_test(test_release__under_a_leases_name_that_looks_staged_is_home_too),
        spool_test(test_release__to_a_due_time_waits_for_it),
        spool_test(test_release__of_the_workers_directory_releases_all_and_removes_it),
        spool_test(test_acknowledge__counts_once_and_promises),
        spool_test(test_acknowledge__too_late_finds_nothing),
        spool_test(test_hand_over__keeps_the_lease_and_its_end),
        spool_test(test_hand_over__gives_the_file_to_the_owner_of_the_directory),
        spool_test(test_clock__steps_of_the_wall_clock_change_no_lease_and_no_backoff),
        spool_test(test_clock__a_due_time_is_wall_time),
        spool_test(test_clock__of_the_same_boot_goes_on_after_a_restart),
        spool_test(test_clock__of_another_boot_gives_leases_at_most_lease),
        spool_test(test_clock__of_another_boot_gives_backoffs_at_most_retry_max),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
