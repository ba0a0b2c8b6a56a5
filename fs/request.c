/*
 * request.c - a small stock of buffers. libfuse makes them when they are absent, as large as the largest request.
 */
#include "request.h"

#include <stdlib.h>

#include "fs.h"

static void run(struct fs *fs, struct task *task) {
    fuse_session_process_buf(fs->session, &request_of(task)->buffer);
}

static void end(struct fs *fs, struct task *task) {
    struct request *request = request_of(task);

    (void)fs;
    request->next_free = request->home->free;
    request->home->free = request;
}

void requests_init(struct requests *requests, struct fuse_session *session) {
    *requests = (struct requests){.session = session};
    for (int i = REQUESTS_MAX - 1; i >= 0; i--) {
        struct request *request = &requests->all[i];

        request->task = (struct task){.run = run, .end = end};
        request->home = requests;
        request->next_free = requests->free;
        requests->free = request;
    }
}

void requests_end(struct requests *requests) {
    for (int i = 0; i < REQUESTS_MAX; i++)
        free(requests->all[i].buffer.mem);
}

struct request *request_receive(struct requests *requests) {
    struct request *request = requests->free;

    if (!request || fuse_session_receive_buf(requests->session, &request->buffer) <= 0)
        return NULL;
    requests->free = request->next_free;
    return request;
}

void *request_take_buffer(struct request *request) {
    void *buffer = request->buffer.mem;

    request->buffer = (struct fuse_buf){0};
    return buffer;
}
