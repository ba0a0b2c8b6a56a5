/* test_recover.c - what the next start makes of what a kill left: the table at the head of recover.c, line by line. */
#include "spool_fixture.h"

#include <fcntl.h>
#include <unistd.h>

#define LARGE (200 * 1024)

static char large[LARGE + 1];

/* A new file with this content, flushed and open. */
static struct spool_writer *put_flushed(struct fixture *f, const char *name, const char *content) {
    struct spool_writer *writer = create(f, f->queue, name);
    assert_ok(write_text(f, writer, content, 0));
    assert_ok(flush(f, writer));
    return writer;
}

static void assert_waiting(struct fixture *f, const char *name, const char *content) {
    assert_int_equal(entry_of(f, f->queue, name).state, SPOOL_WAITING);
    assert_string_equal(content_of(f, f->queue, name), content);
}

static void assert_kept(struct fixture *f, const char *name, const char *content) {
    assert_int_equal(entry_of(f, f->queue, name).state, SPOOL_STAGED);
    assert_string_equal(content_of(f, f->queue, name), content);
}

/* --- new files --- */

static void test_open__never_flushed_is_gone(void **state) {
    struct fixture *f = *state;
    create(f, f->queue, "empty");
    assert_ok(write_text(f, create(f, f->queue, "order"), "tea", 0));
    assert_ok(write_text(f, create(f, f->queue, ".order"), "tea", 0));
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), "");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_STAGED), 0);
}

static void test_open__flushed_is_published(void **state) {
    struct fixture *f = *state;
    int64_t number;
    put_flushed(f, "order", "tea");
    number = find(f, f->queue, "order");
    reopen_after_kill(f);
    assert_waiting(f, "order", "tea");
    assert_int_equal(find(f, f->queue, "order"), number);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_PUBLISHED), 1);
}

static void test_open__are_published_in_the_order_of_their_last_flushes(void **state) {
    struct fixture *f = *state;
    struct spool_writer *first = put_flushed(f, "first", "1");
    put_flushed(f, "second", "2");
    put_flushed(f, "third", "3");
    assert_ok(write_text(f, first, "1", 0));
    assert_ok(flush(f, first));
    put(f, f->queue, "closed", "4");
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), "closed second third first");
}

static void test_open__written_to_after_its_flush_is_kept_aside(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = put_flushed(f, "order", "tea");
    assert_ok(write_text(f, writer, " and mi", 3));
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), ".recovered.order");
    assert_kept(f, ".recovered.order", "tea");
}

static void test_open__cut_after_its_flush_is_kept_aside(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = put_flushed(f, "order", "tea");
    assert_ok(resize_file(f, writer, 0));
    reopen_after_kill(f);
    assert_kept(f, ".recovered.order", "tea");
}

static void test_open__for_a_second_after_its_flush_is_kept_aside(void **state) {
    struct fixture *f = *state;
    put_flushed(f, "long", "1");
    advance(f, 500 * MILLISECONDS);
    put_flushed(f, "short", "2");
    assert_true(spool_next_tick_ns(f->spool) <= f->now.boot_ns + 500 * MILLISECONDS);
    advance(f, 500 * MILLISECONDS);
    reopen_after_kill(f);
    assert_kept(f, ".recovered.long", "1");
    assert_waiting(f, "short", "2");
}

static void test_open__flushed_again_after_a_second_is_published(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = put_flushed(f, "order", "tea");
    advance(f, 2 * SECONDS);
    assert_ok(write_text(f, writer, "!", 3));
    assert_ok(flush(f, writer));
    reopen_after_kill(f);
    assert_waiting(f, "order", "tea!");
}

static void test_open__whose_last_close_comes_after_a_second_is_published(void **state) {
    struct fixture *f = *state;
    struct spool_writer *writer = put_flushed(f, "order", "tea");
    advance(f, 2 * SECONDS);
    assert_ok(flush(f, writer)); /* nothing was written since, but close() is answered */
    assert_true(f->promised);
    reopen_after_kill(f);
    assert_waiting(f, "order", "tea");
}

