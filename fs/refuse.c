/*
 * refuse.c - one sentence, one exit code.
 */
#include "refuse.h"

#include <stdarg.h>
#include <stdio.h>

int refuse(struct refusal *refusal, int exit_code, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(refusal->sentence, sizeof refusal->sentence, format, arguments);
    va_end(arguments);
    return exit_code;
}
