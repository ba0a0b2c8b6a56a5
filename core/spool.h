/*
 * spool.h - durable queues over one database file.
 *
 * A spool is a tree of two levels: the root holds queues, a queue holds messages. Every entry has a number that
 * is given once and never again, not after a crash either: a directory's, a message's, and a message's place in
 * the order are drawn from one increasing sequence.
 *
 *     root (number 1)
 *       queue                      SPOOL_QUEUE
 *         order-17                 SPOOL_MESSAGE   open, held, waiting
 *         .order-18.tmp            SPOOL_MESSAGE   staged: not a message yet
 *         .delayed/  .#lock        SPOOL_FOLDER, SPOOL_LINK   staged directory and symbolic link
 *         claimed/                 SPOOL_CLAIMED
 *           order-16               SPOOL_MESSAGE   claimed
 *           host7.4711/            SPOOL_WORKER    a worker's own directory of leases
 *         dead/                    SPOOL_DEAD
 *           order-3                SPOOL_MESSAGE   dead
 *
 * THE LIFE OF A MESSAGE
 *
 *          create                    last close                          claim
 *     ·───────────────▶ OPEN ─────────────────────────▶ WAITING ◀─────────────────▶ CLAIMED ──▶ · acknowledged
 *                       │  ▲       HELD ──(250 ms)──▶     │  ▲     release, failure    │
 *          last close,  │  │ write    (empty, mktemp-like)│  │                         │ max_attempts,
 *          staged name  ▼  │                              │  │ requeue                 │ bury
 *                      STAGED ────────(rename)────────────┘  └──────── DEAD ◀──────────┘
 *                             ◀───────(withdraw)
 *
 *     A DRAFT is the new content of a message that exists already (edit, replace, checkpoint). It has no name; at
 *     its last close it becomes the message's content, or a message of its own where the rules say so.
 *
 * TIME is passed in, never asked for: nanoseconds of the wall clock and of the boot clock. Leases, backoffs and holds
 * end by the boot clock; due times are wall time.
 *
 * BATCHES. The engine has one owner thread. Calls take effect in the open batch; spool_commit() writes all of it to the
 * log as one transaction; spool_sync() makes it durable. An operation that fails has changed nothing. An answer must not
 * reach anybody before its batch is committed, and one that promises durability not before it is synced: after each
 * call spool_promised() tells whether that call's answer is such a promise.
 *
 * ERRORS: 0 or a negative errno. Outputs are untouched on failure.
 */
#ifndef SPOOL_H
#define SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SPOOL_MUST_USE __attribute__((warn_unused_result))
#define SPOOL_ROOT 1                  /* the root's number */
#define SPOOL_NAME_MAX 255            /* bytes of a name; any but '/' and NUL */
#define SPOOL_INLINE_MAX (128 * 1024) /* payloads above this many bytes are files beside the database */
#define SPOOL_HOLD_NS 250000000       /* how long an empty or mktemp-like file is held back */
#define SPOOL_LINGER_NS 1000000000    /* open for so long after its last flush: recovery does not publish it */

struct spool;

struct spool_time {
    int64_t wall_ns; /* since 1970, CLOCK_REALTIME */
    int64_t boot_ns; /* since boot, suspends included, CLOCK_BOOTTIME */
};

/* Who asks. What they may do has been decided before: the engine records it, and checks no permissions. */
struct spool_caller {
    uid_t uid;
    gid_t gid;
};

/* --- opening ------------------------------------------------------------------------------------------------------ */

struct spool_options {
    bool read_only;
    uid_t uid; /* owner of the root, when the spool is made */
    gid_t gid;
    const char *
        boot_id; /* names this boot of the machine: leases of another boot go on by the wall clock, at most one `lease` */
    int64_t reserve_bytes; /* free disk space below which publishing is refused; < 0: 1% of the disk, 1 to 64 MiB */
    int64_t log_bytes;     /* what the log is grown to beforehand; 0: as fits the disk, 16 MiB at most */
    struct db_tap *tap;    /* tests: sees every write to the disk; else NULL */
};

