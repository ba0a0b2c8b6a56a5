/*
 * ops.c - the table of handlers, and those that have little to say.
 *
 * Nothing that the kernel may ask for is left out: after one "not implemented" it would never ask again.
 */
#include "ops.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>

#include "fs.h"
#include "reply.h"

/* Requests that run in the background (RELEASE is one) wait in the kernel beyond this, and could be overtaken. */
#define BACKGROUND_MAX 4096

static void op_init(void *context, struct fuse_conn_info *connection) {
    (void)context;
    connection->max_write = FS_WRITE_MAX_BYTES;
    connection->max_background = BACKGROUND_MAX;
    connection->congestion_threshold = BACKGROUND_MAX / 4 * 3;
    connection->want |= connection->capable & FUSE_CAP_PARALLEL_DIROPS;
    connection->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino) {
    struct fs *fs = fuse_req_userdata(req);
    struct statvfs space = {.f_bsize = 4096, .f_frsize = 4096, .f_namemax = SPOOL_NAME_MAX};
    int64_t total, available;
    int result = spool_space(fs->spool, &total, &available);

    (void)ino;
    if (result < 0) {
        reply_refused(req, result);
        return;
    }
    space.f_blocks = (fsblkcnt_t)total / space.f_frsize;
    space.f_bfree = space.f_bavail = (fsblkcnt_t)available / space.f_frsize;
    reply_space(req, &space);
}

/* There are no extended attributes. ENODATA is also the answer to the kernel's own question for security.capability. */
static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size) {
    (void)ino, (void)name, (void)size;
    reply_refused(req, -ENODATA);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size) {
    (void)ino;
    if (size == 0)
        reply_attribute_bytes(req, 0);
    else
        reply_bytes(fuse_req_userdata(req), req, NULL, 0);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags) {
    (void)ino, (void)name, (void)value, (void)size, (void)flags;
    reply_refused(req, -EOPNOTSUPP);
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name) {
    (void)ino, (void)name;
    reply_refused(req, -EOPNOTSUPP);
}

/* Asked only where the kernel was not told to check permissions itself: then there is one user. */
static void op_access(fuse_req_t req, fuse_ino_t ino, int mask) {
    (void)ino, (void)mask;
    reply_refused(req, 0);
}

static void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void *argument, struct fuse_file_info *file,
                     unsigned flags, const void *in, size_t in_size, size_t out_size) {
    (void)ino, (void)command, (void)argument, (void)file, (void)flags, (void)in, (void)in_size, (void)out_size;
    reply_refused(req, -ENOTTY);
}

/* The kernel copies by reading and writing instead. */
static void op_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_offset, struct fuse_file_info *from_file,
                               fuse_ino_t to, off_t to_offset, struct fuse_file_info *to_file, size_t length,
                               int flags) {
    (void)from, (void)from_offset, (void)from_file, (void)to, (void)to_offset, (void)to_file, (void)length, (void)flags;
    reply_refused(req, -EOPNOTSUPP);
}

static void op_bmap(fuse_req_t req, fuse_ino_t ino, size_t block_size, uint64_t block) {
    (void)ino, (void)block_size, (void)block;
    reply_refused(req, -EINVAL);
}

const struct fuse_lowlevel_ops fs_operations = {
    .init = op_init,
    .lookup = op_lookup,
    .getattr = op_getattr,
    .setattr = op_setattr,
    .readlink = op_readlink,
    .mknod = op_mknod,
    .mkdir = op_mkdir,
    .unlink = op_unlink,
    .rmdir = op_rmdir,
    .symlink = op_symlink,
    .rename = op_rename,
    .link = op_link,
    .open = op_open,
    .read = op_read,
    .write = op_write,
    .flush = op_flush,
    .release = op_release,
    .fsync = op_fsync,
    .readdir = op_readdir,
    .fsyncdir = op_fsyncdir,
    .statfs = op_statfs,
    .setxattr = op_setxattr,
    .getxattr = op_getxattr,
    .listxattr = op_listxattr,
    .removexattr = op_removexattr,
    .access = op_access,
    .create = op_create,
    .bmap = op_bmap,
    .ioctl = op_ioctl,
    .poll = op_poll,
    .fallocate = op_fallocate,
    .copy_file_range = op_copy_file_range,
    .lseek = op_lseek,
};
