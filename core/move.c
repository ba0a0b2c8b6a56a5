/*
 * move.c - the table of renames, and removal.
 *
 *     from \ to     staged name     final name       final name,       claimed, or a      dead
 *                   (or folder)     in its queue     another queue     worker's in it
 *     staged        rename          publish          publish           EPERM              EPERM
 *     open          rename          rename           rename            claim: ETXTBSY     ETXTBSY
 *     held          withdraw        publish          publish           claim: ETXTBSY     ETXTBSY
 *     waiting       withdraw        rename           forward           claim              bury
 *     claimed       EPERM           release          forward           hand over          bury
 *     dead          EPERM           requeue          forward           EPERM              rename
 *
 * `claimed` and `dead` of another queue are EINVAL. Directories have their own rules, at the end.
 */
#include "engine.h"

#include <errno.h>
#include <string.h>

struct move {
    struct spool *spool;
    const struct message *message;
    const struct directory *to;
    const char *name;
    struct spool_caller caller;
    bool elsewhere; /* result */
};

typedef int move_verb(struct move *move);

enum destination { TO_STAGED, TO_HOME, TO_OTHER, TO_CLAIMED, TO_DEAD, DESTINATIONS };

/* --- the verbs --- */

static int forbid(struct move *move) {
    (void)move;
    return -EPERM;
}

static int busy(struct move *move) {
    (void)move;
    return -ETXTBSY;
}

/* Another name or directory, the same state. */
static int rename_message(struct move *move) {
    struct spool *spool = move->spool;
    struct message renamed = *move->message;
    int64_t place = renamed.place, queue = spool__queue_of(spool, move->to);
    int rc = 0;
    if (move->message->state == SPOOL_OPEN && queue != renamed.queue)
        rc = spool__has_room(spool, queue, renamed.content.size, false);
    if (!rc)
        rc = spool__take_name(spool, move->to->entry.key, move->name, renamed.number, &place);
    if (rc)
        return rc;
    renamed.queue = queue;
    renamed.directory = move->to->entry.key;
    renamed.place = place;
    renamed.ctime_ns = spool->now.wall_ns;
    memcpy(renamed.name, move->name, strlen(move->name) + 1);
    if (spool__is_waiting(renamed.state))
        spool__promise(spool);
    return spool__update_message(spool, move->message, &renamed);
}

static int rename_dead(struct move *move) {
    int rc = spool__is_taken(move->spool, move->to->entry.key, move->name, 0);
    if (rc)
        return rc < 0 ? rc : -EEXIST;
    struct message renamed = *move->message;
    memcpy(renamed.name, move->name, strlen(move->name) + 1);
    spool__promise(move->spool);
    return spool__update_message(move->spool, move->message, &renamed);
}

/* Publish a staged file, or one that is held back; or, by its new name, put it back among the staged ones. */
static int publish(struct move *move) {
    struct spool *spool = move->spool;
    struct message message = *move->message;
    bool staged, held = message.state == SPOOL_HELD;
    int64_t place = 0;
    message.queue = spool__queue_of(spool, move->to);
    int rc = spool__is_staged(spool, move->to->entry.key, move->name, &staged);
    if (!rc && !staged)
        rc = spool__has_room(spool, message.queue, message.content.size, false);
    if (!rc)
        rc = spool__take_name(spool, move->to->entry.key, move->name, message.number, &place);
    if (rc)
        return rc;
    if (held && !staged && !place && message.queue == move->message->queue)
        place = message.place;
    message.directory = move->to->entry.key;
    message.attempts = 0; /* those of a message that is withdrawn are forgotten */
    memcpy(message.name, move->name, strlen(move->name) + 1);
    if (!staged)
        spool__promise(spool);
    return spool__publish(spool, move->message, &message, place, false);
}

static int withdraw(struct move *move) {
    int rc = publish(move);
    if (!rc && spool__is_published(move->message->state))
        spool__count(move->spool, move->message->queue, COUNT_CANCELLED, 1);
    spool__promise(move->spool);
    return rc;
}

static int claim(struct move *move) {
    return spool__claim(move->spool, move->message, move->to, move->name, move->caller);
}

/* Is the message where it was asked to be? */
static void look_where_it_went(struct move *move) {
    struct message now;
    move->elsewhere = spool__message(move->spool, move->message->number, &now) != 0 ||
                      now.directory != move->to->entry.key || strcmp(now.name, move->name) != 0;
}

static int release(struct move *move) {
    int rc = spool__release(move->spool, move->message, move->name);
    if (!rc)
        look_where_it_went(move);
    return rc;
}

static int requeue(struct move *move) {
    int rc = spool__requeue(move->spool, move->message, move->name);
    if (!rc)
        look_where_it_went(move);
    return rc;
}

