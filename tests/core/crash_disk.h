/*
 * crash_disk.h - a disk that remembers: what would be on it if the machine died now?
 *
 * The tap of the database and of the payload files records every write, flush, truncation, creation and removal. A `disk` is
 * then led along these events. Of each file it keeps the bytes that are on stable storage and the changes since, and the same of
 * each name. An image takes what is stable, and of the rest nothing, everything, everything up to some moment, or an
 * arbitrary part: whole writes or some of their sectors of 512 bytes, sizes with or without what was to fill them, names that
 * are there or not.
 *
 * More is allowed to get lost than on a real file system: a flush of a file does not keep its name, and nothing but flushes puts two
 * changes into an order.
 */
#ifndef CRASH_DISK_H
#define CRASH_DISK_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db.h"

#define SECTOR_BYTES 512

/* --- chance ------------------------------------------------------------------------------------------------------- */

struct chance {
    uint64_t state;
};

/* splitmix64 */
static inline uint64_t draw(struct chance *chance) {
    uint64_t z = chance->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline size_t draw_below(struct chance *chance, size_t limit) {
    return limit ? (size_t)(draw(chance) % limit) : 0;
}

static inline bool draw_percent(struct chance *chance, int percent) {
    return (int)draw_below(chance, 100) < percent;
}

/* --- the recording -------------------------------------------------------------------------------------------------- */

/* Flushes that the disk only pretends to do: the tests' own bugs. */
enum lost_flushes {
    LOSE_NOTHING,
    LOSE_LOG = 1,
    LOSE_PAYLOADS = 2,
    LOSE_DIRECTORIES = 4,
    LOSE_DATABASE = 8,
    LOSE_ALL = 15
};

struct event {
    enum db_event kind;
    enum db_file file;
    char name[32]; /* what follows the path of the database: "", "-wal", ".payloads/17"; "/": the directory it is in */
    int64_t offset;
    size_t length;
    unsigned char *bytes;
};

struct recording {
    struct db_tap tap;
    const char *path; /* of the database */
    struct event *events;
    size_t count, capacity;
};

static int record(struct db_tap *tap, enum db_event kind, enum db_file file, const char *path, const void *bytes,
                  size_t length, int64_t offset) {
    struct recording *recording = (struct recording *)tap;
    size_t prefix = strlen(recording->path);
    bool below = strncmp(path, recording->path, prefix) == 0;
    if (recording->count == recording->capacity) {
        recording->capacity = recording->capacity ? 2 * recording->capacity : 256;
        recording->events = realloc(recording->events, recording->capacity * sizeof *recording->events);
        assert(recording->events);
    }
    struct event *event = &recording->events[recording->count++];
    *event = (struct event){.kind = kind, .file = file, .offset = offset, .length = length};
    snprintf(event->name, sizeof event->name, "%s", below ? path + prefix : "/");
    if (kind == DB_WRITE && length) {
        event->bytes = malloc(length);
        assert(event->bytes);
        memcpy(event->bytes, bytes, length);
    }
    return 0;
}

static inline void recording_begin(struct recording *recording, const char *path) {
    *recording = (struct recording){.tap.see = record, .path = path};
}

static inline void recording_end(struct recording *recording) {
    for (size_t i = 0; i < recording->count; i++)
        free(recording->events[i].bytes);
    free(recording->events);
    *recording = (struct recording){0};
}

/* --- files and names ------------------------------------------------------------------------------------------------ */

enum { MOST_FILES = 128, MOST_CHANGES = 4096, MOST_BINDINGS = 8, NO_FILE = -1 };

struct bytes {
    unsigned char *at;
    size_t size, capacity;
};

struct disk_file {
    struct bytes stable;
    bool names_follow; /* the first flush of a log flushes the directory as well */
    size_t changes[MOST_CHANGES];
    size_t change_count; /* events since the last flush */
};

struct disk_name {
    char name[32];
    int stable;                 /* the file it stands for */
    int pending[MOST_BINDINGS]; /* and what it stood for since, in this order */
    size_t pending_at[MOST_BINDINGS];
    size_t pending_count;
};

struct disk {
    const struct recording *recording;
    size_t at; /* events that have happened */
    int lost;  /* enum lost_flushes */
    struct disk_file *files[MOST_FILES];
    int file_count;
    struct disk_name names[MOST_FILES];
    int name_count;
};

static inline void bytes_resize(struct bytes *bytes, size_t size) {
    if (size > bytes->capacity) {
        bytes->capacity = size + size / 2;
        bytes->at = realloc(bytes->at, bytes->capacity);
        assert(bytes->at);
    }
    if (size > bytes->size)
        memset(bytes->at + bytes->size, 0, size - bytes->size);
    bytes->size = size;
}

static inline void bytes_write(struct bytes *bytes, const void *from, size_t length, size_t offset) {
    if (!length)
        return;
    if (offset + length > bytes->size)
        bytes_resize(bytes, offset + length);
    memcpy(bytes->at + offset, from, length);
}

static inline void bytes_copy(struct bytes *to, const struct bytes *from) {
    to->size = 0;
    bytes_write(to, from->at, from->size, 0);
}

static inline struct disk_name *disk_name(struct disk *disk, const char *name) {
    for (int i = 0; i < disk->name_count; i++) {
        if (strcmp(disk->names[i].name, name) == 0)
            return &disk->names[i];
    }
    assert(disk->name_count < MOST_FILES);
    struct disk_name *added = &disk->names[disk->name_count++];
    *added = (struct disk_name){.stable = NO_FILE};
    snprintf(added->name, sizeof added->name, "%s", name);
    return added;
}

static inline int current_file(const struct disk_name *name) {
    return name->pending_count ? name->pending[name->pending_count - 1] : name->stable;
}

static inline int new_file(struct disk *disk) {
    assert(disk->file_count < MOST_FILES);
    disk->files[disk->file_count] = calloc(1, sizeof *disk->files[0]);
    assert(disk->files[disk->file_count]);
    return disk->file_count++;
}

static inline void bind_name(struct disk *disk, struct disk_name *name, int file) {
    assert(name->pending_count < MOST_BINDINGS);
    name->pending_at[name->pending_count] = disk->at;
    name->pending[name->pending_count++] = file;
}

/* A file that was there, on stable storage, before the recording began. */
static inline void disk_add(struct disk *disk, const char *name, const struct bytes *content) {
    int file = new_file(disk);
    disk_name(disk, name)->stable = file;
    bytes_copy(&disk->files[file]->stable, content);
}

static inline void disk_end(struct disk *disk) {
    for (int i = 0; i < disk->file_count; i++) {
        free(disk->files[i]->stable.at);
        free(disk->files[i]);
    }
    *disk = (struct disk){0};
}

/* --- what happens -------------------------------------------------------------------------------------------------- */

static inline bool is_payload(const char *name) {
    return strncmp(name, ".payloads/", 10) == 0;
}

static inline void flush_names(struct disk *disk, bool payloads) {
    if (disk->lost & LOSE_DIRECTORIES)
        return;
    for (int i = 0; i < disk->name_count; i++) {
        struct disk_name *name = &disk->names[i];
        if (is_payload(name->name) != payloads)
            continue;
        name->stable = current_file(name);
        name->pending_count = 0;
    }
}

static inline void apply(struct bytes *content, const struct event *event) {
    if (event->kind == DB_WRITE)
        bytes_write(content, event->bytes, event->length, (size_t)event->offset);
    else
        bytes_resize(content, (size_t)event->offset);
}

static inline void flush_file(struct disk *disk, const struct event *event) {
    int number = current_file(disk_name(disk, event->name));
    if (number == NO_FILE)
        return;
    struct disk_file *file = disk->files[number];
    if (file->names_follow)
        flush_names(disk, false);
    file->names_follow = false;
    int what = event->file == DB_FILE_LOG ? LOSE_LOG : is_payload(event->name) ? LOSE_PAYLOADS : LOSE_DATABASE;
    if (disk->lost & what)
        return;
    for (size_t i = 0; i < file->change_count; i++)
        apply(&file->stable, &disk->recording->events[file->changes[i]]);
    file->change_count = 0;
}

/* Let the next event happen. */
static inline void disk_step(struct disk *disk) {
    const struct event *event = &disk->recording->events[disk->at];
    bool is_directory = strcmp(event->name, ".payloads") == 0 || strcmp(event->name, "/") == 0;
    struct disk_name *name = strcmp(event->name, "/") == 0 ? NULL : disk_name(disk, event->name);
    if (event->kind == DB_SYNC && is_directory) {
        flush_names(disk, name != NULL);
    } else if (event->kind == DB_SYNC) {
        flush_file(disk, event);
    } else if (event->kind == DB_DELETE) {
        bind_name(disk, name, NO_FILE);
    } else {
        if (current_file(name) == NO_FILE)
            bind_name(disk, name, new_file(disk));
        struct disk_file *file = disk->files[current_file(name)];
        if (event->kind == DB_OPEN) {
            file->names_follow = event->file == DB_FILE_LOG;
        } else {
            assert(file->change_count < MOST_CHANGES);
            file->changes[file->change_count++] = disk->at;
        }
    }
    disk->at++;
}

/* --- images --------------------------------------------------------------------------------------------------------- */

enum image_kind { IMAGE_NOTHING, IMAGE_EVERYTHING, IMAGE_UP_TO, IMAGE_ANYTHING, IMAGE_KINDS };
static const char *const image_kind_names[] = {"nothing unflushed", "everything", "everything up to a moment",
                                               "any part of it"};

struct image {
    char names[MOST_FILES][32];
    struct bytes contents[MOST_FILES]; /* memory is kept from one image to the next */
    int count;
    bool has_payloads; /* the directory */
};

/* Some of the sectors of a write: the first ones, or any. */
static inline void apply_torn(struct bytes *content, const struct event *event, struct chance *chance) {
    bool first = draw_percent(chance, 50);
    size_t sectors = (event->length + SECTOR_BYTES - 1) / SECTOR_BYTES;
    size_t limit = draw_below(chance, sectors + 1);
    for (size_t i = 0; i < sectors; i++) {
        size_t at = i * SECTOR_BYTES, length = event->length - at;
        if (first ? i < limit : draw_percent(chance, 50))
            bytes_write(content, event->bytes + at, length < SECTOR_BYTES ? length : SECTOR_BYTES,
                        (size_t)event->offset + at);
    }
}

static inline void apply_part(struct bytes *content, const struct event *event, struct chance *chance) {
    size_t luck = draw_below(chance, 4);
    if (event->kind == DB_TRUNCATE ? luck < 2 : luck == 0)
        apply(content, event);
    else if (event->kind == DB_WRITE && luck == 1)
        apply_torn(content, event, chance);
    else if (event->kind == DB_WRITE && luck == 2 && (size_t)event->offset + event->length > content->size)
        bytes_resize(content, (size_t)event->offset + event->length);
}

static inline void compose_file(const struct disk *disk, const struct disk_file *file, enum image_kind kind,
                                size_t moment, struct chance *chance, struct bytes *content) {
    bytes_copy(content, &file->stable);
    for (size_t i = 0; i < file->change_count; i++) {
        const struct event *event = &disk->recording->events[file->changes[i]];
        if (kind == IMAGE_EVERYTHING || (kind == IMAGE_UP_TO && file->changes[i] < moment))
            apply(content, event);
        else if (kind == IMAGE_UP_TO && file->changes[i] == moment && event->kind == DB_WRITE)
            apply_torn(content, event, chance);
        else if (kind == IMAGE_ANYTHING)
            apply_part(content, event, chance);
    }
}

static inline int compose_name(const struct disk_name *name, enum image_kind kind, size_t moment,
                               struct chance *chance) {
    size_t taken = 0;
    if (kind == IMAGE_EVERYTHING)
        taken = name->pending_count;
    else if (kind == IMAGE_ANYTHING)
        taken = draw_below(chance, name->pending_count + 1);
    else if (kind == IMAGE_UP_TO)
        while (taken < name->pending_count && name->pending_at[taken] < moment)
            taken++;
    return taken ? name->pending[taken - 1] : name->stable;
}

/* What would be there if the machine died now. */
static inline void compose_image(const struct disk *disk, enum image_kind kind, struct chance *chance,
                                 struct image *image) {
    size_t back = disk->at < 40 ? disk->at : 40;
    size_t moment = disk->at - draw_below(chance, back + 1);
    image->count = 0;
    image->has_payloads = false;
    for (int i = 0; i < disk->name_count; i++) {
        int file = compose_name(&disk->names[i], kind, moment, chance);
        if (file == NO_FILE)
            continue;
        if (strcmp(disk->names[i].name, ".payloads") == 0) {
            image->has_payloads = true;
            continue;
        }
        snprintf(image->names[image->count], sizeof image->names[0], "%s", disk->names[i].name);
        compose_file(disk, disk->files[file], kind, moment, chance, &image->contents[image->count]);
        image->count++;
    }
}

static inline void image_end(struct image *image) {
    for (int i = 0; i < MOST_FILES; i++)
        free(image->contents[i].at);
    *image = (struct image){0};
}

#endif
