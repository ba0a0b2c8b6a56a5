/* entry.c - what a name or a number denotes, listings, and the attributes that chmod, chown and touch change. */
#include "engine.h"

#include <errno.h>
#include <string.h>

#define PAGE 256

int spool_stat(struct spool *spool, int64_t number, struct spool_entry *entry) {
    struct directory *directory;
    struct message message;
    int rc = spool__directory(spool, number, &directory);
    if (rc == 0) {
        spool__describe_directory(spool, directory, entry);
        return 0;
    }
    if (rc == -ENOENT)
        rc = spool__message(spool, number, &message);
    if (rc == 0 && message.state == SPOOL_DRAFT)
        rc = -ENOENT;
    if (rc == 0)
        spool__describe_message(spool, &message, entry);
    return rc;
}

/* Messages come first: they are what is looked up most. */
int spool_lookup(struct spool *spool, int64_t directory, const char *name, struct spool_entry *entry) {
    struct directory *found, *parent;
    struct message message;
    if (strnlen(name, SPOOL_NAME_MAX + 1) > SPOOL_NAME_MAX)
        return -ENAMETOOLONG;
    int rc = spool__directory(spool, directory, &parent);
    if (rc)
        return rc;
    rc = parent->kind == SPOOL_THE_ROOT ? -ENOENT : spool__find_message(spool, directory, name, &message);
    if (rc == 0) {
        spool__describe_message(spool, &message, entry);
        return 0;
    }
    if (rc == -ENOENT && parent->kind == SPOOL_QUEUE && !spool->read_only && strcmp(name, "claimed") == 0)
        rc = spool__special(spool, directory, SPOOL_CLAIMED, &found);
    else if (rc == -ENOENT && parent->kind == SPOOL_QUEUE && !spool->read_only && strcmp(name, "dead") == 0)
        rc = spool__special(spool, directory, SPOOL_DEAD, &found);
    else if (rc == -ENOENT)
        rc = spool__find_directory(spool, directory, name, &found);
    if (rc == 0)
        spool__describe_directory(spool, found, entry);
    return rc;
}

/* Cursors: 2 n + 1 behind the directory of number n, 2 n + 2 behind the message at place n. */
static int list_directories(struct spool *spool, int64_t number, int64_t cursor, spool_each *each, void *context,
                            int *left) {
    struct db_row *row = NULL;
    struct spool_entry entry;
    struct directory *directory;
    int rc = db_first(spool->db, &row, Q_directory_list, db_int(number), db_int(cursor / 2), db_int(*left));
    while (rc == 1) {
        rc = spool__directory(spool, db_column_int(row, 0), &directory);
        if (rc)
            break;
        spool__describe_directory(spool, directory, &entry);
        --*left;
        if (!each(context, directory->name, &entry, entry.number * 2 + 1)) {
            *left = 0;
            break;
        }
        rc = db_next(row);
    }
    db_done(row);
    return rc < 0 ? rc : 0;
}

static int list_messages(struct spool *spool, int64_t number, int64_t cursor, spool_each *each, void *context,
                         int left) {
    struct db_row *row = NULL;
    struct spool_entry entry;
    struct message message;
    int64_t place = cursor > 0 && cursor % 2 == 0 ? cursor / 2 - 1 : 0;
    int rc = db_first(spool->db, &row, Q_message_list, db_int(number), db_int(place), db_int(left));
    while (rc == 1) {
        spool__read_message(row, &message);
        spool__describe_message(spool, &message, &entry);
        if (!each(context, message.name, &entry, message.place * 2 + 2))
            break;
        rc = db_next(row);
    }
    db_done(row);
    return rc < 0 ? rc : 0;
}

int spool_list(struct spool *spool, int64_t directory, int64_t cursor, spool_each *each, void *context) {
    struct directory *parent;
    int left = PAGE;
    int rc = spool__directory(spool, directory, &parent);
    if (!rc && (cursor == 0 || cursor % 2 == 1))
        rc = list_directories(spool, directory, cursor, each, context, &left);
    if (!rc && left > 0)
        rc = list_messages(spool, directory, cursor, each, context, left);
    return rc;
}

int spool_chmod(struct spool *spool, int64_t number, uint32_t mode) {
    struct directory *directory;
    struct message old, message;
    int rc = spool__directory(spool, number, &directory);
    if (rc == 0)
        return spool__chmod_directory(spool, directory, mode);
    if (rc == -ENOENT)
        rc = spool__message(spool, number, &old);
    if (!rc)
        rc = spool__change(spool);
    if (rc || old.state == SPOOL_CLAIMED_STATE)
        return rc; /* a lease is its holder's alone */
    message = old;
    message.mode = mode & 0777;
    message.ctime_ns = spool->now.wall_ns;
    return spool__update_message(spool, &old, &message);
}

