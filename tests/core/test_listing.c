/* test_listing.c - listings: their order, their pages, and that they survive whatever happens meanwhile. */
#include "spool_fixture.h"

#define MOST 2000
#define PAGE 256 /* of spool_list() */

/* A listing that is under way: what it has met, in order. */
struct walk {
    int64_t directory, cursor;
    int64_t met[MOST];
    int count, page, most; /* most: of this page; 0: all of it */
    bool over;
};

static bool meet(void *context, const char *name, const struct spool_entry *entry, int64_t cursor) {
    struct walk *walk = context;
    (void)name;
    assert_true(walk->count < MOST);
    walk->met[walk->count++] = entry->number;
    walk->cursor = cursor;
    return ++walk->page != walk->most;
}

static int next_page(struct fixture *f, struct walk *walk, int most) {
    walk->page = 0;
    walk->most = most;
    assert_ok(DO(f, spool_list(f->spool, walk->directory, walk->cursor, meet, walk)));
    walk->over = walk->page == 0;
    return walk->page;
}

static int times_met(const struct walk *walk, int64_t number) {
    int times = 0;
    for (int i = 0; i < walk->count; i++)
        times += walk->met[i] == number;
    return times;
}

/* --- order --- */

static void test_order__is_that_of_publication_with_directories_first(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "c", "1");
    put(f, f->queue, "a", "2");
    make_directory(f, f->queue, ".folder");
    put(f, f->queue, ".b", "3");
    put(f, f->queue, "d", "4");
    assert_ok(rename_entry(f, f->queue, ".b", f->queue, "b"));
    assert_string_equal(names_in(f, f->queue), "claimed dead .folder c a d b");
    make_directory(f, SPOOL_ROOT, "z");
    make_directory(f, SPOOL_ROOT, "a");
    assert_string_equal(names_in(f, SPOOL_ROOT), "q z a");
}

static void test_order__of_leases_and_the_dead_is_by_place(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "a", "1");
    put(f, f->queue, "b", "2");
    assert_ok(claim(f, "b"));
    assert_ok(claim(f, "a"));
    assert_string_equal(names_in(f, f->worker), "a b");
    assert_ok(rename_entry(f, f->worker, "b", find(f, f->queue, "dead"), "b"));
    assert_ok(rename_entry(f, f->worker, "a", find(f, f->queue, "dead"), "a"));
    assert_string_equal(names_in(f, find(f, f->queue, "dead")), "a b");
}

static void test_list__of_nothing_and_of_what_is_no_directory(void **state) {
    struct fixture *f = *state;
    struct walk walk = {.directory = f->worker};
    assert_int_equal(next_page(f, &walk, 0), 0);
    assert_fails(DO(f, spool_list(f->spool, 4711, 0, meet, &walk)), ENOENT);
    assert_fails(DO(f, spool_list(f->spool, put(f, f->queue, "a", "1"), 0, meet, &walk)), ENOENT);
}

/* --- pages --- */

static void put_many(struct fixture *f, int count, int64_t *numbers) {
    char name[16];
    for (int i = 0; i < count; i++) {
        if (i % MOST_OPEN == 0)
            begin_batch(f);
        snprintf(name, sizeof name, ".%d", i); /* staged files list like messages, and are quick to make */
        numbers[i] = put(f, f->queue, name, "");
        if (i % MOST_OPEN == MOST_OPEN - 1 || i == count - 1)
            assert_ok(commit_batch(f));
    }
}

static void test_pages__end_where_each_says_so_and_go_on_behind_it(void **state) {
    struct fixture *f = *state;
    int64_t numbers[20];
    for (int i = 0; i < 10; i++) {
        char name[8];
        snprintf(name, sizeof name, ".d%c", 'a' + i);
        numbers[i] = make_directory(f, f->queue, name);
    }
    for (int i = 10; i < 20; i++) {
        char name[8];
        snprintf(name, sizeof name, ".f%c", 'a' + i);
        numbers[i] = put(f, f->queue, name, "");
    }
    for (int size = 1; size <= 23; size++) {
        struct walk walk = {.directory = f->queue};
        while (!walk.over)
            assert_true(next_page(f, &walk, size) <= size);
        assert_int_equal(walk.count, 22);
        for (int i = 0; i < 20; i++)
            assert_int_equal(walk.met[i + 2], numbers[i]); /* behind claimed and dead */
    }
}

static void test_pages__are_of_256(void **state) {
    struct fixture *f = *state;
    static int64_t numbers[MOST];
    struct walk walk = {.directory = f->queue};
    put_many(f, 600, numbers);
    assert_int_equal(next_page(f, &walk, 0), PAGE);
    assert_int_equal(next_page(f, &walk, 0), PAGE);
    assert_int_equal(next_page(f, &walk, 0), 602 - 2 * PAGE);
    assert_int_equal(next_page(f, &walk, 0), 0);
    assert_memory_equal(walk.met + 2, numbers, 600 * sizeof *numbers);
}

