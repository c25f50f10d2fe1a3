#include "request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "auditfile.h"
#include "clock.h"
#include "ending.h"
#include "err.h"
#include "homechoice.h"
#include "kernelproc.h"
#include "launcher.h"
#include "launchlink.h"
#include "log.h"
#include "namedpath.h"
#include "policy.h"
#include "sandbox.h"
#include "session_limits.h"
#include "start.h"

/* Every request but CREATE, LIST, ROOM and AUDIT begins with the sandbox it is about. */
union body {
    uint64_t sandbox;
    struct launch_create create;
    struct launch_start start;
    struct launch_kernel_ref ref;
    struct launch_signal signal;
    struct launch_stop stop;
    struct launch_status status;
    struct launch_list list;
    struct launch_note note;
    struct launch_deadline deadline;
    struct launch_room room;
    struct launch_audit audit;
};

struct request {
    struct launcher *launcher;
    struct link_packet *packet;
    struct session *session; /* NULL when the verb needs none */
    union body body;
};

/* Handlers return 0 when they answered or will, else a negative code. -HC_EPARSE
 * and -HC_ESTATE end the gateway: neither comes from a race, only from a fault. */
typedef int handler(struct request *r, struct err *e);

enum need {
    NEEDS_NOTHING,
    NEEDS_SESSION, /* that lives */
    NEEDS_ANY,     /* or ends */
};

static void answer(struct request *r, const void *body, const int *fds, unsigned fd_count)
{
    const struct msg_head *h = &r->packet->head;

    launcher_answer(r->launcher, h->verb, h->request, body, fds, fd_count);
}

static void answer_done(struct request *r)
{
    struct launch_done done = { .sandbox = r->session->id };

    answer(r, &done, NULL, 0);
}

/* A change is told; which one a session has, the line of its creation tells. */
static void tell_home(struct launcher *l, enum sandbox_home home, const char *why)
{
    int short_of_disk = home == SANDBOX_HOME_MEMORY;

    if (short_of_disk != l->short_of_disk)
        log_warn(short_of_disk ? "homes_in_memory" : "homes_on_disk", "text=%s",
                 LOG_QUOTED(short_of_disk ? why : "they can lie there again"));
    l->short_of_disk = short_of_disk;
}

/* The limits in force, where the home lies, and whether there is room for all that. no_disk: homes cannot
 * lie there now, however much room it has. */
static int admit(struct request *r, int no_disk, const struct policy_terms *t,
                 struct launch_limits *limits, struct sandbox_files *files, struct err *e)
{
    struct launcher *l = r->launcher;
    const struct launch_limits *wanted = &r->body.create.limits;
    struct admission a;
    int rc = session_limits_choose(wanted, t->defaults, t->maxima, limits, e);

    if (rc < 0)
        return rc;
    admission_look(l, &a);
    if (no_disk)
        a.disk_available = 0;
    rc = home_choose(&t->home, &a, t->defaults, wanted->home_bytes != 0, limits, &files->home, e);
    if (rc < 0)
        return rc;
    if (files->home == SANDBOX_HOME_DISK)
        a.disk_needed = sandbox_home_size(limits);
    return admission_check(l, &a, limits, e);
}

/* -ENODEV: the host has loop devices, or nothing would be tried, but not one more for this home. */
static int admit_and_build(struct request *r, int no_disk, const struct policy_terms *t,
                           struct launch_limits *limits, struct sandbox_files *files,
                           struct session **ret, struct err *e)
{
    struct launcher *l = r->launcher;
    int rc = admit(r, no_disk, t, limits, files, e);

    if (rc < 0)
        return rc;
    struct session *s = sessions_add(&l->sessions);
    check(s != NULL); /* admitted */
    rc = sandbox_create(l->host, s->index, limits, files, &s->sandbox, e);
    if (rc < 0) {
        sessions_remove(&l->sessions, s);
        err_wrap(e, "create");
        return rc == -ENODEV && files->home == SANDBOX_HOME_DISK && t->home.mode == HOME_AUTO
                   ? rc
                   : admission_failure(rc, e);
    }
    *ret = s;
    return 0;
}

