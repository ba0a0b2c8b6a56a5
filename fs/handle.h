/*
 * handle.h - open files.
 *
 * The kernel holds a pointer to each in its file handle, from the answer to OPEN or CREATE until RELEASE. They can be
 * found by the number of their message, because the kernel asks for attributes of a file that is gone without saying
 * through which handle.
 */
#ifndef HANDLE_H
#define HANDLE_H

#include "serve.h"
#include "writer_fate.h"

#define HANDLE_BUCKETS 4096

struct fs;

struct handle {
    struct handle *next; /* of the same bucket, or of the orphans */
    struct handle **link;
    int64_t number;
    struct spool_entry entry;    /* as it was opened, with the size that this handle has given it */
    struct spool_writer *writer; /* NULL: open for reading only */
    struct spool_reader *reader; /* NULL: open for writing only */
    struct witness witness;
    bool is_new;             /* the file was not published when it was opened */
    bool wrote;              /* something was written, or it was truncated */
    bool unfinished;         /* something was written after the last flush */
    int64_t flushed_boot_ns; /* the first flush after the last write; 0: none */
    char *text;              /* control entries: what reading gives; else NULL */
    size_t text_length;
};

struct handles {
    struct handle *bucket[HANDLE_BUCKETS];
    struct handle *orphans; /* nobody has them open any more, and their closing is still due */
};

/* `name` may be NULL. NULL when there is no memory. */
struct handle *handle_new(struct fs *fs, const struct spool_entry *entry);
/* Frees the memory only: the writer and the reader are somebody else's care. */
void handle_forget(struct handle *handle);
static inline struct handle *handle_of(const struct fuse_file_info *file) {
    return file ? (struct handle *)(uintptr_t)file->fh : NULL;
}
/* How large the file is to who has this handle. */
int64_t handle_size(struct fs *fs, const struct handle *handle);
/* Any handle on that entry; NULL: none. */
struct handle *handle_find(struct fs *fs, int64_t number);
/* Nobody will release this one: it is closed when there is an occasion. */
void handle_orphan(struct fs *fs, struct handle *handle);
/* Takes back the newest orphan, of which there must be one. */
struct handle *handle_adopt(struct fs *fs);

#endif
