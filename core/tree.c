/* tree.c - making and removing directories and staged links, as the public calls. */
#include "engine.h"

#include <errno.h>
#include <string.h>

/* What mkdir makes in there under that name; SPOOL_NONE: nothing. */
static int kind_to_make(struct spool *spool, const struct directory *parent, const char *name, enum spool_kind *kind) {
    bool staged;
    int rc = 0;
    *kind = SPOOL_NONE;
    if (parent->kind == SPOOL_THE_ROOT)
        *kind = SPOOL_QUEUE;
    else if (parent->kind == SPOOL_CLAIMED)
        *kind = SPOOL_WORKER;
    else if (parent->kind == SPOOL_QUEUE && (rc = spool__is_staged(spool, parent->entry.key, name, &staged)) == 0)
        *kind = staged ? SPOOL_FOLDER : SPOOL_NONE;
    return rc;
}

static int name_is_free(struct spool *spool, int64_t parent, const char *name) {
    struct spool_entry taken;
    int rc = spool_lookup(spool, parent, name, &taken);
    if (rc == 0) {
        spool__promise(spool);
        return -EEXIST;
    }
    return rc == -ENOENT ? 0 : rc;
}

int spool_mkdir(struct spool *spool, int64_t parent, const char *name, uint32_t mode, struct spool_caller caller,
                struct spool_entry *entry) {
    struct directory *directory, *part;
    enum spool_kind kind;
    int rc = spool__name_is_valid(name);
    if (!rc)
        rc = name_is_free(spool, parent, name);
    if (!rc)
        rc = spool__directory(spool, parent, &directory);
    if (!rc)
        rc = kind_to_make(spool, directory, name, &kind);
    if (!rc && kind == SPOOL_NONE)
        rc = -EPERM;
    if (!rc)
        rc = spool__change(spool);
    if (!rc)
        rc = spool__insert_directory(spool, kind, parent, name, mode & 07777, caller, NULL, &directory);
    int64_t number = rc ? 0 : directory->entry.key;
    if (!rc && kind == SPOOL_QUEUE)
        rc = spool__special(spool, number, SPOOL_CLAIMED, &part);
    if (!rc && kind == SPOOL_QUEUE)
        rc = spool__special(spool, number, SPOOL_DEAD, &part);
    if (!rc)
        rc = spool_stat(spool, number, entry);
    if (!rc && kind == SPOOL_QUEUE)
        spool__promise(spool);
    return rc;
}

int spool_symlink(struct spool *spool, int64_t parent, const char *name, const char *target, struct spool_caller caller,
                  struct spool_entry *entry) {
    struct directory *directory;
    bool staged = false;
    int rc = spool__name_is_valid(name);
    if (!rc)
        rc = strlen(target) > 4095 ? -ENAMETOOLONG : name_is_free(spool, parent, name);
    if (!rc)
        rc = spool__directory(spool, parent, &directory);
    if (!rc && (directory->kind == SPOOL_QUEUE || directory->kind == SPOOL_FOLDER))
        rc = spool__is_staged(spool, parent, name, &staged);
    if (!rc && !staged)
        rc = -EPERM;
    if (!rc)
        rc = spool__change(spool);
    if (!rc)
        rc = spool__insert_directory(spool, SPOOL_LINK, parent, name, 0777, caller, target, &directory);
    if (!rc)
        rc = spool_stat(spool, directory->entry.key, entry);
    return rc;
}

int spool_readlink(struct spool *spool, int64_t number, char *target) {
    struct db_row *row = NULL;
    int rc = db_first(spool->db, &row, Q_directory_target, db_int(number));
    if (rc == 1) {
        size_t length;
        const void *bytes = db_column_bytes(row, 0, &length);
        length = length < 4095 ? length : 4095;
        memcpy(target, bytes, length);
        target[length] = '\0';
    }
    db_done(row);
    return rc == 1 ? 0 : rc == 0 ? -EINVAL : rc;
}

int spool_rmdir(struct spool *spool, int64_t parent, const char *name) {
    struct directory *directory;
    struct message message;
    bool empty;
    int rc = spool__name_is_valid(name);
    if (!rc)
        rc = spool__find_directory(spool, parent, name, &directory);
    if (rc == -ENOENT && spool__find_message(spool, parent, name, &message) == 0)
        rc = -ENOTDIR;
    if (!rc && directory->kind == SPOOL_LINK)
        rc = -ENOTDIR;
    if (!rc)
        rc = spool__directory_is_empty(spool, directory, &empty);
    if (!rc && !empty) {
        rc = -ENOTEMPTY;
        spool__promise(spool);
    }
    if (!rc)
        rc = spool__change(spool);
    return rc ? rc : spool__remove_directory(spool, directory);
}
