/* taken.c - names where they stand: staged or final, taken or free. */
#include "engine.h"

#include <errno.h>
#include <string.h>

int spool__is_staged(struct spool *spool, int64_t directory, const char *name, bool *staged) {
    struct directory *parent;
    const struct settings *settings;
    int rc = spool__directory(spool, directory, &parent);
    if (rc)
        return rc;
    if (parent->kind != SPOOL_QUEUE) {
        *staged = parent->kind == SPOOL_FOLDER;
        return 0;
    }
    rc = spool__settings(spool, directory, &settings);
    if (!rc)
        *staged = spool__name_is_staged(name, settings->partial);
    return rc;
}

int spool__is_taken(struct spool *spool, int64_t directory, const char *name, int64_t number) {
    struct message message;
    struct directory *found;
    int rc = spool__find_message(spool, directory, name, &message);
    if (rc == -ENOENT) {
        rc = spool__find_directory(spool, directory, name, &found);
        return rc == 0 ? 1 : rc == -ENOENT ? 0 : rc;
    }
    return rc ? rc : message.number != number;
}

/* Is the numbered name one that cannot be used? */
static int is_unusable(struct spool *spool, int64_t directory, const char *name, int64_t n, bool may_be_staged,
                       char out[SPOOL_NAME_MAX + 1]) {
    bool staged = false;
    spool__number_name(name, n, out);
    int rc = may_be_staged ? 0 : spool__is_staged(spool, directory, out, &staged);
    if (rc || staged)
        return rc ? rc : 1;
    return spool__is_taken(spool, directory, out, 0);
}

/*
 * A numbered name that is free, behind one that is not: found by doubling, then halving, so that the thousandth
 * message of one name costs twenty look-ups and not a thousand.
 */
int spool__free_name(struct spool *spool, int64_t directory, const char *name, char out[SPOOL_NAME_MAX + 1]) {
    bool may_be_staged = false;
    int64_t taken = 0, free = 1;
    int rc = spool__is_staged(spool, directory, name, &may_be_staged);
    if (rc)
        return rc;
    while ((rc = is_unusable(spool, directory, name, free, may_be_staged, out)) == 1) {
        if (free > INT64_C(1) << 40)
            return -EEXIST; /* a pattern that makes every numbered name a staged one */
        taken = free;
        free *= 2;
    }
    while (rc >= 0 && free - taken > 1) {
        int64_t middle = taken + (free - taken) / 2;
        rc = is_unusable(spool, directory, name, middle, may_be_staged, out);
        if (rc == 1)
            taken = middle;
        else if (rc == 0)
            free = middle;
    }
    if (rc < 0)
        return rc;
    spool__number_name(name, free, out);
    return 0;
}

int spool__fit_name(struct spool *spool, int64_t directory, const char *name, int64_t number,
                    char out[SPOOL_NAME_MAX + 1]) {
    char own[SPOOL_NAME_MAX + 1];
    memcpy(own, name, strlen(name) + 1); /* `name` may be `out` */
    int rc = spool__is_taken(spool, directory, own, number);
    if (rc == 1)
        return spool__free_name(spool, directory, own, out);
    if (rc == 0)
        memcpy(out, own, strlen(own) + 1);
    return rc;
}
