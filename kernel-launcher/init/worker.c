#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "drop.h"
#include "err.h"
#include "files.h"
#include "jail.h"
#include "oomscore.h"
#include "proc.h"
#include "program.h"
#include "sandbox.h"
#include "tree.h"

enum { SESSION_ID = 1000 }; /* uid and gid of the session's user, inside */

/* The channel's number in the child, before and after the drop: the place of the
 * request socket, which the child has no business with. */
enum { CHANNEL_FD = INIT_REQUEST_FD };

/* What a request leads to: the body of the answer by verb, and a descriptor. */
struct outcome {
    union {
        struct init_stat stat;
        struct init_listed listed;
        struct init_aside_answer aside;
        struct init_done done;
    } body;
    int fd; /* -1: none */
    struct buf page;
    char name[INIT_PATH_MAX + 1];
};

/* Paths arrive without NUL inside and at most INIT_PATH_MAX long. */
struct path {
    char text[INIT_PATH_MAX + 1];
};

static const char *path_text(struct path *p, struct view v)
{
    memcpy(p->text, v.p, v.n);
    p->text[v.n] = '\0';
    return p->text;
}

static int list(const struct init_list *l, struct outcome *out, struct err *e)
{
    struct path path;
    int r =
        files_list(path_text(&path, l->path), l->cursor, &out->page, &out->body.listed.cursor, e);

    out->body.listed.entries = buf_view(&out->page);
    return r;
}

static int aside(const struct init_aside *a, struct outcome *out, struct err *e)
{
    struct path path;
    int r = files_aside(path_text(&path, a->path), a->mode, out->name, &out->fd, e);

    if (r == 0)
        out->body.aside.name = view_cstr(out->name);
    return r;
}

static int act(const struct request *request, struct outcome *out, struct err *e)
{
    struct path path, other;

    switch ((enum init_verb)request->head.verb) {
    case INIT_OPEN:
        return files_open(path_text(&path, request->body.open.path), request->body.open.flags,
                          request->body.open.mode, &out->body.stat, &out->fd, e);
    case INIT_STAT:
        return files_stat(path_text(&path, request->body.path.path), &out->body.stat, e);
    case INIT_LIST:
        return list(&request->body.list, out, e);
    case INIT_ASIDE:
        return aside(&request->body.aside, out, e);
    case INIT_RENAME:
        return files_rename(path_text(&path, request->body.rename.from),
                            path_text(&other, request->body.rename.to),
                            request->body.rename.replace != 0, e);
    case INIT_REMOVE:
        return tree_remove(path_text(&path, request->body.remove.path),
                           request->body.remove.recursive != 0, e);
    case INIT_MKDIR:
        (void)path_text(&path, request->body.path.path);
        return tree_make(path.text, request->body.path.path.n, e);
    case INIT_SPAWN:
        return program_exec(&request->body.spawn, e); /* returns on failure only */
    default:
        return err_set(e, ENOSYS, "verb %u", request->head.verb);
    }
}

static void answer(const struct request *request, const struct outcome *out)
{
    const struct msg_spec *spec = init_answer_spec(request->head.verb);
    autobuf struct buf bytes;

    buf_init(&bytes, MSG_MAX);
    if (msg_encode(spec, request->head.request, 0, &out->body, out->fd >= 0, &bytes, NULL) < 0 ||
        packet_send(CHANNEL_FD, buf_view(&bytes), out->fd) < 0)
        _exit(1); /* init reports the end of file */
}

static void answer_error(const struct request *request, const struct err *e)
{
    struct init_error body = { request->head.verb, view_cstr(e->msg) };
    autobuf struct buf bytes;

    buf_init(&bytes, MSG_MAX);
    if (msg_encode(init_answer_spec(INIT_ERROR), request->head.request, e->code, &body, 0, &bytes,
                   NULL) < 0 ||
        packet_send(CHANNEL_FD, buf_view(&bytes), -1) < 0)
        _exit(1);
}

/* Every process of the session's user begins here, as a copy of init. */
static int become_user(const struct request *request, const struct packet *packet,
                       const struct init_start *limits, struct err *e)
{
    const int is_spawn = request->head.verb == INIT_SPAWN;
    const int own[] = { 0, 1, 2, CHANNEL_FD };
    const struct drop_plan plan = {
        .uid = SESSION_ID,
        .gid = SESSION_ID,
        .umask = 022,
        .filter =
            limits->without & SANDBOX_WITHOUT_SECCOMP ? DROP_FILTER_NONE : DROP_FILTER_SESSION,
        .new_session = is_spawn,
        .fds = is_spawn ? packet->fds : own,
        .fd_count = is_spawn ? 3 : 4,
        .exec_status_fd = is_spawn ? CHANNEL_FD : -1,
        .nofile = limits->nofile,
        .nproc = limits->nproc,
        .fsize_bytes = limits->fsize_bytes,
        .landlock = DROP_LANDLOCK_INHERITED,
    };

    return drop_run(&plan, e);
}

static _Noreturn void child_main(const struct request *request, const struct packet *packet,
                                 const struct init_start *limits, int channel_fd)
{
    struct err e = { 0 };
    struct outcome out = { .fd = -1 };
    int r;

    if (dup3(channel_fd, CHANNEL_FD, O_CLOEXEC) < 0)
        _exit(1);
    buf_init(&out.page, INIT_PAGE_MAX);
    r = jail_leave(&e);
    if (r == 0)
        r = become_user(request, packet, limits, &e);
    if (r == 0 && chdir("/home/user") < 0)
        r = err_sys(&e, errno, "home");
    if (r == 0)
        r = act(request, &out, &e);
    if (r < 0)
        answer_error(request, &e);
    else
        answer(request, &out);
    _exit(0);
}

int worker_start(const struct request *request, const struct packet *packet,
                 const struct init_start *limits, int leaf_fd, pid_t *ret_pid, int *ret_channel_fd,
                 struct err *e)
{
    autoclose int ours = -1;
    autoclose int theirs = -1;
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, errno, "socketpair");
    ours = pair[0];
    theirs = pair[1];
    int r = oomscore_raise(e);
    if (r < 0)
        return r;
    pid = proc_clone(0, leaf_fd, NULL);
    if (pid == 0)
        child_main(request, packet, limits, theirs);
    r = oomscore_restore(e);
    if (pid < 0)
        return err_sys(e, -pid, "clone");
    check(r == 0); /* it is no lower than what we had */
    *ret_pid = pid;
    *ret_channel_fd = take_fd(&ours);
    return 0;
}
