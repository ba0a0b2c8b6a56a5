/* test_publish.c - how a written file becomes a message. */
#include "spool_fixture.h"

static enum spool_state state_of(struct fixture *f, const char *name) {
    return entry_of(f, f->queue, name).state;
}

/* --- by last close --- */

static void test_close__publishes_what_was_written(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_text(f, writer, "1 pound ", 0));
    assert_ok(write_text(f, writer, "of tea", 8));
    assert_int_equal(state_of(f, "order"), SPOOL_OPEN);
    assert_int_equal(entry_of(f, f->queue, "order").size_bytes, 14);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_PUBLISHED), 0);
    assert_ok(close_file(f, writer));
    assert_int_equal(state_of(f, "order"), SPOOL_WAITING);
    assert_string_equal(content_of(f, f->queue, "order"), "1 pound of tea");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_PUBLISHED), 1);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_BYTES), 14);
}

static void test_close__flush_promises_and_release_need_not(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_text(f, writer, "tea", 0));
    assert_ok(flush(f, writer));
    assert_true(f->promised);
    assert_ok(release_file(f, writer, false));
    assert_false(f->promised);
}

static void test_close__only_the_last_publishes(void **state) {
    struct fixture *f = *state;
    struct spool_writer *first = create(f, f->queue, "order");
    struct spool_writer *second = open_file(f, f->queue, "order", OPEN_APPEND);
    assert_ok(write_text(f, first, "tea ", 0));
    assert_ok(close_file(f, first));
    assert_int_equal(state_of(f, "order"), SPOOL_OPEN);
    assert_fails(claim(f, "order"), ETXTBSY);
    assert_ok(write_text(f, second, "and milk", 0));
    assert_ok(close_file(f, second));
    assert_int_equal(state_of(f, "order"), SPOOL_WAITING);
    assert_string_equal(content_of(f, f->queue, "order"), "tea and milk");
}

static void test_close__the_flush_before_anything_is_written_stores_nothing(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(DO(f, spool_store(writer, false))); /* of the shell, which has it open in its child too */
    assert_false(f->promised);
    assert_ok(write_text(f, writer, "tea", 0));
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), "");
}

static void test_close__gives_places_in_the_order_of_closing(void **state) {
    struct fixture *f = *state;
    struct spool_writer *first = create(f, f->queue, "first"), *second = create(f, f->queue, "second");
    assert_ok(write_text(f, first, "1", 0));
    assert_ok(write_text(f, second, "2", 0));
    assert_ok(close_file(f, second));
    assert_ok(close_file(f, first));
    assert_string_equal(messages_in(f, f->queue), "second first");
}

static void test_close__keeps_an_incomplete_file_aside(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_text(f, writer, "tea", 0));
    set(f, f->queue, SPOOL_MAX_SIZE, "4");
    assert_fails(write_text(f, writer, " and milk", 3), EFBIG);
    assert_fails(close_file(f, writer), EFBIG);
    assert_string_equal(messages_in(f, f->queue), ".failed.order");
    assert_int_equal(state_of(f, ".failed.order"), SPOOL_STAGED);
}

static void test_close__keeps_what_a_killed_writer_left_aside(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_text(f, writer, "half a pou", 0));
    assert_ok(flush(f, writer));
    assert_ok(release_file(f, writer, true));
    assert_string_equal(messages_in(f, f->queue), ".killed.order");
    assert_string_equal(content_of(f, f->queue, ".killed.order"), "half a pou");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_PUBLISHED), 0);
}

static void test_close__of_two_killed_writers_numbers_the_second(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        struct spool_writer *writer = create(f, f->queue, "order.xml");
        assert_ok(write_text(f, writer, "<", 0));
        assert_ok(release_file(f, writer, true));
    }
    assert_string_equal(messages_in(f, f->queue), ".killed.order.xml .killed.order~1.xml");
}

static void test_close__of_an_unlinked_file_publishes_nothing(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_text(f, writer, "tea", 0));
    assert_ok(erase(f, f->queue, "order"));
    assert_ok(write_text(f, writer, "tea and milk", 0));
    assert_ok(close_file(f, writer));
    assert_string_equal(messages_in(f, f->queue), "");
    assert_int_equal(rows_in(f, "message"), 0);
    assert_int_equal(rows_in(f, "payload"), 0);
}

