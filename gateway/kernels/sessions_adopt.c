/* Taking over what another gateway left: the launcher lists its sandboxes with
 * the notes, and each becomes a kernel again, or is stopped. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "culling.h"
#include "datanames.h"
#include "err.h"
#include "kernel_own.h"
#include "launchmsg.h"
#include "link.h"
#include "log.h"
#include "note.h"
#include "noteseats.h"
#include "recipe.h"
#include "sessions_own.h"
#include "tail.h"

enum { KERNEL_NUMBER = 1 };

static void on_stopped(void *arg, uint64_t token, struct launch_answer *a)
{
    (void)arg;
    if (a->error != 0)
        log_warn("orphan_stop", "sandbox=%llx error=\"%s\"", (unsigned long long)token, a->text);
}

/* A sandbox that nobody can talk to would live for ever. */
static void stop_orphan(struct sessions *s, uint64_t sandbox, const char *why)
{
    struct launch_stop body = { .sandbox = sandbox };
    struct err e = { 0 };

    log_warn("orphan", "sandbox=%llx why=\"%s\"", (unsigned long long)sandbox, why);
    if (launchclient_ask(s->launcher, LAUNCH_STOP, &body, NULL, 0, on_stopped, s, sandbox, &e) < 0)
        log_error("orphan_stop", "error=\"%s\"", e.msg);
}

static int find_info(struct view kernels, struct launch_kernel_info *ret)
{
    for (size_t at = 0; at + sizeof *ret <= kernels.n; at += sizeof *ret) {
        memcpy(ret, kernels.p + at, sizeof *ret);
        if (ret->kernel == KERNEL_NUMBER)
            return 1;
    }
    return 0;
}

/* Sorts the descriptors by what the note says they are. */
static int sort_fds(const struct note *n, struct launch_answer *a, int *sorted, struct err *e)
{
    unsigned count = 0;

    for (unsigned i = 0; i < NOTE_FDS; i++)
        count += (n->fds >> i) & 1;
    if (count != a->fd_count)
        return err_set(e, HC_EPARSE, "%u descriptors, the note names %u", a->fd_count, count);
    count = 0;
    for (unsigned i = 0; i < NOTE_FDS; i++)
        sorted[i] = (n->fds >> i) & 1 ? a->fds[count++] : -1;
    if (sorted[NOTE_RECIPE] < 0 || sorted[NOTE_INIT] < 0 || sorted[NOTE_SESSION_DIR] < 0)
        return err_set(e, HC_EPARSE, "the note lacks descriptors");
    return 0;
}

static int keep(int fd, struct err *e)
{
    int kept = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

    if (fd >= 0 && kept < 0)
        return err_sys(e, errno, "keep a descriptor");
    return kept;
}

/* CLOCK_MONOTONIC is the host's, so the old gateway's times go on. What happened since
 * the note was written is not known: nobody loses time by that. */
static void take_activity(struct kernel *k, const struct note *n)
{
    uint64_t now = loop_now_ms(k->all->loop);

    k->adopted_busy = n->busy;
    k->adopted_ms = now;
    if (n->last_us == 0 || n->last_ms == 0)
        return;
    k->activity.last_us = n->last_us;
    k->activity.last_ms = n->last_ms + CULLING_NOTE_MS < now ? n->last_ms + CULLING_NOTE_MS : now;
}

/* CLOCK_MONOTONIC is the host's: the session's time goes on. A note that does not say when
 * it was made is one of before there was a lifetime. */
static void take_times(struct session *s, const struct note *n)
{
    s->times = n->times;
    if (n->born_ms != 0 && n->born_ms < s->born_ms)
        s->born_ms = n->born_ms;
    session_watch_life(s);
}

