/* test_conflict.c - a name that is taken: what on_conflict and the way of writing make of it. */
#include "spool_fixture.h"

/* `order` with "tea" waits, `other` behind it. */
static int64_t put_two(struct fixture *f) {
    int64_t number = put(f, f->queue, "order", "tea");
    put(f, f->queue, "other", "salt");
    return number;
}

static void assert_content(struct fixture *f, const char *name, const char *content) {
    assert_string_equal(content_of(f, f->queue, name), content);
}

/* What stands after every way of writing that has come to nothing. */
static void assert_untouched(struct fixture *f) {
    assert_string_equal(messages_in(f, f->queue), "order other");
    assert_content(f, "order", "tea");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_READY), 2);
    assert_int_equal(rows_in(f, "message"), 2);
    assert_int_equal(rows_in(f, "payload"), 2);
}

/* --- create --- */

static void test_create__on_a_taken_name_is_refused_or_to_be_opened(void **state) {
    struct fixture *f = *state;
    put_two(f);
    assert_fails(try_create(f, f->queue, "order", 0644, CREATE_EXCLUSIVE, NULL), EEXIST);
    assert_fails(try_create(f, f->queue, "order", 0644, 0, NULL), ESTALE);
    assert_fails(try_create(f, f->queue, "claimed", 0644, CREATE_EXCLUSIVE, NULL), EEXIST);
    assert_untouched(f);
}

/* --- keep --- */

static void test_keep__truncating_open_numbers_the_older(void **state) {
    struct fixture *f = *state;
    int64_t number = put_two(f);
    assert_ok(overwrite(f, f->queue, "order", "milk"));
    assert_string_equal(messages_in(f, f->queue), "order~1 other order");
    assert_int_equal(find(f, f->queue, "order~1"), number);
    assert_content(f, "order~1", "tea");
    assert_content(f, "order", "milk");
    assert_ok(overwrite(f, f->queue, "order", "rice"));
    assert_string_equal(messages_in(f, f->queue), "order~1 other order~2 order");
}

static void test_keep__rename_onto_numbers_the_older(void **state) {
    struct fixture *f = *state;
    int64_t number = put_two(f);
    put(f, f->queue, ".new", "milk");
    assert_ok(rename_entry(f, f->queue, ".new", f->queue, "order"));
    assert_string_equal(messages_in(f, f->queue), "order~1 other order");
    assert_int_equal(find(f, f->queue, "order~1"), number);
    assert_content(f, "order", "milk");
}

static void test_keep__writing_at_0_numbers_the_older_and_keeps_the_file(void **state) {
    struct fixture *f = *state;
    int64_t number = put_two(f);
    struct spool_writer *writer = open_file(f, f->queue, "order", 0);
    assert_string_equal(messages_in(f, f->queue), "order other");
    assert_ok(write_text(f, writer, "mi", 0));
    assert_fails(claim(f, "order"), ETXTBSY);
    assert_ok(claim(f, "order~1"));
    assert_ok(write_text(f, writer, "lk", 2));
    assert_ok(close_file(f, writer));
    assert_string_equal(messages_in(f, f->queue), "other order");
    assert_int_equal(find(f, f->queue, "order"), number);
    assert_content(f, "order", "milk");
    assert_ok(release(f, "order~1"));
    assert_string_equal(messages_in(f, f->queue), "order~1 other order");
    assert_content(f, "order~1", "tea");
}

static void test_keep__what_writes_at_0_has_a_place_of_its_own(void **state) {
    struct fixture *f = *state;
    put_two(f);
    struct spool_writer *writer = open_file(f, f->queue, "order", 0);
    assert_ok(write_text(f, writer, "milk", 0));
    /* Of two entries at one place a page that ends between them would lose one. */
    assert_string_equal(messages_in(f, f->queue), "order~1 other order");
}

static void test_keep__several_of_one_name_are_numbered_in_turn(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 40; i++)
        assert_ok(overwrite(f, f->queue, "n.xml", "<>"));
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_READY), 40);
    assert_true(find(f, f->queue, "n~39.xml") > 0);
    assert_fails(find(f, f->queue, "n~40.xml"), ENOENT);
}

/* --- the placeholder of a truncating open --- */

