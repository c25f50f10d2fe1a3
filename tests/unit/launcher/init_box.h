/*
 * init_box - holdcell-init as pid 1 of a few namespaces, with home and /tmp of its
 * own on tmpfs, and a client for its request socket. Not the whole sandbox: the
 * host's file tree is there, read with the rights of unmapped ids.
 */
#ifndef HC_INIT_BOX_H
#define HC_INIT_BOX_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "err.h"
#include "init_start.h"
#include "initmsg.h"
#include "landlock.h"
#include "report.h"
#include "sandbox.h"

enum { BOX_HOST_ID = 0x6fff0000, BOX_DEADLINE_MS = 60 * 1000 };

struct box {
    pid_t pid;
    int fd; /* our side of the request socket */
    uint64_t next_request;
    struct buf packet; /* the last one received */
    int got_fd;        /* the descriptor that came with it, or -1 */
};

/* ---- inside, before the exec ---- */

static inline void box_step(int ok, const char *what)
{
    if (!ok) {
        dprintf(2, "box: %s: %s\n", what, strerror(errno));
        _exit(1);
    }
}

static inline _Noreturn void box_child(int go_fd, int request_fd, int ready_fd, int image_fd)
{
    struct init_start start = { .nofile = 4096,
                                .nproc = 300,
                                .fsize_bytes = 64 << 20,
                                .without = landlock_abi() > 0 ? 0 : SANDBOX_WITHOUT_LANDLOCK };
    struct init_start_args args;
    char *const env[] = { NULL };
    char c;
    int null_fd;

    box_step(read(go_fd, &c, 1) == 1, "id maps");
    box_step(syscall(SYS_setgroups, 0, NULL) == 0, "setgroups");
    box_step(setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0, "ids");
    box_step(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private");
    box_step(mount("home", "/home", "tmpfs", 0, "size=16m,nr_inodes=30000,mode=755") == 0, "home");
    box_step(mount("tmp", "/tmp", "tmpfs", 0, "size=128k,nr_inodes=40,mode=1777") == 0, "tmp");
    box_step(mount("proc", "/proc", "proc", 0, NULL) == 0, "proc");
    box_step(mkdir("/home/user", 0755) == 0 && chown("/home/user", 1000, 1000) == 0, "home");
    box_step(mount("var", "/var", "tmpfs", 0, "size=64k,mode=755") == 0, "var");
    box_step(mkdir("/var/empty", 0755) == 0, "var");
    box_step(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "pdeathsig");
    null_fd = open("/dev/null", O_RDWR);
    box_step(null_fd >= 0 && dup2(null_fd, 0) == 0 && dup2(null_fd, 1) == 1, "null");
    /* Beyond the numbers that the next lines give away. */
    request_fd = fcntl(request_fd, F_DUPFD_CLOEXEC, 20);
    ready_fd = fcntl(ready_fd, F_DUPFD_CLOEXEC, 20);
    image_fd = fcntl(image_fd, F_DUPFD_CLOEXEC, 20);
    box_step(dup2(request_fd, INIT_REQUEST_FD) >= 0 && dup2(ready_fd, INIT_READY_FD) >= 0, "fds");
    init_start_format(&start, &args);
    execveat(image_fd, "", args.argv, env, AT_EMPTY_PATH);
    box_step(0, "exec");
    _exit(1);
}

/* ---- outside ---- */

static inline int box_image(void)
{
    int from = open(HC_INIT_PATH, O_RDONLY | O_CLOEXEC);
    int fd = memfd_create("init", MFD_CLOEXEC);
    struct stat st;

    assert_true(from >= 0 && fd >= 0 && fstat(from, &st) == 0);
    for (off_t at = 0; at < st.st_size;)
        assert_true(sendfile(fd, from, &at, (size_t)(st.st_size - at)) > 0);
    close(from);
    return fd;
}

static inline void box_write_map(pid_t pid, const char *name)
{
    char path[64], map[64];
    int n = snprintf(map, sizeof map, "0 %d 1\n1000 %d 1\n", BOX_HOST_ID, BOX_HOST_ID + 1);
    int fd;

    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, map, (size_t)n), n);
    close(fd);
}

