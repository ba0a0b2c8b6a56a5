/* queue_bench: durable publishing, claiming and acknowledging by one client on two kinds of queue.
 *
 *   queue_bench [--peer spoolfs|maildir] [--processes N] [--messages M] [--size BYTES] [--mode MODE] DIR
 *
 * Each of N processes works through M messages in a queue of its own, directory DIR/q<i>. The names are known to it
 * beforehand, so nothing is listed and nothing is contended for but the disk and, on a mount, the daemon and the
 * kernel's locks. peer.h has the two protocols.
 *
 * The processes of a phase are made before it begins and start together; its time ends with the last of them. Each
 * phase prints one line of key=value pairs: messages per second of all processes together, and the mean time of each
 * operation as one process sees it. Modes are sequences of phases (see `modes`); `setup`, `publish`, `claim`,
 * `acknowledge` and `cleanup` alone let a caller watch one of them from outside. Exit code 1: something failed. */
#include "peer.h"

#include <getopt.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum {
    PROCESSES_MAX = 256,
    OPS_MAX = 2,
    PHASES_MAX = 8,
    FORWARDER_QUEUES = 2,
};

struct options {
    const struct peer *peer;
    const struct mode *mode;
    int processes;
    int messages;
    size_t size_bytes;
    const char *dir;
};

enum op { OP_NONE, OP_PUBLISH, OP_CLAIM, OP_ACKNOWLEDGE };

/* What a phase's processes tell their parent, in shared memory. */
struct result {
    uint64_t op_ns[OPS_MAX];
    uint64_t end_ns;
};

struct shared {
    struct result results[PROCESSES_MAX];
    atomic_bool forwarder_stops;
    atomic_int forwards;
};

struct phase {
    const char *name;
    enum op ops[OPS_MAX];
    bool beside_forward;
};

struct mode {
    const char *name;
    const struct phase *phases[PHASES_MAX];
};

static const struct phase making = {.name = "setup"};
static const struct phase removing = {.name = "cleanup"};
static const struct phase publishing = {"publish", {OP_PUBLISH}, false};
static const struct phase claiming = {"claim", {OP_CLAIM}, false};
static const struct phase claiming_beside_forward = {"claim-beside-forward", {OP_CLAIM}, true};
static const struct phase acknowledging = {"acknowledge", {OP_ACKNOWLEDGE}, false};
static const struct phase consuming = {"claim-acknowledge", {OP_CLAIM, OP_ACKNOWLEDGE}, false};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int run_op(const struct peer *peer, enum op op, const struct queue *q, const char *name) {
    switch (op) {
    case OP_PUBLISH:
        return peer->publish(q, name);
    case OP_CLAIM:
        return peer->claim(q, name);
    case OP_ACKNOWLEDGE:
        return peer->acknowledge(q, name);
    case OP_NONE:
        break;
    }
    return 0;
}

static int run_messages(const struct options *o, const struct phase *phase, const struct queue *q, struct result *r) {
    struct result sum = {0};
    char name[16];
    for (int i = 0; i < o->messages; i++) {
        snprintf(name, sizeof name, "m%d", i);
        uint64_t before_ns = now_ns();
        for (int k = 0; k < OPS_MAX && phase->ops[k] != OP_NONE; k++) {
            if (run_op(o->peer, phase->ops[k], q, name)) {
                return -1;
            }
            uint64_t after_ns = now_ns();
            sum.op_ns[k] += after_ns - before_ns;
            before_ns = after_ns;
        }
    }
    sum.end_ns = now_ns();
    *r = sum;
    return 0;
}

