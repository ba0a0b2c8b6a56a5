/* test_move.c - every rename there is: the table at the head of move.c, cell by cell, and what it does not show. */
#include "spool_fixture.h"

#define STATES 9 /* SPOOL_STAGED to SPOOL_DEAD_STATE */

enum destination {
    STAGED_NAME,
    FOLDER,
    HOME,
    OTHER,
    OTHER_STAGED,
    LEASE,
    OTHER_LEASE,
    GRAVE,
    OTHER_GRAVE,
    ROOT,
    DESTINATIONS
};

static const char *const destination_names[] = {"a staged name",           "a folder",
                                                "a name in its queue",     "another queue",
                                                "staged elsewhere",        "a worker's directory",
                                                "another queue's claimed", "dead",
                                                "another queue's dead",    "the root"};

struct places {
    int64_t other, folder;
    int64_t directory[DESTINATIONS];
};

static const char *name_at(enum destination destination) {
    return destination == STAGED_NAME || destination == OTHER_STAGED ? ".n" : "n";
}

static void make_places(struct fixture *f, struct places *p) {
    p->other = make_directory(f, SPOOL_ROOT, "other");
    p->folder = make_directory(f, f->queue, ".folder");
    const int64_t all[DESTINATIONS] = {
        [STAGED_NAME] = f->queue,
        [FOLDER] = p->folder,
        [HOME] = f->queue,
        [OTHER] = p->other,
        [OTHER_STAGED] = p->other,
        [LEASE] = f->worker,
        [OTHER_LEASE] = find(f, p->other, "claimed"),
        [GRAVE] = find(f, f->queue, "dead"),
        [OTHER_GRAVE] = find(f, p->other, "dead"),
        [ROOT] = SPOOL_ROOT,
    };
    memcpy(p->directory, all, sizeof all);
}

struct subject {
    int64_t number, directory;
    const char *name;
    struct spool_writer *writer;
};

/* A message in that state, called m. Attempts of a claimed and a dead one: 1. */
static void make_subject(struct fixture *f, enum spool_state state, struct subject *s) {
    *s = (struct subject){.directory = f->queue, .name = state == SPOOL_STAGED ? ".m" : "m"};
    if (state == SPOOL_OPEN) {
        s->writer = create(f, f->queue, s->name);
        assert_ok(write_text(f, s->writer, "tea", 0));
    } else {
        put(f, f->queue, s->name, state == SPOOL_HELD ? "" : "tea");
    }
    s->number = find(f, f->queue, s->name);
    if (state == SPOOL_DELAYED)
        assert_ok(DO(f, spool_touch(f->spool, s->number, SPOOL_OMIT, 0, SPOOL_AT, f->now.wall_ns + DAYS)));
    if (state == SPOOL_CLAIMED_STATE || state == SPOOL_DEAD_STATE) {
        assert_ok(claim(f, "m"));
        s->directory = f->worker;
    }
    if (state == SPOOL_DEAD_STATE) {
        s->directory = find(f, f->queue, "dead");
        assert_ok(rename_entry(f, f->worker, "m", s->directory, "m"));
    }
    assert_int_equal(entry_of_number(f, s->number).state, state);
}

enum place { SAME, NEW };

struct cell {
    enum spool_state from;
    enum destination to;
    int error; /* 0: it works, and the rest holds */
    enum spool_state then;
    enum place place; /* before or behind what stands there already, and is younger */
    bool promised;
    enum spool_stat counted; /* SPOOL_STATS: nothing counts but what is there */
};

#define NOTHING SPOOL_STATS
#define REFUSED(from, to, error) \
    { from, to, error, from, SAME, false, NOTHING }

