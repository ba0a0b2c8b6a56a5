/*
 * recover.c - what the last run left: put in order before anybody looks.
 *
 *     open, never flushed                    gone: nothing was promised
 *     open, flushed, sure                    published, in the order of the last flushes
 *     open, flushed, unsure                  kept as .recovered.<name>; so is a file that is not what its row says,
 *                                            whatever the row says: writing on does not wait for it to be flushed
 *     draft, flushed, sure                   takes effect, as at its last close (a message of its own, when it replaces one
 *                                            that has been claimed)
 *     draft, flushed, unsure                 kept as .recovered.<name of its message>; a checkpoint goes
 *     payloads that nobody refers to         removed
 *     large staged files, after a reboot     measured
 *     boot-clock times of another boot       converted, never longer than the rules would make them now
 */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is in a payload file by now. When it is not what was flushed, the message is not sure. */
static int measure(struct spool *spool, struct message *message) {
    struct content_summary *content = &message->content, flushed = message->content;
    if (!content->in_file)
        return 0;
    int rc = spool__measure(spool, content);
    if (content->size != flushed.size || content->hash != flushed.hash)
        message->unsure = true;
    return rc;
}

static int keep_aside(struct spool *spool, const struct message *old, struct message *message, int64_t directory,
                      const char *name) {
    spool__prefix_name(".recovered.", name, message->name);
    message->directory = directory;
    int rc = spool__fit_name(spool, directory, message->name, message->number, message->name);
    return rc ? rc : spool__publish(spool, old, message, 0, false);
}

/* `old` is the row, `message` what became of it. */
static int recover_file(struct spool *spool, const struct message *old, struct message *message) {
    bool staged;
    if (!old->flushed)
        return spool__delete_message(spool, old);
    int rc = spool__is_staged(spool, old->directory, old->name, &staged);
    if (rc)
        return rc;
    if (message->unsure && !staged)
        return keep_aside(spool, old, message, old->directory, old->name);
    return spool__publish(spool, old, message, 0, false);
}

/* A draft whose message is not there any more, or that is not sure, as a file of its own: a replacement that is sure is a message. */
static int stand_alone(struct spool *spool, const struct message *draft, struct message *message,
                       const struct message *target) {
    const char *name = draft->home_name[0] ? draft->home_name : target ? spool__own_name(target) : "draft";
    message->target = 0;
    message->draft_kind = WRITES_NEW;
    message->home_name[0] = '\0';
    message->attempts = 0;
    if (message->unsure || (draft->draft_kind != WRITES_REPLACE && draft->draft_kind != WRITES_APART))
        return keep_aside(spool, draft, message, draft->queue, name);
    message->directory = draft->queue;
    int rc = spool__fit_name(spool, draft->queue, name, draft->number, message->name);
    return rc ? rc : spool__publish(spool, draft, message, 0, false);
}

static int recover_draft(struct spool *spool, const struct message *draft, struct message *message) {
    struct message target;
    int rc = spool__message(spool, draft->target, &target);
    if (rc && rc != -ENOENT)
        return rc;
    bool found = rc == 0;
    if (draft->draft_kind == WRITES_CHECKPOINT) {
        bool holds = found && target.state == SPOOL_CLAIMED_STATE && target.attempts == draft->attempts;
        return holds && !message->unsure ? spool__apply_draft(spool, &target, &draft->content, draft->number)
                                         : spool__delete_message(spool, draft);
    }
    if (found && spool__draft_fits(draft->draft_kind, target.state) && !message->unsure)
        return spool__apply_draft(spool, &target, &draft->content, draft->number);
    return stand_alone(spool, draft, message, found ? &target : NULL);
}

static int recover_written(struct spool *spool) {
    for (;;) {
        struct db_row *row = NULL;
        struct message old, message;
        int rc = db_first(spool->db, &row, Q_message_written);
        int64_t number = rc == 1 ? db_column_int(row, 0) : 0;
        db_done(row);
        if (rc <= 0)
            return rc;
        rc = spool__message(spool, number, &old);
        message = old;
        if (!rc && old.flushed)
            rc = measure(spool, &message);
        if (!rc)
            rc = old.state == SPOOL_DRAFT ? recover_draft(spool, &old, &message) : recover_file(spool, &old, &message);
        if (rc)
            return rc;
    }
}