/* Sends one message to and fro between two queues of its own, claiming it on each side, until told to stop. */
static int run_forwarder(const struct options *o, struct shared *shared, int ready_fd, int go_fd) {
    struct queue queues[2] = {0};
    char byte = 0;
    if (queue_open(&queues[0], o->peer, o->size_bytes, o->processes) ||
        queue_open(&queues[1], o->peer, o->size_bytes, o->processes + 1) || o->peer->publish(&queues[0], "f") ||
        o->peer->claim(&queues[0], "f") || write(ready_fd, &byte, 1) != 1 || read(go_fd, &byte, 1) < 0) {
        return -1;
    }
    int at = 0;
    for (; !atomic_load(&shared->forwarder_stops); at = 1 - at) {
        if (o->peer->forward(&queues[at], &queues[1 - at], "f") || o->peer->claim(&queues[1 - at], "f")) {
            return -1;
        }
        atomic_fetch_add(&shared->forwards, 1);
    }
    return o->peer->acknowledge(&queues[at], "f");
}

static int run_worker(const struct options *o, const struct phase *phase, int index, int ready_fd, int go_fd,
                      struct result *r) {
    struct queue q = {0};
    char byte = 0;
    if (queue_open(&q, o->peer, o->size_bytes, index) || write(ready_fd, &byte, 1) != 1 || read(go_fd, &byte, 1) < 0) {
        return -1;
    }
    return run_messages(o, phase, &q, r);
}

static void print_phase(const struct options *o, const struct phase *phase, const struct shared *shared,
                        uint64_t start_ns) {
    static const char *const op_names[] = {"", "publish", "claim", "acknowledge"};
    uint64_t end_ns = start_ns, op_ns[OPS_MAX] = {0};
    for (int i = 0; i < o->processes; i++) {
        const struct result *r = &shared->results[i];
        end_ns = r->end_ns > end_ns ? r->end_ns : end_ns;
        for (int k = 0; k < OPS_MAX; k++) {
            op_ns[k] += r->op_ns[k];
        }
    }
    int messages = o->processes * o->messages;
    double seconds = (double)(end_ns - start_ns) / 1e9;
    printf("peer=%s phase=%s processes=%d messages=%d seconds=%.4f messages_per_s=%.1f", o->peer->name, phase->name,
           o->processes, messages, seconds, messages / seconds);
    for (int k = 0; k < OPS_MAX && phase->ops[k] != OP_NONE; k++) {
        printf(" %s_us=%.1f", op_names[phase->ops[k]], (double)op_ns[k] / 1e3 / messages);
    }
    if (phase->beside_forward) {
        printf(" forwards_per_s=%.1f", atomic_load(&shared->forwards) / seconds);
    }
    printf("\n");
    fflush(stdout);
}

