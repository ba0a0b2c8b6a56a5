/* payload.c - see payload.h. */
#include "payload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "db.h"
#include "path.h"

#define COPY_BYTES (1024 * 1024)

struct pin {
    struct table_entry entry; /* key: the payload */
    int count, leaving;
    bool let_go;
};

static void name_of(int64_t payload, char name[24]) {
    snprintf(name, 24, "%" PRId64, payload);
}

/* Tell the tap what is about to happen to a file, or to the directory (payload 0). */
static int tap(struct payloads *payloads, enum db_event event, int64_t payload, const void *bytes, size_t length,
               int64_t offset) {
    char path[4096];
    if (!payloads->tap)
        return 0;
    if (payload)
        snprintf(path, sizeof path, "%s/%" PRId64, payloads->path, payload);
    else
        snprintf(path, sizeof path, "%s", payloads->path);
    return payloads->tap->see(payloads->tap, event, DB_FILE_OTHER, path, bytes, length, offset);
}

static int make_directory(struct payloads *payloads) {
    int rc = tap(payloads, DB_OPEN, 0, NULL, 0, 0);
    if (!rc && mkdir(payloads->path, 0700) != 0 && errno != EEXIST)
        rc = -errno;
    return rc ? rc : path_sync_name(payloads->path, payloads->tap);
}

