/*
 * test_crash_images.c - what was answered is there after a crash of the machine, at whichever moment it comes.
 *
 *     test_crash_images [--images N] [--seed N] [--only WORKLOAD] [--bug NAME]
 *
 * Workloads are every pair of steps of crash_steps.h, and longer ones by chance. Each begins with a spool that holds a bit of
 * everything; of each some crash images are examined (crash_examine.h), N altogether. The same seed gives the same images. --only
 * does one workload, and shows what was seen when it is wrong.
 *
 * Then the same with a bug, once for each: the disk pretends to flush, or a commit is taken for an answer. The crash images must
 * notice. --bug does nothing but that, for one of them.
 *
 *     crash_disk.h        records what reaches the disk, and makes images of it
 *     crash_model.h       what must be true after a crash
 *     crash_recovery.h    starts from an image, and writes down what is seen
 *     crash_run.h         requests, batches, commits, flushes
 *     crash_files.h       requests of programs, with files; crash_steps*.h: what they add up to
 *     crash_examine.h     crashes a workload, and judges
 */
#include <signal.h>
#include <time.h>

#include "crash_examine.h"

#ifdef __SANITIZE_ADDRESS__
#define IMAGES 6000
#else
#define IMAGES 20000
#endif

enum { ARENA_BYTES = 64 << 20, LONG_STEPS = 10, PAIRS = STEPS * STEPS, LONG_WORKLOADS = 500, BIRTH_IMAGES = 300 };

static const struct bug {
    const char *name;
    int lost;
    bool answer_early;
} bugs[] = {
    {"answer-before-sync", LOSE_NOTHING, true},
    {"no-sync", LOSE_ALL, false},
    {"drop-log-sync", LOSE_LOG, false},
    {"drop-payload-sync", LOSE_PAYLOADS, false},
    {"drop-directory-sync", LOSE_DIRECTORIES, false},
    {"drop-database-sync", LOSE_DATABASE, false},
};
enum { BUGS = sizeof bugs / sizeof bugs[0] };

static struct laboratory {
    char directory[96], live[128]; /* where the workloads run */
    struct bench bench;
    struct arena arena;
    size_t base_arena;
    struct image base; /* the spool that workloads begin with */
    struct model base_model;
    int64_t base_queues[4], base_worker;
    struct spool_time base_now;
    uint64_t seed;
    bool show;
    long images, repeated, workloads;
} lab;

/* --- the spool to begin with ----------------------------------------------------------------------------------------- */

static void set_rule(struct run *run) {
    request(run);
    int rc = spool_set_setting(run->spool, run->queues[REPLACING_QUEUE], SPOOL_ON_CONFLICT, "replace", 7);
    answered(run, "a setting", rc, A_PROMISE);
}

static void make_worker(struct run *run) {
    struct spool_entry entry = {0};
    request(run);
    int rc =
        spool_mkdir(run->spool, special(run, run->queues[MAIN_QUEUE], "claimed"), "worker", 0755, somebody, &entry);
    run->worker = entry.number;
    answered(run, "a worker's directory", rc, NO_PROMISE);
}

static void fill_spool(struct run *run) {
    run->queues[EMPTY_QUEUE] = INT64_MAX;
    for (int i = 0; i < 4; i++)
        run->queues[i] = make_queue(run)->number;
    struct object *setting = new_object(run->model, SETTING, "max_attempts");
    setting->directory = run->queues[MAIN_QUEUE];
    setting->version = 20;
    setting->beliefs[0] = (struct belief){.where = GONE};
    step_set(run, 0);
    set_rule(run);
    make_worker(run);
    step_claim(run, SMALL_BYTES);
    step_claim_as_worker(run, LARGE_BYTES);
    dead(run);
    publish(run, run->queues[MAIN_QUEUE], SMALL_BYTES);
    publish(run, run->queues[MAIN_QUEUE], LARGE_BYTES);
    publish(run, run->queues[REPLACING_QUEUE], SMALL_BYTES);
    stage(run, run->queues[MAIN_QUEUE], SMALL_BYTES);
    stage(run, run->queues[MAIN_QUEUE], LARGE_BYTES);
}

/* What the workload before this one left, as something that has always been there. */
static void settle_model(struct model *model) {
    for (int i = 0; i < model->object_count; i++) {
        struct object *object = &model->objects[i];
        struct belief last = *now_believed(object);
        last.begun = last.durable = 0;
        last.commit = 0;
        object->beliefs[0] = last;
        object->belief_count = 1;
    }
}

