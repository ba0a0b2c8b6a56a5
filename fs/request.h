/*
 * request.h - requests of the kernel as tasks, and their buffers, which are kept until the request need not be run
 * again.
 */
#ifndef REQUEST_H
#define REQUEST_H

#include "batch.h"
#include "serve.h"

#define REQUESTS_MAX 32 /* of one batch */

struct request {
    struct task task;
    struct requests *home;
    struct request *next_free;
    struct fuse_buf buffer;
};

struct requests {
    struct fuse_session *session;
    struct request all[REQUESTS_MAX];
    struct request *free;
};

void requests_init(struct requests *requests, struct fuse_session *session);
void requests_end(struct requests *requests);
/* Reads the next request. NULL when there is none now, all buffers are in use, or the session has ended. */
struct request *request_receive(struct requests *requests);

/* The request that is being run. */
static inline struct request *request_of(struct task *task) {
    return (struct request *)task;
}
/* The buffer becomes the caller's, to be freed; the request will not be run again. */
void *request_take_buffer(struct request *request);

#endif
