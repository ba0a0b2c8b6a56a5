/*
 * check.c - every invariant of a spool, looked at once, without changing anything.
 *
 * Most of them are statements of queries.sql that yield a row for each violation; `rules` has the sentence about it. What
 * remains needs more than SQL: checksums, payload files, counters, the values of settings.
 *
 * A log beside the database means that the last run did not end cleanly. Then the next start has something to put in order, and what
 * it will put in order is no violation: files that were being written, payloads that are waiting to be removed, payload files
 * that nobody refers to.
 */
#include "engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ESCAPED_MAX (4 * SPOOL_NAME_MAX + 1)
#define SENTENCE_MAX (3 * ESCAPED_MAX)

struct check {
    struct db *db;
    struct payloads payloads;
    bool left_by_crash;
    void (*report)(void *context, const char *sentence);
    void *context;
    int violations;
};

/* In a sentence, # is the row's next column as a number, @ as a name, $ as a state. */
static const struct rule {
    enum db_query query;
    const char *sentence;
    bool after_clean_end; /* it need not hold for what a crash left */
} rules[] = {
    {Q_check_spool, "the table spool has no row", false},
    {Q_check_root, "there is no root directory", false},
    {Q_check_directory_parent, "directory # (@) stands in directory #, which does not exist", false},
    {Q_check_directory_kind, "directory # (@) is of a kind that directory # cannot hold", false},
    {Q_check_link, "directory # (@) is a link without a target, or has one and is no link", false},
    {Q_check_name, "the name of number # (@) is none that a file can have", false},
    {Q_check_name_twice, "the name @ in directory # is that of message # and of directory #", false},
    {Q_check_staged_name, "message # (@) is $ under a staged name", false},
    {Q_check_queue, "message # (@) belongs to queue #, which does not exist", false},
    {Q_check_directory, "message # (@) is $ and stands in directory #, where it cannot be", false},
    {Q_check_place, "messages # and # have the same place, #", false},
    {Q_check_number, "a @ has the number #, but none from # on has been reserved", false},
    {Q_check_delayed, "message # (@) is delayed and waits for nothing", false},
    {Q_check_waiting, "message # (@) is waiting, but has a time to wait for", false},
    {Q_check_written, "message # (@) was still being written when the spool was closed", true},
    {Q_check_payload_twice, "messages # and # have the same payload, #", false},
    {Q_check_payload_unused, "payload # belongs to no message", false},
    {Q_check_doomed_used, "payload # is to be removed, but belongs to message #", false},
    {Q_check_doomed, "payload # is to be removed, but was still there when the spool was closed", true},
    {Q_check_setting_directory, "setting @ belongs to directory #, which is not a queue", false},
};

static const char *state_name(int64_t state) {
    static const char *const names[] = {
        [SPOOL_STAGED] = "staged",         [SPOOL_OPEN] = "being written", [SPOOL_DRAFT] = "a draft",
        [SPOOL_HELD] = "held back",        [SPOOL_WAITING] = "waiting",    [SPOOL_DELAYED] = "delayed",
        [SPOOL_CLAIMED_STATE] = "claimed", [SPOOL_DEAD_STATE] = "dead",
    };
    return state >= SPOOL_STAGED && state <= SPOOL_DEAD_STATE ? names[state] : "in no state";
}

/* --- sentences --- */

static const char *escape(const void *name, size_t length, char text[ESCAPED_MAX]) {
    size_t used = 0;
    for (size_t i = 0; i < length && used + 4 < ESCAPED_MAX; i++) {
        unsigned char c = ((const unsigned char *)name)[i];
        if (c >= ' ' && c <= '~' && c != '\\')
            text[used++] = (char)c;
        else
            used += (size_t)snprintf(text + used, ESCAPED_MAX - used, "\\x%02x", c);
    }
    text[used] = '\0';
    return text;
}

