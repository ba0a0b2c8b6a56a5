/*
 * test_pool.c - jobs of a key run in order and one at a time, others beside them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "pool.h"
#include "wake.h"

#define THREADS 4
#define PATIENCE_MS 20000

struct fixture {
    int wake;
    struct pool *pool;
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);

    fixture->wake = eventfd(0, EFD_NONBLOCK);
    assert_int_equal(pool_new(THREADS, fixture->wake, &fixture->pool), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;

    pool_free(fixture->pool);
    close(fixture->wake);
    free(fixture);
    return 0;
}

/* Collects until `count` jobs have come back; calls `each` for them in that order. */
static void collect(struct fixture *fixture, size_t count, void (*each)(struct job *job, size_t index)) {
    struct pollfd waiting = {.fd = fixture->wake, .events = POLLIN};
    size_t index = 0;

    while (index < count) {
        struct job *list = pool_collect(fixture->pool);

        if (!list) {
            assert_int_equal(poll(&waiting, 1, PATIENCE_MS), 1);
            wake_clear(fixture->wake);
        }
        for (; list; index++) {
            struct job *job = list;

            list = list->next;
            if (each)
                each(job, index);
        }
    }
    assert_int_equal(index, count);
}

struct numbered {
    struct job job;
    int number;
    atomic_int *running; /* how many of its key */
    int *last;           /* of its key; guarded by being alone */
    bool alone;
    bool in_order;
};

static void run_numbered(struct job *job) {
    struct numbered *numbered = (struct numbered *)job;

    numbered->alone = atomic_fetch_add(numbered->running, 1) == 0;
    numbered->in_order = *numbered->last == numbered->number - 1;
    *numbered->last = numbered->number;
    sched_yield();
    atomic_fetch_sub(numbered->running, 1);
}

static void assert_orderly(struct job *job, size_t index) {
    struct numbered *numbered = (struct numbered *)job;

    (void)index;
    assert_true(numbered->alone);
    assert_true(numbered->in_order);
    free(numbered);
}

static void test_pool__jobs_of_a_key_run_one_after_the_other_in_order(void **state) {
    enum { KEYS = 7, EACH = 300 };
    static atomic_int running[KEYS];
    static int last[KEYS];
    struct fixture *fixture = *state;

    for (int number = 1; number <= EACH; number++)
        for (int key = 0; key < KEYS; key++) {
            struct numbered *numbered = calloc(1, sizeof *numbered);

            *numbered = (struct numbered){.job = {.run = run_numbered, .key = key + 1},
                                          .number = number,
                                          .running = &running[key],
                                          .last = &last[key]};
            pool_submit(fixture->pool, &numbered->job);
        }
    collect(fixture, (size_t)KEYS * EACH, assert_orderly);
    assert_int_equal(pool_jobs(fixture->pool), 0);
}

/* Each waits for all the others: that ends only when they run at the same time. */
static pthread_barrier_t all_here;

static void run_meeting(struct job *job) {
    (void)job;
    pthread_barrier_wait(&all_here);
}

static void test_pool__jobs_without_a_key_run_side_by_side(void **state) {
    struct fixture *fixture = *state;
    struct job jobs[THREADS];

    pthread_barrier_init(&all_here, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){.run = run_meeting};
        pool_submit(fixture->pool, &jobs[i]);
    }
    collect(fixture, THREADS, NULL);
    pthread_barrier_destroy(&all_here);
}

static void test_pool__a_key_that_waits_does_not_hold_up_others(void **state) {
    struct fixture *fixture = *state;
    struct job jobs[THREADS];

    pthread_barrier_init(&all_here, NULL, 2);
    jobs[0] = (struct job){.run = run_meeting, .key = 1};
    jobs[1] = (struct job){.run = run_meeting, .key = 1};
    jobs[2] = (struct job){.run = run_meeting, .key = 2};
    jobs[3] = (struct job){.run = run_meeting, .key = 2};
    for (int i = 0; i < THREADS; i++)
        pool_submit(fixture->pool, &jobs[i]);
    collect(fixture, THREADS, NULL);
    pthread_barrier_destroy(&all_here);
}

static void test_pool__what_is_under_way_is_counted(void **state) {
    struct fixture *fixture = *state;
    struct job jobs[2] = {{.run = run_meeting, .bytes = 10}, {.run = run_meeting, .bytes = 32}};

    pthread_barrier_init(&all_here, NULL, 3);
    pool_submit(fixture->pool, &jobs[0]);
    pool_submit(fixture->pool, &jobs[1]);
    assert_int_equal(pool_jobs(fixture->pool), 2);
    assert_int_equal(pool_bytes(fixture->pool), 42);
    pthread_barrier_wait(&all_here);
    collect(fixture, 2, NULL);
    assert_int_equal(pool_bytes(fixture->pool), 0);
    pthread_barrier_destroy(&all_here);
}

static void run_once(struct job *job) {
    job->key++;
}

static void test_pool__everything_runs_before_the_end(void **state) {
    enum { JOBS = 500 };
    static struct job jobs[JOBS];
    struct fixture *fixture = *state;

    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.run = run_once, .key = 10};
        pool_submit(fixture->pool, &jobs[i]);
    }
    pool_free(fixture->pool);
    fixture->pool = NULL;
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(jobs[i].key, 11);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pool__jobs_of_a_key_run_one_after_the_other_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pool__jobs_without_a_key_run_side_by_side, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pool__a_key_that_waits_does_not_hold_up_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pool__what_is_under_way_is_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pool__everything_runs_before_the_end, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