static int forward(struct move *move) {
    return spool__forward(move->spool, move->message, move->to->entry.key, move->name, move->caller);
}

static int hand_over(struct move *move) {
    return spool__hand_over(move->spool, move->message, move->to, move->name);
}

static int bury(struct move *move) {
    int rc = spool__bury(move->spool, move->message, move->name, "buried");
    spool__promise(move->spool);
    if (!rc)
        look_where_it_went(move);
    return rc;
}

static move_verb *const verbs[][DESTINATIONS] = {
    [SPOOL_STAGED] = {rename_message, publish, publish, forbid, forbid},
    [SPOOL_OPEN] = {rename_message, rename_message, rename_message, claim, busy},
    [SPOOL_HELD] = {withdraw, publish, publish, claim, busy},
    [SPOOL_WAITING] = {withdraw, rename_message, forward, claim, bury},
    [SPOOL_DELAYED] = {withdraw, rename_message, forward, claim, bury},
    [SPOOL_CLAIMED_STATE] = {forbid, release, forward, hand_over, bury},
    [SPOOL_DEAD_STATE] = {forbid, requeue, forward, forbid, rename_dead},
};

/* --- the destination --- */

/* Going home under its own name or its lease's, which stands for that: then no pattern makes the name a staged one. */
static bool goes_home(const struct move *move) {
    const struct message *message = move->message;
    return (message->state == SPOOL_CLAIMED_STATE || message->state == SPOOL_DEAD_STATE) &&
           move->to->entry.key == message->queue &&
           (strcmp(move->name, message->name) == 0 || strcmp(move->name, spool__own_name(message)) == 0);
}

/* A lease or a dead message takes no staged name, where it is or elsewhere. */
static int check_kept_name(const struct move *move) {
    const struct message *message = move->message;
    bool kept = message->state == SPOOL_CLAIMED_STATE || message->state == SPOOL_DEAD_STATE;
    bool staged = false;
    if (!kept || strcmp(move->name, message->name) == 0)
        return 0;
    int rc = spool__is_staged(move->spool, message->queue, move->name, &staged);
    return rc ? rc : staged && !goes_home(move) ? -EPERM : 0;
}

static int find_destination(struct move *move, enum destination *destination) {
    bool staged, from_staged;
    bool same_queue = spool__queue_of(move->spool, move->to) == move->message->queue;
    int rc = spool__is_staged(move->spool, move->to->entry.key, move->name, &staged);
    if (!rc)
        rc = spool__is_staged(move->spool, move->message->directory, move->message->name, &from_staged);
    if (!rc)
        rc = check_kept_name(move);
    if (rc)
        return rc;
    switch (move->to->kind) {
    case SPOOL_QUEUE:
    case SPOOL_FOLDER:
        *destination = staged && !goes_home(move) ? TO_STAGED : same_queue ? TO_HOME : TO_OTHER;
        return 0;
    case SPOOL_CLAIMED:
    case SPOOL_WORKER:
        *destination = TO_CLAIMED;
        if (move->message->state == SPOOL_OPEN && from_staged)
            return -EPERM;
        return same_queue || move->message->state != SPOOL_CLAIMED_STATE ? 0 : -EINVAL;
    case SPOOL_DEAD:
        *destination = TO_DEAD;
        return same_queue ? 0 : -EINVAL;
    default:
        return -EPERM;
    }
}

static int move_message(struct move *move) {
    enum destination destination;
    int rc = find_destination(move, &destination);
    if (!rc)
        rc = spool__change(move->spool);
    return rc ? rc : verbs[move->message->state][destination](move);
}

/* --- directories --- */

/* All leases of a worker go back; then its directory goes. */
static int release_worker(struct spool *spool, struct directory *worker) {
    int64_t number = worker->entry.key;
    struct message message;
    for (;;) {
        struct db_row *row = NULL;
        int rc = db_first(spool->db, &row, Q_message_list, db_int(number), db_int(0), db_int(1));
        if (rc == 1)
            spool__read_message(row, &message);
        db_done(row);
        if (rc == 1)
            rc = spool__release(spool, &message, NULL);
        else if (rc == 0)
            break;
        if (rc)
            return rc;
    }
    int rc = spool__directory(spool, number, &worker);
    return rc ? rc : spool__delete_directory(spool, worker);
}