/* --- a new boot --- */

static int64_t longest_end(struct spool *spool, const struct message *message) {
    const struct settings *settings;
    if (message->state == SPOOL_HELD || spool__settings(spool, message->queue, &settings) != 0)
        return SPOOL_HOLD_NS;
    return settings->value[message->state == SPOOL_CLAIMED_STATE ? SPOOL_LEASE : SPOOL_RETRY_MAX];
}

static int convert_end(struct spool *spool, int64_t number) {
    struct message old, message;
    int rc = spool__message(spool, number, &old);
    if (rc)
        return rc;
    message = old;
    int64_t left = old.end_ns - spool->now.wall_ns, longest = longest_end(spool, &old);
    left = left < 0 ? 0 : left > longest ? longest : left;
    message.end_ns = spool->now.wall_ns + left;
    message.end_boot_ns = spool->now.boot_ns + left;
    if (message.end_boot_ns <= 0)
        message.end_boot_ns = 1;
    return spool__update_message(spool, &old, &message);
}

/* Call `each` for the numbers that a query gives: all of them are taken before the first call, which may move what the query walks. */
static int for_all(struct spool *spool, enum db_query query, int (*each)(struct spool *, int64_t)) {
    struct db_row *row = NULL;
    int64_t *numbers = NULL;
    size_t count = 0, capacity = 0;
    int rc = db_first(spool->db, &row, query);
    while (rc == 1) {
        if (count == capacity) {
            capacity = capacity ? capacity * 2 : 1024;
            int64_t *bigger = realloc(numbers, capacity * sizeof *numbers);
            if (!bigger) {
                rc = -ENOMEM;
                break;
            }
            numbers = bigger;
        }
        numbers[count++] = db_column_int(row, 0);
        rc = db_next(row);
    }
    db_done(row);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = each(spool, numbers[i]);
    free(numbers);
    return rc;
}

/* A large staged file that was being written on when the machine died, with nothing in the log to say so. */
static int measure_staged(struct spool *spool, int64_t number) {
    struct message old, message;
    int rc = spool__message(spool, number, &old);
    message = old;
    if (!rc)
        rc = measure(spool, &message);
    message.unsure = old.unsure;
    return rc ? rc : spool__update_message(spool, &old, &message);
}

static int recover_clock(struct spool *spool, const char *boot_id) {
    struct db_row *row = NULL;
    size_t length = 0;
    int rc = db_first(spool->db, &row, Q_spool_get);
    const void *known = rc == 1 ? db_column_bytes(row, 1, &length) : NULL;
    bool same = known && length == strlen(boot_id) && memcmp(known, boot_id, length) == 0;
    db_done(row);
    if (rc < 0 || same)
        return rc < 0 ? rc : 0;
    rc = for_all(spool, Q_message_timed, convert_end);
    if (!rc)
        rc = for_all(spool, Q_message_staged_files, measure_staged);
    return rc ? rc : spool__run(spool, Q_spool_set_boot, db_text(boot_id));
}

/* --- payloads --- */

static int remove_doomed(struct spool *spool) {
    for (;;) {
        struct db_row *row = NULL;
        int rc = db_first(spool->db, &row, Q_doomed_next);
        int64_t payload = rc == 1 ? db_column_int(row, 0) : 0;
        db_done(row);
        if (rc <= 0)
            return rc;
        rc = spool__run(spool, Q_payload_delete, db_int(payload));
        if (!rc)
            rc = spool__run(spool, Q_doomed_delete, db_int(payload));
        if (rc)
            return rc;
    }
}

static void remove_orphan(int64_t payload, void *context) {
    struct spool *spool = context;
    struct db_row *row = NULL;
    int rc = db_first(spool->db, &row, Q_message_has_file, db_int(payload));
    db_done(row);
    if (rc == 0)
        spool__doom(spool, &(struct content_summary){.payload = payload, .in_file = true});
}

int spool__recover(struct spool *spool, const char *boot_id) {
    int rc = spool__change(spool);
    if (!rc)
        rc = recover_clock(spool, boot_id);
    if (!rc)
        rc = recover_written(spool);
    if (!rc)
        rc = remove_doomed(spool);
    if (!rc)
        rc = payloads_each(&spool->payloads, remove_orphan, spool);
    return rc;
}
