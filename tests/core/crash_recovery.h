/*
 * crash_recovery.h - start from an image, and write down everything that can be seen then.
 */
#ifndef CRASH_RECOVERY_H
#define CRASH_RECOVERY_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crash_model.h"

enum { LOG_BYTES = 96 * 1024, DUMP_BYTES = 64 * 1024, READ_BYTES = 4 * LARGE_BYTES, MOST_DIRECTORIES = 64 };
#define SECOND INT64_C(1000000000)

/* One start from an image, and what it showed. */
struct outcome {
    char why[512]; /* what is wrong in any case; empty: nothing */
    char *dump;    /* all there is, as text: directories, messages, counters */
    struct seen seen[MOST_OBJECTS];
    int seen_count;
    int64_t next_number; /* the first one that was given afterwards */
    size_t recorded;     /* events of this start until everything was seen */
};

struct bench {
    char path[128]; /* of the image's database */
    unsigned char *buffer;
};

struct circumstances {
    struct spool_time now;
    const char *boot_id;
    struct recording *recording; /* of this start; or NULL */
    bool check;                  /* close, and spool_check() */
    bool twice;                  /* close, and look again */
};

struct look {
    struct bench *bench;
    const struct model *model;
    struct spool *spool;
    struct outcome *outcome;
    size_t used;
    struct found {
        int64_t number;
        enum spool_kind kind;
        enum spool_state state;
        char name[SPOOL_NAME_MAX + 1];
    } * found; /* the entries of a directory */
    int found_count;
};

__attribute__((format(printf, 2, 3))) static bool wrong(struct outcome *outcome, const char *format, ...) {
    va_list arguments;
    if (outcome->why[0])
        return false;
    va_start(arguments, format);
    vsnprintf(outcome->why, sizeof outcome->why, format, arguments);
    va_end(arguments);
    return false;
}

__attribute__((format(printf, 2, 3))) static void say(struct look *look, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    look->used += (size_t)vsnprintf(look->outcome->dump + look->used, DUMP_BYTES - look->used, format, arguments);
    va_end(arguments);
    assert(look->used < DUMP_BYTES);
}

/* --- the image on a file system ------------------------------------------------------------------------------------- */

