#!/bin/sh
# sql.sh - turns the two .sql files into C.
#
#   sql.sh queries QUERIES.sql OUT.h OUT.c    an enum of the named statements, and their texts
#   sql.sh schema  SCHEMA.sql  OUT.c          the whole file as `const char spool_schema[]`
#
# A line `-- name: message_insert` starts the statement Q_message_insert, which goes on until the next such line. Other
# comments may stand anywhere. Text is passed byte for byte; what C would read differently is escaped (the question
# mark too, because of trigraphs).
set -eu
export LC_ALL=C

fail() {
    echo "sql.sh: $*" >&2
    exit 1
}

# Each output is made beside its place and then renamed, so that a failure leaves nothing half written.
trap 'rm -f "${out_h:-}.part" "${out_c:-}.part"' EXIT

escape() {
    sed 's/[\\"?]/\\&/g; s/\r/\\r/g' "$1"
}

case "${1:-}" in
queries)
    [ $# -eq 4 ] || fail "usage: sql.sh queries QUERIES.sql OUT.h OUT.c"
    source=$2 out_h=$3 out_c=$4
    : >"$out_h.part"
    escape "$source" | awk -v header="$out_h.part" -v source="${source##*/}" '
        function finish() {
            if (name == "") return
            if (!filled) stop(name " has no statement")
            printf "\"},\n"
        }
        function stop(message) {
            printf "%s:%d: %s\n", source, NR, message | "cat >&2"
            close("cat >&2")
            failed = 1
            exit 1
        }
        BEGIN {
            printf "/* Made from %s. */\n#ifndef SPOOL_QUERIES_H\n#define SPOOL_QUERIES_H\n\n", source > header
            printf "enum db_query {\n" > header
            printf "/* Made from %s. */\n#include \"queries.h\"\n\n", source
            printf "const struct db_query_text db_query_texts[] = {"
        }
        /^-- name:/ {
            finish()
            name = $0
            sub(/^-- name:[ \t]*/, "", name)
            sub(/[ \t]+$/, "", name)
            if (name !~ /^[a-z][a-z0-9_]*$/) stop("not a name: " name)
            if (name in seen) stop(name " is there twice")
            seen[name] = 1
            filled = 0
            printf "    Q_%s,\n", name > header
            printf "\n    {\"%s\", \"", name
            next
        }
        /[^ \t]/ && !/^[ \t]*--/ {
            if (name == "") stop("a statement without a name")
            filled = 1
        }
        name != "" { printf "\\n\"\n     \"%s", $0 }
        END {
            if (failed) exit 1
            finish()
            if (name == "") stop("no statement at all")
            printf "};\n"
            printf "    DB_QUERIES\n};\n\n" > header
            printf "struct db_query_text {\n    const char *name;\n    const char *sql;\n};\n" > header
            printf "extern const struct db_query_text db_query_texts[];\n\n#endif\n" > header
        }' >"$out_c.part"
    mv "$out_c.part" "$out_c"
    mv "$out_h.part" "$out_h"
    ;;
schema)
    [ $# -eq 3 ] || fail "usage: sql.sh schema SCHEMA.sql OUT.c"
    source=$2 out_c=$3
    [ -r "$source" ] || fail "cannot read $source"
    {
        printf '/* Made from %s. */\nextern const char spool_schema[];\n' "${source##*/}"
        printf 'const char spool_schema[] = ""'
        escape "$source" | awk '{ printf "\n    \"%s\\n\"", $0 }'
        printf ';\n'
    } >"$out_c.part"
    mv "$out_c.part" "$out_c"
    ;;
*)
    fail "usage: sql.sh queries|schema ..."
    ;;
esac