static const struct cell cells[] = {
    {SPOOL_STAGED, STAGED_NAME, 0, SPOOL_STAGED, SAME, false, NOTHING},
    {SPOOL_STAGED, FOLDER, 0, SPOOL_STAGED, SAME, false, NOTHING},
    {SPOOL_STAGED, HOME, 0, SPOOL_WAITING, NEW, true, SPOOL_STAT_PUBLISHED},
    {SPOOL_STAGED, OTHER, 0, SPOOL_WAITING, NEW, true, NOTHING},
    {SPOOL_STAGED, OTHER_STAGED, 0, SPOOL_STAGED, SAME, false, NOTHING},
    REFUSED(SPOOL_STAGED, LEASE, EPERM),
    REFUSED(SPOOL_STAGED, OTHER_LEASE, EPERM),
    REFUSED(SPOOL_STAGED, GRAVE, EPERM),
    REFUSED(SPOOL_STAGED, OTHER_GRAVE, EINVAL),
    REFUSED(SPOOL_STAGED, ROOT, EPERM),

    {SPOOL_OPEN, STAGED_NAME, 0, SPOOL_OPEN, SAME, false, NOTHING},
    {SPOOL_OPEN, FOLDER, 0, SPOOL_OPEN, SAME, false, NOTHING},
    {SPOOL_OPEN, HOME, 0, SPOOL_OPEN, SAME, false, NOTHING},
    {SPOOL_OPEN, OTHER, 0, SPOOL_OPEN, SAME, false, NOTHING},
    {SPOOL_OPEN, OTHER_STAGED, 0, SPOOL_OPEN, SAME, false, NOTHING},
    REFUSED(SPOOL_OPEN, LEASE, ETXTBSY),
    REFUSED(SPOOL_OPEN, OTHER_LEASE, ETXTBSY),
    REFUSED(SPOOL_OPEN, GRAVE, ETXTBSY),
    REFUSED(SPOOL_OPEN, OTHER_GRAVE, EINVAL),
    REFUSED(SPOOL_OPEN, ROOT, EPERM),

    {SPOOL_HELD, STAGED_NAME, 0, SPOOL_STAGED, SAME, true, NOTHING},
    {SPOOL_HELD, FOLDER, 0, SPOOL_STAGED, SAME, true, NOTHING},
    {SPOOL_HELD, HOME, 0, SPOOL_WAITING, SAME, true, SPOOL_STAT_PUBLISHED},
    {SPOOL_HELD, OTHER, 0, SPOOL_WAITING, NEW, true, NOTHING},
    {SPOOL_HELD, OTHER_STAGED, 0, SPOOL_STAGED, SAME, true, NOTHING},
    REFUSED(SPOOL_HELD, LEASE, ETXTBSY),
    REFUSED(SPOOL_HELD, OTHER_LEASE, ETXTBSY),
    REFUSED(SPOOL_HELD, GRAVE, ETXTBSY),
    REFUSED(SPOOL_HELD, OTHER_GRAVE, EINVAL),
    REFUSED(SPOOL_HELD, ROOT, EPERM),

    {SPOOL_WAITING, STAGED_NAME, 0, SPOOL_STAGED, SAME, true, SPOOL_STAT_CANCELLED},
    {SPOOL_WAITING, FOLDER, 0, SPOOL_STAGED, SAME, true, SPOOL_STAT_CANCELLED},
    {SPOOL_WAITING, HOME, 0, SPOOL_WAITING, SAME, true, NOTHING},
    {SPOOL_WAITING, OTHER, 0, SPOOL_WAITING, NEW, true, SPOOL_STAT_CANCELLED},
    {SPOOL_WAITING, OTHER_STAGED, 0, SPOOL_STAGED, SAME, true, SPOOL_STAT_CANCELLED},
    {SPOOL_WAITING, LEASE, 0, SPOOL_CLAIMED_STATE, SAME, false, NOTHING},
    REFUSED(SPOOL_WAITING, OTHER_LEASE, EINVAL),
    {SPOOL_WAITING, GRAVE, 0, SPOOL_DEAD_STATE, SAME, true, SPOOL_STAT_BURIED},
    REFUSED(SPOOL_WAITING, OTHER_GRAVE, EINVAL),
    REFUSED(SPOOL_WAITING, ROOT, EPERM),

    {SPOOL_DELAYED, STAGED_NAME, 0, SPOOL_STAGED, SAME, true, SPOOL_STAT_CANCELLED},
    {SPOOL_DELAYED, FOLDER, 0, SPOOL_STAGED, SAME, true, SPOOL_STAT_CANCELLED},
    {SPOOL_DELAYED, HOME, 0, SPOOL_DELAYED, SAME, true, NOTHING},
    {SPOOL_DELAYED, OTHER, 0, SPOOL_WAITING, NEW, true, SPOOL_STAT_CANCELLED},
    {SPOOL_DELAYED, OTHER_STAGED, 0, SPOOL_STAGED, SAME, true, SPOOL_STAT_CANCELLED},
    REFUSED(SPOOL_DELAYED, LEASE, EAGAIN),
    REFUSED(SPOOL_DELAYED, OTHER_LEASE, EAGAIN),
    {SPOOL_DELAYED, GRAVE, 0, SPOOL_DEAD_STATE, SAME, true, SPOOL_STAT_BURIED},
    REFUSED(SPOOL_DELAYED, OTHER_GRAVE, EINVAL),
    REFUSED(SPOOL_DELAYED, ROOT, EPERM),

    REFUSED(SPOOL_CLAIMED_STATE, STAGED_NAME, EPERM),
    REFUSED(SPOOL_CLAIMED_STATE, FOLDER, EPERM),
    {SPOOL_CLAIMED_STATE, HOME, 0, SPOOL_WAITING, SAME, false, SPOOL_STAT_RELEASED},
    {SPOOL_CLAIMED_STATE, OTHER, 0, SPOOL_WAITING, NEW, true, SPOOL_STAT_ACKNOWLEDGED},
    REFUSED(SPOOL_CLAIMED_STATE, OTHER_STAGED, EPERM),
    {SPOOL_CLAIMED_STATE, LEASE, 0, SPOOL_CLAIMED_STATE, SAME, false, NOTHING},
    REFUSED(SPOOL_CLAIMED_STATE, OTHER_LEASE, EINVAL),
    {SPOOL_CLAIMED_STATE, GRAVE, 0, SPOOL_DEAD_STATE, SAME, true, SPOOL_STAT_BURIED},
    REFUSED(SPOOL_CLAIMED_STATE, OTHER_GRAVE, EINVAL),
    REFUSED(SPOOL_CLAIMED_STATE, ROOT, EPERM),

    REFUSED(SPOOL_DEAD_STATE, STAGED_NAME, EPERM),
    REFUSED(SPOOL_DEAD_STATE, FOLDER, EPERM),
    {SPOOL_DEAD_STATE, HOME, 0, SPOOL_WAITING, SAME, true, NOTHING},
    {SPOOL_DEAD_STATE, OTHER, 0, SPOOL_WAITING, NEW, true, SPOOL_STAT_CANCELLED},
    REFUSED(SPOOL_DEAD_STATE, OTHER_STAGED, EPERM),
    REFUSED(SPOOL_DEAD_STATE, LEASE, EPERM),
    REFUSED(SPOOL_DEAD_STATE, OTHER_LEASE, EPERM),
    {SPOOL_DEAD_STATE, GRAVE, 0, SPOOL_DEAD_STATE, SAME, true, NOTHING},
    REFUSED(SPOOL_DEAD_STATE, OTHER_GRAVE, EINVAL),
    REFUSED(SPOOL_DEAD_STATE, ROOT, EPERM),
};

