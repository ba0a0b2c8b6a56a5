/*
 * notice.c - a list of notices, and the work that tells them.
 */
#include "notice.h"

#include <stdlib.h>
#include <string.h>

#include "fs.h"
#include "node.h"

struct notice {
    struct notice *next;
    fuse_ino_t node;
    char name[]; /* in that directory; empty: its attributes */
};

static void add(struct fs *fs, int64_t number, const char *name) {
    size_t length = strlen(name);
    struct notice *notice = malloc(sizeof *notice + length + 1);

    if (!notice)
        return;
    notice->node = node_of_entry(number);
    memcpy(notice->name, name, length + 1);
    notice->next = fs->notices.waiting;
    fs->notices.waiting = notice;
}

void notice_name(struct fs *fs, int64_t directory, const char *name) {
    add(fs, directory, name);
}

void notice_attributes(struct fs *fs, int64_t number) {
    add(fs, number, "");
}

static void tell(struct job *job) {
    struct fs *fs = (struct fs *)((char *)work_of_job(job) - offsetof(struct fs, notices.work));

    for (struct notice *notice = fs->notices.told; notice; notice = notice->next) {
        if (notice->name[0])
            fuse_lowlevel_notify_inval_entry(fs->session, notice->node, notice->name, strlen(notice->name));
        else
            fuse_lowlevel_notify_inval_inode(fs->session, notice->node, -1, 0);
    }
}

static void free_list(struct notice **list) {
    while (*list) {
        struct notice *notice = *list;

        *list = notice->next;
        free(notice);
    }
}

static void end_telling(struct fs *fs, struct task *task) {
    (void)task;
    free_list(&fs->notices.told);
    fs->notices.telling = false;
}

void notice_forget(struct fs *fs) {
    free_list(&fs->notices.waiting);
}

void notice_send(struct fs *fs) {
    struct notices *notices = &fs->notices;
    char name[SPOOL_NAME_MAX + 1];
    int64_t directory;

    while (spool_next_vanished(fs->spool, &directory, name))
        notice_name(fs, directory, name);
    if (!notices->waiting || notices->telling || notices->ending)
        return;
    notices->told = notices->waiting;
    notices->waiting = NULL;
    notices->telling = true;
    notices->work = (struct work){.job.run = tell, .task.end = end_telling};
    work_begin(fs, &notices->work);
}
