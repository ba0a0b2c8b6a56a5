/* path.c - see path.h. */
#include "path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "db.h"

int path_parent(const char *path, char parent[PATH_BYTES]) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length >= PATH_BYTES)
        return -ENAMETOOLONG;
    if (length == 0)
        snprintf(parent, PATH_BYTES, ".");
    else
        snprintf(parent, PATH_BYTES, "%.*s", (int)length, path);
    return 0;
}

int path_sync_name(const char *path, struct db_tap *tap) {
    char parent[PATH_BYTES];
    int rc = path_parent(path, parent);
    if (rc)
        return rc;
    int directory = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return 0;
    rc = tap ? tap->see(tap, DB_SYNC, DB_FILE_OTHER, parent, NULL, 0, 0) : 0;
    if (!rc && fsync(directory) != 0)
        rc = -errno;
    close(directory);
    return rc;
}
