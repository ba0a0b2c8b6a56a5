/*
 * crash_model.h - what must be true after a crash, kept without any help of the engine.
 *
 * An object is a message, a queue or a setting. While the workload runs, each change of an object adds a belief: where it is now
 * and with which content, from which event on that may be on the disk (`begun`), and from which event on somebody has been told
 * that it is there to stay (`durable`). After a crash at event p the object is in the state of one of its beliefs: of the last
 * that was durable by p, or of a later one that had begun.
 *
 * Every content is written down before its first byte goes anywhere. What a message shows after a crash must be one of these contents,
 * whole; from it follows which object it is.
 */
#ifndef CRASH_MODEL_H
#define CRASH_MODEL_H

#include <xxhash.h>

#include "crash_disk.h"
#include "spool.h"

enum { MOST_OBJECTS = 48, MOST_BELIEFS = 24, MOST_CONTENTS = 128, NOT_YET = -1 };
enum { SMALL_BYTES = 700, LARGE_BYTES = SPOOL_INLINE_MAX + 1, ANY_SIZE = -1 };

enum where { GONE, IN_QUEUE, CLAIMED, DEAD };
static const char *const where_names[] = {"gone", "in its queue", "claimed", "dead"};

enum object_kind { MESSAGE, QUEUE, SETTING };
static const char *const object_kind_names[] = {"message", "queue", "setting"};

struct belief {
    enum where where;
    int64_t queue;
    int version;
    int64_t place;  /* messages of a queue are in the order of their places */
    int64_t end_ns; /* claimed: it is back in its queue when the wall clock says this */
    size_t begun, durable;
    int commit; /* NOT_YET, or the commit that it is part of */
};

struct object {
    enum object_kind kind;
    char name[48];
    int64_t number, directory; /* as they are in the running spool */
    int version;
    unsigned char *bytes;
    size_t length;
    bool delayed, busy, staged;
    struct belief beliefs[MOST_BELIEFS];
    int belief_count;
};

struct content {
    uint64_t hash;
    size_t length;
    int object, version;
};

static const char another[] = "another"; /* published after each crash */

struct model {
    struct object objects[MOST_OBJECTS];
    int object_count;
    struct content contents[MOST_CONTENTS];
    int content_count;
    int64_t places;
    unsigned names;
};

/* --- contents ------------------------------------------------------------------------------------------------------- */

/* What is published after each crash: the first object's, for want of a better one. */
static inline void new_content_of_another(struct model *model) {
    model->contents[model->content_count++] =
        (struct content){XXH3_64bits(another, sizeof another), sizeof another, 0, -1};
}

/* Memory that is given back all at once, by setting `used` back. */
struct arena {
    unsigned char *at;
    size_t used, size;
};

static inline unsigned char *arena_take(struct arena *arena, size_t length) {
    assert(arena->used + length <= arena->size);
    arena->used += length;
    return arena->at + arena->used - length;
}

static inline void fill(unsigned char *bytes, size_t length, uint64_t seed) {
    struct chance chance = {seed};
    for (size_t i = 0; i < length; i += 8) {
        uint64_t word = draw(&chance);
        memcpy(bytes + i, &word, length - i < 8 ? length - i : 8);
    }
}

static inline void write_down(struct model *model, struct object *object, const unsigned char *bytes, size_t length) {
    assert(model->content_count < MOST_CONTENTS);
    model->contents[model->content_count++] =
        (struct content){XXH3_64bits(bytes, length), length, (int)(object - model->objects), object->version};
}

/* The object's next content: `kept` bytes of the present one, and then new ones. */
static inline void renew_content(struct model *model, struct arena *arena, struct object *object, size_t kept,
                                 size_t length) {
    unsigned char *bytes = arena_take(arena, length);
    if (kept)
        memcpy(bytes, object->bytes, kept);
    object->version++;
    fill(bytes + kept, length - kept, (uint64_t)(object - model->objects) << 16 | (uint64_t)object->version);
    object->bytes = bytes;
    object->length = length;
    write_down(model, object, bytes, length);
}

/* The same length, but other bytes at the start. */
static inline void renew_beginning(struct model *model, struct arena *arena, struct object *object, size_t count) {
    unsigned char *bytes = arena_take(arena, object->length);
    memcpy(bytes, object->bytes, object->length);
    object->version++;
    fill(bytes, count, (uint64_t)(object - model->objects) << 16 | (uint64_t)object->version);
    object->bytes = bytes;
    write_down(model, object, bytes, object->length);
}

static inline struct object *new_object(struct model *model, enum object_kind kind, const char *prefix) {
    assert(model->object_count < MOST_OBJECTS);
    struct object *object = &model->objects[model->object_count++];
    *object = (struct object){.kind = kind};
    snprintf(object->name, sizeof object->name, "%s%u", prefix, ++model->names);
    object->beliefs[object->belief_count++] = (struct belief){.where = GONE};
    return object;
}

