/* test_stats.c - the counters: what they are called, and that they are what is there, whatever happens. */
#include "spool_fixture.h"

#define QUEUES 2
#define NAMES 12

/* --- names and ages --- */

static void test_stats__each_has_a_name(void **state) {
    (void)state;
    static const char *const names[SPOOL_STATS] = {
        "waiting", "ready",     "delayed",      "blocked",  "claimed", "dead",   "staged",    "oldest_ready_seconds",
        "bytes",   "published", "acknowledged", "released", "failed",  "buried", "cancelled", "staged_removed"};
    for (enum spool_stat stat = 0; stat < SPOOL_STATS; stat++)
        assert_string_equal(spool_stat_name(stat), names[stat]);
}

static void test_stats__of_what_is_no_queue(void **state) {
    struct fixture *f = *state;
    int64_t values[SPOOL_STATS];
    assert_fails(DO(f, spool_stats(f->spool, 4711, values)), ENOENT);
}

static void test_stats__the_oldest_is_the_first_that_is_ready(void **state) {
    struct fixture *f = *state;
    int64_t other = make_directory(f, SPOOL_ROOT, "other");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_OLDEST_READY_SECONDS), 0);
    put(f, f->queue, "a", "1");
    advance(f, 100 * SECONDS);
    put(f, other, "b", "2");
    advance(f, 10 * SECONDS);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_OLDEST_READY_SECONDS), 110);
    assert_int_equal(stat_of(f, other, SPOOL_STAT_OLDEST_READY_SECONDS), 10);
    assert_int_equal(stat_of(f, SPOOL_ROOT, SPOOL_STAT_OLDEST_READY_SECONDS), 110);
    assert_ok(claim(f, "a"));
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_OLDEST_READY_SECONDS), 0);
    assert_int_equal(stat_of(f, SPOOL_ROOT, SPOOL_STAT_OLDEST_READY_SECONDS), 10);
    step_wall_clock(f, -HOURS);
    assert_int_equal(stat_of(f, other, SPOOL_STAT_OLDEST_READY_SECONDS), 0);
}

static void test_stats__the_root_remembers_queues_that_are_gone(void **state) {
    struct fixture *f = *state;
    int64_t other = make_directory(f, SPOOL_ROOT, "other");
    put(f, other, "a", "1");
    assert_ok(erase(f, other, "a"));
    assert_ok(DO(f, spool_rmdir(f->spool, SPOOL_ROOT, "other")));
    assert_int_equal(stat_of(f, SPOOL_ROOT, SPOOL_STAT_PUBLISHED), 1);
    assert_int_equal(stat_of(f, SPOOL_ROOT, SPOOL_STAT_CANCELLED), 1);
    assert_int_equal(stat_of(f, SPOOL_ROOT, SPOOL_STAT_READY), 0);
}

/* --- a random walk --- */

struct world {
    struct fixture *f;
    int64_t queues[QUEUES], workers[QUEUES], dead[QUEUES];
};

/* The numbers of messages by state, and their bytes, in everything that can be seen of a queue. */
struct contents {
    int64_t of_state[SPOOL_DEAD_STATE + 1], bytes;
};

static bool add(void *context, const char *name, const struct spool_entry *entry, int64_t cursor) {
    struct contents *contents = context;
    (void)name;
    (void)cursor;
    if (entry->kind == SPOOL_MESSAGE) {
        contents->of_state[entry->state]++;
        contents->bytes += entry->size_bytes;
    }
    return true;
}

static void look(const struct world *w, int queue, struct contents *contents) {
    struct fixture *f = w->f;
    const int64_t all[] = {w->queues[queue], w->workers[queue], w->dead[queue], find(f, w->queues[queue], "claimed"),
                           find(f, w->queues[queue], ".folder")};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_ok(DO(f, spool_list(f->spool, all[i], 0, add, contents)));
}

static bool nothing_is_open(const struct fixture *f) {
    for (int i = 0; i < MOST_OPEN; i++) {
        if (f->writers.file[i])
            return false;
    }
    return true;
}

