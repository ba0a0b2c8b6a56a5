-- Every statement of the engine but the schema. A statement begins after its name and ends before the next name. A test
-- reads the plan of each: a scan or a temporary b-tree fails unless the lines above the statement say `scan:` and why.

-- name: spool_make
INSERT INTO spool (one, numbers, boot_id) VALUES (1, ?1, ?2)

-- name: spool_get
SELECT numbers, boot_id FROM spool WHERE one = 1

-- name: spool_reserve
UPDATE spool SET numbers = ?1 WHERE one = 1

-- name: spool_set_boot
UPDATE spool SET boot_id = ?1 WHERE one = 1

-- name: directory_insert
INSERT INTO directory (number, kind, parent, name, mode, uid, gid, mtime_ns, ctime_ns, target)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9)

-- name: directory_get
SELECT number, kind, parent, name, mode, uid, gid, mtime_ns, ctime_ns, staged, ready, delayed, claimed, dead, bytes,
       published, acknowledged, released, failed, buried, cancelled, staged_removed
FROM directory WHERE number = ?1

-- name: directory_find
SELECT number FROM directory WHERE parent = ?1 AND name = ?2

-- name: directory_list
SELECT number FROM directory WHERE parent = ?1 AND number > ?2 ORDER BY number LIMIT ?3

-- name: directory_any
SELECT 1 FROM directory WHERE parent = ?1 LIMIT 1

-- name: directory_update
UPDATE directory SET parent = ?2, name = ?3, mode = ?4, uid = ?5, gid = ?6, mtime_ns = ?7, ctime_ns = ?8 WHERE number = ?1

-- name: directory_count
UPDATE directory SET mtime_ns = ?2, ctime_ns = ?3, staged = ?4, ready = ?5, delayed = ?6, claimed = ?7, dead = ?8,
       bytes = ?9, published = ?10, acknowledged = ?11, released = ?12, failed = ?13, buried = ?14, cancelled = ?15,
       staged_removed = ?16
WHERE number = ?1

-- name: directory_delete
DELETE FROM directory WHERE number = ?1

-- name: directory_target
SELECT target FROM directory WHERE number = ?1 AND kind = 7

-- name: setting_get
SELECT value FROM setting WHERE directory = ?1 AND name = ?2

-- name: setting_put
INSERT INTO setting (directory, name, value) VALUES (?1, ?2, ?3)
ON CONFLICT (directory, name) DO UPDATE SET value = excluded.value

-- name: setting_delete
DELETE FROM setting WHERE directory = ?1 AND name = ?2

-- name: setting_delete_all
DELETE FROM setting WHERE directory = ?1

-- name: message_insert
INSERT INTO message (number, state, queue, directory, name, home_name, place, due_ns, end_ns, end_boot_ns, attempts,
    holder, uid, gid, mode, mtime_ns, ctime_ns, published_ns, size, payload, in_file, hash, seal, flushed, unsure,
    target, draft_kind, reason)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
    ?25, ?26, ?27, ?28)

-- name: message_update
UPDATE message SET state = ?2, queue = ?3, directory = ?4, name = ?5, home_name = ?6, place = ?7, due_ns = ?8,
    end_ns = ?9, end_boot_ns = ?10, attempts = ?11, holder = ?12, uid = ?13, gid = ?14, mode = ?15, mtime_ns = ?16,
    ctime_ns = ?17, published_ns = ?18, size = ?19, payload = ?20, in_file = ?21, hash = ?22, seal = ?23, flushed = ?24,
    unsure = ?25, target = ?26, draft_kind = ?27, reason = ?28
WHERE number = ?1

-- The same for what a flush changes: no index but the one of large payloads is touched.
-- name: message_store
UPDATE message SET mtime_ns = ?2, ctime_ns = ?3, size = ?4, payload = ?5, in_file = ?6, hash = ?7, seal = ?8,
    flushed = ?9, unsure = ?10
WHERE number = ?1

