#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "datanames.h"
#include "err.h"
#include "kernel_own.h"
#include "log.h"
#include "metrics.h"
#include "random.h"
#include "sessions_own.h"

const char *session_phase_name(enum session_phase p)
{
    static const char *const names[] = { "empty", "creating", "open", "ending", "gone" };

    return names[p];
}

/* ---- what the sessions of one principal share ---- */

/* Lives as long as one of them does: the names may come from outside, by a proxy. */
struct owner {
    struct owner *next;
    char name[PRINCIPAL_NAME];
    unsigned sessions;
    struct spool_quota quota;
};

static struct owner *owner_take(struct sessions *all, const char *name)
{
    struct owner *o = all->owners;

    while (o != NULL && strcmp(o->name, name) != 0)
        o = o->next;
    if (o == NULL) {
        o = xcalloc(1, sizeof *o);
        snprintf(o->name, sizeof o->name, "%s", name);
        o->quota.max = all->policy.spool_bytes_per_principal;
        o->next = all->owners;
        all->owners = o;
    }
    o->sessions++;
    return o;
}

static void owner_leave(struct sessions *all, struct owner *o)
{
    struct owner **at = &all->owners;

    if (--o->sessions > 0)
        return;
    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    free(o);
}

/* ---- places of what was killed and is not gone ---- */

struct remains {
    struct remains *next;
    uint64_t sandbox;
    struct owner *owner;
};

static void remains_keep(const struct session *s)
{
    struct remains *r = xcalloc(1, sizeof *r);

    r->sandbox = s->sandbox;
    r->owner = owner_take(s->all, s->principal.name);
    r->next = s->all->remains;
    s->all->remains = r;
}

static void remains_free(struct sessions *all, struct remains **at)
{
    struct remains *r = *at;

    *at = r->next;
    owner_leave(all, r->owner);
    free(r);
}

void sessions_remains_gone(struct sessions *all, uint64_t sandbox)
{
    struct remains **at = &all->remains;

    while (*at != NULL && (*at)->sandbox != sandbox)
        at = &(*at)->next;
    if (*at == NULL)
        return;
    log_info("remains_gone", "principal=%s", (*at)->owner->name);
    remains_free(all, at);
}

void sessions_forget_remains(struct sessions *all)
{
    while (all->remains != NULL)
        remains_free(all, &all->remains);
}

size_t sessions_count_remains(const struct sessions *all, const struct principal *p)
{
    size_t count = 0;

    for (const struct remains *r = all->remains; r != NULL; r = r->next)
        count += p == NULL || principal_sees(p, r->owner->name);
    return count;
}

struct spool_quota *session_quota(const struct session *s)
{
    return &s->owner->quota;
}

/* ---- life ---- */

struct session *session_new(struct sessions *all, const struct principal *p)
{
    static uint64_t numbers; /* of this process */
    struct session *s = xcalloc(1, sizeof *s);
    uint8_t raw[16];

    s->all = all;
    s->number = ++numbers;
    s->born_ms = loop_now_ms(all->loop);
    s->principal = *p;
    s->owner = owner_take(all, p->name);
    memcpy(s->profile, PROFILE_DEFAULT, sizeof PROFILE_DEFAULT);
    s->init_fd = s->dir_fd = -1;
    random_bytes(raw, sizeof raw);
    uuid_format(raw, s->id);
    s->prev = all->last;
    if (all->last != NULL)
        all->last->next = s;
    else
        all->first = s;
    all->last = s;
    return s;
}

static void drop_sandbox(struct session *s)
{
    s->sandbox = 0;
    closep(&s->init_fd);
    closep(&s->dir_fd);
    s->init_fd = s->dir_fd = -1;
}

void session_free(struct session *s)
{
    check(s->kernels == NULL);
    if (s->prev != NULL)
        s->prev->next = s->next;
    else
        s->all->first = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    else
        s->all->last = s->prev;
    s->life_timer = loop_timer_close(s->life_timer);
    s->oom_timer = loop_timer_close(s->oom_timer);
    drop_sandbox(s);
    owner_leave(s->all, s->owner);
    free(s);
}

void session_add_kernel(struct session *s, struct kernel *k)
{
    struct kernel **at = &s->kernels;

    while (*at != NULL)
        at = &(*at)->next;
    *at = k;
    k->next = NULL;
}

void session_remove_kernel(struct session *s, struct kernel *k)
{
    struct kernel **at = &s->kernels;

    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    if (s->kernels == NULL)
        session_free(s);
}

/* ---- the sandbox ---- */

