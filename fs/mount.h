/*
 * mount.h - where a spool may be mounted, and the mounting.
 */
#ifndef MOUNT_H
#define MOUNT_H

#include <limits.h>
#include <sys/types.h>

#include "refuse.h"

struct fuse_session;

/* Absolute, without symbolic links as far as they exist. */
struct places {
    char database[PATH_MAX];
    char mount_point[PATH_MAX];
    dev_t underneath; /* the device of the mount point's directory: another one is seen there once the mount answers */
};

/*
 * Find out where the database and the mount point are and whether they will do: the mount point is an empty directory
 * without a spool mounted on it; the database is not below it, nor on a file system whose locks or flushes cannot be
 * trusted. What a spoolfs that died left at the mount point is unmounted. `subtype` is the type of our own mounts.
 * Returns 0 or an exit code.
 */
int mount_check(struct places *places, const char *database, const char *mount_point, const char *subtype,
                struct refusal *refusal);

/* Mount. Returns 0 or an exit code. */
int mount_session(struct fuse_session *session, const struct places *places, struct refusal *refusal);

#endif
