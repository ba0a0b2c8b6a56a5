/*
 * crash_steps_leases.h - steps: from claim to acknowledgement, failure and dead letter.
 */
#ifndef CRASH_STEPS_LEASES_H
#define CRASH_STEPS_LEASES_H

#include "crash_steps_files.h"

static void claim_into(struct run *run, struct object *object, int64_t directory) {
    move(run, object, directory, NULL,
         (struct turn){"a claim", CLAIMED, main_queue(run), now_believed(object)->place, NO_PROMISE});
}

static struct object *leased(struct run *run, long length) {
    struct object *object = pick(run, CLAIMED, main_queue(run), length);
    if (!object) {
        object = waiting(run, length);
        claim_into(run, object, special(run, main_queue(run), "claimed"));
    }
    return object;
}

static struct object *dead(struct run *run) {
    struct object *object = pick(run, DEAD, main_queue(run), ANY_SIZE);
    if (!object) {
        object = waiting(run, ANY_SIZE);
        move(run, object, special(run, main_queue(run), "dead"), NULL,
             (struct turn){"a burial", DEAD, main_queue(run), now_believed(object)->place, NO_PROMISE});
    }
    return object;
}

static void step_claim(struct run *run, long length) {
    claim_into(run, waiting(run, length), special(run, main_queue(run), "claimed"));
}

static void step_claim_as_worker(struct run *run, long length) {
    claim_into(run, waiting(run, length), run->worker);
}

static void step_hand_over(struct run *run, long length) {
    struct object *object = leased(run, length);
    claim_into(run, object, object->directory == run->worker ? special(run, main_queue(run), "claimed") : run->worker);
}

static void step_release(struct run *run, long length) {
    struct object *object = leased(run, length);
    move(run, object, main_queue(run), NULL,
         (struct turn){"a release", IN_QUEUE, main_queue(run), now_believed(object)->place, NO_PROMISE});
}

static void step_acknowledge(struct run *run, long length) {
    erase(run, leased(run, length), "an acknowledgement");
}

static void step_forward(struct run *run, long length) {
    int64_t queue = run->queues[OTHER_QUEUE];
    move(run, leased(run, length), queue, NULL,
         (struct turn){"a forward", IN_QUEUE, queue, next_place(run), A_PROMISE});
}

static void step_forward_waiting(struct run *run, long length) {
    int64_t queue = run->queues[OTHER_QUEUE];
    move(run, waiting(run, length), queue, NULL,
         (struct turn){"a forward", IN_QUEUE, queue, next_place(run), A_PROMISE});
}

static void step_bury(struct run *run, long length) {
    struct object *object = leased(run, length);
    move(run, object, special(run, main_queue(run), "dead"), NULL,
         (struct turn){"a burial", DEAD, main_queue(run), now_believed(object)->place, NO_PROMISE});
}

static void step_requeue(struct run *run, long length) {
    struct object *object = dead(run);
    (void)length;
    move(run, object, main_queue(run), NULL,
         (struct turn){"a requeue", IN_QUEUE, main_queue(run), now_believed(object)->place, NO_PROMISE});
}

static void step_discard(struct run *run, long length) {
    (void)length;
    erase(run, dead(run), "the removal of a dead message");
}

/* All that is claimed, but for what the test itself would lose sight of. */
static void believe_in_failure(struct run *run) {
    for (int i = 0; i < run->model->object_count; i++) {
        struct object *object = &run->model->objects[i];
        const struct belief *belief = now_believed(object);
        if (object->kind != MESSAGE || belief->where != CLAIMED)
            continue;
        believe_now(run, object, IN_QUEUE, belief->queue, belief->place);
        object->directory = belief->queue;
        object->delayed = true;
    }
}

static void step_expire(struct run *run, long length) {
    leased(run, length);
    advance(run, 61 * SECOND);
    request(run);
    believe_in_failure(run);
    for (int i = 0; i < run->open_count; i++)
        believe_now(run, run->open_object[i], GONE, 0, 0); /* open for so long after its flush: kept aside */
    answered(run, "a tick", 0, NO_PROMISE);
}

static void step_give_up(struct run *run, long length) {
    struct object *object = leased(run, length);
    request(run);
    int rc = spool_touch(run->spool, object->number, SPOOL_AT, 0, SPOOL_OMIT, 0);
    believe_now(run, object, IN_QUEUE, main_queue(run), now_believed(object)->place);
    object->directory = main_queue(run);
    object->delayed = true;
    answered(run, "giving up", rc, NO_PROMISE);
}

static void step_checkpoint(struct run *run, long length) {
    struct object *object = leased(run, ANY_SIZE);
    struct spool_writer *writer = open_writer(run, object, true, false);
    if (!writer)
        return;
    renew_content(run->model, run->arena, object, 0, (size_t)length);
    write_bytes(run, writer, object->bytes, object->length, 0);
    flush(run, writer, object, main_queue(run), now_believed(object)->place);
    release(run, writer, false, NULL, 0);
}

/* A worker's directory, from its making to the release of all that is in it. */
static void step_worker(struct run *run, long length) {
    struct object *object = waiting(run, length);
    int64_t claimed = special(run, main_queue(run), "claimed");
    struct spool_entry entry = {0};
    char name[32];
    snprintf(name, sizeof name, "worker%u", ++run->model->names);
    request(run);
    int rc = spool_mkdir(run->spool, claimed, name, 0755, somebody, &entry);
    note_number(run, entry.number);
    answered(run, "a worker's directory", rc, NO_PROMISE);
    claim_into(run, object, entry.number);
    request(run);
    rc = spool_move(run->spool, claimed, name, main_queue(run), name, false, somebody, NULL);
    believe_now(run, object, IN_QUEUE, main_queue(run), now_believed(object)->place);
    object->directory = main_queue(run);
    answered(run, "the release of a worker's directory", rc, NO_PROMISE);
}

#endif
