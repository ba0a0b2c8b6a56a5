/*
 * work.c - from a request to the pool and back.
 */
#include "work.h"

#include "fs.h"
#include "reply.h"

static void end_task(struct fs *fs, struct work *work) {
    if (work->task.end)
        work->task.end(fs, &work->task);
}

static void end(struct fs *fs, struct outcome *outcome, enum verdict verdict, int error) {
    struct work *work = (struct work *)((char *)outcome - offsetof(struct work, outcome));

    if (verdict == BATCH_COMMITTED) {
        work_begin(fs, work);
        return;
    }
    if (work->req && verdict == BATCH_UNDONE)
        reply_nothing(work->req);
    else if (work->req)
        reply_refused(work->req, error);
    if (work->refuse && verdict != BATCH_UNDONE)
        work->refuse(fs, work, error);
    end_task(fs, work);
}

void work_defer(struct fs *fs, struct work *work) {
    work->outcome.end = end;
    batch_defer(fs, &work->outcome, true);
}

void work_begin(struct fs *fs, struct work *work) {
    if (work->begin)
        work->begin(fs, work);
    pool_submit(fs->pool, &work->job);
}

bool work_collect(struct fs *fs) {
    struct job *list = pool_jobs(fs->pool) > 0 ? pool_collect(fs->pool) : NULL;
    bool any = list != NULL;

    while (list) {
        struct work *work = work_of_job(list);

        list = list->next;
        if (work->task.run)
            batch_run(fs, &work->task);
        else
            end_task(fs, work);
    }
    return any;
}