/* A directory that stands in the way goes when it is empty and of the same kind. */
static int replace_directory(struct spool *spool, const struct directory *moved, int64_t to, const char *name) {
    struct directory *target;
    bool empty;
    int rc = spool__find_directory(spool, to, name, &target);
    if (rc)
        return rc == -ENOENT ? 0 : rc;
    if (target->kind != moved->kind)
        return moved->kind == SPOOL_LINK ? -EISDIR : -ENOTDIR;
    rc = spool__directory_is_empty(spool, target, &empty);
    if (!rc && !empty)
        rc = -ENOTEMPTY;
    return rc ? rc : spool__remove_directory(spool, target);
}

static int may_move_directory(struct spool *spool, const struct directory *moved, const struct directory *to,
                              const char *name) {
    bool staged = false, same_queue = spool__queue_of(spool, to) == spool__queue_of(spool, moved);
    switch (moved->kind) {
    case SPOOL_QUEUE:
        return to->kind == SPOOL_THE_ROOT ? 0 : -EPERM;
    case SPOOL_WORKER:
        if (to->kind == SPOOL_CLAIMED)
            return same_queue ? 0 : -EINVAL;
        return to->kind == SPOOL_QUEUE && same_queue ? 0 : -EPERM;
    case SPOOL_FOLDER:
    case SPOOL_LINK:
        if (to->kind != SPOOL_QUEUE && !(to->kind == SPOOL_FOLDER && moved->kind == SPOOL_LINK))
            return -EPERM;
        if (moved->kind == SPOOL_FOLDER && !same_queue)
            return -EPERM; /* its files are counted, and limited, where it is */
        if (spool__is_staged(spool, to->entry.key, name, &staged) != 0 || !staged)
            return -EPERM;
        return 0;
    default:
        return -EPERM;
    }
}

static int move_directory(struct spool *spool, struct directory *moved, struct directory *to, const char *name,
                          bool *elsewhere) {
    int64_t number = moved->entry.key, target = to->entry.key;
    struct message taken;
    int rc = may_move_directory(spool, moved, to, name);
    if (!rc)
        rc = spool__change(spool);
    if (rc)
        return rc;
    if (moved->kind == SPOOL_WORKER && to->kind == SPOOL_QUEUE) {
        *elsewhere = true;
        return release_worker(spool, moved);
    }
    rc = to->kind == SPOOL_THE_ROOT ? -ENOENT : spool__find_message(spool, target, name, &taken);
    if (rc == 0)
        return moved->kind == SPOOL_LINK ? -EEXIST : -ENOTDIR;
    if (rc == -ENOENT)
        rc = replace_directory(spool, moved, target, name);
    if (!rc)
        rc = spool__directory(spool, number, &moved);
    return rc ? rc : spool__move_directory(spool, moved, target, name);
}

/* --- the call --- */

static int find_target(struct spool *spool, int64_t to, const char *name, bool no_replace) {
    struct spool_entry taken;
    if (!no_replace)
        return 0;
    int rc = spool_lookup(spool, to, name, &taken);
    if (rc == 0)
        spool__promise(spool);
    return rc == 0 ? -EEXIST : rc == -ENOENT ? 0 : rc;
}

int spool_move(struct spool *spool, int64_t from, const char *from_name, int64_t to, const char *to_name,
               bool no_replace, struct spool_caller caller, bool *elsewhere) {
    struct message message;
    struct directory *directory, *moved;
    bool away = false;
    int rc = spool__name_is_valid(to_name);
    if (!rc)
        rc = spool__directory(spool, to, &directory);
    if (rc || (from == to && strcmp(from_name, to_name) == 0))
        return rc;
    rc = spool__find_message(spool, from, from_name, &message);
    bool is_message = rc == 0;
    if (rc == -ENOENT)
        rc = spool__find_directory(spool, from, from_name, &moved);
    if (!rc)
        rc = find_target(spool, to, to_name, no_replace);
    if (rc)
        return rc;
    if (is_message) {
        struct move move = {spool, &message, directory, to_name, caller, false};
        rc = move_message(&move);
        away = move.elsewhere;
    } else {
        rc = move_directory(spool, moved, directory, to_name, &away);
    }
    if (!rc && elsewhere)
        *elsewhere = away;
    return rc;
}

/* --- removal --- */

int spool_unlink(struct spool *spool, int64_t directory, const char *name) {
    struct message message;
    struct directory *found;
    int rc = spool__find_message(spool, directory, name, &message);
    if (!rc)
        rc = spool__change(spool);
    if (!rc)
        return message.state == SPOOL_CLAIMED_STATE ? spool__acknowledge(spool, &message)
                                                    : spool__cancel(spool, &message);
    if (rc == -ENOENT)
        rc = spool__find_directory(spool, directory, name, &found);
    if (!rc && found->kind != SPOOL_LINK)
        rc = -EISDIR;
    if (!rc)
        rc = spool__change(spool);
    return rc ? rc : spool__delete_directory(spool, found);
}
