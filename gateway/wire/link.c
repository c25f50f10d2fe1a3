#include "link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "ownmsg.h"
#include "random.h"

enum {
    WELCOME_MS = 500, /* no welcome until then: a PUB kernel, or one that starts slowly */
    NUDGE_AGAIN_MS =
        200, /* answered, but nothing on iopub: the answer came before the subscription */
    REOPEN_MS = 200,
    LOST_MS = 2000, /* a kernel that ends has ended by then; a run waits longer for its idle */
    FRAMES_MAX = 1024 + 8,
};

struct own_socket {
    struct link *link;
    struct zsocket *socket;
    int asked; /* a kernel_info of ours has no answer yet */
};

struct link {
    struct loop *loop;          /* borrowed */
    struct zsockets *zsockets;  /* borrowed */
    struct endpoints endpoints; /* owned */
    struct jmsg_key *key;       /* owned */
    char key_text[KEY_TEXT];
    const char *session; /* borrowed */
    struct link_ops ops;
    void *arg;                 /* borrowed */
    struct zsocket_peer *peer; /* owned */
    struct zsocket *sub;
    struct own_socket own[LINK_OWN_COUNT];
    char welcome[64]; /* the unique prefix of the present SUB */
    int proven, ready, ended;
    int never_joins;
    struct loop_timer *timer;   /* nudges, until proven */
    struct loop_timer *give_up; /* until proven */
    struct loop_timer *reopen;
    int broke;               /* the SUB did, and nothing came on the one after it */
    struct loop_timer *lost; /* until the owner is told of that */
    struct link_counts counts;
    struct view frames[FRAMES_MAX]; /* of the message being sent */
};

static void prove(struct link *l)
{
    if (l->proven)
        return;
    l->proven = 1;
    l->timer = loop_timer_close(l->timer);
    l->give_up = loop_timer_close(l->give_up);
    struct own_socket *o = &l->own[LINK_SHELL];
    if (!l->ready && !o->asked)
        o->asked = link_ask(l, LINK_SHELL, "kernel_info_request", VIEW_STR("{}"), NULL) == 0;
    l->ops.proven(l->arg);
}

static void on_give_up(void *arg)
{
    struct link *l = arg;

    log_warn("iopub_unproven", "session=%s", l->session);
    prove(l);
}

/* One question at a time on each channel: a slow kernel is not flooded. */
static void nudge(void *arg)
{
    struct link *l = arg;

    int unasked = 0;

    l->timer = loop_timer_close(l->timer);
    for (enum link_own i = 0; i < LINK_OWN_COUNT; i++) {
        if (!l->own[i].asked)
            l->own[i].asked = link_ask(l, i, "kernel_info_request", VIEW_STR("{}"), NULL) == 0;
        unasked |= !l->own[i].asked;
    }
    if (unasked) /* no answer of it will come to ask again */
        l->timer = loop_timer_start(l->loop, NUDGE_AGAIN_MS, 0, nudge, l);
}

/* Of a message that jmsg_parse() took apart with the result rc. */
static int verified(struct link *l, int rc, struct jmsg *m, struct jmsg_facts *ret_facts,
                    struct err *e)
{
    if (rc == 0)
        rc = jmsg_verify(l->key, m, e);
    if (rc == 0)
        rc = jmsg_scan(m, &jmsg_limits_default, ret_facts, e);
    if (rc == -HC_EAUTH) {
        l->counts.unsigned_++;
        metrics_count(METRIC_DROPPED, METRIC_SIGNATURE);
    } else if (rc < 0) {
        l->counts.malformed++;
        metrics_count(METRIC_DROPPED, rc == -HC_ELIMIT ? METRIC_OVERSIZED : METRIC_MALFORMED);
    }
    return rc;
}

int link_take(struct link *l, const struct view *frames, size_t count, struct jmsg *ret,
              struct jmsg_facts *ret_facts, struct err *e)
{
    return verified(l, jmsg_parse(frames, count, &jmsg_limits_default, ret, e), ret, ret_facts, e);
}

int link_salvage(struct link *l, const struct view *frames, size_t count, struct jmsg *ret,
                 struct jmsg_facts *ret_facts, size_t *ret_bytes)
{
    struct jmsg_limits wide = jmsg_limits_default;
    struct jmsg_facts facts = { 0 };

