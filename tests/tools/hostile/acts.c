#include "acts.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "handles.h"
#include "initmsg.h"
#include "limit.h"

enum { TEXT_MAX = 48 * 1024, FLOOD = 253 };

static uint8_t space[TEXT_MAX], bytes[MSG_MAX + 64];

struct view act_argv(const char *const *words, uint8_t *to, size_t size)
{
    size_t n = 0;

    for (; *words != NULL && n + strlen(*words) + 1 <= size; words++) {
        memcpy(to + n, *words, strlen(*words) + 1);
        n += strlen(*words) + 1;
    }
    return (struct view){ to, n };
}

static uint64_t number(struct peer *p)
{
    static const uint64_t edges[] = { 0,
                                      1,
                                      2,
                                      16,
                                      255,
                                      4095,
                                      4096,
                                      65536,
                                      INT32_MAX,
                                      UINT32_MAX,
                                      (uint64_t)1 << 32,
                                      INT64_MAX,
                                      (uint64_t)1 << 63,
                                      UINT64_MAX };

    return peer_one_in(p, 3) ? peer_random(p) >> peer_any(p, 64) : edges[peer_any(p, 14)];
}

static struct known *some(struct peer *p)
{
    struct known *k = &p->known[peer_any(p, PEER_KNOWN)];

    for (unsigned i = 0; k->id == 0 && i < PEER_KNOWN; i++)
        k = &p->known[i];
    return k;
}

static uint64_t sandbox_of(struct peer *p, const struct known *k)
{
    return peer_one_in(p, 40) ? number(p) : k->id;
}

/* ---- requests ---- */

/* Which directories of the operator it may see, and whose workspace it gets (storm.py gives both). */
static void ask_for_files(struct peer *p, struct launch_create *m)
{
    static const struct view data[] = {
        VIEW_STR("left\0"), VIEW_STR("left\0right\0"), VIEW_STR("none\0"), VIEW_STR("left\0left\0"),
        VIEW_STR("left"),   VIEW_STR("../left\0"),     VIEW_STR("\0"),
    };
    static const struct view whose[] = {
        VIEW_STR("alice"), VIEW_STR("bob"),     VIEW_STR("../alice"), VIEW_STR("."),
        VIEW_STR("a/b"),   VIEW_STR("alice\0"), VIEW_STR("al\nice"),
    };

    /* Numbers of its own: what a seed does besides stays what it was when the seed found something. */
    const uint64_t seed = p->seed;

    p->seed ^= UINT64_C(0x6f70656e66696c65);
    m->data_all = peer_one_in(p, 4);
    if (peer_one_in(p, 3))
        m->data = data[peer_any(p, sizeof data / sizeof *data)];
    if (peer_one_in(p, 3))
        m->principal = whose[peer_one_in(p, 2) ? 0 : peer_any(p, sizeof whose / sizeof *whose)];
    if (peer_one_in(p, 8))
        m->workspace_bytes = number(p);
    p->seed = seed;
}

static void create(struct peer *p)
{
    struct launch_create m = { .profile = VIEW_STR("default") };
    unsigned set = peer_any(p, 4);

    for (unsigned i = 0; i < set; i++) {
        const struct limit *l = &limit_rows[peer_any(p, LIMITS)];
        uint64_t value = peer_one_in(p, 3) ? number(p) : l->least * (1 + peer_any(p, 4));

        limit_set(&m.limits, l, value);
    }
    if (peer_one_in(p, 50))
        m.profile = VIEW_STR("../default");
    ask_for_files(p, &m);
    peer_ask(p, LAUNCH_CREATE, &m, NULL, 0);
}

static const char *const scripts[] = {
    "echo hello; exec sleep 1000",
    "exit 7",
    "kill -9 $$",
    "trap '' TERM INT QUIT USR1 USR2; while :; do sleep 1; done",
    "setsid sleep 1000 & setsid sleep 1000 & exit 0",
    "kill -STOP $$; sleep 1000",
    "x=aaaaaaaa; while :; do x=$x$x; done",
    "i=0; while [ $i -lt 80 ]; do sleep 1000 & i=$((i+1)); done; wait",
    "cd /home/user; i=0; while [ $i -lt 500 ]; do : >f$i; i=$((i+1)); done; sleep 1000",
    "head -c 3000000 /dev/zero >/home/user/f; sleep 1000",
    "ls -l /proc/self/fd; exec sleep 1000",
    "cd $HOME; mkdir -p d; ln -sf / d/root; ln -sf /proc/1 /run/kernel/*/s-1; exec sleep 1000",
    "exec 0<&- 1<&- 2<&-; exec sleep 1000",
};

