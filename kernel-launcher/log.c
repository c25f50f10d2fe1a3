#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "err.h"

enum { BURST = 200, PER_SECOND = 50 };

static struct {
    enum logline_format format;
    enum logline_level level;
    uint64_t refilled_ms;
    unsigned spent; /* lines of the burst */
    unsigned held;
} out = { .level = LOGLINE_INFO };

void log_setup(enum logline_format format, enum logline_level level)
{
    out.format = format;
    out.level = level;
}

int log_place_get(struct log_place *ret, struct err *e)
{
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        return err_sys(e, errno, "keep the log's place");
    *ret = (struct log_place){ fd, out.format, out.level };
    return 0;
}

void log_place_set(struct log_place *place)
{
    (void)dup2(place->fd, STDERR_FILENO);
    closep(&place->fd);
    log_setup(place->format, place->level);
}

static int allowed(void)
{
    uint64_t now = clock_ms();
    uint64_t back = (now - out.refilled_ms) * PER_SECOND / 1000;

    if (back > 0) {
        out.spent = back < out.spent ? out.spent - (unsigned)back : 0;
        out.refilled_ms = now;
    }
    if (out.spent >= BURST)
        return 0;
    out.spent++;
    return 1;
}

static void begin(struct logline *l, enum logline_level level, const char *event)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    const struct logline_head head = {
        .realtime_us = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000,
        .level = level,
        .process = "launcher",
        .event = event,
    };
    logline_begin(l, out.format, &head);
}

/* A pipe is writable when PIPE_BUF bytes fit, so a line that poll allowed does
 * not block; one that it did not allow is lost and counted. */
static void end(struct logline *l)
{
    struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
    struct view line = logline_end(l);

    if (poll(&p, 1, 0) != 1 || (p.revents & POLLOUT) == 0 ||
        write(STDERR_FILENO, line.p, line.n) < 0)
        out.held++;
}

static void log_line(enum logline_level level, const char *event, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
static void log_line(enum logline_level level, const char *event, const char *fmt, va_list ap)
{
    struct logline l;

    if (level < out.level)
        return;
    if (!allowed()) {
        out.held++;
        return;
    }
    if (out.held > 0) {
        begin(&l, LOGLINE_WARN, "log_held_back");
        logline_uint(&l, "lines", out.held);
        out.held = 0;
        end(&l);
    }
    begin(&l, level, event);
    logline_fields(&l, fmt, ap);
    end(&l);
}

#define LOG_AT(level)                    \
    do {                                 \
        va_list ap;                      \
        va_start(ap, fmt);               \
        log_line(level, event, fmt, ap); \
        va_end(ap);                      \
    } while (0)

void log_info(const char *event, const char *fmt, ...)
{
    LOG_AT(LOGLINE_INFO);
}

void log_warn(const char *event, const char *fmt, ...)
{
    LOG_AT(LOGLINE_WARN);
}

void log_error(const char *event, const char *fmt, ...)
{
    LOG_AT(LOGLINE_ERROR);
}
