#include "fake_core.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "client.h"
#include "err.h"
#include "hex.h"
#include "jsonscan.h"
#include "kernel.h"
#include "kernelspec.h"
#include "loop.h"
#include "sessions.h"

enum { KERNELS = 64, CLIENTS = 64 };

struct fake fake;

struct entry {
    struct entry *next;
    enum jmsg_channel channel;
    struct client *only; /* NULL: for all */
    char *header, *content;
    size_t content_n;
    unsigned buffers;
};

struct client {
    struct kernel *kernel;
    const struct client_ops *ops;
    void *arg;
    struct entry *at; /* the last one that was handed out */
    int told;         /* readable() was called */
    int blocked;      /* owes writable() */
    int end;          /* -1, or why it ends after the last entry */
};

struct kernel {
    struct sessions *sessions;
    char id[UUID_TEXT], name[64];
    struct entry *first, *last;
    struct client *clients[CLIENTS];
    unsigned connections;
    struct loop_timer *full_timer;
    int full;
    unsigned long long seq;
    char kept[NOTE_KEPT_MAX + 1];
};

/* An operation that calls back later. */
struct later {
    struct later *next;
    struct sessions *sessions;
    struct loop_timer *timer;
    kernel_done_fn *done;
    void *arg;
    uint64_t token;
    char id[UUID_TEXT];
    int deletes;
};

struct sessions {
    struct loop *loop;
    struct kernel *kernels[KERNELS];
    size_t count;
    unsigned made;
    struct later *later;
};

void fake_reset(void)
{
    fake.create_ms = fake.max_kernels = fake.spec_bytes = 0;
    fake.starting = 0;
    fake.calls = fake.clients = fake.received = fake.pulled = 0;
}

/* ---- event log ------------------------------------------------------------ */

static void tell(struct client *c)
{
    if (c->told)
        return;
    c->told = 1;
    c->ops->readable(c->arg);
}

static void add_entry(struct kernel *k, enum jmsg_channel channel, struct client *only,
                      const char *type, const void *content, size_t n, unsigned buffers)
{
    struct entry *en = xcalloc(1, sizeof *en);
    char header[256];

    snprintf(header, sizeof header,
             "{\"msg_id\":\"m%llu\",\"msg_type\":\"%s\",\"session\":\"k\",\"username\":\"u\","
             "\"date\":\"2026-01-01T00:00:00Z\",\"version\":\"5.3\"}",
             ++k->seq, type);
    en->header = xstrdup(header);
    en->content = xcalloc(1, n + 1);
    memcpy(en->content, content, n);
    en->content_n = n;
    en->channel = channel;
    en->only = only;
    en->buffers = buffers;
    k->last->next = en;
    k->last = en;
}

static void tell_all(struct kernel *k)
{
    for (int i = 0; i < CLIENTS; i++)
        if (k->clients[i] != NULL)
            tell(k->clients[i]);
}

int client_next(struct client *c, struct client_event *ret)
{
    static const struct view buffers[2] = { { (const uint8_t *)"\xff\x00", 2 },
                                            { (const uint8_t *)"abc", 3 } };

    while (c->at->next != NULL) {
        struct entry *en = c->at = c->at->next;

        if (en->only != NULL && en->only != c)
            continue;
        *ret = (struct client_event){ .seq = 1, .channel = en->channel };
        ret->header = view_cstr(en->header);
        ret->parent_header = ret->metadata = VIEW_STR("{}");
        ret->content = (struct view){ (const uint8_t *)en->content, en->content_n };
        ret->buffers = buffers;
        ret->buffer_count = en->buffers;
        fake.pulled++;
        return 1;
    }
    c->told = 0;
    if (c->end >= 0) {
        int why = c->end;

        c->end = -1;
        c->ops->ended(c->arg, (enum client_end)why);
    }
    return 0;
}

/* ---- clients -------------------------------------------------------------- */

int client_attach(struct kernel *k, const char *session_id, const struct client_ops *ops, void *arg,
                  struct client **ret, struct err *e)
{
    if (session_id != NULL && strcmp(session_id, "refuse") == 0)
        return err_set(e, HC_EGONE, "the kernel is going away");
    for (int i = 0; i < CLIENTS; i++) {
        if (k->clients[i] != NULL)
            continue;
        struct client *c = xcalloc(1, sizeof *c);
        c->kernel = k;
        c->ops = ops;
        c->arg = arg;
        c->at = k->last;
        c->end = -1;
        k->clients[i] = *ret = c;
        k->connections++;
        fake.clients++;
        return 0;
    }
    return err_set(e, HC_ELIMIT, "too many clients");
}