static int fill(struct kernel *k, const struct launch_listed *listed, const struct note *n,
                const int *fds, struct err *e)
{
    int rc = recipe_read(fds[NOTE_RECIPE], &k->recipe, e);

    if (rc < 0)
        return rc;
    k->recipe.spec_name = xstrdup(n->spec_name);
    k->recipe.spec_dir = n->spec_dir;
    k->recipe.sockets_fd = n->sockets_fd;
    k->recipe.interrupt_by_message = n->interrupt_by_message;
    k->recipe.cull_ms = n->cull_ms;
    take_activity(k, n);
    take_times(k->session, n);
    k->generation = n->generation;
    memcpy(k->key, n->key, sizeof k->key);
    memcpy(k->kept, n->kept, sizeof k->kept);
    snprintf(k->sid, sizeof k->sid, "%s", n->session);
    k->endpoints.dir_fd = k->all->policy.private_dir_fd;
    memcpy(k->endpoints.base, n->base, sizeof k->endpoints.base);
    for (unsigned i = 0; i < ENDPOINT_COUNT; i++)
        k->endpoints.fds[i] = keep(fds[NOTE_SOCKET + i], e);
    session_adopt(k->session, listed->sandbox, &listed->limits, keep(fds[NOTE_INIT], e),
                  keep(fds[NOTE_SESSION_DIR], e));
    k->run_dir_fd = keep(fds[NOTE_RUN_DIR], e);
    int tail = keep(fds[NOTE_TAIL], e);
    if (tail >= 0)
        k->tail = tail_new(k->all->loop, tail);
    if (k->session->init_fd < 0 || k->session->dir_fd < 0)
        return -EMFILE;
    return 0;
}

/* Goes on from where the process is. */
static void resume(struct kernel *k, const struct launch_kernel_info *info, int known)
{
    int has_sockets =
        k->recipe.sockets_fd ? k->endpoints.base[0] != '\0' : k->endpoints.fds[0] >= 0;

    restarts_started(&k->restarts, loop_now_ms(k->all->loop));
    if (known && info->generation > k->generation)
        k->generation = info->generation;
    if (known && info->running && info->generation == k->generation && has_sockets) {
        k->process = 1;
        k->adopted = 1; /* and busy, until its shell answers */
        k->activity.state = ACTIVITY_IDLE;
        kernel_connect(k);
        return;
    }
    if (known && info->running && info->generation == k->generation && k->run_dir_fd >= 0) {
        k->process = 1;
        kernel_await_sockets(k);
        return;
    }
    /* It died while no gateway looked, or was started and its key is not known, or
     * was never started: a new process in the same sandbox. */
    snprintf(k->death, sizeof k->death, "lost while the gateway was restarted");
    if (known && !info->running && info->generation == k->generation) {
        k->death[0] = '\0';
        k->exit =
            (struct launch_kernel_exited){ .exit_code = info->exit_code, .signo = info->signo };
    }
    kernel_exited(k);
}

static void on_restarted(void *arg, uint64_t token, struct kernel *k, const struct err *e)
{
    (void)arg;
    (void)token;
    if (e != NULL)
        log_warn("kernel_not_restarted", "error=\"%s\"", e->msg);
    else
        log_info("kernel_restarted_anew", "kernel=%s", k->id);
}

/* What a lost sandbox is made anew with; of names that the server does not have any more, without. */
static void take_data(const struct sessions *s, const struct launch_listed *listed,
                      struct principal *p)
{
    char *names[33];
    int count = msg_strings_count(listed->data, 32, NULL);

    p->data_some = !listed->data_all;
    if (count < 0)
        return;
    msg_strings_split(listed->data, names, (unsigned)count);
    for (int i = 0; i < count; i++)
        p->data |= datanames_bit(s->policy.data, names[i]);
}

static int adopt_one(struct sessions *s, const struct launch_listed *listed,
                     struct launch_answer *a, struct err *e)
{
    struct launch_kernel_info info = { 0 };
    struct principal p = { 0 };
    autobuf struct buf seats = { 0 };
    struct note n;
    int fds[NOTE_FDS];