/* The counters since creation, but for the one that is expected to change, must not. */
static void assert_counted(const int64_t before[SPOOL_STATS], const int64_t after[SPOOL_STATS],
                           enum spool_stat counted) {
    for (enum spool_stat stat = SPOOL_STAT_PUBLISHED; stat < SPOOL_STATS; stat++) {
        if (after[stat] != before[stat] + (stat == counted))
            fail_msg("%s was %lld and is %lld", spool_stat_name(stat), (long long)before[stat], (long long)after[stat]);
    }
}

static void assert_moved(struct fixture *f, const struct places *p, const struct cell *cell, const struct subject *s) {
    struct spool_entry entry = entry_of_number(f, s->number);
    int64_t to = p->directory[cell->to];
    assert_int_equal(entry.parent, to);
    assert_int_equal(entry.state, cell->then);
    assert_int_equal(find(f, to, name_at(cell->to)), s->number);
    assert_fails(find(f, s->directory, s->name), ENOENT);
    assert_int_equal(f->promised, false); /* a look is no promise */
    const char *others = to == f->queue ? "last" : to == p->other ? "earlier" : NULL;
    if (others) {
        char expected[32];
        bool first = cell->place == SAME;
        snprintf(expected, sizeof expected, "%s %s", first ? name_at(cell->to) : others,
                 first ? others : name_at(cell->to));
        assert_string_equal(messages_in(f, to), expected);
    }
}

