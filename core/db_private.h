/*
 * db_private.h - what the files of the database share: db.c (transactions, tickets), db_row.c (statements),
 * db_open.c (opening), db_guard.c (one opener).
 */
#ifndef SPOOL_DB_PRIVATE_H
#define SPOOL_DB_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include "db.h"
#include "db_vfs.h"

enum { DB_APPLICATION_ID = 0x53706c66 }; /* "Splf", in the header of every database of ours */

struct db_row {
    struct db *db;
    sqlite3_stmt *statement; /* prepared when first used */
    bool standing;           /* between db_first() and db_done() */
};

struct db {
    sqlite3 *sqlite;
    struct db_vfs *vfs;
    int guard;  /* descriptor of the lock file, -1: none */
    char *path; /* absolute */
    bool read_only;
    int64_t frame_bytes;

    sqlite3_stmt *begin, *commit, *rollback;
    struct db_row rows[DB_QUERIES];

    bool begun;        /* db_begin() was called, and neither db_commit() nor db_rollback() since */
    int lost;          /* the errno with which SQLite gave the transaction up by itself, or 0 */
    bool wrote;        /* the last COMMIT wrote to the log */
    int64_t log_bytes; /* written since the last complete checkpoint */

    /* Whose turn it is at the disk: a flush or a checkpoint, one at a time. `mutex` is never held during either. */
    pthread_mutex_t mutex;
    pthread_cond_t turn_over;
    bool turn_taken;

    atomic_uint_fast64_t issued, synced;
    atomic_uint_fast64_t commits, checkpoints;
    struct db_vfs_counts at_open;
};

/* An extended result code of SQLite as a negative errno; 0 for OK, ROW and DONE. */
int db__errno(int code);

/* After an error of a statement: if SQLite gave up the transaction with it, remember so. Returns `error`. */
int db__note_loss(struct db *db, int error);

/* Take the lock file of the database at `path`, shared or exclusive, until it is released. With `shared` an
 * absent lock file is left absent and *out is -1: SQLite's own locks still tell readers from a writer that comes
 * later. -EBUSY: taken; *pid is by whom, or 0 if that cannot be told. */
DB_MUST_USE int db__guard_take(const char *path, bool shared, int *out, int *pid);
void db__guard_release(const char *path, int guard, bool shared);

/* Free everything. The log is checkpointed and removed when `checkpoint`, and left as it is otherwise. */
void db__free(struct db *db, bool checkpoint);

#endif