/*
 * Open the spool in the database file `path`, with its payloads in `<path>.payloads/`. Both are made when absent, the
 * directory of `path` too. What a crash left is put in order here: files that were flushed are published or kept as
 * `.recovered.<name>`, unfinished drafts are applied or dropped, orphaned payload files removed.
 * On failure `why` gets one sentence that says what is wrong and what to do.
 * -EBUSY: open elsewhere. -ENOTSUP: a newer version's, or not a spool.
 */
SPOOL_MUST_USE int spool_open(const char *path, const struct spool_options *options, struct spool_time now,
                              struct spool **out, char *why, size_t why_size);
/* Commit, checkpoint, close. Writers and readers must have been closed. NULL is fine. */
void spool_close(struct spool *spool);

/* --- batches ------------------------------------------------------------------------------------------------------ */

/*
 * Say what time it is, open a batch if none is open, and let happen what falls due by then: leases that ran out fail,
 * messages become due, held ones are published, old staged files are removed. Call it before every operation.
 * -EROFS: after a failed write to the disk nothing may change any more (reading calls still work).
 */
SPOOL_MUST_USE int spool_tick(struct spool *spool, struct spool_time now);
/* When spool_tick() next has something to do: boot clock, INT64_MAX for never. Due times are converted with the last tick's
 * clocks, so look again at least every second while the wall clock may be stepped. */
int64_t spool_next_tick_ns(const struct spool *spool);

/* Does the open batch hold a change that is not committed? */
bool spool_changed(const struct spool *spool);
/* Must the answer of the calls since the last spool_promised() wait for stable storage? Clears the mark. */
bool spool_promised(struct spool *spool);
/*
 * Commit the batch. *ticket is what spool_sync() takes.
 * -ENOSPC, -ENOMEM: the whole batch is undone: writers and readers opened in it are freed, those closed in it are open
 * again; its operations may be tried again one by one. -EIO: what was written is unknown; from now on nothing changes.
 */
SPOOL_MUST_USE int spool_commit(struct spool *spool, uint64_t *ticket);
void spool_rollback(struct spool *spool);
/* Any thread. Returns when all that was committed up to `ticket` is on stable storage, or -EIO. */
SPOOL_MUST_USE int spool_sync(struct spool *spool, uint64_t ticket);
/* Has a write to the disk failed for good (the spool is read-only until it is opened anew)? Any thread. */
bool spool_broken(const struct spool *spool);

/* Is the log so long that it should be checkpointed? */
bool spool_wants_checkpoint(const struct spool *spool);
/* Move the log into the database file, between batches. Short when the last ticket was synced before. */
SPOOL_MUST_USE int spool_checkpoint(struct spool *spool);
/* Are payload files waiting to be removed? Remove those whose messages' removal is on stable storage. Both: any thread; the
 * second touches the disk. */
bool spool_wants_reap(struct spool *spool);
void spool_reap(struct spool *spool);

/* --- entries ------------------------------------------------------------------------------------------------------ */

enum spool_kind {
    SPOOL_NONE,
    SPOOL_THE_ROOT,
    SPOOL_QUEUE,
    SPOOL_CLAIMED,
    SPOOL_DEAD,
    SPOOL_WORKER,
    SPOOL_FOLDER,
    SPOOL_LINK,
    SPOOL_MESSAGE,
};

/* The numbers stand in the database. */
enum spool_state {
    SPOOL_STAGED = 1,  /* a file under a staged name */
    SPOOL_OPEN = 2,    /* new, being written */
    SPOOL_DRAFT = 3,   /* new content for a message, without a name: never seen in an entry */
    SPOOL_HELD = 4,    /* has its place, is not offered yet */
    SPOOL_WAITING = 5, /* waiting and due */
    SPOOL_DELAYED = 6, /* waiting for its due time or for the end of a backoff */
    SPOOL_CLAIMED_STATE = 7,
    SPOOL_DEAD_STATE = 8,
};