static void try_cell(struct fixture *f, const struct places *p, const struct cell *cell) {
    struct subject s;
    int64_t before[SPOOL_STATS], after[SPOOL_STATS];
    make_subject(f, cell->from, &s);
    put(f, f->queue, "last", "1");
    put(f, p->other, "earlier", "1");
    assert_ok(DO(f, spool_stats(f->spool, f->queue, before)));
    int rc = rename_entry(f, s.directory, s.name, p->directory[cell->to], name_at(cell->to));
    bool promised = f->promised;
    if (rc != -cell->error)
        fail_msg("state %d to %s: %d", cell->from, destination_names[cell->to], rc);
    if (rc == 0 && promised != cell->promised)
        fail_msg("state %d to %s: %s promise", cell->from, destination_names[cell->to], promised ? "a" : "no");
    assert_ok(DO(f, spool_stats(f->spool, f->queue, after)));
    if (rc == 0) {
        assert_counted(before, after, cell->counted);
        assert_moved(f, p, cell, &s);
    } else {
        assert_memory_equal(before, after, sizeof before);
        assert_int_equal(entry_of_number(f, s.number).state, cell->from);
        assert_int_equal(find(f, s.directory, s.name), s.number);
    }
}

static void test_move__every_cell_of_the_table(void **state) {
    (void)state;
    bool tried[STATES][DESTINATIONS] = {{false}};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        void *fixture;
        struct places p;
        set_up_spool(&fixture);
        make_places(fixture, &p);
        try_cell(fixture, &p, &cells[i]);
        tried[cells[i].from][cells[i].to] = true;
        assert_ok(tear_down_spool(&fixture));
    }
    for (int from = SPOOL_STAGED; from <= SPOOL_DEAD_STATE; from++) {
        for (int to = 0; to < DESTINATIONS; to++)
            assert_true(tried[from][to] || from == SPOOL_DRAFT);
    }
}

/* --- what the table does not show --- */

static void test_move__no_replace_is_honoured_everywhere(void **state) {
    struct fixture *f = *state;
    int64_t dead = find(f, f->queue, "dead"), other = make_directory(f, SPOOL_ROOT, "other");
    const char *const names[] = {"lease", "grave", "taken"};
    for (int i = 0; i < 3; i++)
        put(f, f->queue, names[i], "1");
    assert_ok(claim_as(f, "lease", "taken"));
    assert_ok(rename_entry(f, f->queue, "grave", dead, "taken"));
    put(f, other, "taken", "1");
    put(f, f->queue, ".taken", "1");
    put(f, f->queue, "m", "tea");
    const struct {
        int64_t directory;
        const char *name;
    } taken[] = {{f->queue, "taken"}, {f->queue, ".taken"}, {f->worker, "taken"}, {dead, "taken"}, {other, "taken"}};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        assert_fails(
            DO(f, spool_move(f->spool, f->queue, "m", taken[i].directory, taken[i].name, true, f->caller, NULL)),
            EEXIST);
    assert_ok(DO(f, spool_move(f->spool, f->queue, "m", f->queue, "free", true, f->caller, NULL)));
    assert_string_equal(messages_in(f, f->queue), "taken .taken free");
}

