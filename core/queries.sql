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
    target, draft_kind, reason, priority, ttl_ns, expires_ns, claimed_ns, held, attributes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
    ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34)

-- name: message_update
UPDATE message SET state = ?2, queue = ?3, directory = ?4, name = ?5, home_name = ?6, place = ?7, due_ns = ?8,
    end_ns = ?9, end_boot_ns = ?10, attempts = ?11, holder = ?12, uid = ?13, gid = ?14, mode = ?15, mtime_ns = ?16,
    ctime_ns = ?17, published_ns = ?18, size = ?19, payload = ?20, in_file = ?21, hash = ?22, seal = ?23, flushed = ?24,
    unsure = ?25, target = ?26, draft_kind = ?27, reason = ?28,
    priority = ?29, ttl_ns = ?30, expires_ns = ?31, claimed_ns = ?32, held = ?33, attributes = ?34
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
    mode, mtime_ns, ctime_ns, published_ns, size, payload, in_file, hash, seal, flushed, unsure, target, draft_kind, reason,
    priority, ttl_ns, expires_ns, claimed_ns, held, attributes
FROM message WHERE number = ?1

-- name: message_find
SELECT number, state, queue, directory, name, home_name, place, due_ns, end_ns, end_boot_ns, attempts, holder, uid, gid,
    mode, mtime_ns, ctime_ns, published_ns, size, payload, in_file, hash, seal, flushed, unsure, target, draft_kind, reason,
    priority, ttl_ns, expires_ns, claimed_ns, held, attributes
FROM message WHERE directory = ?1 AND name = ?2

-- name: message_list
SELECT number, state, queue, directory, name, home_name, place, due_ns, end_ns, end_boot_ns, attempts, holder, uid, gid,
    mode, mtime_ns, ctime_ns, published_ns, size, payload, in_file, hash, seal, flushed, unsure, target, draft_kind, reason,
    priority, ttl_ns, expires_ns, claimed_ns, held, attributes
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
-- scan: sorts what was open then, and only at the start: an index would be written with every flush.
-- name: message_written
SELECT number FROM message WHERE state IN (2, 3) ORDER BY flushed IS NULL, flushed, number LIMIT 1

-- The large files among the staged ones: a walk through the index of large files.
-- name: message_staged_files
SELECT number FROM message WHERE in_file = 1 AND payload IS NOT NULL AND state = 1

-- name: message_has_file
SELECT 1 FROM message WHERE payload = ?1 AND in_file = 1

-- name: payload_put
INSERT INTO payload (number, bytes) VALUES (?1, ?2)

-- name: payload_get
SELECT bytes FROM payload WHERE number = ?1

-- name: payload_delete
DELETE FROM payload WHERE number = ?1

-- name: doomed_insert
INSERT OR IGNORE INTO doomed (payload) VALUES (?1)

-- name: doomed_delete
DELETE FROM doomed WHERE payload = ?1

-- scan: stops at its first row.
-- name: doomed_next
SELECT payload FROM doomed LIMIT 1

-- name: queue_next
SELECT number FROM directory WHERE parent = 1 AND number > ?1 ORDER BY number LIMIT 1

-- For spool_check(), which reads everything once: each statement yields a row for each violation of one rule, with what the
-- sentence about it says, in its order. States and kinds are the numbers of enum spool_state and enum spool_kind.

-- scan: one row.
-- name: check_spool
SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM spool)

-- scan: one row.
-- name: check_root
SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM directory WHERE number = 1 AND kind = 1 AND parent = 0)

-- scan: looks at every directory.
-- name: check_directory_parent
SELECT number, name, parent FROM directory AS d
WHERE number <> 1 AND NOT EXISTS (SELECT 1 FROM directory WHERE number = d.parent)

-- scan: looks at every directory.
-- name: check_directory_kind
SELECT d.number, d.name, d.parent FROM directory AS d JOIN directory AS p ON p.number = d.parent
WHERE NOT CASE d.kind
    WHEN 2 THEN p.kind = 1
    WHEN 3 THEN p.kind = 2 AND d.name = x'636c61696d6564' -- claimed
    WHEN 4 THEN p.kind = 2 AND d.name = x'64656164' -- dead
    WHEN 5 THEN p.kind = 3
    WHEN 6 THEN p.kind = 2
    WHEN 7 THEN p.kind IN (2, 6)
    ELSE 0 END

-- scan: looks at every directory.
-- name: check_link
SELECT number, name FROM directory WHERE (kind = 7) <> (target IS NOT NULL)

-- scan: looks at every directory and message.
-- name: check_name
WITH named (number, name) AS (
    SELECT number, name FROM directory WHERE number <> 1 UNION ALL SELECT number, name FROM message WHERE state <> 3)
SELECT number, name FROM named
WHERE length(name) NOT BETWEEN 1 AND 255 OR name IN (x'2e', x'2e2e') OR instr(name, x'2f') OR instr(name, x'00')

-- scan: looks at every message.
-- name: check_name_twice
SELECT m.name, m.directory, m.number, d.number
FROM message AS m JOIN directory AS d ON d.parent = m.directory AND d.name = m.name

-- scan: looks at every message.
-- name: check_staged_name
SELECT number, name, state FROM message WHERE state IN (4, 5, 6) AND substr(name, 1, 1) = x'2e'

