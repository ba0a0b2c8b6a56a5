/*
 * close.c - the last close of a file: a new one is published, held back or kept aside, a draft takes effect.
 */
#include "engine.h"

#include <errno.h>
#include <string.h>

/* --- the last close --- */

int spool__apply_draft(struct spool *spool, const struct message *target, const struct content_summary *content,
                       int64_t draft_row) {
    struct message changed = *target, row;
    int rc = spool__replace_content(spool, &changed, content, false);
    if (!rc)
        rc = spool__update_message(spool, target, &changed);
    if (!rc && draft_row)
        rc = spool__message(spool, draft_row, &row);
    if (!rc && draft_row) {
        if (row.content.payload == content->payload)
            row.content = (struct content_summary){0}; /* it is the target's now */
        rc = spool__delete_message(spool, &row);
    }
    return rc;
}

/* A file that was changed in place after what its row says, and not settled since: it is kept as it is. */
static int settle_as_is(struct draft *draft, struct content_summary *content) {
    struct spool *spool = draft->spool;
    int rc = payload_sync(&spool->payloads, content->payload);
    if (rc == -EIO)
        db_break(spool->db);
    return rc && rc != -ENOENT ? rc : spool__measure(spool, content);
}

/* A new file becomes what its name makes it, or is kept aside when it is not whole. */
static int finish_new(struct draft *draft, const struct content_summary *content) {
    struct spool *spool = draft->spool;
    struct message old, message;
    bool staged;
    int rc = spool__message(spool, draft->number, &old);
    if (!rc)
        rc = spool__is_staged(spool, old.directory, old.name, &staged);
    if (rc)
        return rc == -ENOENT ? 0 : rc;
    message = old;
    if (content)
        rc = spool__replace_content(spool, &message, content, draft->state.timed);
    else if (draft->state.dirty && old.content.in_file)
        rc = settle_as_is(draft, &message.content);
    const char *prefix = draft->state.killed ? ".killed." : spool__draft_error(draft) ? ".failed." : NULL;
    if (!rc && prefix && !staged) {
        spool__prefix_name(prefix, old.name, message.name);
        rc = spool__fit_name(spool, old.directory, message.name, old.number, message.name);
    }
    bool hold = message.content.size == 0 || (draft->state.exclusive && (message.mode & 0777) == 0600);
    return rc ? rc : spool__publish(spool, &old, &message, 0, hold);
}

bool spool__draft_fits(enum draft_kind kind, enum spool_state target) {
    switch (kind) {
    case WRITES_REPLACE:
        return spool__is_waiting(target);
    case WRITES_CHECKPOINT:
        return target == SPOOL_CLAIMED_STATE;
    case WRITES_APART:
        return false;
    default:
        return target != SPOOL_CLAIMED_STATE; /* an edit: it may have been withdrawn or buried meanwhile */
    }
}

/* A replacement whose message has been claimed in the meantime is a message of its own. */
static int publish_apart(struct draft *draft, const struct content_summary *content) {
    struct spool *spool = draft->spool;
    struct message old = {0}, message;
    int rc = draft->state.stored ? spool__message(spool, draft->number, &old) : 0;
    if (rc)
        return rc;
    message = old;
    message.number = message.place = draft->number;
    message.queue = message.directory = draft->queue;
    message.holder = -1;
    message.target = 0;
    message.draft_kind = WRITES_NEW;
    message.attempts = 0;
    message.home_name[0] = '\0';
    message.uid = draft->caller.uid;
    message.gid = draft->caller.gid;
    message.mode = draft->state.mode;
    message.state = SPOOL_OPEN;
    rc = spool__fit_name(spool, draft->queue, draft->name, 0, message.name);
    if (!rc)
        rc = spool__replace_content(spool, &message, content, draft->state.timed);
    if (!rc)
        rc =
            draft->state.stored ? spool__update_message(spool, &old, &message) : spool__insert_message(spool, &message);
    old = message;
    return rc ? rc : spool__publish(spool, &old, &message, 0, false);
}

static int finish_copy(struct draft *draft, const struct content_summary *content) {
    struct spool *spool = draft->spool;
    struct message target;
    int rc = spool__message(spool, draft->entry.key, &target);
    bool found = rc == 0;
    if (rc && rc != -ENOENT)
        return rc;
    if (found && spool__draft_fits(draft->state.kind, target.state))
        return spool__apply_draft(spool, &target, content, draft->state.stored ? draft->number : 0);
    return draft->state.kind == WRITES_REPLACE || draft->state.kind == WRITES_APART ? publish_apart(draft, content)
                                                                                    : -ESTALE;
}

/* The file, if the content is in one that no row refers to. */
static int doom_leftover(struct draft *draft) {
    struct content *content = &draft->content;
    struct db_row *row = NULL;
    if (!content->in_file)
        return 0;
    int rc = db_first(draft->spool->db, &row, Q_message_has_file, db_int(content->payload));
    db_done(row);
    if (rc)
        return rc < 0 ? rc : 0;
    return spool__doom(draft->spool, &(struct content_summary){.payload = content->payload, .in_file = true});
}

static int stored_content(struct draft *draft, struct content_summary *content) {
    struct message row;
    int rc = spool__message(draft->spool, draft->number, &row);
    if (!rc)
        *content = row.content;
    return rc;
}

/* What was begun and is whole takes effect; else it goes. */
static int take_effect(struct draft *draft) {
    struct content_summary content;
    bool is_new = draft->state.kind == WRITES_NEW;
    bool broken = spool__draft_error(draft) != 0;
    int rc = 0;
    if (draft->state.gone)
        return 0;
    if (!is_new && (broken || draft->state.killed || !draft->state.begun))
        return spool__lose_draft(draft);
    if (is_new && (broken || !draft->state.dirty))
        return finish_new(draft, NULL);
    if (draft->state.dirty && draft->content.in_file) {
        draft->state.error = -EIO; /* never settled: what is stored is not what was written */
        return is_new ? finish_new(draft, NULL) : spool__lose_draft(draft);
    }
    rc = draft->state.dirty ? spool__record_content(draft, &content) : stored_content(draft, &content);
    if (!rc)
        rc = is_new ? finish_new(draft, &content) : finish_copy(draft, &content);
    return rc == -ESTALE && !is_new ? spool__lose_draft(draft) : rc;
}

int spool__finish_draft(struct draft *draft) {
    int rc = spool__change(draft->spool);
    if (!rc)
        rc = spool__save_draft(draft);
    if (!rc) {
        draft->state.finished = true;
        rc = take_effect(draft);
    }
    int leftover = doom_leftover(draft);
    int later = spool__end_draft(draft);
    return rc ? rc : leftover ? leftover : later;
}