/* What a name denotes, as `stat` shows it (filesystem rules: due times as mtime, lease end as atime and so on). */
struct spool_entry {
    int64_t number;
    enum spool_kind kind;
    enum spool_state state; /* messages */
    int64_t parent;         /* the directory it stands in */
    int64_t queue;          /* the queue it belongs to; 0 for the root */
    uint32_t mode;          /* type and permission bits */
    uid_t uid;
    gid_t gid;
    int64_t size_bytes; /* of a file being written: so far */
    int64_t atime_ns, mtime_ns, ctime_ns;
};

/* -ENOENT. -ENAMETOOLONG for names over SPOOL_NAME_MAX. `claimed` and `dead` of a queue always exist: when they were removed they
 * are made anew here, under a new number. */
SPOOL_MUST_USE int spool_lookup(struct spool *spool, int64_t directory, const char *name, struct spool_entry *entry);
SPOOL_MUST_USE int spool_stat(struct spool *spool, int64_t number, struct spool_entry *entry);

/*
 * Call `each` for the entries of a directory, in the order of publication (directories first), starting behind `cursor`
 * (0: at the start), until it returns false or a page of 256 is through. Each call gets the cursor that continues behind it.
 * Entries that do not change are met exactly once by a chain of pages, whatever else happens between them. No
 * entry at all: the end. `each` must not call the engine.
 */
typedef bool spool_each(void *context, const char *name, const struct spool_entry *entry, int64_t cursor);
SPOOL_MUST_USE int spool_list(struct spool *spool, int64_t directory, int64_t cursor, spool_each *each, void *context);

/* --- directories and links ---------------------------------------------------------------------------------------- */

/*
 * In the root: a queue. In `claimed`: a worker's directory. In a queue, under a staged name: a folder. Elsewhere -EPERM.
 * -EEXIST (`claimed` and `dead` included). Durable for queues.
 */
SPOOL_MUST_USE int spool_mkdir(struct spool *spool, int64_t parent, const char *name, uint32_t mode,
                               struct spool_caller caller, struct spool_entry *entry);
/* -ENOTEMPTY: a queue with any message, lease, worker directory, dead message, staged entry. -ENOTDIR, -ENOENT. */
SPOOL_MUST_USE int spool_rmdir(struct spool *spool, int64_t parent, const char *name);
/* In a queue or a folder, under a staged name; else -EPERM. `target` is at most 4095 bytes. */
SPOOL_MUST_USE int spool_symlink(struct spool *spool, int64_t parent, const char *name, const char *target,
                                 struct spool_caller caller, struct spool_entry *entry);
/* Copies the target, with a NUL, into `target`, which has room for 4096 bytes. */
SPOOL_MUST_USE int spool_readlink(struct spool *spool, int64_t number, char *target);
/* `link(staged, final)`: publishes a copy of a staged file as it is now, a message of its own. Anything else is -EPERM. Durable.
 * -ETXTBSY: it is above SPOOL_INLINE_MAX and not flushed. A payload of that size is copied here, in the calling thread. */
SPOOL_MUST_USE int spool_link(struct spool *spool, int64_t number, int64_t to, const char *name,
                              struct spool_caller caller, struct spool_entry *entry);

/* Permission bits, owner (-1: unchanged). Set-id bits of files are dropped. The mode of a leased message cannot be widened: 0. */
SPOOL_MUST_USE int spool_chmod(struct spool *spool, int64_t number, uint32_t mode);
SPOOL_MUST_USE int spool_chown(struct spool *spool, int64_t number, uid_t uid, gid_t gid);

