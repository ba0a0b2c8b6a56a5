/*
 * failure.c - why there is no result: one sentence on stderr, and the exit code that says it to a program.
 */
#include <errno.h>
#include <stdio.h>
#include <sysexits.h>

#include "cmd.h"

int fail(int error, const char *why) {
    fprintf(stderr, error == -EBUSY ? "spool: %s: unmount that one first\n" : "spool: %s\n", why);
    switch (-error) {
    case ENOENT:
        return EX_NOINPUT;
    case EBUSY:
        return EX_TEMPFAIL;
    default:
        return EX_IOERR;
    }
}