void client_detach(struct client *c)
{
    for (int i = 0; i < CLIENTS; i++)
        if (c->kernel->clients[i] == c)
            c->kernel->clients[i] = NULL;
    c->kernel->connections--;
    fake.clients--;
    free(c);
}

static void on_full_over(void *arg)
{
    struct kernel *k = arg;

    k->full = 0;
    k->full_timer = loop_timer_close(k->full_timer);
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = k->clients[i];

        if (c != NULL && c->blocked) {
            c->blocked = 0;
            c->ops->writable(c->arg);
        }
    }
}

static void run_burst(struct kernel *k, unsigned n, unsigned size)
{
    char *text = xcalloc(1, size + 64);

    for (unsigned i = 0; i < n; i++) {
        int at = sprintf(text, "{\"name\":\"stdout\",\"text\":\"%u ", i);

        memset(text + at, 'x', size);
        strcpy(text + at + size, "\"}");
        add_entry(k, JMSG_IOPUB, NULL, "stream", text, strlen(text), 0);
    }
    free(text);
}

static void end_all(struct kernel *k, int why)
{
    for (int i = 0; i < CLIENTS; i++)
        if (k->clients[i] != NULL) {
            k->clients[i]->end = why;
            k->clients[i]->told = 0;
        }
}

static void run_code(struct kernel *k, struct client *c, const char *code, struct view content)
{
    unsigned a = 0, b = 0;

    if (strncmp(code, "echo ", 5) == 0) {
        char text[1024];

        check(snprintf(text, sizeof text, "{\"name\":\"stdout\",\"text\":\"%s\"}", code + 5) <
              (int)sizeof text);
        add_entry(k, JMSG_IOPUB, NULL, "stream", text, strlen(text), 0);
    } else if (strcmp(code, "parts") == 0) {
        add_entry(k, JMSG_IOPUB, NULL, "display_data", content.p, content.n, 0);
    } else if (sscanf(code, "burst %u %u", &a, &b) == 2) {
        run_burst(k, a, b);
    } else if (strcmp(code, "buffers") == 0) {
        add_entry(k, JMSG_IOPUB, NULL, "display_data", "{\"x\":1}", 7, 2);
    } else if (sscanf(code, "full %u", &a) == 1) {
        k->full = 1;
        k->full_timer = loop_timer_start(k->sessions->loop, a, 0, on_full_over, k);
    } else if (sscanf(code, "end %u", &a) == 1) {
        end_all(k, (int)a);
    }
    add_entry(k, JMSG_SHELL, c, "execute_reply", "{\"status\":\"ok\"}", 15, 0);
    tell_all(k);
}

int client_send(struct client *c, const struct client_message *m, struct err *e)
{
    static const char *const keys[] = { "code" };
    const struct jsonscan_rules rules = { 0, 64 };
    struct jsonscan_value code;
    char text[1024] = "";

    if (c->kernel->full) {
        c->blocked = 1;
        return -EAGAIN;
    }
    if (jsonscan_object(m->content, &rules, keys, 1, &code, NULL, e) != 0)
        return -HC_EPARSE;
    if (code.kind == JSONSCAN_STRING && jsonscan_string_copy(code, text, sizeof text, e) < 0)
        snprintf(text, sizeof text, "long");
    fake.received++;
    run_code(c->kernel, c, text, m->content);
    return 0;
}

/* ---- kernels -------------------------------------------------------------- */

void kernel_model(const struct kernel *k, struct kernel_model *ret)
{
    *ret = (struct kernel_model){ .name = k->name,
                                  .execution_state = "idle",
                                  .last_activity_us = 1767225600000000ull,
                                  .connections = k->connections,
                                  .reason = "" };
    memcpy(ret->id, k->id, sizeof ret->id);
}

int kernel_keep(struct kernel *k, struct view json, struct err *e)
{
    if (json.n >= sizeof k->kept)
        return err_set(e, EMSGSIZE, "too long");
    memcpy(k->kept, json.p, json.n);
    k->kept[json.n] = '\0';
    return 0;
}

const struct launch_limits *kernel_limits(const struct kernel *k)
{
    static const struct launch_limits limits = LAUNCH_LIMITS_DEFAULT;

    (void)k;
    return &limits;
}