-- scan: looks at every message.
-- name: check_queue
SELECT number, name, queue FROM message AS m
WHERE NOT EXISTS (SELECT 1 FROM directory WHERE number = m.queue AND kind = 2)

-- scan: looks at every message.
-- name: check_directory
SELECT m.number, m.name, m.state, m.directory
FROM message AS m JOIN directory AS q ON q.number = m.queue AND q.kind = 2
    LEFT JOIN directory AS d ON d.number = m.directory LEFT JOIN directory AS p ON p.number = d.parent
WHERE m.state <> 3 AND NOT coalesce(CASE
    WHEN m.state IN (1, 2) THEN d.number = q.number OR (d.kind = 6 AND d.parent = q.number)
    WHEN m.state IN (4, 5, 6) THEN d.number = q.number
    WHEN m.state = 7 THEN (d.kind = 3 AND p.number = q.number) OR (d.kind = 5 AND p.kind = 3 AND p.parent = q.number)
    ELSE d.kind = 4 AND p.number = q.number END, 0)

-- scan: looks at every message.
-- name: check_place
SELECT min(number), max(number), place FROM message GROUP BY place HAVING count(*) > 1

-- scan: looks at everything that has a number.
-- name: check_number
WITH given (what, number) AS (
    SELECT 'directory', number FROM directory UNION ALL SELECT 'message', number FROM message
    UNION ALL SELECT 'place', place FROM message UNION ALL SELECT 'flush', flushed FROM message
    UNION ALL SELECT 'payload', payload FROM message UNION ALL SELECT 'payload', number FROM payload
    UNION ALL SELECT 'payload', payload FROM doomed)
SELECT DISTINCT what, number, numbers FROM given JOIN spool ON number >= numbers

-- scan: looks at every message.
-- name: check_delayed
SELECT number, name FROM message WHERE state = 6 AND due_ns <= 0 AND end_boot_ns IS NULL

-- scan: looks at every message.
-- name: check_waiting
SELECT number, name FROM message WHERE state = 5 AND (due_ns > 0 OR end_boot_ns IS NOT NULL)

-- name: check_written
SELECT number, name FROM message WHERE state IN (2, 3)

-- scan: looks at every message.
-- name: check_payload_twice
SELECT min(number), max(number), payload FROM message WHERE payload IS NOT NULL GROUP BY payload HAVING count(*) > 1

-- scan: looks at every payload.
-- name: check_payload_unused
SELECT number FROM payload
WHERE number NOT IN (SELECT payload FROM message WHERE in_file = 0 AND payload IS NOT NULL)
    AND number NOT IN (SELECT payload FROM doomed)

-- scan: looks at every message.
-- name: check_doomed_used
SELECT d.payload, m.number FROM message AS m JOIN doomed AS d ON d.payload = m.payload

-- scan: a short table.
-- name: check_doomed
SELECT payload FROM doomed WHERE payload NOT IN (SELECT payload FROM message WHERE payload IS NOT NULL)

-- scan: a short table.
-- name: check_setting_directory
SELECT name, directory FROM setting AS s
WHERE NOT EXISTS (SELECT 1 FROM directory WHERE number = s.directory AND kind IN (1, 2))

-- scan: a short table. Not violations: every setting.
-- name: check_settings
SELECT directory, name, value FROM setting

-- scan: looks at every message. Not violations: what each queue, and the root, counts now, and then what it holds.
-- name: check_counts
WITH held (queue, staged, ready, delayed, claimed, dead, bytes) AS (
    SELECT queue, sum(state IN (1, 2, 4)), sum(state = 5), sum(state = 6), sum(state = 7), sum(state = 8),
        sum(size) FROM message WHERE state <> 3 GROUP BY queue)
SELECT d.number, d.name, d.staged, d.ready, d.delayed, d.claimed, d.dead, d.bytes,
    h.staged, h.ready, h.delayed, h.claimed, h.dead, h.bytes
FROM directory AS d LEFT JOIN held AS h ON h.queue = d.number WHERE d.kind = 2
UNION ALL
SELECT d.number, d.name, d.staged, d.ready, d.delayed, d.claimed, d.dead, d.bytes,
    sum(h.staged), sum(h.ready), sum(h.delayed), sum(h.claimed), sum(h.dead), sum(h.bytes)
FROM directory AS d LEFT JOIN held AS h WHERE d.number = 1 GROUP BY d.number

-- scan: looks at every directory. Not violations: what the root counts since it was made, and then what the queues do.
-- name: check_totals
SELECT r.published, r.acknowledged, r.released, r.failed, r.buried, r.cancelled, r.staged_removed,
    sum(q.published), sum(q.acknowledged), sum(q.released), sum(q.failed), sum(q.buried), sum(q.cancelled),
    sum(q.staged_removed)
FROM directory AS r LEFT JOIN directory AS q ON q.kind = 2 WHERE r.number = 1 GROUP BY r.number

-- scan: looks at every message. Not violations: every message.
-- name: check_messages
SELECT number, state, queue, directory, name, home_name, place, due_ns, end_ns, end_boot_ns, attempts, holder, uid, gid,
    mode, mtime_ns, ctime_ns, published_ns, size, payload, in_file, hash, seal, flushed, unsure, target, draft_kind, reason,
    priority, ttl_ns, expires_ns, claimed_ns, held, attributes
FROM message
