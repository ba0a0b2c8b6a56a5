/*
 * overwrite.h - opens with O_TRUNC of a message that is kept.
 *
 * The engine moves the message to a numbered name and puts an empty file, the placeholder, under the old one; OPEN is
 * answered ESTALE; the kernel walks the path again, once, and opens the placeholder. Those answers are remembered for
 * a second, because of what can come between:
 *
 *   the caller comes back to the same message, for it did not open by path (/proc/self/fd): the message gets its name
 *   back,
 *       and is truncated in place;
 *   nobody comes: the message gets its name back;
 *   another caller comes to the same message, having looked up the name before it was moved: it is sent to look again;
 *   another writer opens the placeholder first: the caller, who can be sent away only once, gets the next placeholder
 *   at
 *       once, through a descriptor that shows the other's attributes.
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
        uint64_t serial;
        pid_t thread; /* 0: it has got its file */
        int64_t number;
        int64_t placeholder; /* 0: it has been opened */
        int64_t until_ns;    /* boot clock */
    } all[OVERWRITES_MAX];
    unsigned count;
    uint64_t serial; /* of the newest */
};

enum overwrite_case {
    OVERWRITE_FRESH,    /* let the engine decide */
    OVERWRITE_AWAY,     /* -ESTALE: the name denotes another file by now; this is remembered */
    OVERWRITE_IN_PLACE, /* the message has its name back */
};

/* What an open with O_TRUNC of this message is. From within a task. */
enum overwrite_case overwrite_judge(struct fs *fs, pid_t thread, int64_t number);
/* From within a task, whose answer this goes with. `placeholder` may be 0. */
void overwrite_remember(struct fs *fs, pid_t thread, int64_t number, int64_t placeholder);
/* This thread gets `number` open for writing. */
void overwrite_arrived(struct fs *fs, pid_t thread, int64_t number);
/* Has this thread been sent away, and not got its file since? */
bool overwrite_is_sent(const struct fs *fs, pid_t thread);
/* Give back what nobody came for until `now_ns`; all of it with INT64_MAX. From within a task. */
void overwrite_expire(struct fs *fs, int64_t now_ns);
/* When there may be something to expire; INT64_MAX: never. */
int64_t overwrite_next_ns(const struct fs *fs);

#endif
