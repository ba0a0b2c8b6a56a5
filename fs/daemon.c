/*
 * daemon.c - fork, wait for the mount, hand over.
 */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "log.h"

#define DESCRIPTORS_MAX 65536

void daemon_open_stdio(void) {
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

void daemon_prepare(void) {
    struct rlimit files;
    sigset_t read_by_serve;

    umask(077);
    sigemptyset(&read_by_serve);
    sigaddset(&read_by_serve, SIGTERM);
    sigaddset(&read_by_serve, SIGINT);
    sigaddset(&read_by_serve, SIGHUP);
    sigprocmask(SIG_BLOCK, &read_by_serve, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < DESCRIPTORS_MAX) {
        files.rlim_cur = files.rlim_max < DESCRIPTORS_MAX ? files.rlim_max : DESCRIPTORS_MAX;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* Copies to stderr up to a NUL (true) or the end (false). */
static bool copy_messages(int child_fd) {
    char text[4096];
    ssize_t got;
    const char *end;

    while ((got = read(child_fd, text, sizeof text)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        end = memchr(text, '\0', (size_t)got);
        if (write(STDERR_FILENO, text, end != NULL ? (size_t)(end - text) : (size_t)got) < 0 || end != NULL)
            return end != NULL;
    }
    return false;
}

/* The first answer is that to INIT, which the kernel waits for; it fails when the child ends or unmounts. */
static bool answers(const struct places *places) {
    struct stat root;

    return stat(places->mount_point, &root) == 0 && root.st_dev != places->underneath;
}

/* A child that failed has said why; one that was killed has not. */
static _Noreturn void wait_for_mount(pid_t child, int child_fd, const struct places *places) {
    int status = 0;

    if (copy_messages(child_fd) && answers(places))
        _exit(0);
    (void)copy_messages(child_fd);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        _exit(WEXITSTATUS(status));
    if (WIFSIGNALED(status))
        log_line(LOG_ERR, "signal %d ended the mount on %s before it answered", WTERMSIG(status), places->mount_point);
    else
        log_line(LOG_ERR, "the mount on %s has ended before it answered", places->mount_point);
    _exit(EX_UNAVAILABLE);
}

int daemon_start(const struct places *places, int *parent_fd, struct refusal *refusal) {
    int fds[2], null = -1;
    pid_t child;

    close_range(STDERR_FILENO + 1, ~0U, 0);
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || pipe2(fds, O_CLOEXEC) < 0)
        return refuse(refusal, EX_OSERR, "cannot go to the background: %s", strerror(errno));
    child = fork();
    if (child < 0)
        return refuse(refusal, EX_OSERR, "cannot go to the background: %s", strerror(errno));
    if (child > 0) {
        close(fds[1]);
        wait_for_mount(child, fds[0], places);
    }
    close(fds[0]);
    setsid();
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(fds[1], STDERR_FILENO);
    close(null);
    *parent_fd = fds[1];
    return chdir("/") == 0 ? 0 : refuse(refusal, EX_OSERR, "cannot enter the directory /: %s", strerror(errno));
}

int daemon_mounted(int parent_fd) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return -errno;
    dup2(null, STDERR_FILENO);
    close(null);
    return write(parent_fd, "", 1) == 1 ? 0 : -errno;
}
