/*
 * pool.c - threads, a queue of jobs, and the keys that are being worked on.
 *
 * A thread takes the first job whose key nobody works on. As that is the first of its key in the queue, order within
 * a key holds. The queue is short: each job stands for a system call that waits.
 */
#include "pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "wake.h"

struct worker {
    pthread_t thread;
    struct pool *pool;
    int64_t key; /* being worked on; 0: none */
};

struct pool {
    int wake;
    pthread_mutex_t lock; /* guards what follows, the workers' keys too */
    pthread_cond_t submitted;
    struct job *queue;
    struct job *finished; /* the newest first */
    bool ending;
    /* the submitting thread's */
    size_t jobs;
    size_t bytes;
    /* constant */
    unsigned workers;
    struct worker worker[];
};

static bool is_worked_on(const struct pool *pool, int64_t key) {
    for (unsigned i = 0; key != 0 && i < pool->workers; i++)
        if (pool->worker[i].key == key)
            return true;
    return false;
}

static struct job *take(struct pool *pool) {
    for (struct job **link = &pool->queue; *link; link = &(*link)->next) {
        struct job *job = *link;

        if (!is_worked_on(pool, job->key)) {
            *link = job->next;
            return job;
        }
    }
    return NULL;
}

static void finish(struct pool *pool, struct job *job) {
    bool first = pool->finished == NULL;

    job->next = pool->finished;
    pool->finished = job;
    if (first)
        wake_up(pool->wake);
}

static void *work(void *context) {
    struct worker *worker = context;
    struct pool *pool = worker->pool;
    struct job *job;

    pthread_mutex_lock(&pool->lock);
    for (;;) {
        job = take(pool);
        if (!job) {
            if (pool->ending && !pool->queue)
                break;
            pthread_cond_wait(&pool->submitted, &pool->lock);
            continue;
        }
        worker->key = job->key;
        pthread_mutex_unlock(&pool->lock);
        job->run(job);
        pthread_mutex_lock(&pool->lock);
        worker->key = 0;
        finish(pool, job);
        /* A job of this key, or the end, may be what the others wait for. */
        if (pool->queue || pool->ending)
            pthread_cond_broadcast(&pool->submitted);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

int pool_new(unsigned threads, int wake, struct pool **out) {
    struct pool *pool = calloc(1, sizeof *pool + threads * sizeof pool->worker[0]);
    int result = 0;

    if (!pool)
        return -ENOMEM;
    pool->wake = wake;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->submitted, NULL);
    pthread_mutex_lock(&pool->lock);
    while (pool->workers < threads && result == 0) {
        struct worker *worker = &pool->worker[pool->workers];

        worker->pool = pool;
        result = -pthread_create(&worker->thread, NULL, work, worker);
        if (result == 0)
            pool->workers++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (result < 0)
        pool_free(pool);
    else
        *out = pool;
    return result;
}

void pool_free(struct pool *pool) {
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    pthread_cond_broadcast(&pool->submitted);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->workers; i++)
        pthread_join(pool->worker[i].thread, NULL);
    pthread_cond_destroy(&pool->submitted);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

void pool_submit(struct pool *pool, struct job *job) {
    struct job **last = &pool->queue;

    pool->jobs++;
    pool->bytes += job->bytes;
    job->next = NULL;
    pthread_mutex_lock(&pool->lock);
    while (*last)
        last = &(*last)->next;
    *last = job;
    pthread_cond_signal(&pool->submitted);
    pthread_mutex_unlock(&pool->lock);
}

struct job *pool_collect(struct pool *pool) {
    struct job *newest_first;
    struct job *list = NULL;

    pthread_mutex_lock(&pool->lock);
    newest_first = pool->finished;
    pool->finished = NULL;
    pthread_mutex_unlock(&pool->lock);
    while (newest_first) {
        struct job *job = newest_first;

        newest_first = job->next;
        job->next = list;
        list = job;
        pool->jobs--;
        pool->bytes -= job->bytes;
    }
    return list;
}

size_t pool_jobs(const struct pool *pool) {
    return pool->jobs;
}

size_t pool_bytes(const struct pool *pool) {
    return pool->bytes;
}
