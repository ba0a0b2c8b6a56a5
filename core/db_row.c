/*
 * db_row.c - named statements: prepared once, bound, stepped, read.
 */
#include "db_private.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct db_value db_int(int64_t number) {
    return (struct db_value){.type = DB_INT, .number = number};
}

struct db_value db_text(const char *text) {
    return text ? db_bytes(text, strlen(text)) : db_null();
}

struct db_value db_bytes(const void *bytes, size_t length) {
    return (struct db_value){.type = DB_BYTES, .bytes = bytes, .length = length};
}

struct db_value db_null(void) {
    return (struct db_value){.type = DB_NULL};
}

/* A text of two statements would run its first only: what follows must be comments. */
static int prepare(struct db *db, enum db_query query) {
    struct db_row *row = &db->rows[query];
    sqlite3_stmt *more = NULL;
    const char *rest;

    if (row->statement)
        return 0;
    int rc = sqlite3_prepare_v3(db->sqlite, db_query_texts[query].sql, -1, SQLITE_PREPARE_PERSISTENT, &row->statement,
                                &rest);
    if (!rc)
        rc = sqlite3_prepare_v2(db->sqlite, rest, -1, &more, NULL);
    if (!rc && (more || !row->statement))
        rc = SQLITE_ERROR;
    if (rc) {
        sqlite3_finalize(more);
        sqlite3_finalize(row->statement);
        row->statement = NULL;
    }
    return db__errno(rc);
}

static int bind_value(sqlite3_stmt *statement, int at, const struct db_value *value) {
    switch (value->type) {
    case DB_INT:
        return sqlite3_bind_int64(statement, at, value->number);
    case DB_BYTES:
        return sqlite3_bind_blob64(statement, at, value->bytes ? value->bytes : "", value->length, SQLITE_STATIC);
    case DB_NULL:
        break;
    }
    return sqlite3_bind_null(statement, at);
}

/* Ready to be stepped. A statement that writes must not run on its own after SQLite has given up the transaction. */
static int start(struct db *db, enum db_query query, const struct db_value *values, size_t count) {
    struct db_row *row = &db->rows[query];
    assert(!row->standing);
    int rc = prepare(db, query);
    if (rc)
        return db__note_loss(db, rc);
    if (!db_in_transaction(db) && !sqlite3_stmt_readonly(row->statement)) {
        assert(db->lost);
        return db->lost ? db->lost : -EINVAL;
    }
    assert((int)count == sqlite3_bind_parameter_count(row->statement));
    for (int i = 0; !rc && i < (int)count; i++)
        rc = bind_value(row->statement, i + 1, &values[i]);
    return db__errno(rc);
}

int db_run_values(struct db *db, enum db_query query, const struct db_value *values, size_t count) {
    int rc = start(db, query, values, count);
    if (rc)
        return rc;
    sqlite3_stmt *statement = db->rows[query].statement;
    int code = sqlite3_step(statement);
    assert(code != SQLITE_ROW);
    int changes = sqlite3_changes(db->sqlite);
    sqlite3_reset(statement);
    return code == SQLITE_DONE ? changes : db__note_loss(db, db__errno(code));
}

static int step(struct db_row *row) {
    int code = sqlite3_step(row->statement);
    if (code == SQLITE_ROW)
        return 1;
    return code == SQLITE_DONE ? 0 : db__note_loss(row->db, db__errno(code));
}

int db_first_values(struct db *db, struct db_row **row, enum db_query query, const struct db_value *values,
                    size_t count) {
    int rc = start(db, query, values, count);
    if (rc)
        return rc;
    struct db_row *found = &db->rows[query];
    rc = step(found);
    found->standing = rc > 0;
    if (!found->standing)
        sqlite3_reset(found->statement);
    if (rc >= 0)
        *row = found->standing ? found : NULL;
    return rc;
}

int db_next(struct db_row *row) {
    assert(row->standing);
    return step(row);
}

void db_done(struct db_row *row) {
    if (!row)
        return;
    sqlite3_reset(row->statement);
    row->standing = false;
}

int64_t db_column_int(struct db_row *row, int column) {
    return sqlite3_column_int64(row->statement, column);
}

bool db_column_null(struct db_row *row, int column) {
    return sqlite3_column_type(row->statement, column) == SQLITE_NULL;
}

const void *db_column_bytes(struct db_row *row, int column, size_t *length) {
    const void *bytes = sqlite3_column_blob(row->statement, column);
    *length = (size_t)sqlite3_column_bytes(row->statement, column);
    return bytes;
}

/* --- integrity -------------------------------------------------------------------------------------------------- */

typedef void report_function(void *context, const char *sentence);

static int report_integrity(sqlite3_stmt *finding, report_function *report, void *context) {
    const char *text = (const char *)sqlite3_column_text(finding, 0);
    if (!text || strcmp(text, "ok") == 0)
        return 0;
    report(context, text);
    return 1;
}

static int report_foreign_key(sqlite3_stmt *finding, report_function *report, void *context) {
    char sentence[512];
    snprintf(sentence, sizeof(sentence), "row %lld of table %s refers to a row of %s that does not exist",
             (long long)sqlite3_column_int64(finding, 1), (const char *)sqlite3_column_text(finding, 0),
             (const char *)sqlite3_column_text(finding, 2));
    report(context, sentence);
    return 1;
}

int db_integrity(struct db *db, report_function *report, void *context) {
    static const struct {
        const char *sql;
        int (*report)(sqlite3_stmt *, report_function *, void *);
    } checks[] = {
        {"PRAGMA integrity_check", report_integrity},
        {"PRAGMA foreign_key_check", report_foreign_key},
    };
    int findings = 0;
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        sqlite3_stmt *statement = NULL;
        int code = sqlite3_prepare_v2(db->sqlite, checks[i].sql, -1, &statement, NULL);
        while (!code && (code = sqlite3_step(statement)) == SQLITE_ROW) {
            findings += checks[i].report(statement, report, context);
            code = SQLITE_OK;
        }
        sqlite3_finalize(statement);
        if (code != SQLITE_DONE)
            return db__note_loss(db, db__errno(code));
    }
    return findings;
}
