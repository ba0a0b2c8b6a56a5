/*
 * privileges.h - what a daemon that root has started keeps of root's power.
 *
 * Kept in effect: CAP_DAC_OVERRIDE, because the database may lie in another user's directory and /proc/PID/fdinfo of
 * other users must be opened; and CAP_SYS_PTRACE, without which /proc hides how another user's process died. Kept in
 * reserve, for the moment of unmounting only: CAP_SYS_ADMIN. Everything else is gone for good, and no program that
 * is executed can gain anything.
 *
 * A daemon of an ordinary user has no capability to lose, and needs fusermount3, which is set-user-ID, to unmount:
 * nothing is changed there.
 */
#ifndef PRIVILEGES_H
#define PRIVILEGES_H

/* After mounting, before any thread is started: each thread has its own. Returns 0 or a negative errno. */
int privileges_drop(void) __attribute__((warn_unused_result));

/* The mount is about to be unmounted. Harmless when there is nothing in reserve. */
void privileges_unmount(void);

#endif
