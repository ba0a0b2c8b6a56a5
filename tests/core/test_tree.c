/* test_tree.c - what can be made where, removed and renamed: queues, workers, folders and links. */
#include "spool_fixture.h"

static int64_t claimed_of(struct fixture *f) {
    return find(f, f->queue, "claimed");
}

static int remove_directory(struct fixture *f, int64_t parent, const char *name) {
    return (int)DO(f, spool_rmdir(f->spool, parent, name));
}

static int make_link(struct fixture *f, int64_t parent, const char *name, const char *target) {
    struct spool_entry entry;
    return (int)DO(f, spool_symlink(f->spool, parent, name, target, f->caller, &entry));
}

/* --- making --- */

static void test_mkdir__makes_what_belongs_there(void **state) {
    struct fixture *f = *state;
    int64_t folder = make_directory(f, f->queue, ".folder");
    assert_int_equal(entry_of(f, SPOOL_ROOT, "q").kind, SPOOL_QUEUE);
    assert_int_equal(entry_of(f, f->queue, "claimed").kind, SPOOL_CLAIMED);
    assert_int_equal(entry_of(f, f->queue, "dead").kind, SPOOL_DEAD);
    assert_int_equal(entry_of(f, claimed_of(f), "w").kind, SPOOL_WORKER);
    assert_int_equal(entry_of(f, f->queue, ".folder").kind, SPOOL_FOLDER);
    assert_int_equal(entry_of(f, claimed_of(f), "w").queue, f->queue);
    assert_int_equal(entry_of_number(f, folder).queue, f->queue);
    assert_int_equal(entry_of_number(f, SPOOL_ROOT).kind, SPOOL_THE_ROOT);
    assert_int_equal(entry_of_number(f, SPOOL_ROOT).queue, 0);
}

static void test_mkdir__elsewhere_is_refused(void **state) {
    struct fixture *f = *state;
    int64_t folder = make_directory(f, f->queue, ".folder");
    assert_fails(make_directory(f, f->queue, "tenant"), EPERM);
    assert_fails(make_directory(f, find(f, f->queue, "dead"), "d"), EPERM);
    assert_fails(make_directory(f, f->worker, "d"), EPERM);
    assert_fails(make_directory(f, folder, ".d"), EPERM);
    assert_fails(make_directory(f, 4711, "d"), ENOENT);
    assert_fails(make_directory(f, put(f, f->queue, "order", "tea"), "d"), ENOENT);
    assert_fails(make_directory(f, SPOOL_ROOT, "a/b"), EINVAL);
}

static void test_mkdir__on_a_taken_name_is_refused(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, ".staged", "tea");
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    assert_ok(rename_entry(f, f->worker, "order", claimed_of(f), "lease"));
    assert_fails(make_directory(f, SPOOL_ROOT, "q"), EEXIST);
    assert_true(f->promised);
    assert_fails(make_directory(f, f->queue, "claimed"), EEXIST);
    assert_fails(make_directory(f, f->queue, "dead"), EEXIST);
    assert_fails(make_directory(f, claimed_of(f), "w"), EEXIST);
    assert_fails(make_directory(f, claimed_of(f), "lease"), EEXIST);
    assert_fails(make_directory(f, f->queue, ".staged"), EEXIST);
    assert_fails(make_link(f, f->queue, ".staged", "x"), EEXIST);
}

static void test_mkdir__of_a_queue_is_a_promise(void **state) {
    struct fixture *f = *state;
    assert_true(make_directory(f, SPOOL_ROOT, "other") > 0);
    assert_true(f->promised);
    assert_true(make_directory(f, claimed_of(f), "v") > 0);
    assert_false(f->promised);
}

/* --- removing --- */

static void test_rmdir__of_a_queue_with_anything_in_it_is_refused(void **state) {
    struct fixture *f = *state;
    int64_t queue = make_directory(f, SPOOL_ROOT, "other");
    put(f, queue, "order", "tea");
    assert_fails(remove_directory(f, SPOOL_ROOT, "other"), ENOTEMPTY);
    int64_t claimed = find(f, queue, "claimed"), dead = find(f, queue, "dead");
    assert_ok(rename_entry(f, queue, "order", claimed, "order"));
    assert_fails(remove_directory(f, SPOOL_ROOT, "other"), ENOTEMPTY);
    assert_fails(remove_directory(f, queue, "claimed"), ENOTEMPTY);
    assert_ok(rename_entry(f, claimed, "order", dead, "order"));
    assert_fails(remove_directory(f, SPOOL_ROOT, "other"), ENOTEMPTY);
    assert_fails(remove_directory(f, queue, "dead"), ENOTEMPTY);
    assert_ok(erase(f, dead, "order"));
    put(f, queue, ".staged", "tea");
    assert_fails(remove_directory(f, SPOOL_ROOT, "other"), ENOTEMPTY);
    assert_ok(erase(f, queue, ".staged"));
    assert_true(make_directory(f, claimed, "w") > 0);
    assert_fails(remove_directory(f, SPOOL_ROOT, "other"), ENOTEMPTY);
    assert_fails(remove_directory(f, queue, "claimed"), ENOTEMPTY);
    assert_ok(remove_directory(f, claimed, "w"));
    assert_ok(make_link(f, queue, ".link", "target"));
    assert_fails(remove_directory(f, SPOOL_ROOT, "other"), ENOTEMPTY);
    assert_ok(erase(f, queue, ".link"));
    assert_true(make_directory(f, queue, ".folder") > 0);
    assert_fails(remove_directory(f, SPOOL_ROOT, "other"), ENOTEMPTY);
    assert_ok(remove_directory(f, queue, ".folder"));
    assert_ok(remove_directory(f, SPOOL_ROOT, "other"));
    assert_true(f->promised);
    assert_string_equal(names_in(f, SPOOL_ROOT), "q");
    assert_int_equal(rows_in(f, "directory"), 5); /* root, q, claimed, dead, w */
}

