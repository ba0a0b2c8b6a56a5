/* test_reader.c - reading: what a reader keeps, what it sees of a file being written, and what is damaged. */
#include "spool_fixture.h"

#define LARGE (300 * 1024)

static char large[LARGE + 1], got[LARGE + 1];

static void fill_large(void) {
    for (int i = 0; i < LARGE; i++)
        large[i] = (char)('a' + i % 26);
}

/* --- what a reader keeps --- */

static void test_reader__reads_on_after_the_acknowledgement(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    struct spool_reader *first = open_to_read(f, f->worker, "order");
    struct spool_reader *second = open_to_read(f, f->worker, "order");
    assert_ok(erase(f, f->worker, "order"));
    put(f, f->queue, "other", "salt");
    assert_string_equal(content_of(f, f->queue, "other"), "salt"); /* takes its place in the cache */
    assert_string_equal(read_text(f, first), "tea");
    close_reader(f, first);
    assert_int_equal(rows_in(f, "payload"), 2);
    assert_string_equal(read_text(f, second), "tea");
    close_reader(f, second);
    assert_int_equal(rows_in(f, "payload"), 1);
    assert_int_equal(rows_in(f, "doomed"), 0);
}

static void test_reader__of_a_large_file_keeps_it_until_it_closes(void **state) {
    struct fixture *f = *state;
    fill_large();
    put(f, f->queue, "order", large);
    struct spool_reader *reader = open_to_read(f, f->queue, "order");
    assert_true(spool_reader_blocks(reader));
    assert_ok(erase(f, f->queue, "order"));
    assert_int_equal(payload_files(f), 1);
    assert_int_equal(read_bytes(f, reader, got, LARGE, 0), LARGE);
    assert_memory_equal(got, large, LARGE);
    close_reader(f, reader);
    assert_int_equal(payload_files(f), 0);
}

static void test_reader__keeps_what_a_replacement_has_replaced(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_ON_CONFLICT, "replace");
    put(f, f->queue, "order", "tea");
    struct spool_reader *reader = open_to_read(f, f->queue, "order");
    assert_ok(overwrite(f, f->queue, "order", "milk and more"));
    assert_string_equal(read_text(f, reader), "tea");
    assert_string_equal(content_of(f, f->queue, "order"), "milk and more");
    close_reader(f, reader);
    assert_int_equal(rows_in(f, "payload"), 1);
}

static void test_reader__of_a_checkpointed_lease_keeps_the_step_it_opened(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "job", "step 0");
    assert_ok(claim(f, "job"));
    struct spool_reader *reader = open_to_read(f, f->worker, "job");
    assert_ok(overwrite(f, f->worker, "job", "1"));
    assert_string_equal(read_text(f, reader), "step 0");
    assert_string_equal(content_of(f, f->worker, "job"), "1");
}

static void test_reader__reads_any_part(void **state) {
    struct fixture *f = *state;
    fill_large();
    put(f, f->queue, "small", "0123456789");
    put(f, f->queue, "large", large);
    struct spool_reader *small = open_to_read(f, f->queue, "small"), *big = open_to_read(f, f->queue, "large");
    assert_int_equal(read_bytes(f, small, got, 3, 4), 3);
    assert_memory_equal(got, "456", 3);
    assert_int_equal(read_bytes(f, small, got, 100, 8), 2);
    assert_int_equal(read_bytes(f, small, got, 100, 10), 0);
    assert_int_equal(read_bytes(f, small, got, 100, 1000), 0);
    assert_int_equal(read_bytes(f, big, got, 100, LARGE - 10), 10);
    assert_memory_equal(got, large + LARGE - 10, 10);
    assert_int_equal(read_bytes(f, big, got, 100, LARGE), 0);
}

static void test_reader__of_what_is_no_file_is_refused(void **state) {
    struct fixture *f = *state;
    struct spool_reader *reader;
    assert_fails(try_read(f, 4711, &reader), ENOENT);
    assert_fails(try_read(f, f->queue, &reader), ENOENT);
}

/* --- what is being written --- */

static void test_writing__is_read_as_it_grows(void **state) {
    struct fixture *f = *state;
    fill_large();
    struct spool_writer *writer = create(f, f->queue, "order");
    struct spool_reader *reader = open_to_read(f, f->queue, "order");
    assert_string_equal(read_text(f, reader), "");
    assert_ok(write_text(f, writer, "tea", 0));
    assert_string_equal(read_text(f, reader), "tea");
    assert_ok(write_text(f, writer, large, 0));
    assert_int_equal(read_bytes(f, reader, got, LARGE, 0), LARGE);
    assert_memory_equal(got, large, LARGE);
}

static void test_writing__cut_short_and_closed_can_still_be_read(void **state) {
    struct fixture *f = *state;
    fill_large();
    struct spool_writer *writer = create(f, f->queue, "order");
    assert_ok(write_bytes(f, writer, large, 1000, 0));
    assert_ok(flush(f, writer));
    struct spool_reader *reader = open_to_read(f, f->queue, "order");
    assert_ok(resize_file(f, writer, 10));
    assert_ok(close_file(f, writer));
    (void)read_bytes(f, reader, got, 1000, 500); /* whatever it gives: no memory of others */
    assert_int_equal(read_bytes(f, reader, got, 10, 0), 10);
    assert_memory_equal(got, large, 10);
}

static const char *read_back(struct fixture *f, struct spool_writer *writer) {
    ssize_t length = DO(f, spool_read_back(writer, got, LARGE - 1, 0));
    assert_true(length >= 0);
    got[length] = '\0';
    return (const char *)got;
}

