/*
 * work.h - what a request needs done that waits for a disk: begun when the batch of the request is committed, done by
 * the pool, and finished by a task of the loop, which may call the engine again and answer.
 */
#ifndef WORK_H
#define WORK_H

#include "batch.h"
#include "pool.h"
#include "serve.h"

struct work {
    struct job job;   /* run: in a thread of the pool */
    struct task task; /* run: afterwards, in the loop (NULL: nothing is left to do); end: frees */
    struct outcome outcome;
    fuse_req_t req; /* answered with an error when the work cannot be begun; NULL: nobody waits */
    void (*begin)(struct fs *fs, struct work *work);             /* just before, in the loop. May be NULL */
    void (*refuse)(struct fs *fs, struct work *work, int error); /* it will not be begun, nor again. May be NULL */
};

static inline struct work *work_of_job(struct job *job) {
    return (struct work *)job;
}
static inline struct work *work_of_task(struct task *task) {
    return (struct work *)((char *)task - offsetof(struct work, task));
}

/* From within a task. */
void work_defer(struct fs *fs, struct work *work);
/* From the loop, between batches. */
void work_begin(struct fs *fs, struct work *work);
/* Run what is left to do of everything that the pool has finished. Was there anything? */
bool work_collect(struct fs *fs);

#endif
