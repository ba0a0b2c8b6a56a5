/*
 * lease.c - what happens to a message that is, or becomes, somebody's: claim, renew, release, fail, acknowledge, forward,
 * bury, requeue, cancel.
 *
 * move.c and tick.c have decided that it is this that happens; here are the errors that remain, and the change.
 */
#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The message, no longer a lease, as it will stand under its own name. */
static void let_go(const struct spool *spool, const struct message *old, struct message *message) {
    *message = *old;
    memcpy(message->name, spool__own_name(old), strlen(spool__own_name(old)) + 1);
    message->home_name[0] = '\0';
    message->holder = -1;
    message->end_ns = message->end_boot_ns = 0;
    message->flushed = 0;
    message->claimed_ns = 0;
    message->held = false;
    message->ctime_ns = spool->now.wall_ns;
}

/* A name that was asked for is taken by the rules; its own is numbered when it has to be. */
static int name_at_home(struct spool *spool, const struct message *old, struct message *message, const char *asked) {
    if (!asked || strcmp(asked, old->name) == 0 || strcmp(asked, message->name) == 0)
        return spool__fit_name(spool, message->queue, message->name, message->number, message->name);
    int64_t place = message->place;
    int rc = spool__take_name(spool, message->queue, asked, message->number, &place);
    if (!rc)
        memcpy(message->name, asked, strlen(asked) + 1);
    message->place = place;
    return rc;
}

static int64_t lease_ns(const struct settings *settings) {
    int64_t lease = settings->value[SPOOL_LEASE], longest = settings->value[SPOOL_MAX_LEASE];
    return lease < longest ? lease : longest;
}

int spool__claim(struct spool *spool, const struct message *message, const struct directory *to, const char *name,
                 struct spool_caller caller) {
    const struct settings *settings;
    struct message lease = *message;
    int rc = spool__settings(spool, message->queue, &settings);
    if (rc)
        return rc;
    bool same_queue = spool__queue_of(spool, to) == message->queue;
    if (message->state == SPOOL_OPEN || message->state == SPOOL_HELD ||
        spool__draft_of(spool, message->number, WRITES_EDIT))
        return -ETXTBSY;
    if (message->state == SPOOL_DELAYED || (settings->value[SPOOL_PAUSED] && same_queue))
        return -EAGAIN;
    rc = spool__is_taken(spool, to->entry.key, name, 0);
    if (rc)
        return rc < 0 ? rc : -EEXIST;
    if (!same_queue)
        return -EINVAL;
    lease.flushed = spool__number(spool); /* tells it from other leases of the same message */
    if (lease.flushed < 0)
        return (int)lease.flushed;
    lease.state = SPOOL_CLAIMED_STATE;
    lease.directory = to->entry.key;
    if (strcmp(name, message->name) != 0)
        memcpy(lease.home_name, message->name, sizeof lease.home_name);
    memcpy(lease.name, name, strlen(name) + 1);
    lease.end_ns = spool->now.wall_ns + lease_ns(settings);
    lease.end_boot_ns = spool->now.boot_ns + lease_ns(settings);
    lease.due_ns = 0;
    lease.attempts++;
    lease.holder = (int64_t)caller.uid;
    lease.claimed_ns = spool->now.wall_ns;
    lease.ctime_ns = spool->now.wall_ns;
    return spool__update_message(spool, message, &lease);
}

int spool__renew(struct spool *spool, const struct message *message, int64_t end_ns) {
    const struct settings *settings;
    struct message renewed = *message;
    int rc = spool__settings(spool, message->queue, &settings);
    if (rc)
        return rc;
    int64_t length = end_ns ? end_ns - spool->now.wall_ns : lease_ns(settings);
    if (length > settings->value[SPOOL_MAX_LEASE])
        length = settings->value[SPOOL_MAX_LEASE];
    renewed.end_ns = spool->now.wall_ns + length;
    renewed.end_boot_ns = spool->now.boot_ns + length;
    renewed.ctime_ns = spool->now.wall_ns;
    return spool__update_message(spool, message, &renewed);
}

int spool__hand_over(struct spool *spool, const struct message *message, const struct directory *to, const char *name) {
    struct message moved = *message;
    int rc = spool__is_taken(spool, to->entry.key, name, message->number);
    if (rc)
        return rc < 0 ? rc : -EEXIST;
    memcpy(moved.home_name, spool__own_name(message), strlen(spool__own_name(message)) + 1);
    if (strcmp(moved.home_name, name) == 0)
        moved.home_name[0] = '\0';
    memcpy(moved.name, name, strlen(name) + 1);
    moved.directory = to->entry.key;
    if (moved.directory != message->directory && to->kind == SPOOL_WORKER)
        moved.holder = (int64_t)to->uid; /* who works there must be able to read it */
    moved.ctime_ns = spool->now.wall_ns;
    return spool__update_message(spool, message, &moved);
}