static void test_writing__a_message_is_seen_as_it_was_until_the_last_close(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    struct spool_writer *editor = open_file(f, f->queue, "order", OPEN_APPEND);
    assert_ok(write_text(f, editor, "!", 0));
    assert_string_equal(content_of(f, f->queue, "order"), "tea");
    assert_int_equal(entry_of(f, f->queue, "order").size_bytes, 3);
    assert_string_equal(read_back(f, editor), "tea!");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_READY), 0);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_BLOCKED), 1);
    assert_ok(release_file(f, editor, true));
    assert_string_equal(content_of(f, f->queue, "order"), "tea");
    set(f, f->queue, SPOOL_ON_CONFLICT, "replace");
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_TRUNCATE);
    assert_ok(write_text(f, writer, "milk", 0));
    assert_string_equal(content_of(f, f->queue, "order"), "tea");
    assert_string_equal(read_back(f, writer), "milk");
    assert_ok(close_file(f, writer));
    assert_string_equal(content_of(f, f->queue, "order"), "milk");
}

/* --- damage --- */

/* `order` with "tea" is damaged by this statement: it is found by the first reader, and put aside. */
static void damage_order(struct fixture *f, const char *sql) {
    struct spool_reader *reader;
    put(f, f->queue, "order", "tea");
    put(f, f->queue, "other", "salt");
    f->damaged = true;
    reopen_after_sql(f, sql);
    assert_fails(try_read(f, find(f, f->queue, "order"), &reader), EIO);
    assert_string_equal(messages_in(f, f->queue), "other");
    assert_string_equal(messages_in(f, find(f, f->queue, "dead")), "order");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_BURIED), 1);
    assert_fails(claim(f, "order"), ENOENT);
    assert_string_equal(content_of(f, f->queue, "other"), "salt");
}

static void test_damage__of_a_payload_is_found_and_put_aside(void **state) {
    struct fixture *f = *state;
    struct spool_reader *reader;
    damage_order(f, "UPDATE payload SET bytes = CAST('teb' AS BLOB) WHERE bytes = CAST('tea' AS BLOB)");
    assert_fails(try_read(f, find(f, find(f, f->queue, "dead"), "order"), &reader), EIO); /* and still */
}

static void test_damage__of_a_payload_that_is_cut(void **state) {
    damage_order(*state, "UPDATE payload SET bytes = CAST('te' AS BLOB) WHERE bytes = CAST('tea' AS BLOB)");
}

static void test_damage__of_a_payload_that_is_missing(void **state) {
    damage_order(*state, "DELETE FROM payload WHERE bytes = CAST('tea' AS BLOB)");
}

static void test_damage__of_a_row_shows_in_its_seal(void **state) {
    damage_order(*state, "UPDATE message SET place = place + 1000 WHERE name = CAST('order' AS BLOB)");
}

static void test_damage__of_a_lease_takes_it_from_the_worker(void **state) {
    struct fixture *f = *state;
    struct spool_reader *reader;
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    f->damaged = true;
    reopen_after_sql(f, "UPDATE payload SET bytes = CAST('teb' AS BLOB)");
    assert_fails(try_read(f, find(f, f->worker, "order"), &reader), EIO);
    assert_string_equal(messages_in(f, f->worker), "");
    assert_string_equal(messages_in(f, find(f, f->queue, "dead")), "order");
}

static void test_damage__of_a_large_file_shows_at_its_end(void **state) {
    struct fixture *f = *state;
    fill_large();
    put(f, f->queue, "order", large);
    assert_int_equal(
        run_shell("cd '%s.payloads' && printf X | dd of=\"$(ls)\" bs=1 seek=1000 conv=notrunc status=none", f->path),
        0);
    f->damaged = true;
    struct spool_reader *reader = open_to_read(f, f->queue, "order");
    assert_int_equal(read_bytes(f, reader, got, LARGE / 2, 0), LARGE / 2);
    assert_int_equal(read_bytes(f, reader, got, LARGE, LARGE / 2), -EIO);
}

static void test_damage__of_a_large_file_that_is_gone(void **state) {
    struct fixture *f = *state;
    fill_large();
    put(f, f->queue, "order", large);
    assert_int_equal(run_shell("rm '%s.payloads'/*", f->path), 0);
    f->damaged = true;
    struct spool_reader *reader = open_to_read(f, f->queue, "order");
    assert_int_equal(read_bytes(f, reader, got, 10, 0), -EIO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        spool_test(test_reader__reads_on_after_the_acknowledgement),
        spool_test(test_reader__of_a_large_file_keeps_it_until_it_closes),
        spool_test(test_reader__keeps_what_a_replacement_has_replaced),
        spool_test(test_reader__of_a_checkpointed_lease_keeps_the_step_it_opened),
        spool_test(test_reader__reads_any_part),
        spool_test(test_reader__of_what_is_no_file_is_refused),
        spool_test(test_writing__is_read_as_it_grows),
        spool_test(test_writing__cut_short_and_closed_can_still_be_read),
        spool_test(test_writing__a_message_is_seen_as_it_was_until_the_last_close),
        spool_test(test_damage__of_a_payload_is_found_and_put_aside),
        spool_test(test_damage__of_a_payload_that_is_cut),
        spool_test(test_damage__of_a_payload_that_is_missing),
        spool_test(test_damage__of_a_row_shows_in_its_seal),
        spool_test(test_damage__of_a_lease_takes_it_from_the_worker),
        spool_test(test_damage__of_a_large_file_shows_at_its_end),
        spool_test(test_damage__of_a_large_file_that_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
