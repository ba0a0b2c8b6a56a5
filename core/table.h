/* table.h - a hash table of structures that carry their own link, by a 64-bit key. It owns nothing. */
#ifndef SPOOL_TABLE_H
#define SPOOL_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct table_entry {
    int64_t key;
    struct table_entry *next;
};

struct table {
    struct table_entry **slots;
    size_t slot_count; /* a power of two, or 0 */
    size_t count;
};

struct table_entry *table_find(const struct table *table, int64_t key); /* NULL: none */
struct table_entry *table_next(struct table_entry *entry);              /* another one of the same key */
int table_add(struct table *table, struct table_entry *entry);          /* 0 or -ENOMEM */
void table_remove(struct table *table, struct table_entry *entry);
/* Call `each` for every entry; it may free the entry it is given. */
void table_each(struct table *table, void (*each)(struct table_entry *entry, void *context), void *context);
void table_clear(struct table *table); /* forget all entries and free the slots */

#endif
