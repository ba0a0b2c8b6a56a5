/*
 * cmd.h - a command of spool: one verb, one file cmd_VERB.c.
 *
 * Results go to stdout; the reason why there are none goes to stderr, in one sentence. Exit codes are those of
 * sysexits.h, and 1 for the answer "no" of a command that asks something.
 */
#ifndef CMD_H
#define CMD_H

struct command {
    const char *name;
    const char *operands; /* as the usage shows them */
    int operand_count;    /* those it needs */
    int optional_count;   /* and may have beyond them */
    const char *summary;  /* one line of help */
    const char *help;     /* the rest of it */
    int (*run)(char **operands);
};

extern const struct command cmd_check;
extern const struct command cmd_ls;

/* Say on stderr why `error`, a negative errno of the engine, left no result. The exit code. */
int fail(int error, const char *why);

#endif
