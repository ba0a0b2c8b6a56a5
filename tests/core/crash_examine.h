/*
 * crash_examine.h - kill the machine at the events of a workload, start from what is left, and compare.
 *
 * What is seen after a crash is held against two things: the beliefs of the model, and the commits. As the log is written in order, a crash
 * leaves the state after some commit, whole: what is seen must equal what is seen after a crash right at the end of one of the
 * commits that can be the last that survived, the flushed ones included.
 */
#ifndef CRASH_EXAMINE_H
#define CRASH_EXAMINE_H

#include "crash_steps.h"

enum { MOST_TRIED = 512 };
#define LATER_NS (5 * SECOND) /* between the crash and the start */

struct tried {
    uint64_t hash; /* of the image, and the time */
    struct outcome outcome;
};

struct examination {
    struct run *run;
    const struct image *base; /* what was there before the recording */
    struct bench *bench;
    struct chance chance;
    struct image image;
    int lost; /* enum lost_flushes */
    bool other_boot;
    bool show; /* print what was seen when it is wrong */
    struct tried tried[MOST_TRIED];
    int tried_count;
    struct outcome *at_commit[MOST_COMMITS][MOST_MOMENTS];
    long images, repeated;
    char why[1024]; /* empty: all is well */
};

/* --- a crash --------------------------------------------------------------------------------------------------------- */

static void disk_begin(struct disk *disk, const struct examination *e, const struct recording *recording,
                       const struct image *base) {
    *disk = (struct disk){.recording = recording, .lost = e->lost};
    for (int i = 0; i < base->count; i++)
        disk_add(disk, base->names[i], &base->contents[i]);
    if (base->has_payloads)
        disk_add(disk, ".payloads", &(struct bytes){0});
}

static uint64_t hash_image(const struct image *image, int moment) {
    uint64_t hash = (uint64_t)moment * 2 + image->has_payloads;
    for (int i = 0; i < image->count; i++) {
        hash = XXH3_64bits_withSeed(image->names[i], strlen(image->names[i]), hash);
        hash = XXH3_64bits_withSeed(image->contents[i].at, image->contents[i].size, hash);
    }
    return hash;
}

static struct circumstances circumstances_at(struct examination *e, int moment) {
    struct circumstances circumstances = {.now = e->run->moments[moment].now,
                                          .boot_id = e->other_boot ? "second" : "first"};
    circumstances.now.wall_ns += LATER_NS;
    circumstances.now.boot_ns += LATER_NS;
    if (e->other_boot)
        circumstances.now.boot_ns = 10 * SECOND;
    circumstances.check = draw_percent(&e->chance, 50);
    circumstances.twice = draw_percent(&e->chance, 10);
    return circumstances;
}

/* Start from the image, or remember what came of it. */
static struct outcome *try_image(struct examination *e, int moment) {
    uint64_t hash = hash_image(&e->image, moment);
    for (int i = 0; i < e->tried_count; i++) {
        if (e->tried[i].hash == hash) {
            e->repeated++;
            return &e->tried[i].outcome;
        }
    }
    assert(e->tried_count < MOST_TRIED);
    struct tried *tried = &e->tried[e->tried_count++];
    struct circumstances circumstances = circumstances_at(e, moment);
    tried->hash = hash;
    put_image(e->bench->path, &e->image);
    recover(e->bench, e->run->model, &circumstances, &tried->outcome);
    e->images++;
    return &tried->outcome;
}

/* --- what is seen after a commit ------------------------------------------------------------------------------------- */

static const struct outcome *outcome_of_commit(struct examination *e, int commit, int moment) {
    if (!e->at_commit[commit][moment]) {
        struct disk disk;
        struct image image = e->image;
        e->image = (struct image){.count = 0};
        disk_begin(&disk, e, e->run->recording, e->base);
        while (disk.at < e->run->commits[commit].done)
            disk_step(&disk);
        compose_image(&disk, IMAGE_EVERYTHING, &e->chance, &e->image);
        e->at_commit[commit][moment] = try_image(e, moment);
        disk_end(&disk);
        image_end(&e->image);
        e->image = image;
    }
    return e->at_commit[commit][moment];
}

static bool is_a_commit(struct examination *e, size_t at, const struct outcome *outcome, char *why, size_t size) {
    const struct run *run = e->run;
    int first = 0, last = 0;
    for (int i = 0; i < run->commit_count; i++) {
        if (run->commits[i].flushed <= at)
            first = i;
        if (run->commits[i].begun <= at)
            last = i;
    }
    for (int i = first; i <= last; i++) {
        const struct outcome *whole = outcome_of_commit(e, i, moment_at(run, at));
        if (whole->dump && strcmp(whole->dump, outcome->dump) == 0)
            return true;
    }
    if (e->show)
        printf("# seen:\n%s# after commit %d:\n%s", outcome->dump, last,
               outcome_of_commit(e, last, moment_at(run, at))->dump);
    snprintf(why, size, "it is in the state after none of the commits %d to %d of %d", first, last,
             run->commit_count - 1);
    return false;
}

