/*
 * ops_dir.c - listings.
 *
 * The offset of an entry is the engine's cursor behind it, moved up by the two entries that the engine does not know:
 * "." and "..". Nothing is kept between two requests.
 */
#include "ops.h"

#include <errno.h>
#include <sys/stat.h>

#include "control.h"
#include "fs.h"
#include "reply.h"

#define OFFSET_DOT 1
#define OFFSET_DOT_DOT 2

struct page {
    fuse_req_t req;
    struct fs *fs;
    size_t size;
    size_t used;
    int64_t cursor;
    bool full;
    bool found; /* something, since it was last set to false */
};

static bool add(struct page *page, const char *name, ino_t inode, uint32_t mode, int64_t offset) {
    struct stat attributes = {.st_ino = inode, .st_mode = mode};
    size_t room = page->size - page->used;
    size_t needed = fuse_add_direntry(page->req, page->fs->page + page->used, room, name, &attributes, offset);

    if (needed > room) {
        page->full = true;
        return false;
    }
    page->used += needed;
    return true;
}

static bool add_entry(void *context, const char *name, const struct spool_entry *entry, int64_t cursor) {
    struct page *page = context;

    page->found = true;
    if (!add(page, name, (ino_t)entry->number, entry->mode, cursor + OFFSET_DOT_DOT))
        return false;
    page->cursor = cursor;
    return true;
}

static void add_dots(struct page *page, off_t offset, ino_t self, ino_t parent) {
    if (offset < OFFSET_DOT)
        add(page, ".", self, S_IFDIR, OFFSET_DOT);
    if (offset < OFFSET_DOT_DOT && !page->full)
        add(page, "..", parent, S_IFDIR, OFFSET_DOT_DOT);
    page->cursor = offset > OFFSET_DOT_DOT ? offset - OFFSET_DOT_DOT : 0;
}

/* A directory that was removed while it was open has no entries. */
static int list_directory(struct page *page, int64_t directory, off_t offset) {
    struct spool_entry self;
    int result = spool_stat(page->fs->spool, directory, &self);

    if (result < 0)
        return result == -ENOENT ? 0 : result;
    add_dots(page, offset, (ino_t)directory, (ino_t)(self.parent ? self.parent : SPOOL_ROOT));
    do {
        page->found = false;
        result = page->full ? 0 : spool_list(page->fs->spool, directory, page->cursor, add_entry, page);
    } while (result == 0 && page->found && !page->full);
    return result;
}

static int list_settings(struct page *page, struct node config, off_t offset) {
    struct node node;
    const char *name;

    add_dots(page, offset, node_inode_number(config), (ino_t)config.number);
    while (!page->full && (name = control_list(config, page->cursor, &node))) {
        page->cursor++;
        add(page, name, node_inode_number(node), S_IFREG, page->cursor + OFFSET_DOT_DOT);
    }
    return 0;
}

void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *file) {
    struct fs *fs = fuse_req_userdata(req);
    struct node node = node_of(ino);
    struct page page = {.req = req, .fs = fs, .size = size < sizeof fs->page ? size : sizeof fs->page};
    int result;

    (void)file;
    if (node.kind == NODE_CONFIG)
        result = list_settings(&page, node, offset);
    else
        result = list_directory(&page, node.number, offset);
    if (result < 0)
        reply_error(fs, req, result);
    else
        reply_bytes(fs, req, fs->page, page.used);
}
