/* commit.c - the end of a batch: its commit, or its undoing in the database and in memory; and what keeps the disk tidy. */
#include "engine.h"

#include <errno.h>

static void undo_all(struct spool *spool) {
    payload_undoom(&spool->payloads, spool__ticket(spool));
    while (spool->undos > 0) {
        struct undo last = spool->undo[--spool->undos];
        if (last.rollback)
            last.rollback(last.what);
    }
    if (spool->reserve_ticket == spool__ticket(spool))
        spool->reserve_ticket = 0;
    spool__forget_directories(spool);
    spool->next_end_boot_ns = spool->next_due_ns = spool->next_linger_boot_ns = INT64_MIN;
    spool->changed = false;
    spool->promised = false;
    spool->poison = 0;
}

void spool_rollback(struct spool *spool) {
    db_rollback(spool->db);
    undo_all(spool);
}

static int commit_changes(struct spool *spool, uint64_t *ticket) {
    int rc = spool->poison;
    if (!rc)
        rc = spool__write_directories(spool);
    if (!rc)
        rc = db_commit(spool->db, ticket);
    if (rc)
        return rc == -EIO || rc == -ENOSPC ? rc : -ENOMEM;
    return 0;
}

int spool_commit(struct spool *spool, uint64_t *ticket) {
    uint64_t issued = db_issued(spool->db);
    if (spool->changed) {
        int rc = commit_changes(spool, &issued);
        if (rc) {
            db_rollback(spool->db);
            undo_all(spool);
            return rc;
        }
        payload_confirm(&spool->payloads, issued);
    }
    for (size_t i = 0; i < spool->undos; i++) {
        if (spool->undo[i].commit)
            spool->undo[i].commit(spool->undo[i].what);
    }
    spool->undos = 0;
    spool->changed = false;
    if (ticket)
        *ticket = issued;
    return 0;
}

int spool_sync(struct spool *spool, uint64_t ticket) {
    return db_sync(spool->db, ticket);
}

bool spool_broken(const struct spool *spool) {
    return db_broken(spool->db);
}

bool spool_wants_checkpoint(const struct spool *spool) {
    return !spool->read_only && db_log_bytes(spool->db) > spool->log_limit_bytes;
}

int spool_checkpoint(struct spool *spool) {
    return db_checkpoint(spool->db);
}

bool spool_wants_reap(struct spool *spool) {
    return payloads_reapable(&spool->payloads, db_synced(spool->db));
}

void spool_reap(struct spool *spool) {
    payloads_reap(&spool->payloads, db_synced(spool->db));
}
