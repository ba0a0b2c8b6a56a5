/* test_writer.c - what is written, from the first byte to the last close: sharing, checkpoints, limits, large content. */
#include "spool_fixture.h"

#include "engine.h"

#define LARGE (300 * 1024)

static unsigned char large[LARGE], got[LARGE + 1];

static void fill_large(void) {
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (unsigned char)(i * 31 + i / 251);
}

static void assert_large(struct fixture *f, int64_t directory, const char *name, size_t length) {
    struct spool_reader *reader = open_to_read(f, directory, name);
    assert_int_equal(read_bytes(f, reader, got, sizeof got, 0), length);
    assert_memory_equal(got, large, length);
    close_reader(f, reader);
}

/* --- checkpoints --- */

static void test_checkpoint__replaces_the_payload_at_last_close(void **state) {
    struct fixture *f = *state;
    int64_t number = put(f, f->queue, "job", "step 0");
    assert_ok(claim(f, "job"));
    struct spool_writer *writer = open_file(f, f->worker, "job", OPEN_TRUNCATE);
    assert_ok(write_text(f, writer, "step 1", 0));
    reopen_after_kill(f); /* not closed: nothing has changed */
    assert_string_equal(content_of(f, f->worker, "job"), "step 0");
    writer = open_file(f, f->worker, "job", OPEN_TRUNCATE);
    assert_ok(write_text(f, writer, "step 2", 0));
    assert_ok(close_file(f, writer));
    assert_int_equal(find(f, f->worker, "job"), number);
    assert_string_equal(content_of(f, f->worker, "job"), "step 2");
    assert_ok(release(f, "job"));
    assert_string_equal(content_of(f, f->queue, "job"), "step 2");
    assert_int_equal(rows_in(f, "payload"), 1);
}

static void test_checkpoint__appends_to_a_copy(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "job", "0");
    assert_ok(claim(f, "job"));
    struct spool_writer *writer = open_file(f, f->worker, "job", OPEN_APPEND);
    assert_ok(write_text(f, writer, "1", 0));
    assert_ok(close_file(f, writer));
    assert_string_equal(content_of(f, f->worker, "job"), "01");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_BYTES), 2);
}

static void test_checkpoint__of_a_killed_worker_changes_nothing(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "job", "step 0");
    assert_ok(claim(f, "job"));
    struct spool_writer *writer = open_file(f, f->worker, "job", OPEN_TRUNCATE);
    assert_ok(write_text(f, writer, "step", 0));
    assert_ok(flush(f, writer));
    assert_ok(release_file(f, writer, true));
    assert_string_equal(content_of(f, f->worker, "job"), "step 0");
    assert_int_equal(rows_in(f, "message"), 1);
}

static void test_checkpoint__after_the_lease_is_lost_is_stale(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "job", "step 0");
    for (int stored = 0; stored < 2; stored++) {
        assert_ok(claim(f, "job"));
        struct spool_writer *writer = open_file(f, f->worker, "job", OPEN_TRUNCATE);
        struct spool_writer *idle = open_file(f, f->worker, "job", 0);
        assert_ok(write_text(f, writer, "step 1", 0));
        if (stored)
            assert_ok(flush(f, writer));
        advance(f, 60 * SECONDS);
        assert_fails(write_text(f, writer, "!", 6), ESTALE);
        assert_fails(write_text(f, idle, "!", 0), ESTALE);
        assert_fails(close_file(f, writer), ESTALE);
        assert_ok(close_file(f, idle));
        assert_string_equal(content_of(f, f->queue, "job"), "step 0");
        advance(f, 1 * MINUTES);
    }
    assert_int_equal(rows_in(f, "message"), 1);
    assert_int_equal(rows_in(f, "payload"), 1);
}

static void test_checkpoint__into_the_lease_of_another_is_stale(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "job", "step 0");
    assert_ok(claim(f, "job"));
    struct spool_writer *begun = open_file(f, f->worker, "job", OPEN_APPEND);
    struct spool_writer *idle = open_file(f, f->worker, "job", OPEN_APPEND);
    assert_ok(write_text(f, begun, "!", 0));
    assert_ok(flush(f, begun));
    assert_ok(release(f, "job"));
    int64_t other = make_directory(f, find(f, f->queue, "claimed"), "v");
    assert_ok(rename_entry(f, f->queue, "job", other, "job")); /* with as many attempts as before */
    assert_fails(write_text(f, begun, "!", 0), ESTALE);
    assert_fails(write_text(f, idle, "!", 0), ESTALE);
    (void)close_file(f, begun);
    (void)close_file(f, idle);
    assert_string_equal(content_of(f, other, "job"), "step 0");
}

