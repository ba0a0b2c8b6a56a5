/*
 * engine.h - what the files of core/ share, and nobody else sees.
 *
 * Who may call whom, from the ground up:
 *
 *     path   db   name   duration   table        payload, content
 *     batch    the open transaction, numbers, what a rollback undoes, what was promised
 *     directory, settings, message, taken        what there is: rows, counters, names
 *     draft, describe, removal                   what is being written, how it looks, how it goes
 *     publish, lease, close                      what happens to a file and to a message
 *     entry, tree, move, reader, writer, stats   the public calls
 *     commit, tick, recover, check, spool        the batch's end, time, the beginning and the end
 *
 * Functions return 0 or a negative errno. Those that change something are called with a batch open (spool__change()) and check
 * everything before they change anything. When a statement fails all the same, the batch is poisoned and will be rolled back.
 */
#ifndef SPOOL_ENGINE_H
#define SPOOL_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "content.h"
#include "db.h"
#include "payload.h"
#include "spool.h"
#include "table.h"

#define SECOND_NS INT64_C(1000000000)
#define SPOOL_SCHEMA_VERSION 2
#define NUMBER_BLOCK 65536 /* numbers are reserved on the disk in blocks of this size */

/* --- settings (settings.c) ---------------------------------------------------------------------------------------- */

enum on_conflict { CONFLICT_KEEP, CONFLICT_REPLACE, CONFLICT_REJECT };

struct settings {
    int64_t value[SPOOL_SETTINGS]; /* ns, counts, bytes, enum on_conflict */
    char *partial;                 /* the patterns, separated by single spaces; owned */
};

/* --- directories (directory.c) ------------------------------------------------------------------------------------ */

enum counter {
    COUNT_STAGED,
    COUNT_READY,
    COUNT_DELAYED,
    COUNT_CLAIMED,
    COUNT_DEAD,
    COUNT_BYTES,
    COUNT_PUBLISHED,
    COUNT_ACKNOWLEDGED,
    COUNT_RELEASED,
    COUNT_FAILED,
    COUNT_BURIED,
    COUNT_CANCELLED,
    COUNT_STAGED_REMOVED,
    COUNTERS,
};

/* A directory as it is in the open batch. Counters and mtime reach the database once a batch, at its commit. Never keep a
 * pointer across calls of spool.h. */
struct directory {
    struct table_entry entry; /* key: its number */
    enum spool_kind kind;
    int64_t parent;
    char name[SPOOL_NAME_MAX + 1];
    bool follows; /* `claimed` and `dead`: owner and mode are derived from the queue's */
    uint32_t mode;
    uid_t uid;
    gid_t gid;
    int64_t mtime_ns, ctime_ns;
    int64_t count[COUNTERS];
    bool dirty;
    struct directory *next_dirty;
    struct settings *settings; /* of a queue or the root; NULL until asked for */
};

int spool__directory(struct spool *spool, int64_t number, struct directory **out);                        /* -ENOENT */
int spool__find_directory(struct spool *spool, int64_t parent, const char *name, struct directory **out); /* -ENOENT */
/* `claimed` (SPOOL_CLAIMED) or `dead` of a queue; made anew when it was removed. */
int spool__special(struct spool *spool, int64_t queue, enum spool_kind kind, struct directory **out);
/* The queue that a directory belongs to; 0 for the root. */
int64_t spool__queue_of(struct spool *spool, const struct directory *directory);
/* `mode` < 0: it follows its queue. `target`: of a symbolic link, else NULL. */
int spool__insert_directory(struct spool *spool, enum spool_kind kind, int64_t parent, const char *name, int64_t mode,
                            struct spool_caller caller, const char *target, struct directory **out);
/* Mode and owner as they are in force. */
void spool__directory_access(struct spool *spool, const struct directory *directory, uint32_t *mode, uid_t *uid,
                             gid_t *gid);
int spool__chmod_directory(struct spool *spool, struct directory *directory, uint32_t mode);
int spool__chown_directory(struct spool *spool, struct directory *directory, uid_t uid, gid_t gid);
int spool__delete_directory(struct spool *spool, struct directory *directory);
int spool__move_directory(struct spool *spool, struct directory *directory, int64_t parent, const char *name);
int spool__directory_is_empty(struct spool *spool, const struct directory *directory, bool *empty);
/* The entries of the directory have changed. */
void spool__touch_directory(struct spool *spool, int64_t number);
/* Add to a counter of a queue, and of the root. */
void spool__count(struct spool *spool, int64_t queue, enum counter counter, int64_t amount);
int spool__write_directories(struct spool *spool); /* before a commit */
void spool__forget_directories(struct spool *spool);
int spool__settings(struct spool *spool, int64_t queue, const struct settings **out);
void spool__forget_settings(struct spool *spool);
void spool__free_settings(struct settings *settings);
/* Is this what a row of `setting` can hold? 0; -ENOENT: there is no setting of that name; -EINVAL: not that value. */
int spool__check_setting(const void *name, size_t name_length, const void *value, size_t value_length);

