/* path.h - the database's path, and the directories it stands in. */
#ifndef SPOOL_PATH_H
#define SPOOL_PATH_H

#include <stddef.h>

struct db_tap;

#define PATH_BYTES 4096

/* The directory that `path` stands in, which may be `.` or `/`. -ENAMETOOLONG. */
int path_parent(const char *path, char parent[PATH_BYTES]);
/* Bring the name `path` to stable storage; a directory that may not be read keeps it as it likes. `tap` may be NULL. */
int path_sync_name(const char *path, struct db_tap *tap);

#endif