static inline struct box *box_open(void)
{
    struct box *b = xcalloc(1, sizeof *b);
    int pair[2], ready[2], go[2], image = box_image();
    struct err e = { 0 };

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    b->pid = (pid_t)syscall(SYS_clone,
                            CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
                                CLONE_NEWIPC | SIGCHLD,
                            NULL, NULL, NULL, NULL);
    assert_true(b->pid >= 0);
    if (b->pid == 0)
        box_child(go[0], pair[1], ready[1], image);
    box_write_map(b->pid, "uid_map");
    box_write_map(b->pid, "gid_map");
    assert_int_equal(write(go[1], "x", 1), 1);
    close(go[0]);
    close(go[1]);
    close(pair[1]);
    close(ready[1]);
    close(image);
    if (report_wait(ready[0], BOX_DEADLINE_MS, &e) != REPORT_OK)
        fail_msg("init did not start: %s", e.msg);
    close(ready[0]);
    b->fd = pair[0];
    b->got_fd = -1;
    buf_init(&b->packet, MSG_MAX);
    return b;
}

/* Waits for the end of init, by whatever cause; its wait status. */
static inline int box_wait(struct box *b)
{
    int status = -1;

    while (waitpid(b->pid, &status, 0) < 0 && errno == EINTR)
        ;
    b->pid = 0;
    return status;
}

static inline void box_drop_fd(struct box *b)
{
    closep(&b->got_fd);
    b->got_fd = -1;
}

static inline void box_close(struct box *b)
{
    if (b->pid > 0) {
        kill(b->pid, SIGKILL);
        (void)box_wait(b);
    }
    box_drop_fd(b);
    closep(&b->fd);
    buf_free(&b->packet);
    free(b);
}

/* Sends one request; returns its number. fds may be NULL. */
static inline uint64_t box_send(struct box *b, unsigned verb, const void *body, const int *fds)
{
    const struct msg_spec *spec = init_request_spec(verb);
    char control[CMSG_SPACE(3 * sizeof(int))] = { 0 };
    autobuf struct buf bytes;
    struct iovec io;
    struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };

    buf_init(&bytes, MSG_MAX);
    assert_int_equal(
        msg_encode(spec, ++b->next_request, 0, body, fds != NULL ? 3 : 0, &bytes, NULL), 0);
    io = (struct iovec){ (void *)(uintptr_t)buf_view(&bytes).p, buf_len(&bytes) };
    if (fds != NULL) {
        struct cmsghdr *c = (struct cmsghdr *)control;

        m.msg_control = control;
        m.msg_controllen = sizeof control;
        *c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(3 * sizeof(int)),
                               .cmsg_level = SOL_SOCKET,
                               .cmsg_type = SCM_RIGHTS };
        memcpy(CMSG_DATA(c), fds, 3 * sizeof(int));
    }
    assert_int_equal(sendmsg(b->fd, &m, MSG_NOSIGNAL), (ssize_t)buf_len(&bytes));
    return b->next_request;
}

/* The next packet; 0 at the end of the connection, else 1 and its head. */
static inline int box_receive(struct box *b, struct msg_head *ret)
{
    char control[CMSG_SPACE(sizeof(int))];
    struct pollfd p = { .fd = b->fd, .events = POLLIN };
    struct iovec io;
    struct msghdr m = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
    };
    struct cmsghdr *c;
    struct err e = { 0 };
    ssize_t n;

    box_drop_fd(b);
    buf_clear(&b->packet);
    assert_int_equal(buf_reserve(&b->packet, MSG_MAX), 0);
    io = (struct iovec){ buf_tail(&b->packet), MSG_MAX };
    assert_int_equal(poll(&p, 1, BOX_DEADLINE_MS), 1);
    n = recvmsg(b->fd, &m, MSG_CMSG_CLOEXEC);
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return 0;
    assert_true(n > 0);
    assert_int_equal(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC), 0);
    buf_commit(&b->packet, (size_t)n);
    c = CMSG_FIRSTHDR(&m);
    if (c != NULL)
        memcpy(&b->got_fd, CMSG_DATA(c), sizeof b->got_fd);
    if (msg_head_decode(buf_view(&b->packet), b->got_fd >= 0, ret, &e) < 0)
        fail_msg("bad packet: %s", e.msg);
    return 1;
}