static void test_open__under_a_staged_name_stays_there(void **state) {
    struct fixture *f = *state;
    put_flushed(f, ".sure", "1");
    struct spool_writer *writer = put_flushed(f, ".unsure", "2");
    assert_ok(write_text(f, writer, "2", 1));
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), ".sure .unsure");
    assert_kept(f, ".sure", "1");
    assert_kept(f, ".unsure", "2");
}

static void test_open__a_staged_file_that_is_written_again_has_its_last_content(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, ".order", "tea");
    struct spool_writer *writer = open_file(f, f->queue, ".order", OPEN_TRUNCATE);
    assert_ok(write_text(f, writer, "mi", 0));
    reopen_after_kill(f);
    assert_kept(f, ".order", "tea");
}

static void test_open__of_a_name_kept_aside_before_is_numbered(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        struct spool_writer *writer = put_flushed(f, "order.xml", "<");
        assert_ok(write_text(f, writer, ">", 1));
        reopen_after_kill(f);
    }
    assert_string_equal(messages_in(f, f->queue), ".recovered.order.xml .recovered.order~1.xml");
}

static void test_open__what_was_unlinked_does_not_come_back(void **state) {
    struct fixture *f = *state;
    put_flushed(f, "order", "tea");
    assert_ok(erase(f, f->queue, "order"));
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), "");
}

static void test_held__is_published_when_its_moment_is_over(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "flag", "");
    reopen_after_kill(f);
    assert_int_equal(entry_of(f, f->queue, "flag").state, SPOOL_HELD);
    advance(f, 250 * MILLISECONDS);
    assert_waiting(f, "flag", "");
}

/* --- drafts --- */

static void test_edit__flushed_takes_effect(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_APPEND);
    assert_ok(write_text(f, writer, "!", 0));
    assert_ok(flush(f, writer));
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), "order");
    assert_waiting(f, "order", "tea!");
}

static void test_edit__written_to_after_its_flush_is_kept_beside_the_message(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_APPEND);
    assert_ok(write_text(f, writer, "!", 0));
    assert_ok(flush(f, writer));
    assert_ok(write_text(f, writer, "!", 0));
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), "order .recovered.order");
    assert_waiting(f, "order", "tea");
    assert_kept(f, ".recovered.order", "tea!");
}

static void test_edit__never_flushed_changes_nothing(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(write_text(f, open_file(f, f->queue, "order", OPEN_APPEND), "!", 0));
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), "order");
    assert_waiting(f, "order", "tea");
}

static void test_replacement__flushed_takes_effect(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_ON_CONFLICT, "replace");
    put(f, f->queue, "order", "tea");
    put(f, f->queue, "other", "salt");
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_TRUNCATE);
    assert_ok(write_text(f, writer, "milk", 0));
    assert_ok(flush(f, writer));
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), "order other");
    assert_waiting(f, "order", "milk");
}

static void test_replacement__of_a_message_that_is_not_waiting_is_a_message(void **state) {
    struct fixture *f = *state;
    char name[SPOOL_NAME_MAX + 1];
    memset(name, 'n', SPOOL_NAME_MAX);
    name[SPOOL_NAME_MAX] = '\0';
    for (int acknowledged = 0; acknowledged < 2; acknowledged++) {
        set(f, f->queue, SPOOL_ON_CONFLICT, "replace");
        put(f, f->queue, name, "tea");
        struct spool_writer *writer = open_file(f, f->queue, name, OPEN_TRUNCATE);
        assert_ok(write_text(f, writer, "milk", 0));
        assert_ok(flush(f, writer));
        assert_ok(claim_as(f, name, "job"));
        if (acknowledged)
            assert_ok(erase(f, f->worker, "job"));
        reopen_after_kill(f);
        assert_waiting(f, name, "milk");
        assert_ok(erase(f, f->queue, name));
        assert_string_equal(messages_in(f, f->worker), acknowledged ? "" : "job");
        if (!acknowledged)
            assert_ok(erase(f, f->worker, "job"));
    }
}

