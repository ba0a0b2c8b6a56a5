/*
 * db.c - transactions, tickets, flushes and checkpoints. See db.h for the contract.
 *
 * Tickets. The owner's thread issues number n once COMMIT has returned, that is when the last frame of it has been
 * handed to the kernel. A flush that begins after that covers it. Whoever needs a flush takes the turn, reads
 * `issued`, flushes, and puts what it read into `synced`; those who come meanwhile wait, and the next to take the
 * turn flushes for all of them. A checkpoint takes the same turn. The mutex guards the turn only and is not held
 * while the disk works, so the owner commits on.
 */
#include "db_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int db__errno(int code) {
    switch (code) {
    case SQLITE_IOERR_NOMEM:
        return -ENOMEM;
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
        return -EEXIST;
    default:
        break;
    }
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return 0;
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return -EIO;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EUCLEAN;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_READONLY:
        return -EROFS;
    case SQLITE_TOOBIG:
        return -EFBIG;
    case SQLITE_ABORT:
        return -ECANCELED;
    default:
        return -EINVAL;
    }
}

int db__note_loss(struct db *db, int error) {
    if (db->begun && !db_in_transaction(db) && !db->lost)
        db->lost = error;
    return error;
}

/* --- transactions ----------------------------------------------------------------------------------------------- */

static int run_once(sqlite3_stmt *statement) {
    int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    return db__errno(code);
}

int db_begin(struct db *db) {
    assert(!db->begun);
    int rc = run_once(db->begin);
    if (rc)
        return rc;
    db->begun = true;
    db->lost = 0;
    return 0;
}

bool db_in_transaction(const struct db *db) {
    return !sqlite3_get_autocommit(db->sqlite);
}

void db_rollback(struct db *db) {
    if (db_in_transaction(db))
        (void)run_once(db->rollback);
    assert(!db_in_transaction(db));
    db->begun = false;
    db->lost = 0;
}

static int try_commit(struct db *db) {
    if (db->lost)
        return db->lost;
    if (db_broken(db) && sqlite3_txn_state(db->sqlite, "main") == SQLITE_TXN_WRITE)
        return -EIO;
    db->wrote = false;
    int rc = run_once(db->commit);
    if (rc == -EIO)
        db_break(db);
    return rc;
}

int db_commit(struct db *db, uint64_t *ticket) {
    assert(db->begun);
    int rc = try_commit(db);
    if (rc) {
        db_rollback(db);
        return rc;
    }
    db->begun = false;
    if (db->wrote) {
        atomic_fetch_add(&db->commits, 1);
        atomic_fetch_add(&db->issued, 1);
    }
    if (ticket)
        *ticket = atomic_load(&db->issued);
    return 0;
}

/* --- the disk --------------------------------------------------------------------------------------------------- */

static void take_turn(struct db *db) {
    while (db->turn_taken)
        pthread_cond_wait(&db->turn_over, &db->mutex);
    db->turn_taken = true;
    pthread_mutex_unlock(&db->mutex);
}

/* Everything up to `covered` is on stable storage when `rc` is 0. */
static void end_turn(struct db *db, int rc, uint64_t covered) {
    pthread_mutex_lock(&db->mutex);
    if (!rc)
        atomic_store(&db->synced, covered);
    db->turn_taken = false;
    pthread_cond_broadcast(&db->turn_over);
}

int db_sync(struct db *db, uint64_t ticket) {
    assert(ticket <= db_issued(db));
    pthread_mutex_lock(&db->mutex);
    while (!db_broken(db) && db_synced(db) < ticket) {
        if (db->turn_taken) {
            pthread_cond_wait(&db->turn_over, &db->mutex);
            continue;
        }
        take_turn(db);
        uint64_t covered = db_issued(db);
        end_turn(db, db_vfs_sync_log(db->vfs), covered);
    }
    pthread_mutex_unlock(&db->mutex);
    return db_broken(db) ? -EIO : 0;
}

int db_checkpoint(struct db *db) {
    int frames = 0, moved = 0;
    uint64_t covered = db_issued(db);

    assert(!db_in_transaction(db));
    pthread_mutex_lock(&db->mutex);
    take_turn(db);
    int rc = db_broken(db) ? -EIO : 0;
    if (!rc)
        rc = db__errno(sqlite3_wal_checkpoint_v2(db->sqlite, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &moved));
    if (!rc && frames != moved)
        rc = -EBUSY;
    end_turn(db, rc, covered);
    pthread_mutex_unlock(&db->mutex);
    if (rc)
        return rc;
    db->log_bytes = 0;
    atomic_fetch_add(&db->checkpoints, 1);
    return 0;
}

uint64_t db_synced(const struct db *db) {
    return atomic_load(&db->synced);
}

uint64_t db_issued(const struct db *db) {
    return atomic_load(&db->issued);
}

bool db_broken(const struct db *db) {
    return db_vfs_broken(db->vfs);
}

void db_break(struct db *db) {
    db_vfs_break(db->vfs);
}

const char *db_path(const struct db *db) {
    return db->path;
}

int64_t db_log_bytes(const struct db *db) {
    return db->log_bytes;
}

void db_counts(const struct db *db, struct db_counts *out) {
    struct db_vfs_counts now;
    db_vfs_counts(db->vfs, &now);
    out->commits = atomic_load(&db->commits);
    out->flushes = now.log_syncs - db->at_open.log_syncs;
    out->log_writes = now.log_writes - db->at_open.log_writes;
    out->log_bytes = now.log_bytes - db->at_open.log_bytes;
    out->checkpoints = atomic_load(&db->checkpoints);
    out->checkpoint_pages = now.main_writes - db->at_open.main_writes;
}

/* --- closing ---------------------------------------------------------------------------------------------------- */

void db__free(struct db *db, bool checkpoint) {
    if (!db)
        return;
    for (int i = 0; i < DB_QUERIES; i++)
        sqlite3_finalize(db->rows[i].statement);
    sqlite3_finalize(db->begin);
    sqlite3_finalize(db->commit);
    sqlite3_finalize(db->rollback);
    if (db->sqlite && checkpoint)
        sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    int rc = sqlite3_close(db->sqlite);
    assert(rc == SQLITE_OK);
    (void)rc;
    db_vfs_free(db->vfs);
    db__guard_release(db->path, db->guard, db->read_only);
    free(db->path);
    pthread_cond_destroy(&db->turn_over);
    pthread_mutex_destroy(&db->mutex);
    free(db);
}

/* The log must be gone after a clean end: one that stays behind would be read into whatever database is put in its
 * place, a restored copy for instance, and ruin it. After a failed flush it stays, being the only thing to recover
 * from. */
void db_close(struct db *db) {
    if (!db)
        return;
    assert(!db->begun);
    db__free(db, !db->read_only && !db_broken(db));
}