static void assert_counters(const struct world *w) {
    int64_t total[SPOOL_STATS] = {0}, root[SPOOL_STATS], values[SPOOL_STATS];
    struct fixture *f = w->f;
    for (int i = 0; i < QUEUES; i++) {
        struct contents is = {0};
        look(w, i, &is);
        assert_ok(DO(f, spool_stats(f->spool, w->queues[i], values)));
        /* Blocked is what is being edited. */
        assert_int_equal(values[SPOOL_STAT_READY] + values[SPOOL_STAT_BLOCKED], is.of_state[SPOOL_WAITING]);
        assert_int_equal(values[SPOOL_STAT_DELAYED], is.of_state[SPOOL_DELAYED]);
        assert_int_equal(values[SPOOL_STAT_WAITING], is.of_state[SPOOL_WAITING] + is.of_state[SPOOL_DELAYED]);
        assert_int_equal(values[SPOOL_STAT_CLAIMED], is.of_state[SPOOL_CLAIMED_STATE]);
        assert_int_equal(values[SPOOL_STAT_DEAD], is.of_state[SPOOL_DEAD_STATE]);
        assert_int_equal(values[SPOOL_STAT_STAGED],
                         is.of_state[SPOOL_STAGED] + is.of_state[SPOOL_OPEN] + is.of_state[SPOOL_HELD]);
        if (nothing_is_open(f)) /* else stat shows what is not stored yet */
            assert_int_equal(values[SPOOL_STAT_BYTES], is.bytes);
        for (int j = 0; j < SPOOL_STATS; j++)
            total[j] += values[j];
    }
    assert_ok(DO(f, spool_stats(f->spool, SPOOL_ROOT, root)));
    for (int j = 0; j < SPOOL_STATS; j++) {
        if (j != SPOOL_STAT_OLDEST_READY_SECONDS)
            assert_int_equal(root[j], total[j]);
    }
    /* Whatever was published has left in one of these ways, or is there. */
    assert_int_equal(total[SPOOL_STAT_PUBLISHED], total[SPOOL_STAT_ACKNOWLEDGED] + total[SPOOL_STAT_CANCELLED] +
                                                      total[SPOOL_STAT_WAITING] + total[SPOOL_STAT_CLAIMED] +
                                                      total[SPOOL_STAT_DEAD]);
}

static void find_world(struct world *w) {
    struct fixture *f = w->f;
    for (int i = 0; i < QUEUES; i++) {
        w->queues[i] = find(f, SPOOL_ROOT, i ? "other" : "q");
        w->workers[i] = find(f, find(f, w->queues[i], "claimed"), "w");
        w->dead[i] = find(f, w->queues[i], "dead");
    }
}

static int64_t random_place(const struct world *w) {
    int i = rand() % QUEUES;
    switch (rand() % 8) {
    case 0:
        return w->workers[i];
    case 1:
        return w->dead[i];
    case 2:
        return find(w->f, w->queues[i], ".folder");
    case 3:
        return find(w->f, w->queues[i], "claimed");
    default:
        return w->queues[i];
    }
}

static void random_name(char name[16]) {
    static const char *const prefixes[] = {"", "", "."}, *const suffixes[] = {"", "", ".tmp", "~1"};
    snprintf(name, 16, "%sm%d%s", prefixes[rand() % 3], rand() % NAMES, suffixes[rand() % 4]);
}

/* Within a batch new small files only: the bytes of a payload file may be moved only once their admission is committed. */
static void write_something(const struct world *w, int64_t place, const char *name) {
    static char bytes[140 * 1024];
    static const int sizes[] = {0, 1, 10, 1000, sizeof bytes};
    struct fixture *f = w->f;
    struct spool_writer *writer;
    int choices = f->batching ? 4 : 5;
    int64_t number = find(f, place, name);
    if (f->batching && number > 0)
        return;
    int flags = (int[]){0, OPEN_TRUNCATE, OPEN_APPEND}[rand() % 3];
    int rc = number < 0 ? try_create(f, place, name, 0600, rand() % 2, &writer) : try_open(f, number, flags, &writer);
    if (rc)
        return;
    for (int i = rand() % 3; i > 0; i--) {
        if (rand() % 4 == 0)
            (void)resize_file(f, writer, sizes[rand() % choices]);
        else
            (void)write_bytes(f, writer, bytes, (size_t)sizes[rand() % choices], rand() % 3 ? 0 : 5);
        if (rand() % 3 == 0)
            (void)flush(f, writer);
    }
    if (rand() % 10 == 0)
        (void)erase(f, place, name);
    if (rand() % 10 == 0)
        (void)rename_entry(f, place, name, random_place(w), name);
    if (rand() % 20 == 0)
        return; /* and leave it open */
    if (rand() % 4)
        (void)flush(f, writer);
    (void)release_file(f, writer, rand() % 8 == 0);
}

