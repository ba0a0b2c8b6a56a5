/* spool_fixture.c - see spool_fixture.h. */
#include "spool_fixture.h"

#include <dirent.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the disk ------------------------------------------------------------------------------------------------------- */

static int tap_see(struct db_tap *tap, enum db_event event, enum db_file file, const char *path, const void *bytes,
                   size_t length, int64_t offset) {
    struct fixture_tap *t = (struct fixture_tap *)tap;
    (void)path;
    (void)bytes;
    (void)length;
    (void)offset;
    t->seen[event][file]++;
    bool matches = t->armed && event == t->event && file == t->file;
    return matches && t->countdown-- <= 0 ? t->error : 0;
}

void fail_from(struct fixture *f, enum db_event event, enum db_file file, int countdown, int error) {
    f->tap.event = event;
    f->tap.file = file;
    f->tap.countdown = countdown;
    f->tap.error = error;
    f->tap.armed = true;
}

void fail_no_more(struct fixture *f) {
    f->tap.armed = false;
}

int run_shell(const char *format, ...) {
    char command[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    return system(command);
}

/* By another process: closing a descriptor of the database here would drop SQLite's locks. */
void copy_files(struct fixture *f, const char *name) {
    assert_int_equal(run_shell("cd '%s' && rm -rf '%s'* && cp '%s' '%s' && cp '%s-wal' '%s-wal' && "
                               "cp -r '%s.payloads' '%s.payloads'",
                               f->directory, name, f->path, name, f->path, name, f->path, name),
                     0);
}

int payload_files(struct fixture *f) {
    char path[128];
    int count = 0;
    assert_ok(spool_sync(f->spool, f->ticket));
    spool_reap(f->spool);
    snprintf(path, sizeof path, "%s.payloads", f->path);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static sqlite3 *open_copy(struct fixture *f, const char *name) {
    char path[128];
    sqlite3 *database = NULL;
    copy_files(f, name);
    snprintf(path, sizeof path, "%s/%s", f->directory, name);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    return database;
}

int64_t rows_in(struct fixture *f, const char *table) {
    char sql[128];
    sqlite3_stmt *statement = NULL;
    sqlite3 *database = open_copy(f, "look.db");
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", table);
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t count = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return count;
}

/* --- opening and closing ---------------------------------------------------------------------------------------------- */

static void say_violation(void *context, const char *sentence) {
    (void)context;
    print_message("check: %s\n", sentence);
}

static int count_violations(struct fixture *f) {
    char why[512] = "";
    int violations = f->damaged ? 0 : spool_check(f->path, say_violation, NULL, why, sizeof why);
    if (violations)
        print_message("check: %d violations %s\n", violations, why);
    return violations;
}

static void assert_invariants(struct fixture *f) {
    assert_int_equal(count_violations(f), 0);
}

static void open_spool(struct fixture *f) {
    char why[512] = "";
    int rc = spool_open(f->path, &f->options, f->now, &f->spool, why, sizeof why);
    if (rc)
        fail_msg("open: %s (%d)", why, rc);
}

/* --- what is open ------------------------------------------------------------------------------------------------------- */

static void note_open(struct fixture *f, struct open_files *files, void *file) {
    int i = 0;
    while (i < MOST_OPEN && files->file[i])
        i++;
    if (i == MOST_OPEN)
        fail_msg("too many open files");
    files->file[i] = file;
    if (f->batching)
        files->opened |= UINT64_C(1) << i;
}

static void note_closed(struct fixture *f, struct open_files *files, void *file) {
    for (int i = 0; i < MOST_OPEN; i++) {
        if (files->file[i] != file)
            continue;
        if (f->batching)
            files->closed |= UINT64_C(1) << i;
        else
            files->file[i] = NULL;
    }
}

/* The batch is over: what was closed in it is gone, or, when it was undone, what was opened. */
static void settle_open_files(struct open_files *files, bool undone) {
    uint64_t gone = undone ? files->opened : files->closed;
    for (int i = 0; i < MOST_OPEN; i++) {
        if (gone >> i & 1)
            files->file[i] = NULL;
    }
    files->opened = files->closed = 0;
}

static void end_batch(struct fixture *f, bool undone) {
    f->batching = false;
    settle_open_files(&f->writers, undone);
    settle_open_files(&f->readers, undone);
}

/* Close, after whatever is open in it. */
static void close_spool(struct fixture *f) {
    uint64_t ticket;
    if (f->batching)
        roll_back(f);
    for (int i = 0; i < MOST_OPEN; i++) {
        if (f->writers.file[i])
            (void)spool_close_writer(f->writers.file[i], true);
        spool_close_reader(f->readers.file[i]);
    }
    f->writers = f->readers = (struct open_files){0};
    (void)!spool_commit(f->spool, &ticket);
    spool_close(f->spool);
    f->spool = NULL;
}

static void find_places(struct fixture *f) {
    f->queue = find(f, SPOOL_ROOT, "q");
    int64_t claimed = find(f, f->queue, "claimed");
    f->worker = claimed < 0 ? claimed : find(f, claimed, "w");
}

int set_up_spool(void **state) {
    const char *scratch = getenv("TMPDIR");
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "%s/spool-XXXXXX", scratch && strlen(scratch) < 40 ? scratch : "/tmp");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->path, sizeof f->path, "%s/0.db", f->directory);
    f->now = (struct spool_time){.wall_ns = 1700000000 * SECONDS, .boot_ns = 1000 * SECONDS};
    f->caller = (struct spool_caller){1000, 100};
    f->tap.tap.see = tap_see;
    f->options = (struct spool_options){.uid = 1000, .gid = 100, .boot_id = "first boot", .tap = &f->tap.tap};
    open_spool(f);
    f->queue = make_directory(f, SPOOL_ROOT, "q");
    f->worker = make_directory(f, find(f, f->queue, "claimed"), "w");
    assert_true(f->queue > 0 && f->worker > 0);
    *state = f;
    return 0;
}

