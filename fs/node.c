/*
 * node.c - node numbers, attributes, and how long they hold.
 */
#include "node.h"

#include <sys/stat.h>

#define NUMBER_SHIFT 12
#define SETTING_SHIFT 6
#define FIELD_MASK 0x3f
#define CONTROL_INODES (UINT64_C(1) << 62)

/* Nothing is kept of messages: a claim changes their owner and mode, time their size and dates, and the kernel counts in ticks of
 * some milliseconds, in which a shell has looked three times. */
#define DIRECTORY_TIMEOUT_SECONDS 1.0

_Static_assert(SPOOL_SETTINGS <= FIELD_MASK + 1, "a setting's number fits its field");

struct node node_of(fuse_ino_t id) {
    if (id == FUSE_ROOT_ID)
        return (struct node){.number = SPOOL_ROOT};
    return (struct node){
        .number = (int64_t)(id >> NUMBER_SHIFT),
        .kind = (enum node_kind)(id & FIELD_MASK),
        .setting = (enum spool_setting)(id >> SETTING_SHIFT & FIELD_MASK),
    };
}

fuse_ino_t node_id(struct node node) {
    if (node.number == SPOOL_ROOT && node.kind == NODE_ENTRY)
        return FUSE_ROOT_ID;
    return (fuse_ino_t)node.number << NUMBER_SHIFT | (fuse_ino_t)node.setting << SETTING_SHIFT | (fuse_ino_t)node.kind;
}

fuse_ino_t node_of_entry(int64_t number) {
    return node_id((struct node){.number = number});
}

ino_t node_inode_number(struct node node) {
    return node.kind == NODE_ENTRY ? (ino_t)node.number : (ino_t)(CONTROL_INODES | node_id(node));
}

static struct timespec time_of(int64_t ns) {
    struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    if (time.tv_nsec < 0) {
        time.tv_sec--;
        time.tv_nsec += 1000000000;
    }
    return time;
}

struct stat node_attributes(const struct spool_entry *entry) {
    return (struct stat){
        .st_ino = (ino_t)entry->number,
        .st_mode = entry->mode,
        .st_nlink = 1,
        .st_uid = entry->uid,
        .st_gid = entry->gid,
        .st_size = entry->size_bytes,
        .st_blocks = (entry->size_bytes + 511) / 512,
        .st_atim = time_of(entry->atime_ns),
        .st_mtim = time_of(entry->mtime_ns),
        .st_ctim = time_of(entry->ctime_ns),
    };
}

struct fuse_entry_param node_describe(const struct spool_entry *entry) {
    double timeout = S_ISDIR(entry->mode) ? DIRECTORY_TIMEOUT_SECONDS : 0;

    return (struct fuse_entry_param){
        .ino = node_of_entry(entry->number),
        .attr = node_attributes(entry),
        .attr_timeout = timeout,
        .entry_timeout = timeout,
    };
}