static void test_placeholder__can_be_taken_back(void **state) {
    struct fixture *f = *state;
    struct spool_entry entry;
    struct spool_writer *writer;
    int64_t number = put_two(f);
    assert_fails(DO(f, spool_open_writer(f->spool, number, true, false, f->caller, &entry, &writer)), ESTALE);
    assert_string_equal(messages_in(f, f->queue), "order~1 other order");
    assert_int_equal(find(f, f->queue, "order"), entry.number);
    assert_ok(DO(f, spool_undo_overwrite(f->spool, number, entry.number)));
    assert_untouched(f);
    assert_int_equal(find(f, f->queue, "order"), number);
    assert_fails(DO(f, spool_undo_overwrite(f->spool, number, entry.number)), ENOENT);
}

static void test_placeholder__that_is_open_stays(void **state) {
    struct fixture *f = *state;
    struct spool_entry entry;
    struct spool_writer *writer;
    int64_t number = put_two(f);
    assert_fails(DO(f, spool_open_writer(f->spool, number, true, false, f->caller, &entry, &writer)), ESTALE);
    assert_ok(try_open(f, entry.number, OPEN_TRUNCATE, &writer));
    assert_fails(DO(f, spool_undo_overwrite(f->spool, number, entry.number)), ENOENT);
    assert_ok(write_text(f, writer, "milk", 0));
    assert_ok(close_file(f, writer));
    assert_fails(DO(f, spool_undo_overwrite(f->spool, number, entry.number)), ENOENT);
    assert_string_equal(messages_in(f, f->queue), "order~1 other order");
}

static void test_placeholder__is_gone_after_a_crash(void **state) {
    struct fixture *f = *state;
    struct spool_entry entry;
    struct spool_writer *writer;
    int64_t number = put_two(f);
    assert_fails(DO(f, spool_open_writer(f->spool, number, true, false, f->caller, &entry, &writer)), ESTALE);
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), "order~1 other");
}

/* --- editing --- */

static void test_edit__appending_changes_the_message_at_its_place(void **state) {
    struct fixture *f = *state;
    int64_t number = put_two(f);
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_APPEND);
    assert_ok(claim(f, "order")); /* nothing has been written yet */
    assert_ok(release(f, "order"));
    assert_ok(write_text(f, writer, " and", 0));
    assert_ok(write_text(f, writer, " milk", 0));
    assert_fails(claim(f, "order"), ETXTBSY);
    assert_ok(close_file(f, writer));
    assert_string_equal(messages_in(f, f->queue), "order other");
    assert_int_equal(find(f, f->queue, "order"), number);
    assert_content(f, "order", "tea and milk");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_PUBLISHED), 2);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_BYTES), 12 + 4);
    assert_ok(claim(f, "order"));
}

static void test_edit__writing_further_on_edits_too(void **state) {
    struct fixture *f = *state;
    put_two(f);
    struct spool_writer *writer = open_file(f, f->queue, "order", 0);
    assert_ok(write_text(f, writer, "A", 2));
    assert_ok(close_file(f, writer));
    assert_string_equal(messages_in(f, f->queue), "order other");
    assert_content(f, "order", "teA");
    assert_int_equal(rows_in(f, "payload"), 2);
}

static void test_edit__of_a_killed_writer_changes_nothing(void **state) {
    struct fixture *f = *state;
    put_two(f);
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_APPEND);
    assert_ok(write_text(f, writer, " and", 0));
    assert_ok(flush(f, writer));
    assert_ok(release_file(f, writer, true));
    assert_untouched(f);
}

static void test_edit__opening_without_writing_changes_nothing(void **state) {
    struct fixture *f = *state;
    put_two(f);
    assert_ok(close_file(f, open_file(f, f->queue, "order", 0)));
    assert_ok(close_file(f, open_file(f, f->queue, "order", OPEN_APPEND)));
    assert_untouched(f);
}

static void test_edit__of_a_message_that_was_removed_is_stale(void **state) {
    struct fixture *f = *state;
    put_two(f);
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_APPEND);
    assert_ok(write_text(f, writer, " and", 0));
    assert_ok(flush(f, writer));
    assert_ok(erase(f, f->queue, "order"));
    assert_fails(write_text(f, writer, " milk", 0), ESTALE);
    assert_fails(close_file(f, writer), ESTALE);
    assert_string_equal(messages_in(f, f->queue), "other");
    assert_int_equal(rows_in(f, "message"), 1);
    assert_int_equal(rows_in(f, "payload"), 1);
}