/* Whatever the test did, it has kept every invariant. */
int tear_down_spool(void **state) {
    struct fixture *f = *state;
    fail_no_more(f);
    if (f->spool)
        close_spool(f);
    int violations = count_violations(f);
    run_shell("rm -r '%s'", f->directory);
    free(f);
    return violations;
}

void reopen(struct fixture *f) {
    close_spool(f);
    open_spool(f);
    find_places(f);
}

static void open_next(struct fixture *f, const char *name) {
    close_spool(f);
    snprintf(f->path, sizeof f->path, "%s/%s", f->directory, name);
    assert_invariants(f);
    open_spool(f);
    find_places(f);
}

void reopen_after_kill(struct fixture *f) {
    char name[24];
    snprintf(name, sizeof name, "%d.db", ++f->copies);
    copy_files(f, name);
    open_next(f, name);
}

void reopen_after_sql(struct fixture *f, const char *sql) {
    char name[24];
    snprintf(name, sizeof name, "%d.db", ++f->copies);
    sqlite3 *database = open_copy(f, name);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_true(sqlite3_total_changes(database) > 0);
    sqlite3_close(database);
    open_next(f, name);
}

/* --- one call --------------------------------------------------------------------------------------------------------- */

void fixture_begin(struct fixture *f) {
    assert_ok(spool_tick(f->spool, f->now));
}

int64_t fixture_end(struct fixture *f, int64_t result) {
    f->promised = spool_promised(f->spool);
    if (!f->batching) {
        assert_ok(spool_commit(f->spool, &f->ticket));
        if (f->promised)
            assert_ok(spool_sync(f->spool, f->ticket));
        if (spool_wants_reap(f->spool))
            spool_reap(f->spool);
    }
    return result;
}

void begin_batch(struct fixture *f) {
    assert_false(f->batching);
    f->batching = true;
}

int commit_batch(struct fixture *f) {
    int rc = spool_commit(f->spool, &f->ticket);
    end_batch(f, rc != 0);
    if (!rc)
        rc = spool_sync(f->spool, f->ticket);
    if (!rc)
        spool_reap(f->spool);
    return rc;
}

void roll_back(struct fixture *f) {
    spool_rollback(f->spool);
    end_batch(f, true);
}

void advance(struct fixture *f, int64_t ns) {
    f->now.wall_ns += ns;
    f->now.boot_ns += ns;
    assert_ok(DO(f, 0));
}

void step_wall_clock(struct fixture *f, int64_t ns) {
    f->now.wall_ns += ns;
    assert_ok(DO(f, 0));
}

/* --- directories and names ---------------------------------------------------------------------------------------------- */

int64_t make_directory(struct fixture *f, int64_t parent, const char *name) {
    struct spool_entry entry;
    int rc = (int)DO(f, spool_mkdir(f->spool, parent, name, 0755, f->caller, &entry));
    return rc ? rc : entry.number;
}