static void on_created(void *arg, uint64_t number, struct launch_answer *a)
{
    struct session *s = sessions_session(arg, number);

    if (s == NULL || s->phase != SESSION_CREATING)
        return;
    if (a->error == 0) {
        const struct launch_created *c = a->body;
        session_adopt(s, c->sandbox, &c->limits, take_fd(&a->fds[1]), take_fd(&a->fds[0]));
    } else {
        s->phase = SESSION_EMPTY;
    }
    if (a->error == HC_EFULL)
        metrics_count(METRIC_ADMISSIONS_REFUSED, 0);
    for (struct kernel *k = s->kernels, *next; k != NULL; k = next) {
        next = k->next;
        if (k->phase != KERNEL_CREATING)
            continue;
        if (a->error == 0)
            kernel_session_opened(k);
        else
            kernel_launch_failed(k, a->error, a->text);
    }
}

int session_open(struct session *s, struct err *e)
{
    struct launch_create body = { .profile = view_cstr(s->profile), .limits = s->wanted };
    autobuf struct buf names;

    buf_init(&names, LAUNCH_DATA_MAX);
    if (s->phase == SESSION_OPEN)
        return 1;
    if (s->phase == SESSION_CREATING)
        return 0;
    body.data_all = !s->principal.data_some;
    if (s->principal.data_some &&
        datanames_pack(s->all->policy.data, s->principal.data, &names) < 0)
        return err_set(e, ENOMEM, "no memory for the names of data directories");
    body.data = buf_view(&names);
    body.principal = view_cstr(s->principal.name);
    body.workspace_bytes = s->principal.workspace_bytes;
    int rc = launchclient_ask(s->all->launcher, LAUNCH_CREATE, &body, NULL, 0, on_created, s->all,
                              s->number, e);
    if (rc == 0)
        s->phase = SESSION_CREATING;
    return rc;
}

void session_adopt(struct session *s, uint64_t sandbox, const struct launch_limits *limits,
                   int init_fd, int dir_fd)
{
    s->phase = SESSION_OPEN;
    s->sandbox = sandbox;
    s->limits = s->wanted = *limits; /* a lost sandbox is made anew like this */
    s->init_fd = init_fd;
    s->dir_fd = dir_fd;
    sessions_renew_deadline(s->all, s);
}

/* ---- the end ---- */

static void tell_gone(struct session *s)
{
    drop_sandbox(s);
    s->phase = SESSION_GONE;
    for (struct kernel *k = s->kernels, *next; k != NULL; k = next) {
        next = k->next;
        if (k->phase == KERNEL_STOPPING)
            kernel_session_left(k);
    }
}

static void on_stopped(void *arg, uint64_t number, struct launch_answer *a)
{
    struct session *s = sessions_session(arg, number);

    if (s == NULL || s->phase != SESSION_ENDING)
        return;
    if (a->error != 0 && a->error != ENOENT)
        log_error("session_stop", "session=%s error=\"%s\"", s->id, a->text);
    /* Killed for good, so its clients need not wait; its place does, for SANDBOX_GONE. */
    if (a->error == ETIMEDOUT)
        remains_keep(s);
    tell_gone(s);
}

static int is_last(const struct session *s, const struct kernel *k)
{
    for (const struct kernel *o = s->kernels; o != NULL; o = o->next) {
        if (o != k && o->phase != KERNEL_STOPPING && o->phase != KERNEL_GONE)
            return 0;
    }
    return 1;
}

void session_leave(struct session *s, struct kernel *k)
{
    struct launch_stop body = { .sandbox = s->sandbox };
    struct err e = { 0 };

    if (!is_last(s, k)) {
        kernel_stop_leaf(k);
        return;
    }
    if (s->sandbox == 0) {
        tell_gone(s);
        return;
    }
    s->phase = SESSION_ENDING;
    if (launchclient_ask(s->all->launcher, LAUNCH_STOP, &body, NULL, 0, on_stopped, s->all,
                         s->number, &e) < 0) {
        log_error("session_stop", "session=%s error=\"%s\"", s->id, e.msg);
        tell_gone(s);
    }
}

void session_lost(struct session *s, const char *why)
{
    log_warn("sandbox_gone", "session=%s why=\"%s\"", s->id, why);
    if (s->phase == SESSION_ENDING) {
        tell_gone(s);
        return;
    }
    drop_sandbox(s);
    s->phase = SESSION_EMPTY;
    for (struct kernel *k = s->kernels, *next; k != NULL; k = next) {
        next = k->next;
        kernel_sandbox_gone(k, why);
    }
}

/* ---- the note ---- */

static void on_noted(void *arg, uint64_t number, struct launch_answer *a)
{
    struct session *s = sessions_session(arg, number);

    if (a->error != 0 && s != NULL)
        log_warn("note_failed", "session=%s error=\"%s\"", s->id, a->text);
    for (struct kernel *k = s != NULL ? s->kernels : NULL; k != NULL; k = k->next)
        kernel_noted(k);
}

int session_note(struct session *s, struct view note, const int *fds, unsigned fd_count,
                 struct err *e)
{
    struct launch_note body = { .sandbox = s->sandbox, .note = note };

    return launchclient_ask(s->all->launcher, LAUNCH_NOTE, &body, fds, fd_count, on_noted, s->all,
                            s->number, e);
}