static int build(struct request *r, const struct policy_terms *t, struct launch_limits *limits,
                 struct sandbox_files *files, struct session **ret, struct err *e)
{
    struct err why = { .msg = "the disk has no room for more" };
    int rc = admit_and_build(r, 0, t, limits, files, ret, e);

    if (rc == -ENODEV) {
        why = *e;
        rc = admit_and_build(r, 1, t, limits, files, ret, e);
    }
    if (rc == 0 && t->home.mode == HOME_AUTO)
        tell_home(r->launcher, files->home, why.msg);
    return rc;
}

static int choose_data(struct request *r, const struct policy_terms *t, struct sandbox_files *files,
                       struct err *e)
{
    const struct launch_create *m = &r->body.create;
    char *names[NAMEDPATH_MAX + 1];
    int count = msg_strings_count(m->data, NAMEDPATH_MAX, e);

    if (count < 0)
        return count;
    if (m->data_all)
        files->data = t->data;
    msg_strings_split(m->data, names, (unsigned)count);
    for (int i = 0; i < count; i++) {
        uint32_t bit = 0;

        if (sandbox_data_bit(r->launcher->host, view_cstr(names[i]), &bit) < 0)
            return err_set(e, ENOENT, "there is no data directory '%.40s'", names[i]);
        if ((t->data & bit) == 0)
            return err_set(e, EACCES, "profile '%s' has no data directory '%.40s'",
                           t->profile->name, names[i]);
        files->data |= bit;
    }
    return 0;
}

/* As the gateway's principals are called: never a path, never hidden. */
static int is_principal(struct view name)
{
    for (size_t i = 0; i < name.n; i++) {
        int c = name.p[i];
        int alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!alnum && (i == 0 || memchr("._-@+", c, 5) == NULL))
            return 0;
    }
    return name.n > 0;
}

/* name: room for the copy that files borrows. */
static int choose_workspace(struct request *r, struct sandbox_files *files,
                            char name[LAUNCH_PRINCIPAL_MAX + 1], struct err *e)
{
    const struct launch_create *m = &r->body.create;
    const struct launcher_config *c = r->launcher->config;

    if (c->workspaces == NULL || m->principal.n == 0)
        return 0;
    if (!is_principal(m->principal))
        return err_set(e, HC_EPARSE, "the name of a principal");
    if (m->workspace_bytes > c->workspace_bytes)
        return err_set(e, HC_ELIMIT,
                       "a workspace of %" PRIu64 " bytes is above the maximum, %" PRIu64,
                       m->workspace_bytes, c->workspace_bytes);
    memcpy(name, m->principal.p, m->principal.n);
    name[m->principal.n] = '\0';
    files->workspace = name;
    files->workspace_bytes = m->workspace_bytes != 0 ? m->workspace_bytes : c->workspace_bytes;
    return 0;
}

/* A gateway sets its own (or none) as soon as it is answered. One that dies before leaves a session that the next
 * one does not know, and a keeper would stay with it for ever. */
enum { FIRST_DEADLINE_MS = 600000 };

/* It keeps what it was made with, whatever the table says later. */
static void bind_profile(struct session *s, const struct policy_terms *t)
{
    const struct profile *p = t->profile;
    const uint64_t now = clock_ms();

    snprintf(s->profile, sizeof s->profile, "%s", p != NULL ? p->name : PROFILE_DEFAULT);
    s->kernelspecs = p != NULL && p->kernels_some ? xstrdup(p->kernels) : NULL;
    s->life_end_ms = policy_life_end(t, now);
    s->deadline_ms = now + FIRST_DEADLINE_MS;
    if (s->life_end_ms != 0 && s->life_end_ms < s->deadline_ms)
        s->deadline_ms = s->life_end_ms;
}