    int rc = note_decode(listed->note, &n, e);
    if (rc == 0)
        rc = sort_fds(&n, a, fds, e);
    if (rc == 0 && fds[NOTE_SEATS] >= 0) {
        rc = noteseats_read(fds[NOTE_SEATS], &seats, e);
        n.seats = buf_view(&seats);
    }
    if (rc < 0)
        return rc;
    if (n.ending)
        return err_set(e, HC_EGONE, "kernel %s was being deleted", n.id);
    memcpy(p.name, n.principal, sizeof p.name);
    p.workspace_bytes = n.workspace_bytes;
    take_data(s, listed, &p);
    if (sessions_find_kernel(s, &p, n.id) != NULL)
        return err_set(e, EEXIST, "kernel %s is there already", n.id);
    struct kernel *k = kernel_new(session_new(s, &p), n.id);
    rc = fill(k, listed, &n, fds, e);
    if (rc < 0) {
        /* The names of its sockets stay for nobody: they go with the private directory. */
        kernel_free(k);
        return rc;
    }
    if (listed->profile.n > 0 && listed->profile.n < sizeof k->session->profile) {
        memcpy(k->session->profile, listed->profile.p, listed->profile.n);
        k->session->profile[listed->profile.n] = '\0';
    }
    k->listed = k->born = 1;
    int known = find_info(listed->kernels, &info);
    log_info("kernel_adopted", "kernel=%s generation=%u principal=%s running=%d", k->id,
             k->generation, kernel_owner(k), known && info.running);
    queries_count_from(k->queries, n.numbered); /* no number means two runs */
    kernel_inherit(k, n.seats);
    resume(k, &info, known);
    /* Half of the seed notebook is no state that anybody should find, and who was past its
     * time goes on to its end. */
    if ((n.seeding || n.overdue) && k->process)
        kernel_restart(k, on_restarted, s, 0);
    return 0;
}

static int is_socket_of_a_kernel(void *arg, const char *name)
{
    const struct sessions *s = arg;

    for (const struct kernel *k = sessions_first_kernel(s); k != NULL;
         k = sessions_next_kernel(k)) {
        /* The link of a connected kernel has taken them over. */
        const struct endpoints *p = k->link != NULL ? link_endpoints(k->link) : &k->endpoints;

        if (endpoints_own(p, name))
            return 1;
    }
    return 0;
}

static void finish(struct sessions *s)
{
    void (*done)(void *arg) = s->adopt_done;

    s->adopt_done = NULL;
    if (done != NULL)
        done(s->adopt_arg);
}

static void ask_next(struct sessions *s, uint64_t after);

static void on_listed(void *arg, uint64_t token, struct launch_answer *a)
{
    struct sessions *s = arg;
    struct err e = { 0 };

    (void)token;
    if (a->error != 0) {
        log_error("adopt", "error=\"%s\"", a->text);
        finish(s);
        return;
    }
    const struct launch_listed *listed = a->body;
    if (listed->sandbox == 0) {
        endpoints_sweep(s->policy.private_dir_fd, is_socket_of_a_kernel, s);
        finish(s);
        return;
    }
    if (adopt_one(s, listed, a, &e) < 0)
        stop_orphan(s, listed->sandbox, e.msg);
    ask_next(s, listed->sandbox);
}

static void ask_next(struct sessions *s, uint64_t after)
{
    struct launch_list body = { .after = after };
    struct err e = { 0 };

    if (launchclient_ask(s->launcher, LAUNCH_LIST, &body, NULL, 0, on_listed, s, 0, &e) < 0) {
        log_error("adopt", "error=\"%s\"", e.msg);
        finish(s);
    }
}

void sessions_adopt(struct sessions *s, void (*done)(void *arg), void *arg)
{
    s->adopt_done = done;
    s->adopt_arg = arg;
    ask_next(s, 0);
}