static void test_checkpoint__goes_with_a_lease_that_is_handed_over(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "job", "step 0");
    assert_ok(claim(f, "job"));
    struct spool_writer *writer = open_file(f, f->worker, "job", OPEN_TRUNCATE);
    assert_ok(rename_entry(f, f->worker, "job", find(f, f->queue, "claimed"), "task"));
    assert_ok(write_text(f, writer, "step 1", 0));
    assert_ok(close_file(f, writer));
    assert_string_equal(content_of(f, find(f, f->queue, "claimed"), "task"), "step 1");
}

/* --- limits --- */

static void test_limits__max_size_is_looked_at_with_every_byte(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_MAX_SIZE, "10");
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_text(f, writer, "0123456789", 0));
    assert_fails(write_text(f, writer, "a", 10), EFBIG);
    (void)close_file(f, writer);
    writer = create(f, f->queue, "sparse");
    assert_fails(write_text(f, writer, "a", 10), EFBIG);
    (void)close_file(f, writer);
    writer = create(f, f->queue, "sized");
    assert_fails(resize_file(f, writer, 11), EFBIG);
    (void)close_file(f, writer);
    put(f, f->queue, ".staged", "0123456789");
    writer = open_file(f, f->queue, ".staged", 0);
    assert_fails(resize_file(f, writer, 11), EFBIG); /* as the first thing that it does */
    (void)close_file(f, writer);
    assert_string_equal(messages_in(f, f->queue), ".failed.order .failed.sparse .failed.sized .staged");
}

static void test_limits__the_disks_reserve_refuses_writing_but_no_acknowledgement(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    put(f, f->queue, ".staged", "salt");
    struct spool_writer *writer = create(f, f->queue, "half");
    assert_ok(write_text(f, writer, "ha", 0));
    f->spool->reserve_bytes = INT64_MAX;
    advance(f, 1 * SECONDS);
    assert_fails(try_create(f, f->queue, "new", 0644, 0, NULL), ENOSPC);
    assert_fails(try_create(f, f->queue, ".new", 0644, 0, NULL), ENOSPC);
    assert_fails(try_open(f, find(f, f->queue, "order"), OPEN_TRUNCATE, NULL), ENOSPC);
    assert_fails(write_text(f, writer, "lf", 2), ENOSPC);
    (void)close_file(f, writer);
    assert_string_equal(messages_in(f, f->queue), "order .staged .failed.half");
    assert_ok(rename_entry(f, f->queue, ".staged", f->queue, "staged"));
    assert_ok(claim(f, "order"));
    assert_ok(erase(f, f->worker, "order"));
}

static void test_limits__a_refused_overwrite_changes_no_name(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    set(f, f->queue, SPOOL_MAX_WAITING, "1");
    assert_fails(overwrite(f, f->queue, "order", "milk"), EDQUOT);
    struct spool_writer *writer = open_file(f, f->queue, "order", 0);
    assert_fails(write_text(f, writer, "milk", 0), EDQUOT);
    assert_ok(close_file(f, writer));
    assert_string_equal(messages_in(f, f->queue), "order");
    assert_string_equal(content_of(f, f->queue, "order"), "tea");
}

/* --- sizes --- */

static void test_resize__up_fills_with_zeros_and_down_cuts(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_text(f, writer, "tea and milk", 0));
    assert_ok(resize_file(f, writer, 3));
    assert_ok(resize_file(f, writer, 6));
    assert_ok(write_text(f, writer, "!", 7));
    assert_ok(close_file(f, writer));
    struct spool_reader *reader = open_to_read(f, f->queue, "order");
    assert_int_equal(read_bytes(f, reader, got, sizeof got, 0), 8);
    assert_memory_equal(got, "tea\0\0\0\0!", 8);
    assert_int_equal(read_bytes(f, reader, got, sizeof got, 7), 1);
    assert_int_equal(read_bytes(f, reader, got, sizeof got, 8), 0);
    close_reader(f, reader);
}

static void test_resize__to_nothing_and_back_keeps_one_payload(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_text(f, writer, "tea", 0));
    assert_ok(flush(f, writer));
    struct spool_reader *reader = open_to_read(f, f->queue, "order");
    assert_ok(resize_file(f, writer, 0));
    assert_ok(flush(f, writer));
    assert_ok(write_text(f, writer, "milk", 0));
    assert_ok(close_file(f, writer));
    close_reader(f, reader);
    assert_int_equal(rows_in(f, "payload"), 1);
    assert_string_equal(content_of(f, f->queue, "order"), "milk");
}

