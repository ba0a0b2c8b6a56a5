/*
 * settings.c - what can be set for a queue, as one table: names, defaults, help, and how each is read and written.
 *
 * A queue's value is its own, or the root's, or the default. They are parsed once and kept with the directory in memory.
 */
#include "engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "duration.h"

enum type { DURATION, COUNT, SIZE, FLAG, CONFLICT, PATTERNS };

static const struct {
    const char *name;
    enum type type;
    const char *standard;
    const char *help;
} table[SPOOL_SETTINGS] = {
    [SPOOL_LEASE] = {"lease", DURATION, "60s", "how long a claim lasts unless it is renewed"},
    [SPOOL_MAX_LEASE] = {"max_lease", DURATION, "12h", "the longest end that a renewal can ask for, from its moment"},
    [SPOOL_MAX_ATTEMPTS] = {"max_attempts", COUNT, "20", "failed attempts after which a message is dead; 0: no end"},
    [SPOOL_RETRY_DELAY] = {"retry_delay", DURATION, "1s",
                           "backoff after the first failure; doubled by each further one"},
    [SPOOL_RETRY_MAX] = {"retry_max", DURATION, "5m", "the longest backoff"},
    [SPOOL_ON_CONFLICT] = {"on_conflict", CONFLICT, "keep", "a name that is taken: keep both, replace, or reject"},
    [SPOOL_MAX_WAITING] = {"max_waiting", COUNT, "0",
                           "waiting messages beyond which publishing is refused; 0: no limit"},
    [SPOOL_MAX_SIZE] = {"max_size", SIZE, "0", "bytes beyond which a payload is refused; 0: no limit"},
    [SPOOL_PARTIAL] = {"partial", PATTERNS,
                       "*~ #*# ~$* *.tmp *.temp *.part *.partial *.filepart *.crdownload *.download *.upload *.swp "
                       "*.swpx *.aria2 *.aria2__temp *.lftp Thumbs.db desktop.ini",
                       "patterns of names that are staged, besides those that begin with a dot"},
    [SPOOL_PARTIAL_TTL] = {"partial_ttl", DURATION, "7d",
                           "staged files are removed so long after their last change; 0: never"},
    [SPOOL_PAUSED] = {"paused", FLAG, "0", "1: nothing can be claimed"},
};

static const char *const conflicts[] = {"keep", "replace", "reject"};

const char *spool_setting_name(enum spool_setting setting) {
    return table[setting].name;
}

const char *spool_setting_default(enum spool_setting setting) {
    return table[setting].standard;
}

const char *spool_setting_help(enum spool_setting setting) {
    return table[setting].help;
}

enum spool_setting spool_setting_find(const char *name) {
    enum spool_setting setting = 0;
    while (setting < SPOOL_SETTINGS && strcmp(table[setting].name, name) != 0)
        setting++;
    return setting;
}

/* Patterns separated by single spaces. Written by hand they may stand on lines of their own. */
static int parse_patterns(const char *text, char **out) {
    char *copy = malloc(strlen(text) + 1);
    if (!copy)
        return -ENOMEM;
    char *to = copy;
    for (const char *at = text; *at; at++) {
        bool blank = strchr(" \t\r\n", *at) != NULL;
        if (!blank)
            *to++ = *at;
        else if (to > copy && to[-1] != ' ')
            *to++ = ' ';
    }
    while (to > copy && to[-1] == ' ')
        to--;
    *to = '\0';
    *out = copy;
    return 0;
}

static int parse_value(enum type type, const char *text, int64_t *value) {
    int rc = 0;
    switch (type) {
    case DURATION:
        return duration_parse(text, value);
    case SIZE:
        return size_parse(text, value);
    case COUNT:
    case FLAG:
        rc = strspn(text, "0123456789") == strlen(text) ? size_parse(text, value) : -EINVAL;
        return rc == 0 && type == FLAG && *value > 1 ? -EINVAL : rc;
    case CONFLICT:
        for (int64_t i = 0; i < 3; i++) {
            if (strcmp(text, conflicts[i]) == 0) {
                *value = i;
                return 0;
            }
        }
        return -EINVAL;
    case PATTERNS:
        break;
    }
    return -EINVAL;
}

static int parse(struct settings *settings, enum spool_setting setting, const char *text) {
    if (table[setting].type != PATTERNS)
        return parse_value(table[setting].type, text, &settings->value[setting]);
    char *patterns;
    int rc = parse_patterns(text, &patterns);
    if (!rc) {
        free(settings->partial);
        settings->partial = patterns;
    }
    return rc;
}

static void format(const struct settings *settings, enum spool_setting setting, char text[SPOOL_SETTING_MAX]) {
    int64_t value = settings->value[setting];
    switch (table[setting].type) {
    case DURATION:
        duration_format(value, text, SPOOL_SETTING_MAX);
        break;
    case COUNT:
    case SIZE:
    case FLAG:
        snprintf(text, SPOOL_SETTING_MAX, "%" PRId64, value);
        break;
    case CONFLICT:
        snprintf(text, SPOOL_SETTING_MAX, "%s", conflicts[value]);
        break;
    case PATTERNS:
        snprintf(text, SPOOL_SETTING_MAX, "%s", settings->partial);
        break;
    }
}

