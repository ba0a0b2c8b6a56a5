/*
 * cmd_check.c - `spool check DATABASE`: is everything in the database as it must be?
 */
#include "cmd.h"

#include <stdio.h>

#include "spool.h"

static void print_violation(void *context, const char *sentence) {
    (void)context;
    puts(sentence);
}

static int check(char **operands) {
    const char *database = operands[0];
    char why[1024] = "";
    int violations = spool_check(database, print_violation, NULL, why, sizeof why);

    if (violations < 0)
        return fail(violations, why);
    if (violations == 0)
        printf("%s: clean\n", database);
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
