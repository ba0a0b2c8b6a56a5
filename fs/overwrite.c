/*
 * overwrite.c - a short list of answers, the oldest first.
 */
#include "overwrite.h"

#include <stdlib.h>
#include <string.h>

#include "fs.h"

struct note {
    struct outcome outcome;
    struct overwrite overwrite;
};

static void drop(struct overwrites *list, unsigned i) {
    list->count--;
    memmove(&list->all[i], &list->all[i + 1], (list->count - i) * sizeof list->all[0]);
}

static void undo(struct fs *fs, unsigned i) {
    struct overwrite overwrite = fs->overwrites.all[i];

    drop(&fs->overwrites, i);
    /* It has been opened, renamed or removed meanwhile: then it is somebody's file. */
    if (spool_undo_overwrite(fs->spool, overwrite.number, overwrite.placeholder) < 0)
        return;
}

static void end_note(struct fs *fs, struct outcome *outcome, enum verdict verdict, int error) {
    struct note *note = (struct note *)outcome;

    (void)error;
    if (verdict == BATCH_COMMITTED && fs->overwrites.count < OVERWRITES_MAX)
        fs->overwrites.all[fs->overwrites.count++] = note->overwrite;
    free(note);
}

void overwrite_remember(struct fs *fs, pid_t thread, int64_t number, int64_t placeholder) {
    struct note *note = malloc(sizeof *note);

    if (!note) {
        batch_fail(fs);
        return;
    }
    while (fs->overwrites.count >= OVERWRITES_MAX / 2)
        undo(fs, 0);
    note->outcome.end = end_note;
    note->overwrite = (struct overwrite){thread, number, placeholder, fs->now.boot_ns + FS_SECOND_NS};
    batch_defer(fs, &note->outcome, true);
}

void overwrite_arrived(struct fs *fs, int64_t placeholder) {
    for (unsigned i = 0; i < fs->overwrites.count; i++)
        if (fs->overwrites.all[i].placeholder == placeholder) {
            drop(&fs->overwrites, i);
            return;
        }
}

bool overwrite_returned(struct fs *fs, pid_t thread, int64_t number) {
    for (unsigned i = 0; i < fs->overwrites.count; i++) {
        struct overwrite *overwrite = &fs->overwrites.all[i];

        if (overwrite->number == number && overwrite->thread == thread) {
            undo(fs, i);
            return true;
        }
    }
    return false;
}

void overwrite_expire(struct fs *fs, int64_t now_ns) {
    while (overwrite_next_ns(fs) <= now_ns && fs->overwrites.count > 0 && batch_bind(fs) == 0)
        undo(fs, 0);
}

int64_t overwrite_next_ns(const struct fs *fs) {
    return fs->overwrites.count > 0 ? fs->overwrites.all[0].until_ns : INT64_MAX;
}
