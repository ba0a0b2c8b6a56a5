/*
 * overwrite.h - opens with O_TRUNC of a message that is kept.
 *
 * The engine moves the message to a numbered name and puts an empty file, the placeholder, under the old one; OPEN is
 * answered ESTALE; the kernel walks the path again and opens the placeholder. Two things can go wrong, so those answers are
 * remembered for a second: the caller may come back to the same message, because it did not open by path
 * (/proc/self/fd); or nobody comes at all. In both cases the message gets its name back.
 */
#ifndef OVERWRITE_H
#define OVERWRITE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define OVERWRITES_MAX 64

struct fs;

struct overwrites {
    struct overwrite {
        pid_t thread;
        int64_t number;
        int64_t placeholder;
        int64_t until_ns; /* boot clock */
    } all[OVERWRITES_MAX];
    unsigned count;
};

/* From within a task, whose answer this goes with. */
void overwrite_remember(struct fs *fs, pid_t thread, int64_t number, int64_t placeholder);
/* The placeholder is being opened: all is well. */
void overwrite_arrived(struct fs *fs, int64_t placeholder);
/* Has this thread been sent away from this message just now? Then the message has its name back. */
bool overwrite_returned(struct fs *fs, pid_t thread, int64_t number);
/* Give back what nobody came for until `now_ns`; all of it with INT64_MAX. From within a task. */
void overwrite_expire(struct fs *fs, int64_t now_ns);
/* When there may be something to expire; INT64_MAX: never. */
int64_t overwrite_next_ns(const struct fs *fs);

#endif