static void test_edit__through_a_descriptor_from_before_the_claim_is_stale(void **state) {
    struct fixture *f = *state;
    put_two(f);
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_APPEND);
    assert_ok(claim(f, "order"));
    assert_fails(write_text(f, writer, " and", 0), ESTALE);
    assert_ok(close_file(f, writer));
    assert_string_equal(content_of(f, f->worker, "order"), "tea");
}

static void test_edit__two_editors_share_one_copy(void **state) {
    struct fixture *f = *state;
    put_two(f);
    struct spool_writer *first = open_file(f, f->queue, "order", OPEN_APPEND);
    struct spool_writer *second = open_file(f, f->queue, "order", OPEN_APPEND);
    assert_ok(write_text(f, first, ",1", 0));
    assert_ok(write_text(f, second, ",2", 0));
    assert_ok(close_file(f, first));
    assert_fails(claim(f, "order"), ETXTBSY);
    assert_ok(close_file(f, second));
    assert_content(f, "order", "tea,1,2");
}

/* --- replace --- */

static void test_replace__truncating_open_replaces_at_last_close(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_ON_CONFLICT, "replace");
    int64_t number = put_two(f);
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_TRUNCATE);
    assert_ok(write_text(f, writer, "milk", 0));
    assert_ok(flush(f, writer));
    assert_content(f, "order", "tea");
    assert_ok(release_file(f, writer, false));
    assert_string_equal(messages_in(f, f->queue), "order other");
    assert_int_equal(find(f, f->queue, "order"), number);
    assert_content(f, "order", "milk");
    assert_int_equal(rows_in(f, "message"), 2);
    assert_int_equal(rows_in(f, "payload"), 2);
}

static void test_replace__writing_at_0_replaces_and_further_on_edits(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_ON_CONFLICT, "replace");
    put_two(f);
    struct spool_writer *writer = open_file(f, f->queue, "order", 0);
    assert_ok(write_text(f, writer, "mi", 0));
    assert_ok(close_file(f, writer));
    assert_content(f, "order", "mi");
    writer = open_file(f, f->queue, "order", OPEN_APPEND);
    assert_ok(write_text(f, writer, "lk", 0));
    assert_ok(close_file(f, writer));
    assert_string_equal(messages_in(f, f->queue), "order other");
    assert_content(f, "order", "milk");
}

static void test_replace__rename_onto_takes_the_place(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_ON_CONFLICT, "replace");
    put_two(f);
    put(f, f->queue, ".new", "milk");
    assert_ok(rename_entry(f, f->queue, ".new", f->queue, "order"));
    assert_string_equal(messages_in(f, f->queue), "order other");
    assert_content(f, "order", "milk");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_READY), 2);
    assert_int_equal(rows_in(f, "payload"), 2);
}

static void test_replace__by_a_killed_writer_leaves_the_old(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_ON_CONFLICT, "replace");
    put_two(f);
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_TRUNCATE);
    assert_ok(write_text(f, writer, "mi", 0));
    assert_ok(flush(f, writer));
    assert_ok(release_file(f, writer, true));
    assert_untouched(f);
}

static void test_replace__of_what_was_claimed_meanwhile_is_a_message_of_its_own(void **state) {
    struct fixture *f = *state;
    for (int stored = 0; stored < 2; stored++) {
        set(f, f->queue, SPOOL_ON_CONFLICT, "replace");
        put_two(f);
        struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_TRUNCATE);
        assert_ok(write_text(f, writer, "milk", 0));
        if (stored)
            assert_ok(flush(f, writer));
        assert_ok(claim(f, "order"));
        assert_ok(write_text(f, writer, "MILK", 0));
        assert_ok(close_file(f, writer));
        assert_string_equal(messages_in(f, f->queue), "other order");
        assert_content(f, "order", "MILK");
        assert_string_equal(content_of(f, f->worker, "order"), "tea");
        assert_int_equal(rows_in(f, "payload"), 3);
        assert_ok(release(f, "order"));
        assert_string_equal(messages_in(f, f->queue), "order~1 other order");
        for (int i = 0; i < 3; i++)
            assert_ok(erase(f, f->queue, ((const char *[]){"order", "order~1", "other"})[i]));
        assert_int_equal(rows_in(f, "message"), 0);
    }
}

