/* test_batch.c - batches: what a full disk undoes, in the database and in memory, and what an I/O error ends. */
#include "spool_fixture.h"

#include "engine.h"

#define LARGE (200 * 1024)

static char large[LARGE + 1];

static void fill_disk(struct fixture *f) {
    fail_from(f, DB_WRITE, DB_FILE_LOG, 0, -ENOSPC);
}

static void assert_undone(struct fixture *f) {
    fill_disk(f);
    assert_fails(commit_batch(f), ENOSPC);
    fail_no_more(f);
    assert_false(spool_changed(f->spool));
    assert_false(spool_broken(f->spool));
}

/* What memory holds beside the database. */
struct memory {
    size_t drafts, pins, doomed;
    int64_t content_bytes;
};

static struct memory memory_of(struct fixture *f) {
    return (struct memory){f->spool->drafts.count, f->spool->payloads.pins.count, f->spool->payloads.doomed_count,
                           f->spool->content_memory_bytes};
}

static void assert_memory(struct fixture *f, struct memory before) {
    struct memory now = memory_of(f);
    assert_int_equal(now.drafts, before.drafts);
    assert_int_equal(now.pins, before.pins);
    assert_int_equal(now.doomed, before.doomed);
    assert_int_equal(now.content_bytes, before.content_bytes);
}

/* --- a batch that is undone --- */

static void test_undone__publishing_and_then_it_works(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "before", "1");
    struct memory before = memory_of(f);
    for (int undone = 1; undone >= 0; undone--) {
        if (undone)
            begin_batch(f);
        put(f, f->queue, "order", "tea");
        if (undone) {
            assert_undone(f);
            assert_string_equal(messages_in(f, f->queue), "before");
            assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_PUBLISHED), 1);
            assert_int_equal(stat_of(f, SPOOL_ROOT, SPOOL_STAT_BYTES), 1);
        }
        assert_memory(f, before);
    }
    assert_string_equal(messages_in(f, f->queue), "before order");
    assert_string_equal(content_of(f, f->queue, "order"), "tea");
}

static void test_undone__closing_leaves_the_writer_open(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_text(f, writer, "tea", 0));
    struct memory before = memory_of(f);
    begin_batch(f);
    assert_ok(close_file(f, writer));
    assert_int_equal(entry_of(f, f->queue, "order").state, SPOOL_WAITING);
    assert_undone(f);
    assert_int_equal(entry_of(f, f->queue, "order").state, SPOOL_OPEN);
    assert_memory(f, before);
    assert_true(spool_writer_dirty(writer)); /* nothing of it is stored */
    assert_ok(write_text(f, writer, "!", 3));
    assert_ok(close_file(f, writer));
    assert_string_equal(content_of(f, f->queue, "order"), "tea!");
}

static void test_undone__a_store_after_which_nothing_was_written(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_APPEND);
    assert_ok(write_text(f, writer, "!", 0));
    assert_ok(flush(f, writer));
    begin_batch(f);
    assert_ok(write_text(f, writer, "?", 0));
    assert_ok(flush(f, writer));
    assert_undone(f);
    /* The writer was told that "?" had failed, and closes: what he had stored before is what counts. */
    assert_ok(release_file(f, writer, false));
    assert_string_equal(content_of(f, f->queue, "order"), "tea!");
}

static void test_undone__opening_and_beginning_each_kind_of_draft(void **state) {
    struct fixture *f = *state;
    static const char *const rules[] = {"keep", "replace"};
    put(f, f->queue, "order", "tea");
    put(f, f->queue, "job", "0");
    put(f, f->queue, ".staged", "1");
    put(f, f->queue, "held", "");
    assert_ok(claim(f, "job"));
    struct memory before = memory_of(f);
    for (int i = 0; i < 2; i++) {
        set(f, f->queue, SPOOL_ON_CONFLICT, rules[i]);
        begin_batch(f);
        for (int flags = 0; flags <= OPEN_APPEND; flags += 2) {
            assert_ok(write_text(f, open_file(f, f->queue, "order", flags), "milk", 0));
            assert_ok(write_text(f, open_file(f, f->worker, "job", flags), "1", 0));
            assert_ok(write_text(f, open_file(f, f->queue, ".staged", flags), "2", 0));
            assert_ok(write_text(f, open_file(f, f->queue, "held", flags), "3", 0));
        }
        assert_undone(f);
        assert_memory(f, before);
        assert_string_equal(messages_in(f, f->queue), "order .staged held");
        assert_string_equal(content_of(f, f->queue, "order"), "tea");
        assert_string_equal(content_of(f, f->worker, "job"), "0");
        assert_string_equal(content_of(f, f->queue, ".staged"), "1");
    }
    assert_ok(overwrite(f, f->queue, "order", "milk"));
    assert_string_equal(content_of(f, f->queue, "order"), "milk");
}