__attribute__((format(printf, 2, 3))) static void found(struct check *check, const char *format, ...) {
    char sentence[SENTENCE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    check->report(check->context, sentence);
    check->violations++;
}

static void found_row(struct check *check, const char *pattern, struct db_row *row) {
    char sentence[SENTENCE_MAX], name[ESCAPED_MAX];
    size_t used = 0, length;
    int column = 0;
    for (const char *at = pattern; *at && used + ESCAPED_MAX < sizeof sentence; at++) {
        char *to = sentence + used;
        size_t room = sizeof sentence - used;
        if (*at == '#') {
            used += (size_t)snprintf(to, room, "%" PRId64, db_column_int(row, column++));
        } else if (*at == '$') {
            used += (size_t)snprintf(to, room, "%s", state_name(db_column_int(row, column++)));
        } else if (*at == '@') {
            const void *bytes = db_column_bytes(row, column++, &length);
            used += (size_t)snprintf(to, room, "%s", escape(bytes, length, name));
        } else {
            sentence[used++] = *at;
        }
    }
    sentence[used] = '\0';
    found(check, "%s", sentence);
}

/* Call `each` for every row of a statement. */
static int walk(struct check *check, enum db_query query, void (*each)(struct check *, struct db_row *, const void *),
                const void *context) {
    struct db_row *row = NULL;
    int rc = db_first(check->db, &row, query);
    while (rc == 1) {
        each(check, row, context);
        rc = db_next(row);
    }
    db_done(row);
    return rc;
}

static void report_row(struct check *check, struct db_row *row, const void *pattern) {
    found_row(check, pattern, row);
}

/* --- the database itself --- */

static void report_damage(void *context, const char *text) {
    char line[SENTENCE_MAX];
    snprintf(line, sizeof line, "%s", text);
    for (char *end = line; (end = strchr(end, '\n')) != NULL;)
        *end = ' ';
    found(context, "the database is damaged: %s", line);
}

static int check_integrity(struct check *check) {
    int rc = db_integrity(check->db, report_damage, check);
    return rc < 0 ? rc : 0;
}

static int check_rules(struct check *check) {
    int rc = 0;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && !rc; i++) {
        if (!rules[i].after_clean_end || !check->left_by_crash)
            rc = walk(check, rules[i].query, report_row, rules[i].sentence);
    }
    return rc;
}

/* --- settings --- */

static void check_setting(struct check *check, struct db_row *row, const void *context) {
    char name[ESCAPED_MAX], value[ESCAPED_MAX];
    size_t name_length, value_length;
    const void *name_bytes = db_column_bytes(row, 1, &name_length);
    const void *value_bytes = db_column_bytes(row, 2, &value_length);
    int64_t directory = db_column_int(row, 0);
    (void)context;
    escape(name_bytes, name_length, name);
    switch (spool__check_setting(name_bytes, name_length, value_bytes, value_length)) {
    case 0:
        break;
    case -ENOENT:
        found(check, "directory %" PRId64 " has a setting %s, and there is none of that name", directory, name);
        break;
    default:
        found(check, "setting %s of directory %" PRId64 " has the value %s, which it cannot have", name, directory,
              escape(value_bytes, value_length, value));
    }
}

/* --- counters --- */

static void check_counts(struct check *check, struct db_row *row, const void *context) {
    static const char *const what[] = {"staged", "ready", "delayed", "claimed", "dead", "bytes"};
    const int counters = sizeof what / sizeof what[0];
    char name[ESCAPED_MAX];
    size_t length;
    int64_t number = db_column_int(row, 0);
    const void *bytes = db_column_bytes(row, 1, &length);
    (void)context;
    escape(bytes, length, name);
    for (int i = 0; i < counters; i++) {
        int64_t counted = db_column_int(row, 2 + i), held = db_column_int(row, 2 + counters + i);
        if (counted != held && number == SPOOL_ROOT)
            found(check, "the root counts %s %" PRId64 ", but all queues hold %" PRId64, what[i], counted, held);
        else if (counted != held)
            found(check, "queue %" PRId64 " (%s) counts %s %" PRId64 ", but holds %" PRId64, number, name, what[i],
                  counted, held);
    }
}

/* The root counts what queues did that are gone, too. */
static void check_totals(struct check *check, struct db_row *row, const void *context) {
    static const char *const what[] = {"published", "acknowledged", "released",      "failed",
                                       "buried",    "cancelled",    "staged_removed"};
    const int counters = sizeof what / sizeof what[0];
    (void)context;
    for (int i = 0; i < counters; i++) {
        int64_t root = db_column_int(row, i), queues = db_column_int(row, counters + i);
        if (root < queues)
            found(check, "the root counts %s %" PRId64 ", but its queues %" PRId64, what[i], root, queues);
    }
}

/* --- messages and their payloads --- */

/* `where`: where the payload is, for the sentence. */
static void compare_size(struct check *check, const struct message *message, const char *where, int64_t size) {
    char name[ESCAPED_MAX];
    found(check, "%s %" PRId64 " of message %" PRId64 " (%s) has %" PRId64 " bytes instead of %" PRId64, where,
          message->content.payload, message->number, escape(message->name, strlen(message->name), name), size,
          message->content.size);
}