static void test_rmdir__claimed_and_dead_are_reborn_with_a_new_number(void **state) {
    struct fixture *f = *state;
    assert_ok(remove_directory(f, claimed_of(f), "w"));
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "dead" : "claimed";
        int64_t number = find(f, f->queue, name);
        assert_ok(remove_directory(f, f->queue, name));
        assert_true(strstr(names_in(f, f->queue), name) == NULL);
        int64_t reborn = find(f, f->queue, name);
        assert_true(reborn > number);
        assert_true(strstr(names_in(f, f->queue), name) != NULL);
        struct spool_entry entry;
        assert_fails(DO(f, spool_stat(f->spool, number, &entry)), ENOENT);
    }
    put(f, f->queue, "order", "tea");
    assert_ok(remove_directory(f, f->queue, "dead"));
    set(f, f->queue, SPOOL_MAX_ATTEMPTS, "1");
    f->worker = make_directory(f, claimed_of(f), "w");
    assert_ok(claim(f, "order"));
    advance(f, 60 * SECONDS); /* and for a message that dies meanwhile */
    assert_string_equal(messages_in(f, find(f, f->queue, "dead")), "order");
}

static void test_rmdir__of_what_is_no_directory_or_is_not_there(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(make_link(f, f->queue, ".link", "target"));
    assert_fails(remove_directory(f, f->queue, "order"), ENOTDIR);
    assert_fails(remove_directory(f, f->queue, ".link"), ENOTDIR);
    assert_fails(remove_directory(f, f->queue, "absent"), ENOENT);
    assert_fails(remove_directory(f, SPOOL_ROOT, "absent"), ENOENT);
    assert_fails(erase(f, SPOOL_ROOT, "q"), EISDIR);
}

static void test_rmdir__of_a_worker_with_leases_is_refused(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    assert_ok(claim(f, "order"));
    assert_fails(remove_directory(f, claimed_of(f), "w"), ENOTEMPTY);
    assert_ok(erase(f, f->worker, "order"));
    assert_ok(remove_directory(f, claimed_of(f), "w"));
}

/* --- renaming --- */

static void test_rename__a_queue_keeps_all_it_has(void **state) {
    struct fixture *f = *state;
    put(f, f->queue, "order", "tea");
    put(f, f->queue, "job", "salt");
    assert_ok(claim(f, "job"));
    assert_ok(rename_entry(f, SPOOL_ROOT, "q", SPOOL_ROOT, "renamed"));
    assert_true(f->promised);
    assert_int_equal(find(f, SPOOL_ROOT, "renamed"), f->queue);
    assert_string_equal(messages_in(f, f->queue), "order");
    assert_ok(release(f, "job"));
    assert_ok(rename_entry(f, SPOOL_ROOT, "renamed", SPOOL_ROOT, "q"));
    reopen_after_kill(f);
    assert_string_equal(content_of(f, f->queue, "order"), "tea");
}

static void test_rename__a_queue_onto_another(void **state) {
    struct fixture *f = *state;
    int64_t other = make_directory(f, SPOOL_ROOT, "other");
    put(f, other, "order", "tea");
    assert_fails(rename_entry(f, SPOOL_ROOT, "q", SPOOL_ROOT, "other"), ENOTEMPTY);
    assert_fails(DO(f, spool_move(f->spool, SPOOL_ROOT, "q", SPOOL_ROOT, "other", true, f->caller, NULL)), EEXIST);
    assert_ok(erase(f, other, "order"));
    assert_ok(rename_entry(f, SPOOL_ROOT, "q", SPOOL_ROOT, "other"));
    assert_string_equal(names_in(f, SPOOL_ROOT), "other");
    assert_int_equal(find(f, SPOOL_ROOT, "other"), f->queue);
    assert_int_equal(rows_in(f, "directory"), 5);
}

