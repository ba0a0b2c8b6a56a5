/*
 * db_vfs.c - see db_vfs.h.
 *
 * Who touches what: all but the sync path belongs to the owner's thread. db_vfs_sync_log() runs in any thread beside
 * writes of the owner; it never looks at the gathered bytes, because no committed frame is ever among them.
 */
#include "db_vfs.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

enum { FRAME_HEADER_BYTES = 24, GATHER_BYTES = 16 * (FRAME_HEADER_BYTES + 4096) };

struct vfs_file {
    sqlite3_file sqlite; /* first: what SQLite sees */
    struct db_vfs *vfs;
    enum db_file kind;
    const char *path; /* SQLite keeps it for as long as the file is open */
    /* Clean when equal. `synced` takes the value that `writes` had before the sync began. A file is opened dirty: a
     * process that was killed may have left it so. */
    atomic_uint_fast64_t writes, synced;
    sqlite3_file *real; /* in the bytes that follow */
};

struct db_vfs {
    sqlite3_vfs sqlite; /* first: what SQLite sees */
    sqlite3_vfs *system;
    struct db_tap *tap;
    char name[32];
    bool read_only;

    pthread_mutex_t sync_mutex;
    atomic_bool broken;

    struct vfs_file *log;
    sqlite3_int64 log_end; /* where the last write to the log ended; -1: unknown */
    bool log_commit;       /* the frame being written is the last of a commit */
    size_t gathered;       /* bytes in gather[], which end at log_end */
    unsigned char gather[GATHER_BYTES];

    atomic_uint_fast64_t log_syncs, log_writes, log_bytes, main_writes;
};

static int see(struct db_vfs *vfs, enum db_event event, enum db_file kind, const char *path, const void *bytes,
               size_t length, int64_t offset) {
    return vfs->tap ? vfs->tap->see(vfs->tap, event, kind, path ? path : "", bytes, length, offset) : 0;
}

static int see_file(struct vfs_file *file, enum db_event event, const void *bytes, size_t length, int64_t offset) {
    return see(file->vfs, event, file->kind, file->path, bytes, length, offset);
}

