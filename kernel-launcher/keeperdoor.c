#include "keeperdoor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "err.h"
#include "keepermsg.h"
#include "launcher.h"
#include "launcher_options.h"
#include "launcher_setup.h"
#include "launchlink.h"
#include "lockfile.h"
#include "log.h"
#include "policy.h"

enum {
    BACKLOG = 8,
    CANDIDATE_MS = 60000, /* it tries its settings meanwhile */
};

/* ---- the socket ---- */

static int bind_socket(int fd, int dir_fd, struct err *e)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    /* The directory's own path may be longer than such an address. */
    snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/%s", dir_fd, KEEPER_SOCKET);
    if (unlinkat(dir_fd, KEEPER_SOCKET, 0) < 0 && errno != ENOENT)
        return err_sys(e, errno, "remove an old keeper's socket");
    mode_t before = umask(077);
    int rc = bind(fd, (struct sockaddr *)&at, sizeof at);
    int code = errno;
    umask(before);
    if (rc < 0)
        return err_sys(e, code, "bind the keeper's socket");
    return listen(fd, BACKLOG) < 0 ? err_sys(e, errno, "listen on the keeper's socket") : 0;
}

int keeperdoor_open(struct launcher *l, struct err *e)
{
    int dir_fd = l->config->keeper.state_dir_fd;

    if (dir_fd < 0)
        return err_set(e, HC_ESTATE, "no state directory was given");
    autoclose int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(e, errno, "make the keeper's socket");
    int rc = bind_socket(fd, dir_fd, e);
    if (rc == 0)
        l->keeper.listen_fd = take_fd(&fd);
    return rc;
}

void keeperdoor_close(struct launcher *l)
{
    l->keeper.candidate = link_free(l->keeper.candidate);
    if (l->keeper.listen_fd < 0)
        return;
    (void)unlinkat(l->config->keeper.state_dir_fd, KEEPER_SOCKET, 0);
    closep(&l->keeper.listen_fd);
}

/* ---- who comes ---- */

static void answer_error(struct link *to, uint64_t request, int code, const char *text)
{
    const struct keeper_error body = { .text = view_cstr(text) };

    link_post(to, keeper_answer_spec(KEEPER_ERROR), request, code, &body, NULL, 0);
}

static int is_root(int fd)
{
    struct ucred who;
    socklen_t n = sizeof who;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.uid == 0;
}

void keeperdoor_accept(struct launcher *l, uint64_t now_ms)
{
    autoclose int fd = accept4(l->keeper.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0 || !is_root(fd))
        return;
    struct link *link = link_new(take_fd(&fd));
    if (l->keeper.candidate != NULL) {
        answer_error(link, 1, EBUSY, "another holdcell is taking it over");
        link_free(link);
        return;
    }
    l->keeper.candidate = link;
    l->keeper.candidate_spoke = 0;
    l->keeper.candidate_by_ms = now_ms + CANDIDATE_MS;
}

void keeperdoor_name_us(struct launcher *l)
{
    const struct keeper_config *c = &l->config->keeper;
    struct err e = { 0 };

    if (c->state_fd >= 0 && lockfile_write_slot(c->state_fd, getpid(), c->slot, &e) < 0)
        log_warn("lock_file", "text=%s", LOG_QUOTED(e.msg));
}

void keeperdoor_drop(struct launcher *l, const char *why)
{
    log_info("not_taken_over", "text=%s", LOG_QUOTED(why));
    l->keeper.candidate = link_free(l->keeper.candidate);
    keeperdoor_name_us(l); /* it has written its own there when it was about to take over */
}

/* ---- the take-over ---- */