static void test_pages__of_directories_alone_can_be_full_too(void **state) {
    struct fixture *f = *state;
    char name[24];
    begin_batch(f);
    for (int i = 0; i < PAGE + 10; i++) {
        snprintf(name, sizeof name, "worker%d", i);
        assert_true(make_directory(f, find(f, f->queue, "claimed"), name) > 0);
    }
    assert_ok(commit_batch(f));
    put(f, f->queue, "order", "tea");
    assert_ok(rename_entry(f, f->queue, "order", find(f, f->queue, "claimed"), "order"));
    struct walk walk = {.directory = find(f, f->queue, "claimed")};
    while (!walk.over)
        next_page(f, &walk, 0);
    assert_int_equal(walk.count, 1 + PAGE + 10 + 1);
    assert_int_equal(walk.met[walk.count - 1], find(f, find(f, f->queue, "claimed"), "order"));
}

/* --- changes meanwhile --- */

static void test_changes__removing_all_that_was_met_loses_nothing(void **state) {
    struct fixture *f = *state; /* as rm -r does it */
    static int64_t numbers[MOST];
    struct walk walk = {.directory = f->queue};
    char name[16];
    put_many(f, 600, numbers);
    int removed = 0;
    while (next_page(f, &walk, 100) > 0) {
        begin_batch(f);
        for (; removed < walk.count - 2; removed++) {
            snprintf(name, sizeof name, ".%d", removed);
            assert_ok(erase(f, f->queue, name));
        }
        assert_ok(commit_batch(f));
    }
    assert_int_equal(removed, 600);
    assert_string_equal(messages_in(f, f->queue), "");
}

static void test_changes__what_is_published_meanwhile_is_met_at_the_end(void **state) {
    struct fixture *f = *state;
    struct walk walk = {.directory = f->queue};
    put(f, f->queue, "a", "1");
    put(f, f->queue, "b", "2");
    assert_int_equal(next_page(f, &walk, 3), 3);
    int64_t late = put(f, f->queue, "c", "3");
    assert_ok(claim(f, "b"));
    assert_int_equal(next_page(f, &walk, 0), 1);
    assert_int_equal(walk.met[3], late);
    assert_ok(release(f, "b")); /* behind the cursor: not met, or it would be met twice by others */
    assert_int_equal(next_page(f, &walk, 0), 0);
}

/* A slow listing, while others publish, claim, release, remove and rename: each entry that nobody touched is met exactly
 * once, in order, and no entry twice. */
static void walk_among_changes(struct fixture *f, unsigned seed) {
    static int64_t numbers[200];
    static bool touched[200];
    struct walk walk = {.directory = f->queue};
    char name[16], other[16];
    srand(seed);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "s%u.%d", seed, i);
        numbers[i] = put(f, f->queue, name, "1");
        touched[i] = false;
    }
    for (int step = 0; !walk.over; step++) {
        next_page(f, &walk, 1 + rand() % 20);
        for (int change = rand() % 6; change > 0; change--) {
            int i = rand() % 200;
            snprintf(name, sizeof name, "s%u.%d", seed, i);
            snprintf(other, sizeof other, "r%u.%d", seed, step * 10 + change);
            switch (rand() % 4) {
            case 0:
                if (step < 100) /* else the listing follows them for ever */
                    put(f, f->queue, other, "2");
                break;
            case 1:
                touched[i] |= erase(f, f->queue, name) == 0;
                break;
            case 2:
                touched[i] |= claim(f, name) == 0;
                break;
            default:
                touched[i] |= release(f, name) == 0;
            }
        }
    }
    int64_t last = 0;
    for (int i = 0; i < 200; i++) {
        int times = times_met(&walk, numbers[i]);
        if (touched[i] ? times > 1 : times != 1)
            fail_msg("seed %u: entry %d was met %d times", seed, i, times);
    }
    for (int i = 0; i < walk.count; i++) {
        for (int j = 0; j < 200; j++) {
            if (walk.met[i] == numbers[j] && !touched[j]) {
                assert_true(j >= last);
                last = j;
            }
        }
    }
}

static void test_changes__of_every_kind_leave_the_rest_of_the_listing_right(void **state) {
    struct fixture *f = *state;
    for (unsigned seed = 1; seed <= 5; seed++) {
        char name[16];
        snprintf(name, sizeof name, "queue%u", seed);
        f->queue = make_directory(f, SPOOL_ROOT, name);
        f->worker = make_directory(f, find(f, f->queue, "claimed"), "w");
        walk_among_changes(f, seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        spool_test(test_order__is_that_of_publication_with_directories_first),
        spool_test(test_order__of_leases_and_the_dead_is_by_place),
        spool_test(test_list__of_nothing_and_of_what_is_no_directory),
        spool_test(test_pages__end_where_each_says_so_and_go_on_behind_it),
        spool_test(test_pages__are_of_256),
        spool_test(test_pages__of_directories_alone_can_be_full_too),
        spool_test(test_changes__removing_all_that_was_met_loses_nothing),
        spool_test(test_changes__what_is_published_meanwhile_is_met_at_the_end),
        spool_test(test_changes__of_every_kind_leave_the_rest_of_the_listing_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