    wide.frame = wide.message = SIZE_MAX;
    wide.frames = UINT32_MAX;
    if (jmsg_parse(frames, count, &wide, ret, NULL) < 0 || jmsg_verify(l->key, ret, NULL) < 0 ||
        jmsg_header_scan(ret->header, &jmsg_limits_default, &facts.header, NULL) < 0)
        return -HC_EPARSE;
    if (jmsg_header_scan(ret->parent_header, &jmsg_limits_default, &facts.parent, NULL) < 0) {
        facts.parent = (struct jmsg_header){ 0 };
        ret->parent_header = VIEW_STR("{}");
    }
    *ret_facts = facts;
    *ret_bytes = 0;
    for (size_t i = 0; i < count; i++)
        *ret_bytes += frames[i].n;
    return 0;
}

static void log_drop(const char *what, const struct err *e)
{
    static struct log_limit limit;
    char text[200];

    if (log_allowed(&limit, 20))
        log_warn("message_dropped", "on=%s why=%s", what,
                 log_escape(e->msg, strlen(e->msg), text, sizeof text));
}

/* Ours is told from another subscriber's by its prefix: the content names it. */
static int is_own_welcome(struct link *l, const struct jmsg *m, const struct jmsg_facts *f)
{
    const struct jsonscan_rules rules = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, 16 };
    const char *const keys[] = { "subscription" };
    struct jsonscan_value v;

    return jsonscan_string_equals(f->header.msg_type, "iopub_welcome") &&
           jsonscan_object(m->content, &rules, keys, 1, &v, NULL, NULL) == 0 &&
           jsonscan_string_equals(v, l->welcome);
}

static int is_unwanted(struct link *l, const struct jmsg *m)
{
    enum { LARGE = 4096 }; /* of a smaller one the question costs as much as the check */
    struct jmsg_header header, parent;

    return (m->content.n > LARGE || m->buffer_count > 0) &&
           jmsg_header_scan(m->header, &jmsg_limits_default, &header, NULL) == 0 &&
           jmsg_header_scan(m->parent_header, &jmsg_limits_default, &parent, NULL) == 0 &&
           l->ops.unwanted(l->arg, m, &header, &parent);
}

/* Once, however often it is tried to connect anew. */
static void tell_lost(void *arg)
{
    struct link *l = arg;

    l->lost = loop_timer_close(l->lost);
    l->ops.lost(l->arg);
}

static void on_iopub(void *arg, const struct view *frames, size_t count)
{
    struct link *l = arg;
    struct jmsg m;
    struct jmsg_facts facts;
    struct err e = { 0 };

    l->broke = 0;
    if (l->lost != NULL)
        tell_lost(l);
    int rc = jmsg_parse(frames, count, &jmsg_limits_default, &m, &e);
    if (rc == 0 && is_unwanted(l, &m))
        return;
    rc = verified(l, rc, &m, &facts, &e);
    if (rc < 0) {
        size_t bytes;
        log_drop("iopub", &e);
        if (rc == -HC_ELIMIT && link_salvage(l, frames, count, &m, &facts, &bytes) == 0)
            l->ops.oversized(l->arg, &m, &facts, bytes, e.msg);
        return;
    }
    int own = is_own_welcome(l, &m, &facts);
    if (!own)
        l->ops.iopub(l->arg, &m, &facts);
    prove(l);
}

static int major_of(const struct jmsg *m, char *text, size_t text_n)
{
    const struct jsonscan_rules rules = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, 64 };
    const char *const keys[] = { "protocol_version" };
    struct jsonscan_value v;

    if (jsonscan_object(m->content, &rules, keys, 1, &v, NULL, NULL) < 0 || !jsonscan_given(v))
        return 5; /* it does not say */
    if (jsonscan_string_copy(v, text, text_n, NULL) < 0) {
        /* Version 4 sends a list of numbers. */
        log_escape(v.text.p, v.text.n < 16 ? v.text.n : 16, text, text_n);
        return v.text.n > 1 && v.text.p[1] >= '0' && v.text.p[1] <= '9' ? v.text.p[1] - '0' : 0;
    }
    return text[0] >= '0' && text[0] <= '9' ? atoi(text) : 0;
}