static struct view some_argv(struct peer *p)
{
    const char *words[] = { "sh", "-c", scripts[peer_any(p, sizeof scripts / sizeof *scripts)],
                            NULL };
    const char *many[64];

    switch (peer_any(p, 12)) {
    case 0:
        words[0] = "no-such-program";
        break;
    case 1:
        words[0] = "/";
        break;
    case 2:
        words[0] = "{resource_dir}/{connection_file}";
        break;
    case 3:
        for (unsigned i = 0; i < 63; i++)
            many[i] = i % 2 ? "{connection_file}{connection_file}{resource_dir}" : "echo";
        many[63] = NULL;
        return act_argv(many, space, 16384);
    case 4: /* its last NUL is missing, mostly */
        return (struct view){ space, peer_any(p, 200) };
    default:
        break;
    }
    return act_argv(words, space, 16384);
}

static void spoil(struct peer *p, int *fds, unsigned *n)
{
    unsigned which = peer_any(p, *n);
    int other = handle_any(p);

    if (other < 0)
        return;
    close(fds[which]);
    fds[which] = other;
    if (peer_one_in(p, 4)) {
        closep(&fds[*n - 1]);
        (*n)--;
    }
}

static void start(struct peer *p)
{
    static const char *const env[] = { "PATH=/usr/bin:/bin", "HOME=/home/user", "LANG=C.UTF-8",
                                       NULL };
    static const char *const cwds[] = { "",  "/home/user", "/nowhere", "/proc/1/root",
                                        "/", "../../.." };
    struct known *k = some(p);
    uint32_t kernel = peer_one_in(p, 40) ? (uint32_t)number(p) : 1 + peer_any(p, 3);
    uint32_t last = kernel <= LAUNCH_KERNELS_MAX ? k->generation[kernel] : 0;

    if (last != 0 && k->running[kernel] && !peer_one_in(p, 12)) { /* a restart */
        const struct launch_stop stop = { k->id, kernel, last };
        if (peer_wait(p, peer_ask(p, LAUNCH_STOP, &stop, NULL, 0)) < 0)
            return;
        k->running[kernel] = 0;
    }
    if (last == 0) /* a life before may have used up some */
        last = (uint32_t)p->life * 8 % 100000;
    struct launch_start m = {
        .sandbox = sandbox_of(p, k),
        .kernel = kernel,
        .generation = peer_one_in(p, 30) ? (uint32_t)number(p) : last + 1 + peer_any(p, 2),
        .flags = peer_any(p, 2),
        .spec_dir = peer_one_in(p, 20) ? peer_any(p, 256) : 0,
        .spec_name = peer_one_in(p, 20) ? VIEW_STR("..") : VIEW_STR("storm"),
        .cwd = view_cstr(cwds[peer_any(p, 6)]),
        .argv = some_argv(p),
        .env = act_argv(env, space + 20000, 1000),
    };
    int fds[HANDLES_START];
    unsigned n = handles_start(m.flags, fds, NULL);

    if (peer_one_in(p, 25))
        spoil(p, fds, &n);
    for (unsigned i = 0; i < n; i++) {
        if (fds[i] < 0) /* none of it can be sent */
            n = (handles_close(fds, n), 0);
    }
    if (n > 0 && peer_ask(p, LAUNCH_START_KERNEL, &m, fds, n) != 0 &&
        kernel <= LAUNCH_KERNELS_MAX && m.sandbox == k->id)
        k->generation[kernel] = m.generation;
    handles_close(fds, n);
    if (peer_one_in(p, 2))
        peer_settle(p); /* so that it runs when the next comes */
}

static void about_kernel(struct peer *p, unsigned verb)
{
    static const uint32_t signals[] = { SIGINT, SIGTERM, SIGQUIT, SIGKILL, SIGUSR1, SIGUSR2 };
    struct known *k = some(p);
    uint32_t kernel = peer_one_in(p, 40) ? (uint32_t)number(p) % 17 : 1 + peer_any(p, 3);
    uint64_t sandbox = sandbox_of(p, k);
    uint32_t generation = peer_one_in(p, 10) ? (uint32_t)number(p) : k->generation[kernel];
    struct launch_kernel_ref ref = { sandbox, kernel, generation };
    struct launch_stop stop = { sandbox, kernel, generation };
    struct launch_signal sig = { sandbox, kernel, generation,
                                 peer_one_in(p, 40) ? peer_any(p, 32) : signals[peer_any(p, 6)],
                                 peer_any(p, 2) };

    if (verb == LAUNCH_SEAL)
        peer_ask(p, verb, &ref, NULL, 0);
    else if (verb == LAUNCH_SIGNAL)
        peer_ask(p, verb, &sig, NULL, 0);
    else
        peer_ask(p, verb, &stop, NULL, 0);
}