static void test_move__onto_itself_is_nothing(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "m", "tea");
    assert_ok(rename_entry(f, f->queue, "m", f->queue, "m"));
    assert_string_equal(messages_in(f, f->queue), "m");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_PUBLISHED), 1);
}

static void test_move__to_names_that_cannot_be_is_refused(void **state) {
    struct fixture *f = *state;
    char name[300];
    memset(name, 'n', 256);
    name[256] = '\0';
    put(f, f->queue, ".m", "tea");
    assert_fails(rename_entry(f, f->queue, ".m", f->queue, name), ENAMETOOLONG);
    assert_fails(rename_entry(f, f->queue, ".m", f->queue, "claimed"), EISDIR);
    assert_fails(rename_entry(f, f->queue, ".m", f->queue, "dead"), EISDIR);
    assert_fails(rename_entry(f, f->queue, ".m", 4711, "m"), ENOENT);
    assert_fails(rename_entry(f, f->queue, "absent", f->queue, "m"), ENOENT);
    assert_string_equal(messages_in(f, f->queue), ".m");
}

static void test_move__nothing_is_called_claimed_while_that_is_removed(void **state) {
    struct fixture *f = *state;
    int64_t dead = find(f, f->queue, "dead");
    put(f, f->queue, ".m", "tea");
    put(f, f->queue, "late", "salt");
    assert_ok(rename_entry(f, f->queue, "late", dead, "late"));
    assert_ok(DO(f, spool_rmdir(f->spool, find(f, f->queue, "claimed"), "w")));
    assert_ok(DO(f, spool_rmdir(f->spool, f->queue, "claimed")));
    assert_fails(rename_entry(f, f->queue, ".m", f->queue, "claimed"), EISDIR);
    assert_fails(rename_entry(f, dead, "late", f->queue, "claimed"), EISDIR);
    assert_int_equal(entry_of(f, f->queue, "claimed").kind, SPOOL_CLAIMED);
}

static void test_move__a_withdrawal_that_is_refused_counts_nothing(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "m", "tea");
    make_directory(f, f->queue, ".folder");
    assert_fails(rename_entry(f, f->queue, "m", f->queue, ".folder"), EISDIR);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_CANCELLED), 0);
    assert_string_equal(messages_in(f, f->queue), "m");
}

static void test_move__a_withdrawn_message_starts_over(void **state) {
    struct fixture *f = *state;
    set(f, f->queue, SPOOL_MAX_ATTEMPTS, "2");
    set(f, f->queue, SPOOL_RETRY_DELAY, "0");
    put(f, f->queue, "m", "tea");
    for (int i = 0; i < 2; i++) {
        assert_ok(claim(f, "m"));
        assert_ok(DO(f, spool_touch(f->spool, find(f, f->worker, "m"), SPOOL_AT, 0, SPOOL_OMIT, 0)));
        assert_ok(rename_entry(f, f->queue, "m", f->queue, ".m"));
        assert_ok(rename_entry(f, f->queue, ".m", f->queue, "m"));
    }
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_DEAD), 0);
}

