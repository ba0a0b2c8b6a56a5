/*
 * directory.c - directories: kept in memory while they are used, with the counters of queues.
 *
 * A directory that changes is put on a list, and written once, when the batch is committed.
 */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define KEPT_DIRECTORIES 10000

void spool__free_settings(struct settings *settings) {
    if (settings)
        free(settings->partial);
    free(settings);
}

static void free_directory(struct table_entry *entry, void *context) {
    struct directory *directory = (struct directory *)entry;
    (void)context;
    spool__free_settings(directory->settings);
    free(directory);
}

void spool__forget_directories(struct spool *spool) {
    table_each(&spool->directories, free_directory, NULL);
    table_clear(&spool->directories);
    spool->dirty_directories = NULL;
}

static void forget_settings_of(struct table_entry *entry, void *context) {
    struct directory *directory = (struct directory *)entry;
    (void)context;
    spool__free_settings(directory->settings);
    directory->settings = NULL;
}

void spool__forget_settings(struct spool *spool) {
    table_each(&spool->directories, forget_settings_of, NULL);
}

static void mark_dirty(struct spool *spool, struct directory *directory) {
    if (directory->dirty)
        return;
    directory->dirty = true;
    directory->next_dirty = spool->dirty_directories;
    spool->dirty_directories = directory;
}

static void read_directory(struct db_row *row, struct directory *directory) {
    size_t length;
    directory->entry.key = db_column_int(row, 0);
    directory->kind = (enum spool_kind)db_column_int(row, 1);
    directory->parent = db_column_int(row, 2);
    const void *name = db_column_bytes(row, 3, &length);
    if (length) /* the root has none */
        memcpy(directory->name, name, length < SPOOL_NAME_MAX ? length : SPOOL_NAME_MAX);
    directory->follows = db_column_null(row, 4);
    directory->mode = (uint32_t)db_column_int(row, 4);
    directory->uid = (uid_t)db_column_int(row, 5);
    directory->gid = (gid_t)db_column_int(row, 6);
    directory->mtime_ns = db_column_int(row, 7);
    directory->ctime_ns = db_column_int(row, 8);
    for (int i = 0; i < COUNTERS; i++)
        directory->count[i] = db_column_int(row, 9 + i);
}

int spool__directory(struct spool *spool, int64_t number, struct directory **out) {
    struct directory *directory = (struct directory *)table_find(&spool->directories, number);
    if (directory) {
        *out = directory;
        return 0;
    }
    struct db_row *row = NULL;
    int rc = db_first(spool->db, &row, Q_directory_get, db_int(number));
    if (rc == 1) {
        directory = calloc(1, sizeof *directory);
        if (directory) {
            read_directory(row, directory);
            rc = table_add(&spool->directories, &directory->entry);
        } else {
            rc = -ENOMEM;
        }
    } else if (rc == 0) {
        rc = -ENOENT;
    }
    db_done(row);
    if (rc)
        free(directory);
    else
        *out = directory;
    return rc;
}

int spool__find_directory(struct spool *spool, int64_t parent, const char *name, struct directory **out) {
    struct db_row *row = NULL;
    int rc = db_first(spool->db, &row, Q_directory_find, db_int(parent), db_text(name));
    int64_t number = rc == 1 ? db_column_int(row, 0) : 0;
    db_done(row);
    if (rc <= 0)
        return rc == 0 ? -ENOENT : rc;
    return spool__directory(spool, number, out);
}

int64_t spool__queue_of(struct spool *spool, const struct directory *directory) {
    struct directory *up;
    while (directory->kind != SPOOL_QUEUE) {
        if (directory->kind == SPOOL_THE_ROOT || spool__directory(spool, directory->parent, &up) != 0)
            return 0;
        directory = up;
    }
    return directory->entry.key;
}

void spool__touch_directory(struct spool *spool, int64_t number) {
    struct directory *directory;
    if (spool__directory(spool, number, &directory) != 0)
        return;
    directory->mtime_ns = directory->ctime_ns = spool->now.wall_ns;
    mark_dirty(spool, directory);
}

