/*
 * scripted_kernel - a Jupyter kernel without an interpreter, on czmq: it does
 * what the lines of the cell say. A foreign kernel for the launcher's tests (it
 * binds in its run folder) and a kernel that costs nothing for measurements.
 *
 *   scripted-kernel CONNECTION_FILE [VERSION]
 *
 * VERSION: JSON of what it says to be its version of the protocol, "5.3" if not given.
 *
 * Lines of a cell: print TEXT | stderr TEXT | result TEXT | error NAME | sleep MS |
 * input PROMPT | env NAME | exit CODE | raise SIGNAL | unsigned (a message that nobody signed) |
 * lines COUNT MS TEXT (numbered, with a pause) | fill COUNT BYTES | display ID TEXT | update ID TEXT |
 * early MS (its idle goes out so long before its reply) |
 * late COUNT MS (the replies of this cell and the next go out when COUNT cells are done, with so long before each)
 *
 * A cell that begins with `ignore` is: nothing at all is said of it.
 *
 * SIGINT ends a cell that sleeps or asks with KeyboardInterrupt. comm_msg comes back with
 * its buffers.
 */
#include <signal.h>
#include <time.h>

#include <czmq.h>
#include <jansson.h>

#include "buf.h"
#include "err.h"
#include "jmsg.h"

#define FRAMES   32
#define LATE_MAX 16

struct late {               /* a reply that has to wait */
    char *routing, *parent; /* owned */
    size_t routing_n, parent_n;
    json_t *reply; /* owned */
};

struct kernel {
    zsock_t *shell, *control, *stdin_, *iopub, *hb; /* owned */
    struct jmsg_key *key;                           /* owned */
    char session[40];
    json_t *version; /* owned */
    unsigned count, executed;
    int ending;
    int early_ms; /* of the cell that runs; -1: its idle comes last */
    struct late late[LATE_MAX];
    unsigned late_count, late_due; /* those that wait, and until how many do */
    int late_ms;
};

static zsock_t *bind_to(int type, const char *prefix, int port)
{
    zsock_t *s = zsock_new(type);

    zsock_set_linger(s, 1000);
    zsock_set_sndhwm(s, 0);
    if (zsock_bind(s, "%s%d", prefix, port) < 0) {
        fprintf(stderr, "cannot bind %s%d: %s\n", prefix, port, strerror(errno));
        exit(1);
    }
    return s;
}

static const struct jmsg no_buffers;

/* buffers_of: whose buffers go with it. */
static void send_message(struct kernel *k, zsock_t *to, struct view routing, const char *type,
                         struct view parent, json_t *content, int sign,
                         const struct jmsg *buffers_of)
{
    char id[64], hex[JMSG_SIGNATURE_SIZE];
    char *text = json_dumps(content, JSON_COMPACT);
    struct view frames[FRAMES];
    autobuf struct buf header;
    zmsg_t *out = zmsg_new();

    json_decref(content);
    buf_init(&header, 4096);
    snprintf(id, sizeof id, "%s_%u", k->session, ++k->count);
    struct jmsg_own own = { .msg_id = view_cstr(id),
                            .msg_type = view_cstr(type),
                            .session = view_cstr(k->session),
                            .username = view_cstr("scripted"),
                            .date = view_cstr("2026-01-01T00:00:00.000000Z") };
    check(jmsg_header_write(&own, &header, NULL) == 0);
    struct jmsg m = { .routing = &routing,
                      .routing_count = 1,
                      .parts = { buf_view(&header), parent, VIEW_STR("{}"), view_cstr(text) },
                      .buffers = buffers_of->buffers,
                      .buffer_count = buffers_of->buffer_count };
    int n = jmsg_pack(k->key, &m, hex, frames, FRAMES, NULL);
    check(n > 0);
    if (!sign)
        memset(hex, '0', strlen(hex));
    for (int i = 0; i < n; i++)
        zmsg_addmem(out, frames[i].p, frames[i].n);
    zmsg_send(&out, to);
    free(text);
}

static void publish(struct kernel *k, const char *type, struct view parent, json_t *content)
{
    send_message(k, k->iopub, view_cstr(type), type, parent, content, 1, &no_buffers);
}

static void publish_stream(struct kernel *k, const char *name, const char *text, struct view parent)
{
    publish(k, "stream", parent, json_pack("{s:s, s:s+}", "name", name, "text", text, "\n"));
}

