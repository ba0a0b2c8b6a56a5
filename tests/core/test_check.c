/*
 * test_check.c - spool_check() finds nothing in a sound spool, and in one with a single fault exactly that.
 *
 * Each fault is an SQL statement on a copy of a spool that holds a bit of everything. In it and in the sentence it is to be
 * found by, <small> stands for the number of what is called `small`, <small.payload> for that of its payload, <small.place> for its place, and
 * <last> for the last number that was given.
 */
#include "spool_fixture.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine.h"

enum { LARGE_BYTES = SPOOL_INLINE_MAX + 1, MOST_SENTENCES = 16 };

struct sentences {
    int count;
    char text[MOST_SENTENCES][1200];
};

static void note(void *context, const char *sentence) {
    struct sentences *sentences = context;
    if (sentences->count < MOST_SENTENCES)
        snprintf(sentences->text[sentences->count], sizeof sentences->text[0], "%s", sentence);
    sentences->count++;
}

static char bad[128]; /* the copy */

static int check(struct sentences *sentences) {
    char why[512] = "";
    *sentences = (struct sentences){0};
    int violations = spool_check(bad, note, sentences, why, sizeof why);
    if (violations < 0)
        fail_msg("%s", why);
    assert_int_equal(violations, sentences->count);
    return violations;
}

static void assert_clean(void) {
    struct sentences sentences;
    if (check(&sentences) != 0)
        fail_msg("found: %s", sentences.text[0]);
}

static void assert_only(const char *sentence) {
    struct sentences sentences;
    check(&sentences);
    if (sentences.count != 1 || strcmp(sentences.text[0], sentence) != 0)
        fail_msg("%d sentences: %s | %s | ..., instead of: %s", sentences.count, sentences.text[0], sentences.text[1],
                 sentence);
}

/* --- the spool ---------------------------------------------------------------------------------------------------- */

static int set_up_full(void **state) {
    static char large[LARGE_BYTES];
    set_up_spool(state);
    struct fixture *f = *state;
    memset(large, 'x', sizeof large);
    put(f, f->queue, "leased", "coffee");
    assert_ok(claim(f, "leased"));
    put(f, f->queue, "gone", "mate");
    assert_ok(rename_entry(f, f->queue, "gone", find(f, f->queue, "dead"), "gone"));
    put(f, f->queue, "small", "tea");
    put(f, f->queue, "twin", "tea");
    put_bytes(f, f->queue, "large", large, sizeof large);
    int64_t later = put(f, f->queue, "later", "soup");
    assert_ok(DO(f, spool_touch(f->spool, later, SPOOL_OMIT, 0, SPOOL_AT, f->now.wall_ns + HOURS)));
    put(f, f->queue, ".staged", "bread");
    assert_true(make_directory(f, f->queue, ".folder") > 0);
    struct spool_entry entry;
    assert_ok(DO(f, spool_symlink(f->spool, f->queue, ".link", "nowhere", f->caller, &entry)));
    set(f, f->queue, SPOOL_LEASE, "30s");
    assert_true(make_directory(f, SPOOL_ROOT, "other") > 0);
    spool_close(f->spool);
    f->spool = NULL;
    snprintf(bad, sizeof bad, "%s/bad.db", f->directory);
    return 0;
}

static void copy_anew(struct fixture *f) {
    assert_int_equal(
        run_shell("rm -rf '%s'* && cp '%s' '%s' && cp -r '%s.payloads' '%s.payloads'", bad, f->path, bad, f->path, bad),
        0);
}

static sqlite3 *open_bad(void) {
    sqlite3 *database;
    assert_int_equal(sqlite3_open(bad, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL), SQLITE_OK);
    return database;
}