static int create(struct request *r, struct err *e)
{
    struct launcher *l = r->launcher;
    struct launch_created made = { 0 };
    struct sandbox_files files = { 0 };
    struct session *s = NULL;
    struct policy_terms terms;
    char workspace[LAUNCH_PRINCIPAL_MAX + 1];

    int rc = policy_terms_of(l, r->body.create.profile, &terms, e);
    if (rc == 0)
        rc = choose_data(r, &terms, &files, e);
    if (rc == 0)
        rc = choose_workspace(r, &files, workspace, e);
    if (rc == 0)
        rc = build(r, &terms, &made.limits, &files, &s, e);
    if (rc < 0)
        return rc;
    s->starting_until_ms = clock_ms() + l->config->starting_ms;
    s->limits = made.limits;
    s->data_all = r->body.create.data_all;
    s->data =
        (struct view){ (const uint8_t *)view_dup(r->body.create.data), r->body.create.data.n };
    bind_profile(s, &terms);
    s->init_alive = 1;
    made.sandbox = s->id;
    s->init_fd = sandbox_take_init_fd(s->sandbox);
    const int fds[] = { sandbox_run_fd(s->sandbox), s->init_fd };
    log_info("session_created", "sandbox=%016" PRIx64 " index=%u init=%d home=%s profile=%s", s->id,
             s->index, (int)sandbox_init_pid(s->sandbox),
             files.home == SANDBOX_HOME_DISK ? "disk" : "memory", s->profile);
    answer(r, &made, fds, 2);
    return 0;
}

static int start_kernel(struct request *r, struct err *e)
{
    r->session->starting_until_ms = clock_ms() + r->launcher->config->starting_ms;
    return start_from_message(r->launcher, r->session, &r->body.start, r->packet, e);
}

/* The entry of a running kernel; one that ended meanwhile is no fault of the gateway. */
static int running(struct request *r, uint32_t kernel, uint32_t generation, struct kernelproc **ret,
                   struct err *e)
{
    if (kernel == 0)
        return err_set(e, HC_EPARSE, "kernel 0");
    struct kernelproc *k = session_kernel(r->session, kernel, generation);
    if (k != NULL && k->state == KERNEL_STARTING)
        return err_set(e, EAGAIN, "kernel %u-%u is not started yet", kernel, generation);
    if (k == NULL || k->state != KERNEL_RUNNING)
        return err_set(e, HC_EGONE, "kernel %u-%u does not run", kernel, generation);
    *ret = k;
    return 0;
}

static int seal(struct request *r, struct err *e)
{
    const struct launch_kernel_ref *m = &r->body.ref;
    struct kernelproc *k = NULL;
    int rc = running(r, m->kernel, m->generation, &k, e);

    if (rc < 0)
        return rc;
    if (k->flags & LAUNCH_SOCKETS_FD)
        return err_set(e, HC_ESTATE, "kernel %u-%u has no run folder", m->kernel, m->generation);
    rc = sandbox_seal(r->session->sandbox, m->kernel, m->generation, e);
    if (rc == 0)
        answer_done(r);
    return rc;
}

static int send_signal(struct request *r, struct err *e)
{
    const struct launch_signal *m = &r->body.signal;
    struct kernelproc *k = NULL;

    if (!kernelproc_signal_permitted(m->signo))
        return err_set(e, HC_EPARSE, "signal %u", m->signo);
    int rc = running(r, m->kernel, m->generation, &k, e);
    if (rc == 0)
        rc = kernelproc_signal(k, m, e);
    if (rc == 0)
        answer_done(r);
    return rc;
}

static int stop_session(struct request *r, struct err *e)
{
    struct session *s = r->session;

    if (s->state == SESSION_STUCK)
        return err_set(e, ETIMEDOUT, "killed, but not gone in time");
    if (stops_add(&s->stops, r->packet->head.request) < 0)
        return err_set(e, HC_ELIMIT, "%d requests wait for the end of this session",
                       SESSION_STOPS_MAX);
    ending_begin(r->launcher, s, "stop", clock_ms());
    return 0;
}

