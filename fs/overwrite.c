/*
 * overwrite.c - a short list of answers, the oldest first.
 */
#include "overwrite.h"

#include <stdlib.h>
#include <string.h>

#include "fs.h"

struct note {
    struct outcome outcome;
    uint64_t serial;
};

static void drop(struct overwrites *list, unsigned i) {
    list->count--;
    memmove(&list->all[i], &list->all[i + 1], (list->count - i) * sizeof list->all[0]);
}

static void undo(struct fs *fs, unsigned i) {
    struct overwrite overwrite = fs->overwrites.all[i];

    drop(&fs->overwrites, i);
    if (overwrite.placeholder == 0)
        return;
    /* It has been opened, renamed or removed meanwhile: then it is somebody's file. */
    if (spool_undo_overwrite(fs->spool, overwrite.number, overwrite.placeholder) < 0)
        return;
}

static void end_note(struct fs *fs, struct outcome *outcome, enum verdict verdict, int error) {
    struct note *note = (struct note *)outcome;

    (void)error;
    for (unsigned i = fs->overwrites.count; verdict != BATCH_COMMITTED && i-- > 0;)
        if (fs->overwrites.all[i].serial == note->serial)
            drop(&fs->overwrites, i);
    free(note);
}

void overwrite_remember(struct fs *fs, pid_t thread, int64_t number, int64_t placeholder) {
    struct overwrites *list = &fs->overwrites;
    struct note *note = malloc(sizeof *note);

    if (!note) {
        batch_fail(fs);
        return;
    }
    if (list->count == OVERWRITES_MAX)
        undo(fs, 0);
    note->outcome.end = end_note;
    note->serial = ++list->serial;
    list->all[list->count++] = (struct overwrite){.serial = note->serial,
                                                  .thread = thread,
                                                  .number = number,
                                                  .placeholder = placeholder,
                                                  .until_ns = fs->now.boot_ns + FS_SECOND_NS};
    batch_defer(fs, &note->outcome, true);
}

void overwrite_arrived(struct fs *fs, pid_t thread, int64_t number) {
    for (unsigned i = 0; i < fs->overwrites.count; i++) {
        struct overwrite *overwrite = &fs->overwrites.all[i];

        if (overwrite->placeholder == number)
            overwrite->placeholder = 0;
        if (overwrite->thread == thread)
            overwrite->thread = 0;
    }
}

bool overwrite_is_sent(const struct fs *fs, pid_t thread) {
    for (unsigned i = 0; i < fs->overwrites.count; i++)
        if (thread != 0 && fs->overwrites.all[i].thread == thread)
            return true;
    return false;
}

enum overwrite_case overwrite_judge(struct fs *fs, pid_t thread, int64_t number) {
    enum overwrite_case found = OVERWRITE_FRESH;

    for (unsigned i = 0; thread != 0 && i < fs->overwrites.count; i++) {
        struct overwrite *overwrite = &fs->overwrites.all[i];

        if (overwrite->number != number)
            continue;
        if (overwrite->thread == thread) {
            found = overwrite->placeholder ? OVERWRITE_IN_PLACE : OVERWRITE_FRESH;
            undo(fs, i);
            return found;
        }
        found = OVERWRITE_AWAY;
    }
    if (found == OVERWRITE_FRESH || overwrite_is_sent(fs, thread))
        return OVERWRITE_FRESH;
    overwrite_remember(fs, thread, number, 0);
    return OVERWRITE_AWAY;
}

void overwrite_expire(struct fs *fs, int64_t now_ns) {
    while (overwrite_next_ns(fs) <= now_ns && fs->overwrites.count > 0 && batch_bind(fs) == 0)
        undo(fs, 0);
}

int64_t overwrite_next_ns(const struct fs *fs) {
    return fs->overwrites.count > 0 ? fs->overwrites.all[0].until_ns : INT64_MAX;
}