static void publish_state(struct kernel *k, const char *state, struct view parent)
{
    publish(k, "status", parent, json_pack("{s:s}", "execution_state", state));
}

/* Waits so long, or for SIGINT, which is blocked in all threads: 1 when that came. */
static int pause_ms(int ms)
{
    struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    return sigtimedwait(&set, NULL, &t) == SIGINT;
}

/* Waits for the answer of a client and publishes it; 1 when an interrupt came first. */
static int ask(struct kernel *k, struct view routing, struct view parent, const char *prompt)
{
    send_message(k, k->stdin_, routing, "input_request", parent,
                 json_pack("{s:s, s:b}", "prompt", prompt, "password", 0), 1, &no_buffers);
    zmsg_t *in;
    do {
        if (pause_ms(0))
            return 1;
        in = zmsg_recv(k->stdin_); /* with a time-out: see start() */
    } while (in == NULL);
    zframe_t *last = in != NULL ? zmsg_last(in) : NULL;
    if (last != NULL) {
        json_t *content = json_loadb((char *)zframe_data(last), zframe_size(last), 0, NULL);
        const char *value = json_string_value(json_object_get(content, "value"));
        publish_stream(k, "stdout", value != NULL ? value : "(nothing)", parent);
        json_decref(content);
    }
    zmsg_destroy(&in);
    return 0;
}

/* "COUNT MS TEXT"; 1 when an interrupt came. */
static int print_lines(struct kernel *k, const char *arg, struct view parent)
{
    int count = 0, ms = 0, at = 0;
    char line[512];

    if (sscanf(arg, "%d %d %n", &count, &ms, &at) < 2)
        return 0;
    for (int i = 0; i < count; i++) {
        snprintf(line, sizeof line, "%.400s %d", arg + at, i);
        publish_stream(k, "stdout", line, parent);
        if (pause_ms(ms))
            return 1;
    }
    return 0;
}

/* "COUNT BYTES": text that nobody looks at. */
static void fill(struct kernel *k, const char *arg, struct view parent)
{
    unsigned count = 0, bytes = 0;

    if (sscanf(arg, "%u %u", &count, &bytes) < 2 || bytes > 1 << 20)
        return;
    char *text = xcalloc(1, bytes + 1);
    memset(text, 'x', bytes);
    for (unsigned i = 0; i < count; i++)
        publish_stream(k, "stdout", text, parent);
    free(text);
}

static void show(struct kernel *k, const char *type, char *arg, struct view parent)
{
    char *text = strchr(arg, ' ');

    if (text == NULL)
        return;
    *text++ = '\0';
    publish(k, type, parent,
            json_pack("{s:{s:s}, s:{}, s:{s:s}}", "data", "text/plain", text, "metadata",
                      "transient", "display_id", arg));
}

/* "COUNT MS" */
static void take_late(struct kernel *k, const char *arg)
{
    if (sscanf(arg, "%u %d", &k->late_due, &k->late_ms) < 2 || k->late_due > LATE_MAX)
        k->late_due = 0;
}

/* One line of a cell; returns the name of the error that it asks for, or NULL. */
static const char *act(struct kernel *k, char *line, struct view routing, struct view parent)
{
    char *arg = strchr(line, ' ');

    if (arg != NULL)
        *arg++ = '\0';
    else
        arg = line + strlen(line);
    if (strcmp(line, "print") == 0)
        publish_stream(k, "stdout", arg, parent);
    else if (strcmp(line, "stderr") == 0)
        publish_stream(k, "stderr", arg, parent);
    else if (strcmp(line, "env") == 0)
        publish_stream(k, "stdout", getenv(arg) != NULL ? getenv(arg) : "(unset)", parent);
    else if (strcmp(line, "result") == 0)
        publish(k, "execute_result", parent,
                json_pack("{s:i, s:{s:s}, s:{}}", "execution_count", (int)k->executed, "data",
                          "text/plain", arg, "metadata"));
    else if (strcmp(line, "sleep") == 0)
        return pause_ms(atoi(arg)) ? "KeyboardInterrupt" : NULL;
    else if (strcmp(line, "input") == 0)
        return ask(k, routing, parent, arg) ? "KeyboardInterrupt" : NULL;
    else if (strcmp(line, "lines") == 0)
        return print_lines(k, arg, parent) ? "KeyboardInterrupt" : NULL;
    else if (strcmp(line, "fill") == 0)
        fill(k, arg, parent);
    else if (strcmp(line, "display") == 0)
        show(k, "display_data", arg, parent);
    else if (strcmp(line, "update") == 0)
        show(k, "update_display_data", arg, parent);
    else if (strcmp(line, "unsigned") == 0)
        send_message(k, k->iopub, VIEW_STR("stream"), "stream", parent,
                     json_pack("{s:s, s:s}", "name", "stdout", "text", "FORGED\n"), 0, &no_buffers);
    else if (strcmp(line, "early") == 0)
        k->early_ms = atoi(arg);
    else if (strcmp(line, "late") == 0)
        take_late(k, arg);
    else if (strcmp(line, "exit") == 0)
        _exit(atoi(arg));
    else if (strcmp(line, "raise") == 0)
        raise(atoi(arg));
    else if (strcmp(line, "error") == 0)
        return arg;
    return NULL;
}

