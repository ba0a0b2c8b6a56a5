/*
 * notice.h - telling the kernel that attributes it keeps are true no longer.
 *
 * The kernel may keep the attributes of a directory for a second. It does not know that `claimed` and `dead` follow
 * their queue, nor that a worker's directory that was moved into the queue has dissolved. It is told by a thread of the
 * pool. A notice too many does no harm, and one too few ends with that second.
 *
 * Names are never told: for that the kernel takes the lock of the directory, whose holder may be waiting for us. If we
 * were killed meanwhile, the waiting thread would keep the connection open, and neither would ever end.
 */
#ifndef NOTICE_H
#define NOTICE_H

#include <stdbool.h>
#include <stdint.h>

#include "work.h"

#define NOTICES_MAX 64

struct fs;

struct notices {
    uint64_t waiting[NOTICES_MAX]; /* nodes, to be told next */
    unsigned count;
    bool telling;
};

/* The attributes of this entry have changed. */
void notice_attributes(struct fs *fs, int64_t number);
/* Between batches: begin telling what is waiting. */
void notice_send(struct fs *fs);

#endif
