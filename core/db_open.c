/*
 * db_open.c - opening a database: lock, settings, whose it is, schema, log.
 *
 * Nothing is written before the file is known to be ours or empty, and the log of a file that is refused is left as
 * it was found. A file is new as long as it holds no table and no number of an application: the schema, the
 * application's and the version's number come in one transaction, so a kill in between leaves a file that is still
 * new.
 *
 * Reading only. SQLite 3.40 can open a file in WAL mode for reading only if it can make or open a -shm file, or if it
 * has the exclusive lock, which the system does not grant on a descriptor opened for reading. db_vfs.h tells how the
 * layer below helps: the index of the log is then built in memory, and no file is made or changed. A rollback
 * journal, which exists only while a new database is made, cannot be played back so: that open fails.
 */
#include "db_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct opening {
    char path[1024];
    const struct db_options *options;
    struct db *db;
    char *why;
    size_t why_size;
};

__attribute__((format(printf, 3, 4))) static int refuse(struct opening *o, int error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (o->why_size)
        vsnprintf(o->why, o->why_size, format, arguments);
    va_end(arguments);
    return error;
}

static int refuse_busy(struct opening *o, int pid) {
    if (pid)
        return refuse(o, -EBUSY, "%s is in use by another spoolfs or spool (pid %d)", o->path, pid);
    return refuse(o, -EBUSY, "%s is in use by another spoolfs or spool", o->path);
}

static int refuse_errno(struct opening *o, int error) {
    return refuse(o, error, "%s cannot be opened: %s", o->path, strerror(-error));
}

/* For what SQLite answered. */
static int refuse_code(struct opening *o, int code) {
    if ((code & 0xff) == SQLITE_NOTADB)
        return refuse(o, -EINVAL, "%s is not a database of spoolfs", o->path);
    if ((code & 0xff) == SQLITE_BUSY)
        return refuse_busy(o, 0);
    int error = db__errno(code);
    if (error == -EINVAL || error == -EUCLEAN)
        return refuse(o, error, "%s cannot be opened: %s", o->path, sqlite3_errmsg(o->db->sqlite));
    return refuse_errno(o, error);
}

/* Run what yields no rows, or rows that nobody needs. */
static int execute(struct opening *o, const char *sql) {
    int code = sqlite3_exec(o->db->sqlite, sql, NULL, NULL, NULL);
    return code ? refuse_code(o, code) : 0;
}