void spool__count(struct spool *spool, int64_t queue, enum counter counter, int64_t amount) {
    const int64_t counted[] = {queue, SPOOL_ROOT};
    for (size_t i = 0; i < 2; i++) {
        struct directory *directory;
        int rc = spool__directory(spool, counted[i], &directory);
        if (rc == 0) {
            directory->count[counter] += amount;
            mark_dirty(spool, directory);
        } else if (!spool->poison) {
            spool->poison = rc;
        }
    }
}

static int write_directory(struct spool *spool, const struct directory *directory) {
    const int64_t *count = directory->count;
    return spool__run(spool, Q_directory_count, db_int(directory->entry.key), db_int(directory->mtime_ns),
                      db_int(directory->ctime_ns), db_int(count[COUNT_STAGED]), db_int(count[COUNT_READY]),
                      db_int(count[COUNT_DELAYED]), db_int(count[COUNT_CLAIMED]), db_int(count[COUNT_DEAD]),
                      db_int(count[COUNT_BYTES]), db_int(count[COUNT_PUBLISHED]), db_int(count[COUNT_ACKNOWLEDGED]),
                      db_int(count[COUNT_RELEASED]), db_int(count[COUNT_FAILED]), db_int(count[COUNT_BURIED]),
                      db_int(count[COUNT_CANCELLED]), db_int(count[COUNT_STAGED_REMOVED]));
}

int spool__write_directories(struct spool *spool) {
    for (struct directory *directory = spool->dirty_directories; directory; directory = directory->next_dirty) {
        int rc = write_directory(spool, directory);
        if (rc)
            return rc;
        directory->dirty = false;
    }
    spool->dirty_directories = NULL;
    if (spool->directories.count > KEPT_DIRECTORIES)
        spool__forget_directories(spool);
    return 0;
}

int spool__insert_directory(struct spool *spool, enum spool_kind kind, int64_t parent, const char *name, int64_t mode,
                            struct spool_caller caller, const char *target, struct directory **out) {
    int64_t number = spool__number(spool);
    if (number < 0)
        return (int)number;
    bool follows = mode < 0;
    int rc = spool__run(spool, Q_directory_insert, db_int(number), db_int(kind), db_int(parent), db_text(name),
                        follows ? db_null() : db_int(mode), follows ? db_null() : db_int(caller.uid),
                        follows ? db_null() : db_int(caller.gid), db_int(spool->now.wall_ns), db_text(target));
    if (rc)
        return rc;
    if (parent)
        spool__touch_directory(spool, parent);
    return spool__directory(spool, number, out);
}

int spool__special(struct spool *spool, int64_t queue, enum spool_kind kind, struct directory **out) {
    const char *name = kind == SPOOL_CLAIMED ? "claimed" : "dead";
    int rc = spool__find_directory(spool, queue, name, out);
    if (rc != -ENOENT)
        return rc;
    rc = spool__change(spool);
    return rc ? rc : spool__insert_directory(spool, kind, queue, name, -1, (struct spool_caller){0}, NULL, out);
}

static int any(struct spool *spool, enum db_query query, int64_t number) {
    struct db_row *row = NULL;
    int rc = db_first(spool->db, &row, query, db_int(number));
    db_done(row);
    return rc;
}

int spool__directory_is_empty(struct spool *spool, const struct directory *directory, bool *empty) {
    int64_t number = directory->entry.key;
    int found = any(spool, Q_message_any, number);
    if (found == 0 && directory->kind != SPOOL_QUEUE)
        found = any(spool, Q_directory_any, number);
    if (found == 0 && directory->kind == SPOOL_QUEUE) {
        /* `claimed` and `dead` do not count, unless there is something in them. */
        struct db_row *row = NULL;
        found = db_first(spool->db, &row, Q_directory_list, db_int(number), db_int(0), db_int(INT64_MAX));
        for (int more = found; more == 1; more = found = db_next(row)) {
            struct directory *part;
            bool part_empty = false;
            int rc = spool__directory(spool, db_column_int(row, 0), &part);
            if (!rc && (part->kind == SPOOL_CLAIMED || part->kind == SPOOL_DEAD))
                rc = spool__directory_is_empty(spool, part, &part_empty);
            if (rc || !part_empty) {
                found = rc ? rc : 1;
                break;
            }
        }
        db_done(row);
    }
    if (found < 0)
        return found;
    *empty = found == 0;
    return 0;
}