/* --- by name --- */

static void test_rename__publishes_a_staged_file_and_promises(void **state) {
    struct fixture *f = *state;
    int64_t number = put(f, f->queue, ".order", "tea");
    assert_int_equal(state_of(f, ".order"), SPOOL_STAGED);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_STAGED), 1);
    assert_ok(rename_entry(f, f->queue, ".order", f->queue, "order"));
    assert_true(f->promised);
    assert_int_equal(state_of(f, "order"), SPOOL_WAITING);
    assert_int_equal(find(f, f->queue, "order"), number);
    assert_string_equal(content_of(f, f->queue, "order"), "tea");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_STAGED), 0);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_READY), 1);
}

static void test_rename__gives_the_place(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, ".a", "1");
    put(f, f->queue, "b", "2");
    assert_ok(rename_entry(f, f->queue, ".a", f->queue, "a"));
    assert_string_equal(messages_in(f, f->queue), "b a");
}

static void test_rename__of_an_open_staged_file_publishes_at_its_last_close(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = create(f, f->queue, "order.part");
    assert_ok(write_text(f, writer, "tea", 0));
    assert_ok(rename_entry(f, f->queue, "order.part", f->queue, "order"));
    assert_int_equal(state_of(f, "order"), SPOOL_OPEN);
    assert_ok(write_text(f, writer, " and milk", 3));
    assert_ok(close_file(f, writer));
    assert_int_equal(state_of(f, "order"), SPOOL_WAITING);
    assert_string_equal(content_of(f, f->queue, "order"), "tea and milk");
}

static void test_staged__is_not_promised_and_lives_through_a_clean_restart(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = create(f, f->queue, ".order");
    assert_ok(write_text(f, writer, "tea", 0));
    assert_ok(flush(f, writer));
    assert_false(f->promised);
    assert_ok(release_file(f, writer, false));
    reopen(f);
    assert_string_equal(content_of(f, f->queue, ".order"), "tea");
}

static void test_staged__is_removed_after_its_time_and_counted(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_PARTIAL_TTL, "1h");
    put(f, f->queue, "order.tmp", "tea");
    advance(f, 59 * MINUTES);
    assert_string_equal(messages_in(f, f->queue), "order.tmp");
    advance(f, 2 * MINUTES);
    assert_string_equal(messages_in(f, f->queue), "");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_STAGED_REMOVED), 1);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_STAGED), 0);
    assert_int_equal(rows_in(f, "payload"), 0);
}

static void test_staged__is_written_again_in_place(void **state) {
    struct fixture *f = *state;
    int64_t number = put(f, f->queue, ".order", "tea");
    assert_string_equal(content_of(f, f->queue, ".order"), "tea"); /* and is in the reader's cache now */
    struct spool_writer *writer = open_file(f, f->queue, ".order", OPEN_APPEND);
    assert_ok(write_text(f, writer, " and milk", 0));
    assert_ok(close_file(f, writer));
    assert_int_equal(find(f, f->queue, ".order"), number);
    assert_string_equal(content_of(f, f->queue, ".order"), "tea and milk");
    assert_ok(rename_entry(f, f->queue, ".order", f->queue, "order"));
    assert_string_equal(content_of(f, f->queue, "order"), "tea and milk");
    assert_int_equal(rows_in(f, "payload"), 1);
}

/* --- a copy by link --- */

static void test_link__publishes_a_copy_of_its_own(void **state) {
    struct fixture *f = *state;
    struct spool_entry entry;
    int64_t number = put(f, f->queue, ".order", "tea");
    assert_ok(DO(f, spool_link(f->spool, number, f->queue, "order", f->caller, &entry)));
    assert_true(f->promised);
    assert_true(entry.number != number);
    assert_int_equal(entry.state, SPOOL_WAITING);
    assert_ok(erase(f, f->queue, ".order"));
    assert_string_equal(content_of(f, f->queue, "order"), "tea");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_PUBLISHED), 1);
}