static void test_undone__large_content_leaves_the_bound_of_memory_right(void **state) {
    struct fixture *f = *state;
    memset(large, 'x', LARGE);
    struct memory before = memory_of(f);
    int64_t offset = 100;
    begin_batch(f);
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_text(f, writer, "small", 0));
    assert_ok(DO(f, spool_admit_write(writer, LARGE, &offset))); /* moves into a file with the next byte */
    assert_undone(f);
    assert_memory(f, before);
}

static void test_undone__a_large_file_that_was_let_go_stays(void **state) {
    struct fixture *f = *state;
    memset(large, 'x', LARGE);
    put(f, f->queue, "order", large);
    assert_int_equal(payload_files(f), 1);
    begin_batch(f);
    assert_ok(erase(f, f->queue, "order"));
    assert_undone(f);
    put(f, f->queue, "other", "1"); /* whose batch has the same ticket */
    assert_int_equal(payload_files(f), 1);
    assert_int_equal(strspn(content_of(f, f->queue, "order"), "x"), sizeof f->text[0] - 1);
    assert_ok(erase(f, f->queue, "order"));
    assert_int_equal(payload_files(f), 0);
}

static void test_undone__a_file_that_an_earlier_batch_let_go_is_removed(void **state) {
    struct fixture *f = *state;
    memset(large, 'x', LARGE);
    put(f, f->queue, "order", large);
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_APPEND);
    assert_ok(write_text(f, writer, "!", 0));
    assert_ok(release_file(f, writer, true)); /* of the copy, which no row knows: the batch writes nothing */
    begin_batch(f);
    put(f, f->queue, "other", "1");
    assert_undone(f);
    assert_int_equal(payload_files(f), 1);
}

static void test_undone__readers_keep_what_they_pin(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    struct spool_reader *reader = open_to_read(f, f->queue, "order");
    struct memory before = memory_of(f);
    begin_batch(f);
    open_to_read(f, f->queue, "order");
    assert_ok(erase(f, f->queue, "order"));
    close_reader(f, reader);
    assert_undone(f);
    assert_memory(f, before);
    assert_string_equal(read_text(f, reader), "tea");
    assert_ok(erase(f, f->queue, "order"));
    assert_string_equal(read_text(f, reader), "tea");
    assert_int_equal(rows_in(f, "doomed"), 1);
    close_reader(f, reader);
    assert_int_equal(rows_in(f, "doomed"), 0);
    assert_int_equal(rows_in(f, "payload"), 0);
}

static void test_undone__moves_settings_and_directories(void **state) {
    struct fixture *f = *state;
    int64_t counts[2][SPOOL_STATS];
    put(f, f->queue, "a", "1");
    put(f, f->queue, "b", "2");
    put(f, f->queue, ".c", "3");
    assert_ok(claim(f, "b"));
    assert_ok(DO(f, spool_stats(f->spool, f->queue, counts[0])));
    begin_batch(f);
    set(f, f->queue, SPOOL_LEASE, "5s");
    assert_ok(claim(f, "a"));
    assert_ok(erase(f, f->worker, "b"));
    assert_ok(rename_entry(f, f->queue, ".c", f->queue, "c"));
    assert_true(make_directory(f, SPOOL_ROOT, "another") > 0);
    assert_ok(rename_entry(f, SPOOL_ROOT, "q", SPOOL_ROOT, "renamed"));
    assert_ok(DO(f, spool_chmod(f->spool, f->queue, 0700)));
    assert_undone(f);
    assert_ok(DO(f, spool_stats(f->spool, f->queue, counts[1])));
    assert_memory_equal(counts[0], counts[1], sizeof counts[0]);
    assert_string_equal(names_in(f, SPOOL_ROOT), "q");
    assert_string_equal(messages_in(f, f->queue), "a .c");
    assert_string_equal(messages_in(f, f->worker), "b");
    assert_int_equal(entry_of(f, SPOOL_ROOT, "q").mode & 0777, 0755);
    assert_ok(claim(f, "a"));
    assert_int_equal(entry_of(f, f->worker, "a").atime_ns, f->now.wall_ns + 60 * SECONDS);
    assert_ok(erase(f, f->worker, "b"));
}

static void test_undone__what_happened_by_itself_happens_again(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    put(f, f->queue, "flag", "");
    assert_ok(claim(f, "order"));
    begin_batch(f);
    advance(f, 60 * SECONDS);
    assert_undone(f);
    assert_string_equal(messages_in(f, f->worker), "");
    assert_string_equal(messages_in(f, f->queue), "order flag");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_FAILED), 1);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_PUBLISHED), 2);
}

