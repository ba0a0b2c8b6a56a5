/*
 * writer_fate.h - how a process that closes a file came to close it, as /proc tells while it waits for the answer to
 * FLUSH.
 *
 * A process that dies by a signal closes its files like any other. But a file it was writing is not finished, and
 * must not be published. What cannot be seen (another pid namespace, no /proc) counts as an orderly close.
 */
#ifndef WRITER_FATE_H
#define WRITER_FATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WITNESS_WRITERS 4

/* What was seen of those who use one open file. */
struct witness {
    pid_t writer[WITNESS_WRITERS]; /* threads that wrote: the last of each slot */
    unsigned writers;
    enum {
        WITNESS_ORDERLY,
        WITNESS_DOUBTFUL, /* one that did not write was killed; a later orderly close overrules it */
        WITNESS_KILLED,   /* one that wrote was killed */
    } verdict;
};

/* `thread` is the thread of the request, 0 when the kernel cannot name it. */
void witness_write(struct witness *witness, pid_t thread);
void witness_close(struct witness *witness, pid_t thread);

/* Has the process of `thread` a file open for writing whose inode number is `inode`? (Another file system's may have the same.) */
bool writer_has_open(pid_t thread, int64_t inode);

/* Reads /proc/PID/status: has the process memory of its own, that is, is it not dying? */
bool writer_status_says_alive(const char *text);
/* Reads a line of /proc/PID/stat: is it of a process that is dying by a signal? */
bool writer_stat_says_killed(const char *line);

#endif
