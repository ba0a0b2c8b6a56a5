/*
 * batch.c - the open batch: its transaction, the numbers it may give, and how memory follows when it is undone.
 *
 * What the engine keeps in memory beside the database (directories, drafts, pins) changes with the operations. Each such change
 * leaves an undo, so that a rollback brings memory back to the last commit: the same operations can then be tried again.
 */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#define SPACE_LOOK_NS (SECOND_NS / 10)

int spool__change(struct spool *spool) {
    if (spool->read_only || db_broken(spool->db))
        return -EROFS;
    if (spool->poison)
        return spool->poison;
    if (!db_in_transaction(spool->db)) {
        int rc = db_begin(spool->db);
        if (rc)
            return rc;
    }
    spool->changed = true;
    return 0;
}

int spool__ran(struct spool *spool, int result) {
    if (result >= 0)
        return 0;
    if (!spool->poison)
        spool->poison = result;
    return result;
}

bool spool_changed(const struct spool *spool) {
    return spool->changed || spool->undos > 0;
}

void spool__promise(struct spool *spool) {
    spool->promised = true;
}

bool spool_promised(struct spool *spool) {
    bool promised = spool->promised;
    spool->promised = false;
    return promised;
}

uint64_t spool__ticket(const struct spool *spool) {
    return db_issued(spool->db) + 1;
}

int64_t spool__number(struct spool *spool) {
    if (spool->reserve_ticket && db_synced(spool->db) >= spool->reserve_ticket) {
        spool->numbers_end = spool->numbers_reserved;
        spool->reserve_ticket = 0;
    }
    if (spool->numbers_end - spool->next_number < NUMBER_BLOCK / 2 && !spool->reserve_ticket) {
        int64_t end = spool->numbers_end + NUMBER_BLOCK;
        int rc = spool__run(spool, Q_spool_reserve, db_int(end));
        if (rc)
            return rc;
        spool->numbers_reserved = end;
        spool->reserve_ticket = spool__ticket(spool);
        spool__promise(spool); /* so that somebody flushes it soon */
    }
    if (spool->next_number >= spool->numbers_end) {
        /* Nobody has flushed for half a block. */
        int rc = spool->reserve_ticket <= db_issued(spool->db) ? db_sync(spool->db, spool->reserve_ticket) : -EAGAIN;
        if (rc)
            return rc;
        spool->numbers_end = spool->numbers_reserved;
        spool->reserve_ticket = 0;
    }
    return spool->next_number++;
}

void spool__wake_at(struct spool *spool, int64_t boot_ns) {
    if (boot_ns < spool->next_end_boot_ns)
        spool->next_end_boot_ns = boot_ns;
}

void spool__due_at(struct spool *spool, int64_t wall_ns) {
    if (wall_ns < spool->next_due_ns)
        spool->next_due_ns = wall_ns;
}

int spool__later(struct spool *spool, void (*commit)(void *), void (*rollback)(void *), void *what) {
    if (spool->undos == spool->undo_capacity) {
        size_t capacity = spool->undo_capacity ? spool->undo_capacity * 2 : 64;
        struct undo *bigger = realloc(spool->undo, capacity * sizeof *bigger);
        if (!bigger)
            return -ENOMEM;
        spool->undo = bigger;
        spool->undo_capacity = capacity;
    }
    spool->undo[spool->undos++] = (struct undo){commit, rollback, what};
    return 0;
}

int spool__doom(struct spool *spool, const struct content_summary *content) {
    if (!content->payload)
        return 0;
    if (content->in_file) {
        int rc = payload_doom(&spool->payloads, content->payload, spool__ticket(spool));
        if (rc && !spool->poison)
            spool->poison = rc;
        return rc;
    }
    if (payload_is_pinned(&spool->payloads, content->payload)) {
        payload_let_go(&spool->payloads, content->payload);
        return spool__run(spool, Q_doomed_insert, db_int(content->payload));
    }
    return spool__run(spool, Q_payload_delete, db_int(content->payload));
}

int spool_space(struct spool *spool, int64_t *total_bytes, int64_t *free_bytes) {
    struct statvfs disk;
    if (fstatvfs(spool->payloads.directory, &disk) != 0)
        return -errno;
    *total_bytes = (int64_t)disk.f_blocks * (int64_t)disk.f_frsize;
    *free_bytes = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
    return 0;
}

int64_t spool__free_bytes(struct spool *spool) {
    int64_t boot_ns = spool->now.boot_ns, total;
    if (!spool->space_checked_boot_ns || boot_ns - spool->space_checked_boot_ns > SPACE_LOOK_NS ||
        boot_ns < spool->space_checked_boot_ns) {
        if (spool_space(spool, &total, &spool->space_free_bytes) != 0)
            spool->space_free_bytes = INT64_MAX;
        spool->space_checked_boot_ns = boot_ns;
    }
    return spool->space_free_bytes;
}