/* --- one workload ----------------------------------------------------------------------------------------------------- */

static const struct habits all_habits[] = {{100, 100, 100}, {0, 0, 50}, {100, 0, 50}, {50, 50, 50}};

static void run_begin(struct run *run, struct recording *recording, struct model *model, uint64_t seed) {
    recording_begin(recording, lab.live);
    lab.arena.used = lab.base_arena;
    *run = (struct run){.recording = recording, .model = model, .arena = &lab.arena, .chance = {seed}};
    snprintf(run->path, sizeof run->path, "%s", lab.live);
    run->moments[run->moment_count++] = (struct moment){0, lab.base_now};
    run->habits = all_habits[draw_below(&run->chance, sizeof all_habits / sizeof all_habits[0])];
    memcpy(run->queues, lab.base_queues, sizeof run->queues);
    run->worker = lab.base_worker;
}

static bool make_base(void) {
    static struct run run;
    struct recording recording;
    struct disk disk;
    run_begin(&run, &recording, &lab.base_model, lab.seed);
    run.habits = all_habits[0];
    remove_files(lab.live);
    new_content_of_another(&lab.base_model);
    if (run_open(&run)) {
        fill_spool(&run);
        run_close(&run);
    }
    static struct examination e;
    const struct image nothing = {.count = 0};
    e.run = &run;
    e.base = &nothing;
    e.bench = &lab.bench;
    examine(&e, BIRTH_IMAGES);
    if (e.why[0])
        run_failed(&run, "at the making of the spool, %s", e.why);
    examination_end(&e);
    disk_begin(&disk, &e, &recording, &nothing);
    while (disk.at < recording.count)
        disk_step(&disk);
    compose_image(&disk, IMAGE_EVERYTHING, &run.chance, &lab.base);
    disk_end(&disk);
    recording_end(&recording);
    settle_model(&lab.base_model);
    memcpy(lab.base_queues, run.queues, sizeof lab.base_queues);
    lab.base_worker = run.worker;
    lab.base_arena = lab.arena.used;
    return !run.failed;
}

/* A workload's number says which steps it has: all pairs, some longer ones, the blocks of numbers, and so on from the start. */
static int choose_steps(long workload, struct chance *chance, int chosen[LONG_STEPS]) {
    static const int numbers[] = {USE_NUMBERS, USE_NUMBERS, 0, USE_NUMBERS, 1};
    long turn = workload % (PAIRS + LONG_WORKLOADS + 1);
    if (turn < PAIRS) {
        chosen[0] = (int)(turn * 1009 % PAIRS / STEPS); /* a prime: few of them in a row are of all kinds */
        chosen[1] = (int)(turn * 1009 % PAIRS % STEPS);
        return 2;
    }
    if (turn == PAIRS) {
        memcpy(chosen, numbers, sizeof numbers);
        return sizeof numbers / sizeof numbers[0];
    }
    int count = 3 + (int)draw_below(chance, LONG_STEPS - 2);
    for (int i = 0; i < count; i++)
        chosen[i] = (int)draw_below(chance, STEPS);
    return count;
}

static void print_failure(const struct run *run, const struct examination *e, long workload, const int *chosen,
                          int count) {
    printf("# workload %ld, seed %llu (commit %d%%, flush %d%%):", workload, (unsigned long long)lab.seed,
           run->habits.commit, run->habits.flush);
    for (int i = 0; i < count; i++)
        printf("%s %s", i ? "," : "", steps[chosen[i]].name);
    printf("\n# %s\n", e->why[0] ? e->why : "the workload itself fails");
}

static void run_steps(struct run *run, const int *chosen, int count) {
    put_image(lab.live, &lab.base);
    if (!run_open(run))
        return;
    for (int i = 0; i < count && !run->failed; i++)
        steps[chosen[i]].run(run, steps[chosen[i]].argument);
    close_files(run);
    run_close(run);
}

/* How many images of a workload, besides those right after answers. */
static long images_of(long workload) {
    return workload % (PAIRS + LONG_WORKLOADS + 1) < PAIRS ? 3 : 40;
}

