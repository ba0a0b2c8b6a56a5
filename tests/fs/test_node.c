/*
 * test_node.c - what a FUSE node number denotes, and what `stat` shows of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>

#include "node.h"

static void assert_same(struct node expected) {
    struct node seen = node_of(node_id(expected));

    assert_int_equal(seen.number, expected.number);
    assert_int_equal(seen.kind, expected.kind);
    assert_int_equal(seen.setting, expected.setting);
}

static void test_node__every_kind_comes_back_from_its_id(void **state) {
    const int64_t numbers[] = {1, 2, 65536, INT64_C(1) << 40, (INT64_C(1) << 51) - 1};

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_same((struct node){.number = numbers[i]});
        assert_same((struct node){.number = numbers[i], .kind = NODE_CONFIG});
        assert_same((struct node){.number = numbers[i], .kind = NODE_STATISTICS});
        for (int setting = 0; setting < SPOOL_SETTINGS; setting++)
            assert_same(
                (struct node){.number = numbers[i], .kind = NODE_SETTING, .setting = (enum spool_setting)setting});
    }
}

static void test_node__the_root_is_fuses_root(void **state) {
    (void)state;
    assert_int_equal(node_of_entry(SPOOL_ROOT), FUSE_ROOT_ID);
    assert_int_equal(node_of(FUSE_ROOT_ID).number, SPOOL_ROOT);
    assert_int_equal(node_of(FUSE_ROOT_ID).kind, NODE_ENTRY);
}

static void test_node__control_entries_share_no_inode_number_with_messages(void **state) {
    const ino_t largest = (INT64_C(1) << 51) - 1;

    (void)state;
    assert_int_equal(node_inode_number((struct node){.number = 7}), 7);
    assert_true(node_inode_number((struct node){.number = 1, .kind = NODE_CONFIG}) > largest);
    assert_true(node_inode_number((struct node){.number = 7, .kind = NODE_STATISTICS}) > largest);
    assert_int_not_equal(node_inode_number((struct node){.number = 7, .kind = NODE_CONFIG}),
                         node_inode_number((struct node){.number = 8, .kind = NODE_CONFIG}));
}

static void test_node__attributes_show_the_entry(void **state) {
    const struct spool_entry entry = {
        .number = 42,
        .mode = S_IFREG | 0640,
        .uid = 3,
        .gid = 4,
        .size_bytes = 513,
        .atime_ns = INT64_C(1500000000) * 1000000000 + 5,
        .mtime_ns = -1,
        .ctime_ns = 0,
    };
    struct stat seen = node_attributes(&entry);

    (void)state;
    assert_int_equal(seen.st_ino, 42);
    assert_int_equal(seen.st_mode, S_IFREG | 0640);
    assert_int_equal(seen.st_nlink, 1);
    assert_int_equal(seen.st_size, 513);
    assert_int_equal(seen.st_blocks, 2);
    assert_int_equal(seen.st_atim.tv_sec, 1500000000);
    assert_int_equal(seen.st_atim.tv_nsec, 5);
    assert_int_equal(seen.st_mtim.tv_sec, -1);
    assert_int_equal(seen.st_mtim.tv_nsec, 999999999);
}

static void test_node__nothing_is_kept_of_messages(void **state) {
    struct spool_entry entry = {.number = 42, .state = SPOOL_WAITING, .mode = S_IFREG | 0600};
    struct fuse_entry_param found = node_describe(&entry);

    (void)state;
    assert_true(found.attr_timeout == 0.0 && found.entry_timeout == 0.0);
    entry.mode = S_IFDIR | 0755;
    found = node_describe(&entry);
    assert_true(found.attr_timeout > 0.0 && found.entry_timeout > 0.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_node__every_kind_comes_back_from_its_id),
        cmocka_unit_test(test_node__the_root_is_fuses_root),
        cmocka_unit_test(test_node__control_entries_share_no_inode_number_with_messages),
        cmocka_unit_test(test_node__attributes_show_the_entry),
        cmocka_unit_test(test_node__nothing_is_kept_of_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
