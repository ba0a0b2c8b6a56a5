/*
 * mount.c - looks at the places before anything is touched, replaces a dead mount, mounts.
 *
 * Everything is looked up before the program goes to the background and to the directory /, so all paths are made
 * absolute here. A path is resolved as far as it exists: the database may be new, and the mount point may be dead.
 */
#include "mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "log.h"

/* Canonical as far as it can be looked up; the rest of the path stays as it is written. */
static int resolve(const char *path, char out[PATH_MAX]) {
    char head[PATH_MAX], canonical[PATH_MAX];
    const char *tail = path + strlen(path);
    size_t length = strlen(path);

    if (length == 0 || length >= sizeof head)
        return length == 0 ? -ENOENT : -ENAMETOOLONG;
    for (;;) {
        while (length > 1 && path[length - 1] == '/')
            length--;
        memcpy(head, path, length);
        head[length] = '\0';
        if (realpath(length > 0 ? head : ".", canonical) != NULL)
            break;
        if (length == 0 || (errno != ENOENT && errno != ENOTCONN))
            return -errno;
        while (length > 0 && path[length - 1] != '/')
            length--;
        tail = path + length;
    }
    if (snprintf(out, PATH_MAX, "%s%s%s", canonical, *tail != '\0' && canonical[1] != '\0' ? "/" : "", tail) >=
        PATH_MAX)
        return -ENAMETOOLONG;
    for (length = strlen(out); length > 1 && out[length - 1] == '/'; length--)
        out[length - 1] = '\0';
    return 0;
}

