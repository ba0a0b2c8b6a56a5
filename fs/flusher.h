/*
 * flusher.h - the thread that waits for stable storage, so that nobody else has to.
 *
 * Answers that promise durability come here with the ticket of their batch. One flush serves all whose batch was
 * committed before it began; then they are sent. An answer whose flush failed is EIO.
 */
#ifndef FLUSHER_H
#define FLUSHER_H

#include <stdint.h>

struct flusher;
struct reply;
struct spool;

/* `wake` is an eventfd that is written to when flusher_synced() has reached what was asked for; it stays the
 * caller's. */
int flusher_new(struct spool *spool, int wake, struct flusher **out);
/* Sends what is waiting, then ends the thread. NULL is fine. */
void flusher_free(struct flusher *flusher);

/* Takes over the answer. Tickets do not decrease. */
void flusher_add(struct flusher *flusher, struct reply *reply, uint64_t ticket);
/* Flush up to `ticket`, though no answer waits for it. */
void flusher_ask(struct flusher *flusher, uint64_t ticket);
/* The newest ticket this thread has flushed, or tried to. */
uint64_t flusher_synced(struct flusher *flusher);

#endif