/* An empty message is known by its name, the others by what is in them. */
static inline int find_content(const struct model *model, const char *name, uint64_t hash, size_t length,
                               int *version) {
    for (int i = 0; i < model->content_count && length > 0; i++) {
        const struct content *content = &model->contents[i];
        if (content->hash == hash && content->length == length) {
            *version = content->version;
            return content->object;
        }
    }
    for (int i = 0; i < model->object_count && length == 0; i++) {
        if (strcmp(model->objects[i].name, name) == 0 && model->objects[i].length == 0) {
            *version = model->objects[i].version;
            return i;
        }
    }
    return -1;
}

/* --- beliefs -------------------------------------------------------------------------------------------------------- */

static inline struct belief *now_believed(struct object *object) {
    return &object->beliefs[object->belief_count - 1];
}

static inline struct belief *believe(struct object *object, enum where where, int64_t queue, int64_t place,
                                     size_t begun) {
    assert(object->belief_count < MOST_BELIEFS);
    struct belief *belief = &object->beliefs[object->belief_count++];
    *belief = (struct belief){.where = where,
                              .queue = queue,
                              .version = object->version,
                              .place = place,
                              .begun = begun,
                              .durable = SIZE_MAX,
                              .commit = NOT_YET};
    return belief;
}

/* Which beliefs may be true after a crash at event `at`: from *first to the one before *end. */
static inline void possible(const struct object *object, size_t at, int *first, int *end) {
    *first = 0;
    *end = 1;
    for (int i = 0; i < object->belief_count; i++) {
        if (object->beliefs[i].durable <= at)
            *first = i;
        if (object->beliefs[i].begun <= at)
            *end = i + 1;
    }
}

/* --- what is seen after a crash ------------------------------------------------------------------------------------- */

struct seen {
    int object, version;
    enum where where;
    int64_t queue;
    int position; /* in the listing of its queue */
};

static inline const struct seen *find_seen(const struct seen *seen, int count, int object) {
    for (int i = 0; i < count; i++) {
        if (seen[i].object == object)
            return &seen[i];
    }
    return NULL;
}

static inline bool agrees(const struct belief *belief, int64_t now_ns, const struct seen *seen) {
    if (!seen || belief->where == GONE)
        return !seen && belief->where == GONE;
    bool ended = belief->where == CLAIMED && belief->end_ns <= now_ns;
    return seen->where == (ended ? IN_QUEUE : belief->where) && seen->queue == belief->queue &&
           seen->version == belief->version;
}

static inline void describe(const struct model *model, int object, const struct seen *seen, size_t at, char *text,
                            size_t size) {
    const struct object *o = &model->objects[object];
    int first, end, used;
    used = snprintf(text, size, "%s %s is %s", object_kind_names[o->kind], o->name,
                    where_names[seen ? seen->where : GONE]);
    if (seen)
        used += snprintf(text + used, size - (size_t)used, " (%lld) version %d", (long long)seen->queue, seen->version);
    used += snprintf(text + used, size - (size_t)used, ", but it can only be");
    possible(o, at, &first, &end);
    for (int i = first; i < end && (size_t)used < size - 80; i++)
        used += snprintf(text + used, size - (size_t)used, "%s %s (%lld) version %d", i > first ? " or" : "",
                         where_names[o->beliefs[i].where], (long long)o->beliefs[i].queue, o->beliefs[i].version);
}

/* Is everything where it must be after a crash at event `at`, and a start at `now_ns`? Else `why` says what is not. */
static inline bool is_true(const struct model *model, size_t at, int64_t now_ns, const struct seen *seen, int count,
                           char *why, size_t size) {
    for (int i = 0; i < model->object_count; i++) {
        const struct seen *one = find_seen(seen, count, i);
        int first, end;
        bool agreed = false;
        possible(&model->objects[i], at, &first, &end);
        for (int k = first; k < end; k++)
            agreed |= agrees(&model->objects[i].beliefs[k], now_ns, one);
        if (!agreed) {
            describe(model, i, one, at, why, size);
            return false;
        }
    }
    for (int i = 0; i < count; i++) {
        if (find_seen(seen, i, seen[i].object)) {
            snprintf(why, size, "message %s is there twice", model->objects[seen[i].object].name);
            return false;
        }
    }
    return true;
}

/* Do the messages whose places are certain stand in their order? */
static inline bool is_in_order(const struct model *model, size_t at, const struct seen *seen, int count, char *why,
                               size_t size) {
    const struct belief *last = NULL;
    const struct object *last_object = NULL;
    int first, end;
    for (int i = 0; i < count; i++) {
        const struct object *object = &model->objects[seen[i].object];
        possible(object, at, &first, &end);
        if (object->kind != MESSAGE || seen[i].where != IN_QUEUE || end - first != 1)
            continue;
        const struct belief *belief = &object->beliefs[first];
        if (last && last->queue == belief->queue && last->place > belief->place) {
            snprintf(why, size, "message %s stands behind %s, which was published later", object->name,
                     last_object->name);
            return false;
        }
        last = belief;
        last_object = object;
    }
    return true;
}

#endif
