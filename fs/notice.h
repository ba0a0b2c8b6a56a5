/*
 * notice.h - telling the kernel that something it keeps is true no longer.
 *
 * The kernel may keep names for ten seconds, and attributes of directories for one. It knows what it was asked for
 * itself; it does not know that a lease ran out, that a message was numbered, or that `claimed` follows its queue. It
 * is told by a thread of the pool, because it may wait for a lock whose holder waits for us, and in one go at a time.
 * A notice too many does no harm, and one too few ends with that time.
 */
#ifndef NOTICE_H
#define NOTICE_H

#include <stdbool.h>
#include <stdint.h>

#include "work.h"

struct fs;

struct notices {
    struct notice *waiting; /* to be told next */
    struct work work;       /* telling, while `telling` */
    struct notice *told;
    bool telling;
    bool ending;
};

/* `name` in this directory denotes something else, or nothing. */
void notice_name(struct fs *fs, int64_t directory, const char *name);
/* The attributes of this entry have changed. */
void notice_attributes(struct fs *fs, int64_t number);
/* Between batches: begin telling what is waiting, and what the engine knows of. */
void notice_send(struct fs *fs);
/* Forget what was not told. */
void notice_forget(struct fs *fs);

#endif