static int hello(struct launcher *l, const struct link_packet *p, struct err *e)
{
    const struct keeper_config *c = &l->config->keeper;
    const int fds[KEEPER_OFFER_FDS] = {
        [KEEPER_STATE_FD] = c->state_fd,
        [KEEPER_SLOT_FD] = c->slot_fd,
        [KEEPER_DIR_FD] = l->config->gateway.dir_fd,
    };
    struct keeper_hello body;
    int rc = msg_decode(keeper_request_spec(KEEPER_HELLO), &p->head, p->bytes, &body, e);

    if (rc < 0)
        return rc;
    if (body.version != KEEPER_VERSION)
        return err_set(e, EPROTO, "its keeper speaks version %d of their protocol, this one %u",
                       KEEPER_VERSION, body.version);
    body.slot = c->slot;
    body.runtime = view_cstr(c->runtime);
    link_post(l->keeper.candidate, keeper_answer_spec(KEEPER_HELLO), p->head.request, 0, &body, fds,
              KEEPER_OFFER_FDS);
    return 0;
}

static int same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* What the sandboxes that live have is not changed any more. */
static int check_options(const struct keeper_config *c, const struct launcher_options *o,
                         struct err *e)
{
    if (o->slot != c->slot)
        return err_set(e, EPROTO, "slot %u is not %u", (unsigned)o->slot, c->slot);
    if (!same(o->runtime, c->runtime))
        return err_set(e, EINVAL, "option --runtime: the kept kernels run on '%.120s'", c->runtime);
    if (!same(o->cgroup_parent, c->cgroup_parent))
        return err_set(e, EINVAL, "option --cgroup-parent: that of the kept kernels is %.120s",
                       c->cgroup_parent != NULL ? c->cgroup_parent : "none");
    hostwall_set refused = hostwall_refused(&o->policy, c->missing);
    if (refused != 0) {
        char names[120];

        hostwall_set_print(refused, names, sizeof names);
        return err_set(e, EINVAL,
                       "option --accept-missing: the kept kernels do without %s, which level '%s' "
                       "demands",
                       names, isolation_name(o->policy.level));
    }
    return 0;
}

/* Takes the packet's descriptors. */
static void take_descriptors(struct link_packet *p, struct gateway_config *g)
{
    g->listen_fd = take_fd(&p->fds[KEEPER_LISTEN_FD]);
    g->settings_fd = take_fd(&p->fds[KEEPER_SETTINGS_FD]);
    g->ready_fd = take_fd(&p->fds[KEEPER_READY_FD]);
    g->more_listen_count = p->head.fds - KEEPER_MORE_FD;
    for (unsigned i = 0; i < LISTEN_MORE_MAX; i++)
        g->more_listen_fds[i] =
            i < g->more_listen_count ? take_fd(&p->fds[KEEPER_MORE_FD + i]) : -1;
}

/* Nothing can fail here. */
static void take_over(struct launcher *l, struct link_packet *p, struct launcher_config *c,
                      struct profiles *profiles)
{
    const int dir_fd = l->config->gateway.dir_fd;
    const hostwall_set missing = l->config->gateway.missing;

    l->keeper.share_before = l->config->share;
    take_descriptors(p, &c->gateway);
    c->gateway.dir_fd = dir_fd;
    c->gateway.missing = missing;
    *l->config = *c;
    free(l->profiles);
    l->profiles = profiles;
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    launcher_grow(l, c->sessions_max);
    l->gateway.due_ms = 0;
    l->gateway.deaths = 0;
    l->gateway.spoke = 0;
    l->gateway.inherited = 1;
    l->state = LAUNCHER_SERVING;
    l->keeper.supervisor = link_free(l->keeper.supervisor);
    l->keeper.supervisor = take_ptr(l->keeper.candidate);
    keeperdoor_close(l);
    log_info("taken_over", "sessions=%u", l->sessions.count);
}

static int read_options(struct view strings, char **ret_text, char ***ret_argv,
                        struct launcher_options *o, struct err *e)
{
    int count = msg_strings_count(strings, KEEPER_STRINGS_MAX, e);

