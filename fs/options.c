/*
 * options.c - one table of options, parsed by libfuse's own parser, so that escapes and repetitions mean what they
 * mean for every FUSE file system.
 */
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <fuse_lowlevel.h>

#include "log.h"

enum { KEY_RESERVE, KEY_ALLOW_ROOT, KEY_IGNORED };

#define SET(template, member, value) \
    { template, offsetof(struct options, member), value }
#define IGNORE(template) FUSE_OPT_KEY(template, KEY_IGNORED)

static const struct fuse_opt table[] = {
    SET("--help", help, 1),
    SET("--version", version, 1),
    SET("--debug", debug, 1),
    SET("debug", debug, 1),
    SET("ro", read_only, 1),
    SET("rw", read_only, 0),
    SET("allow_other", allow_other, 1),
    SET("subtype=%s", subtype, 0),
    FUSE_OPT_KEY("reserve=", KEY_RESERVE),
    FUSE_OPT_KEY("allow_root", KEY_ALLOW_ROOT),
    /* what mount(8) and fstab say to each other, and what does not apply: times of access are not kept, and every mount
       is nosuid, nodev and noexec */
    IGNORE("auto"),
    IGNORE("noauto"),
    IGNORE("defaults"),
    IGNORE("user"),
    IGNORE("users"),
    IGNORE("nouser"),
    IGNORE("owner"),
    IGNORE("group"),
    IGNORE("nofail"),
    IGNORE("_netdev"),
    IGNORE("comment="),
    IGNORE("suid"),
    IGNORE("nosuid"),
    IGNORE("dev"),
    IGNORE("nodev"),
    IGNORE("exec"),
    IGNORE("noexec"),
    IGNORE("atime"),
    IGNORE("noatime"),
    IGNORE("diratime"),
    IGNORE("nodiratime"),
    IGNORE("relatime"),
    IGNORE("norelatime"),
    IGNORE("strictatime"),
    IGNORE("nostrictatime"),
    IGNORE("lazytime"),
    IGNORE("nolazytime"),
    IGNORE("iversion"),
    IGNORE("noiversion"),
    IGNORE("silent"),
    IGNORE("loud"),
    FUSE_OPT_END,
};

const char options_help[] =
    "usage: spoolfs [options] DATABASE MOUNTPOINT\n"
    "\n"
    "Mounts the queues in the file DATABASE on the directory MOUNTPOINT. Each directory there is a durable queue.\n"
    "DATABASE and its directory are made when they do not exist. Returns once the mount answers.\n"
    "\n"
    "    -f                 stay in the foreground, with messages on stderr\n"
    "    -d, --debug        show every request; implies -f\n"
    "    -h, --help         print this text\n"
    "    -V, --version      print the version\n"
    "    -o OPTION[,...]    mount options:\n"
    "        reserve=SIZE       refuse to publish when the disk has less free space (default: 1% of it, 1M to 64M)\n"
    "        ro                 read only\n"
    "        allow_other        let other users in, as permissions allow; implies default_permissions\n"
    "        default_permissions, auto_unmount, fsname=NAME, subtype=NAME, max_read=N and what else libfuse takes\n"
    "\n"
    "SIZE is in bytes, or with K, M, G or T behind it. `umount MOUNTPOINT`, `fusermount3 -u MOUNTPOINT` or SIGTERM "
    "end\n"
    "the mount. In /etc/fstab the type is fuse.spoolfs.\n"
    "\n"
    "Exit codes:\n"
    "     0  mounted; with -f: unmounted\n"
    "    64  wrong usage\n"
    "    66  MOUNTPOINT is missing, or not a directory\n"
    "    69  the kernel or fusermount3 refused the mount\n"
    "    71  the system gave no process, memory or the like\n"
    "    74  DATABASE cannot be read or written, is damaged, or is not one\n"
    "    75  DATABASE or MOUNTPOINT is in use\n"
    "    77  permission denied\n"
    "    78  DATABASE is a newer version's, or one of the two is in an unsuitable place\n";

struct parse {
    struct options options; /* first: the table's offsets count from here */
    struct refusal *refusal;
};

/* Digits and at most one letter; -1 for anything else. */
static int64_t parse_size(const char *text) {
    static const char units[] = "KMGT";
    const char *unit;
    char *end;
    long long size;
    int shift = 0;

    if (*text < '0' || *text > '9')
        return -1;
    errno = 0;
    size = strtoll(text, &end, 10);
    if (errno != 0)
        return -1;
    if (*end != '\0') {
        unit = strchr(units, *end & ~0x20);
        if (unit == NULL || end[1] != '\0')
            return -1;
        shift = 10 * (int)(unit - units + 1);
    }
    return size <= INT64_MAX >> shift ? (int64_t)size << shift : -1;
}

static int take_operand(struct parse *parse, const char *operand) {
    if (parse->options.database == NULL)
        parse->options.database = operand;
    else if (parse->options.mount_point == NULL)
        parse->options.mount_point = operand;
    else
        return refuse(parse->refusal, -1, "'%s' is one operand too many: a database and a mount point are enough",
                      operand);
    return 0;
}

