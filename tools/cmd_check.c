/*
 * cmd_check.c - `spool check DATABASE`: is everything in the database as it must be?
 */
#include "cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "spool.h"

static void print_violation(void *context, const char *sentence) {
    (void)context;
    puts(sentence);
}

static int exit_code(int error) {
    switch (-error) {
    case ENOENT:
        return EX_NOINPUT;
    case EBUSY:
        return EX_TEMPFAIL;
    default:
        return EX_IOERR;
    }
}

static int check(char **operands) {
    const char *database = operands[0];
    char why[1024] = "";
    int violations = spool_check(database, print_violation, NULL, why, sizeof why);

    if (violations == -EBUSY)
        fprintf(stderr, "spool: %s: unmount that one first\n", why);
    else if (violations < 0)
        fprintf(stderr, "spool: %s\n", why);
    else if (violations == 0)
        printf("%s: clean\n", database);
    if (violations < 0)
        return exit_code(violations);
    return violations > 0;
}

const struct command cmd_check = {
    .name = "check",
    .operands = "DATABASE",
    .operand_count = 1,
    .summary = "verify every rule that a sound database keeps",
    .help =
        "Prints one sentence for each rule that is violated, and changes nothing. The database must not be mounted.\n"
        "\n"
        "Exit codes:\n"
        "     0  clean\n"
        "     1  at least one violation\n"
        "    64  wrong usage\n"
        "    66  there is no such file\n"
        "    74  the file cannot be read, or is not a spool\n"
        "    75  the database is in use\n",
    .run = check,
};