static int wait_for(pid_t pid) {
    int status;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* The pipe `ready` carries a byte from each child and ends early when one dies; closing `go` starts them all. */
static int run_phase(const struct options *o, const struct phase *phase, struct shared *shared) {
    int ready[2], go[2];
    pid_t pids[PROCESSES_MAX + 1] = {0};
    int children = o->processes + phase->beside_forward;
    memset(shared, 0, sizeof *shared);
    if (pipe(ready) || pipe(go)) {
        return failed("make pipes for", phase->name);
    }
    for (int i = 0; i < children; i++) {
        pids[i] = fork();
        if (pids[i] < 0) {
            return failed("fork for", phase->name);
        }
        if (pids[i] == 0) {
            close(go[1]);
            int rc = i < o->processes ? run_worker(o, phase, i, ready[1], go[0], &shared->results[i])
                                      : run_forwarder(o, shared, ready[1], go[0]);
            _exit(rc ? 1 : 0);
        }
    }
    close(ready[1]);
    close(go[0]);
    char byte;
    int waiting = children;
    while (waiting > 0 && read(ready[0], &byte, 1) == 1) {
        waiting--;
    }
    uint64_t start_ns = now_ns();
    close(go[1]);
    int rc = 0;
    for (int i = 0; i < o->processes; i++) {
        rc = wait_for(pids[i]) ? -1 : rc;
    }
    atomic_store(&shared->forwarder_stops, true);
    if (phase->beside_forward) {
        rc = wait_for(pids[o->processes]) ? -1 : rc;
    }
    close(ready[0]);
    if (rc == 0) {
        print_phase(o, phase, shared, start_ns);
    }
    return rc;
}

static int make_queues(const struct options *o, int queues) {
    char path[2 * PATH_BYTES];
    for (int i = 0; i < queues; i++) {
        for (int k = 0; k < DIRS_MAX && o->peer->dirs[k]; k++) {
            snprintf(path, sizeof path, "q%d%s", i, o->peer->dirs[k]);
            if (mkdir(path, 0755) && errno != EEXIST) {
                return failed("mkdir", path);
            }
        }
    }
    return 0;
}

static int remove_queues(const struct options *o, int queues) {
    char path[2 * PATH_BYTES];
    for (int i = 0; i < queues; i++) {
        for (int k = DIRS_MAX - 1; k >= 0; k--) {
            if (!o->peer->dirs[k]) {
                continue;
            }
            snprintf(path, sizeof path, "q%d%s", i, o->peer->dirs[k]);
            if (rmdir(path)) {
                return failed("rmdir", path);
            }
        }
    }
    return 0;
}

/* `claim-beside-forward` claims as many messages twice, first alone, then while one more process forwards. */
static const struct mode modes[] = {
    {"throughput", {&making, &publishing, &consuming, &removing}},
    {"claim-beside-forward",
     {&making, &publishing, &claiming, &acknowledging, &publishing, &claiming_beside_forward, &acknowledging,
      &removing}},
    {"setup", {&making}},
    {"publish", {&publishing}},
    {"claim", {&claiming}},
    {"acknowledge", {&acknowledging}},
    {"cleanup", {&removing}},
};

static int run_mode(const struct options *o, struct shared *shared) {
    int rc = 0;
    for (int i = 0; i < PHASES_MAX && o->mode->phases[i] && !rc; i++) {
        const struct phase *phase = o->mode->phases[i];
        int queues = o->processes + FORWARDER_QUEUES;
        if (phase == &making) {
            rc = make_queues(o, queues);
        } else if (phase == &removing) {
            rc = remove_queues(o, queues);
        } else {
            rc = run_phase(o, phase, shared);
        }
    }
    return rc;
}

static const struct peer *find_peer(const char *name) {
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        if (!strcmp(peers[i].name, name)) {
            return &peers[i];
        }
    }
    return NULL;
}

static const struct mode *find_mode(const char *name) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (!strcmp(modes[i].name, name)) {
            return &modes[i];
        }
    }
    return NULL;
}

static int parse_options(struct options *o, int argc, char **argv) {
    static const struct option longs[] = {
        {"peer", required_argument, NULL, 'p'},     {"processes", required_argument, NULL, 'n'},
        {"messages", required_argument, NULL, 'm'}, {"size", required_argument, NULL, 's'},
        {"mode", required_argument, NULL, 'o'},     {NULL, 0, NULL, 0},
    };
    int size_bytes = 1024;
    *o = (struct options){.peer = &peers[0], .mode = &modes[0], .processes = 1, .messages = 1000};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (c) {
        case 'p':
            o->peer = find_peer(optarg);
            break;
        case 'n':
            o->processes = atoi(optarg);
            break;
        case 'm':
            o->messages = atoi(optarg);
            break;
        case 's':
            size_bytes = atoi(optarg);
            break;
        case 'o':
            o->mode = find_mode(optarg);
            break;
        default:
            return -1;
        }
    }
    if (optind + 1 != argc || !o->peer || !o->mode || o->processes < 1 || o->processes > PROCESSES_MAX ||
        o->messages < 1 || size_bytes < 0) {
        return -1;
    }
    o->size_bytes = (size_t)size_bytes;
    o->dir = argv[optind];
    return 0;
}

int main(int argc, char **argv) {
    struct options o;
    if (parse_options(&o, argc, argv)) {
        fprintf(stderr, "usage: queue_bench [--peer spoolfs|maildir] [--processes N] [--messages M] [--size BYTES]"
                        " [--mode throughput|claim-beside-forward|setup|publish|claim|acknowledge|cleanup] DIR\n");
        return 2;
    }
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        failed("share memory for", o.dir);
        return 1;
    }
    if (chdir(o.dir)) {
        failed("enter", o.dir);
        return 1;
    }
    return run_mode(&o, shared) ? 1 : 0;
}
