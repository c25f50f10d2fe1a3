/* The client of the launcher against the other end of a socketpair. */
#include "launchclient.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "err.h"
#include "launchmsg.h"
#include "loop.h"

struct fixture {
    struct loop *loop;
    struct launchclient *client;
    int peer;
    struct loop_timer *late;
    unsigned answers, events, lost;
    unsigned stop_after; /* calls of any kind */
    uint64_t token;
    int error, kept_fd;
    char text[64];
    uint64_t sandbox;
};

static void too_late(void *arg)
{
    (void)arg;
    fail_msg("nothing happened in 20 s");
}

static void one_more(struct fixture *f)
{
    if (--f->stop_after == 0)
        loop_stop(f->loop);
}

static void on_event(void *arg, unsigned verb, const void *body)
{
    struct fixture *f = arg;

    assert_int_equal(verb, LAUNCH_KERNEL_EXITED);
    f->sandbox = ((const struct launch_kernel_exited *)body)->sandbox;
    f->events++;
    one_more(f);
}

static void on_lost(void *arg)
{
    struct fixture *f = arg;

    f->lost++;
    one_more(f);
}

static void on_answer(void *arg, uint64_t token, struct launch_answer *a)
{
    struct fixture *f = arg;

    f->answers++;
    f->token = token;
    f->error = a->error;
    snprintf(f->text, sizeof f->text, "%s", a->text);
    if (a->error == 0 && a->fd_count > 0)
        f->kept_fd = take_fd(&a->fds[0]);
    one_more(f);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    f->peer = pair[0];
    f->kept_fd = -1;
    f->loop = loop_new();
    f->client = launchclient_new(f->loop, pair[1]);
    launchclient_on_event(f->client, on_event, f);
    launchclient_on_lost(f->client, on_lost, f);
    f->late = loop_timer_start(f->loop, 20000, 0, too_late, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    f->client = launchclient_free(f->client);
    f->late = loop_timer_close(f->late);
    f->loop = loop_free(f->loop);
    closep(&f->peer);
    closep(&f->kept_fd);
    free(f);
    return 0;
}

static void run(struct fixture *f, unsigned calls)
{
    f->stop_after = calls;
    loop_run(f->loop);
}

/* What the launcher would read: the request's number; its descriptors are closed. */
static uint64_t take_request(struct fixture *f, unsigned *ret_fds)
{
    static uint8_t bytes[MSG_MAX];
    struct iovec iov = { bytes, sizeof bytes };
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * MSG_FDS_MAX)];
    } control;
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.room,
                        .msg_controllen = sizeof control.room };
    ssize_t n = recvmsg(f->peer, &m, 0);
    unsigned count = 0;

    assert_true(n > 0);
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h != NULL; h = CMSG_NXTHDR(&m, h)) {
        for (size_t i = 0; i < (h->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
            close(fd);
            count++;
        }
    }
    struct msg_head head;
    assert_int_equal(msg_head_decode((struct view){ bytes, (size_t)n }, count, &head, NULL), 0);
    if (ret_fds != NULL)
        *ret_fds = count;
    return head.request;
}

static void say(struct fixture *f, const struct msg_spec *spec, uint64_t request, int error,
                const void *body, const int *fds, unsigned fd_count)
{
    autobuf struct buf out = { 0 };

    buf_init(&out, MSG_MAX);
    assert_int_equal(msg_encode(spec, request, error, body, fd_count, &out, NULL), 0);
    struct iovec iov = { out.data, buf_len(&out) };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * MSG_FDS_MAX)];
    } control = { 0 };
    if (fd_count > 0) {
        m.msg_control = control.room;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(h), fds, sizeof(int) * fd_count);
    }
    assert_int_equal(sendmsg(f->peer, &m, 0), (ssize_t)buf_len(&out));
}

static int ask_create(struct fixture *f, uint64_t token)
{
    const struct launch_create body = { .profile = VIEW_STR("default") };

    return launchclient_ask(f->client, LAUNCH_CREATE, &body, NULL, 0, on_answer, f, token, NULL);
}

static void an_answer_finds_its_request_whatever_the_order(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask_create(f, 11), 0);
    assert_int_equal(ask_create(f, 22), 0);
    uint64_t first = take_request(f, NULL), second = take_request(f, NULL);
    const struct launch_created body = { .sandbox = 5 };
    int fds[] = { 0, 0 };

    say(f, launch_answer_spec(LAUNCH_CREATE), second, 0, &body, fds, 2);
    run(f, 1);
    assert_int_equal(f->token, 22);
    assert_true(fcntl(f->kept_fd, F_GETFD) & FD_CLOEXEC);
    const struct launch_error error = { .verb = LAUNCH_CREATE, .text = VIEW_STR("no room") };
    say(f, launch_answer_spec(LAUNCH_ERROR), first, ENOSPC, &error, NULL, 0);
    run(f, 1);
    assert_int_equal(f->token, 11);
    assert_int_equal(f->error, ENOSPC);
    assert_string_equal(f->text, "no room");
}

