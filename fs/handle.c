/*
 * handle.c - the table of open files.
 */
#include "handle.h"

#include <stdlib.h>
#include <string.h>

#include "fs.h"

static struct handle **bucket_of(struct fs *fs, int64_t number) {
    return &fs->handles.bucket[(uint64_t)number % HANDLE_BUCKETS];
}

static void put_in(struct handle **list, struct handle *handle) {
    handle->next = *list;
    handle->link = list;
    if (handle->next)
        handle->next->link = &handle->next;
    *list = handle;
}

static void take_out(struct handle *handle) {
    *handle->link = handle->next;
    if (handle->next)
        handle->next->link = handle->link;
}

struct handle *handle_new(struct fs *fs, const struct spool_entry *entry) {
    struct handle *handle = calloc(1, sizeof *handle);

    if (!handle)
        return NULL;
    handle->number = entry->number;
    handle->entry = *entry;
    put_in(bucket_of(fs, entry->number), handle);
    return handle;
}

void handle_forget(struct handle *handle) {
    take_out(handle);
    free(handle->text);
    free(handle);
}

struct handle *handle_find(struct fs *fs, int64_t number) {
    struct handle *handle = *bucket_of(fs, number);

    while (handle && handle->number != number)
        handle = handle->next;
    return handle;
}

void handle_orphan(struct fs *fs, struct handle *handle) {
    take_out(handle);
    put_in(&fs->handles.orphans, handle);
}

struct handle *handle_adopt(struct fs *fs) {
    struct handle *handle = fs->handles.orphans;

    take_out(handle);
    put_in(bucket_of(fs, handle->number), handle);
    return handle;
}

int64_t handle_size(struct fs *fs, const struct handle *handle) {
    struct spool_entry entry;

    if (handle->text)
        return (int64_t)handle->text_length;
    if (handle->writer && !handle->is_new && spool_has_written(handle->writer))
        return handle->entry.size_bytes;
    if (spool_stat(fs->spool, handle->number, &entry) < 0)
        return handle->entry.size_bytes;
    return entry.size_bytes;
}
