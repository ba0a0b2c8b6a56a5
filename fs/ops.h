/*
 * ops.h - the handlers, one for each request of the kernel; fs_operations (ops.c) is the table of them.
 *
 * A handler calls the engine and answers through reply.h, once, at once or from a task of its own. None waits for
 * anything. A request that would change something begins with batch_bind().
 */
#ifndef OPS_H
#define OPS_H

#include "serve.h"

struct fs;
struct handle;

/* ops_entry.c: names */
void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device);
void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void op_readlink(fuse_req_t req, fuse_ino_t ino);
void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);

/* ops_move.c: rename */
void op_rename(fuse_req_t req, fuse_ino_t from, const char *from_name, fuse_ino_t to, const char *to_name,
               unsigned flags);
/* Try the parked rename once more: a file was closed, or its time is up. Between two requests. */
void move_retry(struct fs *fs);
/* The mount ends: answer it. */
void move_give_up(struct fs *fs);
/* When its time is up; INT64_MAX: none is parked. */
int64_t move_deadline_ns(const struct fs *fs);

/* ops_open.c: from open to close */
void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file);
void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *file);
void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file);
/* Close what nobody will release, and what could not be closed before. From the loop, between batches. */
void close_orphans(struct fs *fs);
/* Nothing is served any more: close every file. */
void close_all(struct fs *fs, bool unmounted);

/* ops_data.c: what is in files */
void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *file);
void op_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
              struct fuse_file_info *file);
void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, struct fuse_file_info *file);
void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file, struct fuse_pollhandle *waiting);

/* ops_flush.c: making it last */
void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file);
void op_fsync(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *file);
void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *file);

/* ops_resize.c: its length */
void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length, struct fuse_file_info *file);
/* The size part of a SETATTR, which it answers. `handle`: of the file descriptor, NULL: truncated by path. */
void resize(struct fs *fs, fuse_req_t req, int64_t number, struct handle *handle, int64_t length);

/* ops_attr.c: attributes */
void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file);
void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attributes, int which, struct fuse_file_info *file);
/* Answers with what the entry shows now; to who has written through `handle` (may be NULL), with the size that has. */
void answer_attributes(struct fs *fs, fuse_req_t req, int64_t number, const struct handle *handle);

/* ops_dir.c: listings */
void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *file);

#endif
