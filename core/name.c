/* name.c - names: which are staged, and how a taken one is numbered. Pure. */
#include "engine.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int spool__name_is_valid(const char *name) {
    size_t length = strnlen(name, SPOOL_NAME_MAX + 1);
    if (length > SPOOL_NAME_MAX)
        return -ENAMETOOLONG;
    if (length == 0 || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -EINVAL;
    return 0;
}

bool spool__name_is_staged(const char *name, const char *patterns) {
    if (name[0] == '.')
        return true;
    char pattern[SPOOL_SETTING_MAX];
    for (const char *at = patterns; *at;) {
        size_t length = strcspn(at, " ");
        if (length > 0 && length < sizeof pattern) {
            memcpy(pattern, at, length);
            pattern[length] = '\0';
            if (fnmatch(pattern, name, 0) == 0)
                return true;
        }
        at += length + (at[length] == ' ');
    }
    return false;
}

/* The first `length` bytes of a name, or fewer, so that no character of UTF-8 is cut in two. */
static size_t cut(const char *name, size_t length) {
    size_t shorter = length;
    while (shorter > 0 && ((unsigned char)name[shorter] & 0xc0) == 0x80)
        shorter--;
    return shorter > 0 && length - shorter < 4 ? shorter : length;
}

void spool__number_name(const char *name, int64_t number, char out[SPOOL_NAME_MAX + 1]) {
    char mark[24];
    int mark_length = snprintf(mark, sizeof mark, "~%" PRId64, number);
    size_t length = strlen(name);
    const char *dot = strrchr(name, '.');
    size_t stem = dot && dot != name ? (size_t)(dot - name) : length;
    if (length - stem > SPOOL_NAME_MAX / 2)
        stem = length; /* no extension is that long */
    size_t extension = length - stem;
    size_t room = SPOOL_NAME_MAX - (size_t)mark_length - extension;
    size_t kept = stem > room ? cut(name, room) : stem;
    memcpy(out, name, kept);
    memcpy(out + kept, mark, (size_t)mark_length);
    memcpy(out + kept + mark_length, name + stem, extension);
    out[kept + (size_t)mark_length + extension] = '\0';
}

void spool__prefix_name(const char *prefix, const char *name, char out[SPOOL_NAME_MAX + 1]) {
    size_t length = strlen(prefix), kept = strlen(name);
    if (length + kept > SPOOL_NAME_MAX)
        kept = cut(name, SPOOL_NAME_MAX - length);
    memcpy(out, prefix, length);
    memcpy(out + length, name, kept);
    out[length + kept] = '\0';
}