/*
 * Times, as utimensat() gives them. On a staged or open file: mtime is recorded. On a waiting message a future mtime delays it.
 * On a claimed one: mtime is the due time for its release; atime now, or explicit: renews (explicit and in the future: sets the end,
 * at most max_lease from now; explicit 0: gives the attempt up as failed). On a worker's directory: the same for each of
 * its leases. On other directories: accepted and ignored.
 */
enum spool_when { SPOOL_OMIT, SPOOL_NOW, SPOOL_AT };
SPOOL_MUST_USE int spool_touch(struct spool *spool, int64_t number, enum spool_when atime, int64_t atime_ns,
                               enum spool_when mtime, int64_t mtime_ns);

/* --- moving: claim, release, acknowledge and the rest --------------------------------------------------------------- */

/*
 * Every rename there is; what it means depends on where the entry is and where it goes (the table is at the head of move.c):
 *
 *     staged -> final name          publish (durable)       waiting -> claimed/W     claim (not durable: a crash releases)
 *     waiting -> staged name        withdraw (durable)      waiting -> dead          bury
 *     claimed -> its queue          release                 claimed -> other queue   forward (durable, one step)
 *     claimed -> dead               bury                    claimed -> claimed/V     hand over
 *     dead -> its queue             requeue                 waiting -> other queue   publish there anew (durable)
 *     claimed/W -> queue            release all of W and remove the directory
 *     queue -> root                 rename of a queue
 *
 * -ENOENT gone; -ETXTBSY being written or held back; -EAGAIN not due or paused; -EEXIST the name is in use there (`no_replace`,
 * `on_conflict=reject`, a lease of that name); -EINVAL `claimed` of another queue; -EPERM what the rules forbid; -EDQUOT, -EFBIG,
 * -ENOSPC the destination's limits. Nothing has happened then. -EXDEV is never returned.
 * *elsewhere (may be NULL) becomes true when the entry is now not at (`to`, `to_name`): numbered, returned home, or gone.
 */
SPOOL_MUST_USE int spool_move(struct spool *spool, int64_t from, const char *from_name, int64_t to, const char *to_name,
                              bool no_replace, struct spool_caller caller, bool *elsewhere);
/*
 * A message's removal: cancels it when waiting, acknowledges it when claimed, discards it when dead, drops it when staged
 * or open. Durable. -ENOENT; -EISDIR for directories. Readers that are open on it go on reading.
 */
SPOOL_MUST_USE int spool_unlink(struct spool *spool, int64_t directory, const char *name);
/* Is this entry a file that was flushed and not written since, whose last close may be on its way? A claim that
 * got -ETXTBSY is worth trying again in a moment. */
bool spool_is_closing(struct spool *spool, int64_t directory, const char *name);

/* --- writing -------------------------------------------------------------------------------------------------------- */

/*
 * A writer is one open-for-writing of a file. Several writers of the same file share its content. The order of calls:
 *
 *     create / open                                                  owner's thread
 *     admit, then write or resize, as often as you like              admit: owner's thread; write, resize: see blocks
 *     [settle, then] store      at each flush                        settle: any thread, touches the disk; store: owner's
 *     close                                                          owner's thread
 *
 * Content up to SPOOL_INLINE_MAX is kept in memory (all of it within a common bound) and its calls do not block. Beyond, it is
 * a file beside the database and write, resize, read and settle touch the disk: when spool_writer_blocks() says so after admit,
 * make those calls outside the owner's thread, one after the other for the same spool_writer_key(), in the order of admission.
 */
struct spool_writer;

/*
 * A new file, open for writing. In a queue (or a folder), else -EPERM. -EEXIST: the name is taken and `exclusive`, or claimed and dead
 * messages hold it (on_conflict=reject). -ESTALE: it is taken, and not `exclusive`: look it up again, and open it.
 * -EDQUOT max_waiting, -ENOSPC the disk's reserve.
 */
SPOOL_MUST_USE int spool_create(struct spool *spool, int64_t directory, const char *name, uint32_t mode, bool exclusive,
                                struct spool_caller caller, struct spool_entry *entry, struct spool_writer **out);