static void test_replace__of_what_was_acknowledged_meanwhile_is_published(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_ON_CONFLICT, "replace");
    put_two(f);
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_TRUNCATE);
    assert_ok(write_text(f, writer, "milk", 0));
    assert_ok(claim(f, "order"));
    assert_ok(erase(f, f->worker, "order"));
    assert_ok(close_file(f, writer));
    assert_string_equal(messages_in(f, f->queue), "other order");
    assert_content(f, "order", "milk");
}

static void test_replace__in_a_queue_that_is_gone_leaves_nothing(void **state) {
    struct fixture *f = *state;
    int64_t queue = make_directory(f, SPOOL_ROOT, "brief");
    set(f, queue, SPOOL_ON_CONFLICT, "replace");
    put(f, queue, "order", "tea");
    struct spool_writer *writer = open_file(f, queue, "order", OPEN_TRUNCATE);
    assert_ok(write_text(f, writer, "milk", 0));
    assert_ok(flush(f, writer));
    assert_ok(rename_entry(f, queue, "order", find(f, queue, "claimed"), "order"));
    assert_ok(erase(f, find(f, queue, "claimed"), "order"));
    assert_ok(DO(f, spool_rmdir(f->spool, SPOOL_ROOT, "brief")));
    reopen_after_kill(f); /* which must find nothing that cannot be recovered */
    assert_int_equal(rows_in(f, "message"), 0);
    assert_int_equal(rows_in(f, "payload"), 0);
}

static void test_replace__whose_queue_went_before_the_close_comes_to_nothing(void **state) {
    struct fixture *f = *state;
    int64_t queue = make_directory(f, SPOOL_ROOT, "brief");
    set(f, queue, SPOOL_ON_CONFLICT, "replace");
    put(f, queue, "order", "tea");
    struct spool_writer *writer = open_file(f, queue, "order", OPEN_TRUNCATE);
    assert_ok(write_text(f, writer, "milk", 0));
    assert_ok(flush(f, writer));
    assert_ok(rename_entry(f, queue, "order", find(f, queue, "claimed"), "order"));
    assert_ok(erase(f, find(f, queue, "claimed"), "order"));
    assert_ok(DO(f, spool_rmdir(f->spool, SPOOL_ROOT, "brief")));
    (void)release_file(f, writer, false);
    assert_int_equal(rows_in(f, "message"), 0);
    assert_int_equal(rows_in(f, "payload"), 0);
}

static void test_replace__of_several_the_last_to_close_stands(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_ON_CONFLICT, "replace");
    put_two(f);
    struct spool_writer *first = open_file(f, f->queue, "order", OPEN_TRUNCATE);
    struct spool_writer *second = open_file(f, f->queue, "order", OPEN_TRUNCATE);
    assert_ok(write_text(f, first, "milk", 0));
    assert_ok(write_text(f, second, "rice", 0));
    assert_ok(close_file(f, second));
    assert_ok(close_file(f, first));
    assert_string_equal(messages_in(f, f->queue), "order other");
    assert_content(f, "order", "milk");
    assert_int_equal(rows_in(f, "payload"), 2);
}

/* --- reject --- */

static void test_reject__refuses_every_overwrite_and_lets_edit(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_ON_CONFLICT, "reject");
    put_two(f);
    assert_fails(overwrite(f, f->queue, "order", "milk"), EEXIST);
    put(f, f->queue, ".new", "milk");
    assert_fails(rename_entry(f, f->queue, ".new", f->queue, "order"), EEXIST);
    assert_ok(erase(f, f->queue, ".new"));
    struct spool_writer *writer = open_file(f, f->queue, "order", 0);
    assert_fails(write_text(f, writer, "milk", 0), EEXIST);
    assert_ok(close_file(f, writer));
    assert_untouched(f);
    writer = open_file(f, f->queue, "order", OPEN_APPEND);
    assert_ok(write_text(f, writer, " and", 0));
    assert_ok(close_file(f, writer));
    assert_content(f, "order", "tea and");
}

