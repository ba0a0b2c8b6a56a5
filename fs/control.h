/*
 * control.h - `.config/` and `.stats` of a queue and of the root: found by name, never listed by the directory they
 * stand in.
 *
 *     .config/<setting>   reading gives the value in force; one write is one value, whatever its offset; truncation
 *                         alone changes nothing; removing it resets the value
 *     .stats              one `name value` a line, as of the open
 */
#ifndef CONTROL_H
#define CONTROL_H

#include "handle.h"
#include "node.h"

/* Does `name` in that directory (a node of the spool) denote a control entry? */
bool control_is_entry(struct fs *fs, int64_t directory, const char *name);
/* The control entry of that name in `parent`: a queue, the root or a `.config`. -ENOENT. */
SPOOL_MUST_USE int control_lookup(struct fs *fs, struct node parent, const char *name, struct fuse_entry_param *entry);
SPOOL_MUST_USE int control_describe(struct fs *fs, struct node node, struct fuse_entry_param *entry);
/* A handle that reading is answered from. */
SPOOL_MUST_USE int control_open(struct fs *fs, struct node node, struct handle **out);
SPOOL_MUST_USE int control_write(struct fs *fs, struct node node, struct handle *handle, const char *bytes,
                                 size_t length);
/* The name of the setting with this index in a listing of `.config`, and its node; NULL behind the last. */
const char *control_list(struct node config, int64_t index, struct node *node);

#endif