/* --- large content --- */

static void test_large__is_a_file_from_the_byte_beyond_the_bound(void **state) {
    struct fixture *f = *state;
    fill_large();
    put_bytes(f, f->queue, "just", large, SPOOL_INLINE_MAX);
    assert_int_equal(payload_files(f), 0);
    put_bytes(f, f->queue, "beyond", large, SPOOL_INLINE_MAX + 1);
    assert_int_equal(payload_files(f), 1);
    assert_large(f, f->queue, "just", SPOOL_INLINE_MAX);
    assert_large(f, f->queue, "beyond", SPOOL_INLINE_MAX + 1);
    assert_ok(erase(f, f->queue, "beyond"));
    assert_int_equal(payload_files(f), 0);
}

static void test_large__grows_out_of_memory_on_the_way(void **state) {
    struct fixture *f = *state;
    fill_large();
    struct spool_writer *writer = create(f, f->queue, "order");
    for (size_t at = 0; at < LARGE; at += 50 * 1024) {
        assert_int_equal(spool_writer_blocks(writer), at > SPOOL_INLINE_MAX);
        assert_ok(write_bytes(f, writer, large + at, 50 * 1024, (int64_t)at));
        if (at == 50 * 1024)
            assert_ok(flush(f, writer)); /* of which the row in the database goes again */
    }
    assert_int_equal(entry_of(f, f->queue, "order").size_bytes, LARGE);
    assert_ok(close_file(f, writer));
    assert_large(f, f->queue, "order", LARGE);
    assert_int_equal(rows_in(f, "payload"), 0);
    assert_int_equal(f->spool->content_memory_bytes, 0);
    reopen_after_kill(f);
    assert_large(f, f->queue, "order", LARGE);
}

static void test_large__written_out_of_order_is_summed_up_all_the_same(void **state) {
    struct fixture *f = *state;
    fill_large();
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_bytes(f, writer, large + LARGE / 2, LARGE / 2, LARGE / 2));
    assert_ok(write_bytes(f, writer, large, LARGE / 2, 0));
    assert_ok(close_file(f, writer));
    assert_large(f, f->queue, "order", LARGE);
}

static void test_large__resized_down_and_up(void **state) {
    struct fixture *f = *state;
    fill_large();
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_bytes(f, writer, large, LARGE, 0));
    assert_ok(resize_file(f, writer, 1000));
    assert_ok(resize_file(f, writer, LARGE));
    assert_ok(close_file(f, writer));
    memset(large + 1000, 0, LARGE - 1000);
    assert_large(f, f->queue, "order", LARGE);
    writer = open_file(f, f->queue, "order", 0);
    assert_ok(resize_file(f, writer, 0)); /* which is an overwrite */
    assert_ok(close_file(f, writer));
    assert_string_equal(messages_in(f, f->queue), "order~1 order");
    assert_large(f, f->queue, "order~1", LARGE);
}

static void test_large__edited_on_a_copy(void **state) {
    struct fixture *f = *state;
    fill_large();
    put_bytes(f, f->queue, "order", large, LARGE - 100);
    for (int killed = 1; killed >= 0; killed--) {
        struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_APPEND);
        assert_ok(write_bytes(f, writer, large + LARGE - 100, 100, 0));
        assert_int_equal(payload_files(f), 2);
        assert_ok(flush(f, writer));
        assert_ok(release_file(f, writer, killed));
        assert_int_equal(payload_files(f), 1);
        assert_large(f, f->queue, "order", killed ? LARGE - 100 : LARGE);
    }
}

static void test_large__staged_is_appended_to_in_place(void **state) {
    struct fixture *f = *state;
    fill_large();
    put_bytes(f, f->queue, ".order", large, LARGE - 100);
    struct spool_writer *writer = open_file(f, f->queue, ".order", OPEN_APPEND);
    assert_ok(write_bytes(f, writer, large + LARGE - 100, 100, 0));
    assert_int_equal(payload_files(f), 1);
    assert_ok(close_file(f, writer));
    assert_ok(rename_entry(f, f->queue, ".order", f->queue, "order"));
    assert_large(f, f->queue, "order", LARGE);
}

static void test_large__that_was_never_settled_is_not_published(void **state) {
    struct fixture *f = *state;
    fill_large();
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_bytes(f, writer, large, LARGE, 0));
    assert_ok(release_file(f, writer, false));
    assert_string_equal(messages_in(f, f->queue), ".failed.order");
}

