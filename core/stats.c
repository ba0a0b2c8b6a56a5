/* stats.c - the counters, as `.stats` shows them. */
#include "engine.h"

static const char *const names[SPOOL_STATS] = {
    [SPOOL_STAT_WAITING] = "waiting",
    [SPOOL_STAT_READY] = "ready",
    [SPOOL_STAT_DELAYED] = "delayed",
    [SPOOL_STAT_BLOCKED] = "blocked",
    [SPOOL_STAT_CLAIMED] = "claimed",
    [SPOOL_STAT_DEAD] = "dead",
    [SPOOL_STAT_STAGED] = "staged",
    [SPOOL_STAT_OLDEST_READY_SECONDS] = "oldest_ready_seconds",
    [SPOOL_STAT_BYTES] = "bytes",
    [SPOOL_STAT_PUBLISHED] = "published",
    [SPOOL_STAT_ACKNOWLEDGED] = "acknowledged",
    [SPOOL_STAT_RELEASED] = "released",
    [SPOOL_STAT_FAILED] = "failed",
    [SPOOL_STAT_BURIED] = "buried",
    [SPOOL_STAT_CANCELLED] = "cancelled",
    [SPOOL_STAT_STAGED_REMOVED] = "staged_removed",
};

const char *spool_stat_name(enum spool_stat stat) {
    return names[stat];
}

static int oldest_ready(struct spool *spool, int64_t queue, int64_t *oldest_ns) {
    struct db_row *row = NULL;
    int rc = db_first(spool->db, &row, Q_message_oldest_ready, db_int(queue));
    if (rc == 1 && db_column_int(row, 0) < *oldest_ns)
        *oldest_ns = db_column_int(row, 0);
    db_done(row);
    return rc < 0 ? rc : 0;
}

/* For the root: over all queues. */
static int oldest_ready_anywhere(struct spool *spool, int64_t *oldest_ns) {
    for (int64_t queue = 0;;) {
        struct db_row *row = NULL;
        int rc = db_first(spool->db, &row, Q_queue_next, db_int(queue));
        if (rc == 1)
            queue = db_column_int(row, 0);
        db_done(row);
        if (rc == 1)
            rc = oldest_ready(spool, queue, oldest_ns);
        else
            return rc;
        if (rc)
            return rc;
    }
}

int spool_stats(struct spool *spool, int64_t queue, int64_t values[SPOOL_STATS]) {
    struct directory *directory;
    int64_t oldest_ns = INT64_MAX, edited = 0;
    int rc = spool__directory(spool, queue, &directory);
    if (!rc)
        rc = queue == SPOOL_ROOT ? oldest_ready_anywhere(spool, &oldest_ns) : oldest_ready(spool, queue, &oldest_ns);
    if (!rc)
        rc = spool__count_edited(spool, queue, &edited);
    if (!rc)
        rc = spool__directory(spool, queue, &directory);
    if (rc)
        return rc;
    const int64_t *count = directory->count;
    const int64_t all[SPOOL_STATS] = {
        [SPOOL_STAT_WAITING] = count[COUNT_READY] + count[COUNT_DELAYED],
        [SPOOL_STAT_READY] = count[COUNT_READY] - edited,
        [SPOOL_STAT_BLOCKED] = edited,
        [SPOOL_STAT_DELAYED] = count[COUNT_DELAYED],
        [SPOOL_STAT_CLAIMED] = count[COUNT_CLAIMED],
        [SPOOL_STAT_DEAD] = count[COUNT_DEAD],
        [SPOOL_STAT_STAGED] = count[COUNT_STAGED],
        [SPOOL_STAT_OLDEST_READY_SECONDS] =
            oldest_ns < spool->now.wall_ns ? (spool->now.wall_ns - oldest_ns) / SECOND_NS : 0,
        [SPOOL_STAT_BYTES] = count[COUNT_BYTES],
        [SPOOL_STAT_PUBLISHED] = count[COUNT_PUBLISHED],
        [SPOOL_STAT_ACKNOWLEDGED] = count[COUNT_ACKNOWLEDGED],
        [SPOOL_STAT_RELEASED] = count[COUNT_RELEASED],
        [SPOOL_STAT_FAILED] = count[COUNT_FAILED],
        [SPOOL_STAT_BURIED] = count[COUNT_BURIED],
        [SPOOL_STAT_CANCELLED] = count[COUNT_CANCELLED],
        [SPOOL_STAT_STAGED_REMOVED] = count[COUNT_STAGED_REMOVED],
    };
    for (int i = 0; i < SPOOL_STATS; i++)
        values[i] = all[i];
    return 0;
}