static struct vfs_file *as_file(sqlite3_file *sqlite) {
    return (struct vfs_file *)sqlite;
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

static void count_write(struct vfs_file *file, size_t length) {
    if (file->kind == DB_FILE_LOG) {
        atomic_fetch_add(&file->vfs->log_writes, 1);
        atomic_fetch_add(&file->vfs->log_bytes, length);
    } else if (file->kind == DB_FILE_MAIN) {
        atomic_fetch_add(&file->vfs->main_writes, 1);
    }
}

/* A used-up quota or size limit is a full disk too: nothing was written, and the same may work later. */
static int write_error(struct vfs_file *file, int rc) {
    int error = 0;
    if (rc != SQLITE_IOERR_WRITE)
        return rc;
    file->real->pMethods->xFileControl(file->real, SQLITE_FCNTL_LAST_ERRNO, &error);
    return error == EDQUOT || error == EFBIG ? SQLITE_FULL : rc;
}

static int write_out(struct vfs_file *file, const void *bytes, size_t length, sqlite3_int64 offset) {
    int error = see_file(file, DB_WRITE, bytes, length, offset);
    if (error)
        return error == -ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    int rc = file->real->pMethods->xWrite(file->real, bytes, (int)length, offset);
    atomic_fetch_add(&file->writes, 1);
    count_write(file, length);
    return rc ? write_error(file, rc) : SQLITE_OK;
}

/* Write what was gathered. After a failure it is forgotten: the commit that it belongs to is undone. */
static int log_flush(struct vfs_file *file) {
    struct db_vfs *vfs = file->vfs;
    size_t length = vfs->gathered;
    if (file->kind != DB_FILE_LOG || !length)
        return SQLITE_OK;
    vfs->gathered = 0;
    int rc = write_out(file, vfs->gather, length, vfs->log_end - (sqlite3_int64)length);
    if (rc)
        vfs->log_end = -1;
    return rc;
}

static bool marks_commit(const unsigned char *frame_header) {
    return frame_header[4] || frame_header[5] || frame_header[6] || frame_header[7];
}

static int log_write(struct vfs_file *file, const void *bytes, size_t length, sqlite3_int64 offset) {
    struct db_vfs *vfs = file->vfs;
    bool continues = offset == vfs->log_end && length <= sizeof(vfs->gather);
    bool is_header = length == FRAME_HEADER_BYTES;
    int rc = SQLITE_OK;

    if (is_header)
        vfs->log_commit = marks_commit(bytes);
    if (!continues || vfs->gathered + length > sizeof(vfs->gather))
        rc = log_flush(file);
    if (rc)
        return rc;
    if (continues) {
        memcpy(vfs->gather + vfs->gathered, bytes, length);
        vfs->gathered += length;
    } else {
        rc = write_out(file, bytes, length, offset);
    }
    vfs->log_end = rc ? -1 : offset + (sqlite3_int64)length;
    if (!rc && vfs->log_commit && !is_header)
        rc = log_flush(file);
    return rc;
}

static int file_write(sqlite3_file *sqlite, const void *bytes, int length, sqlite3_int64 offset) {
    struct vfs_file *file = as_file(sqlite);
    if (file->kind == DB_FILE_LOG)
        return log_write(file, bytes, (size_t)length, offset);
    return write_out(file, bytes, (size_t)length, offset);
}

static int file_truncate(sqlite3_file *sqlite, sqlite3_int64 size) {
    struct vfs_file *file = as_file(sqlite);
    int rc = log_flush(file);
    if (rc)
        return rc;
    if (see_file(file, DB_TRUNCATE, NULL, 0, size))
        return SQLITE_IOERR_TRUNCATE;
    rc = file->real->pMethods->xTruncate(file->real, size);
    atomic_fetch_add(&file->writes, 1);
    return rc;
}

/* --- syncing ---------------------------------------------------------------------------------------------------- */

static int sync_file(struct vfs_file *file, int flags) {
    struct db_vfs *vfs = file->vfs;
    if (db_vfs_broken(vfs))
        return SQLITE_IOERR_FSYNC;
    if (atomic_load(&file->synced) == atomic_load(&file->writes))
        return SQLITE_OK;

    int error = see_file(file, DB_SYNC, NULL, 0, 0);
    int rc = error ? SQLITE_IOERR_FSYNC : SQLITE_OK;
    pthread_mutex_lock(&vfs->sync_mutex);
    if (db_vfs_broken(vfs))
        rc = SQLITE_IOERR_FSYNC;
    if (!rc) {
        uint64_t writes = atomic_load(&file->writes);
        rc = file->real->pMethods->xSync(file->real, flags);
        if (!rc)
            atomic_store(&file->synced, writes);
        if (file->kind == DB_FILE_LOG)
            atomic_fetch_add(&vfs->log_syncs, 1);
    }
    if (rc)
        db_vfs_break(vfs);
    pthread_mutex_unlock(&vfs->sync_mutex);
    return rc;
}

static int file_sync(sqlite3_file *sqlite, int flags) {
    struct vfs_file *file = as_file(sqlite);
    int rc = log_flush(file);
    return rc ? rc : sync_file(file, flags);
}

/* --- the other calls on a file ---------------------------------------------------------------------------------- */

static int file_close(sqlite3_file *sqlite) {
    struct vfs_file *file = as_file(sqlite);
    int flushed = log_flush(file);
    int rc = file->real->pMethods->xClose(file->real);
    if (file->vfs->log == file)
        file->vfs->log = NULL;
    return flushed ? flushed : rc;
}

static int file_read(sqlite3_file *sqlite, void *bytes, int length, sqlite3_int64 offset) {
    struct vfs_file *file = as_file(sqlite);
    int rc = log_flush(file);
    return rc ? rc : file->real->pMethods->xRead(file->real, bytes, length, offset);
}

static int file_size(sqlite3_file *sqlite, sqlite3_int64 *size) {
    struct vfs_file *file = as_file(sqlite);
    int rc = log_flush(file);
    return rc ? rc : file->real->pMethods->xFileSize(file->real, size);
}

static int file_lock(sqlite3_file *sqlite, int level) {
    struct vfs_file *file = as_file(sqlite);
    if (file->vfs->read_only && level > SQLITE_LOCK_SHARED)
        level = SQLITE_LOCK_SHARED;
    return file->real->pMethods->xLock(file->real, level);
}

static int file_unlock(sqlite3_file *sqlite, int level) {
    struct vfs_file *file = as_file(sqlite);
    return file->real->pMethods->xUnlock(file->real, level);
}

static int file_check_reserved_lock(sqlite3_file *sqlite, int *taken) {
    struct vfs_file *file = as_file(sqlite);
    return file->real->pMethods->xCheckReservedLock(file->real, taken);
}

static int file_control(sqlite3_file *sqlite, int operation, void *argument) {
    struct vfs_file *file = as_file(sqlite);
    int rc = log_flush(file);
    return rc ? rc : file->real->pMethods->xFileControl(file->real, operation, argument);
}

static int file_sector_size(sqlite3_file *sqlite) {
    struct vfs_file *file = as_file(sqlite);
    return file->real->pMethods->xSectorSize(file->real);
}

static int file_device_characteristics(sqlite3_file *sqlite) {
    struct vfs_file *file = as_file(sqlite);
    return file->real->pMethods->xDeviceCharacteristics(file->real);
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 1,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_reserved_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_device_characteristics,
};

/* --- the file system -------------------------------------------------------------------------------------------- */

static struct db_vfs *as_vfs(sqlite3_vfs *sqlite) {
    return (struct db_vfs *)sqlite;
}

/* SQLite asks to make the log. An absent one is read as /dev/null is: it has no bytes. */
static int open_log_for_reading(sqlite3_vfs *system, const char *path, sqlite3_file *real, int *out_flags) {
    int there = 0;
    int rc = system->xAccess(system, path, SQLITE_ACCESS_EXISTS, &there);
    if (rc)
        return rc;
    return system->xOpen(system, there ? path : "/dev/null", real, SQLITE_OPEN_WAL | SQLITE_OPEN_READONLY, out_flags);
}

static int vfs_open(sqlite3_vfs *sqlite, const char *path, sqlite3_file *opened, int flags, int *out_flags) {
    struct db_vfs *vfs = as_vfs(sqlite);
    struct vfs_file *file = as_file(opened);
    enum db_file kind = DB_FILE_OTHER;
    int rc;

    if (flags & SQLITE_OPEN_MAIN_DB)
        kind = DB_FILE_MAIN;
    else if (flags & SQLITE_OPEN_WAL)
        kind = DB_FILE_LOG;
    memset(file, 0, (size_t)vfs->sqlite.szOsFile);
    if (see(vfs, DB_OPEN, kind, path, NULL, 0, 0))
        return SQLITE_CANTOPEN;
    file->real = (sqlite3_file *)(file + 1);
    if (kind == DB_FILE_LOG && vfs->read_only)
        rc = open_log_for_reading(vfs->system, path, file->real, out_flags);
    else
        rc = vfs->system->xOpen(vfs->system, path, file->real, flags, out_flags);
    if (rc)
        return rc;
    file->vfs = vfs;
    file->kind = kind;
    file->path = path;
    atomic_init(&file->writes, 1);
    atomic_init(&file->synced, 0);
    file->sqlite.pMethods = &file_methods;
    if (kind == DB_FILE_LOG) {
        vfs->log = file;
        vfs->log_end = -1;
        vfs->gathered = 0;
    }
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *sqlite, const char *path, int sync_directory) {
    struct db_vfs *vfs = as_vfs(sqlite);
    size_t length = strlen(path);
    bool is_log = length > 4 && strcmp(path + length - 4, "-wal") == 0;
    if (vfs->read_only)
        return SQLITE_READONLY;
    if (see(vfs, DB_DELETE, is_log ? DB_FILE_LOG : DB_FILE_OTHER, path, NULL, 0, 0))
        return SQLITE_IOERR_DELETE;
    return vfs->system->xDelete(vfs->system, path, sync_directory);
}

static int vfs_access(sqlite3_vfs *sqlite, const char *path, int flags, int *answer) {
    sqlite3_vfs *system = as_vfs(sqlite)->system;
    return system->xAccess(system, path, flags, answer);
}

static int vfs_full_pathname(sqlite3_vfs *sqlite, const char *path, int size, char *out) {
    sqlite3_vfs *system = as_vfs(sqlite)->system;
    return system->xFullPathname(system, path, size, out);
}

static int vfs_randomness(sqlite3_vfs *sqlite, int length, char *out) {
    sqlite3_vfs *system = as_vfs(sqlite)->system;
    return system->xRandomness(system, length, out);
}

static int vfs_sleep(sqlite3_vfs *sqlite, int microseconds) {
    sqlite3_vfs *system = as_vfs(sqlite)->system;
    return system->xSleep(system, microseconds);
}

static int vfs_last_error(sqlite3_vfs *sqlite, int size, char *out) {
    sqlite3_vfs *system = as_vfs(sqlite)->system;
    return system->xGetLastError(system, size, out);
}

static int vfs_current_time(sqlite3_vfs *sqlite, sqlite3_int64 *out) {
    sqlite3_vfs *system = as_vfs(sqlite)->system;
    return system->xCurrentTimeInt64(system, out);
}

/* --- for db.c --------------------------------------------------------------------------------------------------- */

int db_vfs_new(struct db_tap *tap, bool read_only, struct db_vfs **out) {
    sqlite3_vfs *system = sqlite3_vfs_find(NULL);
    struct db_vfs *vfs = calloc(1, sizeof(*vfs));
    if (!system || !vfs) {
        free(vfs);
        return -ENOMEM;
    }
    vfs->system = system;
    vfs->tap = tap;
    vfs->read_only = read_only;
    vfs->log_end = -1;
    snprintf(vfs->name, sizeof(vfs->name), "spool-%p", (void *)vfs);
    pthread_mutex_init(&vfs->sync_mutex, NULL);
    vfs->sqlite = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = (int)sizeof(struct vfs_file) + system->szOsFile,
        .mxPathname = system->mxPathname,
        .zName = vfs->name,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_pathname,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xGetLastError = vfs_last_error,
        .xCurrentTimeInt64 = vfs_current_time,
    };
    if (sqlite3_vfs_register(&vfs->sqlite, 0)) {
        pthread_mutex_destroy(&vfs->sync_mutex);
        free(vfs);
        return -ENOMEM;
    }
    *out = vfs;
    return 0;
}

