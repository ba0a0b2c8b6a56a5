/*
 * pool.h - a few threads for work that waits for a disk.
 *
 * A job runs in any of them. Jobs of the same key run one after the other, in the order of submission; key 0 needs no
 * order. What has run is collected by the thread that submitted it, which is woken through a descriptor.
 */
#ifndef POOL_H
#define POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job {
    void (*run)(struct job *job); /* in a thread of the pool */
    int64_t key;
    size_t bytes; /* memory it holds, for pool_bytes() */
    struct job *next;
};

struct pool;

/* `wake` is an eventfd; it stays the caller's. Returns 0 or a negative errno. */
int pool_new(unsigned threads, int wake, struct pool **out);
/* Lets everything that was submitted run, then ends the threads; what was not collected is forgotten. NULL is fine. */
void pool_free(struct pool *pool);

/* The job stays the caller's memory, not to be touched before it is collected. */
void pool_submit(struct pool *pool, struct job *job);
/* Jobs that have run since the last call, in the order of their ends, linked by `next`. */
struct job *pool_collect(struct pool *pool);
/* Submitted and not collected: how many jobs, how many bytes. The submitting thread's. */
size_t pool_jobs(const struct pool *pool);
size_t pool_bytes(const struct pool *pool);

#endif