static int stop(struct request *r, struct err *e)
{
    const struct launch_stop *m = &r->body.stop;
    struct session *s = r->session;

    if (m->kernel == 0)
        return stop_session(r, e);
    if (s->state != SESSION_ALIVE)
        return err_set(e, HC_EGONE, "the session ends");
    struct kernelproc *k = session_kernel(s, m->kernel, m->generation);
    struct leaf *leaf = session_leaf(s, m->kernel, m->generation);
    if (leaf == NULL && k == NULL)
        return err_set(e, HC_EGONE, "kernel %u-%u is not there", m->kernel, m->generation);
    if (leaf != NULL && leaf->alarmed)
        return err_set(e, ETIMEDOUT, "killed, but not gone in time");
    if (leaf == NULL && k->state == KERNEL_EXITED) {
        k->state = KERNEL_NONE;
        answer_done(r);
        return 0;
    }
    return ending_begin_kernel(s, m->kernel, m->generation, r->packet->head.request, clock_ms(), e);
}

static int status(struct request *r, struct err *e)
{
    struct launch_status_answer now = { 0 };
    int rc = sandbox_status(r->session->sandbox, r->body.status.reset_peak != 0, &now, e);

    if (rc < 0)
        return rc;
    now.sandbox = r->session->id;
    answer(r, &now, NULL, 0);
    return 0;
}

static int room(struct request *r, struct err *e)
{
    struct admission a;

    (void)e;
    const struct launcher_config *c = r->launcher->config;
    admission_look(r->launcher, &a);
    if (c->home.mode == HOME_DISK)
        a.disk_needed = sandbox_home_size(&c->defaults);
    enum admission_lack lack = admission_decide(&a, c->defaults.memory_bytes);
    const struct launch_room_answer now = {
        .memory_available = a.memory_available,
        .memory_reserve = a.memory_reserve,
        .memory_promised = a.memory_promised,
        .sessions = a.sessions,
        .sessions_max = a.sessions_max,
        .lack = view_cstr(admission_lack_name(lack)),
    };
    answer(r, &now, NULL, 0);
    return 0;
}

static int list(struct request *r, struct err *e)
{
    struct session *s = sessions_after(&r->launcher->sessions, r->body.list.after);
    struct launch_kernel_info info[LAUNCH_KERNELS_MAX];
    struct launch_listed listed = { 0 };
    unsigned count = 0;

    (void)e;
    if (s == NULL) {
        answer(r, &listed, NULL, 0);
        return 0;
    }
    memset(info, 0, sizeof info);
    for (unsigned i = 0; i < LAUNCH_KERNELS_MAX; i++) {
        const struct kernelproc *k = &s->kernels[i];

        if (k->state == KERNEL_NONE)
            continue;
        info[count++] = (struct launch_kernel_info){
            .kernel = i + 1,
            .generation = k->generation,
            .flags = k->flags,
            .running = kernel_has_process(k),
            .exit_code = k->exit_code,
            .signo = k->signo,
        };
    }
    listed = (struct launch_listed){
        .sandbox = s->id,
        .limits = s->limits,
        .profile = view_cstr(s->profile),
        .data_all = s->data_all,
        .data = s->data,
        .kernels = { (const uint8_t *)info, count * sizeof info[0] },
        .note = s->note.bytes,
    };
    answer(r, &listed, s->note.fds, s->note.fd_count);
    return 0;
}

static int note(struct request *r, struct err *e)
{
    const struct launcher *l = r->launcher;
    unsigned count = r->packet->head.fds;

    if (sessions_note_fds(&l->sessions, r->session) + count > l->config->note_fds_max)
        return err_set(e, HC_ELIMIT, "notes hold %u descriptors, the maximum",
                       l->config->note_fds_max);
    session_note(r->session, r->body.note.note, r->packet->fds, count);
    answer_done(r);
    return 0;
}

static int deadline(struct request *r, struct err *e)
{
    uint64_t when = r->body.deadline.monotonic_ms, now = clock_ms();
    uint64_t max = r->launcher->config->deadline_max_ms;

    if (when > now && when - now > max)
        return err_set(e, HC_ELIMIT, "deadline in %" PRIu64 " s, at most %" PRIu64,
                       (when - now) / 1000, max / 1000);
    const uint64_t last = r->session->life_end_ms;
    r->session->deadline_ms = last != 0 && (when == 0 || when > last) ? last : when;
    answer_done(r);
    return 0;
}

