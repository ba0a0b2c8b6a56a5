/* test_path.c - the directory of the database, and when its name is durable. */
#include "spool_fixture.h"

#include <stddef.h>
#include <stdlib.h>

#include "path.h"

static void assert_parent(const char *path, const char *expected) {
    char parent[PATH_BYTES];
    assert_ok(path_parent(path, parent));
    assert_string_equal(parent, expected);
}

static void test_path__has_a_parent(void **state) {
    (void)state;
    assert_parent("/var/lib/spool/db", "/var/lib/spool");
    assert_parent("spool/db", "spool");
    assert_parent("db", ".");
    assert_parent("/db", "/");
    assert_parent("/", "/");
    assert_parent("//db", "/");
    assert_parent("a//b//", "a");
}

static void test_path__of_any_length(void **state) {
    (void)state;
    char path[PATH_BYTES + 8], parent[PATH_BYTES] = "as it was";
    memset(path, 'x', sizeof path);
    path[PATH_BYTES] = '/';
    path[PATH_BYTES + 1] = '\0';
    assert_parent(path, ".");
    path[PATH_BYTES + 1] = 'y';
    path[PATH_BYTES + 2] = '\0';
    assert_int_equal(path_parent(path, parent), -ENAMETOOLONG);
    assert_string_equal(parent, "as it was");
}

/* Notes whether the directory `watched` was synced, and fails that when it is told to. */
struct witness {
    struct db_tap tap;
    const char *watched;
    int syncs, answer;
};

static int witness_sync(struct db_tap *tap, enum db_event event, enum db_file file, const char *path, const void *bytes,
                        size_t length, int64_t offset) {
    struct witness *witness = (struct witness *)((char *)tap - offsetof(struct witness, tap));
    (void)bytes, (void)length, (void)offset;
    if (event != DB_SYNC || file != DB_FILE_OTHER || strcmp(path, witness->watched) != 0)
        return 0;
    witness->syncs++;
    return witness->answer;
}

static int open_in_new_directory(struct witness *witness, char *why, size_t why_size) {
    char path[PATH_BYTES];
    struct spool_options options = {.boot_id = "boot", .tap = &witness->tap};
    struct spool_time now = {.wall_ns = SECONDS, .boot_ns = SECONDS};
    struct spool *spool = NULL;
    snprintf(path, sizeof path, "%s/new/db", witness->watched);
    int rc = spool_open(path, &options, now, &spool, why, why_size);
    spool_close(spool);
    return rc;
}

static void test_spool__in_a_new_directory_is_as_durable_as_its_messages(void **state) {
    (void)state;
    char scratch[] = "/tmp/test_path.XXXXXX", why[512] = "";
    assert_non_null(mkdtemp(scratch));
    struct witness witness = {.tap.see = witness_sync, .watched = scratch, .answer = -EIO};
    assert_int_equal(open_in_new_directory(&witness, why, sizeof why), -EIO);
    assert_non_null(strstr(why, "cannot make the directory of"));
    assert_int_equal(witness.syncs, 1);
    assert_int_equal(run_shell("rmdir %s/new", scratch), 0);
    witness.answer = 0;
    assert_ok(open_in_new_directory(&witness, why, sizeof why));
    assert_int_equal(witness.syncs, 2);
    assert_ok(open_in_new_directory(&witness, why, sizeof why));
    assert_int_equal(witness.syncs, 2);
    assert_int_equal(run_shell("rm -r %s", scratch), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path__has_a_parent),
        cmocka_unit_test(test_path__of_any_length),
        cmocka_unit_test(test_spool__in_a_new_directory_is_as_durable_as_its_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