int payloads_open(struct payloads *payloads, const char *database, bool make, struct db_tap *db_tap) {
    size_t length = strlen(database) + sizeof ".payloads";
    *payloads = (struct payloads){.directory = -1, .tap = db_tap};
    pthread_mutex_init(&payloads->lock, NULL);
    payloads->path = malloc(length);
    if (!payloads->path)
        return -ENOMEM;
    snprintf(payloads->path, length, "%s.payloads", database);
    int rc = make ? make_directory(payloads) : 0;
    if (rc)
        return rc;
    payloads->directory = open(payloads->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return payloads->directory < 0 ? -errno : 0;
}

static void free_pin(struct table_entry *entry, void *context) {
    (void)context;
    free(entry);
}

void payloads_close(struct payloads *payloads) {
    if (!payloads->path)
        return;
    if (payloads->directory >= 0)
        close(payloads->directory);
    table_each(&payloads->pins, free_pin, NULL);
    table_clear(&payloads->pins);
    free(payloads->doomed);
    free(payloads->path);
    pthread_mutex_destroy(&payloads->lock);
    *payloads = (struct payloads){.directory = -1};
}

static int open_file(struct payloads *payloads, int64_t payload, int flags) {
    char name[24];
    name_of(payload, name);
    int file = openat(payloads->directory, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    return file < 0 ? -errno : file;
}

static int write_all(int file, const unsigned char *bytes, size_t length, int64_t offset) {
    while (length > 0) {
        ssize_t written = pwrite(file, bytes, length, offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        bytes += written;
        length -= (size_t)written;
        offset += written;
    }
    return 0;
}

int payload_write(struct payloads *payloads, int64_t payload, const void *bytes, size_t length, int64_t offset) {
    int rc = tap(payloads, DB_WRITE, payload, bytes, length, offset);
    if (rc)
        return rc;
    int file = open_file(payloads, payload, O_WRONLY | O_CREAT);
    if (file < 0)
        return file;
    rc = write_all(file, bytes, length, offset);
    close(file);
    return rc;
}

int payload_resize(struct payloads *payloads, int64_t payload, int64_t length) {
    int rc = tap(payloads, DB_TRUNCATE, payload, NULL, 0, length);
    if (rc)
        return rc;
    int file = open_file(payloads, payload, O_WRONLY | O_CREAT);
    if (file < 0)
        return file;
    rc = ftruncate(file, length) == 0 ? 0 : -errno;
    close(file);
    return rc;
}

static ssize_t read_all(int file, unsigned char *bytes, size_t length, int64_t offset) {
    size_t done = 0;
    while (done < length) {
        ssize_t got = pread(file, bytes + done, length - done, offset + (int64_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

ssize_t payload_read(struct payloads *payloads, int64_t payload, void *bytes, size_t length, int64_t offset) {
    int file = open_file(payloads, payload, O_RDONLY);
    if (file < 0)
        return file;
    ssize_t got = read_all(file, bytes, length, offset);
    close(file);
    return got;
}

/* Pass the first `length` bytes of a file, piece by piece, to `each`. */
static int walk(struct payloads *payloads, int64_t payload, int64_t length,
                int (*each)(void *context, const void *bytes, size_t count, int64_t offset), void *context) {
    int file = open_file(payloads, payload, O_RDONLY);
    if (file < 0)
        return file;
    unsigned char *buffer = malloc(COPY_BYTES);
    int rc = buffer ? 0 : -ENOMEM;
    for (int64_t at = 0; !rc && at < length;) {
        size_t want = length - at < COPY_BYTES ? (size_t)(length - at) : COPY_BYTES;
        ssize_t got = read_all(file, buffer, want, at);
        if (got <= 0)
            rc = got < 0 ? (int)got : -EIO; /* shorter than its row says */
        else
            rc = each(context, buffer, (size_t)got, at);
        at += got;
    }
    free(buffer);
    close(file);
    return rc;
}

struct copy {
    struct payloads *payloads;
    int64_t to;
};

static int copy_piece(void *context, const void *bytes, size_t count, int64_t offset) {
    struct copy *copy = context;
    return payload_write(copy->payloads, copy->to, bytes, count, offset);
}

int payload_copy(struct payloads *payloads, int64_t from, int64_t to, int64_t length) {
    return walk(payloads, from, length, copy_piece, &(struct copy){payloads, to});
}

static int hash_piece(void *context, const void *bytes, size_t count, int64_t offset) {
    (void)offset;
    XXH3_64bits_update(context, bytes, count);
    return 0;
}

int payload_hash(struct payloads *payloads, int64_t payload, int64_t length, int64_t *hash) {
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        return -ENOMEM;
    XXH3_64bits_reset(state);
    int rc = walk(payloads, payload, length, hash_piece, state);
    if (!rc)
        *hash = (int64_t)XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return rc;
}

int payload_sync(struct payloads *payloads, int64_t payload) {
    int file = open_file(payloads, payload, O_RDONLY);
    if (file < 0)
        return file;
    int rc = tap(payloads, DB_SYNC, payload, NULL, 0, 0);
    if (!rc && fsync(file) != 0)
        rc = -errno;
    close(file);
    if (!rc)
        rc = tap(payloads, DB_SYNC, 0, NULL, 0, 0);
    if (!rc && fsync(payloads->directory) != 0)
        rc = -errno;
    return rc;
}

int payload_size(struct payloads *payloads, int64_t payload, int64_t *bytes) {
    char name[24];
    struct stat status;
    name_of(payload, name);
    if (fstatat(payloads->directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return -errno;
    *bytes = status.st_size;
    return 0;
}

void payload_remove(struct payloads *payloads, int64_t payload) {
    char name[24];
    name_of(payload, name);
    if (tap(payloads, DB_DELETE, payload, NULL, 0, 0) == 0)
        unlinkat(payloads->directory, name, 0); /* what stays is found at the next start */
}

int payloads_each(struct payloads *payloads, void (*each)(int64_t payload, void *context), void *context) {
    int copy = openat(payloads->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = copy < 0 ? NULL : fdopendir(copy);
    if (!directory) {
        int rc = -errno;
        if (copy >= 0)
            close(copy);
        return rc;
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char *end;
        long long payload = strtoll(entry->d_name, &end, 10);
        if (payload > 0 && *end == '\0')
            each(payload, context);
    }
    closedir(directory);
    return 0;
}

int payload_pin(struct payloads *payloads, int64_t payload) {
    int rc = 0;
    pthread_mutex_lock(&payloads->lock);
    struct pin *pin = (struct pin *)table_find(&payloads->pins, payload);
    if (!pin) {
        pin = calloc(1, sizeof *pin);
        if (pin) {
            pin->entry.key = payload;
            rc = table_add(&payloads->pins, &pin->entry);
        } else {
            rc = -ENOMEM;
        }
    }
    if (!rc)
        pin->count++;
    pthread_mutex_unlock(&payloads->lock);
    return rc;
}

void payload_unpin(struct payloads *payloads, int64_t payload, bool left) {
    pthread_mutex_lock(&payloads->lock);
    struct pin *pin = (struct pin *)table_find(&payloads->pins, payload);
    if (pin && left)
        pin->leaving--;
    if (pin && --pin->count == 0) {
        table_remove(&payloads->pins, &pin->entry);
        free(pin);
    }
    pthread_mutex_unlock(&payloads->lock);
}

bool payload_leave(struct payloads *payloads, int64_t payload) {
    pthread_mutex_lock(&payloads->lock);
    struct pin *pin = (struct pin *)table_find(&payloads->pins, payload);
    bool last = pin && ++pin->leaving == pin->count && pin->let_go;
    pthread_mutex_unlock(&payloads->lock);
    return last;
}

void payload_stay(struct payloads *payloads, int64_t payload) {
    pthread_mutex_lock(&payloads->lock);
    struct pin *pin = (struct pin *)table_find(&payloads->pins, payload);
    if (pin)
        pin->leaving--;
    pthread_mutex_unlock(&payloads->lock);
}

bool payload_is_pinned(struct payloads *payloads, int64_t payload) {
    pthread_mutex_lock(&payloads->lock);
    struct pin *pin = (struct pin *)table_find(&payloads->pins, payload);
    bool pinned = pin && pin->count > pin->leaving;
    pthread_mutex_unlock(&payloads->lock);
    return pinned;
}

void payload_let_go(struct payloads *payloads, int64_t payload) {
    pthread_mutex_lock(&payloads->lock);
    struct pin *pin = (struct pin *)table_find(&payloads->pins, payload);
    if (pin)
        pin->let_go = true;
    pthread_mutex_unlock(&payloads->lock);
}

int payload_doom(struct payloads *payloads, int64_t payload, uint64_t ticket) {
    int rc = 0;
    pthread_mutex_lock(&payloads->lock);
    if (payloads->doomed_count == payloads->doomed_capacity) {
        size_t capacity = payloads->doomed_capacity ? payloads->doomed_capacity * 2 : 16;
        struct doomed *bigger = realloc(payloads->doomed, capacity * sizeof *bigger);
        if (bigger) {
            payloads->doomed = bigger;
            payloads->doomed_capacity = capacity;
        } else {
            rc = -ENOMEM;
        }
    }
    if (!rc)
        payloads->doomed[payloads->doomed_count++] = (struct doomed){payload, ticket};
    pthread_mutex_unlock(&payloads->lock);
    return rc;
}

void payload_undoom(struct payloads *payloads, uint64_t ticket) {
    pthread_mutex_lock(&payloads->lock);
    size_t kept = 0;
    for (size_t i = 0; i < payloads->doomed_count; i++) {
        if (payloads->doomed[i].ticket != ticket)
            payloads->doomed[kept++] = payloads->doomed[i];
    }
    payloads->doomed_count = kept;
    pthread_mutex_unlock(&payloads->lock);
}

void payload_confirm(struct payloads *payloads, uint64_t ticket) {
    pthread_mutex_lock(&payloads->lock);
    for (size_t i = 0; i < payloads->doomed_count; i++) {
        if (payloads->doomed[i].ticket > ticket)
            payloads->doomed[i].ticket = ticket;
    }
    pthread_mutex_unlock(&payloads->lock);
}

/* Called with the lock held. The index of one that may go, or doomed_count. */
static size_t find_reapable(struct payloads *payloads, uint64_t synced) {
    size_t i = 0;
    while (i < payloads->doomed_count &&
           (payloads->doomed[i].ticket > synced || table_find(&payloads->pins, payloads->doomed[i].payload) != NULL))
        i++;
    return i;
}

bool payloads_reapable(struct payloads *payloads, uint64_t synced) {
    pthread_mutex_lock(&payloads->lock);
    bool found = find_reapable(payloads, synced) < payloads->doomed_count;
    pthread_mutex_unlock(&payloads->lock);
    return found;
}

void payloads_reap(struct payloads *payloads, uint64_t synced) {
    for (;;) {
        pthread_mutex_lock(&payloads->lock);
        size_t i = find_reapable(payloads, synced);
        bool found = i < payloads->doomed_count;
        int64_t payload = found ? payloads->doomed[i].payload : 0;
        if (found)
            payloads->doomed[i] = payloads->doomed[--payloads->doomed_count];
        pthread_mutex_unlock(&payloads->lock);
        if (!found)
            return;
        payload_remove(payloads, payload);
    }
}