static void send_reply(struct kernel *k, struct view routing, struct view parent, json_t *reply)
{
    send_message(k, k->shell, routing, "execute_reply", parent, reply, 1, &no_buffers);
}

static void send_late(struct kernel *k)
{
    for (unsigned i = 0; i < k->late_count; i++) {
        struct late *l = &k->late[i];
        pause_ms(k->late_ms);
        send_reply(k, (struct view){ (uint8_t *)l->routing, l->routing_n },
                   (struct view){ (uint8_t *)l->parent, l->parent_n }, l->reply);
        free(l->routing);
        free(l->parent);
    }
    k->late_count = k->late_due = 0;
}

static void keep_late(struct kernel *k, struct view routing, struct view parent, json_t *reply)
{
    k->late[k->late_count++] =
        (struct late){ view_dup(routing), view_dup(parent), routing.n, parent.n, reply };
}

static void execute(struct kernel *k, struct view routing, struct view parent, const char *code)
{
    char *text = strdup(code), *rest;
    const char *error = NULL;

    while (pause_ms(0)) /* interrupts that were meant for others */
        ;
    k->executed++;
    k->early_ms = -1;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL && error == NULL;
         line = strtok_r(NULL, "\n", &rest))
        error = act(k, line, routing, parent);
    json_t *reply;
    if (error != NULL) {
        publish(k, "error", parent,
                json_pack("{s:s, s:s, s:[]}", "ename", error, "evalue", "", "traceback"));
        reply = json_pack("{s:s, s:s, s:s, s:[]}", "status", "error", "ename", error, "evalue", "",
                          "traceback");
    } else {
        reply = json_pack("{s:s, s:i, s:{}, s:[]}", "status", "ok", "execution_count",
                          (int)k->executed, "user_expressions", "payload");
    }
    if (k->early_ms >= 0) {
        publish_state(k, "idle", parent);
        pause_ms(k->early_ms);
    }
    if (k->late_due > 0)
        keep_late(k, routing, parent, reply);
    else
        send_reply(k, routing, parent, reply);
    if (k->early_ms < 0)
        publish_state(k, "idle", parent);
    if (k->late_due > 0 && k->late_count == k->late_due)
        send_late(k);
    free(text);
}

