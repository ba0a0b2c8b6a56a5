/* table.c - see table.h. */
#include "table.h"

#include <errno.h>
#include <stdlib.h>

static size_t slot_of(const struct table *table, int64_t key) {
    uint64_t mixed = (uint64_t)key * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(mixed >> 32) & (table->slot_count - 1);
}

struct table_entry *table_find(const struct table *table, int64_t key) {
    if (table->slot_count == 0)
        return NULL;
    struct table_entry *entry = table->slots[slot_of(table, key)];
    while (entry && entry->key != key)
        entry = entry->next;
    return entry;
}

struct table_entry *table_next(struct table_entry *entry) {
    struct table_entry *next = entry->next;
    while (next && next->key != entry->key)
        next = next->next;
    return next;
}

static void link_entry(struct table *table, struct table_entry *entry) {
    struct table_entry **slot = &table->slots[slot_of(table, entry->key)];
    entry->next = *slot;
    *slot = entry;
}

static int grow(struct table *table) {
    struct table bigger = {.slot_count = table->slot_count ? table->slot_count * 2 : 64, .count = table->count};
    bigger.slots = calloc(bigger.slot_count, sizeof *bigger.slots);
    if (!bigger.slots)
        return -ENOMEM;
    for (size_t i = 0; i < table->slot_count; i++) {
        for (struct table_entry *entry = table->slots[i], *next; entry; entry = next) {
            next = entry->next;
            link_entry(&bigger, entry);
        }
    }
    free(table->slots);
    *table = bigger;
    return 0;
}

int table_add(struct table *table, struct table_entry *entry) {
    /* A table that cannot grow still works, with longer chains. */
    if (table->count >= table->slot_count && grow(table) != 0 && table->slot_count == 0)
        return -ENOMEM;
    link_entry(table, entry);
    table->count++;
    return 0;
}

void table_remove(struct table *table, struct table_entry *entry) {
    for (struct table_entry **at = &table->slots[slot_of(table, entry->key)]; *at; at = &(*at)->next) {
        if (*at == entry) {
            *at = entry->next;
            table->count--;
            return;
        }
    }
}

void table_each(struct table *table, void (*each)(struct table_entry *entry, void *context), void *context) {
    for (size_t i = 0; i < table->slot_count; i++) {
        for (struct table_entry *entry = table->slots[i], *next; entry; entry = next) {
            next = entry->next;
            each(entry, context);
        }
    }
}

void table_clear(struct table *table) {
    free(table->slots);
    *table = (struct table){0};
}
