/*
 * ops_move.c - rename: publishing, claiming, releasing and the rest, all of it decided by the engine.
 *
 * A watcher hears of a file's last close before the kernel tells us, so its claim may arrive first and find the file
 * still open. One such claim is parked, for a few milliseconds at most (it holds the kernel's lock on renames between
 * directories), and tried again when a file has been closed.
 */
#include "ops.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "fs.h"
#include "reply.h"

#define PARKED_MAX_NS 5000000

struct move {
    int64_t from;
    int64_t to;
    bool no_replace;
    struct spool_caller caller;
    char from_name[SPOOL_NAME_MAX + 1];
    char to_name[SPOOL_NAME_MAX + 1];
};

struct parked {
    struct task task;
    struct outcome outcome; /* of the request that is parked */
    fuse_req_t req;
    int64_t until_ns; /* boot clock */
    bool trying;      /* its task is in the open batch */
    bool answered;
    struct move move;
};

/* --- moving ------------------------------------------------------------------------------------------------------- */

/* The number of the worker's directory that is to be moved; 0: it is something else. */
static int64_t find_worker(struct fs *fs, const struct move *move) {
    struct spool_entry entry;

    if (spool_stat(fs->spool, move->from, &entry) < 0 || entry.kind != SPOOL_CLAIMED ||
        spool_lookup(fs->spool, move->from, move->from_name, &entry) < 0 || entry.kind != SPOOL_WORKER)
        return 0;
    return entry.number;
}

static int move_entry(struct fs *fs, const struct move *move) {
    int64_t worker = find_worker(fs, move);
    bool elsewhere = false;
    int result = spool_move(fs->spool, move->from, move->from_name, move->to, move->to_name, move->no_replace,
                            move->caller, &elsewhere);

    /* It dissolves when its leases are released; the kernel believes it has moved. */
    if (result == 0 && elsewhere && worker)
        notice_attributes(fs, worker);
    return result;
}

static int check(struct fs *fs, fuse_ino_t from, const char *from_name, fuse_ino_t to, const char *to_name,
                 unsigned flags, struct move *move) {
    struct node source = node_of(from), target = node_of(to);
    int result = batch_bind(fs);

    if (result < 0)
        return result;
    if (flags & ~(unsigned)RENAME_NOREPLACE)
        return -EINVAL;
    if (strlen(from_name) > SPOOL_NAME_MAX || strlen(to_name) > SPOOL_NAME_MAX)
        return -ENAMETOOLONG;
    if (source.kind != NODE_ENTRY || target.kind != NODE_ENTRY || control_is_entry(fs, source.number, from_name) ||
        control_is_entry(fs, target.number, to_name))
        return -EPERM;
    move->from = source.number;
    move->to = target.number;
    move->no_replace = (flags & RENAME_NOREPLACE) != 0;
    strcpy(move->from_name, from_name);
    strcpy(move->to_name, to_name);
    return 0;
}

/* --- parking ------------------------------------------------------------------------------------------------------ */

static void try_again(struct fs *fs, struct task *task) {
    struct parked *parked = (struct parked *)task;
    int result = batch_bind(fs);

    if (result == 0)
        result = move_entry(fs, &parked->move);

    parked->answered = result != -ETXTBSY || fs->now.boot_ns >= parked->until_ns;
    if (parked->answered)
        reply_error(fs, parked->req, result);
}

static void end_try(struct fs *fs, struct task *task) {
    struct parked *parked = (struct parked *)task;

    parked->trying = false;
    if (!parked->answered)
        return;
    fs->parked = NULL;
    free(parked);
}

static void end_parking(struct fs *fs, struct outcome *outcome, enum verdict verdict, int error) {
    struct parked *parked = (struct parked *)((char *)outcome - offsetof(struct parked, outcome));

    if (verdict == BATCH_COMMITTED && !fs->parked) {
        fs->parked = parked;
        return;
    }
    if (verdict == BATCH_COMMITTED)
        error = -ETXTBSY;
    if (verdict == BATCH_UNDONE)
        reply_nothing(parked->req);
    else
        reply_refused(parked->req, error);
    free(parked);
}

/* False: the answer is due now. */
static bool park(struct fs *fs, fuse_req_t req, const struct move *move) {
    struct parked *parked;

    if (fs->parked || !spool_is_closing(fs->spool, move->from, move->from_name))
        return false;
    parked = calloc(1, sizeof *parked);
    if (!parked)
        return false;
    parked->task = (struct task){.run = try_again, .end = end_try};
    parked->outcome.end = end_parking;
    parked->req = req;
    parked->until_ns = fs->now.boot_ns + PARKED_MAX_NS;
    parked->move = *move;
    fs->released = false;
    batch_defer(fs, &parked->outcome, true);
    return true;
}

void move_retry(struct fs *fs) {
    if (!fs->parked || fs->parked->trying || (!fs->released && fs_boot_ns() < fs->parked->until_ns))
        return;
    fs->released = false;
    fs->parked->trying = true;
    batch_run(fs, &fs->parked->task);
}

void move_give_up(struct fs *fs) {
    if (!fs->parked)
        return;
    fs->parked->until_ns = 0;
    move_retry(fs);
    batch_end(fs);
}

int64_t move_deadline_ns(const struct fs *fs) {
    return fs->parked ? fs->parked->until_ns : INT64_MAX;
}

void op_rename(fuse_req_t req, fuse_ino_t from, const char *from_name, fuse_ino_t to, const char *to_name,
               unsigned flags) {
    struct fs *fs = fuse_req_userdata(req);
    struct move move = {.caller = fs_caller(req)};
    int result = check(fs, from, from_name, to, to_name, flags, &move);

    if (result == 0)
        result = move_entry(fs, &move);
    if (result == -ETXTBSY && park(fs, req, &move))
        return;
    reply_error(fs, req, result);
}