/* The value that was set by hand for this directory. 1: yes; 0: there is none. */
static int stored_value(struct spool *spool, int64_t directory, enum spool_setting setting,
                        char text[SPOOL_SETTING_MAX]) {
    struct db_row *row = NULL;
    int rc = db_first(spool->db, &row, Q_setting_get, db_int(directory), db_text(table[setting].name));
    if (rc == 1) {
        size_t length;
        const void *bytes = db_column_bytes(row, 0, &length);
        if (length >= SPOOL_SETTING_MAX)
            length = SPOOL_SETTING_MAX - 1;
        if (length)
            memcpy(text, bytes, length);
        text[length] = '\0';
    }
    db_done(row);
    return rc;
}

static int load(struct spool *spool, int64_t queue, struct settings *settings) {
    char text[SPOOL_SETTING_MAX];
    for (enum spool_setting setting = 0; setting < SPOOL_SETTINGS; setting++) {
        int rc = stored_value(spool, queue, setting, text);
        if (rc == 0 && queue != SPOOL_ROOT)
            rc = stored_value(spool, SPOOL_ROOT, setting, text);
        if (rc < 0)
            return rc;
        /* A value that cannot be read (a damaged database) is as good as none. */
        if (rc == 0 || parse(settings, setting, text) != 0)
            rc = parse(settings, setting, table[setting].standard);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int spool__settings(struct spool *spool, int64_t queue, const struct settings **out) {
    struct directory *directory;
    int rc = spool__directory(spool, queue, &directory);
    if (rc)
        return rc;
    if (!directory->settings) {
        struct settings *settings = calloc(1, sizeof *settings);
        rc = settings ? load(spool, queue, settings) : -ENOMEM;
        if (rc) {
            spool__free_settings(settings);
            return rc;
        }
        directory->settings = settings;
    }
    *out = directory->settings;
    return 0;
}

int spool_get_setting(struct spool *spool, int64_t queue, enum spool_setting setting, char text[SPOOL_SETTING_MAX]) {
    const struct settings *settings;
    int rc = spool__settings(spool, queue, &settings);
    if (rc)
        return rc;
    format(settings, setting, text);
    size_t length = strlen(text);
    if (length < SPOOL_SETTING_MAX - 1)
        memcpy(text + length, "\n", 2);
    return 0;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The canonical text of what somebody wrote. */
static int canonical(enum spool_setting setting, const char *text, size_t length, char out[SPOOL_SETTING_MAX]) {
    char trimmed[SPOOL_SETTING_MAX];
    while (length > 0 && is_blank(text[length - 1]))
        length--;
    while (length > 0 && is_blank(*text)) {
        text++;
        length--;
    }
    if (length >= SPOOL_SETTING_MAX - 1)
        return -E2BIG;
    if (memchr(text, '\0', length))
        return -EINVAL;
    memcpy(trimmed, text, length);
    trimmed[length] = '\0';
    struct settings settings = {0};
    int rc = parse(&settings, setting, trimmed);
    if (!rc)
        format(&settings, setting, out);
    free(settings.partial);
    return rc;
}

int spool_set_setting(struct spool *spool, int64_t queue, enum spool_setting setting, const char *text, size_t length) {
    char value[SPOOL_SETTING_MAX];
    struct directory *directory;
    int rc = canonical(setting, text, length, value);
    if (!rc)
        rc = spool__directory(spool, queue, &directory);
    if (!rc)
        rc = spool__change(spool);
    if (!rc)
        rc = spool__run(spool, Q_setting_put, db_int(queue), db_text(table[setting].name), db_text(value));
    if (!rc) {
        spool__forget_settings(spool);
        spool__promise(spool);
    }
    return rc;
}

int spool_reset_setting(struct spool *spool, int64_t queue, enum spool_setting setting) {
    struct directory *directory;
    int rc = spool__directory(spool, queue, &directory);
    if (!rc)
        rc = spool__change(spool);
    if (!rc)
        rc = spool__run(spool, Q_setting_delete, db_int(queue), db_text(table[setting].name));
    if (!rc) {
        spool__forget_settings(spool);
        spool__promise(spool);
    }
    return rc;
}

int spool__check_setting(const void *name, size_t name_length, const void *value, size_t value_length) {
    char text[SPOOL_SETTING_MAX];
    enum spool_setting setting = 0;
    while (setting < SPOOL_SETTINGS &&
           (strlen(table[setting].name) != name_length || memcmp(table[setting].name, name, name_length) != 0))
        setting++;
    if (setting == SPOOL_SETTINGS)
        return -ENOENT;
    const char *bytes = value ? value : ""; /* an empty blob has none */
    int rc = canonical(setting, bytes, value_length, text);
    if (!rc && (strlen(text) != value_length || memcmp(text, bytes, value_length) != 0))
        rc = -EINVAL;
    return rc;
}
