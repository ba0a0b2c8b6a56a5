/*
 * reader.c - open-for-reading. A reader pins the payload it opened on, so that its removal waits, and reads what is being written
 * while the file has a draft that shows.
 */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

struct spool_reader {
    struct spool *spool;
    int64_t file;
    struct content_summary content;
    pthread_mutex_t lock; /* of what follows: reads may run in several threads */
    int64_t from_file;    /* the payload file the next read comes from, as spool_reader_blocks() found; 0: memory */
    bool is_own;          /* it is the one the reader opened on, not a draft's */
    bool closing;
    XXH3_state_t *running;
    int64_t summed; /* bytes read in one go from the start; -1: not read so */
};

static void free_reader(void *what) {
    struct spool_reader *reader = what;
    if (reader->content.payload)
        payload_unpin(&reader->spool->payloads, reader->content.payload, reader->closing);
    XXH3_freeState(reader->running);
    pthread_mutex_destroy(&reader->lock);
    free(reader);
}

/* Bring a payload that stands in the database into the cache of one. */
static int load(struct spool *spool, int64_t payload) {
    struct reader_cache *cache = &spool->cache;
    struct db_row *row = NULL;
    size_t length;
    if (cache->payload == payload)
        return 0;
    int rc = db_first(spool->db, &row, Q_payload_get, db_int(payload));
    if (rc == 1) {
        const void *bytes = db_column_bytes(row, 0, &length);
        void *copy = malloc(length);
        if (copy) {
            memcpy(copy, bytes, length);
            free(cache->bytes);
            *cache = (struct reader_cache){payload, copy, length};
        }
        rc = copy ? 0 : -ENOMEM;
    } else if (rc == 0) {
        rc = -EIO;
    }
    db_done(row);
    return rc;
}

/* What stands in the database is looked at as a whole before any of it is handed out. */
static int verify(struct spool *spool, const struct message *message) {
    if (message->seal != spool__seal(message))
        return -EIO;
    if (!message->content.payload || message->content.in_file)
        return 0;
    int rc = load(spool, message->content.payload);
    if (!rc && (spool->cache.length != (size_t)message->content.size ||
                content_hash_bytes(spool->cache.bytes, spool->cache.length) != message->content.hash))
        rc = -EIO;
    if (rc)
        spool->cache.payload = 0;
    return rc;
}

static int quarantine(struct spool *spool, const struct message *message) {
    if (message->state == SPOOL_DEAD_STATE || !spool__is_published(message->state))
        return 0;
    int rc = spool__change(spool);
    return rc ? rc : spool__bury(spool, message, NULL, "the payload does not match its checksum");
}

int spool_open_reader(struct spool *spool, int64_t number, struct spool_reader **out) {
    struct message message;
    int rc = spool__message(spool, number, &message);
    if (!rc && message.state == SPOOL_DRAFT)
        rc = -ENOENT;
    if (!rc && spool__is_published(message.state))
        rc = verify(spool, &message);
    if (rc == -EIO && quarantine(spool, &message) != 0)
        return -EIO;
    if (rc)
        return rc;
    struct spool_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return -ENOMEM;
    reader->spool = spool;
    reader->file = number;
    reader->content = message.content;
    pthread_mutex_init(&reader->lock, NULL);
    if (message.content.payload)
        rc = payload_pin(&spool->payloads, message.content.payload);
    if (rc)
        reader->content.payload = 0;
    if (!rc)
        rc = spool__later(spool, NULL, free_reader, reader);
    if (rc)
        free_reader(reader);
    else
        *out = reader;
    return rc;
}

static struct draft *shown(const struct spool_reader *reader) {
    return spool__draft_of(reader->spool, reader->file, WRITES_NEW);
}

/* Decides, in the owner's thread, where the next read comes from. */
bool spool_reader_blocks(const struct spool_reader *reader) {
    struct spool_reader *self = (struct spool_reader *)reader;
    struct draft *draft = shown(reader);
    bool blocks = draft ? content_blocks(&draft->content) : reader->content.in_file;
    pthread_mutex_lock(&self->lock);
    self->is_own = draft == NULL;
    self->from_file = !blocks ? 0 : draft ? draft->content.payload : reader->content.payload;
    pthread_mutex_unlock(&self->lock);
    return blocks;
}

int64_t spool_reader_key(const struct spool_reader *reader) {
    struct draft *draft = shown(reader);
    return draft ? draft->number : -reader->file; /* in order too, so that a read from start to end can be summed up */
}

static ssize_t read_memory(struct spool_reader *reader, void *bytes, size_t length, int64_t offset) {
    struct draft *draft = shown(reader);
    if (draft)
        return content_read(&draft->content, bytes, length, offset);
    if (!reader->content.payload || offset >= reader->content.size)
        return 0;
    int rc = load(reader->spool, reader->content.payload);
    if (rc)
        return rc;
    if (length > reader->spool->cache.length - (size_t)offset)
        length = reader->spool->cache.length - (size_t)offset;
    memcpy(bytes, (const unsigned char *)reader->spool->cache.bytes + offset, length);
    return (ssize_t)length;
}

/* Sum up a file that is read from its start to its end: a flipped bit shows with the last piece. */
static int sum_up(struct spool_reader *reader, const void *bytes, ssize_t got, int64_t offset) {
    if (offset == 0 && !reader->running)
        reader->running = XXH3_createState();
    if (offset == 0 && reader->running) {
        XXH3_64bits_reset(reader->running);
        reader->summed = 0;
    }
    if (!reader->running || reader->summed != offset)
        return 0;
    XXH3_64bits_update(reader->running, bytes, (size_t)got);
    reader->summed += got;
    bool whole = reader->summed == reader->content.size;
    return whole && (int64_t)XXH3_64bits_digest(reader->running) != reader->content.hash ? -EIO : 0;
}

ssize_t spool_read(struct spool_reader *reader, void *bytes, size_t length, int64_t offset) {
    pthread_mutex_lock(&reader->lock);
    int64_t payload = reader->from_file;
    bool own = reader->is_own;
    pthread_mutex_unlock(&reader->lock);
    if (!payload)
        return read_memory(reader, bytes, length, offset);
    ssize_t got = payload_read(&reader->spool->payloads, payload, bytes, length, offset);
    if (got == -ENOENT)
        got = -EIO;
    if (got > 0 && own) {
        pthread_mutex_lock(&reader->lock);
        int rc = sum_up(reader, bytes, got, offset);
        pthread_mutex_unlock(&reader->lock);
        if (rc)
            return rc;
    }
    return got;
}

/* The last reader of a payload that was let go takes it along. */
static void remove_doomed(struct spool *spool, int64_t payload) {
    if (spool__change(spool) != 0)
        return; /* it is found at the next start */
    int found = db_run(spool->db, Q_doomed_delete, db_int(payload));
    if (found == 1)
        found = spool__run(spool, Q_payload_delete, db_int(payload));
    if (found < 0)
        spool__ran(spool, found);
}

static void reopen_reader(void *what) {
    struct spool_reader *reader = what;
    payload_stay(&reader->spool->payloads, reader->content.payload);
    reader->closing = false;
}

void spool_close_reader(struct spool_reader *reader) {
    if (!reader)
        return;
    struct spool *spool = reader->spool;
    int64_t payload = reader->content.payload;
    if (payload && payload_leave(&spool->payloads, payload))
        remove_doomed(spool, payload);
    reader->closing = payload != 0;
    if (spool__later(spool, free_reader, payload ? reopen_reader : NULL, reader) != 0)
        free_reader(reader);
}