const struct time_limits *kernel_times(const struct kernel *k)
{
    static const struct time_limits times = { .cell_ms = 90500 };

    (void)k;
    return &times;
}

void kernel_name_session(struct kernel *k, const char *name)
{
    (void)k;
    (void)name;
}

struct view kernel_kept(const struct kernel *k)
{
    return view_cstr(k->kept);
}

int kernel_interrupt(struct kernel *k, struct err *e)
{
    (void)k;
    (void)e;
    return 0;
}

static void free_kernel(struct kernel *k)
{
    k->full_timer = loop_timer_close(k->full_timer);
    while (k->first != NULL) {
        struct entry *en = k->first;

        k->first = en->next;
        free(en->header);
        free(en->content);
        free(en);
    }
    free(k);
}

static void remove_kernel(struct sessions *s, const char *id)
{
    for (size_t i = 0; i < s->count; i++) {
        struct kernel *k = s->kernels[i];

        if (strcmp(k->id, id) != 0)
            continue;
        end_all(k, CLIENT_DELETED);
        tell_all(k);
        for (int n = 0; n < CLIENTS; n++)
            check(k->clients[n] == NULL);
        memmove(s->kernels + i, s->kernels + i + 1, (s->count - i - 1) * sizeof *s->kernels);
        s->count--;
        free_kernel(k);
        return;
    }
}

static struct kernel *find(struct sessions *s, const char *id)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->kernels[i]->id, id) == 0)
            return s->kernels[i];
    return NULL;
}

static void finish(struct sessions *s, kernel_done_fn *done, void *arg, uint64_t token,
                   const char *id, int deletes)
{
    if (deletes)
        remove_kernel(s, id);
    fake.calls--;
    done(arg, token, deletes ? NULL : find(s, id), NULL);
}

static void on_later(void *arg)
{
    struct later *l = arg, **p = &l->sessions->later;

    while (*p != l)
        p = &(*p)->next;
    *p = l->next;
    loop_timer_close(l->timer);
    finish(l->sessions, l->done, l->arg, l->token, l->id, l->deletes);
    free(l);
}

static void operate(struct sessions *s, const char *id, int deletes, kernel_done_fn *done,
                    void *arg, uint64_t token)
{
    char copy[UUID_TEXT];

    snprintf(copy, sizeof copy, "%s", id);
    fake.calls++;
    if (fake.create_ms == 0) {
        finish(s, done, arg, token, copy, deletes);
        return;
    }
    struct later *l = xcalloc(1, sizeof *l);
    *l = (struct later){ s->later, s, NULL, done, arg, token, "", deletes };
    memcpy(l->id, copy, sizeof copy);
    s->later = l;
    l->timer = loop_timer_start(s->loop, fake.create_ms, 0, on_later, l);
}

int kernel_is_starting(const struct kernel *k)
{
    (void)k;
    return fake.starting;
}

void kernel_await_ready(struct kernel *k, kernel_done_fn *done, void *arg, uint64_t token)
{
    operate(k->sessions, k->id, 0, done, arg, token);
}

void kernel_restart(struct kernel *k, kernel_done_fn *done, void *arg, uint64_t token)
{
    operate(k->sessions, k->id, 0, done, arg, token);
}

void kernel_delete(struct kernel *k, kernel_done_fn *done, void *arg, uint64_t token)
{
    operate(k->sessions, k->id, 1, done, arg, token);
}

/* ---- sessions ------------------------------------------------------------- */

struct sessions *fake_sessions_new(struct loop *l)
{
    struct sessions *s = xcalloc(1, sizeof *s);

    s->loop = l;
    return s;
}

struct sessions *fake_sessions_free(struct sessions *s)
{
    check(s->later == NULL);
    for (size_t i = 0; i < s->count; i++)
        free_kernel(s->kernels[i]);
    free(s);
    return NULL;
}