static void test_large__changed_after_its_last_flush_is_kept_as_it_is(void **state) {
    struct fixture *f = *state;
    static const char *const names[][2] = {{"order", ".failed.order"}, {".staged", ".staged"}};
    fill_large();
    for (int i = 0; i < 2; i++) {
        struct spool_writer *writer = create(f, f->queue, names[i][0]);
        assert_ok(write_bytes(f, writer, large + LARGE / 2, LARGE / 2, 0));
        assert_ok(flush(f, writer));
        assert_ok(write_bytes(f, writer, large, LARGE, 0));
        assert_ok(release_file(f, writer, false));
        assert_string_equal(messages_in(f, f->queue), names[i][1]);
        assert_ok(rename_entry(f, f->queue, names[i][1], f->queue, "whole"));
        assert_large(f, f->queue, "whole", LARGE); /* and its checksum is right */
        assert_ok(erase(f, f->queue, "whole"));
    }
}

static void test_large__that_cannot_be_written_is_not_published(void **state) {
    struct fixture *f = *state;
    fill_large();
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_bytes(f, writer, large, LARGE / 2, 0));
    fail_from(f, DB_WRITE, DB_FILE_OTHER, 0, -ENOSPC);
    assert_fails(write_bytes(f, writer, large + LARGE / 2, LARGE / 2, LARGE / 2), ENOSPC);
    fail_no_more(f);
    assert_fails(close_file(f, writer), ENOSPC);
    assert_string_equal(messages_in(f, f->queue), ".failed.order");
}

static void test_large__unlinked_while_it_is_written_leaves_no_file(void **state) {
    struct fixture *f = *state;
    fill_large();
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_bytes(f, writer, large, LARGE / 2, 0));
    assert_ok(flush(f, writer));
    assert_ok(erase(f, f->queue, "order"));
    assert_ok(write_bytes(f, writer, large, LARGE / 2, LARGE / 2));
    assert_ok(close_file(f, writer));
    assert_int_equal(payload_files(f), 0);
}

static void test_memory__of_all_drafts_has_a_bound(void **state) {
    struct fixture *f = *state;
    static char bytes[100 * 1024];
    char name[24];
    f->spool->content_memory_bytes = 32 * 1024 * 1024 - 150 * 1024; /* what others hold */
    struct spool_writer *writers[2];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "order%d", i);
        writers[i] = create(f, f->queue, name);
        assert_ok(write_bytes(f, writers[i], bytes, sizeof bytes, 0));
        assert_int_equal(spool_writer_blocks(writers[i]), i == 1);
    }
    assert_ok(close_file(f, writers[0]));
    assert_ok(close_file(f, writers[1]));
    assert_int_equal(f->spool->content_memory_bytes, 32 * 1024 * 1024 - 150 * 1024);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        spool_test(test_checkpoint__replaces_the_payload_at_last_close),
        spool_test(test_checkpoint__appends_to_a_copy),
        spool_test(test_checkpoint__of_a_killed_worker_changes_nothing),
        spool_test(test_checkpoint__after_the_lease_is_lost_is_stale),
        spool_test(test_checkpoint__into_the_lease_of_another_is_stale),
        spool_test(test_checkpoint__goes_with_a_lease_that_is_handed_over),
        spool_test(test_limits__max_size_is_looked_at_with_every_byte),
        spool_test(test_limits__the_disks_reserve_refuses_writing_but_no_acknowledgement),
        spool_test(test_limits__a_refused_overwrite_changes_no_name),
        spool_test(test_resize__up_fills_with_zeros_and_down_cuts),
        spool_test(test_resize__to_nothing_and_back_keeps_one_payload),
        spool_test(test_large__is_a_file_from_the_byte_beyond_the_bound),
        spool_test(test_large__grows_out_of_memory_on_the_way),
        spool_test(test_large__written_out_of_order_is_summed_up_all_the_same),
        spool_test(test_large__resized_down_and_up),
        spool_test(test_large__edited_on_a_copy),
        spool_test(test_large__staged_is_appended_to_in_place),
        spool_test(test_large__that_was_never_settled_is_not_published),
        spool_test(test_large__changed_after_its_last_flush_is_kept_as_it_is),
        spool_test(test_large__that_cannot_be_written_is_not_published),
        spool_test(test_large__unlinked_while_it_is_written_leaves_no_file),
        spool_test(test_memory__of_all_drafts_has_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
