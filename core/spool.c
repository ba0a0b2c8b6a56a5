/* spool.c - opening and closing. */
#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "path.h"

#define LOG_BYTES (INT64_C(16) << 20)
#define LEAST_RESERVE_BYTES (INT64_C(1) << 20)
#define MOST_RESERVE_BYTES (INT64_C(64) << 20)

extern const char spool_schema[];

/* The directory of the database, made when absent and then as durable as what will be in it. */
static int make_parent(const char *path, struct db_tap *tap, char *why, size_t why_size) {
    char parent[PATH_BYTES];
    int rc = path_parent(path, parent);
    if (!rc && mkdir(parent, 0700) == 0)
        rc = path_sync_name(parent, tap);
    else if (!rc && errno != EEXIST)
        rc = -errno;
    if (rc)
        snprintf(why, why_size, "cannot make the directory of %s: %s", path, strerror(-rc));
    return rc;
}

/* The log, and what is kept free for acknowledgements, fit the disk. */
static void size_up(struct spool *spool, int64_t reserve_bytes) {
    int64_t total = 0, free_bytes = 0;
    if (spool_space(spool, &total, &free_bytes) != 0)
        total = INT64_MAX;
    int64_t reserve = total / 100;
    reserve = reserve < LEAST_RESERVE_BYTES ? LEAST_RESERVE_BYTES : reserve;
    reserve = reserve > MOST_RESERVE_BYTES ? MOST_RESERVE_BYTES : reserve;
    spool->reserve_bytes = reserve_bytes >= 0 ? reserve_bytes : reserve;
}

/* A small disk gets a small log. */
static int64_t log_bytes_for(const char *path) {
    struct statvfs disk;
    if (statvfs(path, &disk) != 0)
        return LOG_BYTES;
    int64_t share = (int64_t)disk.f_blocks * (int64_t)disk.f_frsize / 32;
    return share < LOG_BYTES ? share : LOG_BYTES;
}

static int make_new(struct spool *spool, const struct spool_options *options) {
    int rc = spool__run(spool, Q_spool_make, db_int(SPOOL_ROOT + 1), db_text(options->boot_id ? options->boot_id : ""));
    if (!rc)
        rc =
            spool__run(spool, Q_directory_insert, db_int(SPOOL_ROOT), db_int(SPOOL_THE_ROOT), db_int(0), db_text(""),
                       db_int(0755), db_int(options->uid), db_int(options->gid), db_int(spool->now.wall_ns), db_null());
    return rc;
}

/* The numbers of this run: none below what any earlier run may have given. */
static int take_numbers(struct spool *spool) {
    struct db_row *row = NULL;
    int rc = db_first(spool->db, &row, Q_spool_get);
    if (rc == 1)
        spool->next_number = db_column_int(row, 0);
    db_done(row);
    if (rc <= 0)
        return rc < 0 ? rc : -EUCLEAN;
    spool->numbers_end = spool->numbers_reserved = spool->next_number + NUMBER_BLOCK;
    return spool__run(spool, Q_spool_reserve, db_int(spool->numbers_end));
}

static int commit_and_sync(struct spool *spool) {
    uint64_t ticket;
    int rc = spool_commit(spool, &ticket);
    return rc ? rc : spool_sync(spool, ticket);
}

static int prepare(struct spool *spool, const struct spool_options *options) {
    struct directory *root;
    int rc = spool__directory(spool, SPOOL_ROOT, &root);
    if (spool->read_only)
        return rc;
    bool is_new = rc == -ENOENT;
    if (rc && !is_new)
        return rc;
    rc = spool__change(spool);
    if (!rc && is_new)
        rc = make_new(spool, options);
    if (!rc)
        rc = take_numbers(spool);
    if (!rc)
        rc = commit_and_sync(spool);
    if (!rc)
        rc = spool__recover(spool, options->boot_id ? options->boot_id : "");
    if (!rc)
        rc = commit_and_sync(spool);
    if (!rc)
        spool_reap(spool);
    return rc;
}

static int open_parts(struct spool *spool, const char *path, const struct spool_options *options, char *why,
                      size_t why_size) {
    struct db_options db_options = {
        .schema = spool_schema,
        .version = SPOOL_SCHEMA_VERSION,
        .read_only = options->read_only,
        .tap = options->tap,
    };
    int rc = options->read_only ? 0 : make_parent(path, options->tap, why, why_size);
    if (rc)
        return rc;
    db_options.log_bytes = options->log_bytes ? options->log_bytes : log_bytes_for(path);
    rc = db_open(path, &db_options, &spool->db, why, why_size);
    if (rc)
        return rc;
    spool->log_limit_bytes = db_options.log_bytes - db_options.log_bytes / 4;
    rc = payloads_open(&spool->payloads, db_path(spool->db), !options->read_only, options->tap);
    if (rc) {
        snprintf(why, why_size, "cannot open the directory %s.payloads: %s", db_path(spool->db), strerror(-rc));
        return rc;
    }
    size_up(spool, options->reserve_bytes);
    rc = prepare(spool, options);
    if (rc)
        snprintf(why, why_size, "cannot recover %s: %s", path, strerror(-rc));
    return rc;
}

int spool_open(const char *path, const struct spool_options *options, struct spool_time now, struct spool **out,
               char *why, size_t why_size) {
    struct spool *spool = calloc(1, sizeof *spool);
    if (!spool)
        return -ENOMEM;
    spool->payloads.directory = -1;
    spool->read_only = options->read_only;
    spool->now = now;
    spool->next_end_boot_ns = spool->next_due_ns = spool->next_linger_boot_ns = INT64_MIN;
    int rc = open_parts(spool, path, options, why, why_size);
    if (rc) {
        if (spool->db)
            spool_rollback(spool);
        spool_close(spool);
    } else {
        *out = spool;
    }
    return rc;
}

/* Numbers that were reserved and not given are for the next run. */
static void give_back_numbers(struct spool *spool) {
    if (spool->read_only || db_broken(spool->db) || !spool->next_number)
        return;
    if (spool__change(spool) == 0 && spool__run(spool, Q_spool_reserve, db_int(spool->next_number)) == 0 &&
        commit_and_sync(spool) == 0)
        spool_reap(spool);
}

void spool_close(struct spool *spool) {
    uint64_t ticket;
    if (!spool)
        return;
    if (spool->db) {
        if (spool_commit(spool, &ticket) == 0)
            give_back_numbers(spool);
        spool__forget_directories(spool);
        db_close(spool->db);
    }
    payloads_close(&spool->payloads);
    spool__forget_drafts(spool);
    free(spool->cache.bytes);
    free(spool->undo);
    free(spool);
}