/* Did all images of it hold? With a bug: did they seem to? */
static bool try_workload(long workload, const struct bug *bug) {
    static struct run run;
    static struct model model;
    static struct examination e;
    struct recording recording;
    int chosen[LONG_STEPS];
    uint64_t seed = lab.seed * UINT64_C(1000003) + (uint64_t)workload;
    memcpy(&model, &lab.base_model, sizeof model);
    run_begin(&run, &recording, &model, seed);
    run.answer_early = bug && bug->answer_early;
    run.quiet = bug != NULL;
    int count = choose_steps(workload, &run.chance, chosen);
    if (chosen[0] == USE_NUMBERS)
        run.habits = all_habits[2]; /* nobody flushes on its behalf */
    run_steps(&run, chosen, count);
    memset(&e, 0, sizeof e);
    e.run = &run;
    e.base = &lab.base;
    e.bench = &lab.bench;
    e.chance.state = seed + 1;
    e.lost = bug ? bug->lost : LOSE_NOTHING;
    e.show = lab.show;
    e.other_boot = draw_percent(&e.chance, 50);
    if (!run.failed)
        examine(&e, images_of(workload));
    bool well = (bug || !run.failed) && !e.why[0];
    if (!well && !bug)
        print_failure(&run, &e, workload, chosen, count);
    lab.images += e.images;
    lab.repeated += e.repeated;
    lab.workloads++;
    examination_end(&e);
    recording_end(&recording);
    return well;
}

/* --- all of them ------------------------------------------------------------------------------------------------------ */

static int tests_done;

__attribute__((format(printf, 2, 3))) static bool verdict(bool well, const char *format, ...) {
    va_list arguments;
    printf("%sok %d - ", well ? "" : "not ", ++tests_done);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
    return well;
}

static volatile sig_atomic_t stopped;

static bool try_all(long images) {
    int failures = 0;
    for (long i = 0; lab.images < images && failures < 5 && !stopped; i++)
        failures += !try_workload(i, NULL);
    return verdict(failures == 0 && !stopped, "what was answered is there after a crash at any moment");
}

static bool try_bug(const struct bug *bug) {
    long before = lab.images;
    bool noticed = false;
    for (long i = 0; !noticed && lab.images - before < 3000 && !stopped; i++)
        noticed = !try_workload(i, bug);
    return verdict(noticed, "the bug %s is noticed", bug->name);
}

static void lab_end(void) {
    remove_files(lab.live);
    remove_files(lab.bench.path);
    rmdir(lab.directory);
}

static void stop(int signal) {
    (void)signal;
    stopped = 1;
}

static void lab_begin(void) {
    const char *scratch = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
    snprintf(lab.directory, sizeof lab.directory, "%s/crash-XXXXXX",
             scratch && strlen(scratch) < 60 ? scratch : "/tmp");
    if (!mkdtemp(lab.directory)) {
        perror(lab.directory);
        exit(1);
    }
    snprintf(lab.live, sizeof lab.live, "%s/live", lab.directory);
    snprintf(lab.bench.path, sizeof lab.bench.path, "%s/image", lab.directory);
    lab.bench.buffer = malloc(READ_BYTES);
    lab.arena = (struct arena){malloc(ARENA_BYTES), 0, ARENA_BYTES};
    lab.base_now = (struct spool_time){1800000000 * SECOND, 5000 * SECOND};
    assert(lab.bench.buffer && lab.arena.at);
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
}

int main(int argc, char **argv) {
    struct arguments {
        long images, only;
        const char *bug;
    } wanted = {IMAGES, -1, NULL};
    clock_t begin = clock();
    lab.seed = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--images") == 0)
            wanted.images = atol(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            lab.seed = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0)
            wanted.only = atol(argv[i + 1]);
        else if (strcmp(argv[i], "--bug") == 0)
            wanted.bug = argv[i + 1];
    }
    lab.show = wanted.only >= 0;
    lab_begin();
    bool well = verdict(make_base(), "a spool with a bit of everything can be made");
    if (well && wanted.only >= 0)
        well = verdict(try_workload(wanted.only, NULL), "workload %ld", wanted.only);
    else if (well && !wanted.bug)
        well = try_all(wanted.images);
    for (int i = 0; i < BUGS && wanted.only < 0; i++) {
        if (!wanted.bug || strcmp(wanted.bug, bugs[i].name) == 0)
            well &= try_bug(&bugs[i]);
    }
    lab_end();
    printf("1..%d\n", tests_done);
    printf("# seed %llu: %ld images of %ld workloads, %ld more were the same as one before; %.0f s\n",
           (unsigned long long)lab.seed, lab.images, lab.workloads, lab.repeated,
           (double)(clock() - begin) / CLOCKS_PER_SEC);
    return !well;
}