static void stop_session(struct peer *p)
{
    struct known *k = some(p);
    struct launch_stop m = { sandbox_of(p, k), 0, (uint32_t)number(p) };
    unsigned times = peer_one_in(p, 10) ? 20 : 1; /* more than may wait for one end */

    for (unsigned i = 0; i < times; i++)
        peer_ask(p, LAUNCH_STOP, &m, NULL, 0);
}

static void note(struct peer *p)
{
    struct known *k = some(p);
    unsigned n = peer_one_in(p, 3) ? peer_any(p, MSG_FDS_MAX + 1) : peer_any(p, 3), have = 0;
    size_t size = peer_one_in(p, 8) ? LAUNCH_NOTE_MAX - peer_any(p, 2) : peer_any(p, 200);
    struct launch_note m = { sandbox_of(p, k), { bytes, size } };
    int fds[MSG_FDS_MAX];

    for (unsigned i = 0; i < n; i++) {
        fds[have] = handle_any(p);
        have += fds[have] >= 0;
    }
    peer_ask(p, LAUNCH_NOTE, &m, fds, have);
    handles_close(fds, have);
}

static void small(struct peer *p, unsigned verb)
{
    struct launch_status status = { sandbox_of(p, some(p)), peer_any(p, 2) };
    struct launch_list list = { peer_one_in(p, 2) ? some(p)->id : number(p) };
    struct launch_room room = { number(p) };
    struct launch_audit audit = { number(p) };
    struct launch_deadline deadline = { status.sandbox, peer_one_in(p, 2)
                                                            ? number(p)
                                                            : peer_clock_ms() + peer_any(p, 9000) };
    const void *const body = verb == LAUNCH_STATUS     ? (const void *)&status
                             : verb == LAUNCH_LIST     ? (const void *)&list
                             : verb == LAUNCH_DEADLINE ? (const void *)&deadline
                             : verb == LAUNCH_AUDIT    ? (const void *)&audit
                                                       : (const void *)&room;
    uint64_t before = peer_clock_ms();
    int rc = peer_wait(p, peer_ask(p, verb, body, NULL, 0));

    if (rc >= 0 && peer_clock_ms() - before > p->page->slowest_ms)
        p->page->slowest_ms = peer_clock_ms() - before;
}

/* ---- init's own socket ---- */

static void ask_init(struct peer *p)
{
    static const char *const words[] = { "sh", "-c", "sleep 1000 & sleep 1000", NULL };
    const struct known *k = some(p);
    struct init_spawn spawn = { .argv = act_argv(words, space, 1000) };
    struct init_open open_it = { VIEW_STR("f"), INIT_OPEN_READ | INIT_OPEN_WRITE | INIT_OPEN_CREATE,
                                 0600 };
    int fds[3] = { -1, -1, -1 };
    autobuf struct buf out = { 0 };
    int sent = p->fd, dead = p->dead;

    if (k->id == 0 || k->init_fd < 0)
        return;
    buf_init(&out, MSG_MAX);
    for (unsigned i = 0; i < 3; i++)
        fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
    p->fd = k->init_fd; /* the same way of sending, to another one */
    unsigned what = peer_any(p, 4);
    if (what == 0) {
        for (unsigned i = 0; i < 64; i++)
            bytes[i] = (uint8_t)peer_random(p);
        peer_send(p, bytes, peer_any(p, 65), fds, peer_any(p, 4));
    } else if (what == 1 &&
               msg_encode(init_request_spec(INIT_OPEN), 1, 0, &open_it, 0, &out, NULL) == 0) {
        peer_send(p, buf_view(&out).p, buf_len(&out), NULL, 0);
    } else if (msg_encode(init_request_spec(INIT_SPAWN), 1, 0, &spawn, 3, &out, NULL) == 0) {
        peer_send(p, buf_view(&out).p, buf_len(&out), fds, 3);
    }
    p->fd = sent;
    p->dead = dead;
    handles_close(fds, 3);
}

/* ---- mutants ---- */

