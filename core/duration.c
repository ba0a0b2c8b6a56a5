/* duration.c - see duration.h. */
#include "duration.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS_NS INT64_C(1000000)
#define SECOND_NS (1000 * MS_NS)
#define DAY_NS (86400 * SECOND_NS)
#define LONGEST_NS (36525 * DAY_NS)

static const struct {
    const char *name;
    int64_t ns;
} units[] = {{"d", DAY_NS}, {"h", 3600 * SECOND_NS}, {"m", 60 * SECOND_NS}, {"s", SECOND_NS}, {"ms", MS_NS}};
#define UNITS (sizeof units / sizeof *units)

/* Digits only: the value and what stands behind them. */
static int number_parse(const char *text, int64_t *value, const char **rest) {
    char *end;
    if (!isdigit((unsigned char)*text))
        return -EINVAL;
    errno = 0;
    *value = strtoll(text, &end, 10);
    *rest = end;
    return errno ? -EINVAL : 0;
}

int duration_parse(const char *text, int64_t *ns) {
    int64_t value;
    const char *unit;
    int rc = number_parse(text, &value, &unit);
    if (rc)
        return rc;
    if (value == 0 && *unit == '\0') {
        *ns = 0;
        return 0;
    }
    for (size_t i = 0; i < UNITS; i++) {
        if (strcmp(unit, units[i].name) == 0) {
            if (value > LONGEST_NS / units[i].ns)
                return -EINVAL;
            *ns = value * units[i].ns;
            return 0;
        }
    }
    return -EINVAL;
}

void duration_format(int64_t ns, char *text, size_t size) {
    if (ns == 0) {
        snprintf(text, size, "0");
        return;
    }
    size_t i = 0;
    while (i < UNITS - 1 && (ns % units[i].ns != 0 || (ns / units[i].ns < 2 && units[i].ns > SECOND_NS)))
        i++;
    snprintf(text, size, "%" PRId64 "%s", ns / units[i].ns, units[i].name);
}

int size_parse(const char *text, int64_t *bytes) {
    static const char suffixes[] = "KMGT";
    int64_t value;
    const char *rest;
    int rc = number_parse(text, &value, &rest);
    if (rc)
        return rc;
    if (*rest) {
        const char *suffix = strchr(suffixes, *rest);
        if (!suffix || rest[1] != '\0')
            return -EINVAL;
        for (const char *at = suffixes; at <= suffix; at++) {
            if (value > INT64_MAX / 1024)
                return -EINVAL;
            value *= 1024;
        }
    }
    *bytes = value;
    return 0;
}
