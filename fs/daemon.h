/*
 * daemon.h - the process: in the background, with the limits and signals that serving needs.
 *
 * The parent waits until the mount answers, so that whoever ran the program may use it at once:
 *
 *     parent                                   child
 *     daemon_start: fork ──────────────────▶   daemon_start returns: open the database, mount
 *       copy what it says to stderr            failed: one sentence on stderr, exit code
 *       ◀───────── a NUL byte ────────────────  daemon_mounted: stdio to /dev/null
 *       stat the mount point, which waits      serve
 *       for the answer
 *     exit 0, or the child's exit code
 *
 * The child never waits for the parent, so neither can hang the other.
 */
#ifndef DAEMON_H
#define DAEMON_H

#include "mount.h"
#include "refuse.h"

/* Open what is closed of stdin, stdout and stderr: else the next file opened would get the number, and what is printed. */
void daemon_open_stdio(void);

/* Files are for their owner only, as many descriptors as the system gives, the signals blocked that serve() reads. */
void daemon_prepare(void);

/*
 * Go to the background. Returns 0 in the child, whose stderr the parent copies to its own and who gets a descriptor for
 * daemon_mounted(). Returns an exit code if there can be no child. Else the parent ends here.
 */
int daemon_start(const struct places *places, int *parent_fd, struct refusal *refusal);

/* Tell the parent to look at the mount. What is written to parent_fd later still reaches its stderr if the mount never
 * answers. -EPIPE: the parent was interrupted, nobody wants the mount. */
int daemon_mounted(int parent_fd) __attribute__((warn_unused_result));

#endif
