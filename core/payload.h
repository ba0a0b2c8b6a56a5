/*
 * payload.h - payloads that are files: `<database>.payloads/<number>`.
 *
 * All functions may be called from any thread and touch the disk; no descriptor is kept between calls. Removal is put off
 * until it cannot be regretted: a file goes when the commit that let go of it is on stable storage and no reader holds it.
 */
#ifndef SPOOL_PAYLOAD_H
#define SPOOL_PAYLOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "table.h"

struct db_tap;

struct payloads {
    char *path;
    int directory; /* descriptor */
    struct db_tap *tap;
    pthread_mutex_t lock; /* guards what follows */
    struct table pins;    /* struct pin, by payload */
    struct doomed {
        int64_t payload;
        uint64_t ticket;
    } * doomed;
    size_t doomed_count, doomed_capacity;
};

/* `make`: make the directory when it is absent; its name is on stable storage then. */
int payloads_open(struct payloads *payloads, const char *database, bool make, struct db_tap *tap);
void payloads_close(struct payloads *payloads);

int payload_write(struct payloads *payloads, int64_t payload, const void *bytes, size_t length, int64_t offset);
int payload_resize(struct payloads *payloads, int64_t payload, int64_t length);
ssize_t payload_read(struct payloads *payloads, int64_t payload, void *bytes, size_t length, int64_t offset);
int payload_copy(struct payloads *payloads, int64_t from, int64_t to, int64_t length);
int payload_sync(struct payloads *payloads, int64_t payload); /* the file, then the directory */
int payload_size(struct payloads *payloads, int64_t payload, int64_t *bytes);
int payload_hash(struct payloads *payloads, int64_t payload, int64_t length, int64_t *hash);
void payload_remove(struct payloads *payloads, int64_t payload);
/* Call `each` for every file there. */
int payloads_each(struct payloads *payloads, void (*each)(int64_t payload, void *context), void *context);

/* Pins keep a payload (in a file or in the database) from being removed. A pin is given back in two steps, because the batch it
 * happens in may be rolled back: leave, then unpin (`left`: it has left before), or stay. */
int payload_pin(struct payloads *payloads, int64_t payload);
void payload_unpin(struct payloads *payloads, int64_t payload, bool left);
void payload_stay(struct payloads *payloads, int64_t payload);
bool payload_is_pinned(struct payloads *payloads, int64_t payload); /* by somebody who is not leaving */
/* A pinned payload in the database was let go: the pin that leaves last is told so, and looks whether it is true. */
void payload_let_go(struct payloads *payloads, int64_t payload);
bool payload_leave(struct payloads *payloads, int64_t payload);

/* Remove the file once `ticket` is on stable storage; undoom: the batch of that ticket was rolled back. */
int payload_doom(struct payloads *payloads, int64_t payload, uint64_t ticket);
void payload_undoom(struct payloads *payloads, uint64_t ticket);
/* All is committed, as far as `ticket`: a batch that wrote nothing had none of its own. */
void payload_confirm(struct payloads *payloads, uint64_t ticket);
bool payloads_reapable(struct payloads *payloads, uint64_t synced);
void payloads_reap(struct payloads *payloads, uint64_t synced);

#endif