int spool_chown(struct spool *spool, int64_t number, uid_t uid, gid_t gid) {
    struct directory *directory;
    struct message old, message;
    int rc = spool__directory(spool, number, &directory);
    if (rc == 0)
        return spool__chown_directory(spool, directory, uid, gid);
    if (rc == -ENOENT)
        rc = spool__message(spool, number, &old);
    if (!rc)
        rc = spool__change(spool);
    if (rc)
        return rc;
    message = old;
    if (uid != (uid_t)-1 && old.state == SPOOL_CLAIMED_STATE)
        message.holder = (int64_t)uid;
    else if (uid != (uid_t)-1)
        message.uid = uid;
    if (gid != (gid_t)-1)
        message.gid = gid;
    message.ctime_ns = spool->now.wall_ns;
    return spool__update_message(spool, &old, &message);
}

/* The end that a touch of the lease's atime asks for: 0: as the setting says, -1: now, as failed. */
static int64_t lease_end(const struct spool *spool, enum spool_when atime, int64_t atime_ns) {
    if (atime == SPOOL_AT && atime_ns == 0)
        return -1;
    return atime == SPOOL_AT && atime_ns > spool->now.wall_ns ? atime_ns : 0;
}

static int touch_lease(struct spool *spool, const struct message *old, enum spool_when atime, int64_t atime_ns,
                       enum spool_when mtime, int64_t mtime_ns) {
    struct message message = *old;
    int64_t end_ns = lease_end(spool, atime, atime_ns);
    if (atime != SPOOL_OMIT && end_ns < 0)
        return spool__fail(spool, old, "given up");
    if (mtime != SPOOL_OMIT) {
        message.due_ns = mtime == SPOOL_AT && mtime_ns > spool->now.wall_ns ? mtime_ns : 0;
        int rc = spool__update_message(spool, old, &message);
        if (rc)
            return rc;
    }
    return atime == SPOOL_OMIT ? 0 : spool__renew(spool, &message, end_ns);
}

static int touch_message(struct spool *spool, const struct message *old, enum spool_when atime, int64_t atime_ns,
                         enum spool_when mtime, int64_t mtime_ns) {
    struct message message = *old;
    if (old->state == SPOOL_CLAIMED_STATE)
        return touch_lease(spool, old, atime, atime_ns, mtime, mtime_ns);
    struct draft *draft = spool__draft_of(spool, old->number, WRITES_NEW);
    message.ctime_ns = spool->now.wall_ns;
    if (draft && mtime != SPOOL_OMIT) {
        int rc = spool__save_draft(draft);
        if (rc)
            return rc;
        draft->state.timed = true;
    }
    if (mtime == SPOOL_NOW)
        mtime_ns = spool->now.wall_ns;
    if (mtime != SPOOL_OMIT && spool__is_waiting(old->state)) {
        bool future = mtime == SPOOL_AT && mtime_ns > spool->now.wall_ns;
        message.due_ns = future ? mtime_ns : 0;
        if (!future)
            message.mtime_ns = mtime_ns;
        spool__let_wait(spool, &message);
        spool__promise(spool);
    } else if (mtime != SPOOL_OMIT && old->state != SPOOL_DEAD_STATE) {
        message.mtime_ns = mtime_ns;
    }
    return spool__update_message(spool, old, &message);
}

/* The same for every lease in a worker's directory. */
static int touch_worker(struct spool *spool, int64_t worker, enum spool_when atime, int64_t atime_ns,
                        enum spool_when mtime, int64_t mtime_ns) {
    struct message message;
    int64_t place = 0;
    for (;;) {
        struct db_row *row = NULL;
        int rc = db_first(spool->db, &row, Q_message_list, db_int(worker), db_int(place), db_int(1));
        if (rc == 1)
            spool__read_message(row, &message);
        db_done(row);
        if (rc <= 0)
            return rc;
        place = message.place;
        rc = touch_lease(spool, &message, atime, atime_ns, mtime, mtime_ns);
        if (rc)
            return rc;
    }
}

int spool_touch(struct spool *spool, int64_t number, enum spool_when atime, int64_t atime_ns, enum spool_when mtime,
                int64_t mtime_ns) {
    struct directory *directory;
    struct message message;
    int rc = spool__directory(spool, number, &directory);
    if (rc == 0 && directory->kind != SPOOL_WORKER)
        return 0;
    if (rc == 0) {
        rc = spool__change(spool);
        return rc ? rc : touch_worker(spool, number, atime, atime_ns, mtime, mtime_ns);
    }
    if (rc == -ENOENT)
        rc = spool__message(spool, number, &message);
    if (!rc)
        rc = spool__change(spool);
    return rc ? rc : touch_message(spool, &message, atime, atime_ns, mtime, mtime_ns);
}
