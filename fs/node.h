/*
 * node.h - what a FUSE node number denotes. Nothing is stored: a node is arithmetic on the number of an entry.
 *
 *     number << 12 | setting << 6 | kind           the root's own node is FUSE_ROOT_ID
 *
 * So a message has one node for life, the kernel may forget and ask again whenever it likes, and a control entry
 * belongs to the directory whose number it carries.
 */
#ifndef NODE_H
#define NODE_H

#include <stdint.h>

#include "serve.h"

enum node_kind {
    NODE_ENTRY = 0,      /* a directory, link or message of the spool */
    NODE_CONFIG = 1,     /* `.config` of the queue or root `number` */
    NODE_SETTING = 2,    /* a file in it */
    NODE_STATISTICS = 3, /* `.stats` of the queue or root `number` */
};

struct node {
    int64_t number;
    enum node_kind kind;
    enum spool_setting setting; /* NODE_SETTING; else 0 */
};

struct node node_of(fuse_ino_t id);
fuse_ino_t node_id(struct node node);
/* The node of an entry of the spool. */
fuse_ino_t node_of_entry(int64_t number);
/* st_ino: an entry's number; for control entries something that is no entry's number. */
ino_t node_inode_number(struct node node);

/* What `stat` shows of an entry; it has one link. */
struct stat node_attributes(const struct spool_entry *entry);
/* What the kernel is told of an entry: how long it may believe it, too. */
struct fuse_entry_param node_describe(const struct spool_entry *entry);

#endif