/* --- names (name.c) ----------------------------------------------------------------------------------------------- */

bool spool__name_is_staged(const char *name, const char *patterns);
/* `order.xml`, 2 -> `order~2.xml`, shortened to fit. */
void spool__number_name(const char *name, int64_t number, char out[SPOOL_NAME_MAX + 1]);
/* `.killed.` + name, shortened to fit. */
void spool__prefix_name(const char *prefix, const char *name, char out[SPOOL_NAME_MAX + 1]);
int spool__name_is_valid(const char *name); /* 0, -ENAMETOOLONG, -EINVAL */

/* --- messages (message.c) ----------------------------------------------------------------------------------------- */

/* The numbers stand in the database. */
enum draft_kind {
    WRITES_NEW,        /* a file that is not a message yet */
    WRITES_EDIT,       /* a waiting message, changed on a copy */
    WRITES_REPLACE,    /* a waiting message, from the start */
    WRITES_CHECKPOINT, /* a lease */
    WRITES_APART,      /* a message of its own, by the second who opened a new file to write it from the start */
};

struct message {
    int64_t number;
    enum spool_state state;
    int64_t queue;
    int64_t directory; /* 0: a draft */
    char name[SPOOL_NAME_MAX + 1];
    char home_name[SPOOL_NAME_MAX + 1];         /* empty: the same as name */
    int64_t place, due_ns, end_ns, end_boot_ns; /* end_boot_ns 0: none */
    int64_t attempts;
    int64_t holder; /* -1: none */
    uid_t uid;
    gid_t gid;
    uint32_t mode;
    int64_t mtime_ns, ctime_ns, published_ns;
    struct content_summary content; /* size, payload, in_file, hash */
    int64_t seal;
    int64_t flushed; /* 0: never; leased: number of the claim */
    bool unsure;
    int64_t target; /* 0: none */
    enum draft_kind draft_kind;
    char reason[160];
    int64_t priority;
    int64_t ttl_ns;     /* as set on the message; 0: by the queue's setting; INT64_MAX: never ends */
    int64_t expires_ns; /* waiting: not delivered from this time on; 0: never */
    int64_t claimed_ns; /* leased: since when */
    bool held;          /* leased: for as long as its worker keeps `.hold` open */
    int64_t attributes; /* how many rows of `attribute` it has */
};

int spool__message(struct spool *spool, int64_t number, struct message *out);                           /* -ENOENT */
int spool__find_message(struct spool *spool, int64_t directory, const char *name, struct message *out); /* -ENOENT */
int spool__read_message(struct db_row *row, struct message *out);
/* Write a message, adjusting counters, directories and the seal. `old` is what the database holds. */
int spool__insert_message(struct spool *spool, struct message *message);
int spool__update_message(struct spool *spool, const struct message *old, struct message *message);
int spool__delete_message(struct spool *spool, const struct message *message); /* its payload too */
int64_t spool__seal(const struct message *message);
bool spool__is_published(enum spool_state state); /* waiting, delayed, claimed, dead */
static inline bool spool__is_waiting(enum spool_state state) {
    return state == SPOOL_WAITING || state == SPOOL_DELAYED;
}
static inline const char *spool__own_name(const struct message *message) {
    return message->home_name[0] ? message->home_name : message->name;
}

/* --- looks (describe.c) ----------------------------------------------------------------------------------------------- */

void spool__describe_directory(struct spool *spool, const struct directory *directory, struct spool_entry *entry);
void spool__describe_message(struct spool *spool, const struct message *message, struct spool_entry *entry);

/* --- names where they stand (taken.c) --------------------------------------------------------------------------------- */

/* Is `name` in `directory` a staged one? */
int spool__is_staged(struct spool *spool, int64_t directory, const char *name, bool *staged);
/* Does anything stand under that name there, but for the message `number`? 1, 0 or a negative errno. */
int spool__is_taken(struct spool *spool, int64_t directory, const char *name, int64_t number);
/* A numbered form of `name` that is free, and is not a staged one unless `name` is. */
int spool__free_name(struct spool *spool, int64_t directory, const char *name, char out[SPOOL_NAME_MAX + 1]);
/* `name` when it is free in `directory` (or `number` has it), else a numbered form of it that is, and is not a staged one. */
int spool__fit_name(struct spool *spool, int64_t directory, const char *name, int64_t number,
                    char out[SPOOL_NAME_MAX + 1]);

/* --- removal (removal.c) ---------------------------------------------------------------------------------------------- */