static void forget_directory(struct spool *spool, struct directory *directory) {
    struct directory **at = &spool->dirty_directories;
    while (*at && *at != directory)
        at = &(*at)->next_dirty;
    if (*at)
        *at = directory->next_dirty;
    table_remove(&spool->directories, &directory->entry);
    free_directory(&directory->entry, NULL);
}

int spool__delete_directory(struct spool *spool, struct directory *directory) {
    int64_t number = directory->entry.key, parent = directory->parent;
    struct directory *part;
    int rc = 0;
    if (directory->kind == SPOOL_QUEUE) {
        static const char *const parts[] = {"claimed", "dead"};
        for (size_t i = 0; i < 2 && !rc; i++) {
            rc = spool__find_directory(spool, number, parts[i], &part);
            rc = rc == 0 ? spool__delete_directory(spool, part) : rc == -ENOENT ? 0 : rc;
        }
        if (!rc)
            rc = spool__run(spool, Q_setting_delete_all, db_int(number));
        spool__promise(spool);
    }
    if (!rc)
        rc = spool__run(spool, Q_directory_delete, db_int(number));
    if (!rc) {
        forget_directory(spool, directory);
        spool__touch_directory(spool, parent);
    }
    return rc;
}

static int update_directory(struct spool *spool, struct directory *directory) {
    directory->ctime_ns = spool->now.wall_ns;
    bool follows = directory->follows;
    int rc = spool__run(spool, Q_directory_update, db_int(directory->entry.key), db_int(directory->parent),
                        db_text(directory->name), follows ? db_null() : db_int(directory->mode),
                        follows ? db_null() : db_int(directory->uid), follows ? db_null() : db_int(directory->gid),
                        db_int(directory->mtime_ns), db_int(directory->ctime_ns));
    spool__promise(spool);
    return rc;
}

int spool__move_directory(struct spool *spool, struct directory *directory, int64_t parent, const char *name) {
    int64_t from = directory->parent;
    directory->parent = parent;
    memset(directory->name, 0, sizeof directory->name);
    memcpy(directory->name, name, strlen(name));
    int rc = update_directory(spool, directory);
    if (!rc) {
        spool__touch_directory(spool, from);
        spool__touch_directory(spool, parent);
    }
    return rc;
}

/* `claimed` and `dead` follow their queue: a class may write there only where it may read and write the queue. */
static uint32_t following_mode(uint32_t queue_mode) {
    uint32_t mode = queue_mode & 02000;
    for (int shift = 0; shift <= 6; shift += 3) {
        uint32_t class = (queue_mode >> shift) & 07;
        if (class & 04)
            mode |= class << shift;
    }
    return mode & 022 ? mode | 01000 : mode;
}

void spool__directory_access(struct spool *spool, const struct directory *directory, uint32_t *mode, uid_t *uid,
                             gid_t *gid) {
    struct directory *queue;
    *mode = directory->mode;
    *uid = directory->uid;
    *gid = directory->gid;
    if (directory->follows && spool__directory(spool, directory->parent, &queue) == 0) {
        *mode = following_mode(queue->mode);
        *uid = queue->uid;
        *gid = queue->gid;
    }
}

/* A `claimed` or `dead` that is changed by hand follows its queue no longer. */
static int stop_following(struct spool *spool, struct directory *directory) {
    int rc = spool__change(spool);
    if (!rc && directory->follows) {
        spool__directory_access(spool, directory, &directory->mode, &directory->uid, &directory->gid);
        directory->follows = false;
    }
    return rc;
}

int spool__chmod_directory(struct spool *spool, struct directory *directory, uint32_t mode) {
    int rc = stop_following(spool, directory);
    if (rc)
        return rc;
    directory->mode = mode & 07777;
    return update_directory(spool, directory);
}

int spool__chown_directory(struct spool *spool, struct directory *directory, uid_t uid, gid_t gid) {
    int rc = stop_following(spool, directory);
    if (rc)
        return rc;
    if (uid != (uid_t)-1)
        directory->uid = uid;
    if (gid != (gid_t)-1)
        directory->gid = gid;
    return update_directory(spool, directory);
}