static void remove_files(const char *path) {
    static const char *const suffixes[] = {"", "-wal", "-journal", ".lock"};
    char name[512];
    snprintf(name, sizeof name, "%s.payloads", path);
    DIR *directory = opendir(name);
    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;) {
        snprintf(name, sizeof name, "%s.payloads/%s", path, entry->d_name);
        unlink(name);
    }
    if (directory)
        closedir(directory);
    snprintf(name, sizeof name, "%s.payloads", path);
    rmdir(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

static void put_file(const char *path, const char *suffix, const struct bytes *content) {
    char name[256];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert(file >= 0);
    ssize_t written = content->size ? write(file, content->at, content->size) : 0;
    assert(written == (ssize_t)content->size);
    (void)written;
    close(file);
}

static void put_image(const char *path, const struct image *image) {
    char name[256];
    remove_files(path);
    snprintf(name, sizeof name, "%s.payloads", path);
    if (image->has_payloads)
        mkdir(name, 0700);
    for (int i = 0; i < image->count; i++) {
        if (image->has_payloads || !is_payload(image->names[i]))
            put_file(path, image->names[i], &image->contents[i]);
    }
}

/* --- looking --------------------------------------------------------------------------------------------------------- */

static bool note_entry(void *context, const char *name, const struct spool_entry *entry, int64_t cursor) {
    struct look *look = context;
    (void)cursor;
    assert(look->found_count < MOST_DIRECTORIES);
    struct found *found = &look->found[look->found_count++];
    found->number = entry->number;
    found->kind = entry->kind;
    found->state = entry->state;
    snprintf(found->name, sizeof found->name, "%s", name);
    return true;
}

static ssize_t read_whole(struct look *look, int64_t number) {
    struct spool_reader *reader;
    ssize_t length = 0, got = 1;
    int rc = spool_open_reader(look->spool, number, &reader);
    if (rc)
        return rc;
    while (got > 0 && length < READ_BYTES) {
        (void)spool_reader_blocks(reader);
        got = spool_read(reader, look->bench->buffer + length, (size_t)(READ_BYTES - length), length);
        length += got > 0 ? got : 0;
    }
    spool_close_reader(reader);
    return got < 0 ? got : length;
}

static void see(struct look *look, int object, int version, enum where where, int64_t queue) {
    struct outcome *outcome = look->outcome;
    assert(outcome->seen_count < MOST_OBJECTS);
    outcome->seen[outcome->seen_count] = (struct seen){object, version, where, queue, outcome->seen_count};
    outcome->seen_count++;
}

static bool look_at_message(struct look *look, const struct found *found, int64_t queue) {
    int version = 0;
    if (found->state == SPOOL_OPEN || found->state == SPOOL_DRAFT)
        return wrong(look->outcome, "%s is still being written", found->name);
    if (found->state == SPOOL_STAGED) {
        say(look, "  %lld staged %s\n", (long long)found->number, found->name);
        return true;
    }
    ssize_t length = read_whole(look, found->number);
    if (length < 0)
        return wrong(look->outcome, "%s cannot be read: %s", found->name, strerror((int)-length));
    uint64_t hash = XXH3_64bits(look->bench->buffer, (size_t)length);
    say(look, "  %lld state %d %s %zd %016llx\n", (long long)found->number, found->state, found->name, length,
        (unsigned long long)hash);
    int object = find_content(look->model, found->name, hash, (size_t)length, &version);
    if (object < 0)
        return wrong(look->outcome, "the %zd bytes of %s were never written as a whole", length, found->name);
    enum where where = found->state == SPOOL_CLAIMED_STATE ? CLAIMED
                       : found->state == SPOOL_DEAD_STATE  ? DEAD
                                                           : IN_QUEUE;
    see(look, object, version, where, queue);
    return true;
}

static void look_at_queue(struct look *look, const struct found *found) {
    int64_t stats[SPOOL_STATS];
    const char *version = strrchr(found->name, 'v');
    for (int i = 0; i < look->model->object_count; i++) {
        const struct object *object = &look->model->objects[i];
        if (object->kind == QUEUE && object->number == found->number)
            see(look, i, version ? atoi(version + 1) : -1, IN_QUEUE, found->number);
    }
    if (spool_stats(look->spool, found->number, stats) != 0) {
        wrong(look->outcome, "%s has no counters", found->name);
        return;
    }
    for (int i = 0; i < SPOOL_STATS; i++) {
        if (i != SPOOL_STAT_OLDEST_READY_SECONDS && i != SPOOL_STAT_BYTES) /* bytes: of staged files, too */
            say(look, " %lld", (long long)stats[i]);
    }
    say(look, "\n");
}

static bool look_at_directory(struct look *look, int64_t number, int64_t queue) {
    struct found *entries = malloc(MOST_DIRECTORIES * sizeof *entries);
    assert(entries);
    look->found = entries;
    look->found_count = 0;
    int rc = spool_list(look->spool, number, 0, note_entry, look);
    int count = look->found_count;
    for (int i = 0; i < count && !rc && !look->outcome->why[0]; i++) {
        if (entries[i].kind == SPOOL_MESSAGE) {
            look_at_message(look, &entries[i], queue);
            continue;
        }
        say(look, "%lld kind %d %s in %lld\n", (long long)entries[i].number, entries[i].kind, entries[i].name,
            (long long)number);
        if (entries[i].kind == SPOOL_QUEUE)
            look_at_queue(look, &entries[i]);
        if (entries[i].kind != SPOOL_LINK)
            look_at_directory(look, entries[i].number, queue ? queue : entries[i].number);
    }
    free(entries);
    return rc ? wrong(look->outcome, "directory %lld cannot be listed: %s", (long long)number, strerror(-rc)) : true;
}

static void look_at_settings(struct look *look) {
    char text[SPOOL_SETTING_MAX];
    for (int i = 0; i < look->model->object_count; i++) {
        const struct object *object = &look->model->objects[i];
        if (object->kind != SETTING)
            continue;
        if (spool_get_setting(look->spool, object->directory, SPOOL_MAX_ATTEMPTS, text) == 0 &&
            atoi(text) != atoi(spool_setting_default(SPOOL_MAX_ATTEMPTS)))
            see(look, i, atoi(text), IN_QUEUE, object->directory);
    }
}

static void look_around(struct look *look) {
    free(look->outcome->dump);
    look->outcome->dump = malloc(DUMP_BYTES);
    assert(look->outcome->dump);
    look->used = 0;
    look->outcome->seen_count = 0;
    look->outcome->dump[0] = '\0';
    look_at_directory(look, SPOOL_ROOT, 0);
    look_at_settings(look);
    look->outcome->dump = realloc(look->outcome->dump, look->used + 1);
}

/* --- starting --------------------------------------------------------------------------------------------------------- */

static bool start(struct look *look, const struct circumstances *circumstances) {
    struct spool_options options = {.boot_id = circumstances->boot_id, .log_bytes = LOG_BYTES};
    if (circumstances->recording)
        options.tap = &circumstances->recording->tap;
    char why[400] = "";
    int rc = spool_open(look->bench->path, &options, circumstances->now, &look->spool, why, sizeof why);
    if (rc)
        return wrong(look->outcome, "it does not start: %s", why);
    rc = spool_tick(look->spool, circumstances->now);
    if (!rc)
        rc = spool_commit(look->spool, NULL);
    if (rc)
        wrong(look->outcome, "the first tick fails: %s", strerror(-rc));
    return rc == 0;
}

/* Publish one more message, which the model knows as a content of its first object. */
static void publish_another(struct look *look) {
    struct spool_writer *writer;
    struct spool_entry entry;
    uint64_t ticket;
    int64_t offset = 0, queue = look->model->objects[0].number;
    int rc = spool_create(look->spool, queue, "another", 0600, false, (struct spool_caller){0}, &entry, &writer);
    if (!rc)
        rc = spool_admit_write(writer, sizeof another, &offset);
    if (!rc)
        rc = spool_write(writer, another, sizeof another, offset);
    if (!rc)
        rc = spool_store(writer, true);
    if (!rc)
        rc = spool_close_writer(writer, false);
    if (!rc)
        rc = spool_commit(look->spool, &ticket);
    if (!rc)
        rc = spool_sync(look->spool, ticket);
    if (rc)
        wrong(look->outcome, "no other message can be published: %s", strerror(-rc));
    else
        look->outcome->next_number = entry.number;
}

static void count_violation(void *context, const char *sentence) {
    wrong(context, "%s", sentence);
}

static void look_again(struct look *look, const struct circumstances *circumstances) {
    struct outcome second = {.dump = NULL};
    struct look again = {.bench = look->bench, .model = look->model, .outcome = &second};
    struct circumstances unrecorded = *circumstances;
    unrecorded.recording = NULL;
    if (start(&again, &unrecorded)) {
        look_around(&again);
        if (!strstr(second.dump, " another "))
            wrong(look->outcome, "what was published after the crash is gone with the next start");
        spool_close(again.spool);
    }
    free(second.dump);
    if (second.why[0])
        wrong(look->outcome, "at the next start: %s", second.why);
}

/* Start from the files at bench->path. `has_queue`: there is one to publish into, the first object. */
static void recover(struct bench *bench, const struct model *model, const struct circumstances *circumstances,
                    struct outcome *outcome) {
    struct look look = {.bench = bench, .model = model, .outcome = outcome};
    char why[256] = "";
    struct spool_entry entry;
    *outcome = (struct outcome){.dump = NULL};
    if (!start(&look, circumstances))
        return;
    look_around(&look);
    outcome->recorded = circumstances->recording ? circumstances->recording->count : 0;
    bool has_queue = spool_stat(look.spool, model->objects[0].number, &entry) == 0;
    if (!outcome->why[0] && has_queue)
        publish_another(&look);
    spool_close(look.spool);
    if (outcome->why[0])
        return;
    int found = circumstances->check ? spool_check(bench->path, count_violation, outcome, why, sizeof why) : 0;
    if (found < 0)
        wrong(outcome, "it cannot be checked: %s", why);
    if (circumstances->twice && has_queue)
        look_again(&look, circumstances);
}

static void outcome_end(struct outcome *outcome) {
    free(outcome->dump);
    *outcome = (struct outcome){.dump = NULL};
}

#endif
