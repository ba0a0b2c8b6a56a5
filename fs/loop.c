/*
 * loop.c - the one thread that calls the engine.
 *
 * It runs what is there at once as one batch: requests, finished work, what fell due. Then it commits, and waits. A
 * batch whose outcome nobody waits for (files were released) stays open for a moment, because the next request will
 * most likely pay for its commit.
 *
 * After a short wait it looks for the next request for a while before it sleeps: a program that works through a queue
 * asks again in less time than it takes to fall asleep and wake up.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "fs.h"
#include "log.h"
#include "ops.h"
#include "request.h"
#include "wake.h"
#include "work.h"

#define POOL_THREADS 4
#define POOL_MAX_BYTES (32 * 1024 * 1024) /* no requests are read beyond that: their writers wait */
#define SPIN_NS 50000
#define LAZY_NS 2000000
#define IDLE_NS FS_SECOND_NS /* without a request for so long, the log is tidied away */
#define FAREWELL_NS FS_SECOND_NS

enum { ON_REQUEST, ON_SIGNAL, ON_WAKE, DESCRIPTORS };

struct loop {
    struct fs *fs;
    struct requests requests;
    struct pollfd on[DESCRIPTORS];
    bool ending;
    /* waiting */
    int64_t orphans_not_before_ns;
    int64_t quiet_since_ns; /* 0: not quiet */
    int64_t last_request_ns;
    bool eager; /* the last wait was short */
    /* tidying the log away */
    bool saving; /* the flusher has been asked for `save_ticket` */
    uint64_t save_ticket;
    int64_t save_not_before_ns;
    bool reaping;
    bool broken;
};

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* --- what happens by itself --------------------------------------------------------------------------------------- */

/* The engine's own deadline; looked at every second, since the wall clock may be stepped, and no more often when
 * it can do nothing about it. */
static int64_t tick_ns(const struct fs *fs) {
    int64_t next_ns = spool_next_tick_ns(fs->spool);
    int64_t second_ns = fs->now.boot_ns + FS_SECOND_NS;

    if (next_ns == INT64_MAX)
        return next_ns;
    return fs->frozen < 0 ? second_ns : smaller(next_ns, second_ns);
}

static int64_t timer_ns(const struct loop *loop) {
    const struct fs *fs = loop->fs;
    int64_t next_ns = smaller(tick_ns(fs), overwrite_next_ns(fs));

    if (fs->handles.orphans)
        next_ns = smaller(next_ns, loop->orphans_not_before_ns);
    return next_ns;
}

static void run_timer(struct fs *fs, struct task *task) {
    (void)task;
    overwrite_expire(fs, fs->now.boot_ns);
}

static void end_timer(struct fs *fs, struct task *task) {
    (void)fs;
    free(task);
}

static void run_due(struct loop *loop) {
    struct task *timer;

    if (timer_ns(loop) > fs_boot_ns())
        return;
    timer = calloc(1, sizeof *timer);
    if (!timer)
        return;
    *timer = (struct task){.run = run_timer, .end = end_timer};
    batch_run(loop->fs, timer);
    if (loop->orphans_not_before_ns <= loop->fs->now.boot_ns) {
        loop->orphans_not_before_ns = loop->fs->now.boot_ns + FS_SECOND_NS;
        close_orphans(loop->fs);
    }
}

/* --- tidying up --------------------------------------------------------------------------------------------------- */

struct reaping {
    struct work work;
    struct loop *loop;
};

static void reap(struct job *job) {
    spool_reap(((struct reaping *)work_of_job(job))->loop->fs->spool);
}

static void end_reaping(struct fs *fs, struct task *task) {
    struct reaping *reaping = (struct reaping *)work_of_task(task);

    (void)fs;
    reaping->loop->reaping = false;
    free(reaping);
}

static void reap_payloads(struct loop *loop) {
    struct reaping *reaping;

    if (loop->reaping || !spool_wants_reap(loop->fs->spool))
        return;
    reaping = calloc(1, sizeof *reaping);
    if (!reaping)
        return;
    reaping->work.job.run = reap;
    reaping->work.task.end = end_reaping;
    reaping->loop = loop;
    loop->reaping = true;
    work_begin(loop->fs, &reaping->work);
}