static bool is_below(const char *path, const char *directory) {
    size_t length = strlen(directory);

    if (directory[1] == '\0')
        return true;
    return strncmp(path, directory, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* --- what is mounted there ------------------------------------------------------------------------------------ */

/* The kernel writes space, tab, newline and backslash in its tables as \ooo. In place. */
static void unescape(char *text) {
    char *to = text;

    for (const char *from = text; *from != '\0'; to++) {
        if (from[0] == '\\' && from[1] != '\0' && from[2] != '\0' && from[3] != '\0') {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* Is the topmost mount on `directory` one of ours? A line: id parent device root MOUNT_POINT options... - TYPE source ... */
static bool is_spool(const char *directory, const char *subtype) {
    FILE *table = fopen("/proc/self/mountinfo", "re");
    char *line = NULL, *point, *type, *rest;
    size_t size = 0;
    bool ours = false;

    while (table != NULL && getline(&line, &size, table) >= 0) {
        rest = line;
        for (int field = 0; field < 4; field++)
            strsep(&rest, " ");
        point = strsep(&rest, " ");
        if (rest == NULL || (type = strstr(rest, " - ")) == NULL)
            continue;
        unescape(point);
        if (strcmp(point, directory) != 0)
            continue;
        rest = type + 3;
        type = strsep(&rest, " ");
        ours = strncmp(type, "fuse.", 5) == 0 && strcmp(type + 5, subtype) == 0;
    }
    free(line);
    if (table != NULL)
        fclose(table);
    return ours;
}

/* An ordinary user may not unmount, but has fusermount3 to do it. */
static int detach(const char *mount_point) {
    const char *const arguments[] = {"fusermount3", "-u", "-z", "-q", "--", mount_point, NULL};
    int status;
    pid_t pid;

    if (umount2(mount_point, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        return 0;
    if (errno != EPERM)
        return -errno;
    if (posix_spawnp(&pid, arguments[0], NULL, NULL, (char *const *)arguments, environ) != 0)
        return -EPERM;
    if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return -EPERM;
    return 0;
}

/* --- the checks ----------------------------------------------------------------------------------------------- */

static int check_database(const struct places *places, struct refusal *refusal) {
    char directory[PATH_MAX];
    struct statfs where;
    const char *kind;
    char *slash;

    if (is_below(places->database, places->mount_point))
        return refuse(refusal, EX_CONFIG,
                      "the database %s would be hidden below its own mount point %s: put it elsewhere",
                      places->database, places->mount_point);
    memcpy(directory, places->database, sizeof directory);
    while (statfs(directory, &where) < 0) {
        slash = strrchr(directory, '/');
        if ((errno != ENOENT && errno != ENOTDIR) || slash == NULL || slash[1] == '\0')
            return refuse(refusal, EX_IOERR, "cannot look at %s: %s", directory, strerror(errno));
        slash[slash == directory] = '\0';
    }
    switch ((unsigned long)where.f_type & 0xffffffff) {
    case FUSE_SUPER_MAGIC:
        kind = "FUSE";
        break;
    case NFS_SUPER_MAGIC:
        kind = "NFS";
        break;
    case SMB_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
        kind = "CIFS";
        break;
    default:
        return 0;
    }
    return refuse(refusal, EX_CONFIG,
                  "the database %s is on a %s file system, where it is not safe: put it on a local disk",
                  places->database, kind);
}

/* A mount whose daemon is gone answers ENOTCONN, but not to stat() while the kernel still knows the answer; ECONNABORTED, when
 * the last of a killed daemon's threads went while we asked. */
static int replace_dead(const char *mount_point, const char *subtype, struct refusal *refusal) {
    struct statfs asked;
    int result;

    while (statfs(mount_point, &asked) < 0 && (errno == ENOTCONN || errno == ECONNABORTED)) {
        if (!is_spool(mount_point, subtype))
            return refuse(refusal, EX_TEMPFAIL,
                          "the mount on %s, or above it, is dead and not a spool's: unmount it first", mount_point);
        result = detach(mount_point);
        if (result < 0)
            return refuse(refusal, EX_NOPERM, "cannot unmount the dead spool on %s (%s): try umount -l", mount_point,
                          strerror(-result));
    }
    return 0;
}

static int check_empty(const char *directory, struct refusal *refusal) {
    const struct dirent *entry;
    bool empty = true;
    DIR *listing = opendir(directory);

    if (listing == NULL)
        return refuse(refusal, EX_NOPERM, "cannot look into the mount point %s: %s", directory, strerror(errno));
    while (empty && (entry = readdir(listing)) != NULL)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(listing);
    if (!empty)
        return refuse(refusal, EX_CONFIG,
                      "the mount point %s is not empty: the mount would hide what is in it, so move that away first",
                      directory);
    return 0;
}

static int check_mount_point(struct places *places, const char *subtype, struct refusal *refusal) {
    const char *mount_point = places->mount_point;
    struct stat directory;
    int result = replace_dead(mount_point, subtype, refusal);

    if (result != 0)
        return result;
    if (stat(mount_point, &directory) < 0) {
        if (errno == ENOENT)
            return refuse(refusal, EX_NOINPUT, "the mount point %s does not exist: make the directory first",
                          mount_point);
        return refuse(refusal, errno == EACCES ? EX_NOPERM : EX_NOINPUT, "cannot reach the mount point %s: %s",
                      mount_point, strerror(errno));
    }
    if (!S_ISDIR(directory.st_mode))
        return refuse(refusal, EX_NOINPUT, "the mount point %s is not a directory: name one", mount_point);
    places->underneath = directory.st_dev;
    if (is_spool(mount_point, subtype))
        return refuse(refusal, EX_TEMPFAIL, "a spool is mounted on %s already: unmount it first", mount_point);
    return check_empty(mount_point, refusal);
}

int mount_check(struct places *places, const char *database, const char *mount_point, const char *subtype,
                struct refusal *refusal) {
    int result;

    result = resolve(mount_point, places->mount_point);
    if (result < 0)
        return refuse(refusal, result == -EACCES ? EX_NOPERM : EX_NOINPUT, "cannot reach the mount point %s: %s",
                      mount_point, strerror(-result));
    result = resolve(database, places->database);
    if (result < 0)
        return refuse(refusal, result == -EACCES ? EX_NOPERM : EX_IOERR, "cannot reach the database %s: %s", database,
                      strerror(-result));
    result = check_database(places, refusal);
    if (result == 0)
        result = check_mount_point(places, subtype, refusal);
    return result;
}

/* --- mounting --------------------------------------------------------------------------------------------------- */

/* libfuse reports some errors to its log, some to stderr, and fusermount3 has nothing but stderr: one text from all. */
static int mount_and_listen(struct fuse_session *session, const char *mount_point, char *said, size_t size) {
    int console = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int heard = memfd_create("stderr", MFD_CLOEXEC);
    ssize_t length = 0;
    int result;

    if (console >= 0 && heard >= 0)
        dup2(heard, STDERR_FILENO);
    log_hold_fuse();
    result = fuse_session_mount(session, mount_point);
    snprintf(said, size, "%s", log_release_fuse());
    if (console >= 0 && heard >= 0) {
        dup2(console, STDERR_FILENO);
        if (*said == '\0')
            length = pread(heard, said, size - 1, 0);
        if (length > 0)
            said[length] = '\0';
    }
    if (console >= 0)
        close(console);
    if (heard >= 0)
        close(heard);
    return result;
}

int mount_session(struct fuse_session *session, const struct places *places, struct refusal *refusal) {
    char said[512];

    if (mount_and_listen(session, places->mount_point, said, sizeof said) == 0)
        return 0;
    said[strcspn(said, "\n")] = '\0';
    return refuse(refusal, EX_UNAVAILABLE, "cannot mount on %s: %s", places->mount_point, said);
}
