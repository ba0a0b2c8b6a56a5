#!/usr/bin/env bash
# spool: its words and exit codes, and what `spool check` finds in a database that was damaged on purpose.
. "$(dirname "$0")/../lib/mount.sh"

# "sentence" STATUS arguments of spool...: the exit code; and one sentence on stderr, or from STATUS 0 and 1 none.
exits() {
    local sentence=$1 expected=$2 status
    shift 2
    "$SPOOL" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    verdict $((status != expected || $(wc -l <"$scratch/err") != (expected > 1))) "$sentence" \
        "expected: exit $expected, and a line on stderr only for a failure, of: spool $*" \
        "seen: exit $status, stdout:" "$(cat "$scratch/out")" "stderr:" "$(cat "$scratch/err")"
}

says() { grep -q -- "$1" "$scratch/out" "$scratch/err"; } # after exits: PATTERN on stdout or stderr
digest() { find "$db" "$db.payloads" "$@" -type f -exec sha256sum {} + | sort; }

# --- words ---
exits "--help succeeds" 0 --help
t "and names the command check" says check
exits "-h succeeds" 0 -h
exits "--version succeeds" 0 --version
t "and tells a version" says '[0-9]\.[0-9]'
exits "check --help succeeds" 0 check --help
t "and tells the exit codes" says 75
exits "without a command it fails" 64
exits "an unknown command is refused" 64 chekc
exits "an unknown option is refused" 64 --chekc
exits "check without a database is refused" 64 check
exits "check of two databases is refused" 64 check "$db" "$db"
exits "an unknown option of check is refused" 64 check -x "$db"
exits "ls without a database is refused" 64 ls
exits "ls of three things is refused" 64 ls "$db" q q
exits "ls of a database that is not there is refused" 66 ls "$scratch/nowhere.db"
exits "a database that is not there is refused" 66 check "$scratch/nowhere.db"
fails "and not made" test -e "$scratch/nowhere.db"
echo "plain text, long enough to be looked at as a header of a database, and then some more" >"$scratch/text"
exits "a file that is no database is refused" 74 check "$scratch/text"
exits "a directory is refused" 74 check "$scratch"
fails "a result that cannot be written is a failure" bash -c '"$1" --help >/dev/full' - "$SPOOL"

# --- a sound database, with a message of every kind ---
spool_mount
queue q max_attempts=1
head -c 300000 /dev/zero | tr '\0' x >"$mnt/q/large"
for message in one two three four five; do publish q/$message "payload of $message"; done
claim q/one
mv "$mnt/q/two" "$mnt/q/dead/two"
touch -d '+1 hour' "$mnt/q/three"
publish q/.staged "not a message yet"
publish "q/$(printf 'odd\nname\xff')" "under an odd name"
exits "a database that is mounted is refused" 75 check "$db"
t "and the sentence says that it is in use" says "in use"
exits "nor is it listed" 75 ls "$db"
exits "which says so" 75 ls "$db" q
spool_umount
before=$(digest)
exits "a sound database is clean" 0 check "$db"
is "which is all that is said" "$db: clean" "$(cat "$scratch/out")"
is "and it is not changed" "$before" "$(digest)"
cp "$db" "$scratch/-odd.db"
cp -r "$db.payloads" "$scratch/-odd.db.payloads"
t "a name that begins with a minus can be given after --" bash -c 'cd "$1" && "$2" check -- -odd.db' - "$scratch" "$SPOOL"

# --- what is in it ---
line() { sed -n "$1p" "$scratch/out" | tr -s ' ' | sed 's/20[0-9-]*T[0-9:]*Z/TIME/'; } # NUMBER, or $ for the last
exits "the queues are listed" 0 ls "$db"
is "with their counters" " 4 1 1 1 1 q" "$(line 2)"
exits "a queue is listed" 0 ls "$db" q
is "its directories first" "directory TIME 0 claimed/" "$(line 2)"
is "then what is in it, in the order of publication" "waiting since TIME 300000 large" "$(line 4)"
is "with what it waits for" "delayed until TIME 16 three" "$(line 5)"
is "and every name on one line" 'waiting since TIME 17 odd\nname\377' "$(line '$')"
exits "leases are listed" 0 ls "$db" q/claimed/w
is "with their end" "claimed until TIME 14 one" "$(line 2)"
exits "a leading slash is nothing" 0 ls "$db" /q/dead/
is "the dead are listed" "dead since TIME 14 two" "$(line 2)"
exits "a queue that is not there is refused" 66 ls "$db" nowhere
t "by its name" says nowhere
exits "a message is no directory" 66 ls "$db" q/large
is "and nothing is changed by all that" "$before" "$(digest)"

