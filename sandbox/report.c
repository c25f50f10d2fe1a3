#include "report.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "err.h"

int report_send(int fd, const struct err *what)
{
    struct err copy;
    ssize_t n;

    memset(&copy, 0, sizeof copy); /* no byte of the launcher's stack behind the text */
    copy.code = what->code;
    memcpy(copy.msg, what->msg, strnlen(what->msg, sizeof copy.msg - 1));
    do
        n = write(fd, &copy, sizeof copy);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return n == (ssize_t)sizeof copy ? 0 : -EIO;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until fd can be read; 0 or a negative errno. */
static int wait_readable(int fd, int64_t end, struct err *e)
{
    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int64_t left = end - now_ms();
        int n = poll(&p, 1, left > 0 ? (int)left : 0);

        if (n > 0)
            return 0;
        if (n == 0)
            return err_set(e, ETIMEDOUT, "no report in time");
        if (errno != EINTR)
            return err_sys(e, errno, "poll for a report");
    }
}

int report_wait(int fd, int timeout_ms, struct err *e)
{
    struct err got;
    ssize_t n;
    int r = wait_readable(fd, now_ms() + timeout_ms, e);

    if (r < 0)
        return r;
    do
        n = read(fd, &got, sizeof got);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_sys(e, errno, "read a report");
    if (n == 0)
        return REPORT_END;
    if (n != (ssize_t)sizeof got || got.code < 0)
        return err_set(e, EPROTO, "a report of %zd bytes makes no sense", n);
    if (got.code == 0)
        return REPORT_OK;
    got.msg[sizeof got.msg - 1] = '\0';
    return err_set(e, got.code, "%s", got.msg);
}
