-- The whole database. Times are nanoseconds since 1970 (_ns) or since boot (_boot_ns). Names are bytes, hence BLOB.

-- One row: what belongs to the spool as a whole.
CREATE TABLE spool (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    numbers  INTEGER NOT NULL,          -- every number given so far is below this; raised in blocks, on disk before use
    boot_id  BLOB NOT NULL              -- the boot whose clock the _boot_ns columns are in
) STRICT;

-- Directories of every kind, and staged symbolic links. The root is number 1.
CREATE TABLE directory (
    number   INTEGER PRIMARY KEY,
    kind     INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 7),      -- enum spool_kind
    parent   INTEGER NOT NULL,          -- 0 for the root
    name     BLOB NOT NULL,
    mode     INTEGER,                   -- permission bits; mode, uid and gid are NULL in a `claimed` or `dead` that
    uid      INTEGER,                   -- follows its queue
    gid      INTEGER,
    mtime_ns INTEGER NOT NULL,          -- last change of the entries in it
    ctime_ns INTEGER NOT NULL,
    target   BLOB,                      -- of a symbolic link
    -- Counters of a queue; in the root's row those of all queues, removed ones included. Now:
    staged INTEGER NOT NULL DEFAULT 0,  ready INTEGER NOT NULL DEFAULT 0,     delayed INTEGER NOT NULL DEFAULT 0,
    claimed INTEGER NOT NULL DEFAULT 0, dead INTEGER NOT NULL DEFAULT 0,      bytes INTEGER NOT NULL DEFAULT 0,
    -- since it was made:
    published INTEGER NOT NULL DEFAULT 0, acknowledged INTEGER NOT NULL DEFAULT 0, released INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,    buried INTEGER NOT NULL DEFAULT 0,       cancelled INTEGER NOT NULL DEFAULT 0,
    staged_removed INTEGER NOT NULL DEFAULT 0,
    UNIQUE (parent, name)
) STRICT;

CREATE INDEX directory_listing ON directory (parent); -- and, within it, by number

-- Values of settings that were set by hand, in canonical text; all others are inherited or defaults.
CREATE TABLE setting (
    directory INTEGER NOT NULL,         -- the queue, or the root for the defaults of all queues
    name      BLOB NOT NULL,
    value     BLOB NOT NULL,
    PRIMARY KEY (directory, name)
) STRICT, WITHOUT ROWID;

-- Every file: staged, being written, waiting, leased, dead; and drafts, the new content of one of them.
CREATE TABLE message (
    number       INTEGER PRIMARY KEY,   -- never given twice
    state        INTEGER NOT NULL CHECK (state BETWEEN 1 AND 8), -- enum spool_state
    queue        INTEGER NOT NULL,      -- the queue it belongs to, whichever directory it stands in
    directory    INTEGER,               -- where its path is now; NULL for a draft
    name         BLOB,                  -- its name there; NULL for a draft
    home_name    BLOB,                  -- its own name, when it stands under another one while leased
    place        INTEGER NOT NULL,      -- its place in the order; until publication its number
    due_ns       INTEGER NOT NULL,      -- waiting, leased: not before this time; staged: removed at this time; 0: none
    end_ns       INTEGER NOT NULL,      -- wall time of what end_boot_ns says, for people; dead: when it died
    end_boot_ns  INTEGER,               -- leased: end of the lease; delayed: of the backoff; held: of the hold
    attempts     INTEGER NOT NULL,      -- claims that were not released
    holder       INTEGER,               -- leased: uid of the claimer
    uid          INTEGER NOT NULL,      -- the writer's
    gid          INTEGER NOT NULL,
    mode         INTEGER NOT NULL,      -- permission bits as the writer left them
    mtime_ns     INTEGER NOT NULL,
    ctime_ns     INTEGER NOT NULL,
    published_ns INTEGER NOT NULL,      -- 0: not yet
    size         INTEGER NOT NULL,      -- bytes of payload
    payload      INTEGER,               -- its number: a row of `payload`, or a file; NULL: empty
    in_file      INTEGER NOT NULL CHECK (in_file IN (0, 1)),
    hash         INTEGER NOT NULL,      -- XXH3 of the payload
    seal         INTEGER NOT NULL,      -- XXH3 of hash, size, number, queue, place and own name
    flushed      INTEGER,               -- open, draft: number of its last flush, in their order; NULL: never flushed;
                                        -- leased: number of the claim
    unsure       INTEGER NOT NULL,      -- open, draft: written to after that flush, or open for long since
    target       INTEGER,               -- draft: the message whose new content this is
    draft_kind   INTEGER,               -- draft: enum draft_kind
    reason       BLOB,                  -- dead: why
    priority     INTEGER NOT NULL,      -- -1000 to 1000, higher first
    ttl_ns       INTEGER,               -- time to live as it was set on the message; NULL: by the queue's setting
    expires_ns   INTEGER NOT NULL,      -- waiting: not delivered from this time on; 0: never
    claimed_ns   INTEGER NOT NULL,      -- leased: since when; else 0
    held         INTEGER NOT NULL CHECK (held IN (0, 1)), -- leased: for as long as its worker keeps `.hold` open
    attributes   INTEGER NOT NULL,      -- how many rows of `attribute` it has
    UNIQUE (directory, name),           -- one live path for each, and one lease for each path
    CHECK ((state = 3) = (directory IS NULL)),
    CHECK ((state = 3) = (target IS NOT NULL)),
    CHECK ((state = 7) = (holder IS NOT NULL)),
    CHECK (state NOT IN (4, 7) OR end_boot_ns IS NOT NULL),
    CHECK ((payload IS NULL) = (size = 0)),
    CHECK (priority BETWEEN -1000 AND 1000),
    CHECK (state = 7 OR (claimed_ns = 0 AND held = 0))
) STRICT;

CREATE INDEX message_listing ON message (directory, place);
CREATE INDEX message_ready ON message (queue, place) WHERE state = 5;
CREATE INDEX message_ends ON message (end_boot_ns) WHERE end_boot_ns IS NOT NULL;
CREATE INDEX message_due ON message (due_ns) WHERE due_ns > 0 AND state IN (1, 6);
CREATE INDEX message_expires ON message (expires_ns) WHERE expires_ns > 0 AND state IN (5, 6);
CREATE INDEX message_held ON message (directory) WHERE held = 1;
CREATE INDEX message_written ON message (state) WHERE state IN (2, 3);
CREATE INDEX message_file ON message (payload) WHERE in_file = 1;

-- Headers and notes of messages: extended attributes that are kept as they were set.
CREATE TABLE attribute (
    message INTEGER NOT NULL,
    name    BLOB NOT NULL,
    value   BLOB NOT NULL,
    PRIMARY KEY (message, name)
) STRICT, WITHOUT ROWID;

-- Payloads up to 128 KiB. Larger ones are files named by the payload's number.
CREATE TABLE payload (
    number INTEGER PRIMARY KEY,
    bytes  BLOB NOT NULL
) STRICT;

-- Payloads that nobody refers to any more but a reader had open: removed with the last reader, or at the next start.
CREATE TABLE doomed (
    payload INTEGER PRIMARY KEY
) STRICT;