static bool is_idle(const struct loop *loop, int64_t now_ns) {
    return now_ns - loop->last_request_ns >= IDLE_NS;
}

static void checkpoint(struct loop *loop, int64_t now_ns) {
    struct fs *fs = loop->fs;
    int result;

    batch_end(fs);
    result = spool_checkpoint(fs->spool);
    loop->saving = false;
    fs->unsaved = result < 0;
    if (result < 0) {
        loop->save_not_before_ns = now_ns + FS_SECOND_NS;
        log_line(LOG_WARNING, "The log could not be moved into the database: error %d. Is the disk full?", -result);
    }
}

/* The flush is the flusher's, so that the checkpoint, which keeps everybody waiting, is short. */
static void save(struct loop *loop, int64_t now_ns) {
    struct fs *fs = loop->fs;

    if (loop->saving) {
        if (flusher_synced(fs->flusher) >= loop->save_ticket)
            checkpoint(loop, now_ns);
        return;
    }
    if (!fs->unsaved || now_ns < loop->save_not_before_ns)
        return;
    if (!spool_wants_checkpoint(fs->spool) && !is_idle(loop, now_ns))
        return;
    loop->saving = true;
    loop->save_ticket = fs->ticket;
    flusher_ask(fs->flusher, fs->ticket);
}

static void tidy(struct loop *loop, int64_t now_ns) {
    if (!spool_broken(loop->fs->spool)) {
        save(loop, now_ns);
        reap_payloads(loop);
        return;
    }
    if (!loop->broken)
        log_line(LOG_CRIT,
                 "Writing to the database's disk failed. Nothing can be changed until the mount is made anew; "
                 "reading goes on.");
    loop->broken = true;
    loop->saving = false;
}

/* --- one round ---------------------------------------------------------------------------------------------------- */

static bool read_requests(struct loop *loop) {
    struct request *request;
    bool any = false;

    while (pool_bytes(loop->fs->pool) < POOL_MAX_BYTES && (request = request_receive(&loop->requests))) {
        batch_run(loop->fs, &request->task);
        any = true;
    }
    return any;
}

static bool batch_is_due(const struct loop *loop, int64_t now_ns) {
    const struct fs *fs = loop->fs;

    return fs->batch.awaited || fs->batch.suspect || fs->batch.failed || !loop->requests.free ||
           !spool_changed(fs->spool) || now_ns - fs->batch.begun_ns >= LAZY_NS;
}