static void test_undone__by_hand_too(void **state) {
    struct fixture *f = *state;
    begin_batch(f);
    put(f, f->queue, "order", "tea");
    assert_true(spool_changed(f->spool));
    roll_back(f);
    assert_false(spool_changed(f->spool));
    assert_string_equal(messages_in(f, f->queue), "");
}

/* --- within one batch --- */

static void test_batch__sees_what_it_has_done(void **state) {
    struct fixture *f = *state;
    begin_batch(f);
    put(f, f->queue, ".order", "tea");
    assert_ok(rename_entry(f, f->queue, ".order", f->queue, "order"));
    assert_string_equal(content_of(f, f->queue, "order"), "tea");
    assert_ok(claim(f, "order"));
    assert_ok(erase(f, f->worker, "order"));
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_ACKNOWLEDGED), 1);
    assert_ok(commit_batch(f));
    assert_int_equal(rows_in(f, "message"), 0);
    assert_int_equal(rows_in(f, "payload"), 0);
}

static void test_batch__a_close_and_the_removal_after_it_leave_no_payload(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    struct spool_reader *reader = open_to_read(f, f->worker, "order");
    begin_batch(f);
    close_reader(f, reader);
    assert_ok(erase(f, f->worker, "order"));
    assert_ok(commit_batch(f));
    assert_int_equal(rows_in(f, "payload"), 0);
    assert_int_equal(rows_in(f, "doomed"), 0);
}

static void test_batch__closed_and_opened_again_at_once(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = create(f, f->queue, ".order");
    assert_ok(write_text(f, writer, "tea", 0));
    begin_batch(f);
    assert_ok(close_file(f, writer));
    writer = open_file(f, f->queue, ".order", OPEN_APPEND);
    assert_ok(write_text(f, writer, "!", 0));
    assert_ok(close_file(f, writer));
    assert_ok(commit_batch(f));
    assert_string_equal(content_of(f, f->queue, ".order"), "tea!");
    assert_int_equal(f->spool->drafts.count, 0);
}

static void test_batch__published_and_edited_at_once(void **state) {
    struct fixture *f = *state;
    begin_batch(f);
    put(f, f->queue, "order", "tea");
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_APPEND);
    assert_ok(write_text(f, writer, "!", 0));
    assert_ok(close_file(f, writer));
    assert_ok(commit_batch(f));
    assert_string_equal(content_of(f, f->queue, "order"), "tea!");
    assert_int_equal(f->spool->drafts.count, 0);
}

static void test_batch__a_replacement_that_is_published_outlives_its_message(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_ON_CONFLICT, "replace");
    put(f, f->queue, "order", "tea");
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_TRUNCATE);
    assert_ok(write_text(f, writer, "milk", 0));
    assert_ok(flush(f, writer));
    assert_ok(claim(f, "order"));
    begin_batch(f);
    assert_ok(release_file(f, writer, false));
    assert_ok(release(f, "order"));
    assert_string_equal(messages_in(f, f->queue), "order~1 order");
    assert_ok(erase(f, f->queue, "order~1"));
    assert_ok(commit_batch(f));
    assert_string_equal(messages_in(f, f->queue), "order");
    assert_string_equal(content_of(f, f->queue, "order"), "milk");
}

static void test_batch__of_looks_alone_changes_nothing(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    uint64_t ticket = f->ticket;
    begin_batch(f);
    assert_string_equal(content_of(f, f->queue, "order"), "tea");
    assert_string_equal(messages_in(f, f->queue), "order");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_READY), 1);
    assert_ok(commit_batch(f));
    assert_int_equal(f->ticket, ticket);
}

/* --- the disk fails --- */

static void test_broken__nothing_changes_any_more_and_everything_can_be_read(void **state) {
    struct fixture *f = *state;
    uint64_t ticket;
    put(f, f->queue, "order", "tea");
    struct spool_writer *writer = create(f, f->queue, "half");
    assert_ok(write_text(f, writer, "ha", 0));
    begin_batch(f);
    assert_ok(claim(f, "order"));
    fail_from(f, DB_SYNC, DB_FILE_LOG, 0, -EIO);
    assert_fails(commit_batch(f), EIO);
    fail_no_more(f);
    assert_true(spool_broken(f->spool));
    assert_fails(spool_tick(f->spool, f->now), EROFS);

    struct spool_entry entry;
    struct spool_reader *reader;
    char text[8] = "";
    bool elsewhere;
    assert_fails(spool_unlink(f->spool, f->worker, "order"), EROFS);
    assert_fails(spool_move(f->spool, f->worker, "order", f->queue, "order", false, f->caller, &elsewhere), EROFS);
    assert_fails(spool_mkdir(f->spool, SPOOL_ROOT, "new", 0755, f->caller, &entry), EROFS);
    assert_fails(spool_set_setting(f->spool, f->queue, SPOOL_PAUSED, "1", 1), EROFS);
    assert_fails(spool_store(writer, true), EROFS);
    assert_ok(spool_lookup(f->spool, f->worker, "order", &entry));
    assert_ok(spool_open_reader(f->spool, entry.number, &reader));
    assert_false(spool_reader_blocks(reader));
    assert_int_equal(spool_read(reader, text, sizeof text, 0), 3);
    assert_string_equal(text, "tea");
    spool_close_reader(reader);
    assert_ok(spool_commit(f->spool, &ticket));
    assert_fails(spool_sync(f->spool, f->ticket), EIO);
}