int spool__release(struct spool *spool, const struct message *message, const char *name) {
    struct message released;
    let_go(spool, message, &released);
    released.directory = released.queue;
    int rc = name_at_home(spool, message, &released, name);
    if (!rc)
        rc = spool__end_checkpoints(spool, message->number);
    if (rc)
        return rc;
    released.attempts--;
    spool__let_wait(spool, &released);
    spool__count(spool, released.queue, COUNT_RELEASED, 1);
    return spool__update_message(spool, message, &released);
}

static int to_dead(struct spool *spool, const struct message *message, const char *name, const char *why) {
    struct message dead;
    struct directory *directory;
    int rc = spool__special(spool, message->queue, SPOOL_DEAD, &directory);
    if (rc)
        return rc;
    let_go(spool, message, &dead);
    if (name && strcmp(name, message->name) != 0)
        memcpy(dead.name, name, strlen(name) + 1);
    rc = spool__fit_name(spool, directory->entry.key, dead.name, dead.number, dead.name);
    if (!rc)
        rc = spool__end_checkpoints(spool, message->number);
    if (rc)
        return rc;
    dead.directory = directory->entry.key;
    dead.state = SPOOL_DEAD_STATE;
    dead.due_ns = 0;
    dead.end_ns = spool->now.wall_ns;
    snprintf(dead.reason, sizeof dead.reason, "%s", why);
    return spool__update_message(spool, message, &dead);
}

int spool__bury(struct spool *spool, const struct message *message, const char *name, const char *why) {
    int rc = to_dead(spool, message, name, why);
    if (!rc)
        spool__count(spool, message->queue, COUNT_BURIED, 1);
    return rc;
}

static int64_t backoff_ns(const struct settings *settings, int64_t attempts) {
    int64_t delay = settings->value[SPOOL_RETRY_DELAY], longest = settings->value[SPOOL_RETRY_MAX];
    for (int64_t i = 1; i < attempts && delay < longest; i++)
        delay *= 2;
    return delay < longest ? delay : longest;
}

int spool__fail(struct spool *spool, const struct message *message, const char *why) {
    const struct settings *settings;
    struct message failed;
    int rc = spool__settings(spool, message->queue, &settings);
    if (rc)
        return rc;
    int64_t max_attempts = settings->value[SPOOL_MAX_ATTEMPTS];
    if (max_attempts && message->attempts >= max_attempts) {
        char reason[sizeof failed.reason];
        snprintf(reason, sizeof reason, "attempt %lld of %lld failed: %s", (long long)message->attempts,
                 (long long)max_attempts, why);
        rc = to_dead(spool, message, NULL, reason);
        if (!rc)
            spool__count(spool, message->queue, COUNT_FAILED, 1);
        return rc;
    }
    let_go(spool, message, &failed);
    failed.directory = failed.queue;
    rc = spool__fit_name(spool, failed.queue, failed.name, failed.number, failed.name);
    if (!rc)
        rc = spool__end_checkpoints(spool, message->number);
    if (rc)
        return rc;
    int64_t delay = backoff_ns(settings, failed.attempts);
    failed.end_boot_ns = spool->now.boot_ns + delay;
    failed.end_ns = spool->now.wall_ns + delay;
    spool__let_wait(spool, &failed);
    spool__count(spool, failed.queue, COUNT_FAILED, 1);
    return spool__update_message(spool, message, &failed);
}

int spool__requeue(struct spool *spool, const struct message *message, const char *name) {
    struct message again;
    let_go(spool, message, &again);
    again.directory = again.queue;
    int rc = name_at_home(spool, message, &again, name);
    if (rc)
        return rc;
    again.attempts = 0;
    again.reason[0] = '\0';
    spool__let_wait(spool, &again);
    spool__promise(spool);
    return spool__update_message(spool, message, &again);
}

/* Leaving its queue, in whichever way, counts there as this. */
static enum counter leaving_counter(enum spool_state state) {
    return state == SPOOL_CLAIMED_STATE ? COUNT_ACKNOWLEDGED : COUNT_CANCELLED;
}

int spool__forward(struct spool *spool, const struct message *message, int64_t queue, const char *name,
                   struct spool_caller caller) {
    struct message forwarded;
    int64_t place = 0;
    int rc = spool__has_room(spool, queue, message->content.size, false);
    if (!rc)
        rc = spool__take_name(spool, queue, name, message->number, &place);
    if (!rc)
        rc = spool__end_checkpoints(spool, message->number);
    if (rc)
        return rc;
    let_go(spool, message, &forwarded);
    memcpy(forwarded.name, name, strlen(name) + 1);
    forwarded.queue = forwarded.directory = queue;
    forwarded.attempts = 0;
    forwarded.reason[0] = '\0';
    forwarded.uid = caller.uid;
    forwarded.gid = caller.gid;
    if (spool__is_published(message->state))
        spool__count(spool, message->queue, leaving_counter(message->state), 1);
    spool__promise(spool);
    return spool__publish(spool, message, &forwarded, place, false);
}