/* Did anything happen? */
static bool run_round(struct loop *loop) {
    struct fs *fs = loop->fs;
    bool any = work_collect(fs);
    bool asked;
    int64_t now_ns;

    run_due(loop);
    asked = read_requests(loop);
    move_retry(fs);
    now_ns = fs_boot_ns();
    if (asked)
        loop->last_request_ns = now_ns;
    if (batch_is_due(loop, now_ns))
        batch_end(fs);
    notice_send(fs);
    tidy(loop, now_ns);
    if (fuse_session_exited(fs->session))
        loop->ending = true;
    return any || asked;
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

static int64_t wake_ns(const struct loop *loop) {
    const struct fs *fs = loop->fs;
    int64_t next_ns = smaller(timer_ns(loop), move_deadline_ns(fs));

    if (fs->batch.tasks > 0)
        next_ns = smaller(next_ns, fs->batch.begun_ns + LAZY_NS);
    if (fs->unsaved && !loop->saving && !loop->broken)
        next_ns = smaller(next_ns, loop->last_request_ns + IDLE_NS);
    return next_ns;
}

static void sleep_until(struct loop *loop, int64_t until_ns, int64_t now_ns) {
    struct pollfd on[DESCRIPTORS];
    int64_t ns = until_ns > now_ns ? until_ns - now_ns : 0;
    struct timespec timeout = {.tv_sec = ns / FS_SECOND_NS, .tv_nsec = ns % FS_SECOND_NS};
    struct signalfd_siginfo signal;

    memcpy(on, loop->on, sizeof on);
    on[ON_REQUEST].events = pool_bytes(loop->fs->pool) < POOL_MAX_BYTES ? POLLIN : 0;
    if (ppoll(on, DESCRIPTORS, until_ns == INT64_MAX ? NULL : &timeout, NULL) <= 0)
        return;
    if (on[ON_WAKE].revents)
        wake_clear(on[ON_WAKE].fd);
    if (on[ON_SIGNAL].revents && read(on[ON_SIGNAL].fd, &signal, sizeof signal) > 0)
        loop->ending = true;
}

static void wait_for_more(struct loop *loop) {
    int64_t now_ns = fs_boot_ns();

    if (loop->quiet_since_ns == 0)
        loop->quiet_since_ns = now_ns;
    if (loop->eager && now_ns - loop->quiet_since_ns < SPIN_NS)
        return;
    sleep_until(loop, wake_ns(loop), now_ns);
    loop->eager = fs_boot_ns() - loop->quiet_since_ns < 2 * SPIN_NS;
    loop->quiet_since_ns = 0;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static void drain_pool(struct loop *loop) {
    struct fs *fs = loop->fs;
    struct pollfd wake = loop->on[ON_WAKE];

    while (pool_jobs(fs->pool) > 0) {
        work_collect(fs);
        batch_end(fs);
        if (pool_jobs(fs->pool) > 0) {
            poll(&wake, 1, 1000);
            wake_clear(wake.fd);
        }
    }
}

static void run_farewell(struct fs *fs, struct task *task) {
    (void)task;
    overwrite_expire(fs, INT64_MAX);
}

/* What has been asked until now is answered: the RELEASE of a file that was closed a moment ago is among it. */
static void say_farewell(struct loop *loop) {
    struct fs *fs = loop->fs;
    struct task farewell = {.run = run_farewell};
    int64_t until_ns = fs_boot_ns() + FAREWELL_NS;

    while (read_requests(loop) && fs_boot_ns() < until_ns)
        batch_end(fs);
    batch_end(fs);
    drain_pool(loop);
    move_give_up(fs);
    batch_run(fs, &farewell);
    close_all(fs, fuse_session_exited(fs->session));
    batch_end(fs);
    drain_pool(loop);
}

/* --- the beginning ------------------------------------------------------------------------------------------------ */

static int open_descriptors(struct loop *loop, struct fuse_session *session) {
    int request = fuse_session_fd(session);
    int flags = fcntl(request, F_GETFL);
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    for (int i = 0; i < DESCRIPTORS; i++)
        loop->on[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    loop->on[ON_REQUEST].fd = request;
    loop->on[ON_SIGNAL].fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    loop->on[ON_WAKE].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->on[ON_SIGNAL].fd < 0 || loop->on[ON_WAKE].fd < 0 || flags < 0 ||
        fcntl(request, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    return 0;
}

static void close_descriptors(struct loop *loop) {
    if (loop->on[ON_SIGNAL].fd >= 0)
        close(loop->on[ON_SIGNAL].fd);
    if (loop->on[ON_WAKE].fd >= 0)
        close(loop->on[ON_WAKE].fd);
}

int serve(struct fs *fs, struct fuse_session *session) {
    struct loop *loop = calloc(1, sizeof *loop);
    int result;

    if (!loop)
        return -ENOMEM;
    loop->fs = fs;
    fs->session = session;
    requests_init(&loop->requests, session);
    result = open_descriptors(loop, session);
    if (result == 0)
        result = flusher_new(fs->spool, loop->on[ON_WAKE].fd, &fs->flusher);
    if (result == 0)
        result = pool_new(POOL_THREADS, loop->on[ON_WAKE].fd, &fs->pool);
    if (result < 0)
        goto out;
    while (!loop->ending)
        if (!run_round(loop))
            wait_for_more(loop);
        else
            loop->quiet_since_ns = 0;
    say_farewell(loop);
out:
    pool_free(fs->pool);
    flusher_free(fs->flusher);
    fs->pool = NULL;
    fs->flusher = NULL;
    requests_end(&loop->requests);
    close_descriptors(loop);
    free(loop);
    return result;
}
