/*
 * A gateway that asks anything in any order: every request is answered exactly
 * once, or its gateway is ended; the launcher goes on and leaves nothing behind.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "clock.h"
#include "err.h"
#include "launchlink.h"
#include "world.h"

enum { REQUESTS = 5000, KNOWN = 8, ENDED_LEAST = 5, ANSWERED_LEAST = 500 };

struct run {
    struct world *w;
    uint64_t seed;
    uint64_t sandboxes[KNOWN];  /* some of them long gone */
    uint8_t open[REQUESTS + 1]; /* by request number of the present gateway's first + i */
    uint64_t first;             /* number before the present gateway's first request */
    unsigned answered, errors, ended;
};

/* xorshift64: the same run every time. */
static unsigned any(struct run *r, unsigned below)
{
    r->seed ^= r->seed << 13;
    r->seed ^= r->seed >> 7;
    r->seed ^= r->seed << 17;
    return (unsigned)((r->seed >> 20) % below);
}

static uint64_t any_sandbox(struct run *r)
{
    const struct sessions *t = &r->w->launcher.sessions;
    const struct session *lives = t->slot[any(r, t->max)];
    unsigned i = any(r, KNOWN + 1);

    if (lives != NULL && any(r, 8) != 0)
        return lives->id;
    return i < KNOWN ? r->sandboxes[i] : any(r, 1000);
}

static void ask_start(struct run *r)
{
    static const char *const acts[] = { "wait", "exit7", "suicide", "wait" };
    const char *argv0 = acts[any(r, 4)];
    struct launch_start m = {
        .sandbox = any_sandbox(r),
        .kernel = any(r, 4),
        .generation = (uint32_t)(r->w->asked + any(r, 40)), /* rises, mostly */
        .flags = any(r, 2),
        .spec_name = any(r, 8) ? VIEW_STR("python3") : VIEW_STR("none"),
        .argv = { (const uint8_t *)argv0, strlen(argv0) + 1 },
    };
    int fds[7];
    unsigned n = world_start_fds(fds, any(r, 30) ? (int)m.flags : !m.flags);

    world_ask(r->w, LAUNCH_START_KERNEL, &m, fds, n);
    world_close(fds, n);
}

/* A kernel that is likely to be there: the last generation that the table knows. */
static void any_kernel(struct run *r, uint64_t sandbox, uint32_t *kernel, uint32_t *generation)
{
    const struct session *s = sessions_find(&r->w->launcher.sessions, sandbox);

    *kernel = any(r, 60) ? 1 + any(r, 3) : 0;
    *generation = s != NULL && *kernel > 0 ? s->kernels[*kernel - 1].generation : any(r, 9);
}

static void ask_about_kernel(struct run *r, unsigned verb)
{
    static const uint32_t signals[] = { SIGINT, SIGTERM, SIGKILL, SIGUSR1 };
    struct launch_kernel_ref ref = { .sandbox = any_sandbox(r) };

    any_kernel(r, ref.sandbox, &ref.kernel, &ref.generation);
    struct launch_signal sig = { ref.sandbox, ref.kernel, ref.generation,
                                 any(r, 40) ? signals[any(r, 4)] : SIGSTOP, any(r, 2) };
    struct launch_stop stop = { ref.sandbox, any(r, 8) ? ref.kernel : 0, ref.generation };

    if (verb == LAUNCH_SEAL)
        world_ask(r->w, verb, &ref, NULL, 0);
    else if (verb == LAUNCH_SIGNAL)
        world_ask(r->w, verb, &sig, NULL, 0);
    else
        world_ask(r->w, verb, &stop, NULL, 0);
}