/*
 * Open an existing file for writing. Nothing happens to a message before the first write or truncation, unless `truncate`.
 * `append`: every write goes to the end, and edits.
 * -ESTALE (with `truncate`, on_conflict=keep): the message now has a numbered name, and a new empty open file stands under the
 * old name, *entry describes it: open that. spool_undo_overwrite() takes this back.
 * -EEXIST: on_conflict=reject. -EPERM: dead messages.
 */
SPOOL_MUST_USE int spool_open_writer(struct spool *spool, int64_t number, bool truncate, bool append,
                                     struct spool_caller caller, struct spool_entry *entry, struct spool_writer **out);
/* Give `number` back the name that `placeholder` has, and remove that, if it is still empty and was never opened. Else -ENOENT. */
SPOOL_MUST_USE int spool_undo_overwrite(struct spool *spool, int64_t number, int64_t placeholder);

/*
 * May these bytes be written (resize: may it become `length` long)? *offset is where they go: moved to the end for `append`. The first
 * admission turns a waiting message into an overwritten or edited one, a leased one into a checkpoint.
 * -ESTALE the message was claimed, acknowledged, or the lease is lost; -EFBIG; -ENOSPC; -EEXIST. After a failed write or admission
 * the content is incomplete: store and close know it and do not publish it.
 */
SPOOL_MUST_USE int spool_admit_write(struct spool_writer *writer, size_t length, int64_t *offset);
SPOOL_MUST_USE int spool_admit_resize(struct spool_writer *writer, int64_t length);
bool spool_writer_blocks(const struct spool_writer *writer);
int64_t spool_writer_key(const struct spool_writer *writer);
/* The bytes themselves, as admitted. 0 or a negative errno: a short write is an error. */
SPOOL_MUST_USE int spool_write(struct spool_writer *writer, const void *bytes, size_t length, int64_t offset);
SPOOL_MUST_USE int spool_resize(struct spool_writer *writer, int64_t length);

/* Has this writer, or one it shares the file with, written something? Then what it reads is that: others see a message's new content
 * only from its last close on. Where and in which order: as for writing. */
bool spool_has_written(const struct spool_writer *writer);
SPOOL_MUST_USE ssize_t spool_read_back(struct spool_writer *writer, void *bytes, size_t length, int64_t offset);

/* Is there anything that store would have to save? */
bool spool_writer_dirty(const struct spool_writer *writer);
/* Bring a content that is a file to stable storage (file, then directory), and sum it up. Does nothing for content in memory. */
SPOOL_MUST_USE int spool_settle(struct spool_writer *writer);
/* Record the content as it is: when this is durable, a crash cannot lose it. A promise, except under a staged name and (`last_here`
 * false) for a file that nothing was written to while the closing process has it open elsewhere. */
SPOOL_MUST_USE int spool_store(struct spool_writer *writer, bool last_here);
/*
 * Close. `killed`: the one who wrote it was killed by a signal. With the last writer of a file: a new file is published, held back,
 * staged, or kept as `.killed.<name>`; a draft takes effect. A dirty writer must have been settled and stored, else what is
 * dirty is stored here (content in memory only). The writer is freed, on failure too.
 */
int spool_close_writer(struct spool_writer *writer, bool killed);

/* --- reading -------------------------------------------------------------------------------------------------------- */

/* A reader keeps the content it opened on readable, whatever becomes of the message. */
struct spool_reader;

/* Content in the database is verified against its checksum here: -EIO, and the message is moved to `dead`. */
SPOOL_MUST_USE int spool_open_reader(struct spool *spool, int64_t number, struct spool_reader **out);
bool spool_reader_blocks(const struct spool_reader *reader);
int64_t spool_reader_key(const struct spool_reader *reader); /* 0: reads need no order among each other */
/* Returns the bytes read, 0 at the end. A file read from its start to its end is verified on the way: -EIO at the end. */
SPOOL_MUST_USE ssize_t spool_read(struct spool_reader *reader, void *bytes, size_t length, int64_t offset);
void spool_close_reader(struct spool_reader *reader);