static void an_event_is_told(void **state)
{
    struct fixture *f = *state;
    const struct launch_kernel_exited body = { .sandbox = 77, .kernel = 1, .generation = 1 };

    say(f, launch_event_spec(LAUNCH_KERNEL_EXITED), 0, 0, &body, NULL, 0);
    run(f, 1);
    assert_int_equal(f->sandbox, 77);
}

static void the_end_of_the_launcher_is_told_once(void **state)
{
    struct fixture *f = *state;
    struct err e;

    assert_int_equal(ask_create(f, 1), 0);
    closep(&f->peer);
    f->peer = -1;
    run(f, 1);
    assert_int_equal(f->lost, 1);
    const struct launch_create body = { .profile = VIEW_STR("default") };
    assert_int_equal(
        launchclient_ask(f->client, LAUNCH_CREATE, &body, NULL, 0, on_answer, f, 1, &e), -HC_EGONE);
}

static void nonsense_of_the_launcher_is_its_end(void **state)
{
    struct fixture *f = *state;
    const struct launch_done body = { .sandbox = 1 };

    /* An answer that nobody asked for. */
    say(f, launch_answer_spec(LAUNCH_STOP), 999, 0, &body, NULL, 0);
    run(f, 1);
    assert_int_equal(f->lost, 1);
}

static void descriptors_that_nobody_expects_are_closed(void **state)
{
    struct fixture *f = *state;
    const struct launch_created body = { .sandbox = 5 };
    int pipe_ends[2];

    assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
    int fds[] = { pipe_ends[1], pipe_ends[1] };
    assert_int_equal(ask_create(f, 1), 0);
    say(f, launch_answer_spec(LAUNCH_CREATE), take_request(f, NULL), 0, &body, fds, 2);
    close(pipe_ends[1]);
    run(f, 1);
    closep(&f->kept_fd); /* the callee took the first, the second is closed */
    f->kept_fd = -1;
    char byte;
    assert_int_equal(read(pipe_ends[0], &byte, 1), 0);
    close(pipe_ends[0]);
}

static void a_slow_launcher_gets_every_request_with_its_descriptors_in_order(void **state)
{
    struct fixture *f = *state;
    static char note[LAUNCH_NOTE_MAX];
    int pipe_ends[2], asked = 0;

    assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
    const struct launch_note body = { .sandbox = 1, .note = { (uint8_t *)note, sizeof note } };
    while (asked < 200 && launchclient_ask(f->client, LAUNCH_NOTE, &body, pipe_ends, 2, on_answer,
                                           f, (uint64_t)asked, NULL) == 0)
        asked++;
    assert_int_equal(asked, 200); /* far more than a socket buffer holds */
    uint64_t last = 0;
    const struct launch_done done = { .sandbox = 1 };
    for (int i = 0; i < asked; i++) {
        unsigned fds;
        uint64_t request = take_request(f, &fds);
        assert_int_equal(fds, 2);
        assert_true(request > last);
        last = request;
        say(f, launch_answer_spec(LAUNCH_NOTE), request, 0, &done, NULL, 0);
        run(f, 1);
        assert_int_equal(f->token, i);
    }
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static void a_launcher_that_reads_nothing_bounds_the_queue(void **state)
{
    struct fixture *f = *state;
    int rc = 0;
    unsigned asked = 0;

    while ((rc = ask_create(f, 1)) == 0)
        assert_true(++asked < 100000);
    assert_int_equal(rc, -EAGAIN);
}

static void a_body_out_of_its_bounds_is_refused_and_costs_nothing(void **state)
{
    struct fixture *f = *state;
    const struct launch_create body = { .profile = VIEW_STR("") };
    struct err e;

    assert_int_equal(
        launchclient_ask(f->client, LAUNCH_CREATE, &body, NULL, 0, on_answer, f, 1, &e), -EINVAL);
    assert_int_equal(ask_create(f, 1), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_answer_finds_its_request_whatever_the_order),
        TEST(an_event_is_told),
        TEST(the_end_of_the_launcher_is_told_once),
        TEST(nonsense_of_the_launcher_is_its_end),
        TEST(descriptors_that_nobody_expects_are_closed),
        TEST(a_slow_launcher_gets_every_request_with_its_descriptors_in_order),
        TEST(a_launcher_that_reads_nothing_bounds_the_queue),
        TEST(a_body_out_of_its_bounds_is_refused_and_costs_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
