/* content.c - see content.h. */
#include "content.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "payload.h"
#include "spool.h"

int64_t content_hash_bytes(const void *bytes, size_t length) {
    return (int64_t)XXH3_64bits(bytes, length);
}

void content_begin(struct content *content, struct payloads *payloads) {
    *content = (struct content){.payloads = payloads};
}

void content_begin_file(struct content *content, struct payloads *payloads, int64_t payload, int64_t size) {
    *content = (struct content){.payloads = payloads, .payload = payload, .size = size, .in_file = true};
}

void content_begin_copy(struct content *content, struct payloads *payloads, int64_t payload, int64_t from,
                        int64_t size) {
    content_begin_file(content, payloads, payload, size);
    content->copy_from = from;
    content->copy_length = size;
}

int content_begin_bytes(struct content *content, struct payloads *payloads, const void *bytes, size_t length) {
    content_begin(content, payloads);
    int rc = content_reserve(content, (int64_t)length);
    if (!rc && length)
        memcpy(content->bytes, bytes, length);
    return rc;
}

void content_end(struct content *content) {
    free(content->bytes);
    XXH3_freeState(content->running);
    *content = (struct content){.payloads = content->payloads};
}

bool content_outgrows(const struct content *content, int64_t size, int64_t memory_left) {
    if (content->in_file || size <= content->size)
        return false;
    return size > SPOOL_INLINE_MAX || size - content->size > memory_left;
}

void content_enter_file(struct content *content, int64_t payload) {
    content->in_file = true;
    content->payload = payload;
    content->copy_length = content->size; /* of `bytes`, which the next call that moves bytes writes out */
    if (!content->bytes) {
        content->running = XXH3_createState();
        if (content->running)
            XXH3_64bits_reset(content->running);
        content->summed = 0;
    }
}

int content_reserve(struct content *content, int64_t size) {
    if (size > (int64_t)content->capacity) {
        size_t capacity = content->capacity ? content->capacity : 1024;
        while ((int64_t)capacity < size)
            capacity *= 2;
        unsigned char *bigger = realloc(content->bytes, capacity);
        if (!bigger)
            return -ENOMEM;
        content->bytes = bigger;
        content->capacity = capacity;
    }
    if (size > content->size) {
        memset(content->bytes + content->size, 0, (size_t)(size - content->size));
        content->size = size;
    }
    return 0;
}

/* Add to the running sum while the file is written from its start to its end, and give up on it otherwise. */
static void sum_up(struct content *content, const void *bytes, size_t length, int64_t offset) {
    if (!content->running)
        return;
    if (offset == content->summed) {
        XXH3_64bits_update(content->running, bytes, length);
        content->summed += (int64_t)length;
    } else {
        XXH3_freeState(content->running);
        content->running = NULL;
    }
}

/* Bring into the file what it begins with: bytes that were in memory, or a copy of another file. */
static int bring_beginning(struct content *content) {
    int rc = 0;
    if (content->bytes) {
        content->running = XXH3_createState();
        if (content->running)
            XXH3_64bits_reset(content->running);
        content->summed = 0;
        size_t length = (size_t)content->copy_length;
        rc = payload_write(content->payloads, content->payload, content->bytes, length, 0);
        if (rc)
            return rc;
        sum_up(content, content->bytes, length, 0);
        free(content->bytes);
        content->bytes = NULL;
        content->capacity = 0;
    } else if (content->copy_from) {
        rc = payload_copy(content->payloads, content->copy_from, content->payload, content->copy_length);
        if (rc)
            return rc;
        content->copy_from = 0;
    }
    return 0;
}

int content_write(struct content *content, const void *bytes, size_t length, int64_t offset) {
    if (!content->in_file) {
        if (length > 0)
            memcpy(content->bytes + offset, bytes, length);
        return 0;
    }
    int rc = bring_beginning(content);
    if (!rc)
        rc = payload_write(content->payloads, content->payload, bytes, length, offset);
    if (!rc)
        sum_up(content, bytes, length, offset);
    return rc;
}

int content_resize(struct content *content, int64_t length) {
    if (!content->in_file) {
        if (length < content->size)
            content->size = length;
        return content_reserve(content, length);
    }
    int rc = bring_beginning(content);
    if (!rc)
        rc = payload_resize(content->payloads, content->payload, length);
    if (!rc && length != content->summed) {
        XXH3_freeState(content->running);
        content->running = NULL;
    }
    return rc;
}

ssize_t content_read(struct content *content, void *bytes, size_t length, int64_t offset) {
    if (content->in_file) {
        int rc = bring_beginning(content);
        return rc ? rc : payload_read(content->payloads, content->payload, bytes, length, offset);
    }
    if (offset >= content->size)
        return 0;
    if ((int64_t)length > content->size - offset)
        length = (size_t)(content->size - offset);
    memcpy(bytes, content->bytes + offset, length);
    return (ssize_t)length;
}

int content_settle(struct content *content) {
    if (!content->in_file)
        return 0;
    int rc = bring_beginning(content);
    if (!rc)
        rc = payload_sync(content->payloads, content->payload);
    if (!rc && content->running && content->summed == content->size)
        content->hash = (int64_t)XXH3_64bits_digest(content->running);
    else if (!rc)
        rc = payload_hash(content->payloads, content->payload, content->size, &content->hash);
    return rc;
}

void content_summary(const struct content *content, struct content_summary *out) {
    bool empty = content->size == 0;
    *out = (struct content_summary){
        .size = content->size,
        .payload = empty ? 0 : content->payload,
        .in_file = !empty && content->in_file,
        .hash = !content->in_file ? content_hash_bytes(content->bytes, (size_t)content->size)
                : empty           ? content_hash_bytes(NULL, 0)
                                  : content->hash,
    };
}