/* Asks and waits for the answer: 0 and its body, or the negative code. Events that
 * come in between fail the test. Views live until the next packet. */
static inline int box_ask(struct box *b, unsigned verb, const void *body, const int *fds, void *ret)
{
    uint64_t number = box_send(b, verb, body, fds);
    struct msg_head head;
    union {
        struct init_error error;
        struct init_stat stat;
        struct init_listed listed;
        struct init_done done;
        struct init_aside_answer aside;
        struct init_spawned spawned;
    } any;

    assert_int_equal(box_receive(b, &head), 1);
    assert_int_equal(head.request, number);
    assert_non_null(init_answer_spec(head.verb));
    assert_int_equal(msg_decode(init_answer_spec(head.verb), &head, buf_view(&b->packet),
                                ret != NULL && head.verb == verb ? ret : &any, NULL),
                     0);
    if (head.verb == INIT_ERROR) {
        assert_int_equal(any.error.verb, verb);
        assert_true(head.error > 0);
        return -head.error;
    }
    assert_int_equal(head.verb, verb);
    return 0;
}

/* The next packet must be the event that pid ended. */
static inline struct init_exited box_exited(struct box *b)
{
    struct msg_head head;
    struct init_exited body;

    assert_int_equal(box_receive(b, &head), 1);
    assert_int_equal(head.verb, INIT_EXITED);
    assert_int_equal(
        msg_decode(init_event_spec(INIT_EXITED), &head, buf_view(&b->packet), &body, NULL), 0);
    return body;
}

static inline int box_path(struct box *b, unsigned verb, const char *path, struct init_stat *ret)
{
    struct init_path body = { view_cstr(path) };

    return box_ask(b, verb, &body, NULL, ret);
}

static inline int box_open_file(struct box *b, const char *path, unsigned flags)
{
    struct init_open body = { view_cstr(path), flags, 0644 };
    struct init_stat stat;

    return box_ask(b, INIT_OPEN, &body, NULL, &stat);
}

static inline int box_remove(struct box *b, const char *path, int recursive)
{
    struct init_remove body = { view_cstr(path), (uint32_t)recursive };

    return box_ask(b, INIT_REMOVE, &body, NULL, NULL);
}

/* Starts `sh -c script`; its output can be read from *ret_output. 0 or a negative code. */
static inline int box_spawn(struct box *b, const char *script, int *ret_output, uint32_t *ret_pid)
{
    static const char env[] = "PATH=/usr/bin:/bin\0HOME=/home/user";
    autobuf struct buf argv;
    struct init_spawn body;
    struct init_spawned spawned = { 0 };
    int out[2], r, fds[3];

    buf_init(&argv, INIT_ARGV_MAX);
    assert_int_equal(msg_strings_add(&argv, "sh") + msg_strings_add(&argv, "-c") +
                         msg_strings_add(&argv, script),
                     0);
    body =
        (struct init_spawn){ buf_view(&argv), { (const uint8_t *)env, sizeof env }, { NULL, 0 } };
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    fds[1] = fds[2] = out[1];
    r = box_ask(b, INIT_SPAWN, &body, fds, &spawned);
    close(fds[0]);
    close(out[1]);
    *ret_pid = spawned.pid;
    if (r < 0)
        close(out[0]);
    else
        *ret_output = out[0];
    return r;
}

/* Runs a script to its end and the end of its output, which is put into text. */
static inline struct init_exited box_run(struct box *b, const char *script, char *text, size_t size)
{
    struct init_exited end;
    uint32_t pid;
    size_t n = 0;
    ssize_t got;
    int fd;

    assert_int_equal(box_spawn(b, script, &fd, &pid), 0);
    while (n < size - 1 && (got = read(fd, text + n, size - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    close(fd);
    end = box_exited(b);
    assert_int_equal(end.pid, pid);
    return end;
}

#endif