static void test_replacement__written_to_after_its_flush_is_kept_beside_the_message(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_ON_CONFLICT, "replace");
    put(f, f->queue, "order", "tea");
    struct spool_writer *writer = open_file(f, f->queue, "order", OPEN_TRUNCATE);
    assert_ok(write_text(f, writer, "mi", 0));
    assert_ok(flush(f, writer));
    assert_ok(write_text(f, writer, "lk", 2));
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), "order .recovered.order");
    assert_waiting(f, "order", "tea");
    assert_kept(f, ".recovered.order", "mi");
}

static void test_checkpoint__flushed_takes_effect_and_unsure_goes(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "sure", "0");
    put(f, f->queue, "unsure", "0");
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "unsure" : "sure";
        assert_ok(claim(f, name));
        struct spool_writer *writer = open_file(f, f->worker, name, OPEN_TRUNCATE);
        assert_ok(write_text(f, writer, "1", 0));
        assert_ok(flush(f, writer));
        if (i)
            assert_ok(write_text(f, writer, "2", 0));
    }
    reopen_after_kill(f);
    assert_string_equal(content_of(f, f->worker, "sure"), "1");
    assert_string_equal(content_of(f, f->worker, "unsure"), "0");
    assert_string_equal(messages_in(f, f->queue), "");
    assert_int_equal(rows_in(f, "message"), 2);
    assert_int_equal(rows_in(f, "payload"), 2);
}

static void test_checkpoint__of_a_lease_that_was_lost_goes(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "job", "0");
    assert_ok(claim(f, "job"));
    struct spool_writer *writer = open_file(f, f->worker, "job", OPEN_TRUNCATE);
    assert_ok(write_text(f, writer, "1", 0));
    assert_ok(flush(f, writer));
    assert_ok(release(f, "job"));
    assert_ok(claim(f, "job"));
    reopen_after_kill(f);
    assert_string_equal(content_of(f, f->worker, "job"), "0");
}

/* --- payloads --- */

static void test_payloads__that_nobody_refers_to_are_removed(void **state) {
    struct fixture *f = *state;
    char path[160];
    memset(large, 'x', LARGE);
    assert_ok(write_text(f, create(f, f->queue, "lost"), large, 0));
    put(f, f->queue, "order", large);
    snprintf(path, sizeof path, "%s.payloads/777777777", f->path);
    int orphan = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(orphan >= 0);
    close(orphan);
    assert_int_equal(payload_files(f), 3);
    reopen_after_kill(f);
    assert_int_equal(payload_files(f), 1);
    assert_int_equal(strspn(content_of(f, f->queue, "order"), "x"), sizeof f->text[0] - 1);
}

static void test_payloads__changed_in_place_after_the_flush_are_measured_anew(void **state) {
    struct fixture *f = *state;
    memset(large, 'x', LARGE);
    struct spool_writer *writer = put_flushed(f, "order", large);
    assert_ok(write_text(f, writer, "yy", LARGE));
    assert_ok(write_text(f, writer, "zz", 0));
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), ".recovered.order");
    assert_int_equal(entry_of(f, f->queue, ".recovered.order").size_bytes, LARGE + 2);
    assert_ok(rename_entry(f, f->queue, ".recovered.order", f->queue, "order"));
    static char all[LARGE + 3];
    struct spool_reader *reader = open_to_read(f, f->queue, "order");
    assert_int_equal(read_bytes(f, reader, all, sizeof all, 0), LARGE + 2); /* its checksum is right */
    assert_memory_equal(all, "zzxx", 4);
    assert_memory_equal(all + LARGE - 2, "xxyy", 4);
    close_reader(f, reader);
}