/* What is being written to a removed message goes along. */
int spool__acknowledge(struct spool *spool, const struct message *message);
int spool__cancel(struct spool *spool, const struct message *message); /* or discard, or drop: by its state */
int spool__remove_directory(struct spool *spool, struct directory *directory);

/* --- publishing (publish.c) ----------------------------------------------------------------------------------------- */

/* May a message of `bytes` be published in the queue now? -EDQUOT, -EFBIG, -ENOSPC (when it needs new space on the disk). */
int spool__has_room(struct spool *spool, int64_t queue, int64_t bytes, bool needs_space);
/*
 * Make `name` in the queue or folder free, for the message `number`, by the queue's on_conflict: what has it gets a numbered name
 * (keep), or is removed and *place becomes its place (replace), or the answer is -EEXIST (reject). What is staged is replaced.
 */
int spool__take_name(struct spool *spool, int64_t directory, const char *name, int64_t number, int64_t *place);
/*
 * Make a written file what its name makes it: staged, or waiting, or (`hold`) held back for a moment. *message has its path already, and
 * its place when it replaces another or had one, else `place` is 0.
 */
int spool__publish(struct spool *spool, const struct message *old, struct message *message, int64_t place, bool hold);
/* Waiting or delayed, whichever due time and backoff make it. Forgets a backoff that is over. */
void spool__let_wait(const struct spool *spool, struct message *message);

/* --- leases (lease.c) --------------------------------------------------------------------------------------------- */

int spool__claim(struct spool *spool, const struct message *message, const struct directory *to, const char *name,
                 struct spool_caller caller);
int spool__release(struct spool *spool, const struct message *message, const char *name);
int spool__fail(struct spool *spool, const struct message *message, const char *why);
int spool__bury(struct spool *spool, const struct message *message, const char *name, const char *why);
int spool__requeue(struct spool *spool, const struct message *message, const char *name);
int spool__forward(struct spool *spool, const struct message *message, int64_t queue, const char *name,
                   struct spool_caller caller);
int spool__hand_over(struct spool *spool, const struct message *message, const struct directory *to, const char *name);
int spool__renew(struct spool *spool, const struct message *message, int64_t end_ns); /* 0: by the setting */

/* --- what is being written (draft.c) ------------------------------------------------------------------------------- */

/*
 * A file's new content, shared by its writers. A new file's draft is the file's own row (state OPEN). A draft of an existing message
 * gets a row of its own (state DRAFT) when it is first stored.
 */
struct draft {
    struct table_entry entry; /* key: the file that its writers opened; several drafts may have the same */
    struct spool *spool;
    int64_t number;         /* of its row: the file's own, or the draft's */
    struct content content; /* grows and shrinks at once, whatever becomes of the batch */
    atomic_int failure;     /* a write failed, in any thread: the content is not whole */
    struct draft_state {
        enum draft_kind kind;
        int writers;
        int64_t owner;  /* serial of the writer that wrote first; 0: none has */
        bool begun;     /* something was written, or it was truncated */
        bool dirty;     /* there is something that is not stored */
        bool stored;    /* its row holds a content of it */
        bool unsure;    /* and says that more came after that */
        bool exclusive; /* made with O_EXCL */
        bool timed;     /* its mtime was set after the last write, and stays */
        bool gone;      /* the file was removed: nothing will come of it */
        bool killed;
        bool finished; /* its last writer has closed: it goes with the batch, in which the file may be opened again */
        uint32_t mode; /* replace, apart: of the message that it becomes */
        int error;     /* -ESTALE: it lost its message; else why a write was refused */
        int64_t stored_boot_ns;
        uint64_t ticket; /* of the batch that stored it */
    } state;
    struct spool_caller caller;
    int64_t queue;
    char name[SPOOL_NAME_MAX + 1]; /* replace, apart: what it is called if it becomes a message of its own */
};

/* The draft of that kind that the file has; of replacements the newest. NULL: none. A new file's shows instead of its row. */
struct draft *spool__draft_of(struct spool *spool, int64_t file, enum draft_kind kind);
/* How many of the ready messages of a queue (the root: of all) are being edited, so that they cannot be claimed. */
int spool__count_edited(struct spool *spool, int64_t queue, int64_t *count);
/* Begin one, empty or with the content of `from`. */
int spool__begin_draft(struct spool *spool, enum draft_kind kind, int64_t file, int64_t number,
                       const struct message *from, struct spool_caller caller, struct draft **out);
int spool__save_draft(struct draft *draft);                /* before its state changes: a rollback brings that back */
int spool__admit_draft(struct draft *draft, int64_t size); /* the content becomes `size` long, or stays longer */
int spool__draft_error(const struct draft *draft);
int spool__store_draft(struct draft *draft, bool last_here);
int spool__mark_unsure(struct draft *draft); /* more comes after what is stored */
/* What is on the way from memory into the database: the bytes into a payload row, its summary into a message's row, whose old
 * payload goes. */