static void test_forward__belongs_to_the_forwarder_and_obeys_the_limits(void **state) {
    struct fixture *f = *state;
    int64_t other = make_directory(f, SPOOL_ROOT, "other");
    set(f, other, SPOOL_MAX_SIZE, "2");
    put(f, f->queue, "m", "tea");
    assert_ok(claim(f, "m"));
    assert_fails(rename_entry(f, f->worker, "m", other, "m"), EFBIG);
    set(f, other, SPOOL_MAX_SIZE, "0");
    set(f, other, SPOOL_MAX_WAITING, "1");
    put(f, other, "full", "1");
    assert_fails(rename_entry(f, f->worker, "m", other, "m"), EDQUOT);
    set(f, other, SPOOL_MAX_WAITING, "0");
    set(f, other, SPOOL_ON_CONFLICT, "reject");
    assert_fails(rename_entry(f, f->worker, "m", other, "full"), EEXIST);
    assert_string_equal(messages_in(f, f->worker), "m");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_ACKNOWLEDGED), 0);
    f->caller = (struct spool_caller){2000, 200};
    assert_ok(rename_entry(f, f->worker, "m", other, "m"));
    struct spool_entry entry = entry_of(f, other, "m");
    assert_int_equal(entry.uid, 2000);
    assert_int_equal(entry.mode & 0777, 0644);
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_BYTES), 0);
    assert_int_equal(stat_of(f, other, SPOOL_STAT_BYTES), 4);
    assert_string_equal(content_of(f, other, "m"), "tea");
}

static void test_bury__numbers_a_name_that_is_taken_and_says_so(void **state) {
    struct fixture *f = *state;
    int64_t dead = find(f, f->queue, "dead");
    for (int i = 0; i < 2; i++) {
        bool elsewhere = false;
        put(f, f->queue, "m", "tea");
        assert_ok(DO(f, spool_move(f->spool, f->queue, "m", dead, "m", false, f->caller, &elsewhere)));
        assert_int_equal(elsewhere, i == 1);
    }
    assert_string_equal(messages_in(f, dead), "m m~1");
    assert_fails(rename_entry(f, dead, "m", dead, "m~1"), EEXIST);
    assert_ok(rename_entry(f, dead, "m~1", f->queue, "m~1"));
    assert_string_equal(messages_in(f, f->queue), "m~1");
}

static void test_unlink__in_each_place_is_counted_as_what_it_is(void **state) {
    struct fixture *f = *state;
    struct subject s;
    const struct {
        enum spool_state state;
        enum spool_stat counted;
        bool promised;
    } kinds[] = {
        {SPOOL_STAGED, NOTHING, false},
        {SPOOL_OPEN, NOTHING, false},
        {SPOOL_HELD, NOTHING, true},
        {SPOOL_WAITING, SPOOL_STAT_CANCELLED, true},
        {SPOOL_DELAYED, SPOOL_STAT_CANCELLED, true},
        {SPOOL_CLAIMED_STATE, SPOOL_STAT_ACKNOWLEDGED, true},
        {SPOOL_DEAD_STATE, SPOOL_STAT_CANCELLED, true},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int64_t before[SPOOL_STATS], after[SPOOL_STATS];
        make_subject(f, kinds[i].state, &s);
        assert_ok(DO(f, spool_stats(f->spool, f->queue, before)));
        assert_ok(erase(f, s.directory, s.name));
        assert_int_equal(f->promised, kinds[i].promised);
        assert_ok(DO(f, spool_stats(f->spool, f->queue, after)));
        assert_counted(before, after, kinds[i].counted);
        assert_fails(erase(f, s.directory, s.name), ENOENT);
    }
    assert_fails(erase(f, f->queue, "dead"), EISDIR);
    assert_int_equal(rows_in(f, "message"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_move__every_cell_of_the_table),
        spool_test(test_move__no_replace_is_honoured_everywhere),
        spool_test(test_move__onto_itself_is_nothing),
        spool_test(test_move__to_names_that_cannot_be_is_refused),
        spool_test(test_move__nothing_is_called_claimed_while_that_is_removed),
        spool_test(test_move__a_withdrawal_that_is_refused_counts_nothing),
        spool_test(test_move__a_withdrawn_message_starts_over),
        spool_test(test_forward__belongs_to_the_forwarder_and_obeys_the_limits),
        spool_test(test_bury__numbers_a_name_that_is_taken_and_says_so),
        spool_test(test_unlink__in_each_place_is_counted_as_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
