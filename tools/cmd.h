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
    int operand_count;
    const char *summary; /* one line of help */
    const char *help;    /* the rest of it */
    int (*run)(char **operands);
};

extern const struct command cmd_check;

#endif
