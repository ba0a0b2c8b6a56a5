/*
 * content.h - the bytes of a file that is being written: in memory up to SPOOL_INLINE_MAX, beyond that in a payload file.
 *
 * content_admit_*() are the owner's thread's: they decide where the bytes will go and how long the content will be. The calls that
 * move bytes may run elsewhere once content_blocks() is true, one after the other in the order of admission.
 */
#ifndef SPOOL_CONTENT_H
#define SPOOL_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct payloads;
struct XXH3_state_s;

/* What a message's row says of its payload. */
struct content_summary {
    int64_t size;    /* bytes */
    int64_t payload; /* 0: empty */
    bool in_file;
    int64_t hash;
};

struct content {
    struct payloads *payloads;
    int64_t size;    /* as admitted */
    int64_t payload; /* where it is, or will be, stored; 0: nowhere yet */
    bool in_file;    /* decided at admission, before the first byte is moved */
    /* in memory */
    unsigned char *bytes;
    size_t capacity;
    /* in a file: touched by the calls that move bytes only */
    int64_t copy_from; /* the payload whose first copy_length bytes this begins with; 0: none, or done */
    int64_t copy_length;
    struct XXH3_state_s *running; /* of the first `summed` bytes; NULL: not kept */
    int64_t summed;
    int64_t hash; /* as of the last settle */
};

void content_begin(struct content *content, struct payloads *payloads);
/* Start from a payload file that exists, or as a copy of it under the number `payload`. */
void content_begin_file(struct content *content, struct payloads *payloads, int64_t payload, int64_t size);
void content_begin_copy(struct content *content, struct payloads *payloads, int64_t payload, int64_t from,
                        int64_t size);
/* Take a copy of `bytes`. */
int content_begin_bytes(struct content *content, struct payloads *payloads, const void *bytes, size_t length);
void content_end(struct content *content); /* frees memory; files stay */

/* Would the content, grown to `size`, have to move into a file? Then content_enter_file() gives it the number of that. */
bool content_outgrows(const struct content *content, int64_t size, int64_t memory_left);
void content_enter_file(struct content *content, int64_t payload);
/* Make room in memory for `size` bytes, zeroed. Not for files. -ENOMEM. */
int content_reserve(struct content *content, int64_t size);
static inline bool content_blocks(const struct content *content) {
    return content->in_file;
}

/* Move bytes that were admitted. */
int content_write(struct content *content, const void *bytes, size_t length, int64_t offset);
int content_resize(struct content *content, int64_t length);
ssize_t content_read(struct content *content, void *bytes, size_t length, int64_t offset);
int content_settle(struct content *content); /* a file: flush, and sum up */
void content_summary(const struct content *content, struct content_summary *out);
int64_t content_hash_bytes(const void *bytes, size_t length);

#endif
