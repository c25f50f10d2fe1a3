#include "kernelconn.h"

#include <czmq.h>

#include "buf.h"
#include "err.h"
#include "hex.h"
#include "jmsg.h"
#include "jsonscan.h"
#include "jsonwrite.h"

#define FRAMES 64

struct kernelconn {
    zsock_t *shell, *control, *stdin_, *iopub; /* owned */
    zpoller_t *poller;                         /* owned */
    struct jmsg_key *key;                      /* owned */
    char session[33];
    char msg_id[64]; /* of the request that is waited for */
    unsigned count;
    char status[32]; /* that of the reply, printed when all that came before it is */
    int replied, idle, info, heard;
};

static zsock_t *connect_to(int type, const char *end, const char *identity)
{
    zsock_t *s = zsock_new(type);

    zsock_set_linger(s, 0);
    zsock_set_rcvhwm(s, 0);
    if (type == ZMQ_SUB)
        zsock_set_subscribe(s, "");
    else
        zsock_set_identity(s, identity);
    if (zsock_connect(s, "%s", end) < 0)
        zsock_destroy(&s);
    return s;
}

struct kernelconn *kernelconn_new(const struct kernelconn_ends *ends, struct err *e)
{
    struct kernelconn *k = xcalloc(1, sizeof *k);
    zuuid_t *uuid = zuuid_new();

    snprintf(k->session, sizeof k->session, "%s", zuuid_str(uuid));
    zuuid_destroy(&uuid);
    if (jmsg_key_new(view_cstr("hmac-sha256"), view_cstr(ends->key), &k->key, e) < 0)
        return kernelconn_free(k);
    k->shell = connect_to(ZMQ_DEALER, ends->shell, k->session);
    k->control = connect_to(ZMQ_DEALER, ends->control, k->session);
    k->stdin_ = connect_to(ZMQ_DEALER, ends->stdin_, k->session);
    k->iopub = connect_to(ZMQ_SUB, ends->iopub, NULL);
    if (k->shell == NULL || k->control == NULL || k->stdin_ == NULL || k->iopub == NULL) {
        err_set(e, EINVAL, "cannot connect to the kernel's sockets");
        return kernelconn_free(k);
    }
    k->poller = zpoller_new(k->iopub, k->stdin_, k->control, k->shell, NULL);
    return k;
}

struct kernelconn *kernelconn_free(struct kernelconn *k)
{
    if (k == NULL)
        return NULL;
    zpoller_destroy(&k->poller);
    zsock_destroy(&k->shell);
    zsock_destroy(&k->control);
    zsock_destroy(&k->stdin_);
    zsock_destroy(&k->iopub);
    jmsg_key_free(k->key);
    free(k);
    return NULL;
}

static int send_request(struct kernelconn *k, zsock_t *to, const char *type, struct view parent,
                        struct view content, struct err *e)
{
    autobuf struct buf header;
    char id[64], hex[JMSG_SIGNATURE_SIZE];
    struct view frames[FRAMES];

    buf_init(&header, 4096);
    snprintf(id, sizeof id, "%s_%u", k->session, ++k->count);
    struct jmsg_own own = { .msg_id = view_cstr(id),
                            .msg_type = view_cstr(type),
                            .session = view_cstr(k->session),
                            .username = view_cstr("zconsole"),
                            .date = view_cstr("2026-01-01T00:00:00.000000Z") };
    int rc = jmsg_header_write(&own, &header, e);
    if (rc < 0)
        return rc;

    struct jmsg m = { .parts = { buf_view(&header), parent, VIEW_STR("{}"), content } };
    int n = jmsg_pack(k->key, &m, hex, frames, FRAMES, e);
    if (n < 0)
        return n;
    zmsg_t *out = zmsg_new();
    for (int i = 0; i < n; i++)
        zmsg_addmem(out, frames[i].p, frames[i].n);
    if (zmsg_send(&out, to) < 0) {
        zmsg_destroy(&out);
        return err_set(e, EIO, "send %s", type);
    }
    if (to != k->stdin_)
        memcpy(k->msg_id, id, sizeof id);
    return 0;
}

static void print_text(const char *label, struct jsonscan_value v)
{
    autobuf struct buf text;

    buf_init(&text, 1 << 20);
    if (jsonscan_string_decode(v, &text, NULL) < 0)
        return;
    /* One line per event: a test reads lines. */
    printf("%s: ", label);
    struct view t = buf_view(&text);
    for (size_t i = 0; i < t.n; i++) {
        if (t.p[i] == '\n')
            fputs("\\n", stdout);
        else
            putchar(t.p[i]);
    }
    putchar('\n');
}

static void print_mimes(const char *label, struct jsonscan_value data)
{
    struct jsonscan_rules rules = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, 64 };
    struct jsonscan_iter it;
    struct jsonscan_value key, value;

    if (jsonscan_iter_init(&it, data, &rules, NULL) < 0)
        return;
    while (jsonscan_iter_next(&it, &key, &value, NULL) == 1) {
        if (jsonscan_string_equals(key, "text/plain"))
            print_text(label, value);
        else
            print_text("mime", key);
    }
}

static void on_iopub(struct kernelconn *k, struct jsonscan_value type, struct view content)
{
    static const char *const keys[] = {
        "execution_state", "name", "text", "data", "ename", "evalue"
    };
    struct jsonscan_rules rules = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, 512 };
    struct jsonscan_value v[6];

    if (jsonscan_object(content, &rules, keys, 6, v, NULL, NULL) < 0)
        return;
    if (jsonscan_string_equals(type, "status"))
        k->idle |= jsonscan_string_equals(v[0], "idle");
    else if (jsonscan_string_equals(type, "stream"))
        print_text(jsonscan_string_equals(v[1], "stderr") ? "stderr" : "stdout", v[2]);
    else if (jsonscan_string_equals(type, "execute_result"))
        print_mimes("result", v[3]);
    else if (jsonscan_string_equals(type, "display_data"))
        print_mimes("display", v[3]);
    else if (jsonscan_string_equals(type, "error"))
        print_text("error", v[4]);
}

