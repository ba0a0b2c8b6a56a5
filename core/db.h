/*
 * db.h - the database under the engine.
 *
 * The only door to SQLite: nothing above this file knows which database it is. It offers named statements
 * (queries.sql), one transaction at a time, tickets, and the two kinds of commit that the queue needs:
 *
 *   relaxed   db_commit() writes the log and returns. A crash of this process loses nothing of it.
 *   durable   db_commit() gives a ticket; db_sync(ticket) returns once the log is on stable storage up to there.
 *             One flush serves every ticket that was issued before it began.
 *
 * One connection, opened exclusively; a second opener is refused (flock on `<database>.lock` as well, because the
 * exclusive lock of SQLite is taken late). All calls belong to one thread, the owner, except where a function
 * says "any thread".
 *
 * The latch: once any write-out to stable storage has failed, whoever made it, no later one may be believed. From
 * then on db_sync(), db_commit() and db_checkpoint() answer -EIO for good; reading goes on. See db_broken().
 *
 * All functions return 0 or a negative errno unless they say otherwise, and leave outputs untouched on failure. What
 * any of them may answer: -ENOSPC, -ENOMEM, -EIO; -EUCLEAN: the file is damaged; -EROFS: writing to what was opened
 * read_only.
 *
 * ENOSPC, ENOMEM and EIO in a statement can undo the whole transaction, not the statement alone. It is lost
 * then: db_in_transaction() is false, and until db_rollback() (or db_commit(), which rolls back) every statement that
 * writes and db_commit() answer the errno that it was lost with, so that nothing of the work is applied by itself.
 */
#ifndef SPOOL_DB_H
#define SPOOL_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queries.h" /* made from queries.sql: enum db_query { Q_..., DB_QUERIES } */

#define DB_MUST_USE __attribute__((warn_unused_result))

struct db;
struct db_row; /* a statement that stands on a row, or ran out of them */
struct db_tap;

/* What is bound to a statement, in the order of its ?1, ?2, ... */
struct db_value {
    enum { DB_NULL, DB_INT, DB_BYTES } type;
    int64_t number;
    const void *bytes; /* DB_BYTES: must stay valid until the statement is done */
    size_t length;
};
struct db_value db_int(int64_t number);
struct db_value db_text(const char *text); /* bound as a blob, since names are bytes, not text; NULL binds NULL */
struct db_value db_bytes(const void *bytes, size_t length);
struct db_value db_null(void);

/*
 * Open (make, when absent and not `read_only`) the database at `path`. The file gets mode 0600. `schema` is run in
 * one transaction when the file is new; `version` is the schema's number, kept in the file: another one is refused
 * (-ENOTSUP), and so is a file that is not a database of ours (-EINVAL). `log_bytes`: the log is grown to this size
 * with written zeros, so that flushing it changes no file size and space for acknowledgements is there on a full
 * disk; failing to grow (disk full) is not an error. `tap`, when not NULL, sees every write, sync, truncation and
 * removal (crash tests, fault injection). What a crash left in the log is on stable storage when this returns (unless
 * `read_only`). On failure `why` gets one sentence for a person. -EBUSY: somebody else has it open.
 */
struct db_options {
    const char *schema;
    int version;
    bool read_only; /* nothing is written; a log left by a crash is read too */
    int64_t log_bytes;
    struct db_tap *tap;
};
DB_MUST_USE int db_open(const char *path, const struct db_options *options, struct db **out, char *why,
                        size_t why_size);

/* Absolute and free of symbolic links: its log and its payloads are beside this one. */
const char *db_path(const struct db *db);

/* Checkpoint the whole log, remove it, close. With the latch set, or when the disk is full, the log stays for the
 * next open. The caller must have committed or rolled back. NULL is fine. */
void db_close(struct db *db);

/* --- transactions: one at a time, owner's thread ---------------------------------------------------------------- */

DB_MUST_USE int db_begin(struct db *db);
/* On 0, *ticket (may be NULL) is what db_sync() takes: it covers this transaction and all before it, so after one
 * that changed nothing it covers what was read. On failure everything since db_begin() is undone (rolled back here):
 * -ENOSPC, -ENOMEM: nothing was applied, the same work may be tried again; -EIO: unknown, and the latch is set (but
 * not if the transaction had been lost to a read error before). A transaction that only read succeeds with the latch
 * set too. */
DB_MUST_USE int db_commit(struct db *db, uint64_t *ticket);
void db_rollback(struct db *db);
/* Is a transaction open? False too after it was lost (see above). */
bool db_in_transaction(const struct db *db);