int64_t find(struct fixture *f, int64_t directory, const char *name) {
    struct spool_entry entry;
    int rc = (int)DO(f, spool_lookup(f->spool, directory, name, &entry));
    return rc ? rc : entry.number;
}

struct spool_entry entry_of(struct fixture *f, int64_t directory, const char *name) {
    struct spool_entry entry = {0};
    int rc = (int)DO(f, spool_lookup(f->spool, directory, name, &entry));
    if (rc)
        fail_msg("%s: %s", name, strerror(-rc));
    return entry;
}

struct spool_entry entry_of_number(struct fixture *f, int64_t number) {
    struct spool_entry entry = {0};
    assert_ok(DO(f, spool_stat(f->spool, number, &entry)));
    return entry;
}

static char *next_text(struct fixture *f) {
    char *text = f->text[f->next_text++ % 8];
    text[0] = '\0';
    return text;
}

struct listing {
    char *text;
    bool messages_only;
    int met;
    int64_t cursor;
};

static bool note_name(void *context, const char *name, const struct spool_entry *entry, int64_t cursor) {
    struct listing *listing = context;
    listing->met++;
    listing->cursor = cursor;
    if (listing->messages_only && entry->kind != SPOOL_MESSAGE)
        return true;
    size_t length = strlen(listing->text);
    snprintf(listing->text + length, sizeof((struct fixture *)0)->text[0] - length, "%s%s", length ? " " : "", name);
    return true;
}

static const char *list(struct fixture *f, int64_t directory, bool messages_only) {
    struct listing listing = {.text = next_text(f), .messages_only = messages_only};
    do {
        listing.met = 0;
        assert_ok(DO(f, spool_list(f->spool, directory, listing.cursor, note_name, &listing)));
    } while (listing.met > 0);
    return listing.text;
}

const char *names_in(struct fixture *f, int64_t directory) {
    return list(f, directory, false);
}

const char *messages_in(struct fixture *f, int64_t directory) {
    return list(f, directory, true);
}

int rename_entry(struct fixture *f, int64_t from, const char *from_name, int64_t to, const char *to_name) {
    return (int)DO(f, spool_move(f->spool, from, from_name, to, to_name, false, f->caller, NULL));
}

int erase(struct fixture *f, int64_t directory, const char *name) {
    return (int)DO(f, spool_unlink(f->spool, directory, name));
}

int claim_as(struct fixture *f, const char *name, const char *lease_name) {
    return rename_entry(f, f->queue, name, f->worker, lease_name);
}

int claim(struct fixture *f, const char *name) {
    return claim_as(f, name, name);
}

int release(struct fixture *f, const char *name) {
    return rename_entry(f, f->worker, name, f->queue, name);
}

/* --- writing ------------------------------------------------------------------------------------------------------------ */

int try_create(struct fixture *f, int64_t directory, const char *name, uint32_t mode, int flags,
               struct spool_writer **out) {
    struct spool_entry entry;
    struct spool_writer *writer;
    int rc =
        (int)DO(f, spool_create(f->spool, directory, name, mode, flags & CREATE_EXCLUSIVE, f->caller, &entry, &writer));
    if (!rc)
        note_open(f, &f->writers, writer);
    if (!rc && out)
        *out = writer;
    return rc;
}

struct spool_writer *create(struct fixture *f, int64_t directory, const char *name) {
    struct spool_writer *writer = NULL;
    int rc = try_create(f, directory, name, 0644, 0, &writer);
    if (rc)
        fail_msg("create %s: %s", name, strerror(-rc));
    return writer;
}

/* As the mount does it: the placeholder of an overwriting open is what is opened. */
int try_open(struct fixture *f, int64_t number, int flags, struct spool_writer **out) {
    struct spool_entry entry;
    struct spool_writer *writer;
    bool truncate = flags & OPEN_TRUNCATE, append = flags & OPEN_APPEND;
    int rc = (int)DO(f, spool_open_writer(f->spool, number, truncate, append, f->caller, &entry, &writer));
    if (rc == -ESTALE)
        rc = (int)DO(f, spool_open_writer(f->spool, entry.number, truncate, append, f->caller, &entry, &writer));
    if (!rc)
        note_open(f, &f->writers, writer);
    if (!rc && out)
        *out = writer;
    return rc;
}

struct spool_writer *open_file(struct fixture *f, int64_t directory, const char *name, int flags) {
    struct spool_writer *writer = NULL;
    int rc = try_open(f, entry_of(f, directory, name).number, flags, &writer);
    if (rc)
        fail_msg("open %s: %s", name, strerror(-rc));
    return writer;
}