/* A request of any verb with what memory holds as its fields, encoded without checks. */
static size_t raw_request(struct peer *p)
{
    unsigned verb = 1 + peer_any(p, LAUNCH_VERBS_END - 1);
    const struct msg_spec *spec = launch_request_spec(verb);
    struct msg_head head = { .version = MSG_VERSION, .verb = (uint16_t)verb };
    size_t n = sizeof head;

    head.request = p->request += 1 + peer_any(p, 3);
    for (unsigned i = 0; i < spec->count; i++) {
        const struct msg_field *f = &spec->fields[i];
        uint64_t value = i == 0 && f->kind == MSG_U64 ? sandbox_of(p, some(p)) : number(p);
        uint32_t length = (uint32_t)(peer_one_in(p, 8) ? number(p) : peer_any(p, 40));

        if (f->kind == MSG_U64 || f->kind == MSG_U32 || f->kind == MSG_I32) {
            memcpy(bytes + n, &value, f->kind == MSG_U64 ? 8 : 4);
            n += f->kind == MSG_U64 ? 8 : 4;
            continue;
        }
        memcpy(bytes + n, &length, sizeof length);
        n += sizeof length;
        length = length < 60000 ? length : peer_any(p, 200); /* what is there, whatever was said */
        memset(bytes + n, peer_one_in(p, 5) ? 0 : 'a', length);
        n += length;
    }
    head.size = (uint32_t)n;
    memcpy(bytes, &head, sizeof head);
    return n;
}

static size_t mutate(struct peer *p, size_t n)
{
    struct msg_head head;
    uint64_t value = number(p);
    size_t at = n > 0 ? peer_any(p, (unsigned)n) : 0;

    switch (peer_any(p, 9)) {
    case 0:
        bytes[at] ^= (uint8_t)(1U << peer_any(p, 8));
        break;
    case 1:
        memcpy(bytes + at, &value, 8);
        break;
    case 2:
        memcpy(bytes + at, &value, 4);
        break;
    case 3:
        return at; /* cut */
    case 4:
        return n + 1 + peer_any(p, 32);
    case 5:
        bytes[at] = 0;
        break;
    default:
        memcpy(&head, bytes, sizeof head);
        switch (peer_any(p, 6)) {
        case 0:
            head.size = (uint32_t)value;
            break;
        case 1:
            head.version = (uint16_t)value;
            break;
        case 2:
            head.verb = (uint16_t)(peer_one_in(p, 2) ? value : peer_any(p, 140));
            break;
        case 3:
            head.request = value;
            break;
        case 4:
            head.error = (int32_t)value;
            break;
        default:
            head.fds = (uint32_t)value;
            break;
        }
        memcpy(bytes, &head, sizeof head);
    }
    return n;
}

/* With its size mended, a mutant gets past the head. */
static void mend_head(size_t n, unsigned fds)
{
    struct msg_head head;

    memcpy(&head, bytes, sizeof head);
    head.size = (uint32_t)n;
    head.fds = fds;
    memcpy(bytes, &head, sizeof head);
}

void act_mutant(struct peer *p)
{
    size_t n = raw_request(p);
    unsigned times = peer_any(p, 3), have = 0, count = peer_one_in(p, 3) ? peer_any(p, 34) : 0;
    int fds[34];

    for (unsigned i = 0; i < count; i++) {
        fds[have] = handle_any(p);
        have += fds[have] >= 0;
    }
    for (unsigned i = 0; i < times; i++)
        n = mutate(p, n);
    if (n >= sizeof(struct msg_head) && !peer_one_in(p, 4))
        mend_head(n, have);
    p->page->mutated++;
    if (peer_send(p, bytes, n, fds, have) > 0)
        peer_owes(p, (struct view){ bytes, n }, have);
    handles_close(fds, have);
}

void act_fd_flood(struct peer *p)
{
    int fds[FLOOD];
    unsigned n = 30 + peer_any(p, FLOOD - 29);
    size_t size = raw_request(p);

    mend_head(size, n);
    for (unsigned i = 0; i < n; i++)
        fds[i] = 0;
    p->page->mutated++;
    if (peer_send(p, bytes, size, fds, n) > 0 && n <= MSG_FDS_MAX)
        peer_owes(p, (struct view){ bytes, size }, n);
}

void act_anything(struct peer *p)
{
    unsigned living = 0, what = peer_any(p, 100);

    for (unsigned i = 0; i < PEER_KNOWN; i++)
        living += p->known[i].id != 0;
    if (living == 0 || (what < 8 && living < 6))
        create(p);
    else if (what < 36)
        start(p);
    else if (what < 44)
        about_kernel(p, LAUNCH_STOP);
    else if (what < 50)
        stop_session(p);
    else if (what < 62)
        about_kernel(p, LAUNCH_SIGNAL);
    else if (what < 67)
        about_kernel(p, LAUNCH_SEAL);
    else if (what < 77)
        note(p);
    else if (what < 84)
        ask_init(p);
    else
        small(p, (const unsigned[]){ LAUNCH_STATUS, LAUNCH_LIST, LAUNCH_DEADLINE, LAUNCH_ROOM,
                                     LAUNCH_AUDIT }[peer_any(p, 5)]);
}
