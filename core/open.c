/* open.c - opening for writing: a new file, one that is there, one whose name is taken. */
#include "writer.h"

#include <errno.h>
#include <string.h>

/* --- creating --- */

static int insert_open_file(struct spool *spool, int64_t directory, int64_t queue, const char *name, uint32_t mode,
                            struct spool_caller caller, struct message *message) {
    int64_t number = spool__number(spool);
    if (number < 0)
        return (int)number;
    *message = (struct message){
        .number = number,
        .state = SPOOL_OPEN,
        .queue = queue,
        .directory = directory,
        .place = number,
        .holder = -1,
        .uid = caller.uid,
        .gid = caller.gid,
        .mode = mode & 0777,
        .mtime_ns = spool->now.wall_ns,
        .ctime_ns = spool->now.wall_ns,
        .content.hash = content_hash_bytes(NULL, 0),
    };
    memcpy(message->name, name, strlen(name) + 1);
    return spool__insert_message(spool, message);
}

/* May a file of that name be made there? */
static int may_create(struct spool *spool, int64_t directory, const char *name, int64_t *queue) {
    struct directory *parent;
    struct spool_entry taken;
    bool staged;
    int rc = spool__name_is_valid(name);
    if (!rc)
        rc = spool__directory(spool, directory, &parent);
    if (!rc && parent->kind != SPOOL_QUEUE && parent->kind != SPOOL_FOLDER)
        rc = -EPERM;
    if (rc)
        return rc;
    *queue = spool__queue_of(spool, parent);
    rc = spool_lookup(spool, directory, name, &taken);
    if (rc == 0) {
        spool__promise(spool);
        return -EEXIST;
    }
    if (rc == -ENOENT)
        rc = spool__is_staged(spool, directory, name, &staged);
    if (!rc && staged)
        return spool__free_bytes(spool) < spool->reserve_bytes ? -ENOSPC : 0;
    return rc ? rc : spool__has_room(spool, *queue, 0, true);
}

int spool_create(struct spool *spool, int64_t directory, const char *name, uint32_t mode, bool exclusive,
                 struct spool_caller caller, struct spool_entry *entry, struct spool_writer **out) {
    struct message message;
    struct spool_writer *writer;
    int64_t queue, place = 0;
    int rc = may_create(spool, directory, name, &queue);
    if (rc == -EEXIST && !exclusive)
        rc = -ESTALE; /* it has come into being since the caller looked: let them look again, and open it */
    if (!rc)
        rc = spool__take_name(spool, directory, name, 0, &place);
    if (!rc)
        rc = spool__change(spool);
    if (!rc)
        rc = insert_open_file(spool, directory, queue, name, mode, caller, &message);
    if (!rc)
        rc = spool__new_writer(spool, message.number, false, caller, &message, &writer);
    if (rc)
        return rc;
    rc = spool__begin_and_join(writer, WRITES_NEW, message.number, NULL);
    if (rc)
        return spool__drop_writer(writer, rc);
    writer->draft->state.exclusive = exclusive;
    writer->fresh = true;
    spool__describe_message(spool, &message, entry);
    *out = writer;
    return 0;
}

static int move_aside(struct spool *spool, const struct message *old) {
    struct message aside = *old;
    int rc = spool__fit_name(spool, old->directory, old->name, 0, aside.name);
    aside.ctime_ns = spool->now.wall_ns;
    return rc ? rc : spool__update_message(spool, old, &aside);
}

/* A truncating open of a name that is taken: the older file gets a numbered name, a new one stands in its stead. */
static int make_placeholder(struct spool *spool, const struct message *old, struct spool_caller caller,
                            struct spool_entry *entry) {
    struct message message;
    struct draft *draft;
    int rc = spool__has_room(spool, old->queue, 0, true);
    if (!rc)
        rc = move_aside(spool, old);
    if (!rc)
        rc = insert_open_file(spool, old->directory, old->queue, old->name, old->mode | 0600, caller, &message);
    if (!rc)
        rc = spool__begin_draft(spool, WRITES_NEW, message.number, message.number, NULL, caller, &draft);
    if (rc)
        return rc;
    spool__describe_message(spool, &message, entry);
    return -ESTALE;
}