static void test_reject__claimed_and_dead_hold_their_names_too(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_ON_CONFLICT, "reject");
    put_two(f);
    assert_ok(claim_as(f, "order", "job"));
    assert_fails(try_create(f, f->queue, "order", 0644, 0, NULL), EEXIST);
    put(f, f->queue, ".new", "milk");
    assert_fails(rename_entry(f, f->queue, ".new", f->queue, "order"), EEXIST);
    assert_ok(rename_entry(f, f->worker, "job", find(f, f->queue, "dead"), "job"));
    assert_string_equal(messages_in(f, find(f, f->queue, "dead")), "order");
    assert_fails(try_create(f, f->queue, "order", 0644, 0, NULL), EEXIST);
    assert_fails(rename_entry(f, f->queue, ".new", f->queue, "order"), EEXIST);
    assert_ok(erase(f, find(f, f->queue, "dead"), "order"));
    assert_ok(rename_entry(f, f->queue, ".new", f->queue, "order"));
    assert_content(f, "order", "milk");
}

static void test_reject__what_comes_back_by_itself_is_never_refused(void **state) {
    struct fixture *f = *state;
    put_two(f);
    assert_ok(claim(f, "order"));
    put(f, f->queue, "order", "milk");
    set(f, f->queue, SPOOL_ON_CONFLICT, "reject");
    assert_ok(release(f, "order"));
    assert_string_equal(messages_in(f, f->queue), "order~1 other order");
}

/* --- two who write at once --- */

static void test_two_writers__a_truncating_open_of_an_open_file_is_a_taken_name(void **state) {
    struct fixture *f = *state;
    struct spool_writer *first = create(f, f->queue, "order");
    assert_ok(write_text(f, first, "tea", 0));
    struct spool_writer *second = open_file(f, f->queue, "order", OPEN_TRUNCATE);
    assert_ok(write_text(f, second, "milk", 0));
    assert_ok(write_text(f, first, "!", 3));
    assert_ok(close_file(f, second));
    assert_ok(close_file(f, first));
    assert_string_equal(messages_in(f, f->queue), "order order~1");
    assert_content(f, "order~1", "tea!");
    assert_content(f, "order", "milk");
}

static void test_two_writers__of_a_staged_file_share_it_as_usual(void **state) {
    struct fixture *f = *state;
    struct spool_writer *first = create(f, f->queue, ".order");
    assert_ok(write_text(f, first, "tea", 0));
    struct spool_writer *second = open_file(f, f->queue, ".order", OPEN_TRUNCATE);
    assert_int_equal(entry_of(f, f->queue, ".order").size_bytes, 0);
    assert_ok(write_text(f, second, "milk", 0));
    assert_ok(close_file(f, first));
    assert_ok(close_file(f, second));
    assert_string_equal(messages_in(f, f->queue), ".order");
    assert_content(f, ".order", "milk");
}

static void test_two_writers__one_that_cannot_join_does_not_keep_the_file_open(void **state) {
    struct fixture *f = *state;
    struct spool_writer *first = create(f, f->queue, ".order");
    assert_ok(write_text(f, first, "tea", 0));
    set(f, f->queue, SPOOL_MAX_SIZE, "4");
    assert_fails(write_text(f, first, " and milk", 3), EFBIG);
    assert_fails(try_open(f, find(f, f->queue, ".order"), OPEN_TRUNCATE, NULL), EFBIG);
    assert_fails(close_file(f, first), EFBIG);
    assert_int_equal(entry_of(f, f->queue, ".order").state, SPOOL_STAGED);
}

/* --- two who write a new file from its start --- */

static void test_two__who_had_not_written_yet_get_a_message_each(void **state) {
    struct fixture *f = *state;
    struct spool_writer *first = create(f, f->queue, "order");
    struct spool_writer *second = open_file(f, f->queue, "order", OPEN_TRUNCATE);
    assert_ok(write_text(f, second, "BB", 0));
    assert_ok(write_text(f, first, "AA", 0));
    assert_ok(write_text(f, second, "BB", 2));
    assert_ok(write_text(f, first, "AA", 2));
    assert_ok(close_file(f, second));
    assert_ok(close_file(f, first));
    assert_string_equal(messages_in(f, f->queue), "order order~1");
    assert_string_equal(content_of(f, f->queue, "order"), "BBBB");
    assert_string_equal(content_of(f, f->queue, "order~1"), "AAAA");
}

