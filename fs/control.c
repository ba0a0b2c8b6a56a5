/*
 * control.c - control entries. They belong to whom their queue belongs to, and show nothing to those who may not read
 * it.
 */
#include "control.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs.h"

#define CONTROL_TIMEOUT_SECONDS 1.0
#define STATISTICS_MAX_BYTES 2048

static enum node_kind kind_of(const char *name) {
    if (strcmp(name, ".config") == 0)
        return NODE_CONFIG;
    if (strcmp(name, ".stats") == 0)
        return NODE_STATISTICS;
    return NODE_ENTRY;
}

bool control_is_entry(struct fs *fs, int64_t directory, const char *name) {
    struct spool_entry entry;

    if (kind_of(name) == NODE_ENTRY || spool_stat(fs->spool, directory, &entry) < 0)
        return false;
    return entry.kind == SPOOL_QUEUE || entry.kind == SPOOL_THE_ROOT;
}

int control_lookup(struct fs *fs, struct node parent, const char *name, struct fuse_entry_param *entry) {
    struct node node = {.number = parent.number};

    if (parent.kind == NODE_CONFIG) {
        node.kind = NODE_SETTING;
        node.setting = spool_setting_find(name);
        if (node.setting == SPOOL_SETTINGS)
            return -ENOENT;
    } else {
        node.kind = kind_of(name);
    }
    return control_describe(fs, node, entry);
}

static uint32_t mode_of(struct node node, const struct spool_entry *owner) {
    uint32_t mode = S_IFREG | 0444;

    if (node.kind == NODE_CONFIG)
        mode = S_IFDIR | 0755;
    else if (node.kind == NODE_SETTING)
        mode = S_IFREG | 0644;
    if (!(owner->mode & S_IRGRP))
        mode &= ~(uint32_t)S_IRWXG;
    if (!(owner->mode & S_IROTH))
        mode &= ~(uint32_t)S_IRWXO;
    return mode;
}

static int size_of(struct fs *fs, struct node node, int64_t *size) {
    char text[SPOOL_SETTING_MAX];
    int result;

    *size = 0;
    if (node.kind != NODE_SETTING)
        return 0;
    result = spool_get_setting(fs->spool, node.number, node.setting, text);
    if (result == 0)
        *size = (int64_t)strlen(text);
    return result;
}

int control_describe(struct fs *fs, struct node node, struct fuse_entry_param *entry) {
    struct spool_entry owner;
    int result = spool_stat(fs->spool, node.number, &owner);

    if (result == 0)
        result = size_of(fs, node, &owner.size_bytes);
    if (result < 0)
        return result;
    owner.mode = mode_of(node, &owner);
    *entry = node_describe(&owner);
    entry->ino = node_id(node);
    entry->attr.st_ino = node_inode_number(node);
    entry->attr_timeout = 0;
    entry->entry_timeout = CONTROL_TIMEOUT_SECONDS;
    return 0;
}

static int setting_text(struct fs *fs, struct node node, char **out) {
    char *text = malloc(SPOOL_SETTING_MAX);
    int result;

    if (!text)
        return -ENOMEM;
    result = spool_get_setting(fs->spool, node.number, node.setting, text);
    if (result < 0)
        free(text);
    else
        *out = text;
    return result;
}

static int statistics_text(struct fs *fs, struct node node, char **out) {
    int64_t values[SPOOL_STATS];
    int result = spool_stats(fs->spool, node.number, values);
    size_t length = 0;
    char *text;

    if (result < 0)
        return result;
    text = malloc(STATISTICS_MAX_BYTES);
    if (!text)
        return -ENOMEM;
    for (int stat = 0; stat < SPOOL_STATS; stat++)
        length += (size_t)snprintf(text + length, STATISTICS_MAX_BYTES - length, "%s %" PRId64 "\n",
                                   spool_stat_name((enum spool_stat)stat), values[stat]);
    *out = text;
    return 0;
}

int control_open(struct fs *fs, struct node node, struct handle **out) {
    struct spool_entry entry = {.number = (int64_t)node_inode_number(node)};
    struct handle *handle;
    char *text = NULL;
    int result;

    if (node.kind == NODE_CONFIG)
        return -EISDIR;
    result = node.kind == NODE_SETTING ? setting_text(fs, node, &text) : statistics_text(fs, node, &text);
    if (result < 0)
        return result;
    handle = handle_new(fs, &entry);
    if (!handle) {
        free(text);
        return -ENOMEM;
    }
    handle->text = text;
    handle->text_length = strlen(text);
    *out = handle;
    return 0;
}

int control_write(struct fs *fs, struct node node, struct handle *handle, const char *bytes, size_t length) {
    int result;

    if (node.kind != NODE_SETTING)
        return -EPERM;
    result = spool_set_setting(fs->spool, node.number, node.setting, bytes, length);
    if (result < 0)
        return result;
    result = spool_get_setting(fs->spool, node.number, node.setting, handle->text);
    handle->text_length = result == 0 ? strlen(handle->text) : 0;
    return result;
}

const char *control_list(struct node config, int64_t index, struct node *node) {
    if (index < 0 || index >= SPOOL_SETTINGS)
        return NULL;
    *node = (struct node){.number = config.number, .kind = NODE_SETTING, .setting = (enum spool_setting)index};
    return spool_setting_name(node->setting);
}
