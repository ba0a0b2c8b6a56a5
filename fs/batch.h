/*
 * batch.h - what happens between two commits.
 *
 * The loop runs tasks: requests, the ends of work done elsewhere, retries. Each calls the engine and leaves outcomes:
 * answers, work to begin, things to remember. Nothing of that takes place before the batch is committed; then each
 * outcome is told how it went. A batch that does not fit on the disk is undone as a whole and its tasks are run again
 * one by one, so one that cannot succeed does not take the others with it.
 *
 *     batch_run(task) ... batch_run(task)   batch_end(): commit ──▶ BATCH_COMMITTED
 *                                                  │ no space, no memory
 *                                                  ├─ the first time: BATCH_UNDONE, then each task alone
 *                                                  ├─ alone: BATCH_REFUSED with the error
 *                                                  └─ the disk failed: BATCH_UNKNOWN
 *
 * A task that leaves no outcome is not run again: whatever it had to say has been said.
 *
 * Last closes bind nobody. A file that was flushed is published by recovery if a crash comes before the commit, so
 * what others see of it meanwhile may be answered at once. Everything else that changes something begins with
 * batch_bind().
 */
#ifndef BATCH_H
#define BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fs;

enum verdict {
    BATCH_COMMITTED,
    BATCH_UNDONE,  /* as if it had not been run; it will be again */
    BATCH_REFUSED, /* as if it had not been run; `error` is the answer */
    BATCH_UNKNOWN, /* what the engine keeps in memory is as if it had not been run; of what is on the disk nobody knows.
                    * `error` (-EIO) is the answer to whatever was changed */
};

struct task {
    void (*run)(struct fs *fs, struct task *task);
    void (*end)(struct fs *fs, struct task *task); /* it will not be run again: free it. May be NULL */
    struct task *next;
    bool pending; /* has left an outcome */
};

struct outcome {
    void (*end)(struct fs *fs, struct outcome *outcome, enum verdict verdict, int error);
    struct outcome *next;
};

struct batch {
    struct task *first;
    struct task **last;
    size_t tasks;
    struct task *running;
    struct outcome *outcomes; /* the newest first */
    bool binding;             /* something in it cannot be found out again after a crash: answers wait for the commit */
    bool awaited;             /* somebody waits for an outcome: commit soon */
    bool failed;              /* memory ran out in the middle of a task */
    bool promised;            /* something in it should be on stable storage soon, though nobody waits for it */
    bool suspect;             /* the engine failed in a way that may have undone the batch already */
    int64_t begun_ns;         /* boot clock */
};

void batch_init(struct batch *batch);
/* Tell the engine the time and run `task` in the open batch. */
void batch_run(struct fs *fs, struct task *task);
/* From within a task. `awaited`: a process waits for it. The outcome stays the caller's memory; its end is called
 * exactly once. */
void batch_defer(struct fs *fs, struct outcome *outcome, bool awaited);
/* From within a task, before it changes something. Returns 0, or the error (-EROFS) if nothing may be changed. */
int batch_bind(struct fs *fs);
/* From within a task: it could not be done for want of memory. */
void batch_fail(struct fs *fs);
/* Commit, and see to all outcomes and tasks. Does nothing when nothing was run. */
void batch_end(struct fs *fs);

#endif
