/*
 * notice.c - a short list of nodes, and the work that tells them.
 */
#include "notice.h"

#include <stdlib.h>
#include <string.h>

#include "fs.h"
#include "node.h"

struct telling {
    struct work work;
    struct fuse_session *session;
    unsigned count;
    fuse_ino_t nodes[NOTICES_MAX];
};

void notice_attributes(struct fs *fs, int64_t number) {
    struct notices *notices = &fs->notices;

    if (notices->count < NOTICES_MAX)
        notices->waiting[notices->count++] = node_of_entry(number);
}

static void tell(struct job *job) {
    struct telling *telling = (struct telling *)work_of_job(job);

    for (unsigned i = 0; i < telling->count; i++)
        fuse_lowlevel_notify_inval_inode(telling->session, telling->nodes[i], -1, 0);
}

static void end_telling(struct fs *fs, struct task *task) {
    fs->notices.telling = false;
    free(work_of_task(task));
}

void notice_send(struct fs *fs) {
    struct notices *notices = &fs->notices;
    struct telling *telling;

    if (notices->count == 0 || notices->telling)
        return;
    telling = calloc(1, sizeof *telling);
    if (!telling)
        return;
    telling->work = (struct work){.job.run = tell, .task.end = end_telling};
    telling->session = fs->session;
    telling->count = notices->count;
    memcpy(telling->nodes, notices->waiting, sizeof telling->nodes);
    notices->count = 0;
    notices->telling = true;
    work_begin(fs, &telling->work);
}
