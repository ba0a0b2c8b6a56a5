/* publish.c - how a written file becomes a message: names that are taken, limits, places. */
#include "engine.h"

#include <errno.h>
#include <string.h>

int spool__has_room(struct spool *spool, int64_t queue, int64_t bytes, bool needs_space) {
    const struct settings *settings;
    struct directory *directory;
    int rc = spool__settings(spool, queue, &settings);
    if (!rc)
        rc = spool__directory(spool, queue, &directory);
    if (rc)
        return rc;
    int64_t limit = settings->value[SPOOL_MAX_WAITING];
    if (limit && directory->count[COUNT_READY] + directory->count[COUNT_DELAYED] >= limit)
        return -EDQUOT;
    if (settings->value[SPOOL_MAX_SIZE] && bytes > settings->value[SPOOL_MAX_SIZE])
        return -EFBIG;
    if (needs_space && spool__free_bytes(spool) < spool->reserve_bytes)
        return -ENOSPC;
    return 0;
}

/* Under on_conflict=reject leased and dead messages hold their names too. 1, 0 or a negative errno. */
static int is_held_elsewhere(struct spool *spool, int64_t queue, const char *name) {
    struct db_row *row = NULL;
    struct directory *dead;
    int rc = db_first(spool->db, &row, Q_message_leased_name, db_int(queue), db_text(name));
    db_done(row);
    if (rc)
        return rc;
    rc = spool__find_directory(spool, queue, "dead", &dead);
    return rc == 0 ? spool__is_taken(spool, dead->entry.key, name, 0) : rc == -ENOENT ? 0 : rc;
}

/* A file that nobody would miss: staged, or held back and empty. */
static bool is_replaceable(const struct message *message) {
    return message->state == SPOOL_STAGED || (message->state == SPOOL_HELD && message->content.size == 0);
}

static int number_the_older(struct spool *spool, const struct message *older) {
    struct message numbered = *older;
    int rc = spool__free_name(spool, older->directory, older->name, numbered.name);
    if (rc)
        return rc;
    numbered.ctime_ns = spool->now.wall_ns;
    return spool__update_message(spool, older, &numbered);
}

/* A directory or a link stands there: only a link can be replaced. `claimed` and `dead` do even while they are removed. */
static int take_from_directory(struct spool *spool, const struct directory *directory, const char *name) {
    struct directory *found;
    if (directory->kind == SPOOL_QUEUE && (strcmp(name, "claimed") == 0 || strcmp(name, "dead") == 0))
        return -EISDIR;
    int rc = spool__find_directory(spool, directory->entry.key, name, &found);
    if (rc)
        return rc == -ENOENT ? 0 : rc;
    return found->kind == SPOOL_LINK ? spool__delete_directory(spool, found) : -EISDIR;
}

int spool__take_name(struct spool *spool, int64_t directory, const char *name, int64_t number, int64_t *place) {
    const struct settings *settings;
    struct directory *parent;
    struct message older;
    bool staged;
    int rc = spool__is_staged(spool, directory, name, &staged);
    if (!rc)
        rc = spool__directory(spool, directory, &parent);
    if (!rc)
        rc = spool__settings(spool, spool__queue_of(spool, parent), &settings);
    if (rc)
        return rc;
    bool reject = settings->value[SPOOL_ON_CONFLICT] == CONFLICT_REJECT && !staged;
    rc = spool__find_message(spool, directory, name, &older);
    if (rc == -ENOENT) {
        rc = reject ? is_held_elsewhere(spool, directory, name) : 0;
        if (rc == 0)
            return take_from_directory(spool, parent, name);
        spool__promise(spool);
        return rc < 0 ? rc : -EEXIST;
    }
    if (rc || older.number == number)
        return rc;
    if (is_replaceable(&older))
        return spool__cancel(spool, &older);
    if (reject) {
        spool__promise(spool);
        return -EEXIST;
    }
    if (settings->value[SPOOL_ON_CONFLICT] == CONFLICT_REPLACE && spool__is_waiting(older.state)) {
        *place = older.place;
        return spool__cancel(spool, &older);
    }
    return number_the_older(spool, &older);
}

void spool__let_wait(const struct spool *spool, struct message *message) {
    if (message->end_boot_ns <= spool->now.boot_ns)
        message->end_boot_ns = message->end_ns = 0;
    if (message->due_ns <= spool->now.wall_ns)
        message->due_ns = 0;
    message->state = message->end_boot_ns || message->due_ns ? SPOOL_DELAYED : SPOOL_WAITING;
}

int spool__publish(struct spool *spool, const struct message *old, struct message *message, int64_t place, bool hold) {
    const struct settings *settings;
    bool staged;
    int rc = spool__is_staged(spool, message->directory, message->name, &staged);
    if (!rc)
        rc = spool__settings(spool, message->queue, &settings);
    if (rc)
        return rc;
    message->flushed = 0;
    message->unsure = false;
    message->ctime_ns = spool->now.wall_ns;
    message->due_ns = 0;
    message->end_boot_ns = message->end_ns = 0;
    if (staged) {
        int64_t ttl_ns = settings->value[SPOOL_PARTIAL_TTL];
        message->state = SPOOL_STAGED;
        message->due_ns = ttl_ns ? spool->now.wall_ns + ttl_ns : 0;
        return spool__update_message(spool, old, message);
    }
    message->place = place ? place : spool__number(spool);
    if (message->place < 0)
        return (int)message->place;
    if (hold) {
        message->state = SPOOL_HELD;
        message->end_boot_ns = spool->now.boot_ns + SPOOL_HOLD_NS;
        message->end_ns = spool->now.wall_ns + SPOOL_HOLD_NS;
    } else {
        message->published_ns = spool->now.wall_ns;
        spool__let_wait(spool, message);
        spool__count(spool, message->queue, COUNT_PUBLISHED, 1);
    }
    return spool__update_message(spool, old, message);
}