/* Single letters, alone or together. */
static int take_flags(struct parse *parse, const char *argument) {
    for (const char *flag = argument + 1; *flag != '\0'; flag++) {
        switch (*flag) {
        case 'd':
            parse->options.debug = 1;
            break;
        case 'f':
            parse->options.foreground = 1;
            break;
        case 'h':
            parse->options.help = 1;
            break;
        case 'V':
            parse->options.version = 1;
            break;
        default:
            return refuse(parse->refusal, -1, "there is no option '%s': see spoolfs --help", argument);
        }
    }
    return 0;
}

/* libfuse's callback: -1 is an error, 0 drops the argument, 1 keeps it for libfuse. */
static int take(void *context, const char *argument, int key, struct fuse_args *left) {
    struct parse *parse = context;

    (void)left;
    switch (key) {
    case FUSE_OPT_KEY_NONOPT:
        return take_operand(parse, argument);
    case KEY_RESERVE:
        parse->options.reserve_bytes = parse_size(strchr(argument, '=') + 1);
        if (parse->options.reserve_bytes < 0)
            return refuse(parse->refusal, -1, "'%s' is not a size: write bytes, or a number with K, M, G or T",
                          argument);
        return 0;
    case KEY_ALLOW_ROOT:
        return refuse(parse->refusal, -1, "allow_root is not supported: use allow_other, which checks permissions");
    case KEY_IGNORED:
        return 0;
    default:
        if (argument[0] == '-')
            return take_flags(parse, argument);
        return strncasecmp(argument, "x-", 2) != 0;
    }
}

int options_parse(struct options *options, int argc, char **argv, struct refusal *refusal) {
    struct parse parse = {
        .options = {.reserve_bytes = -1, .fuse = FUSE_ARGS_INIT(argc, argv)},
        .refusal = refusal,
    };
    const char *fuse_error;
    int result;

    refusal->sentence[0] = '\0';
    log_hold_fuse();
    result = fuse_opt_parse(&parse.options.fuse, &parse, table, take);
    fuse_error = log_release_fuse();
    *options = parse.options;
    if (result < 0) {
        if (refusal->sentence[0] != '\0')
            return EX_USAGE;
        return refuse(refusal, EX_USAGE, "%s: see spoolfs --help", fuse_error);
    }
    if (options->subtype == NULL)
        options->subtype = strdup("spoolfs");
    if (options->subtype == NULL)
        return refuse(refusal, EX_OSERR, "out of memory");
    if (options->debug)
        options->foreground = 1;
    if (options->mount_point == NULL && !options->help && !options->version)
        return refuse(refusal, EX_USAGE, "the %s is missing: spoolfs [options] DATABASE MOUNTPOINT",
                      options->database == NULL ? "database" : "mount point");
    return 0;
}

/* Ahead of what was given, which then wins. Commas and backslashes in the value must not end the option. */
static int insert_option(struct fuse_args *args, const char *name, const char *value) {
    char *escaped = NULL, *option = NULL, *word = NULL;
    int result = -1;

    if (asprintf(&word, "%s=%s", name, value) < 0)
        return -1;
    if (fuse_opt_add_opt_escaped(&escaped, word) == 0 && asprintf(&option, "-o%s", escaped) >= 0) {
        result = fuse_opt_insert_arg(args, 1, option);
        free(option);
    }
    free(escaped);
    free(word);
    return result;
}

/* Only libfuse knows all of its options, and it looks at them when a session is made: make one that is never mounted. */
static int try_out(const struct fuse_args *args, struct refusal *refusal) {
    static const struct fuse_lowlevel_ops no_operations;
    struct fuse_args copy = FUSE_ARGS_INIT(0, NULL);
    struct fuse_session *session = NULL;
    const char *fuse_error;
    int copied = 0;

    log_hold_fuse();
    while (copied < args->argc && fuse_opt_add_arg(&copy, args->argv[copied]) == 0)
        copied++;
    if (copied == args->argc)
        session = fuse_session_new(&copy, &no_operations, sizeof no_operations, NULL);
    fuse_error = log_release_fuse();
    fuse_opt_free_args(&copy);
    if (session == NULL)
        return refuse(refusal, EX_USAGE, "%s: see spoolfs --help", fuse_error);
    fuse_session_destroy(session);
    return 0;
}

int options_complete(struct options *options, const char *source, struct refusal *refusal) {
    struct fuse_args *args = &options->fuse;
    int result = try_out(args, refusal);

    if (result != 0)
        return result;
    if (insert_option(args, "fsname", source) < 0 || insert_option(args, "subtype", options->subtype) < 0 ||
        fuse_opt_add_arg(args, "-onosuid,nodev,noexec") < 0 || (options->debug && fuse_opt_add_arg(args, "-d") < 0) ||
        (options->read_only && fuse_opt_add_arg(args, "-oro") < 0) ||
        (options->allow_other && fuse_opt_add_arg(args, "-oallow_other,default_permissions") < 0))
        return refuse(refusal, EX_OSERR, "out of memory");
    return 0;
}

void options_free(struct options *options) {
    fuse_opt_free_args(&options->fuse);
    free(options->subtype);
}
