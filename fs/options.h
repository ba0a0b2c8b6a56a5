/*
 * options.h - the command line of spoolfs.
 *
 * The same line comes from people and from mount(8), which puts the options behind the operands and passes on words
 * of /etc/fstab that are not for a file system; those are taken and ignored.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define FUSE_USE_VERSION 314
#include <fuse_opt.h>

#include "refuse.h"

struct options {
    int help;
    int version;
    int foreground;
    int debug; /* implies foreground */
    int read_only;
    int allow_other;
    int64_t reserve_bytes; /* -1: not given */
    char *subtype;         /* the mount's type is fuse.SUBTYPE */
    const char *database;
    const char *mount_point;
    struct fuse_args fuse; /* what is left for libfuse */
};

/* Returns 0 or EX_USAGE. `argv` must live as long as the options. With `help` or `version` the operands may be missing. */
int options_parse(struct options *options, int argc, char **argv, struct refusal *refusal);
/* Add the options of every mount: no programs, devices or set-id bits, and `source` as its name where none was given. */
int options_complete(struct options *options, const char *source, struct refusal *refusal);
void options_free(struct options *options);

extern const char options_help[];

#endif