int spool__record_content(struct draft *draft, struct content_summary *summary);
int spool__replace_content(struct spool *spool, struct message *message, const struct content_summary *content,
                           bool timed);       /* its mtime was set by hand, and stays */
int spool__lose_draft(struct draft *draft);   /* nothing comes of it: its row goes */
int spool__end_draft(struct draft *draft);    /* it is freed at the commit */
int spool__finish_draft(struct draft *draft); /* after its last writer */
/* The file is removed: what is being written to it goes with it. */
int spool__drop_drafts(struct spool *spool, int64_t file);
/* The queue is removed, and what would have been published in it instead of messages that are gone. */
int spool__drop_replacements(struct spool *spool, int64_t queue);
/* The lease ends: its checkpoints are lost. */
int spool__end_checkpoints(struct spool *spool, int64_t file);
/* Can a draft of this kind become the content of a message in that state? */
bool spool__draft_fits(enum draft_kind kind, enum spool_state target);
/* Give the content of `source` to `target`, whose old one goes. The row of `source`, if it has one, goes too. */
int spool__apply_draft(struct spool *spool, const struct message *target, const struct content_summary *content,
                       int64_t draft_row);
/* What is in a payload file by now; one that is not there is empty. */
int spool__measure(struct spool *spool, struct content_summary *content);
/* A copy of a payload, with a number of its own. A file is copied here, and flushed. */
int spool__copy_content(struct spool *spool, const struct content_summary *from, struct content_summary *to);
void spool__forget_drafts(struct spool *spool); /* at the end: without a trace in the database */
/* Mark what has been open for too long after its last flush. *next_boot_ns: when to look again. */
int spool__mark_lingering(struct spool *spool, int64_t *next_boot_ns);

/* --- time (tick.c), recovery (recover.c) ---------------------------------------------------------------------------- */

int spool__recover(struct spool *spool, const char *boot_id);
int spool__pass_time(struct spool *spool);

/* --- the spool and its batch (spool.c, batch.c) ---------------------------------------------------------------------- */

struct undo {
    void (*commit)(void *what);   /* NULL: nothing to do */
    void (*rollback)(void *what); /* called in reverse order */
    void *what;
};

struct spool {
    struct db *db;
    struct payloads payloads;
    bool read_only;
    struct spool_time now;

    bool changed;  /* the batch holds a change */
    bool promised; /* the last call's answer needs stable storage */
    int poison;    /* a statement failed half-way: the batch will be rolled back */
    struct undo *undo;
    size_t undos, undo_capacity;

    int64_t next_number;      /* to be given */
    int64_t numbers_end;      /* numbers below this may be given: that is on stable storage */
    int64_t numbers_reserved; /* and this is what the database says */
    uint64_t reserve_ticket;  /* of the batch that said it; 0: none outstanding */

    int64_t next_end_boot_ns, next_due_ns, next_linger_boot_ns; /* what the tick waits for; INT64_MAX: nothing */

    struct table directories;
    struct directory *dirty_directories;
    struct table drafts;
    int64_t content_memory_bytes; /* of all drafts */
    int64_t writer_serial;        /* of the newest writer */

    int64_t reserve_bytes;
    int64_t space_checked_boot_ns; /* 0: never */
    int64_t space_free_bytes;
    int64_t log_limit_bytes;

    struct reader_cache {
        int64_t payload; /* 0: empty */
        void *bytes;
        size_t length;
    } cache; /* the last payload read from the database */
};

/* Begin the transaction if none is open. -EROFS, -EIO. Every operation that changes something begins with this. */
int spool__change(struct spool *spool);
/* db_run() that poisons the batch when it fails. 0 or a negative errno. */
#define spool__run(spool, query, ...) spool__ran(spool, db_run((spool)->db, query, __VA_ARGS__))
int spool__ran(struct spool *spool, int result);
int64_t spool__number(struct spool *spool); /* never given before; or a negative errno */
int spool__later(struct spool *spool, void (*commit)(void *), void (*rollback)(void *), void *what);
void spool__promise(struct spool *spool);
uint64_t spool__ticket(const struct spool *spool);         /* what the open batch's commit will give */
void spool__wake_at(struct spool *spool, int64_t boot_ns); /* a boot-clock end has been set */
void spool__due_at(struct spool *spool, int64_t wall_ns);  /* a due time has been set */
/* Nobody refers to this payload any more. */
int spool__doom(struct spool *spool, const struct content_summary *content);
/* Free space on the disk, looked up at most ten times a second. */
int64_t spool__free_bytes(struct spool *spool);

#endif