static int number(struct opening *o, const char *sql, int64_t *out) {
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(o->db->sqlite, sql, -1, &statement, NULL);
    if (!code && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        *out = sqlite3_column_int64(statement, 0);
        code = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    return code ? refuse_code(o, code) : 0;
}

/* --- the steps -------------------------------------------------------------------------------------------------- */

static int take_guard(struct opening *o) {
    int pid = 0;
    int rc = db__guard_take(o->path, o->options->read_only, &o->db->guard, &pid);
    if (rc == -EBUSY)
        return refuse_busy(o, pid);
    return rc ? refuse_errno(o, rc) : 0;
}

/* SQLite would make the file with the mode 0644. mknod makes it without opening it: closing a descriptor of a
 * database outside SQLite drops the locks that this process holds on it. */
static int make_file(struct opening *o) {
    if (!o->options->read_only && mknod(o->path, S_IFREG | 0600, 0) && errno != EEXIST)
        return refuse_errno(o, -errno);
    struct stat status;
    if (stat(o->path, &status))
        return refuse_errno(o, -errno);
    if (!S_ISREG(status.st_mode))
        return refuse(o, -EINVAL, "%s is not a file", o->path);
    return 0;
}

static int open_sqlite(struct opening *o) {
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    flags |= o->options->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    struct db *db = o->db;

    int rc = db_vfs_new(o->options->tap, o->options->read_only, &db->vfs);
    if (rc)
        return refuse_errno(o, rc);
    int code = sqlite3_open_v2(o->path, &db->sqlite, flags, db_vfs_name(db->vfs));
    if (code == SQLITE_CANTOPEN)
        return refuse(o, -EACCES, "%s cannot be opened: %s", o->path, strerror(sqlite3_system_errno(db->sqlite)));
    if (code)
        return refuse_code(o, code);
    sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    /* locking_mode comes before anything that touches the file. */
    return execute(o, "PRAGMA locking_mode = EXCLUSIVE;"
                      "PRAGMA page_size = 4096;"
                      "PRAGMA cache_size = -16384;"
                      "PRAGMA cache_spill = OFF;"
                      "PRAGMA temp_store = MEMORY;"
                      "PRAGMA mmap_size = 0;"
                      "PRAGMA foreign_keys = OFF;"
                      "PRAGMA secure_delete = OFF;"
                      "PRAGMA trusted_schema = OFF;");
}

static int identify(struct opening *o, bool *is_new) {
    int64_t application = 0, version = 0, objects = 0;
    int rc = number(o, "PRAGMA application_id", &application);
    if (!rc)
        rc = number(o, "PRAGMA user_version", &version);
    if (!rc)
        rc = number(o, "SELECT count(*) FROM sqlite_schema", &objects);
    if (rc)
        return rc;
    *is_new = !application && !version && !objects;
    if (*is_new && o->options->read_only)
        return refuse(o, -EINVAL, "%s is empty", o->path);
    if (*is_new)
        return 0;
    if (application != DB_APPLICATION_ID)
        return refuse(o, -EINVAL, "%s is the database of another program", o->path);
    if (version != o->options->version)
        return refuse(o, -ENOTSUP, "%s has format %lld, made by %s spoolfs: this one reads format %d", o->path,
                      (long long)version, version > o->options->version ? "a newer" : "an older", o->options->version);
    return 0;
}

static int make_schema(struct opening *o) {
    char numbers[128];
    snprintf(numbers, sizeof(numbers), "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
             DB_APPLICATION_ID, o->options->version);
    int rc = execute(o, "BEGIN IMMEDIATE");
    if (!rc)
        rc = execute(o, o->options->schema);
    if (!rc)
        rc = execute(o, numbers);
    return rc;
}

static int set_log_mode(struct opening *o) {
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(o->db->sqlite, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
    if (!code)
        code = sqlite3_step(statement);
    bool done = code == SQLITE_ROW && !strcmp((const char *)sqlite3_column_text(statement, 0), "wal");
    sqlite3_finalize(statement);
    if (!done)
        return refuse_code(o, code == SQLITE_ROW ? SQLITE_CANTOPEN : code);
    return execute(o, "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = -1");
}

/*
 * What a killed process left in the log may not be on stable storage; whoever reads it from here on relies on it. So
 * it is moved into the database, as far as a full disk allows, and flushed in any case, together with the log's entry
 * in the directory, which the system's VFS does in the first flush of a log that SQLite asked to make.
 */
static int settle_log(struct opening *o) {
    struct db *db = o->db;
    int rc = db_checkpoint(db);
    if (rc == -ENOSPC)
        rc = 0;
    if (!rc) {
        rc = db_vfs_grow_log(db->vfs, o->options->log_bytes);
        if (rc == -ENOSPC)
            rc = 0;
    }
    if (!rc)
        rc = db_vfs_sync_log(db->vfs);
    if (rc)
        return refuse_errno(o, rc);
    atomic_store(&db->checkpoints, 0);
    db_vfs_counts(db->vfs, &db->at_open);
    return 0;
}

static int on_commit(void *context, sqlite3 *sqlite, const char *name, int frames) {
    struct db *db = context;
    (void)sqlite;
    (void)name;
    db->wrote = true;
    db->log_bytes = frames * db->frame_bytes;
    return SQLITE_OK;
}

static int prepare_transactions(struct opening *o) {
    struct db *db = o->db;
    const struct {
        const char *sql;
        sqlite3_stmt **statement;
    } all[] = {{"BEGIN", &db->begin}, {"COMMIT", &db->commit}, {"ROLLBACK", &db->rollback}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        int code = sqlite3_prepare_v3(db->sqlite, all[i].sql, -1, SQLITE_PREPARE_PERSISTENT, all[i].statement, NULL);
        if (code)
            return refuse_code(o, code);
    }
    for (int i = 0; i < DB_QUERIES; i++)
        db->rows[i].db = db;
    return 0;
}

static int open_steps(struct opening *o) {
    struct db *db = o->db;
    bool is_new = false;
    int64_t page_bytes = 0;

    int rc = take_guard(o);
    if (!rc)
        rc = make_file(o);
    if (!rc)
        rc = open_sqlite(o);
    if (!rc)
        rc = identify(o, &is_new);
    if (!rc && !o->options->read_only)
        rc = set_log_mode(o);
    if (!rc && is_new)
        rc = make_schema(o);
    if (!rc)
        rc = number(o, "PRAGMA page_size", &page_bytes);
    if (rc)
        return rc;
    db->frame_bytes = page_bytes + 24;
    sqlite3_wal_hook(db->sqlite, on_commit, db);
    rc = prepare_transactions(o);
    if (!rc && !o->options->read_only)
        rc = settle_log(o);
    return rc;
}

int db_open(const char *path, const struct db_options *options, struct db **out, char *why, size_t why_size) {
    struct opening o = {.options = options, .why = why, .why_size = why_size};
    snprintf(o.path, sizeof(o.path), "%s", path);
    int rc = db_vfs_full_path(path, o.path, (int)sizeof(o.path));
    if (rc)
        return refuse(&o, rc, "%s: the path is too long", o.path);
    o.db = calloc(1, sizeof(*o.db));
    if (!o.db)
        return refuse_errno(&o, -ENOMEM);
    o.db->guard = -1;
    o.db->path = strdup(o.path);
    o.db->read_only = options->read_only;
    pthread_mutex_init(&o.db->mutex, NULL);
    pthread_cond_init(&o.db->turn_over, NULL);
    rc = o.db->path ? open_steps(&o) : refuse_errno(&o, -ENOMEM);
    if (rc) {
        db__free(o.db, false);
        return rc;
    }
    *out = o.db;
    return 0;
}
