/*
 * writer_fate.c - reading /proc.
 *
 * Only links and text files of /proc are read, never the files that they lead to: those may be on this mount.
 */
#include "writer_fate.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PF_EXITING 0x4 /* include/linux/sched.h */
/* Fields of /proc/PID/stat, see proc(5), counted behind the name of the program. */
#define FIELD_AFTER_NAME 3
#define FIELD_FLAGS 9
#define FIELD_EXIT_CODE 52
#define SIGNAL_MASK 0x7f

static bool read_file(const char *path, char *text, size_t size) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length;

    if (descriptor < 0)
        return false;
    length = read(descriptor, text, size - 1);
    close(descriptor);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

bool writer_stat_says_killed(const char *line) {
    const char *at = strrchr(line, ')'); /* the name of the program may contain anything */
    unsigned long flags = 0, exit_code = 0;
    int field = FIELD_AFTER_NAME;

    if (!at)
        return false;
    for (at++; *at == ' '; field++) {
        at++;
        if (field == FIELD_FLAGS)
            flags = strtoul(at, NULL, 10);
        if (field == FIELD_EXIT_CODE)
            exit_code = strtoul(at, NULL, 10);
        at += strcspn(at, " \n");
    }
    return flags & PF_EXITING && exit_code & SIGNAL_MASK;
}

bool writer_status_says_alive(const char *text) {
    return strstr(text, "\nVmSize:") != NULL;
}

/*
 * A process that dies gives its memory back before it closes its files. Only then is `stat` read: reading it waits for an execve(), and
 * an execve() that closes a file waits for us. `status` waits for nobody.
 */
static bool is_killed(pid_t thread) {
    char path[64], text[4096];

    if (thread == 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", thread, thread);
    if (!read_file(path, text, sizeof text) || writer_status_says_alive(text))
        return false;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", thread, thread);
    return read_file(path, text, sizeof text) && writer_stat_says_killed(text);
}

static bool same_process(pid_t thread, pid_t other) {
    char path[64];

    if (thread == other)
        return true;
    snprintf(path, sizeof path, "/proc/%d/task/%d", thread, other);
    return access(path, F_OK) == 0;
}

static bool has_written(const struct witness *witness, pid_t thread) {
    unsigned count = witness->writers < WITNESS_WRITERS ? witness->writers : WITNESS_WRITERS;

    for (unsigned i = 0; i < count; i++)
        if (same_process(thread, witness->writer[i]))
            return true;
    return false;
}

void witness_write(struct witness *witness, pid_t thread) {
    unsigned newest = (witness->writers + WITNESS_WRITERS - 1) % WITNESS_WRITERS;

    if (thread == 0 || (witness->writers > 0 && witness->writer[newest] == thread))
        return;
    witness->writer[witness->writers % WITNESS_WRITERS] = thread;
    witness->writers++;
}

void witness_close(struct witness *witness, pid_t thread) {
    if (witness->verdict == WITNESS_KILLED)
        return;
    if (!is_killed(thread))
        witness->verdict = WITNESS_ORDERLY;
    else if (has_written(witness, thread))
        witness->verdict = WITNESS_KILLED;
    else
        witness->verdict = WITNESS_DOUBTFUL;
}

/* Is the descriptor open for writing, on that inode? */
static bool writes_to(pid_t thread, const char *descriptor, int64_t inode) {
    char path[PATH_MAX], text[1024];
    const char *flags, *number;

    snprintf(path, sizeof path, "/proc/%d/fdinfo/%s", thread, descriptor);
    if (!read_file(path, text, sizeof text))
        return false;
    flags = strstr(text, "flags:");
    number = strstr(text, "ino:"); /* since Linux 5.14 */
    if (!flags || !number || (strtol(flags + strlen("flags:"), NULL, 8) & O_ACCMODE) == O_RDONLY)
        return false;
    return strtoll(number + strlen("ino:"), NULL, 10) == inode;
}

/* In `fdinfo` only: to read the links in `fd` waits for an execve() too. */
bool writer_has_open(pid_t thread, int64_t inode) {
    char path[64];
    struct dirent *entry;
    bool found = false;
    DIR *descriptors;

    snprintf(path, sizeof path, "/proc/%d/fdinfo", thread);
    descriptors = thread != 0 ? opendir(path) : NULL;
    if (!descriptors)
        return false;
    while (!found && (entry = readdir(descriptors)))
        found = entry->d_name[0] != '.' && writes_to(thread, entry->d_name, inode);
    closedir(descriptors);
    return found;
}
