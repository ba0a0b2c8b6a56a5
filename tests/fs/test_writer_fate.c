/*
 * test_writer_fate.c - who was killed, who was not, and who has a file open, from what /proc says of real processes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "writer_fate.h"

#define STAT_LINE(name, flags, exit_code) \
    "4711 " name " S 1 4711 4711 0 -1 " flags \
    " 100 0 0 0 1 2 3 4 20 0 1 0 5000 1000000 200 18446744073709551615 1 1 0 " \
    "0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 1 2 3 4 5 6 7 " exit_code "\n"

static void test_writer_fate__a_process_with_memory_is_alive(void **state) {
    (void)state;
    assert_true(writer_status_says_alive("Name:\tcp\nState:\tS (sleeping)\nVmPeak:\t 5 kB\nVmSize:\t 5 kB\n"));
    assert_false(writer_status_says_alive("Name:\tVmSize:\nState:\tS (sleeping)\nThreads:\t1\n"));
}

static void test_writer_fate__a_process_that_dies_by_a_signal_is_killed(void **state) {
    (void)state;
    assert_true(writer_stat_says_killed(STAT_LINE("(cp)", "4194308", "9")));
    assert_true(writer_stat_says_killed(STAT_LINE("(cp)", "1028", "15")));
    assert_true(writer_stat_says_killed(STAT_LINE("(cp)", "1028", "139"))); /* with a core */
}

static void test_writer_fate__an_exit_is_orderly_whatever_its_code(void **state) {
    (void)state;
    assert_false(writer_stat_says_killed(STAT_LINE("(cp)", "4", "0")));
    assert_false(writer_stat_says_killed(STAT_LINE("(cp)", "4", "768")));
    assert_false(writer_stat_says_killed(STAT_LINE("(cp)", "4194304", "0")));
}

static void test_writer_fate__who_is_not_exiting_was_not_killed(void **state) {
    (void)state;
    assert_false(writer_stat_says_killed(STAT_LINE("(cp)", "4194304", "9")));
}

static void test_writer_fate__a_programs_name_may_look_like_fields(void **state) {
    (void)state;
    assert_true(writer_stat_says_killed(STAT_LINE("(a) R 1 (b c) 0)", "4", "9")));
    assert_false(writer_stat_says_killed(STAT_LINE("(a) R 1 1 1 1 1 4 1)", "4194304", "9")));
}

static void test_writer_fate__a_line_that_is_cut_short_says_nothing(void **state) {
    const char *whole = STAT_LINE("(cp)", "4", "9");
    char cut[512];

    (void)state;
    for (size_t length = 0; length < strlen(whole) - 2; length++) {
        memcpy(cut, whole, length);
        cut[length] = '\0';
        assert_false(writer_stat_says_killed(cut));
    }
}

/* A child that has ended, by a signal or not, and still is in /proc. */
static pid_t ended_child(int by_signal) {
    pid_t child = fork();
    siginfo_t end;

    if (child == 0) {
        if (by_signal)
            raise(by_signal);
        _exit(3);
    }
    assert_true(child > 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &end, WEXITED | WNOWAIT), 0);
    return child;
}

static void bury(pid_t child) {
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void test_writer_fate__a_killed_writer_decides_whatever_comes_after(void **state) {
    struct witness witness = {0};
    pid_t killed = ended_child(SIGKILL);

    (void)state;
    witness_write(&witness, killed);
    witness_close(&witness, killed);
    assert_int_equal(witness.verdict, WITNESS_KILLED);
    witness_close(&witness, getpid());
    assert_int_equal(witness.verdict, WITNESS_KILLED);
    bury(killed);
}

static void test_writer_fate__one_that_only_inherited_the_file_is_overruled(void **state) {
    struct witness witness = {0};
    pid_t killed = ended_child(SIGTERM);

    (void)state;
    witness_write(&witness, getpid());
    witness_close(&witness, killed);
    assert_int_equal(witness.verdict, WITNESS_DOUBTFUL);
    witness_close(&witness, getpid());
    assert_int_equal(witness.verdict, WITNESS_ORDERLY);
    bury(killed);
}

static void test_writer_fate__a_failed_exit_is_orderly(void **state) {
    struct witness witness = {0};
    pid_t ended = ended_child(0);

    (void)state;
    witness_write(&witness, ended);
    witness_close(&witness, ended);
    assert_int_equal(witness.verdict, WITNESS_ORDERLY);
    bury(ended);
}

static void test_writer_fate__what_cannot_be_seen_is_orderly(void **state) {
    struct witness witness = {0};

    (void)state;
    witness_write(&witness, 0);
    witness_close(&witness, 0);
    assert_int_equal(witness.verdict, WITNESS_ORDERLY);
    witness_close(&witness, 0x7fffffff);
    assert_int_equal(witness.verdict, WITNESS_ORDERLY);
}

static void test_writer_fate__only_the_last_writers_are_remembered(void **state) {
    struct witness witness = {0};
    pid_t killed = ended_child(SIGKILL);

    (void)state;
    for (int other = 0; other < 100; other++)
        witness_write(&witness, 0x7f000000 + other);
    witness_write(&witness, killed);
    witness_close(&witness, killed);
    assert_int_equal(witness.verdict, WITNESS_KILLED);
    bury(killed);
}

static void test_writer_fate__an_open_file_is_found_by_inode_and_mode(void **state) {
    char path[] = "/tmp/writer-fate-XXXXXX";
    int writing = mkstemp(path);
    struct stat attributes;
    int64_t inode;
    int reading;

    (void)state;
    assert_true(writing >= 0);
    assert_int_equal(fstat(writing, &attributes), 0);
    inode = (int64_t)attributes.st_ino;
    assert_true(writer_has_open(getpid(), inode));
    assert_false(writer_has_open(getpid(), inode + 1));
    assert_false(writer_has_open(0, inode));
    reading = open(path, O_RDONLY);
    assert_true(reading >= 0);
    close(writing);
    assert_false(writer_has_open(getpid(), inode));
    close(reading);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer_fate__a_process_with_memory_is_alive),
        cmocka_unit_test(test_writer_fate__a_process_that_dies_by_a_signal_is_killed),
        cmocka_unit_test(test_writer_fate__an_exit_is_orderly_whatever_its_code),
        cmocka_unit_test(test_writer_fate__who_is_not_exiting_was_not_killed),
        cmocka_unit_test(test_writer_fate__a_programs_name_may_look_like_fields),
        cmocka_unit_test(test_writer_fate__a_line_that_is_cut_short_says_nothing),
        cmocka_unit_test(test_writer_fate__a_killed_writer_decides_whatever_comes_after),
        cmocka_unit_test(test_writer_fate__one_that_only_inherited_the_file_is_overruled),
        cmocka_unit_test(test_writer_fate__a_failed_exit_is_orderly),
        cmocka_unit_test(test_writer_fate__what_cannot_be_seen_is_orderly),
        cmocka_unit_test(test_writer_fate__only_the_last_writers_are_remembered),
        cmocka_unit_test(test_writer_fate__an_open_file_is_found_by_inode_and_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
