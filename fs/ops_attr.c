/*
 * ops_attr.c - attributes: of entries, of control entries, and of files that are gone while somebody has them open.
 *
 * Times set on a message renew its lease or delay it, so the answer to a SETATTR is always what the engine shows
 * afterwards.
 */
#include "ops.h"

#include <errno.h>
#include <sys/stat.h>

#include "control.h"
#include "fs.h"
#include "reply.h"

#define NS_PER_SECOND INT64_C(1000000000)

static int describe(struct fs *fs, int64_t number, struct fuse_entry_param *found) {
    struct spool_entry entry;
    struct handle *handle;
    int result = spool_stat(fs->spool, number, &entry);

    if (result == 0) {
        *found = node_describe(&entry);
        return 0;
    }
    handle = result == -ENOENT ? handle_find(fs, number) : NULL;
    if (!handle)
        return result == -ENOENT ? -ESTALE : result;
    *found = node_describe(&handle->entry);
    found->attr.st_nlink = 0;
    return 0;
}

void answer_attributes(struct fs *fs, fuse_req_t req, int64_t number, const struct handle *handle) {
    struct fuse_entry_param found;
    int result = describe(fs, number, &found);

    if (result == 0 && handle && handle->number == number)
        found.attr.st_size = handle_size(fs, handle);
    if (result < 0)
        reply_error(fs, req, result);
    else
        reply_attributes(fs, req, &found);
}

static void answer_control(struct fs *fs, fuse_req_t req, struct node node) {
    struct fuse_entry_param found;
    int result = control_describe(fs, node, &found);

    if (result < 0)
        reply_error(fs, req, result == -ENOENT ? -ESTALE : result);
    else
        reply_attributes(fs, req, &found);
}

void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file) {
    struct fs *fs = fuse_req_userdata(req);
    struct node node = node_of(ino);

    if (node.kind == NODE_ENTRY)
        answer_attributes(fs, req, node.number, handle_of(file));
    else
        answer_control(fs, req, node);
}

/* --- setting ------------------------------------------------------------------------------------------------------ */

/* `claimed` and `dead` follow their queue. */
static void notice_followers(struct fs *fs, int64_t queue) {
    static const char *const names[] = {"claimed", "dead"};
    struct spool_entry entry;

    for (int i = 0; i < 2; i++)
        if (spool_lookup(fs->spool, queue, names[i], &entry) == 0)
            notice_attributes(fs, entry.number);
}

static int64_t ns_of(struct timespec time) {
    if (time.tv_sec > INT64_MAX / NS_PER_SECOND - 1)
        return INT64_MAX;
    if (time.tv_sec < INT64_MIN / NS_PER_SECOND + 1)
        return INT64_MIN;
    return time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}

static enum spool_when when(int which, int given, int now) {
    if (which & now)
        return SPOOL_NOW;
    return which & given ? SPOOL_AT : SPOOL_OMIT;
}

static int set_times(struct fs *fs, int64_t number, const struct stat *attributes, int which) {
    enum spool_when atime = when(which, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW);
    enum spool_when mtime = when(which, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW);

    if (atime == SPOOL_OMIT && mtime == SPOOL_OMIT)
        return 0;
    return spool_touch(fs->spool, number, atime, ns_of(attributes->st_atim), mtime, ns_of(attributes->st_mtim));
}

static int set_owner_and_mode(struct fs *fs, int64_t number, const struct stat *attributes, int which) {
    uid_t uid = which & FUSE_SET_ATTR_UID ? attributes->st_uid : (uid_t)-1;
    gid_t gid = which & FUSE_SET_ATTR_GID ? attributes->st_gid : (gid_t)-1;
    struct spool_entry entry;
    int result = 0;

    if (!(which & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID | FUSE_SET_ATTR_MODE)))
        return 0;
    if (which & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
        result = spool_chown(fs->spool, number, uid, gid);
    if (result == 0 && which & FUSE_SET_ATTR_MODE)
        result = spool_chmod(fs->spool, number, attributes->st_mode & 07777);
    if (result == 0 && spool_stat(fs->spool, number, &entry) == 0 && entry.kind == SPOOL_QUEUE)
        notice_followers(fs, number);
    return result;
}

/* Truncating a setting, and touching it, change nothing: programs do both on the way to writing it. */
static void set_control(struct fs *fs, fuse_req_t req, struct node node, int which) {
    if (which & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
        reply_error(fs, req, -EPERM);
    else
        answer_control(fs, req, node);
}

void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attributes, int which, struct fuse_file_info *file) {
    struct fs *fs = fuse_req_userdata(req);
    struct node node = node_of(ino);
    int result = batch_bind(fs);

    if (result == 0 && node.kind != NODE_ENTRY) {
        set_control(fs, req, node, which);
        return;
    }
    if (result == 0)
        result = set_owner_and_mode(fs, node.number, attributes, which);
    if (result == 0)
        result = set_times(fs, node.number, attributes, which);
    if (result < 0)
        reply_error(fs, req, result == -ENOENT ? -ESTALE : result);
    else if (which & FUSE_SET_ATTR_SIZE)
        resize(fs, req, node.number, handle_of(file), attributes->st_size);
    else
        answer_attributes(fs, req, node.number, handle_of(file));
}