/* --- settings and counters ------------------------------------------------------------------------------------------ */

enum spool_setting {
    SPOOL_LEASE,
    SPOOL_MAX_LEASE,
    SPOOL_MAX_ATTEMPTS,
    SPOOL_RETRY_DELAY,
    SPOOL_RETRY_MAX,
    SPOOL_ON_CONFLICT,
    SPOOL_MAX_WAITING,
    SPOOL_MAX_SIZE,
    SPOOL_PARTIAL,
    SPOOL_PARTIAL_TTL,
    SPOOL_PAUSED,
    SPOOL_SETTINGS, /* how many there are */
};
#define SPOOL_SETTING_MAX 4096 /* bytes of a value's text */

/* The name, its default's canonical text and one line of help. */
const char *spool_setting_name(enum spool_setting setting);
const char *spool_setting_default(enum spool_setting setting);
const char *spool_setting_help(enum spool_setting setting);
/* SPOOL_SETTINGS when there is none of that name. */
enum spool_setting spool_setting_find(const char *name);

/* The value in force for a queue (or the root, whose values are the queues' defaults), canonical, with a newline and a NUL. */
SPOOL_MUST_USE int spool_get_setting(struct spool *spool, int64_t queue, enum spool_setting setting,
                                     char text[SPOOL_SETTING_MAX]);
/* -EINVAL a bad value, -E2BIG too long; the old one stays. Surrounding white space is ignored. Durable. */
SPOOL_MUST_USE int spool_set_setting(struct spool *spool, int64_t queue, enum spool_setting setting, const char *text,
                                     size_t length);
/* Back to the inherited or default value. Durable. */
SPOOL_MUST_USE int spool_reset_setting(struct spool *spool, int64_t queue, enum spool_setting setting);

enum spool_stat {
    SPOOL_STAT_WAITING, /* = ready + delayed + blocked */
    SPOOL_STAT_READY,
    SPOOL_STAT_DELAYED,
    SPOOL_STAT_BLOCKED,
    SPOOL_STAT_CLAIMED,
    SPOOL_STAT_DEAD,
    SPOOL_STAT_STAGED,
    SPOOL_STAT_OLDEST_READY_SECONDS,
    SPOOL_STAT_BYTES,
    SPOOL_STAT_PUBLISHED, /* from here on: since the queue was made */
    SPOOL_STAT_ACKNOWLEDGED,
    SPOOL_STAT_RELEASED,
    SPOOL_STAT_FAILED,
    SPOOL_STAT_BURIED,
    SPOOL_STAT_CANCELLED,
    SPOOL_STAT_STAGED_REMOVED,
    SPOOL_STATS,
};
const char *spool_stat_name(enum spool_stat stat);
/* Of a queue, or of all of them for the root. Exact; the cost does not depend on what is in them. */
SPOOL_MUST_USE int spool_stats(struct spool *spool, int64_t queue, int64_t values[SPOOL_STATS]);

/* Space on the disk under the database, for statfs. Any thread. */
SPOOL_MUST_USE int spool_space(struct spool *spool, int64_t *total_bytes, int64_t *free_bytes);

/* --- checking -------------------------------------------------------------------------------------------------------- */

/*
 * Verify every invariant of the spool in the database file `path`, which nobody may have open: the database's own integrity, payloads
 * against their checksums, states and names, counters against contents, payload files without messages and the reverse. Changes
 * nothing. Calls `report` with one sentence for each violation. Returns how many there are, or a negative errno and `why`.
 */
SPOOL_MUST_USE int spool_check(const char *path, void (*report)(void *context, const char *sentence), void *context,
                               char *why, size_t why_size);

#endif