/* Any thread. Returns 0 once everything committed up to `ticket` is on stable storage. -EIO when the latch is set.
 * Calls may overlap: they queue, and one flush serves all that wait. */
DB_MUST_USE int db_sync(struct db *db, uint64_t ticket);
/* Any thread. The newest ticket known to be on stable storage; and the newest issued. */
uint64_t db_synced(const struct db *db);
uint64_t db_issued(const struct db *db);
/* Any thread. Has the latch been set? */
bool db_broken(const struct db *db);
/* Sets the latch by hand (a payload file's flush failed). Any thread. */
void db_break(struct db *db);

/* Owner's thread. Bytes of log written since the last complete checkpoint. */
int64_t db_log_bytes(const struct db *db);
/*
 * Move the log's content into the database file and let the log start over. Owner's thread, outside a transaction.
 * Flushes the log first unless db_synced() says that it is clean already, so call db_sync() elsewhere before, to keep
 * this short. Never runs beside db_sync(): each waits for the other. Everything issued so far is on stable storage
 * afterwards. -ENOSPC: the database file cannot grow; the log keeps everything. -EBUSY: a row is still standing.
 */
DB_MUST_USE int db_checkpoint(struct db *db);

/* Counts since opening, exact: for tests and .stats. Any thread. */
struct db_counts {
    uint64_t commits;               /* that wrote something */
    uint64_t flushes;               /* of the log, by db_sync(), a checkpoint or a restart of the log */
    uint64_t log_writes, log_bytes; /* calls, and what they wrote */
    uint64_t checkpoints, checkpoint_pages;
};
void db_counts(const struct db *db, struct db_counts *out);

/* --- statements, owner's thread, inside a transaction (reads may stand outside one) ----------------------------- */

/* Run a statement that yields no rows. Returns the number of rows changed, or a negative errno. -EEXIST for a
 * violated unique index or primary key, -EINVAL for another violated constraint (a bug of ours). Either undoes this
 * statement only. */
#define db_run(db, query, ...) \
    db_run_values(db, query, (const struct db_value[]){__VA_ARGS__}, \
                  sizeof((const struct db_value[]){__VA_ARGS__}) / sizeof(struct db_value))
DB_MUST_USE int db_run_values(struct db *db, enum db_query query, const struct db_value *values, size_t count);

/* Start a statement that yields rows, and step to the first. 1: *row stands on it; 0: there is none (*row is NULL,
 * the statement reset); or a negative errno. A row must be given back with db_done() before the same query is used
 * again; several different queries may stand on rows at once. */
#define db_first(db, row, query, ...) \
    db_first_values(db, row, query, (const struct db_value[]){__VA_ARGS__}, \
                    sizeof((const struct db_value[]){__VA_ARGS__}) / sizeof(struct db_value))
DB_MUST_USE int db_first_values(struct db *db, struct db_row **row, enum db_query query, const struct db_value *values,
                                size_t count);
DB_MUST_USE int db_next(struct db_row *row); /* 1, 0 or a negative errno; after 0 or an error db_done() is still due */
void db_done(struct db_row *row);            /* NULL is fine */

int64_t db_column_int(struct db_row *row, int column); /* NULL reads as 0 */
bool db_column_null(struct db_row *row, int column);
/* Valid until the row is stepped or given back. */
const void *db_column_bytes(struct db_row *row, int column, size_t *length);

/* SQLite's own integrity check, and its check of foreign keys: calls `report` with a sentence for each finding.
 * Returns the number of findings or a negative errno. */
DB_MUST_USE int db_integrity(struct db *db, void (*report)(void *context, const char *sentence), void *context);

/* --- the tap: what the crash and fault tests see and do --------------------------------------------------------- */

enum db_file { DB_FILE_MAIN, DB_FILE_LOG, DB_FILE_OTHER };
enum db_event { DB_WRITE, DB_SYNC, DB_TRUNCATE, DB_DELETE, DB_OPEN };
/*
 * Called before the real call is made, in the thread that makes it, under no lock of ours. Returning a negative errno
 * (-EIO, -ENOSPC) makes the call fail with it instead of happening. A write is seen in the form in which it reaches
 * the file (several frames of the log at once); a sync of a log to which nothing was written since the last one does
 * not happen and is not seen. `bytes` is NULL but for DB_WRITE; for DB_TRUNCATE `offset` is the new size. `path` is
 * the file's.
 */
struct db_tap {
    int (*see)(struct db_tap *tap, enum db_event event, enum db_file file, const char *path, const void *bytes,
               size_t length, int64_t offset);
};

#endif