    if (count < 0)
        return count;
    char *text = xcalloc(1, strings.n + 1);
    char **argv = xcalloc((size_t)count + 1, sizeof *argv);
    memcpy(text, strings.p, strings.n);
    msg_strings_split((struct view){ (const uint8_t *)text, strings.n }, argv, (unsigned)count);
    *ret_text = text;
    *ret_argv = argv;
    int rc = launcher_options_read(count, argv, o, e);
    return rc < 0 ? (err_wrap(e, "the keeper, a holdcell that was started earlier"), rc) : 0;
}

/* What can fail of it once the options are known. What is said meanwhile is news of the new server, for its log. */
static int try_host(struct launcher *l, const struct link_packet *p,
                    const struct launcher_options *o, struct launcher_config *c,
                    struct profiles **ret_profiles, struct err *e)
{
    struct log_place before;
    int rc = log_place_get(&before, e);

    if (rc < 0)
        return rc;
    (void)dup2(p->fds[KEEPER_STDERR_FD], STDERR_FILENO);
    log_setup(o->format, o->level);
    rc = launcher_setup_host(c, l->host, e);
    if (rc == 0)
        rc = policy_read(view_cstr(c->profiles != NULL ? c->profiles : ""), c, l->host,
                         c->keeper.missing, ret_profiles, e);
    if (rc < 0) {
        keeper_share_again(l, &l->config->share);
        log_place_set(&before);
    } else {
        closep(&before.fd);
    }
    return rc;
}

static int attach(struct launcher *l, struct link_packet *p, struct err *e)
{
    struct keeper_attach body;
    struct launcher_options o;
    struct launcher_config c;
    struct profiles *profiles = NULL;
    autofree char *text = NULL;
    autofree char **argv = NULL;
    int rc = msg_decode(keeper_request_spec(KEEPER_ATTACH), &p->head, p->bytes, &body, e);

    if (rc == 0)
        rc = read_options(body.argv, &text, &argv, &o, e);
    if (rc == 0)
        rc = check_options(&l->config->keeper, &o, e);
    if (rc == 0)
        rc = launcher_setup(&o, &c, e);
    if (rc < 0)
        return rc;
    c.keeper = l->config->keeper; /* its strings are those of the first start, which stay */
    rc = try_host(l, p, &o, &c, &profiles, e);
    if (rc < 0) {
        closep(&c.gateway.exe_fd);
        return rc;
    }
    take_over(l, p, &c, profiles);
    /* Now that nothing points into those of a server in between. */
    free(l->keeper.text);
    free(l->keeper.argv);
    l->keeper.text = take_ptr(text);
    l->keeper.argv = take_ptr(argv);
    const struct keeper_count done = { .sessions = l->sessions.count };
    link_post(l->keeper.supervisor, keeper_answer_spec(KEEPER_ATTACH), p->head.request, 0, &done,
              NULL, 0);
    return 0;
}

static void serve_packet(struct launcher *l, struct link_packet *p)
{
    struct err e = { 0 };
    int rc = -HC_EPARSE;

    l->keeper.candidate_spoke = 1;
    if (p->head.verb == KEEPER_HELLO)
        rc = hello(l, p, &e);
    else if (p->head.verb == KEEPER_ATTACH)
        rc = attach(l, p, &e);
    else
        err_set(&e, HC_EPARSE, "verb %u", p->head.verb);
    if (rc == 0)
        return;
    answer_error(l->keeper.candidate, p->head.request, -rc, e.msg);
    keeperdoor_drop(l, e.msg);
}

void keeperdoor_serve(struct launcher *l, uint64_t now_ms)
{
    struct link_packet p;

    (void)now_ms;
    /* Until it is gone, or is the supervisor. */
    while (l->keeper.candidate != NULL && link_receive(l->keeper.candidate, &p) > 0) {
        serve_packet(l, &p);
        link_packet_close(&p);
    }
    if (l->keeper.candidate == NULL || link_broken(l->keeper.candidate) == NULL)
        return;
    if (link_closed(l->keeper.candidate) && !l->keeper.candidate_spoke)
        l->keeper.candidate = link_free(l->keeper.candidate); /* it has written nothing anywhere */
    else
        keeperdoor_drop(l, link_broken(l->keeper.candidate));
}
