/*
 * cmd_ls.c - `spool ls DATABASE [DIRECTORY]`: what is in a database that is not mounted, in the order of publication.
 */
#include "cmd.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "spool.h"

#define NS_PER_SECOND INT64_C(1000000000)

static struct spool_time now(void) {
    struct timespec wall, boot;

    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_BOOTTIME, &boot);
    return (struct spool_time){wall.tv_sec * NS_PER_SECOND + wall.tv_nsec, boot.tv_sec * NS_PER_SECOND + boot.tv_nsec};
}

/* One line for each name, whatever its bytes are, and nothing that a terminal obeys. */
static void print_name(const char *name) {
    for (; *name; name++) {
        unsigned char byte = (unsigned char)*name;

        if (byte == '\\')
            fputs("\\\\", stdout);
        else if (byte == '\n')
            fputs("\\n", stdout);
        else if (byte < 0x80 && !iscntrl(byte))
            putchar(byte);
        else
            printf("\\%03o", byte);
    }
}

static void print_time(int64_t ns) {
    time_t seconds = (time_t)(ns / NS_PER_SECOND);
    struct tm parts;
    char text[32] = "-";

    if (gmtime_r(&seconds, &parts))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    printf("%-20s ", text);
}

static bool print_entry(void *context, const char *name, const struct spool_entry *entry, int64_t cursor) {
    static const char *const states[] = {
        [SPOOL_STAGED] = "staged since",   [SPOOL_OPEN] = "written since",
        [SPOOL_HELD] = "held since",       [SPOOL_WAITING] = "waiting since",
        [SPOOL_DELAYED] = "delayed until", [SPOOL_CLAIMED_STATE] = "claimed until",
        [SPOOL_DEAD_STATE] = "dead since", [SPOOL_DRAFT] = "",
    };
    bool message = entry->kind == SPOOL_MESSAGE;
    bool by_mtime = !message || entry->state == SPOOL_DELAYED || entry->state == SPOOL_DEAD_STATE;

    printf("%-13s ", message ? states[entry->state] : entry->kind == SPOOL_LINK ? "link" : "directory");
    print_time(by_mtime ? entry->mtime_ns : entry->atime_ns);
    printf("%12" PRId64 " ", message ? entry->size_bytes : 0);
    print_name(name);
    puts(message || entry->kind == SPOOL_LINK ? "" : "/");
    *(int64_t *)context = cursor;
    return true;
}

static int list_directory(struct spool *spool, int64_t directory) {
    int64_t cursor = 0, before = -1;
    int rc = 0;

    printf("%-13s %-20s %12s %s\n", "STATE", "TIME", "BYTES", "NAME");
    while (rc == 0 && cursor != before) {
        before = cursor;
        rc = spool_list(spool, directory, cursor, print_entry, &cursor);
    }
    return rc;
}

struct queue_page {
    int64_t cursor, number;
    char name[SPOOL_NAME_MAX + 1];
};

/* One at a time: the engine may not be called from within a listing. */
static bool take_queue(void *context, const char *name, const struct spool_entry *entry, int64_t cursor) {
    struct queue_page *page = context;

    page->cursor = cursor;
    page->number = entry->number;
    snprintf(page->name, sizeof page->name, "%s", name);
    return false;
}

static int list_queues(struct spool *spool) {
    struct queue_page page = {0};
    int64_t values[SPOOL_STATS];

    printf("%10s %10s %10s %10s %10s %s\n", "READY", "DELAYED", "CLAIMED", "DEAD", "STAGED", "QUEUE");
    for (;;) {
        page.number = 0;
        int rc = spool_list(spool, SPOOL_ROOT, page.cursor, take_queue, &page);
        if (rc != 0 || page.number == 0)
            return rc;
        rc = spool_stats(spool, page.number, values);
        if (rc != 0)
            return rc;
        printf("%10" PRId64 " %10" PRId64 " %10" PRId64 " %10" PRId64 " %10" PRId64 " ",
               values[SPOOL_STAT_READY] + values[SPOOL_STAT_BLOCKED], values[SPOOL_STAT_DELAYED],
               values[SPOOL_STAT_CLAIMED], values[SPOOL_STAT_DEAD], values[SPOOL_STAT_STAGED]);
        print_name(page.name);
        putchar('\n');
    }
}

/* The number of the directory at a path like `queue/claimed/worker`, or a negative errno. */
static int64_t find_directory(struct spool *spool, const char *path) {
    struct spool_entry entry = {.number = SPOOL_ROOT, .kind = SPOOL_THE_ROOT};
    char name[SPOOL_NAME_MAX + 1];

    for (size_t length; *(path += strspn(path, "/")); path += length) {
        length = strcspn(path, "/");
        if (length >= sizeof name)
            return -ENAMETOOLONG;
        snprintf(name, sizeof name, "%.*s", (int)length, path);
        int rc = spool_lookup(spool, entry.number, name, &entry);
        if (rc != 0)
            return rc;
        if (entry.kind == SPOOL_MESSAGE || entry.kind == SPOOL_LINK)
            return -ENOTDIR;
    }
    return entry.number;
}

static int ls(char **operands) {
    const char *database = operands[0], *path = operands[1] ? operands[1] : "";
    struct spool_options options = {.read_only = true};
    struct spool *spool = NULL;
    char why[1024] = "";
    int rc = spool_open(database, &options, now(), &spool, why, sizeof why);

    if (rc != 0)
        return fail(rc, why);
    int64_t directory = find_directory(spool, path);
    if (directory < 0)
        rc = (int)directory;
    else
        rc = directory == SPOOL_ROOT ? list_queues(spool) : list_directory(spool, directory);
    if (rc != 0) {
        snprintf(why, sizeof why, "cannot list %s in %s: %s", *path ? path : "the queues", database, strerror(-rc));
        rc = fail(rc == -ENOTDIR ? -ENOENT : rc, why);
    }
    spool_close(spool);
    return rc;
}

const struct command cmd_ls = {
    .name = "ls",
    .operands = "DATABASE [DIRECTORY]",
    .operand_count = 1,
    .optional_count = 1,
    .summary = "list the queues, or what is in a directory of one",
    .help =
        "Without DIRECTORY: one line for each queue, with its counters. With QUEUE, QUEUE/claimed, "
        "QUEUE/claimed/WORKER\n"
        "or QUEUE/dead: one line for each entry, in the order of publication. Changes nothing. The database must not\n"
        "be mounted: where it is, use ls. In names, \\n, \\\\ and \\ooo stand for what cannot be printed.\n"
        "\n"
        "Exit codes:\n"
        "     0  it is listed\n"
        "    64  wrong usage\n"
        "    66  there is no such file, or no such directory in it\n"
        "    74  the file cannot be read, or is not a spool\n"
        "    75  the database is in use\n",
    .run = ls,
};