static void on_own(void *arg, const struct view *frames, size_t count)
{
    struct own_socket *o = arg;
    struct link *l = o->link;
    struct jmsg m;
    struct jmsg_facts facts;
    struct err e = { 0 };
    char version[64];

    if (link_take(l, frames, count, &m, &facts, &e) < 0) {
        log_drop("own", &e);
        return;
    }
    if (!jsonscan_string_equals(facts.header.msg_type, "kernel_info_reply")) {
        l->ops.reply(l->arg, &m, &facts); /* not to an interrupt or shutdown: the process tells */
        return;
    }
    char subshell[128];
    if (jsonscan_string_copy(facts.parent.subshell_id, subshell, sizeof subshell, NULL) < 0)
        subshell[0] = '\0';
    if (subshell[0] == '\0')
        o->asked = 0;
    if (major_of(&m, version, sizeof version) != 5) {
        l->ops.unsupported(l->arg, version);
        return;
    }
    if (!l->proven) {
        l->timer = loop_timer_close(l->timer);
        l->timer = loop_timer_start(l->loop, NUDGE_AGAIN_MS, 0, nudge, l);
    }
    if (o == &l->own[LINK_CONTROL]) {
        l->ops.control(l->arg);
        return;
    }
    if (!l->ready) {
        l->ready = 1;
        /* The monitor has an event before the socket has a message. */
        l->never_joins = !zsocket_is_joined(o->socket);
        l->ops.ready(l->arg);
    }
    l->ops.answered(l->arg, subshell);
}

static void reopen_sub(void *arg);

/* The kernel closed the connection, or a frame was too large for libzmq. When the
 * kernel has died the launcher says so soon; else the SUB is made anew. */
static void on_sub_gone(void *arg)
{
    struct link *l = arg;

    if (l->reopen == NULL && !l->ended)
        l->reopen = loop_timer_start(l->loop, REOPEN_MS, 0, reopen_sub, l);
}

static int open_sub(struct link *l, struct err *e)
{
    static const struct zsocket_ops ops = { .message = on_iopub, .gone = on_sub_gone };
    char endpoint[ENDPOINT_TEXT], unique[33];

    random_text(unique, 32);
    snprintf(l->welcome, sizeof l->welcome, "holdcell-%s", unique);
    endpoints_text(&l->endpoints, ENDPOINT_IOPUB, endpoint);
    const struct zsocket_options o = {
        .type = ZSOCKET_SUB, .path = endpoint, .peer = l->peer, .welcome = l->welcome
    };
    return zsocket_open(l->zsockets, &o, &ops, l, &l->sub, e);
}

static void reopen_sub(void *arg)
{
    struct link *l = arg;
    struct err e = { 0 };

    l->reopen = loop_timer_close(l->reopen);
    zsocket_drain(l->sub);
    if (!l->broke) {
        l->broke = 1;
        l->lost = loop_timer_start(l->loop, LOST_MS, 0, tell_lost, l);
    }
    struct zsocket *old = l->sub;
    if (open_sub(l, &e) < 0) {
        log_error("iopub_reopen", "error=\"%s\"", e.msg);
        l->reopen = loop_timer_start(l->loop, REOPEN_MS, 0, reopen_sub, l);
        return;
    }
    /* DEALERs go on behind the new one. */
    zsocket_replace(old, l->sub);
    old = zsocket_close(old);
}

static void on_own_joined(void *arg)
{
    (void)arg; /* looked at with the first answer */
}

static int open_own(struct link *l, enum link_own which, const char *identity, struct err *e)
{
    static const struct zsocket_ops ops[LINK_OWN_COUNT] = {
        [LINK_SHELL] = { .message = on_own, .joined = on_own_joined },
        [LINK_CONTROL] = { .message = on_own },
    };
    static const unsigned endpoint[LINK_OWN_COUNT] = { ENDPOINT_SHELL, ENDPOINT_CONTROL };

    l->own[which].link = l;
    return link_dealer(l, endpoint[which], identity, &ops[which], &l->own[which],
                       &l->own[which].socket, e);
}

static void on_broke(void *arg, const char *why)
{
    struct link *l = arg;

    if (!l->ended)
        l->ops.broke(l->arg, why);
}