static void test_link__copies_a_large_file(void **state) {
    struct fixture *f = *state;
    struct spool_entry entry;
    static char bytes[200 * 1024];
    memset(bytes, 't', sizeof bytes);
    int64_t number = put_bytes(f, f->queue, ".order", bytes, sizeof bytes);
    assert_ok(DO(f, spool_link(f->spool, number, f->queue, "order", f->caller, &entry)));
    assert_int_equal(payload_files(f), 2);
    assert_ok(erase(f, f->queue, ".order"));
    assert_int_equal(payload_files(f), 1);
    assert_int_equal(strspn(content_of(f, f->queue, "order"), "t"), sizeof f->text[0] - 1);
}

static void test_link__of_anything_else_is_refused(void **state) {
    struct fixture *f = *state;
    struct spool_entry entry;
    int64_t waiting = put(f, f->queue, "order", "tea"), staged = put(f, f->queue, ".order", "tea");
    assert_fails(DO(f, spool_link(f->spool, waiting, f->queue, "copy", f->caller, &entry)), EPERM);
    assert_fails(DO(f, spool_link(f->spool, waiting, f->queue, ".copy", f->caller, &entry)), EPERM);
    assert_fails(DO(f, spool_link(f->spool, staged, f->queue, ".copy", f->caller, &entry)), EPERM);
    assert_fails(DO(f, spool_link(f->spool, staged, f->worker, "copy", f->caller, &entry)), EPERM);
    assert_fails(DO(f, spool_link(f->spool, staged, find(f, f->queue, "dead"), "c", f->caller, &entry)), EPERM);
    assert_fails(DO(f, spool_link(f->spool, staged, f->queue, "order", f->caller, &entry)), EEXIST);
    assert_fails(DO(f, spool_link(f->spool, f->queue, f->queue, "copy", f->caller, &entry)), ENOENT);
    assert_string_equal(messages_in(f, f->queue), "order .order");
}

/* --- held back --- */

static void test_held__an_empty_file_waits_for_a_moment(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "flag", "");
    put(f, f->queue, "order", "tea");
    assert_int_equal(state_of(f, "flag"), SPOOL_HELD);
    assert_fails(claim(f, "flag"), ETXTBSY);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_PUBLISHED), 1);
    advance(f, 249 * MILLISECONDS);
    assert_int_equal(state_of(f, "flag"), SPOOL_HELD);
    advance(f, 1 * MILLISECONDS);
    assert_int_equal(state_of(f, "flag"), SPOOL_WAITING);
    assert_string_equal(messages_in(f, f->queue), "flag order"); /* its place is that of its close */
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_PUBLISHED), 2);
    assert_ok(claim(f, "flag"));
}

static void test_held__a_file_like_that_of_mktemp_waits_unless_its_mode_was_changed(void **state) {
    struct fixture *f = *state;
    const struct {
        const char *name;
        uint32_t mode, changed;
        int flags;
        enum spool_state then;
    } files[] = {
        {"probe", 0600, 0600, CREATE_EXCLUSIVE, SPOOL_HELD},
        {"wanted", 0600, 0644, CREATE_EXCLUSIVE, SPOOL_WAITING},
        {"private", 0600, 0600, 0, SPOOL_WAITING},
        {"public", 0644, 0644, CREATE_EXCLUSIVE, SPOOL_WAITING},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct spool_writer *writer;
        assert_ok(try_create(f, f->queue, files[i].name, files[i].mode, files[i].flags, &writer));
        assert_ok(write_text(f, writer, "tea", 0));
        assert_ok(DO(f, spool_chmod(f->spool, find(f, f->queue, files[i].name), files[i].changed)));
        assert_ok(close_file(f, writer));
        assert_int_equal(state_of(f, files[i].name), files[i].then);
    }
}

static void test_held__is_replaced_by_what_is_created_in_its_stead(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "");
    put(f, f->queue, ".order.new", "tea");
    assert_ok(rename_entry(f, f->queue, ".order.new", f->queue, "order"));
    assert_string_equal(messages_in(f, f->queue), "order");
    assert_string_equal(content_of(f, f->queue, "order"), "tea");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_CANCELLED), 0);
}