enum {
    NOT_STOPPING =
        LAUNCHER_SERVING | LAUNCHER_KEEPING, /* a kernel that restarts just then lives on */
    ANY_TIME = NOT_STOPPING | LAUNCHER_STOPPING
};

/* Opened afresh each time: after a rotation the path names another file. */
static int audit(struct request *r, struct err *e)
{
    const char *path = r->launcher->config->audit_log;
    struct launch_audit opened = { 0 };
    autoclose int fd = -1;

    if (path == NULL)
        return err_set(e, ENOENT, "the server has no audit file");
    int rc = auditfile_open(path, &fd, e);
    if (rc == 0)
        rc = auditfile_lock(path, fd, &r->launcher->audit_lock, e);
    if (rc == 0)
        answer(r, &opened, &fd, 1);
    return rc;
}

static const struct rule {
    unsigned verb;
    unsigned states; /* of the launcher */
    enum need need;
    handler *handle;
} rules[] = {
    { LAUNCH_CREATE, NOT_STOPPING, NEEDS_NOTHING, create },
    { LAUNCH_START_KERNEL, NOT_STOPPING, NEEDS_SESSION, start_kernel },
    { LAUNCH_SEAL, ANY_TIME, NEEDS_SESSION, seal },
    { LAUNCH_SIGNAL, ANY_TIME, NEEDS_SESSION, send_signal },
    { LAUNCH_STOP, ANY_TIME, NEEDS_ANY, stop },
    { LAUNCH_STATUS, ANY_TIME, NEEDS_SESSION, status },
    { LAUNCH_LIST, ANY_TIME, NEEDS_NOTHING, list },
    { LAUNCH_NOTE, ANY_TIME, NEEDS_SESSION, note },
    { LAUNCH_DEADLINE, ANY_TIME, NEEDS_SESSION, deadline },
    { LAUNCH_ROOM, ANY_TIME, NEEDS_NOTHING, room },
    { LAUNCH_AUDIT, ANY_TIME, NEEDS_NOTHING, audit },
};

static const struct rule *find_rule(unsigned verb)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].verb == verb)
            return &rules[i];
    }
    return NULL;
}

static int find_session(struct request *r, enum need need, struct err *e)
{
    if (need == NEEDS_NOTHING)
        return 0;
    r->session = sessions_find(&r->launcher->sessions, r->body.sandbox);
    if (r->session == NULL)
        return err_set(e, HC_EGONE, "no such sandbox");
    if (need == NEEDS_SESSION && r->session->state != SESSION_ALIVE)
        return err_set(e, HC_EGONE, "the session ends");
    return 0;
}

static int serve(struct request *r, struct err *e)
{
    const struct msg_head *h = &r->packet->head;
    const struct rule *rule = find_rule(h->verb);

    if (rule == NULL || h->request == 0 || h->error != 0)
        return err_set(e, HC_EPARSE, "verb %u, request %" PRIu64 ", error %d", h->verb, h->request,
                       h->error);
    int rc = msg_decode(launch_request_spec(h->verb), h, r->packet->bytes, &r->body, e);
    if (rc < 0)
        return rc;
    if ((rule->states & r->launcher->state) == 0) /* the gateway may not know yet */
        return err_set(e, ECANCELED, "the server stops");
    rc = find_session(r, rule->need, e);
    return rc < 0 ? rc : rule->handle(r, e);
}

void request_serve(struct launcher *l, struct link_packet *p)
{
    struct request r = { .launcher = l, .packet = p };
    struct err e = { 0 };
    int rc = serve(&r, &e);

    if (rc == -HC_EPARSE || rc == -HC_ESTATE) {
        link_break(l->gateway.link, "%s: %s", launch_verb_name(p->head.verb), e.msg);
        return;
    }
    l->gateway.spoke = 1;
    if (rc < 0)
        launcher_answer_error(l, p->head.verb, p->head.request, -rc, e.msg);
}