static int open_truncating(struct spool_writer *writer, const struct message *message, struct spool_entry *entry) {
    struct spool *spool = writer->spool;
    enum on_conflict rule = spool__conflict_rule(spool, message->queue);
    int rc;
    if (message->state == SPOOL_CLAIMED_STATE) {
        rc = spool__begin_checkpoint(writer, message, true);
    } else if (message->state == SPOOL_STAGED || message->state == SPOOL_HELD) {
        rc = spool__reopen(writer, message, true);
    } else if (rule == CONFLICT_REJECT) {
        spool__promise(spool);
        return -EEXIST;
    } else if (rule == CONFLICT_REPLACE) {
        rc = spool__begin_beside(writer, WRITES_REPLACE, message);
    } else {
        return make_placeholder(spool, message, writer->caller, entry);
    }
    if (!rc)
        rc = spool__save_draft(writer->draft);
    if (!rc)
        spool__mark_begun(writer->draft);
    return rc;
}

/*
 * Somebody else writes it already. Two who write a file from its start never share a message: when the first has written something,
 * the second gets a file of its own here; when not, whoever is second to write parts ways then.
 */
static int open_shared(struct spool_writer *writer, const struct message *message, bool truncate,
                       struct spool_entry *entry) {
    struct spool *spool = writer->spool;
    struct draft *draft = spool__draft_of(spool, message->number, WRITES_NEW);
    if (!draft)
        return -EIO;
    writer->fresh = truncate;
    if (!truncate || !draft->state.begun || draft->content.size == 0)
        return spool__join_draft(writer, draft);
    bool staged = true;
    int rc = spool__is_staged(spool, message->directory, message->name, &staged);
    if (rc)
        return rc;
    if (staged)
        return spool__truncate_shared(writer, draft);
    if (spool__conflict_rule(spool, message->queue) == CONFLICT_REJECT) {
        spool__promise(spool);
        return -EEXIST;
    }
    return make_placeholder(spool, message, writer->caller, entry);
}

int spool_open_writer(struct spool *spool, int64_t number, bool truncate, bool append, struct spool_caller caller,
                      struct spool_entry *entry, struct spool_writer **out) {
    struct message message;
    struct spool_writer *writer;
    int rc = spool__message(spool, number, &message);
    if (!rc && (message.state == SPOOL_DEAD_STATE || message.state == SPOOL_DRAFT))
        rc = -EPERM;
    if (!rc)
        rc = spool__change(spool);
    if (!rc)
        rc = spool__new_writer(spool, number, append, caller, &message, &writer);
    if (rc)
        return rc;
    if (message.state == SPOOL_OPEN)
        rc = open_shared(writer, &message, truncate, entry);
    else if (truncate)
        rc = open_truncating(writer, &message, entry);
    if (rc)
        return spool__drop_writer(writer, rc);
    spool__message(spool, number, &message);
    spool__describe_message(spool, &message, entry);
    *out = writer;
    return 0;
}

int spool_undo_overwrite(struct spool *spool, int64_t number, int64_t placeholder) {
    struct message old, empty, back;
    struct draft *draft = spool__draft_of(spool, placeholder, WRITES_NEW);
    if (!draft || draft->state.writers > 0 || draft->state.begun)
        return -ENOENT;
    int rc = spool__message(spool, placeholder, &empty);
    if (!rc)
        rc = spool__message(spool, number, &old);
    if (!rc && old.directory != empty.directory)
        rc = -ENOENT;
    if (!rc)
        rc = spool__change(spool);
    if (!rc)
        rc = spool__drop_drafts(spool, placeholder);
    if (!rc)
        rc = spool__finish_draft(draft);
    if (!rc)
        rc = spool__delete_message(spool, &empty);
    if (rc)
        return rc;
    back = old;
    memcpy(back.name, empty.name, sizeof back.name);
    return spool__update_message(spool, &old, &back);
}
