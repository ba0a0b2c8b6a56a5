/* tick.c - what happens by itself: leases and backoffs end, held files are published, delayed messages fall due, old staged files
 * go. Everything is judged when anything looks, so that the moment at which a timer fires does not matter. */
#include "engine.h"

#include <errno.h>

#define MOST_AT_ONCE 1000

static int first_number(struct spool *spool, enum db_query query, int64_t limit, int64_t *number) {
    struct db_row *row = NULL;
    int rc = db_first(spool->db, &row, query, db_int(limit));
    if (rc == 1)
        *number = db_column_int(row, 0);
    db_done(row);
    return rc;
}

/* One thing less to wait for: due, or delayed by what remains. */
static int wait_on(struct spool *spool, const struct message *old) {
    struct message message = *old;
    spool__let_wait(spool, &message);
    return spool__update_message(spool, old, &message);
}

/* Its lease, backoff or hold is over. */
static int end(struct spool *spool, const struct message *old) {
    struct message message = *old;
    if (old->state == SPOOL_CLAIMED_STATE)
        return spool__fail(spool, old, "the lease ran out");
    if (old->state == SPOOL_HELD)
        return spool__publish(spool, old, &message, old->place, false);
    return wait_on(spool, old);
}

/* A delayed message is due, a staged file is too old. */
static int fall_due(struct spool *spool, const struct message *old) {
    if (old->state != SPOOL_STAGED)
        return wait_on(spool, old);
    spool__count(spool, old->queue, COUNT_STAGED_REMOVED, 1);
    return spool__delete_message(spool, old);
}

typedef int judge_message(struct spool *spool, const struct message *message);

static int judge_one(struct spool *spool, int64_t number, judge_message *judge) {
    struct message message;
    int rc = spool__message(spool, number, &message);
    if (!rc)
        rc = spool__change(spool);
    return rc ? rc : judge(spool, &message);
}

static int pass(struct spool *spool, enum db_query query, int64_t limit, judge_message *judge) {
    int64_t number;
    int rc = 1;
    for (int i = 0; i < MOST_AT_ONCE && rc == 1; i++) {
        rc = first_number(spool, query, limit, &number);
        if (rc == 1) {
            int judged = judge_one(spool, number, judge);
            if (judged)
                return judged;
        }
    }
    return rc < 0 ? rc : 0;
}

static int first_time(struct spool *spool, enum db_query query, int64_t *time_ns) {
    struct db_row *row = NULL;
    int rc = db_first(spool->db, &row, query);
    *time_ns = rc == 1 ? db_column_int(row, 0) : INT64_MAX;
    db_done(row);
    return rc < 0 ? rc : 0;
}

int spool__pass_time(struct spool *spool) {
    int rc = 0;
    if (spool->now.boot_ns >= spool->next_end_boot_ns) {
        rc = pass(spool, Q_message_ended, spool->now.boot_ns, end);
        if (!rc)
            rc = first_time(spool, Q_message_next_end, &spool->next_end_boot_ns);
    }
    if (!rc && spool->now.wall_ns >= spool->next_due_ns) {
        rc = pass(spool, Q_message_fallen_due, spool->now.wall_ns, fall_due);
        if (!rc)
            rc = first_time(spool, Q_message_next_due, &spool->next_due_ns);
    }
    if (!rc && spool->now.boot_ns >= spool->next_linger_boot_ns)
        rc = spool__mark_lingering(spool, &spool->next_linger_boot_ns);
    return rc;
}

int spool_tick(struct spool *spool, struct spool_time now) {
    spool->now = now;
    if (spool->read_only)
        return 0;
    if (db_broken(spool->db))
        return -EROFS;
    int rc = spool__pass_time(spool);
    spool->promised = false; /* nobody waits for what happens by itself */
    return rc;
}

int64_t spool_next_tick_ns(const struct spool *spool) {
    int64_t next =
        spool->next_end_boot_ns < spool->next_linger_boot_ns ? spool->next_end_boot_ns : spool->next_linger_boot_ns;
    if (spool->next_due_ns != INT64_MAX && spool->next_due_ns != INT64_MIN) {
        int64_t until_ns = spool->next_due_ns - spool->now.wall_ns;
        int64_t due_boot_ns = spool->now.boot_ns + (until_ns > 0 ? until_ns : 0);
        if (due_boot_ns < next)
            next = due_boot_ns;
    }
    return next;
}