int link_open(const struct link_config *c, struct endpoints *endpoints, const struct link_ops *ops,
              void *arg, struct link **ret, struct err *e)
{
    struct link *l = xcalloc(1, sizeof *l);
    char identity[33];

    *l = (struct link){ .loop = c->loop,
                        .zsockets = c->zsockets,
                        .session = c->session,
                        .endpoints = ENDPOINTS_NONE,
                        .ops = *ops,
                        .arg = arg };
    snprintf(l->key_text, sizeof l->key_text, "%s", c->key);
    random_text(identity, 32);
    l->peer = zsocket_peer_new(on_broke, l);
    struct endpoints given = *endpoints;
    l->endpoints = given;
    int rc = jmsg_key_new(VIEW_STR("hmac-sha256"), view_cstr(c->key), &l->key, e);
    if (rc == 0)
        rc = open_sub(l, e);
    for (enum link_own i = 0; rc == 0 && i < LINK_OWN_COUNT; i++)
        rc = open_own(l, i, identity, e);
    if (rc < 0) {
        l->endpoints = (struct endpoints)ENDPOINTS_NONE; /* they stay the caller's */
        l = link_close(l);
        return rc;
    }
    *endpoints = (struct endpoints)ENDPOINTS_NONE;
    l->timer = loop_timer_start(l->loop, WELCOME_MS, 0, nudge, l);
    l->give_up = loop_timer_start(l->loop, c->give_up_ms, 0, on_give_up, l);
    *ret = l;
    return 0;
}

struct link *link_close(struct link *l)
{
    if (l == NULL)
        return NULL;
    l->timer = loop_timer_close(l->timer);
    l->give_up = loop_timer_close(l->give_up);
    l->reopen = loop_timer_close(l->reopen);
    l->lost = loop_timer_close(l->lost);
    for (enum link_own i = 0; i < LINK_OWN_COUNT; i++)
        l->own[i].socket = zsocket_close(l->own[i].socket);
    l->sub = zsocket_close(l->sub);
    l->peer = zsocket_peer_free(l->peer);
    l->key = jmsg_key_free(l->key);
    endpoints_drop(&l->endpoints);
    free(l);
    return NULL;
}

void link_peer_ended(struct link *l)
{
    l->ended = 1;
    l->reopen = loop_timer_close(l->reopen);
    l->lost = loop_timer_close(l->lost);
}

int link_is_proven(const struct link *l)
{
    return l->proven;
}

int link_is_ready(const struct link *l)
{
    return l->ready;
}

int link_never_joins(const struct link *l)
{
    return l->never_joins;
}

const struct endpoints *link_endpoints(const struct link *l)
{
    return &l->endpoints;
}

const char *link_key(const struct link *l)
{
    return l->key_text;
}

int link_dealer(struct link *l, unsigned endpoint, const char *identity,
                const struct zsocket_ops *ops, void *arg, struct zsocket **ret, struct err *e)
{
    char text[ENDPOINT_TEXT];

    endpoints_text(&l->endpoints, endpoint, text);
    const struct zsocket_options o = {
        .type = ZSOCKET_DEALER,
        .path = text,
        .peer = l->peer,
        .identity = identity,
        .behind = l->sub,
    };
    return zsocket_open(l->zsockets, &o, ops, arg, ret, e);
}

int link_send(struct link *l, struct zsocket *s, const struct jmsg *m, struct err *e)
{
    char hex[JMSG_SIGNATURE_SIZE];
    int n = jmsg_pack(l->key, m, hex, l->frames, FRAMES_MAX, e);

    return n < 0 ? n : zsocket_send(s, l->frames, (size_t)n, e);
}

static int ask(struct link *l, enum link_own own, const char *type, const char *subshell,
               struct view content, char *ret_id, struct err *e)
{
    autobuf struct buf header = { 0 };

    buf_init(&header, OWNMSG_MAX);
    ownmsg_header_to(&header, type, l->session, subshell, ret_id);
    struct jmsg m = { .parts = { buf_view(&header), VIEW_STR("{}"), VIEW_STR("{}"), content } };
    return link_send(l, l->own[own].socket, &m, e);
}

int link_ask(struct link *l, enum link_own own, const char *type, struct view content,
             struct err *e)
{
    return ask(l, own, type, "", content, NULL, e);
}

int link_request(struct link *l, enum link_own own, const char *type, struct view content,
                 char ret_id[OWNMSG_ID], struct err *e)
{
    return ask(l, own, type, "", content, ret_id, e);
}

int link_probe(struct link *l, const char *subshell, struct err *e)
{
    struct own_socket *o = &l->own[LINK_SHELL];

    if (*subshell == '\0' && o->asked)
        return 0;
    int rc = ask(l, LINK_SHELL, "kernel_info_request", subshell, VIEW_STR("{}"), NULL, e);
    if (*subshell == '\0')
        o->asked = rc == 0;
    return rc;
}

int link_drain(struct link *l)
{
    return zsocket_drain(l->sub);
}

struct link_counts link_counts(const struct link *l)
{
    return l->counts;
}