static void test_rename__directories_stay_where_they_belong(void **state) {
    struct fixture *f = *state;
    int64_t other = make_directory(f, SPOOL_ROOT, "other"), elsewhere = find(f, other, "claimed");
    make_directory(f, f->queue, ".folder");
    assert_fails(rename_entry(f, SPOOL_ROOT, "other", f->queue, "other"), EPERM);
    assert_fails(rename_entry(f, SPOOL_ROOT, "other", f->queue, ".other"), EPERM);
    assert_fails(rename_entry(f, f->queue, "claimed", f->queue, "taken"), EPERM);
    assert_fails(rename_entry(f, f->queue, "dead", SPOOL_ROOT, "dead"), EPERM);
    assert_fails(rename_entry(f, claimed_of(f), "w", elsewhere, "w"), EINVAL);
    assert_fails(rename_entry(f, claimed_of(f), "w", other, "w"), EPERM);
    assert_fails(rename_entry(f, claimed_of(f), "w", SPOOL_ROOT, "w"), EPERM);
    assert_fails(rename_entry(f, f->queue, ".folder", f->queue, "folder"), EPERM);
    assert_fails(rename_entry(f, f->queue, ".folder", SPOOL_ROOT, ".folder"), EPERM);
    assert_fails(rename_entry(f, f->queue, ".folder", claimed_of(f), ".folder"), EPERM);
    assert_ok(rename_entry(f, claimed_of(f), "w", claimed_of(f), "v"));
    assert_ok(rename_entry(f, f->queue, ".folder", f->queue, ".f2"));
    assert_string_equal(names_in(f, f->queue), "claimed dead .f2");
}

static void test_rename__a_folder_stays_in_its_queue(void **state) {
    struct fixture *f = *state;
    int64_t other = make_directory(f, SPOOL_ROOT, "other"), folder = make_directory(f, f->queue, ".folder");
    put(f, folder, "part", "tea");
    assert_fails(rename_entry(f, f->queue, ".folder", other, ".folder"), EPERM);
    assert_ok(rename_entry(f, f->queue, ".folder", f->queue, ".renamed"));
    assert_string_equal(messages_in(f, folder), "part");
    assert_int_equal(stat_of(f, f->queue, SPOOL_STAT_STAGED), 1);
}

/* --- folders and links --- */

static void test_folder__holds_staged_files_under_any_name(void **state) {
    struct fixture *f = *state;
    int64_t folder = make_directory(f, f->queue, ".delayed");
    put(f, folder, "order", "tea");
    assert_int_equal(entry_of(f, folder, "order").state, SPOOL_STAGED);
    assert_fails(remove_directory(f, f->queue, ".delayed"), ENOTEMPTY);
    assert_ok(rename_entry(f, folder, "order", f->queue, "order"));
    assert_int_equal(entry_of(f, f->queue, "order").state, SPOOL_WAITING);
    assert_ok(make_link(f, folder, "link", "x"));
    assert_ok(rename_entry(f, folder, "link", f->queue, ".link"));
    assert_fails(rename_entry(f, f->queue, ".link", f->queue, "link"), EPERM);
}

static void test_link__is_made_under_staged_names_only_and_read_back(void **state) {
    struct fixture *f = *state;
    char target[4097], got[4096];
    memset(target, 't', sizeof target);
    target[4096] = '\0';
    assert_fails(make_link(f, f->queue, ".#lock", target), ENAMETOOLONG);
    target[4095] = '\0';
    assert_ok(make_link(f, f->queue, ".#lock", target));
    struct spool_entry entry = entry_of(f, f->queue, ".#lock");
    assert_int_equal(entry.kind, SPOOL_LINK);
    assert_int_equal(entry.mode, 0120777);
    assert_ok(DO(f, spool_readlink(f->spool, entry.number, got)));
    assert_string_equal(got, target);
    assert_fails(DO(f, spool_readlink(f->spool, f->queue, got)), EINVAL);
    assert_fails(make_link(f, f->queue, "lock", "x"), EPERM);
    assert_fails(make_link(f, SPOOL_ROOT, ".lock", "x"), EPERM);
    assert_fails(make_link(f, f->worker, ".lock", "x"), EPERM);
    assert_ok(erase(f, f->queue, ".#lock"));
    assert_fails(find(f, f->queue, ".#lock"), ENOENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        spool_test(test_mkdir__makes_what_belongs_there),
        spool_test(test_mkdir__elsewhere_is_refused),
        spool_test(test_mkdir__on_a_taken_name_is_refused),
        spool_test(test_mkdir__of_a_queue_is_a_promise),
        spool_test(test_rmdir__of_a_queue_with_anything_in_it_is_refused),
        spool_test(test_rmdir__claimed_and_dead_are_reborn_with_a_new_number),
        spool_test(test_rmdir__of_what_is_no_directory_or_is_not_there),
        spool_test(test_rmdir__of_a_worker_with_leases_is_refused),
        spool_test(test_rename__a_queue_keeps_all_it_has),
        spool_test(test_rename__a_queue_onto_another),
        spool_test(test_rename__directories_stay_where_they_belong),
        spool_test(test_rename__a_folder_stays_in_its_queue),
        spool_test(test_folder__holds_staged_files_under_any_name),
        spool_test(test_link__is_made_under_staged_names_only_and_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