static void test_held__is_written_again_as_the_same_file(void **state) {
    struct fixture *f = *state;
    int64_t number = put(f, f->queue, "order", "");
    assert_ok(overwrite(f, f->queue, "order", "tea"));
    assert_int_equal(find(f, f->queue, "order"), number);
    assert_int_equal(state_of(f, "order"), SPOOL_WAITING);
    assert_string_equal(messages_in(f, f->queue), "order");
}

static void test_held__removed_it_never_was(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "4913", "");
    assert_ok(erase(f, f->queue, "4913"));
    advance(f, 1 * SECONDS);
    assert_string_equal(messages_in(f, f->queue), "");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_PUBLISHED), 0);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_CANCELLED), 0);
}

/* --- where nothing can be published --- */

static void test_create__elsewhere_is_refused(void **state) {
    struct fixture *f = *state;
    char name[300];
    assert_fails(try_create(f, SPOOL_ROOT, "order", 0644, 0, NULL), EPERM);
    assert_fails(try_create(f, f->worker, "order", 0644, 0, NULL), EPERM);
    assert_fails(try_create(f, find(f, f->queue, "claimed"), "order", 0644, 0, NULL), EPERM);
    assert_fails(try_create(f, find(f, f->queue, "dead"), "order", 0644, 0, NULL), EPERM);
    assert_fails(try_create(f, 4711, "order", 0644, 0, NULL), ENOENT);
    memset(name, 'n', 256);
    name[256] = '\0';
    assert_fails(try_create(f, f->queue, name, 0644, 0, NULL), ENAMETOOLONG);
    name[255] = '\0';
    put(f, f->queue, name, "tea");
    assert_string_equal(messages_in(f, f->queue), name);
}

static void test_create__beyond_max_waiting_is_refused_but_staged_files_are_not(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_MAX_WAITING, "1");
    put(f, f->queue, "first", "1");
    assert_fails(try_create(f, f->queue, "second", 0644, 0, NULL), EDQUOT);
    put(f, f->queue, ".second", "2");
    assert_fails(rename_entry(f, f->queue, ".second", f->queue, "second"), EDQUOT);
    assert_ok(claim(f, "first"));
    assert_ok(rename_entry(f, f->queue, ".second", f->queue, "second"));
    assert_ok(release(f, "first"));
    assert_string_equal(messages_in(f, f->queue), "first second");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        spool_test(test_close__publishes_what_was_written),
        spool_test(test_close__flush_promises_and_release_need_not),
        spool_test(test_close__only_the_last_publishes),
        spool_test(test_close__the_flush_before_anything_is_written_stores_nothing),
        spool_test(test_close__gives_places_in_the_order_of_closing),
        spool_test(test_close__keeps_an_incomplete_file_aside),
        spool_test(test_close__keeps_what_a_killed_writer_left_aside),
        spool_test(test_close__of_two_killed_writers_numbers_the_second),
        spool_test(test_close__of_an_unlinked_file_publishes_nothing),
        spool_test(test_rename__publishes_a_staged_file_and_promises),
        spool_test(test_rename__gives_the_place),
        spool_test(test_rename__of_an_open_staged_file_publishes_at_its_last_close),
        spool_test(test_staged__is_not_promised_and_lives_through_a_clean_restart),
        spool_test(test_staged__is_removed_after_its_time_and_counted),
        spool_test(test_staged__is_written_again_in_place),
        spool_test(test_link__publishes_a_copy_of_its_own),
        spool_test(test_link__copies_a_large_file),
        spool_test(test_link__of_anything_else_is_refused),
        spool_test(test_held__an_empty_file_waits_for_a_moment),
        spool_test(test_held__a_file_like_that_of_mktemp_waits_unless_its_mode_was_changed),
        spool_test(test_held__is_replaced_by_what_is_created_in_its_stead),
        spool_test(test_held__is_written_again_as_the_same_file),
        spool_test(test_held__removed_it_never_was),
        spool_test(test_create__elsewhere_is_refused),
        spool_test(test_create__beyond_max_waiting_is_refused_but_staged_files_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