static void report_payload(struct check *check, const struct message *message, const char *where, const char *what) {
    char name[ESCAPED_MAX];
    found(check, "%s %" PRId64 " of message %" PRId64 " (%s) %s", where, message->content.payload, message->number,
          escape(message->name, strlen(message->name), name), what);
}

static void check_row(struct check *check, const struct message *message) {
    static const char where[] = "payload";
    struct db_row *row = NULL;
    size_t length = 0;
    int rc = db_first(check->db, &row, Q_payload_get, db_int(message->content.payload));
    const void *bytes = rc == 1 ? db_column_bytes(row, 0, &length) : NULL;
    if (rc < 0)
        report_payload(check, message, where, "cannot be read");
    else if (rc == 0)
        report_payload(check, message, where, "is missing");
    else if ((int64_t)length != message->content.size)
        compare_size(check, message, where, (int64_t)length);
    else if (content_hash_bytes(bytes, length) != message->content.hash)
        report_payload(check, message, where, "does not match its checksum");
    db_done(row);
}

static void check_file(struct check *check, const struct message *message) {
    static const char where[] = "payload file";
    int64_t size = 0, hash = 0;
    bool there = check->payloads.directory >= 0;
    int rc = there ? payload_size(&check->payloads, message->content.payload, &size) : -ENOENT;
    bool whole = rc == 0 && size == message->content.size;
    if (whole)
        rc = payload_hash(&check->payloads, message->content.payload, size, &hash);
    if (rc == -ENOENT)
        report_payload(check, message, where, "is missing");
    else if (rc < 0)
        report_payload(check, message, where, "cannot be read");
    else if (!whole)
        compare_size(check, message, where, size);
    else if (hash != message->content.hash)
        report_payload(check, message, where, "does not match its checksum");
}

static void check_message(struct check *check, struct db_row *row, const void *context) {
    struct message message;
    char name[ESCAPED_MAX];
    (void)context;
    spool__read_message(row, &message);
    if (spool__seal(&message) != message.seal)
        found(check, "message %" PRId64 " (%s) does not match its seal", message.number,
              escape(message.name, strlen(message.name), name));
    if (!message.content.payload)
        return;
    /* A file that was being written can have been changed since its row was: the next start looks at it. */
    if (!message.content.in_file)
        check_row(check, &message);
    else if (message.state != SPOOL_OPEN && message.state != SPOOL_DRAFT)
        check_file(check, &message);
}

static void check_owner(int64_t payload, void *context) {
    struct check *check = context;
    struct db_row *row = NULL;
    int rc = db_first(check->db, &row, Q_message_has_file, db_int(payload));
    db_done(row);
    if (rc == 0)
        found(check, "payload file %" PRId64 " belongs to no message", payload);
}

static int check_files(struct check *check) {
    if (check->left_by_crash || check->payloads.directory < 0)
        return 0;
    return payloads_each(&check->payloads, check_owner, check);
}

/* --- all of it --- */

static int check_walks(struct check *check) {
    int rc = walk(check, Q_check_settings, check_setting, NULL);
    if (!rc)
        rc = walk(check, Q_check_counts, check_counts, NULL);
    if (!rc)
        rc = walk(check, Q_check_totals, check_totals, NULL);
    return rc ? rc : walk(check, Q_check_messages, check_message, NULL);
}

static int check_all(struct check *check) {
    int rc = check_integrity(check);
    if (!rc)
        rc = check_rules(check);
    if (!rc)
        rc = check_walks(check);
    if (!rc)
        rc = check_files(check);
    /* What is damaged has been reported, and cannot be looked at any closer. */
    return rc == -EUCLEAN && check->violations > 0 ? 0 : rc;
}

static bool has_log(const struct db *db) {
    char log[4096];
    snprintf(log, sizeof log, "%s-wal", db_path(db));
    return access(log, F_OK) == 0;
}

int spool_check(const char *path, void (*report)(void *context, const char *sentence), void *context, char *why,
                size_t why_size) {
    struct db_options options = {.version = SPOOL_SCHEMA_VERSION, .read_only = true};
    struct check check = {.payloads.directory = -1, .report = report, .context = context};
    int rc = db_open(path, &options, &check.db, why, why_size);
    if (rc)
        return rc;
    check.left_by_crash = has_log(check.db);
    rc = payloads_open(&check.payloads, db_path(check.db), false, NULL);
    if (rc == -ENOENT)
        rc = 0; /* none is needed until there is a large payload */
    if (!rc)
        rc = check_all(&check);
    if (rc && why_size)
        snprintf(why, why_size, "%s cannot be checked: %s", path, strerror(-rc));
    payloads_close(&check.payloads);
    db_close(check.db);
    return rc ? rc : check.violations;
}
