/*
 * log.c - lines for stderr or syslog.
 *
 * A line is put together first and leaves in one write, so lines of several threads do not mix. The state is set while
 * there is one thread only.
 */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FUSE_USE_VERSION 314
#include <fuse_log.h>

static bool in_front = true;
static bool holding;
static char held[LOG_LINE_MAX];

static void write_line(int priority, const char *text) {
    char line[LOG_LINE_MAX + 16];
    int length;

    if (!in_front) {
        syslog(LOG_DAEMON | priority, "%s", text);
        return;
    }
    length = snprintf(line, sizeof line, "spoolfs: %s\n", text);
    /* When stderr takes nothing there is nobody left to tell. */
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}

void log_line(int priority, const char *format, ...) {
    char text[LOG_LINE_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    write_line(priority, text);
}

/* A message may come in pieces; "fuse: " stands before the first one. */
static void hold(const char *text) {
    size_t used = strlen(held);

    snprintf(held + used, sizeof held - used, "%s", text);
    for (char *end = held; (end = strchr(end, '\n')) != NULL;)
        *end = ' ';
}

/* libfuse's levels have the numbers of syslog's. Its lines end themselves and begin with its name. */
__attribute__((format(printf, 2, 0))) static void log_fuse(enum fuse_log_level level, const char *format,
                                                           va_list arguments) {
    char text[LOG_LINE_MAX];
    const char *start = text;

    vsnprintf(text, sizeof text, format, arguments);
    if (strncmp(start, "fuse: ", 6) == 0)
        start += 6;
    if (holding && level <= FUSE_LOG_WARNING) {
        hold(start);
        return;
    }
    text[strcspn(text, "\n")] = '\0';
    if (*start != '\0')
        write_line((int)level, start);
}

void log_open(bool foreground) {
    in_front = foreground;
    if (!foreground)
        openlog("spoolfs", LOG_PID | LOG_NDELAY, LOG_DAEMON);
    fuse_set_log_func(log_fuse);
}

const char *log_escape(const char *name, char *text, size_t size) {
    size_t used = 0;

    for (const unsigned char *c = (const unsigned char *)name; *c != '\0' && used + 4 < size; c++) {
        if (*c >= ' ' && *c <= '~' && *c != '\\')
            text[used++] = (char)*c;
        else
            used += (size_t)snprintf(text + used, size - used, "\\x%02x", *c);
    }
    if (size > 0)
        text[used] = '\0';
    return text;
}

void log_hold_fuse(void) {
    holding = true;
    held[0] = '\0';
}

const char *log_release_fuse(void) {
    holding = false;
    for (size_t length = strlen(held); length > 0 && held[length - 1] == ' '; length--)
        held[length - 1] = '\0';
    return held;
}
