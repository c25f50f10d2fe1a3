#include "sane.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "acts.h"
#include "handles.h"

enum { EMPTY_MS = 10000 };

#define MUST(p, what)                                                                             \
    do {                                                                                          \
        if (!(what))                                                                              \
            peer_fail(p, "sane, line %d: %s (last: verb %u, error %d, '%.*s')", __LINE__, #what,  \
                      (p)->last.head.verb, (p)->last.head.error,                                  \
                      (p)->last.head.verb == LAUNCH_ERROR ? (int)(p)->last.body.error.text.n : 0, \
                      (p)->last.head.verb == LAUNCH_ERROR                                         \
                          ? (const char *)(p)->last.body.error.text.p                             \
                          : "");                                                                  \
    } while (0)

static int ask(struct peer *p, unsigned verb, const void *body, const int *fds, unsigned n)
{
    uint64_t before = peer_clock_ms();
    int rc = peer_wait(p, peer_ask(p, verb, body, fds, n));

    if (verb == LAUNCH_ROOM && peer_clock_ms() - before > p->page->slowest_sane_ms)
        p->page->slowest_sane_ms = peer_clock_ms() - before;
    return rc;
}

void sane_clear(struct peer *p)
{
    for (unsigned round = 0;; round++) {
        struct launch_list list = { 0 };
        unsigned n = 0;

        while (n < 64 && ask(p, LAUNCH_LIST, &list, NULL, 0) == 1 &&
               p->last.body.listed.sandbox != 0) {
            const struct launch_stop stop = { .sandbox = p->last.body.listed.sandbox };

            list.after = stop.sandbox;
            (void)peer_ask(p, LAUNCH_STOP, &stop, NULL, 0);
            n++;
        }
        peer_settle(p);
        if (n == 0)
            return;
        MUST(p, round < 100);
    }
}

/* Until an event of this kind about the sandbox comes. */
static void expect_event(struct peer *p, unsigned verb, uint64_t sandbox)
{
    uint64_t until = peer_clock_ms() + PEER_PATIENCE_MS;

    do {
        MUST(p, peer_clock_ms() < until && !p->dead);
        p->last.head.verb = 0;
        peer_receive(p, 1000);
    } while (p->last.head.verb != verb || p->last.head.request != 0 ||
             p->last.body.gone.sandbox != sandbox);
}

static void expect_text(struct peer *p, int fd, const char *text)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    char got[64] = "";

    MUST(p, poll(&ready, 1, PEER_PATIENCE_MS) == 1);
    ssize_t n = read(fd, got, sizeof got - 1);
    got[n > 0 ? n : 0] = '\0';
    MUST(p, strncmp(got, text, strlen(text)) == 0);
}

static void run_kernel(struct peer *p, uint64_t sandbox, uint32_t generation, unsigned flags)
{
    static const char *const words[] = { "sh", "-c", "echo up; exec sleep 1000", NULL };
    static const char *const env[] = { "PATH=/usr/bin:/bin", "HOME=/home/user", NULL };
    uint8_t argv[200], vars[200];
    const struct launch_start m = {
        .sandbox = sandbox,
        .kernel = 1,
        .generation = generation,
        .flags = flags,
        .spec_name = VIEW_STR("storm"),
        .argv = act_argv(words, argv, sizeof argv),
        .env = act_argv(env, vars, sizeof vars),
    };
    int fds[HANDLES_START];
    autoclose int log = -1;
    unsigned n = handles_start(flags, fds, &log);

    MUST(p, ask(p, LAUNCH_START_KERNEL, &m, fds, n) == 1);
    MUST(p, p->last.head.fds == (flags ? 0 : 1) && p->last.body.started.generation == generation);
    handles_close(fds, n);
    expect_text(p, log, "up\n");
}

static void check_note(struct peer *p, uint64_t sandbox)
{
    const struct launch_note note = { sandbox, VIEW_STR("what the next one needs") };
    struct launch_list list = { 0 };
    struct stat before, after;
    int fd = handle_memfd("x", 0);

    MUST(p, fd >= 0 && fstat(fd, &before) == 0);
    MUST(p, ask(p, LAUNCH_NOTE, &note, &fd, 1) == 1);
    MUST(p, ask(p, LAUNCH_LIST, &list, NULL, 0) == 1);
    MUST(p, p->last.body.listed.sandbox == sandbox && p->last.head.fds == 1);
    MUST(p, view_equals(p->last.body.listed.note, "what the next one needs"));
    MUST(p, fstat(p->last.fds[0], &after) == 0 && after.st_ino == before.st_ino);
    close(fd);
}

static void check_kernel(struct peer *p, uint64_t sandbox)
{
    const struct launch_stop stop = { sandbox, 1, 1 };
    const struct launch_status status = { .sandbox = sandbox };
    const struct launch_kernel_ref ref = { sandbox, 1, 2 };
    const struct launch_signal sig = { sandbox, 1, 2, SIGTERM, 1 };

    run_kernel(p, sandbox, 1, LAUNCH_SOCKETS_FD);
    MUST(p, ask(p, LAUNCH_STATUS, &status, NULL, 0) == 1);
    MUST(p, p->last.body.status.pids >= 2 && p->last.body.status.memory_bytes > 0);
    MUST(p, ask(p, LAUNCH_STOP, &stop, NULL, 0) == 1);
    run_kernel(p, sandbox, 2, 0);
    MUST(p, ask(p, LAUNCH_SEAL, &ref, NULL, 0) == 1);
    MUST(p, ask(p, LAUNCH_SIGNAL, &sig, NULL, 0) == 1);
    expect_event(p, LAUNCH_KERNEL_EXITED, sandbox);
    MUST(p, p->last.body.exited.signo == SIGTERM && p->last.body.exited.generation == 2);
}

/* LIST tells the sessions that live, ROOM counts those that end as well. */
static void wait_until_empty(struct peer *p)
{
    const struct launch_room room = { 0 };
    const uint64_t end = peer_clock_ms() + EMPTY_MS;

    do
        MUST(p, ask(p, LAUNCH_ROOM, &room, NULL, 0) == 1);
    while (p->last.body.room.sessions != 0 && peer_clock_ms() < end);
    MUST(p, p->last.body.room.sessions == 0);
}

void sane_session(struct peer *p)
{
    const struct launch_create create = { .profile = VIEW_STR("default"),
                                          .limits = { .memory_bytes = 96 << 20, .pids = 32 } };
    const struct launch_room room = { 0 };
    const struct launch_audit audit = { 0 };
    struct launch_list list = { 0 };

    wait_until_empty(p);
    MUST(p, ask(p, LAUNCH_AUDIT, &audit, NULL, 0) == 1 && p->last.head.fds == 1);
    MUST(p, ask(p, LAUNCH_CREATE, &create, NULL, 0) == 1);
    const uint64_t id = p->last.body.created.sandbox;
    MUST(p, p->last.body.created.limits.memory_bytes == 96 << 20 &&
                p->last.body.created.limits.pids == 32);
    check_kernel(p, id);
    check_note(p, id);
    const struct launch_deadline deadline = { id, peer_clock_ms() };
    MUST(p, ask(p, LAUNCH_DEADLINE, &deadline, NULL, 0) == 1);
    expect_event(p, LAUNCH_SANDBOX_GONE, id);
    MUST(p, view_equals(p->last.body.gone.reason, "deadline"));
    MUST(p, ask(p, LAUNCH_LIST, &list, NULL, 0) == 1 && p->last.body.listed.sandbox == 0);
    MUST(p, ask(p, LAUNCH_ROOM, &room, NULL, 0) == 1 && p->last.body.room.sessions == 0);
}