static void test_broken__by_a_payload_file_too(void **state) {
    struct fixture *f = *state;
    memset(large, 'x', LARGE);
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_text(f, writer, large, 0));
    fail_from(f, DB_SYNC, DB_FILE_OTHER, 0, -EIO);
    assert_fails(spool_settle(writer), EIO);
    fail_no_more(f);
    assert_true(spool_broken(f->spool));
}

static void test_broken__what_was_synced_is_there_after_a_restart(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    begin_batch(f);
    put(f, f->queue, "lost", "1");
    fail_from(f, DB_WRITE, DB_FILE_LOG, 0, -EIO);
    assert_fails(commit_batch(f), EIO);
    fail_no_more(f);
    reopen(f);
    assert_false(spool_broken(f->spool));
    assert_string_equal(messages_in(f, f->queue), "order");
}

/* --- numbers --- */

static void test_numbers__are_never_given_twice_whatever_happens(void **state) {
    struct fixture *f = *state;
    int64_t last = 0;
    for (int round = 0; round < 4; round++) {
        int64_t number = put(f, f->queue, ".order", "tea");
        assert_true(number > last);
        last = f->spool->next_number - 1; /* its payload's and its flush's, too */
        assert_ok(erase(f, f->queue, ".order"));
        if (round == 1) {
            begin_batch(f);
            put(f, f->queue, ".undone", "tea");
            last = f->spool->next_number - 1;
            assert_undone(f);
        }
        if (round % 2)
            reopen_after_kill(f);
        else
            reopen(f);
    }
}

static void test_numbers__of_a_block_that_was_not_synced_are_not_given(void **state) {
    struct fixture *f = *state;
    f->spool->next_number = f->spool->numbers_end - 3; /* the next block is asked for, and nobody flushes */
    begin_batch(f);
    assert_true(make_directory(f, f->queue, ".a") > 0);
    assert_true(f->spool->reserve_ticket > 0);
    assert_ok(spool_commit(f->spool, &f->ticket));
    assert_true(f->spool->next_number <= f->spool->numbers_end);
    for (int i = 0; i < 6; i++) {
        char name[] = {'.', (char)('0' + i), '\0'};
        assert_true(make_directory(f, f->queue, name) > 0);
        assert_true(f->spool->next_number <= f->spool->numbers_end);
    }
    assert_ok(commit_batch(f));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        spool_test(test_undone__publishing_and_then_it_works),
        spool_test(test_undone__closing_leaves_the_writer_open),
        spool_test(test_undone__a_store_after_which_nothing_was_written),
        spool_test(test_undone__opening_and_beginning_each_kind_of_draft),
        spool_test(test_undone__large_content_leaves_the_bound_of_memory_right),
        spool_test(test_undone__a_large_file_that_was_let_go_stays),
        spool_test(test_undone__a_file_that_an_earlier_batch_let_go_is_removed),
        spool_test(test_undone__readers_keep_what_they_pin),
        spool_test(test_undone__moves_settings_and_directories),
        spool_test(test_undone__what_happened_by_itself_happens_again),
        spool_test(test_undone__by_hand_too),
        spool_test(test_batch__sees_what_it_has_done),
        spool_test(test_batch__a_close_and_the_removal_after_it_leave_no_payload),
        spool_test(test_batch__closed_and_opened_again_at_once),
        spool_test(test_batch__published_and_edited_at_once),
        spool_test(test_batch__a_replacement_that_is_published_outlives_its_message),
        spool_test(test_batch__of_looks_alone_changes_nothing),
        spool_test(test_broken__nothing_changes_any_more_and_everything_can_be_read),
        spool_test(test_broken__by_a_payload_file_too),
        spool_test(test_broken__what_was_synced_is_there_after_a_restart),
        spool_test(test_numbers__are_never_given_twice_whatever_happens),
        spool_test(test_numbers__of_a_block_that_was_not_synced_are_not_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