int write_bytes(struct fixture *f, struct spool_writer *writer, const void *bytes, size_t length, int64_t offset) {
    int rc = (int)DO(f, spool_admit_write(writer, length, &offset));
    return rc ? rc : spool_write(writer, bytes, length, offset);
}

int write_text(struct fixture *f, struct spool_writer *writer, const char *text, int64_t offset) {
    return write_bytes(f, writer, text, strlen(text), offset);
}

int resize_file(struct fixture *f, struct spool_writer *writer, int64_t length) {
    int rc = (int)DO(f, spool_admit_resize(writer, length));
    return rc ? rc : spool_resize(writer, length);
}

int flush(struct fixture *f, struct spool_writer *writer) {
    int rc = spool_writer_blocks(writer) && spool_writer_dirty(writer) ? spool_settle(writer) : 0;
    return rc ? rc : (int)DO(f, spool_store(writer, true));
}

int release_file(struct fixture *f, struct spool_writer *writer, bool killed) {
    int rc = (int)DO(f, spool_close_writer(writer, killed));
    note_closed(f, &f->writers, writer);
    return rc;
}

int close_file(struct fixture *f, struct spool_writer *writer) {
    int flushed = flush(f, writer);
    int closed = release_file(f, writer, false);
    return flushed ? flushed : closed;
}

int64_t put_bytes(struct fixture *f, int64_t directory, const char *name, const void *bytes, size_t length) {
    struct spool_writer *writer = create(f, directory, name);
    int64_t number = find(f, directory, name);
    if (length)
        assert_ok(write_bytes(f, writer, bytes, length, 0));
    assert_ok(close_file(f, writer));
    return number;
}

int64_t put(struct fixture *f, int64_t directory, const char *name, const char *content) {
    return put_bytes(f, directory, name, content, strlen(content));
}

int overwrite(struct fixture *f, int64_t directory, const char *name, const char *content) {
    struct spool_writer *writer;
    int64_t number = find(f, directory, name);
    int rc =
        number < 0 ? try_create(f, directory, name, 0644, 0, &writer) : try_open(f, number, OPEN_TRUNCATE, &writer);
    if (rc)
        return rc;
    rc = write_text(f, writer, content, 0);
    int closed = close_file(f, writer);
    return rc ? rc : closed;
}

/* --- reading ------------------------------------------------------------------------------------------------------------ */

int try_read(struct fixture *f, int64_t number, struct spool_reader **out) {
    struct spool_reader *reader;
    int rc = (int)DO(f, spool_open_reader(f->spool, number, &reader));
    if (rc)
        return rc;
    note_open(f, &f->readers, reader);
    *out = reader;
    return 0;
}

struct spool_reader *open_to_read(struct fixture *f, int64_t directory, const char *name) {
    struct spool_reader *reader = NULL;
    assert_ok(try_read(f, entry_of(f, directory, name).number, &reader));
    return reader;
}

ssize_t read_bytes(struct fixture *f, struct spool_reader *reader, void *bytes, size_t length, int64_t offset) {
    fixture_begin(f);
    (void)spool_reader_blocks(reader);
    return fixture_end(f, spool_read(reader, bytes, length, offset));
}

const char *read_text(struct fixture *f, struct spool_reader *reader) {
    char *text = next_text(f);
    ssize_t got = read_bytes(f, reader, text, sizeof f->text[0] - 1, 0);
    if (got < 0)
        snprintf(text, sizeof f->text[0], "errno %d", (int)-got);
    else
        text[got] = '\0';
    return text;
}

void close_reader(struct fixture *f, struct spool_reader *reader) {
    fixture_begin(f);
    spool_close_reader(reader);
    assert_ok(fixture_end(f, 0));
    note_closed(f, &f->readers, reader);
}

const char *content_of(struct fixture *f, int64_t directory, const char *name) {
    struct spool_reader *reader = open_to_read(f, directory, name);
    const char *text = read_text(f, reader);
    close_reader(f, reader);
    return text;
}

/* --- settings and counters ---------------------------------------------------------------------------------------------- */

void set(struct fixture *f, int64_t queue, enum spool_setting setting, const char *text) {
    assert_ok(DO(f, spool_set_setting(f->spool, queue, setting, text, strlen(text))));
}

int64_t stat_of(struct fixture *f, int64_t queue, enum spool_stat stat) {
    int64_t values[SPOOL_STATS];
    assert_ok(DO(f, spool_stats(f->spool, queue, values)));
    return values[stat];
}