static void ask_anything(struct run *r)
{
    struct launch_create create = { .profile = VIEW_STR("default") };
    struct launch_status status = { any_sandbox(r), any(r, 2) };
    struct launch_room room = { 0 };
    struct launch_list list = { any_sandbox(r) };
    struct launch_note note = { any_sandbox(r), VIEW_STR("note") };
    struct launch_deadline deadline = { any_sandbox(r), any(r, 10) ? 0 : clock_ms() + any(r, 50) };
    int fds[7];
    unsigned n;

    switch (1 + any(r, LAUNCH_VERBS_END - 1)) {
    case LAUNCH_CREATE:
        create.limits.memory_bytes = any(r, 2) ? any(r, WORLD_MEMORY_MAX + (8 << 20)) : 0;
        world_ask(r->w, LAUNCH_CREATE, &create, NULL, 0);
        break;
    case LAUNCH_START_KERNEL:
        ask_start(r);
        break;
    case LAUNCH_SEAL:
        ask_about_kernel(r, LAUNCH_SEAL);
        break;
    case LAUNCH_SIGNAL:
        ask_about_kernel(r, LAUNCH_SIGNAL);
        break;
    case LAUNCH_STOP:
        ask_about_kernel(r, LAUNCH_STOP);
        break;
    case LAUNCH_STATUS:
        world_ask(r->w, LAUNCH_STATUS, &status, NULL, 0);
        break;
    case LAUNCH_LIST:
        world_ask(r->w, LAUNCH_LIST, &list, NULL, 0);
        break;
    case LAUNCH_ROOM:
        world_ask(r->w, LAUNCH_ROOM, &room, NULL, 0);
        break;
    case LAUNCH_NOTE:
        n = world_start_fds(fds, 1);
        world_ask(r->w, LAUNCH_NOTE, &note, fds, any(r, n + 1));
        world_close(fds, n);
        break;
    default:
        world_ask(r->w, LAUNCH_DEADLINE, &deadline, NULL, 0);
    }
    r->open[r->w->asked - r->first] = 1;
}

static void take(struct run *r, struct answer *a)
{
    world_close(a->fds, a->head.fds);
    a->head.fds = 0;
    if (a->head.request == 0)
        return;
    assert_in_range(a->head.request, r->first + 1, r->w->asked);
    assert_int_equal(r->open[a->head.request - r->first], 1); /* asked, and not answered before */
    r->open[a->head.request - r->first] = 0;
    r->answered++;
    r->errors += a->head.verb == LAUNCH_ERROR;
    if (a->head.verb == LAUNCH_CREATE)
        r->sandboxes[any(r, KNOWN)] = a->created.sandbox;
}

static unsigned count_open(const struct run *r)
{
    unsigned n = 0;

    for (uint64_t i = r->first + 1; i <= r->w->asked; i++)
        n += r->open[i - r->first];
    return n;
}

/* Serves what came; when the gateway was ended a new one takes its place, and
 * nobody waits for the old one's answers. */
static void turn(struct run *r, struct answer *a)
{
    launcher_turn(&r->w->launcher, 0);
    if (r->w->launcher.gateway.link == NULL) {
        world_until(r->w, world_gateway_dead);
        world_attach(r->w);
        memset(r->open, 0, sizeof r->open);
        r->first = r->w->asked;
        r->ended++;
        return;
    }
    while (world_poll(r->w, a))
        take(r, a);
}

static void any_request_is_answered_once_or_ends_its_gateway(void **state)
{
    struct run *r = xcalloc(1, sizeof *r);
    struct answer *a = xcalloc(1, sizeof *a);
    uint64_t end = clock_ms() + 120000;

    r->w = *state;
    r->seed = 88172645463325252U;
    for (int i = 0; i < REQUESTS; i++) {
        ask_anything(r);
        if (any(r, 50) == 0)
            fake_oom();
        fake.hold_starts = any(r, 3) == 0;
        if (any(r, 8) == 0)
            fake_let_go();
        fake.end_error = any(r, 9) ? 0 : ENOENT;
        fake.busy = any(r, 5) ? 0 : any(r, 6);
        do
            turn(r, a);
        while (any(r, 3) == 0);
    }
    fake_let_go();
    fake.end_error = 0;
    while (count_open(r) > 0) {
        assert_true(clock_ms() < end);
        launcher_turn(&r->w->launcher, 5);
        turn(r, a);
    }
    print_message("answered %u, of them errors %u; gateways ended %u\n", r->answered, r->errors,
                  r->ended);
    assert_true(r->answered >= ANSWERED_LEAST); /* the run is worth something */
    assert_true(r->errors > 0 && r->errors < r->answered / 4 * 3);
    assert_true(r->ended >= ENDED_LEAST);
    free(a);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_request_is_answered_once_or_ends_its_gateway,
                                        world_setup, world_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