static int64_t number_in(sqlite3 *database, const char *sql, const char *name, int length) {
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    sqlite3_bind_blob(statement, 1, name, length, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

static bool ends_with(const char *name, int length, const char *suffix) {
    int end = (int)strlen(suffix);
    return length > end && strncmp(name + length - end, suffix, (size_t)end) == 0;
}

static int64_t number_of(sqlite3 *database, const char *name, int length) {
    if (length == 4 && strncmp(name, "last", 4) == 0)
        return number_in(database, "SELECT numbers - 1 FROM spool WHERE ?1 NOT NULL", name, length);
    if (ends_with(name, length, ".payload"))
        return number_in(database, "SELECT payload FROM message WHERE name = ?1", name, length - 8);
    if (ends_with(name, length, ".place"))
        return number_in(database, "SELECT place FROM message WHERE name = ?1", name, length - 6);
    return number_in(database,
                     "SELECT number FROM message WHERE name = ?1 UNION ALL "
                     "SELECT number FROM directory WHERE name = ?1 ORDER BY number LIMIT 1",
                     name, length);
}

/* With numbers in the place of names. */
static void fill_in(sqlite3 *database, const char *pattern, char *text, size_t size) {
    size_t used = 0;
    for (const char *at = pattern; *at && used + 24 < size; at++) {
        const char *end = *at == '<' ? strchr(at, '>') : NULL;
        if (end && end > at + 1) {
            used += (size_t)snprintf(text + used, size - used, "%lld",
                                     (long long)number_of(database, at + 1, (int)(end - at - 1)));
            at = end;
        } else {
            text[used++] = *at;
        }
    }
    text[used] = '\0';
}

/* The seals of all messages as they should be, so that they do not give a fault away. */
static void seal_anew(sqlite3 *database) {
    sqlite3_stmt *select, *update;
    assert_int_equal(sqlite3_prepare_v2(database,
                                        "SELECT number, queue, place, size, hash, coalesce(home_name, name, x'') "
                                        "FROM message",
                                        -1, &select, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(database, "UPDATE message SET seal = ?2 WHERE number = ?1", -1, &update, NULL),
                     SQLITE_OK);
    while (sqlite3_step(select) == SQLITE_ROW) {
        struct message message = {.number = sqlite3_column_int64(select, 0),
                                  .queue = sqlite3_column_int64(select, 1),
                                  .place = sqlite3_column_int64(select, 2),
                                  .content.size = sqlite3_column_int64(select, 3),
                                  .content.hash = sqlite3_column_int64(select, 4)};
        memcpy(message.name, sqlite3_column_blob(select, 5), (size_t)sqlite3_column_bytes(select, 5));
        sqlite3_bind_int64(update, 1, message.number);
        sqlite3_bind_int64(update, 2, spool__seal(&message));
        assert_int_equal(sqlite3_step(update), SQLITE_DONE);
        sqlite3_reset(update);
    }
    sqlite3_finalize(select);
    sqlite3_finalize(update);
}

struct fault {
    const char *sql, *sentence;
};

/* Everything is as it was, but for this. *sentence gets its numbers. */
static void damage(struct fixture *f, const struct fault *fault, char sentence[512]) {
    char sql[1024], *error = NULL;
    copy_anew(f);
    sqlite3 *database = open_bad();
    fill_in(database, fault->sql, sql, sizeof sql);
    fill_in(database, fault->sentence, sentence, 512);
    int before = sqlite3_total_changes(database);
    if (sqlite3_exec(database, sql, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", sql, error);
    assert_true(sqlite3_total_changes(database) > before);
    if (!strstr(sql, "SET seal"))
        seal_anew(database);
    sqlite3_close(database);
}

static void find_each(struct fixture *f, const struct fault *faults, size_t count) {
    char sentence[512];
    for (size_t i = 0; i < count; i++) {
        damage(f, &faults[i], sentence);
        assert_only(sentence);
    }
}
#define find_all(f, faults) find_each(f, faults, sizeof(faults) / sizeof((faults)[0]))

static void leave_a_log(void) {
    char log[160];
    snprintf(log, sizeof log, "%s-wal", bad);
    close(open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

/* --- sound ---------------------------------------------------------------------------------------------------------- */

static void test_check__a_spool_with_a_bit_of_everything_is_clean(void **state) {
    copy_anew(*state);
    assert_clean();
    leave_a_log();
    assert_clean();
}

static void test_check__an_empty_spool_is_clean_and_needs_no_directory_of_payloads(void **state) {
    struct fixture *f = *state;
    struct spool_options options = {.boot_id = ""};
    struct spool *spool;
    char why[256];
    copy_anew(f);
    assert_int_equal(run_shell("rm -r '%s'*", bad), 0);
    assert_ok(spool_open(bad, &options, f->now, &spool, why, sizeof why));
    spool_close(spool);
    assert_clean();
    assert_int_equal(run_shell("rmdir '%s.payloads'", bad), 0);
    assert_clean();
}

static void test_check__what_cannot_be_opened_is_no_violation(void **state) {
    struct fixture *f = *state;
    struct sentences sentences = {0};
    char why[512] = "";
    struct spool *spool;
    assert_int_equal(spool_check("/nowhere/at/all", note, &sentences, why, sizeof why), -ENOENT);
    assert_true(why[0]);
    assert_ok(spool_open(f->path, &f->options, f->now, &spool, why, sizeof why));
    why[0] = '\0';
    assert_int_equal(spool_check(f->path, note, &sentences, why, sizeof why), -EBUSY);
    assert_true(why[0]);
    spool_close(spool);
    assert_int_equal(sentences.count, 0);
}

/* --- one fault ------------------------------------------------------------------------------------------------------ */

static void test_check__finds_faults_of_directories(void **state) {
    static const struct fault faults[] = {
        {"DELETE FROM spool", "the table spool has no row"},
        {"UPDATE directory SET parent = 999999 WHERE number = 1", "there is no root directory"},
        {"UPDATE directory SET parent = 999999 WHERE number = <.folder>",
         "directory <.folder> (.folder) stands in directory 999999, which does not exist"},
        {"UPDATE directory SET name = CAST('klaimed' AS BLOB) WHERE number = <claimed>",
         "directory <claimed> (klaimed) is of a kind that directory <q> cannot hold"},
        {"UPDATE directory SET parent = <q> WHERE number = <other>",
         "directory <other> (other) is of a kind that directory <q> cannot hold"},
        {"UPDATE directory SET target = NULL WHERE number = <.link>",
         "directory <.link> (.link) is a link without a target, or has one and is no link"},
        {"UPDATE directory SET name = CAST('a/b' AS BLOB) WHERE number = <other>",
         "the name of number <other> (a/b) is none that a file can have"},
        {"UPDATE directory SET name = CAST('small' AS BLOB) WHERE number = <.folder>",
         "the name small in directory <q> is that of message <small> and of directory <.folder>"},
    };
    find_all(*state, faults);
}

static void test_check__finds_messages_that_stand_where_they_cannot(void **state) {
    static const struct fault faults[] = {
        {"UPDATE message SET name = x'2f0aff' WHERE number = <small>",
         "the name of number <small> (/\\x0a\\xff) is none that a file can have"},
        {"UPDATE message SET name = CAST('.x' AS BLOB) WHERE number = <small>",
         "message <small> (.x) is waiting under a staged name"},
        {"UPDATE message SET queue = 999999 WHERE number = <small>;"
         "UPDATE directory SET ready = ready - 1, bytes = bytes - 3 WHERE number = <q>",
         "message <small> (small) belongs to queue 999999, which does not exist"},
        {"UPDATE message SET directory = <other> WHERE number = <small>",
         "message <small> (small) is waiting and stands in directory <other>, where it cannot be"},
        {"UPDATE message SET directory = 999999 WHERE number = <later>",
         "message <later> (later) is delayed and stands in directory 999999, where it cannot be"},
        {"UPDATE message SET directory = <q> WHERE number = <leased>",
         "message <leased> (leased) is claimed and stands in directory <q>, where it cannot be"},
        {"UPDATE message SET directory = <claimed> WHERE number = <gone>",
         "message <gone> (gone) is dead and stands in directory <claimed>, where it cannot be"},
        {"UPDATE message SET directory = <w> WHERE number = <.staged>",
         "message <.staged> (.staged) is staged and stands in directory <w>, where it cannot be"},
    };
    find_all(*state, faults);
}

static void test_check__finds_faults_of_numbers_and_times(void **state) {
    static const struct fault faults[] = {
        {"UPDATE message SET place = <small.place> WHERE number = <twin>",
         "messages <small> and <twin> have the same place, <small.place>"},
        {"UPDATE spool SET numbers = numbers - 1",
         "a directory has the number <last>, but none from <last> on has been reserved"},
        {"UPDATE message SET due_ns = 0 WHERE number = <later>",
         "message <later> (later) is delayed and waits for nothing"},
        {"UPDATE message SET due_ns = 1 WHERE number = <small>",
         "message <small> (small) is waiting, but has a time to wait for"},
    };
    find_all(*state, faults);
}

static void test_check__finds_faults_of_settings(void **state) {
    static const struct fault faults[] = {
        {"INSERT INTO setting VALUES (<w>, CAST('lease' AS BLOB), CAST('30s' AS BLOB))",
         "setting lease belongs to directory <w>, which is not a queue"},
        {"UPDATE setting SET name = CAST('leese' AS BLOB)",
         "directory <q> has a setting leese, and there is none of that name"},
        {"UPDATE setting SET value = CAST('soon' AS BLOB)",
         "setting lease of directory <q> has the value soon, which it cannot have"},
        {"UPDATE setting SET value = CAST('30000ms' AS BLOB)",
         "setting lease of directory <q> has the value 30000ms, which it cannot have"},
    };
    find_all(*state, faults);
}

static void test_check__finds_counters_that_are_wrong(void **state) {
    static const struct fault faults[] = {
        {"UPDATE directory SET staged = 5 WHERE number = <q>", "queue <q> (q) counts staged 5, but holds 1"},
        {"UPDATE directory SET ready = 5 WHERE number = <q>", "queue <q> (q) counts ready 5, but holds 3"},
        {"UPDATE directory SET delayed = 5 WHERE number = <q>", "queue <q> (q) counts delayed 5, but holds 1"},
        {"UPDATE directory SET claimed = 5 WHERE number = <q>", "queue <q> (q) counts claimed 5, but holds 1"},
        {"UPDATE directory SET dead = 5 WHERE number = <q>", "queue <q> (q) counts dead 5, but holds 1"},
        {"UPDATE directory SET bytes = 5 WHERE number = <other>", "queue <other> (other) counts bytes 5, but holds 0"},
        {"UPDATE directory SET ready = -1 WHERE number = 1", "the root counts ready -1, but all queues hold 3"},
        {"UPDATE directory SET published = 5 WHERE number = 1", "the root counts published 5, but its queues 6"},
        {"UPDATE directory SET staged_removed = 1 WHERE number = <q>",
         "the root counts staged_removed 0, but its queues 1"},
    };
    find_all(*state, faults);
}

static void test_check__finds_faults_of_payloads(void **state) {
    static const struct fault faults[] = {
        {"UPDATE message SET seal = seal + 1 WHERE number = <small>",
         "message <small> (small) does not match its seal"},
        {"UPDATE payload SET bytes = CAST('tee' AS BLOB) WHERE number = <small.payload>",
         "payload <small.payload> of message <small> (small) does not match its checksum"},
        {"UPDATE payload SET bytes = CAST('tea!' AS BLOB) WHERE number = <small.payload>",
         "payload <small.payload> of message <small> (small) has 4 bytes instead of 3"},
        {"DELETE FROM payload WHERE number = <small.payload>",
         "payload <small.payload> of message <small> (small) is missing"},
        {"INSERT INTO payload VALUES (<last>, x'00')", "payload <last> belongs to no message"},
        {"DELETE FROM payload WHERE number = <twin.payload>;"
         "UPDATE message SET payload = <small.payload> WHERE number = <twin>",
         "messages <small> and <twin> have the same payload, <small.payload>"},
        {"INSERT INTO doomed VALUES (<small.payload>)",
         "payload <small.payload> is to be removed, but belongs to message <small>"},
    };
    find_all(*state, faults);
}

/* A shell command with $d, the directory of payloads, and $n, the number of the only one. */
static void damage_file(struct fixture *f, const char *command) {
    copy_anew(f);
    assert_int_equal(run_shell("d='%s.payloads'; n=$(ls \"$d\"); %s", bad, command), 0);
}

static void test_check__finds_faults_of_payload_files(void **state) {
    static const struct {
        const char *command, *sentence;
    } faults[] = {
        {"rm \"$d/$n\"", "payload file <large.payload> of message <large> (large) is missing"},
        {"rm -r \"$d\"", "payload file <large.payload> of message <large> (large) is missing"},
        {"truncate -s 100 \"$d/$n\"",
         "payload file <large.payload> of message <large> (large) has 100 bytes instead of 131073"},
        {"printf y | dd of=\"$d/$n\" bs=1 seek=1000 conv=notrunc status=none",
         "payload file <large.payload> of message <large> (large) does not match its checksum"},
        {"rm \"$d/$n\"; truncate -s 131073 \"$d/x\"; ln -s x \"$d/$n\"",
         "payload file <large.payload> of message <large> (large) has 1 bytes instead of 131073"},
        {"cp \"$d/$n\" \"$d/1\"", "payload file 1 belongs to no message"},
    };
    char sentence[512];
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        damage_file(*state, faults[i].command);
        sqlite3 *database = open_bad();
        fill_in(database, faults[i].sentence, sentence, sizeof sentence);
        sqlite3_close(database);
        assert_only(sentence);
    }
}

static void test_check__finds_pages_that_are_damaged(void **state) {
    struct sentences sentences;
    copy_anew(*state);
    sqlite3 *database = open_bad();
    long long page = (long long)number_in(
        database, "SELECT rootpage FROM sqlite_schema WHERE name = 'message_listing' AND ?1 NOT NULL", "x", 1);
    sqlite3_close(database);
    assert_int_equal(
        run_shell("dd if=/dev/zero of='%s' bs=4096 seek=%lld count=1 conv=notrunc status=none", bad, page - 1), 0);
    check(&sentences);
    assert_true(sentences.count > 0);
    for (int i = 0; i < sentences.count && i < MOST_SENTENCES; i++) {
        assert_int_equal(strncmp(sentences.text[i], "the database is damaged: ", 25), 0);
        assert_null(strchr(sentences.text[i], '\n'));
    }
}

/* --- what a crash leaves ------------------------------------------------------------------------------------------------- */

/* Faults after a clean end, and what the next start is there for when there is a log. */
static void test_check__lets_a_crash_leave_what_the_next_start_puts_in_order(void **state) {
    static const struct fault faults[] = {
        {"UPDATE message SET state = 2 WHERE number = <small>;"
         "UPDATE directory SET ready = ready - 1, staged = staged + 1 WHERE number IN (1, <q>)",
         "message <small> (small) was still being written when the spool was closed"},
        {"INSERT INTO payload VALUES (<last>, x'00'); INSERT INTO doomed VALUES (<last>)",
         "payload <last> is to be removed, but was still there when the spool was closed"},
    };
    char sentence[512];
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        damage(*state, &faults[i], sentence);
        assert_only(sentence);
        leave_a_log();
        assert_clean();
    }
    damage_file(*state, "cp \"$d/$n\" \"$d/1\"");
    leave_a_log();
    assert_clean();
}

static void test_check__finds_all_else_after_a_crash_too(void **state) {
    static const struct fault lost = {"DELETE FROM payload WHERE number = <small.payload>",
                                      "payload <small.payload> of message <small> (small) is missing"};
    char sentence[512];
    damage(*state, &lost, sentence);
    leave_a_log();
    assert_only(sentence);
}

#define check_test(function) cmocka_unit_test_setup_teardown(function, set_up_full, tear_down_spool)

int main(void) {
    const struct CMUnitTest tests[] = {
        check_test(test_check__a_spool_with_a_bit_of_everything_is_clean),
        check_test(test_check__an_empty_spool_is_clean_and_needs_no_directory_of_payloads),
        check_test(test_check__what_cannot_be_opened_is_no_violation),
        check_test(test_check__finds_faults_of_directories),
        check_test(test_check__finds_messages_that_stand_where_they_cannot),
        check_test(test_check__finds_faults_of_numbers_and_times),
        check_test(test_check__finds_faults_of_settings),
        check_test(test_check__finds_counters_that_are_wrong),
        check_test(test_check__finds_faults_of_payloads),
        check_test(test_check__finds_faults_of_payload_files),
        check_test(test_check__finds_pages_that_are_damaged),
        check_test(test_check__lets_a_crash_leave_what_the_next_start_puts_in_order),
        check_test(test_check__finds_all_else_after_a_crash_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