/* --- judgement -------------------------------------------------------------------------------------------------------- */

static int64_t last_number(const struct run *run, size_t at) {
    int64_t last = 0;
    for (int i = 0; i < run->given_count; i++) {
        if (run->given[i].at <= at && run->given[i].number > last)
            last = run->given[i].number;
    }
    for (size_t i = 0; i < at; i++) {
        const char *name = run->recording->events[i].name;
        if (is_payload(name) && atoll(name + 10) > last)
            last = atoll(name + 10);
    }
    return last;
}

static bool judge(struct examination *e, size_t at, const struct outcome *outcome, char *why, size_t size) {
    if (outcome->why[0]) {
        snprintf(why, size, "%s", outcome->why);
        return false;
    }
    int64_t now_ns = e->run->moments[moment_at(e->run, at)].now.wall_ns + LATER_NS;
    if (!is_true(e->run->model, at, now_ns, outcome->seen, outcome->seen_count, why, size) ||
        !is_in_order(e->run->model, at, outcome->seen, outcome->seen_count, why, size))
        return false;
    if (outcome->next_number && outcome->next_number <= last_number(e->run, at)) {
        snprintf(why, size, "the number %lld is given a second time", (long long)outcome->next_number);
        return false;
    }
    return is_a_commit(e, at, outcome, why, size);
}

/* Crash while starting after the crash: nothing may change by that. The image is still at the bench. */
static bool crash_again(struct examination *e, int moment, const struct outcome *expected, char *why, size_t size) {
    struct recording recording;
    struct image image = e->image; /* composed anew below, in memory of its own */
    struct disk disk;
    struct outcome outcome;
    struct circumstances circumstances = circumstances_at(e, moment);
    bool same = true;
    put_image(e->bench->path, &image);
    recording_begin(&recording, e->bench->path);
    circumstances.recording = &recording;
    circumstances.twice = false;
    recover(e->bench, e->run->model, &circumstances, &outcome);
    circumstances.recording = NULL;
    disk_begin(&disk, e, &recording, &image);
    e->image = (struct image){.count = 0};
    size_t step = outcome.recorded / 6 + 1;
    for (size_t next = draw_below(&e->chance, step); next <= outcome.recorded && same; next += step) {
        struct outcome second;
        while (disk.at < next)
            disk_step(&disk);
        compose_image(&disk, (enum image_kind)draw_below(&e->chance, IMAGE_KINDS), &e->chance, &e->image);
        put_image(e->bench->path, &e->image);
        recover(e->bench, e->run->model, &circumstances, &second);
        e->images++;
        same = !second.why[0] && strcmp(second.dump, expected->dump) == 0;
        if (!same)
            snprintf(why, size, "a second crash, while it starts, changes it: %s", second.why);
        outcome_end(&second);
    }
    outcome_end(&outcome);
    disk_end(&disk);
    image_end(&e->image);
    e->image = image;
    recording_end(&recording);
    return same;
}

/* The machine dies at the event that comes next on the disk. */
static bool examine_image(struct examination *e, const struct disk *disk, enum image_kind kind) {
    char why[700] = "";
    int moment = moment_at(e->run, disk->at);
    compose_image(disk, kind, &e->chance, &e->image);
    const struct outcome *outcome = try_image(e, moment);
    bool well = judge(e, disk->at, outcome, why, sizeof why);
    if (well && draw_percent(&e->chance, 1))
        well = crash_again(e, moment, outcome, why, sizeof why);
    if (!well)
        snprintf(e->why, sizeof e->why, "a crash at event %zu of %zu, with %s on the disk: %s", disk->at,
                 e->run->recording->count, image_kind_names[kind], why);
    return well;
}

static bool is_answer(const struct run *run, size_t at) {
    for (int i = 0; i < run->commit_count; i++) {
        if (run->commits[i].flushed == at || (run->answer_early && run->commits[i].done == at))
            return true;
    }
    return false;
}

/* About `wanted` images, at least those right after answers. */
static void examine(struct examination *e, long wanted) {
    size_t count = e->run->recording->count;
    struct disk disk;
    bool well = true;
    long percent = wanted * 100 / (long)(count + 1);
    disk_begin(&disk, e, e->run->recording, e->base);
    for (;;) {
        if (is_answer(e->run, disk.at))
            well = examine_image(e, &disk, IMAGE_NOTHING);
        for (long more = percent; more > 0 && well; more -= 100) {
            if (draw_percent(&e->chance, (int)(more < 100 ? more : 100)))
                well = examine_image(e, &disk, (enum image_kind)draw_below(&e->chance, IMAGE_KINDS));
        }
        if (!well || disk.at == count)
            break;
        disk_step(&disk);
    }
    disk_end(&disk);
}

static void examination_end(struct examination *e) {
    for (int i = 0; i < e->tried_count; i++)
        outcome_end(&e->tried[i].outcome);
    e->tried_count = 0;
    image_end(&e->image);
}

#endif