# --- a database that a crash has left ---
spool_remount
publish q/six "published before the crash"
spool_kill
umount -l "$mnt"
mounted=no
t "a crash leaves a log" test -s "$db-wal"
before=$(digest "$db-wal")
exits "a database with a log is clean" 0 check "$db"
exits "and listed with what is in the log" 0 ls "$db" q
t "which is all that was published" says six
is "and neither it nor its log is changed" "$before" "$(digest "$db-wal")"
spool_mount
is "the log is still played back afterwards" "published before the crash" "$(contents q/six)"
spool_umount

# --- many ---
spool_mount
queue many
for i in {1..600}; do echo "$i" >"$mnt/many/$i"; done
spool_umount
exits "a long queue is listed" 0 ls "$db" many
is "each message once, in its order" "$(seq 600)" "$(awk '$1 == "waiting" { print $NF }' "$scratch/out")"

# --- damage ---
fresh_copy() {
    rm -rf "$scratch/bad.db"*
    cp "$db" "$scratch/bad.db"
    cp -r "$db.payloads" "$scratch/bad.db.payloads"
}

# "sentence" PATTERN command...: after this command on a copy, check finds a violation that the pattern describes.
finds() {
    local sentence=$1 pattern=$2
    shift 2
    fresh_copy
    (cd "$scratch" && "$@") >/dev/null || bail "$* failed"
    exits "$sentence" 1 check "$scratch/bad.db"
    t "and says so" grep -qiE -- "$pattern" "$scratch/out"
}
sql() { sqlite3 bad.db "$1; SELECT changes()" | grep -qv '^0$'; } # the statement must change something
payload_file() { find bad.db.payloads -type f | head -n 1; }
overwrite() { printf y | dd of="$(payload_file)" bs=1 seek=1000 conv=notrunc status=none; }

finds "a counter that is too high is found" count sql 'UPDATE directory SET ready = ready + 1 WHERE kind = 2'
finds "a counter of all queues that is wrong is found" count sql 'UPDATE directory SET published = published - 1 WHERE number = 1'
finds "a payload with other bytes is found" 'checksum|payload' sql 'UPDATE payload SET bytes = zeroblob(length(bytes))'
finds "a payload that is gone is found" payload sql 'DELETE FROM payload WHERE number = (SELECT min(number) FROM payload)'
finds "a payload that belongs to nobody is found" payload sql "INSERT INTO payload VALUES (1000000, x'00')"
finds "a message in another place is found" . sql 'UPDATE message SET place = place + 100000 WHERE state = 5'
finds "a waiting message under a staged name is found" name sql "UPDATE message SET name = CAST('.x' AS BLOB) WHERE number = (SELECT min(number) FROM message WHERE state = 5)"
finds "a message without a directory is found" . sql 'UPDATE message SET directory = 1000000 WHERE state = 5'
finds "a number above the highest reserved one is found" number sql 'UPDATE spool SET numbers = 3'
finds "a queue that lost its row is found" . sql 'DELETE FROM directory WHERE kind = 2'
finds "an overwritten payload file is found" 'checksum|payload' overwrite
finds "a payload file that is too short is found" 'size|short|bytes|payload' eval 'truncate -s -1 "$(payload_file)"'
finds "a payload file that is gone is found" payload eval 'rm "$(payload_file)"'
finds "a payload file without a message is found" payload sql 'DELETE FROM message WHERE in_file = 1'

fresh_copy
sql_index() { sqlite3 "$scratch/bad.db" "SELECT rootpage FROM sqlite_schema WHERE name = 'message_listing'"; }
dd if=/dev/zero of="$scratch/bad.db" bs=4096 seek=$(($(sql_index) - 1)) count=1 conv=notrunc status=none
fails "an index page of zeros is found" "$SPOOL" check "$scratch/bad.db"

spool_mount
spool_done
