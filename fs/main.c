/*
 * main.c - from the command line to a mount that answers, and from its end to a closed database.
 *
 * The order matters. Nothing is touched before the places were looked at. The database is opened in the process that will
 * serve it, because a database must not be carried through a fork; and before the mount, so that a database that
 * cannot be opened leaves the mount point as it was.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "daemon.h"
#include "log.h"
#include "mount.h"
#include "options.h"
#include "privileges.h"
#include "refuse.h"
#include "serve.h"
#include "spool.h"

/* umount returns before the daemon has closed the database: a mount that follows at once waits for that. */
#define BUSY_WAIT_NS 5000000000
#define BUSY_POLL_NS 20000000

static int64_t clock_ns(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* An empty text when the kernel does not tell: leases then get a fresh end, as after a boot. */
static void read_boot_id(char *text, size_t size) {
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    text[0] = '\0';
    if (file != NULL && fgets(text, (int)size, file) != NULL)
        text[strcspn(text, "\n")] = '\0';
    if (file != NULL)
        fclose(file);
}

static int open_exit_code(int error) {
    switch (-error) {
    case EBUSY:
        return EX_TEMPFAIL;
    case EACCES:
    case EPERM:
        return EX_NOPERM;
    case ENOTSUP:
        return EX_CONFIG;
    default:
        return EX_IOERR;
    }
}

static int open_spool(struct spool **spool, const char *path, const struct options *options, struct refusal *refusal) {
    const struct timespec pause = {.tv_nsec = BUSY_POLL_NS};
    const int64_t give_up_ns = clock_ns(CLOCK_BOOTTIME) + BUSY_WAIT_NS;
    char boot_id[64], why[1024] = "";
    struct spool_options spool_options = {
        .read_only = options->read_only,
        .uid = getuid(),
        .gid = getgid(),
        .boot_id = boot_id,
        .reserve_bytes = options->reserve_bytes,
    };
    struct spool_time now;
    int error;

    read_boot_id(boot_id, sizeof boot_id);
    for (;;) {
        now = (struct spool_time){.wall_ns = clock_ns(CLOCK_REALTIME), .boot_ns = clock_ns(CLOCK_BOOTTIME)};
        error = spool_open(path, &spool_options, now, spool, why, sizeof why);
        if (error != -EBUSY || now.boot_ns >= give_up_ns)
            break;
        nanosleep(&pause, NULL);
    }
    if (error == -EBUSY)
        return refuse(refusal, EX_TEMPFAIL, "%s: unmount that one first", why);
    return error == 0 ? 0 : refuse(refusal, open_exit_code(error), "%s", why);
}

static void unmount(struct fuse_session *session) {
    privileges_unmount();
    fuse_session_unmount(session);
}

/* Mounts, serves and unmounts. `parent_fd` is -1 in the foreground. */
static int serve_mount(struct fs *fs, struct fuse_session *session, const struct places *places, int parent_fd,
                       struct refusal *refusal) {
    int error, result = mount_session(session, places, refusal);

    if (result != 0)
        return result;
    error = privileges_drop();
    if (error < 0) {
        unmount(session);
        return refuse(refusal, EX_OSERR, "cannot give up the privileges that are not needed: %s", strerror(-error));
    }
    if (parent_fd >= 0) {
        error = daemon_mounted(parent_fd);
        if (error < 0) {
            unmount(session);
            return refuse(refusal, EX_OSERR, "nobody waits for the mount any more: %s", strerror(-error));
        }
        log_open(false);
    }
    log_line(LOG_INFO, "%s is mounted on %s", places->database, places->mount_point);
    error = serve(fs, session);
    unmount(session);
    if (error < 0) {
        result = refuse(refusal, EX_OSERR, "the mount on %s has ended: %s", places->mount_point, strerror(-error));
        if (parent_fd >= 0)
            dprintf(parent_fd, "spoolfs: %s\n", refusal->sentence);
        return result;
    }
    log_line(LOG_INFO, "%s is unmounted from %s", places->database, places->mount_point);
    return 0;
}

/* All that happens with the database open. */
static int run(struct options *options, const struct places *places, int parent_fd, struct refusal *refusal) {
    const struct serve_options serve_options = {.read_only = options->read_only};
    struct fuse_session *session = NULL;
    struct spool *spool = NULL;
    struct fs *fs = NULL;
    int result = open_spool(&spool, places->database, options, refusal);

    if (result != 0)
        return result;
    fs = fs_new(spool, &serve_options);
    if (fs != NULL)
        session = fuse_session_new(&options->fuse, &fs_operations, sizeof fs_operations, fs);
    if (session != NULL)
        result = serve_mount(fs, session, places, parent_fd, refusal);
    else
        result = refuse(refusal, EX_OSERR, "out of memory");
    if (session != NULL)
        fuse_session_destroy(session);
    fs_free(fs);
    spool_close(spool);
    return result;
}

static int start(struct options *options, struct refusal *refusal) {
    struct places places;
    int parent_fd = -1;
    int result = mount_check(&places, options->database, options->mount_point, options->subtype, refusal);

    if (result == 0)
        result = options_complete(options, places.database, refusal);
    if (result == 0 && !options->foreground)
        result = daemon_start(&places, &parent_fd, refusal);
    if (result != 0)
        return result;
    daemon_prepare();
    return run(options, &places, parent_fd, refusal);
}

int main(int argc, char **argv) {
    struct refusal refusal;
    struct options options;
    int result;

    daemon_open_stdio();
    log_open(true);
    result = options_parse(&options, argc, argv, &refusal);
    if (result == 0 && options.help)
        fputs(options_help, stdout);
    else if (result == 0 && options.version)
        printf("spoolfs %s, libfuse %s\n", SPOOL_VERSION, fuse_pkgversion());
    else if (result == 0)
        result = start(&options, &refusal);
    if (result != 0)
        log_line(LOG_ERR, "%s", refusal.sentence);
    options_free(&options);
    return result;
}
