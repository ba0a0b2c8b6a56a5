/*
 * ops_entry.c - finding, making and removing names.
 *
 * The names of control entries are taken in every queue and in the root: nothing else can be made or removed there,
 * but a setting's file, whose removal resets it.
 */
#include "ops.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "control.h"
#include "fs.h"
#include "reply.h"

/* Answers with the entry, or with the error. */
static void answer_entry(struct fs *fs, fuse_req_t req, int result, const struct spool_entry *entry) {
    struct fuse_entry_param found;

    if (result < 0) {
        reply_error(fs, req, result);
        return;
    }
    found = node_describe(entry);
    reply_entry(fs, req, &found);
}

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name) {
    struct fs *fs = fuse_req_userdata(req);
    struct node directory = node_of(parent);
    struct fuse_entry_param control;
    struct spool_entry entry;
    int result;

    if (directory.kind == NODE_ENTRY && !control_is_entry(fs, directory.number, name)) {
        result = spool_lookup(fs->spool, directory.number, name, &entry);
        answer_entry(fs, req, result, &entry);
        return;
    }
    result = control_lookup(fs, directory, name, &control);
    if (result < 0)
        reply_error(fs, req, result);
    else
        reply_entry(fs, req, &control);
}

/* May something be made or removed under this name? The directory's number, or -EPERM, -EROFS. */
static int64_t find_parent(struct fs *fs, fuse_ino_t parent, const char *name) {
    struct node directory = node_of(parent);
    int result = batch_bind(fs);

    if (result < 0)
        return result;
    if (directory.kind != NODE_ENTRY || control_is_entry(fs, directory.number, name))
        return -EPERM;
    return directory.number;
}

/* The same for what is made: who it will belong to. */
static int64_t find_maker(struct fs *fs, fuse_req_t req, fuse_ino_t parent, const char *name,
                          struct spool_caller *caller, bool *set_group) {
    int64_t directory = find_parent(fs, parent, name);
    struct spool_entry entry;
    int result;

    if (directory < 0)
        return directory;
    result = spool_stat(fs->spool, directory, &entry);
    if (result < 0)
        return result;
    *caller = fs_creator(req, &entry);
    *set_group = (entry.mode & S_ISGID) != 0;
    return directory;
}

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode) {
    struct fs *fs = fuse_req_userdata(req);
    struct spool_caller caller;
    struct spool_entry entry;
    bool set_group;
    int64_t directory = find_maker(fs, req, parent, name, &caller, &set_group);
    int result;

    if (directory < 0) {
        reply_error(fs, req, (int)directory);
        return;
    }
    if (set_group)
        mode |= S_ISGID;
    result = spool_mkdir(fs->spool, directory, name, mode & 07777, caller, &entry);
    answer_entry(fs, req, result, &entry);
}

static int make_empty_file(struct fs *fs, int64_t directory, const char *name, uint32_t mode,
                           struct spool_caller caller, struct spool_entry *entry) {
    struct spool_writer *writer;
    int result = spool_create(fs->spool, directory, name, mode, true, caller, entry, &writer);
    int closed;

    if (result < 0)
        return result;
    result = spool_store(writer, true);
    closed = spool_close_writer(writer, false);
    return result < 0 ? result : closed;
}

void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device) {
    struct fs *fs = fuse_req_userdata(req);
    struct spool_caller caller;
    struct spool_entry entry;
    bool set_group;
    int64_t directory = find_maker(fs, req, parent, name, &caller, &set_group);
    int result = (int)directory;

    (void)device;
    if (directory >= 0 && (mode & S_IFMT) != S_IFREG && (mode & S_IFMT) != 0)
        result = -EPERM;
    else if (directory >= 0)
        result = make_empty_file(fs, directory, name, mode & 0777, caller, &entry);
    answer_entry(fs, req, result, &entry);
}

void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name) {
    struct fs *fs = fuse_req_userdata(req);
    struct spool_caller caller;
    struct spool_entry entry;
    bool set_group;
    int64_t directory = find_maker(fs, req, parent, name, &caller, &set_group);
    int result = (int)directory;

    if (directory >= 0)
        result = spool_symlink(fs->spool, directory, name, target, caller, &entry);
    answer_entry(fs, req, result, &entry);
}

void op_readlink(fuse_req_t req, fuse_ino_t ino) {
    struct fs *fs = fuse_req_userdata(req);
    struct node node = node_of(ino);
    char target[4096];
    int result = node.kind == NODE_ENTRY ? spool_readlink(fs->spool, node.number, target) : -EINVAL;

    if (result < 0)
        reply_error(fs, req, result);
    else
        reply_bytes(fs, req, target, strlen(target));
}

void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name) {
    struct fs *fs = fuse_req_userdata(req);
    struct node node = node_of(ino);
    struct spool_caller caller;
    struct spool_entry entry;
    bool set_group;
    int64_t directory = find_maker(fs, req, parent, name, &caller, &set_group);
    int result = (int)directory;

    if (directory >= 0 && node.kind != NODE_ENTRY)
        result = -EPERM;
    else if (directory >= 0)
        result = spool_link(fs->spool, node.number, directory, name, caller, &entry);
    answer_entry(fs, req, result, &entry);
}

static int reset_setting(struct fs *fs, struct node config, const char *name) {
    enum spool_setting setting = spool_setting_find(name);
    int result = batch_bind(fs);

    if (result < 0)
        return result;
    return setting == SPOOL_SETTINGS ? -ENOENT : spool_reset_setting(fs->spool, config.number, setting);
}

void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name) {
    struct fs *fs = fuse_req_userdata(req);
    struct node node = node_of(parent);
    int64_t directory;

    if (node.kind == NODE_CONFIG) {
        reply_error(fs, req, reset_setting(fs, node, name));
        return;
    }
    directory = find_parent(fs, parent, name);
    reply_error(fs, req, directory < 0 ? (int)directory : spool_unlink(fs->spool, directory, name));
}

void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name) {
    struct fs *fs = fuse_req_userdata(req);
    int64_t directory = find_parent(fs, parent, name);

    reply_error(fs, req, directory < 0 ? (int)directory : spool_rmdir(fs->spool, directory, name));
}
