/*
 * flusher.c - group commit without timers: while one flush is under way, the answers for the next one gather.
 */
#include "flusher.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "reply.h"
#include "spool.h"
#include "wake.h"

struct flusher {
    struct spool *spool;
    int wake;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t added;
    struct reply *first; /* in the order of their tickets */
    struct reply **last;
    uint64_t newest; /* ticket to be flushed */
    uint64_t asked;
    uint64_t synced;
    bool ending;
};

/* Everybody whose batch is covered by this flush, those who came while it ran too. */
static struct reply *take_covered(struct flusher *flusher, uint64_t ticket) {
    struct reply *covered = flusher->first;
    struct reply **link = &covered;

    while (*link && (*link)->ticket <= ticket)
        link = &(*link)->next;
    flusher->first = *link;
    if (!flusher->first)
        flusher->last = &flusher->first;
    *link = NULL;
    return covered;
}

static void flush(struct flusher *flusher) {
    uint64_t ticket = flusher->newest;
    struct reply *covered;
    bool asked;
    int result;

    pthread_mutex_unlock(&flusher->lock);
    result = spool_sync(flusher->spool, ticket);
    pthread_mutex_lock(&flusher->lock);
    covered = take_covered(flusher, ticket);
    asked = flusher->asked > flusher->synced;
    flusher->synced = ticket;
    pthread_mutex_unlock(&flusher->lock);
    while (covered) {
        struct reply *next = covered->next;

        reply_send(covered, result);
        covered = next;
    }
    if (asked)
        wake_up(flusher->wake);
    pthread_mutex_lock(&flusher->lock);
}

static void *run(void *context) {
    struct flusher *flusher = context;

    pthread_mutex_lock(&flusher->lock);
    for (;;) {
        if (flusher->first || flusher->newest > flusher->synced)
            flush(flusher);
        else if (flusher->ending)
            break;
        else
            pthread_cond_wait(&flusher->added, &flusher->lock);
    }
    pthread_mutex_unlock(&flusher->lock);
    return NULL;
}

int flusher_new(struct spool *spool, int wake, struct flusher **out) {
    struct flusher *flusher = calloc(1, sizeof *flusher);
    int result;

    if (!flusher)
        return -ENOMEM;
    flusher->spool = spool;
    flusher->wake = wake;
    flusher->last = &flusher->first;
    pthread_mutex_init(&flusher->lock, NULL);
    pthread_cond_init(&flusher->added, NULL);
    result = -pthread_create(&flusher->thread, NULL, run, flusher);
    if (result < 0) {
        free(flusher);
        return result;
    }
    *out = flusher;
    return 0;
}

void flusher_free(struct flusher *flusher) {
    if (!flusher)
        return;
    pthread_mutex_lock(&flusher->lock);
    flusher->ending = true;
    pthread_cond_signal(&flusher->added);
    pthread_mutex_unlock(&flusher->lock);
    pthread_join(flusher->thread, NULL);
    pthread_cond_destroy(&flusher->added);
    pthread_mutex_destroy(&flusher->lock);
    free(flusher);
}

void flusher_add(struct flusher *flusher, struct reply *reply, uint64_t ticket) {
    reply->next = NULL;
    reply->ticket = ticket;
    pthread_mutex_lock(&flusher->lock);
    *flusher->last = reply;
    flusher->last = &reply->next;
    if (ticket > flusher->newest)
        flusher->newest = ticket;
    pthread_cond_signal(&flusher->added);
    pthread_mutex_unlock(&flusher->lock);
}

void flusher_ask(struct flusher *flusher, uint64_t ticket) {
    pthread_mutex_lock(&flusher->lock);
    flusher->asked = ticket;
    if (ticket > flusher->newest)
        flusher->newest = ticket;
    pthread_cond_signal(&flusher->added);
    pthread_mutex_unlock(&flusher->lock);
}

uint64_t flusher_synced(struct flusher *flusher) {
    uint64_t synced;

    pthread_mutex_lock(&flusher->lock);
    synced = flusher->synced;
    pthread_mutex_unlock(&flusher->lock);
    return synced;
}