void db_vfs_free(struct db_vfs *vfs) {
    if (!vfs)
        return;
    sqlite3_vfs_unregister(&vfs->sqlite);
    pthread_mutex_destroy(&vfs->sync_mutex);
    free(vfs);
}

const char *db_vfs_name(const struct db_vfs *vfs) {
    return vfs->name;
}

int db_vfs_full_path(const char *path, char *out, int size) {
    sqlite3_vfs *system = sqlite3_vfs_find(NULL);
    if (!system)
        return -ENOMEM;
    int rc = system->xFullPathname(system, path, size, out);
    return rc == SQLITE_OK || rc == SQLITE_OK_SYMLINK ? 0 : -ENAMETOOLONG;
}

int db_vfs_sync_log(struct db_vfs *vfs) {
    return sync_file(vfs->log, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY) ? -EIO : 0;
}

int db_vfs_grow_log(struct db_vfs *vfs, int64_t bytes) {
    struct vfs_file *log = vfs->log;
    sqlite3_int64 size;
    int rc = file_size(&log->sqlite, &size);
    memset(vfs->gather, 0, sizeof(vfs->gather));
    while (!rc && size < bytes) {
        size_t length = bytes - size < GATHER_BYTES ? (size_t)(bytes - size) : GATHER_BYTES;
        rc = write_out(log, vfs->gather, length, size);
        size += (sqlite3_int64)length;
    }
    if (rc == SQLITE_FULL)
        return -ENOSPC;
    return rc ? -EIO : 0;
}

bool db_vfs_broken(const struct db_vfs *vfs) {
    return atomic_load(&vfs->broken);
}

void db_vfs_break(struct db_vfs *vfs) {
    atomic_store(&vfs->broken, true);
}

void db_vfs_counts(const struct db_vfs *vfs, struct db_vfs_counts *out) {
    out->log_syncs = atomic_load(&vfs->log_syncs);
    out->log_writes = atomic_load(&vfs->log_writes);
    out->log_bytes = atomic_load(&vfs->log_bytes);
    out->main_writes = atomic_load(&vfs->main_writes);
}
