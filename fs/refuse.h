/*
 * refuse.h - why the program does not start: an exit code of sysexits.h and one sentence for the person who asked.
 *
 * Whatever runs before the mount answers returns 0, or the exit code that refuse() was given.
 */
#ifndef REFUSE_H
#define REFUSE_H

struct refusal {
    char sentence[2048]; /* what, which, and what to do about it */
};

/* Writes the sentence and returns `exit_code`. */
int refuse(struct refusal *refusal, int exit_code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
