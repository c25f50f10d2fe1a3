/* Descriptors that a kernel sends over its sockets: refused where the kernel of the host can. */
#include "rights.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

#include "cleanup.h"

enum { PASSRIGHTS = 83, GREETING = 10 };

static int kernel_can(void)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    int r = setsockopt(pair[0], SOL_SOCKET, PASSRIGHTS, &(int){ 0 }, sizeof(int));
    close(pair[0]);
    close(pair[1]);
    return r == 0;
}

/* One byte, and with it a descriptor. The byte is the first of a greeting (ZMTP 3.1, section 3.2): the library would hang up
 * on others. Returns 0 or an errno. */
static int send_descriptor(int fd)
{
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = { .room = { 0 } };
    struct iovec iov = { (uint8_t[]){ 0xff }, 1 };
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    int passed = 0;

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof passed);
    memcpy(CMSG_DATA(c), &passed, sizeof passed);
    return sendmsg(fd, &m, MSG_NOSIGNAL) == 1 ? 0 : errno;
}

static int listen_at(struct sockaddr_un *name)
{
    static unsigned number;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *name = (struct sockaddr_un){ .sun_family = AF_UNIX };
    snprintf(name->sun_path, sizeof name->sun_path, "/tmp/rights-%d-%u", (int)getpid(), ++number);
    assert_true(fd >= 0);
    unlink(name->sun_path); /* of one that was killed */
    assert_int_equal(bind(fd, (struct sockaddr *)name, sizeof *name), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

/* The first byte of a connection that the library made; a cell may be as quick. */
static int first_send(void *ctx)
{
    struct sockaddr_un name;
    char endpoint[sizeof name.sun_path + 8], byte;
    int listening = listen_at(&name);
    void *dealer = zmq_socket(ctx, ZMQ_DEALER);

    snprintf(endpoint, sizeof endpoint, "ipc://%s", name.sun_path);
    assert_int_equal(zmq_setsockopt(dealer, ZMQ_LINGER, &(int){ 0 }, sizeof(int)), 0);
    assert_int_equal(zmq_connect(dealer, endpoint), 0);
    autoclose int fd = accept(listening, NULL, NULL);
    assert_true(fd >= 0);
    int code = send_descriptor(fd);
    /* Bytes alone come and go as ever: the library's greeting is there. */
    for (int i = 0; i < GREETING; i++)
        assert_int_equal(recv(fd, &byte, 1, 0), 1);
    assert_int_equal(send(fd, &byte, 1, MSG_NOSIGNAL), 1);
    zmq_close(dealer);
    close(listening);
    unlink(name.sun_path);
    return code;
}

static void a_socket_of_the_messaging_library_takes_no_descriptors(void **state)
{
    (void)state;
    void *ctx = zmq_ctx_new();

    assert_int_equal(first_send(ctx), 0); /* else the rest would prove nothing */
    rights_forbid();
    if (kernel_can())
        assert_int_equal(first_send(ctx), EPERM);
    else
        assert_int_equal(first_send(ctx), 0);
    zmq_ctx_term(ctx);
}

static void pairs_and_other_families_are_as_they_were(void **state)
{
    (void)state;
    int pair[2];
    autoclose int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    rights_forbid();
    assert_true(tcp >= 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0); /* that to the launcher */
    assert_int_equal(send_descriptor(pair[0]), 0);
    assert_int_equal(send_descriptor(pair[1]), 0);
    close(pair[0]);
    close(pair[1]);
    errno = 0;
    assert_int_equal(socket(200, SOCK_STREAM, 0), -1);
    assert_int_equal(errno, EAFNOSUPPORT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_socket_of_the_messaging_library_takes_no_descriptors),
        cmocka_unit_test(pairs_and_other_families_are_as_they_were),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