-- The same for a last close that keeps name and place.
-- name: message_publish
UPDATE message SET state = ?2, mtime_ns = ?3, ctime_ns = ?4, published_ns = ?5, seal = ?6, flushed = ?7 WHERE number = ?1

-- name: message_delete
DELETE FROM message WHERE number = ?1

-- name: message_get
SELECT number, state, queue, directory, name, home_name, place, due_ns, end_ns, end_boot_ns, attempts, holder, uid, gid,
    mode, mtime_ns, ctime_ns, published_ns, size, payload, in_file, hash, seal, flushed, unsure, target, draft_kind, reason
FROM message WHERE number = ?1

-- name: message_find
SELECT number, state, queue, directory, name, home_name, place, due_ns, end_ns, end_boot_ns, attempts, holder, uid, gid,
    mode, mtime_ns, ctime_ns, published_ns, size, payload, in_file, hash, seal, flushed, unsure, target, draft_kind, reason
FROM message WHERE directory = ?1 AND name = ?2

-- name: message_list
SELECT number, state, queue, directory, name, home_name, place, due_ns, end_ns, end_boot_ns, attempts, holder, uid, gid,
    mode, mtime_ns, ctime_ns, published_ns, size, payload, in_file, hash, seal, flushed, unsure, target, draft_kind, reason
FROM message WHERE directory = ?1 AND place > ?2 ORDER BY place LIMIT ?3

-- name: message_any
SELECT 1 FROM message WHERE directory = ?1 LIMIT 1

-- name: message_taken
SELECT 1 FROM message WHERE directory = ?1 AND name = ?2

-- Is a lease's own name in use? Walks the leases and backoffs of the spool: only for on_conflict=reject.
-- name: message_leased_name
SELECT 1 FROM message WHERE end_boot_ns IS NOT NULL AND state = 7 AND queue = ?1 AND coalesce(home_name, name) = ?2 LIMIT 1

-- name: message_oldest_ready
SELECT published_ns FROM message WHERE queue = ?1 AND state = 5 ORDER BY place LIMIT 1

-- What has ended by the boot clock: leases, backoffs, holds.
-- name: message_ended
SELECT number FROM message WHERE end_boot_ns IS NOT NULL AND end_boot_ns <= ?1 ORDER BY end_boot_ns LIMIT 1

-- name: message_next_end
SELECT end_boot_ns FROM message WHERE end_boot_ns IS NOT NULL ORDER BY end_boot_ns LIMIT 1

-- What is due by the wall clock: delayed messages, old staged files.
-- name: message_fallen_due
SELECT number FROM message WHERE due_ns > 0 AND state IN (1, 6) AND due_ns <= ?1 ORDER BY due_ns LIMIT 1

-- name: message_next_due
SELECT due_ns FROM message WHERE due_ns > 0 AND state IN (1, 6) ORDER BY due_ns LIMIT 1

-- Everything that ends by the boot clock, to be converted after a reboot.
-- name: message_timed
SELECT number FROM message WHERE end_boot_ns IS NOT NULL

-- What was being written when the spool was left, in the order of the last flush.
-- name: message_written
SELECT number FROM message WHERE state IN (2, 3) ORDER BY flushed IS NULL, flushed, number LIMIT 1

-- name: message_has_file
SELECT 1 FROM message WHERE payload = ?1 AND in_file = 1

-- name: payload_put
INSERT INTO payload (number, bytes) VALUES (?1, ?2) ON CONFLICT (number) DO UPDATE SET bytes = excluded.bytes

-- name: payload_get
SELECT bytes FROM payload WHERE number = ?1

-- name: payload_delete
DELETE FROM payload WHERE number = ?1

-- name: doomed_insert
INSERT OR IGNORE INTO doomed (payload) VALUES (?1)

-- name: doomed_delete
DELETE FROM doomed WHERE payload = ?1

-- name: doomed_next
SELECT payload FROM doomed LIMIT 1

-- name: queue_next
SELECT number FROM directory WHERE parent = 1 AND number > ?1 ORDER BY number LIMIT 1