static int answer_input(struct kernelconn *k, struct view header, const char *answer, struct err *e)
{
    autobuf struct buf content;

    buf_init(&content, 4096);
    struct jsonwrite o = jsonwrite_to(&content);
    jsonwrite_object(&o);
    jsonwrite_key(&o, "value");
    jsonwrite_str(&o, answer);
    jsonwrite_end(&o);
    int rc = jsonwrite_finish(&o, e);
    return rc < 0 ? rc : send_request(k, k->stdin_, "input_reply", header, buf_view(&content), e);
}

static int dispatch(struct kernelconn *k, void *from, const struct jmsg *m, const char *answer,
                    struct err *e)
{
    struct jmsg_facts facts;
    int rc = jmsg_scan(m, &jmsg_limits_default, &facts, e);

    if (rc < 0)
        return rc;
    k->heard |= from == k->iopub;
    if (jsonscan_string_equals(facts.header.msg_type, "input_request") && from == k->stdin_)
        return answer != NULL ? answer_input(k, m->header, answer, e) : 0;
    if (!jsonscan_string_equals(facts.parent.msg_id, k->msg_id))
        return 0;
    if (from == k->iopub) {
        on_iopub(k, facts.header.msg_type, m->content);
        return 0;
    }
    if (jsonscan_string_equals(facts.header.msg_type, "kernel_info_reply"))
        k->info = 1;
    if (jsonscan_string_equals(facts.header.msg_type, "execute_reply")) {
        static const char *const keys[] = { "status" };
        struct jsonscan_value status;

        rc = jsonscan_object(m->content, &(struct jsonscan_rules){ JSONSCAN_NAN, 512 }, keys, 1,
                             &status, NULL, e);
        if (rc == 0)
            rc = jsonscan_string_copy(status, k->status, sizeof k->status, e);
        if (rc < 0)
            return rc;
        k->replied = 1;
    }
    return 0;
}

/* One message, or nothing within the time: 1 or 0. */
static int pump(struct kernelconn *k, int timeout_ms, const char *answer, struct err *e)
{
    void *from = zpoller_wait(k->poller, timeout_ms);
    struct view frames[FRAMES];
    struct jmsg m;
    size_t n = 0;

    if (from == NULL)
        return 0;
    zmsg_t *msg = zmsg_recv(from);
    for (zframe_t *f = zmsg_first(msg); f != NULL && n < FRAMES; f = zmsg_next(msg))
        frames[n++] = (struct view){ zframe_data(f), zframe_size(f) };
    int rc = jmsg_parse(frames, n, &jmsg_limits_default, &m, e);
    if (rc == 0)
        rc = jmsg_verify(k->key, &m, e);
    if (rc == 0)
        rc = dispatch(k, from, &m, answer, e);
    zmsg_destroy(&msg);
    return rc < 0 ? rc : 1;
}

int kernelconn_wait_ready(struct kernelconn *k, int timeout_ms, struct err *e)
{
    int64_t end = zclock_mono() + timeout_ms;

    k->info = k->heard = 0;
    while (zclock_mono() < end) {
        int rc =
            send_request(k, k->shell, "kernel_info_request", VIEW_STR("{}"), VIEW_STR("{}"), e);
        int64_t until = zclock_mono() + 1000;

        while (rc >= 0 && zclock_mono() < until && !(k->info && k->heard))
            rc = pump(k, 100, NULL, e);
        if (rc < 0)
            return rc;
        if (k->info && k->heard)
            return 0;
    }
    return err_set(e, ETIMEDOUT, "the kernel did not answer");
}

int kernelconn_start(struct kernelconn *k, const char *code, struct err *e)
{
    autobuf struct buf content;

    buf_init(&content, 1 << 20);
    struct jsonwrite o = jsonwrite_to(&content);
    jsonwrite_object(&o);
    jsonwrite_key(&o, "code");
    jsonwrite_str(&o, code);
    jsonwrite_key(&o, "silent");
    jsonwrite_bool(&o, 0);
    jsonwrite_key(&o, "store_history");
    jsonwrite_bool(&o, 1);
    jsonwrite_key(&o, "user_expressions");
    jsonwrite_raw(&o, VIEW_STR("{}"));
    jsonwrite_key(&o, "allow_stdin");
    jsonwrite_bool(&o, 1);
    jsonwrite_key(&o, "stop_on_error");
    jsonwrite_bool(&o, 0);
    jsonwrite_end(&o);
    int rc = jsonwrite_finish(&o, e);
    if (rc < 0)
        return rc;
    k->replied = k->idle = 0;
    return send_request(k, k->shell, "execute_request", VIEW_STR("{}"), buf_view(&content), e);
}

int kernelconn_finish(struct kernelconn *k, const char *answer, int timeout_ms, struct err *e)
{
    int64_t end = zclock_mono() + timeout_ms;

    while (!(k->replied && k->idle)) {
        int rc = pump(k, 100, answer, e);

        if (rc < 0)
            return rc;
        if (zclock_mono() > end)
            return err_set(e, ETIMEDOUT, "the cell did not end");
    }
    printf("reply: %s\n", k->status);
    return 0;
}

int kernelconn_run(struct kernelconn *k, const char *code, const char *answer, int timeout_ms,
                   struct err *e)
{
    int rc = kernelconn_start(k, code, e);

    return rc < 0 ? rc : kernelconn_finish(k, answer, timeout_ms, e);
}