static void test_two__of_whom_one_writes_nothing_share_the_file(void **state) {
    struct fixture *f = *state;
    struct spool_writer *first = create(f, f->queue, "order");
    struct spool_writer *second = open_file(f, f->queue, "order", OPEN_TRUNCATE);
    assert_ok(write_text(f, second, "BB", 0));
    assert_ok(close_file(f, second));
    assert_string_equal(content_of(f, f->queue, "order"), "BB");
    assert_fails(claim(f, "order"), ETXTBSY);
    assert_ok(close_file(f, first));
    assert_string_equal(messages_in(f, f->queue), "order");
    assert_ok(claim(f, "order"));
}

static void test_two__the_second_survives_a_kill_once_it_is_flushed(void **state) {
    struct fixture *f = *state;
    struct spool_writer *first = create(f, f->queue, "order");
    struct spool_writer *second = open_file(f, f->queue, "order", OPEN_TRUNCATE);
    assert_ok(write_text(f, first, "AA", 0));
    assert_ok(write_text(f, second, "BB", 0));
    assert_ok(flush(f, first));
    assert_ok(flush(f, second));
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), "order order~1");
    assert_string_equal(content_of(f, f->queue, "order~1"), "BB");
}

static void test_two__the_second_is_refused_by_reject(void **state) {
    struct fixture *f = *state;
    struct spool_writer *second;
    set(f, f->queue, SPOOL_ON_CONFLICT, "reject");
    struct spool_writer *first = create(f, f->queue, "order");
    assert_ok(write_text(f, first, "AA", 0));
    assert_fails(try_open(f, find(f, f->queue, "order"), OPEN_TRUNCATE, &second), EEXIST);
    assert_ok(close_file(f, first));
    assert_string_equal(content_of(f, f->queue, "order"), "AA");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        spool_test(test_two__who_had_not_written_yet_get_a_message_each),
        spool_test(test_two__of_whom_one_writes_nothing_share_the_file),
        spool_test(test_two__the_second_survives_a_kill_once_it_is_flushed),
        spool_test(test_two__the_second_is_refused_by_reject),
        spool_test(test_create__on_a_taken_name_is_refused_or_to_be_opened),
        spool_test(test_keep__truncating_open_numbers_the_older),
        spool_test(test_keep__rename_onto_numbers_the_older),
        spool_test(test_keep__writing_at_0_numbers_the_older_and_keeps_the_file),
        spool_test(test_keep__what_writes_at_0_has_a_place_of_its_own),
        spool_test(test_keep__several_of_one_name_are_numbered_in_turn),
        spool_test(test_placeholder__can_be_taken_back),
        spool_test(test_placeholder__that_is_open_stays),
        spool_test(test_placeholder__is_gone_after_a_crash),
        spool_test(test_edit__appending_changes_the_message_at_its_place),
        spool_test(test_edit__writing_further_on_edits_too),
        spool_test(test_edit__of_a_killed_writer_changes_nothing),
        spool_test(test_edit__opening_without_writing_changes_nothing),
        spool_test(test_edit__of_a_message_that_was_removed_is_stale),
        spool_test(test_edit__through_a_descriptor_from_before_the_claim_is_stale),
        spool_test(test_edit__two_editors_share_one_copy),
        spool_test(test_replace__truncating_open_replaces_at_last_close),
        spool_test(test_replace__writing_at_0_replaces_and_further_on_edits),
        spool_test(test_replace__rename_onto_takes_the_place),
        spool_test(test_replace__by_a_killed_writer_leaves_the_old),
        spool_test(test_replace__of_what_was_claimed_meanwhile_is_a_message_of_its_own),
        spool_test(test_replace__of_what_was_acknowledged_meanwhile_is_published),
        spool_test(test_replace__in_a_queue_that_is_gone_leaves_nothing),
        spool_test(test_replace__whose_queue_went_before_the_close_comes_to_nothing),
        spool_test(test_replace__of_several_the_last_to_close_stands),
        spool_test(test_reject__refuses_every_overwrite_and_lets_edit),
        spool_test(test_reject__claimed_and_dead_hold_their_names_too),
        spool_test(test_reject__what_comes_back_by_itself_is_never_refused),
        spool_test(test_two_writers__a_truncating_open_of_an_open_file_is_a_taken_name),
        spool_test(test_two_writers__of_a_staged_file_share_it_as_usual),
        spool_test(test_two_writers__one_that_cannot_join_does_not_keep_the_file_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
