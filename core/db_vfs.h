/*
 * db_vfs.h - what stands between SQLite and its files.
 *
 * A thin layer over the system's own VFS, one per open database, registered under a name of its own. It does four
 * things:
 *
 *   the tap     Everything that reaches a file is shown to the tap first, which may let it fail instead.
 *   the latch   Syncs run one at a time, and after the first that failed every other one fails. The kernel reports a
 *               lost write-out to one caller only; without the mutex a second caller could be told that all is well.
 *               A file to which nothing was written since its last sync is not synced again.
 *   the log     SQLite writes a frame of the log as 24 bytes and then a page. Writes that continue each other are
 *               gathered and written at once. The last frame of a commit is marked, and is never held back: it goes
 *               out, with all that waits before it, inside the xWrite that brings it, so that SQLite learns of a
 *               failure while the commit can still be undone. Outside a commit nothing that matters is waiting.
 *   read_only   Lock requests above SHARED are granted as SHARED: SQLite asks for EXCLUSIVE in order to keep the
 *               index of the log in memory, and a file opened for reading cannot be given that. The log is opened for
 *               reading; one that is absent reads as empty; nothing is made or deleted.
 *
 * There are no shared-memory methods: SQLite can use the log in exclusive locking mode alone, and never makes a -shm
 * file.
 */
#ifndef SPOOL_DB_VFS_H
#define SPOOL_DB_VFS_H

#include <stdbool.h>
#include <stdint.h>

#include "db.h"

struct db_vfs;

DB_MUST_USE int db_vfs_new(struct db_tap *tap, bool read_only, struct db_vfs **out);
void db_vfs_free(struct db_vfs *vfs); /* no file may be open; NULL is fine */

/* Under which SQLite finds it. */
const char *db_vfs_name(const struct db_vfs *vfs);

/* Absolute, free of symbolic links: the path under which SQLite will open it. */
DB_MUST_USE int db_vfs_full_path(const char *path, char *out, int size);

/* Any thread, once the log is open: flush what SQLite has written to the log. 0 or -EIO (and the latch is set). */
DB_MUST_USE int db_vfs_sync_log(struct db_vfs *vfs);

/* Owner's thread: write zeros behind the end of the log up to `bytes`. Frames are found by their checksums, so zeros
 * after the last one end the log just as the end of the file does. */
DB_MUST_USE int db_vfs_grow_log(struct db_vfs *vfs, int64_t bytes);

/* Any thread. */
bool db_vfs_broken(const struct db_vfs *vfs);
void db_vfs_break(struct db_vfs *vfs);

/* Counts of calls that reached a file: syncs and writes of the log, and writes of the database file. Any thread. */
struct db_vfs_counts {
    uint64_t log_syncs, log_writes, log_bytes, main_writes;
};
void db_vfs_counts(const struct db_vfs *vfs, struct db_vfs_counts *out);

#endif