static void close_one(struct fixture *f) {
    for (int i = 0; i < MOST_OPEN; i++) {
        if (f->writers.file[i] && !(f->writers.closed >> i & 1)) {
            (void)close_file(f, f->writers.file[i]);
            return;
        }
    }
}

static void touch_something(const struct world *w, int64_t number) {
    struct fixture *f = w->f;
    int64_t at_ns = f->now.wall_ns + (rand() % 3 ? rand() % 100 * SECONDS : -HOURS);
    (void)DO(f, spool_touch(f->spool, number, rand() % 3, rand() % 4 ? at_ns : 0, rand() % 3, at_ns));
}

static void step(struct world *w) {
    struct fixture *f = w->f;
    char name[16], to_name[16];
    int64_t place = random_place(w), to = random_place(w);
    random_name(name);
    random_name(to_name);
    switch (rand() % 16) {
    case 0:
    case 1:
    case 2:
    case 3:
        write_something(w, place, name);
        break;
    case 4:
        (void)erase(f, place, name);
        break;
    case 5:
        touch_something(w, find(f, place, name));
        break;
    case 6:
        advance(f, rand() % 90 * SECONDS);
        break;
    case 7:
        close_one(f);
        break;
    case 8:
        set(f, w->queues[rand() % QUEUES], SPOOL_ON_CONFLICT,
            (const char *const[]){"keep", "replace", "reject"}[rand() % 3]);
        break;
    case 9: {
        struct spool_entry entry;
        (void)DO(f, spool_link(f->spool, find(f, place, name), to, to_name, f->caller, &entry));
        break;
    }
    case 10: {
        int64_t number = find(f, place, name);
        struct spool_reader *reader;
        if (number > 0 && try_read(f, number, &reader) == 0)
            close_reader(f, reader);
        break;
    }
    default:
        (void)rename_entry(f, place, name, to, to_name);
    }
}

/* Some steps in one batch, which the disk may be too full for. */
static void step_in_batch(struct world *w) {
    struct fixture *f = w->f;
    begin_batch(f);
    for (int i = rand() % 6; i >= 0; i--)
        step(w);
    bool full = rand() % 2;
    if (full)
        fail_from(f, DB_WRITE, DB_FILE_LOG, 0, -ENOSPC);
    int rc = commit_batch(f);
    assert_true(rc == 0 || (full && rc == -ENOSPC));
    fail_no_more(f);
}

static void walk(struct fixture *f, unsigned seed) {
    struct world w = {.f = f};
    srand(seed);
    f->queue = make_directory(f, SPOOL_ROOT, "other");
    make_directory(f, find(f, f->queue, "claimed"), "w");
    find_world(&w);
    for (int i = 0; i < QUEUES; i++) {
        make_directory(f, w.queues[i], ".folder");
        set(f, w.queues[i], SPOOL_MAX_ATTEMPTS, "3");
        set(f, w.queues[i], SPOOL_PARTIAL_TTL, "10m");
    }
    for (int i = 0; i < 400; i++) {
        if (i % 5 == 0)
            step_in_batch(&w);
        else
            step(&w);
        if (i % 20 == 0)
            assert_counters(&w);
        if (i % 150 == 149) {
            reopen_after_kill(f);
            find_world(&w);
            assert_counters(&w);
        }
    }
}

static void test_stats__are_what_is_there_after_a_random_walk(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= 6; seed++) {
        void *fixture;
        set_up_spool(&fixture);
        print_message("seed %u\n", seed);
        walk(fixture, seed);
        assert_ok(tear_down_spool(&fixture));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stats__each_has_a_name),
        spool_test(test_stats__of_what_is_no_queue),
        spool_test(test_stats__the_oldest_is_the_first_that_is_ready),
        spool_test(test_stats__the_root_remembers_queues_that_are_gone),
        cmocka_unit_test(test_stats__are_what_is_there_after_a_random_walk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