void sessions_create_kernel(struct sessions *s, const struct principal *p,
                            const struct kernel_request *r, kernel_done_fn *done, void *arg,
                            uint64_t token)
{
    struct err e = { 0 };
    struct kernel *k;

    check(strcmp(p->name, "default") == 0);
    if (r->kernel_id != NULL && find(s, r->kernel_id) != NULL) {
        operate(s, r->kernel_id, 0, done, arg, token);
        return;
    }
    if (r->spec_name != NULL && strcmp(r->spec_name, "fake") != 0)
        err_set(&e, ENOENT, "no kernelspec is named %s", r->spec_name);
    else if ((fake.max_kernels > 0 && s->count >= fake.max_kernels) || s->count == KERNELS)
        err_set(&e, HC_ELIMIT, "%zu kernels are running", s->count);
    if (e.code != 0) {
        done(arg, token, NULL, &e);
        return;
    }
    k = xcalloc(1, sizeof *k);
    k->sessions = s;
    k->first = k->last = xcalloc(1, sizeof *k->first);
    snprintf(k->name, sizeof k->name, "fake");
    if (r->kernel_id != NULL)
        snprintf(k->id, sizeof k->id, "%s", r->kernel_id);
    else
        snprintf(k->id, sizeof k->id, "00000000-0000-4000-8000-%012x", ++s->made);
    s->kernels[s->count++] = k;
    operate(s, k->id, 0, done, arg, token);
}

struct kernel *sessions_find_kernel(struct sessions *s, const struct principal *p, const char *id)
{
    check(strcmp(p->name, "default") == 0);
    return find(s, id);
}

/* Kernels of this core are found until they are gone. */
struct kernel *sessions_find_ending(struct sessions *s, const struct principal *p, const char *id)
{
    (void)s;
    (void)p;
    (void)id;
    return NULL;
}

void sessions_each_kernel(struct sessions *s, sessions_kernel_fn *fn, void *arg)
{
    static const struct principal owner = { .name = "default" };

    for (size_t i = 0; i < s->count; i++)
        fn(arg, &owner, s->kernels[i]);
}

size_t sessions_kernels(struct sessions *s, const struct principal *p, struct kernel **out,
                        size_t max)
{
    check(strcmp(p->name, "default") == 0);
    for (size_t i = 0; i < s->count && i < max; i++)
        out[i] = s->kernels[i];
    return s->count;
}

/* ---- kernelspecs ---------------------------------------------------------- */

struct kernelspecs {
    char *dir;
};

struct kernelspecs *fake_specs_new(const char *dir)
{
    struct kernelspecs *k = xcalloc(1, sizeof *k);

    k->dir = xstrdup(dir);
    return k;
}

void sessions_measure(const struct sessions *s)
{
    (void)s;
}

struct kernelspecs *fake_specs_free(struct kernelspecs *k)
{
    free(k->dir);
    free(k);
    return NULL;
}

const char *kernelspecs_default(const struct kernelspecs *k)
{
    (void)k;
    return "fake";
}

struct kernelspec *kernelspec_free(struct kernelspec *s)
{
    for (char **r = s->resources; *r != NULL; r++)
        free(*r);
    free(s->resources);
    json_decref(s->spec);
    free(s->name);
    free(s->path);
    free(s);
    return NULL;
}

int kernelspecs_find(const struct kernelspecs *k, const char *name, struct kernelspec **ret,
                     struct err *e)
{
    struct kernelspec *s;
    char *padding;

    if (strcasecmp(name, "fake") != 0 && strcasecmp(name, "Other.1") != 0)
        return err_set(e, ENOENT, "Kernel spec %s not found", name);
    s = xcalloc(1, sizeof *s);
    s->name = xstrdup(strcasecmp(name, "fake") == 0 ? "fake" : "Other.1");
    s->path = xstrdup(k->dir);
    padding = xcalloc(1, fake.spec_bytes + 1);
    memset(padding, 'p', fake.spec_bytes);
    s->spec = json_pack("{s:[s],s:s,s:s,s:{},s:{s:s}}", "argv", "fake", "display_name", "Fake",
                        "language", "none", "env", "metadata", "padding", padding);
    free(padding);
    s->resources = xcalloc(5, sizeof *s->resources);
    s->resources[0] = xstrdup("kernel.js");
    s->resources[1] = xstrdup("kernel.json");
    s->resources[2] = xstrdup("logo-64x64.png");
    s->resources[3] = xstrdup("logo-svg.svg");
    *ret = s;
    return 0;
}

int kernelspecs_list(const struct kernelspecs *k, struct kernelspec ***ret, struct err *e)
{
    *ret = xcalloc(2, sizeof **ret);
    if (kernelspecs_find(k, "Other.1", *ret, e) != 0 ||
        kernelspecs_find(k, "fake", *ret + 1, e) != 0)
        return -1;
    return 2;
}