static void serve(struct kernel *k, zsock_t *from)
{
    zmsg_t *in = zmsg_recv(from);
    struct view frames[FRAMES];
    struct jmsg m;
    size_t n = 0;

    for (zframe_t *f = zmsg_first(in); f != NULL && n < FRAMES; f = zmsg_next(in))
        frames[n++] = (struct view){ zframe_data(f), zframe_size(f) };
    if (jmsg_parse(frames, n, &jmsg_limits_default, &m, NULL) < 0 || m.routing_count != 1 ||
        jmsg_verify(k->key, &m, NULL) < 0) {
        zmsg_destroy(&in);
        return;
    }
    json_t *header = json_loadb((const char *)m.header.p, m.header.n, 0, NULL);
    json_t *content = json_loadb((const char *)m.content.p, m.content.n, JSON_ALLOW_NUL, NULL);
    const char *type = json_string_value(json_object_get(header, "msg_type"));
    const char *code = json_string_value(json_object_get(content, "code"));

    const char ignore[] = "ignore";
    int ignored = code != NULL && strncmp(code, ignore, strlen(ignore)) == 0;
    int runs = type != NULL && strcmp(type, "execute_request") == 0 && code != NULL;

    if (!ignored)
        publish_state(k, "busy", m.header);
    if (runs && !ignored) {
        execute(k, m.routing[0], m.header, code);
    } else if (type != NULL && strcmp(type, "kernel_info_request") == 0) {
        send_message(k, from, m.routing[0], "kernel_info_reply", m.header,
                     json_pack("{s:s, s:O, s:s, s:s, s:s, s:[], s:{s:s, s:s, s:s, s:s}}", "status",
                               "ok", "protocol_version", k->version, "implementation", "scripted",
                               "implementation_version", "1", "banner", "scripted", "help_links",
                               "language_info", "name", "scripted", "version", "1", "mimetype",
                               "text/plain", "file_extension", ".txt"),
                     1, &no_buffers);
    } else if (type != NULL && strcmp(type, "comm_msg") == 0) {
        send_message(k, k->iopub, VIEW_STR("comm_msg"), type, m.header, json_incref(content), 1,
                     &m);
    } else if (type != NULL && strcmp(type, "shutdown_request") == 0) {
        send_message(k, from, m.routing[0], "shutdown_reply", m.header,
                     json_pack("{s:s, s:b}", "status", "ok", "restart", 0), 1, &no_buffers);
        k->ending = 1;
    }
    if (!ignored && !runs) /* execute() says it */
        publish_state(k, "idle", m.header);
    json_decref(header);
    json_decref(content);
    zmsg_destroy(&in);
}

static struct kernel *start(const char *path, const char *version)
{
    struct kernel *k = xcalloc(1, sizeof *k);
    json_error_t je;
    json_t *cf = json_load_file(path, 0, &je);
    const char *ip, *key, *transport;
    char prefix[256];
    int p[5];

    if (cf == NULL ||
        json_unpack_ex(cf, &je, 0, "{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "transport",
                       &transport, "ip", &ip, "key", &key, "shell_port", &p[0], "control_port",
                       &p[1], "stdin_port", &p[2], "iopub_port", &p[3], "hb_port", &p[4]) < 0) {
        fprintf(stderr, "%s: %s\n", path, je.text);
        exit(1);
    }
    snprintf(prefix, sizeof prefix, "%s://%s%c", transport, ip,
             strcmp(transport, "tcp") == 0 ? ':' : '-');
    check(jmsg_key_new(VIEW_STR("hmac-sha256"), view_cstr(key), &k->key, NULL) == 0);
    snprintf(k->session, sizeof k->session, "scripted-%d", getpid());
    k->shell = bind_to(ZMQ_ROUTER, prefix, p[0]);
    k->control = bind_to(ZMQ_ROUTER, prefix, p[1]);
    k->stdin_ = bind_to(ZMQ_ROUTER, prefix, p[2]);
    zsock_set_rcvtimeo(k->stdin_, 100);
    k->iopub = bind_to(ZMQ_PUB, prefix, p[3]);
    k->hb = bind_to(ZMQ_REP, prefix, p[4]);
    json_decref(cf);
    k->version = json_loads(version, JSON_DECODE_ANY, &je);
    if (k->version == NULL) {
        fprintf(stderr, "%s: %s\n", version, je.text);
        exit(2);
    }
    return k;
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: scripted-kernel CONNECTION_FILE [VERSION]\n");
        return 2;
    }
    zsys_handler_set(NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL); /* before there are threads */
    struct kernel *k = start(argv[1], argc == 3 ? argv[2] : "\"5.3\"");
    zpoller_t *poller = zpoller_new(k->control, k->shell, k->hb, NULL);

    publish_state(k, "starting", VIEW_STR("{}"));
    while (!k->ending) {
        zsock_t *from = zpoller_wait(poller, -1);

        if (from == k->hb) {
            zmsg_t *beat = zmsg_recv(k->hb);
            zmsg_send(&beat, k->hb);
        } else if (from != NULL) {
            serve(k, from);
        } else if (zpoller_terminated(poller)) {
            break;
        }
    }
    zpoller_destroy(&poller);
    zsock_destroy(&k->shell);
    zsock_destroy(&k->control);
    zsock_destroy(&k->stdin_);
    zsock_destroy(&k->iopub);
    zsock_destroy(&k->hb);
    jmsg_key_free(k->key);
    json_decref(k->version);
    free(k);
    return 0;
}
