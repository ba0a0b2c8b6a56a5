/*
 * spool_fixture.h - a spool in a directory of its own, with a clock that the test moves.
 *
 * Every call goes through DO(), as the mount makes it: tick, call, commit, and sync when the answer is a promise. Between
 * begin_batch() and commit_batch() calls share a batch instead. Names of helpers say what a program would do.
 *
 *     static void test_lease__late_acknowledgement_counts(void **state) {
 *         struct fixture *f = *state;
 *         put(f, f->queue, "order", "1 pound");
 *         assert_ok(claim(f, "order"));
 *         advance(f, 61 * SECONDS);
 *         assert_fails(erase(f, f->worker, "order"), ENOENT);
 *     }
 */
#ifndef SPOOL_FIXTURE_H
#define SPOOL_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "db.h"
#include "spool.h"

#define MILLISECONDS INT64_C(1000000)
#define SECONDS INT64_C(1000000000)
#define MINUTES (60 * SECONDS)
#define HOURS (60 * MINUTES)
#define DAYS (24 * HOURS)

#define MOST_OPEN 64

/* Counts what it sees. While armed, call number `countdown` (0: the next) of those that match fails, and those after it. */
struct fixture_tap {
    struct db_tap tap;
    unsigned seen[DB_OPEN + 1][DB_FILE_OTHER + 1];
    bool armed;
    enum db_event event;
    enum db_file file;
    int countdown, error;
};

struct fixture {
    char directory[64], path[96];
    int copies; /* how often it was opened anew from a copy */
    struct spool *spool;
    struct spool_options options;
    struct spool_time now;
    struct spool_caller caller;
    struct fixture_tap tap;
    bool batching;
    bool damaged;  /* by the test: do not check the database at the end */
    bool promised; /* the last call's answer was a promise */
    uint64_t ticket;
    int64_t queue, worker; /* `q`, and `q/claimed/w` */
    struct open_files {
        void *file[MOST_OPEN];
        uint64_t opened, closed; /* in the batch: one bit each */
    } writers, readers;
    char text[8][4096]; /* what content_of() and names_in() return, in turns */
    int next_text;
};

/* cmocka's: a spool with a queue and a worker's directory. */
int set_up_spool(void **state);
int tear_down_spool(void **state);
#define spool_test(function) cmocka_unit_test_setup_teardown(function, set_up_spool, tear_down_spool)

#define assert_ok(call) assert_int_equal((call), 0)
#define assert_fails(call, error) assert_int_equal((call), -(error))

/* --- one call --- */

#define DO(f, call) (fixture_begin(f), fixture_end((f), (call)))
void fixture_begin(struct fixture *f);
int64_t fixture_end(struct fixture *f, int64_t result);

void begin_batch(struct fixture *f);
int commit_batch(struct fixture *f); /* spool_commit()'s answer; synced when it is 0 */
void roll_back(struct fixture *f);

/* --- time --- */

void advance(struct fixture *f, int64_t ns);         /* both clocks; what falls due by then happens */
void step_wall_clock(struct fixture *f, int64_t ns); /* the wall clock alone */

/* --- starting over; q and w are found again --- */

void reopen(struct fixture *f);            /* closed and opened; nothing may be open */
void reopen_after_kill(struct fixture *f); /* opened from a copy of the files as they are now */
void copy_files(struct fixture *f,
                const char *name); /* the database and its payloads, as `name` in the fixture's directory */
int run_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- directories and names --- */

int64_t make_directory(struct fixture *f, int64_t parent, const char *name); /* its number, or a negative errno */
int64_t find(struct fixture *f, int64_t directory, const char *name);        /* the same, by lookup */
struct spool_entry entry_of(struct fixture *f, int64_t directory, const char *name);
struct spool_entry entry_of_number(struct fixture *f, int64_t number);
const char *names_in(struct fixture *f, int64_t directory);    /* in the order of the listing: "claimed dead a b" */
const char *messages_in(struct fixture *f, int64_t directory); /* the same without directories */
int rename_entry(struct fixture *f, int64_t from, const char *from_name, int64_t to, const char *to_name);
int erase(struct fixture *f, int64_t directory, const char *name); /* unlink */
int claim(struct fixture *f, const char *name);                    /* from q to q/claimed/w, under its name */
int claim_as(struct fixture *f, const char *name, const char *lease_name);
int release(struct fixture *f, const char *name); /* back to q, under the same name */

/* --- files --- */

enum { CREATE_EXCLUSIVE = 1, OPEN_TRUNCATE = 2, OPEN_APPEND = 4 };
int try_create(struct fixture *f, int64_t directory, const char *name, uint32_t mode, int flags,
               struct spool_writer **out);
int try_open(struct fixture *f, int64_t number, int flags, struct spool_writer **out);
struct spool_writer *create(struct fixture *f, int64_t directory, const char *name);
struct spool_writer *open_file(struct fixture *f, int64_t directory, const char *name, int flags);
int write_bytes(struct fixture *f, struct spool_writer *writer, const void *bytes, size_t length, int64_t offset);
int write_text(struct fixture *f, struct spool_writer *writer, const char *text, int64_t offset);
int resize_file(struct fixture *f, struct spool_writer *writer, int64_t length);
int flush(struct fixture *f, struct spool_writer *writer);      /* by the one who closes last in his process */
int close_file(struct fixture *f, struct spool_writer *writer); /* flush and release */
int release_file(struct fixture *f, struct spool_writer *writer, bool killed);
/* All of it: create, write, close. The number. */
int64_t put(struct fixture *f, int64_t directory, const char *name, const char *content);
int64_t put_bytes(struct fixture *f, int64_t directory, const char *name, const void *bytes, size_t length);
/* The same by `open(O_CREAT | O_TRUNC)` of whatever is there, as a shell's redirection does it. */
int overwrite(struct fixture *f, int64_t directory, const char *name, const char *content);

int try_read(struct fixture *f, int64_t number, struct spool_reader **out);
struct spool_reader *open_to_read(struct fixture *f, int64_t directory, const char *name);
const char *read_text(struct fixture *f, struct spool_reader *reader); /* "errno N" when it fails */
ssize_t read_bytes(struct fixture *f, struct spool_reader *reader, void *bytes, size_t length, int64_t offset);
void close_reader(struct fixture *f, struct spool_reader *reader);
const char *content_of(struct fixture *f, int64_t directory, const char *name);

/* --- settings, counters, the disk --- */

void set(struct fixture *f, int64_t queue, enum spool_setting setting, const char *text);
int64_t stat_of(struct fixture *f, int64_t queue, enum spool_stat stat);
void fail_from(struct fixture *f, enum db_event event, enum db_file file, int countdown, int error);
void fail_no_more(struct fixture *f);
int payload_files(struct fixture *f);                  /* how many there are */
int64_t rows_in(struct fixture *f, const char *table); /* as the database stands; not within a batch */
/* Run SQL on a copy of the database as it is now, then open that: for damage. */
void reopen_after_sql(struct fixture *f, const char *sql);

#endif