/* The row that says so is in a batch that was lost, and the bytes were not. */
static void test_payloads__changed_in_place_are_noticed_without_a_word_in_the_row(void **state) {
    struct fixture *f = *state;
    memset(large, 'x', LARGE);
    struct spool_writer *writer = put_flushed(f, "order", large);
    put_flushed(f, "same", large);
    begin_batch(f);
    assert_ok(write_text(f, writer, "zz", 0));
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), ".recovered.order same");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_PUBLISHED), 1);
}

static void test_payloads__that_a_reader_had_open_are_removed_at_the_next_start(void **state) {
    struct fixture *f = *state;
    memset(large, 'x', LARGE);
    put(f, f->queue, "small", "tea");
    put(f, f->queue, "large", large);
    open_to_read(f, f->queue, "small");
    open_to_read(f, f->queue, "large");
    assert_ok(erase(f, f->queue, "small"));
    assert_ok(erase(f, f->queue, "large"));
    assert_int_equal(rows_in(f, "doomed"), 1);
    assert_int_equal(rows_in(f, "payload"), 1);
    assert_int_equal(payload_files(f), 1);
    reopen_after_kill(f);
    assert_int_equal(rows_in(f, "doomed"), 0);
    assert_int_equal(rows_in(f, "payload"), 0);
    assert_int_equal(payload_files(f), 0);
}

/* --- at all --- */

static void test_recovery__done_twice_is_the_same_as_once(void **state) {
    struct fixture *f = *state;
    put_flushed(f, "a", "1");
    assert_ok(write_text(f, put_flushed(f, "b", "2"), "2", 1));
    create(f, f->queue, "c");
    reopen_after_kill(f);
    char once[64];
    snprintf(once, sizeof once, "%s", messages_in(f, f->queue));
    assert_string_equal(once, ".recovered.b a");
    reopen_after_kill(f);
    assert_string_equal(messages_in(f, f->queue), once);
    reopen(f);
    assert_string_equal(messages_in(f, f->queue), once);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_PUBLISHED), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        spool_test(test_open__never_flushed_is_gone),
        spool_test(test_open__flushed_is_published),
        spool_test(test_open__are_published_in_the_order_of_their_last_flushes),
        spool_test(test_open__written_to_after_its_flush_is_kept_aside),
        spool_test(test_open__cut_after_its_flush_is_kept_aside),
        spool_test(test_open__for_a_second_after_its_flush_is_kept_aside),
        spool_test(test_open__flushed_again_after_a_second_is_published),
        spool_test(test_open__whose_last_close_comes_after_a_second_is_published),
        spool_test(test_open__under_a_staged_name_stays_there),
        spool_test(test_open__a_staged_file_that_is_written_again_has_its_last_content),
        spool_test(test_open__of_a_name_kept_aside_before_is_numbered),
        spool_test(test_open__what_was_unlinked_does_not_come_back),
        spool_test(test_held__is_published_when_its_moment_is_over),
        spool_test(test_edit__flushed_takes_effect),
        spool_test(test_edit__written_to_after_its_flush_is_kept_beside_the_message),
        spool_test(test_edit__never_flushed_changes_nothing),
        spool_test(test_replacement__flushed_takes_effect),
        spool_test(test_replacement__of_a_message_that_is_not_waiting_is_a_message),
        spool_test(test_replacement__written_to_after_its_flush_is_kept_beside_the_message),
        spool_test(test_checkpoint__flushed_takes_effect_and_unsure_goes),
        spool_test(test_checkpoint__of_a_lease_that_was_lost_goes),
        spool_test(test_payloads__that_nobody_refers_to_are_removed),
        spool_test(test_payloads__changed_in_place_after_the_flush_are_measured_anew),
        spool_test(test_payloads__changed_in_place_are_noticed_without_a_word_in_the_row),
        spool_test(test_payloads__that_a_reader_had_open_are_removed_at_the_next_start),
        spool_test(test_recovery__done_twice_is_the_same_as_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
