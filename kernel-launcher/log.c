#include "log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "clock.h"

enum { LINE_BYTES = 1024, BURST = 200, PER_SECOND = 50 };

static struct {
    uint64_t refilled_ms;
    unsigned spent; /* lines of the burst */
    unsigned held;
} bucket;

static int allowed(void)
{
    uint64_t now = clock_ms();
    uint64_t back = (now - bucket.refilled_ms) * PER_SECOND / 1000;

    if (back > 0) {
        bucket.spent = back < bucket.spent ? bucket.spent - (unsigned)back : 0;
        bucket.refilled_ms = now;
    }
    if (bucket.spent >= BURST)
        return 0;
    bucket.spent++;
    return 1;
}

/* A pipe is writable when PIPE_BUF bytes fit, so a line that poll allowed does
 * not block; one that it did not allow is lost and counted. */
static void write_line(const char *line, size_t n)
{
    struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

    if (poll(&p, 1, 0) != 1 || (p.revents & POLLOUT) == 0 || write(STDERR_FILENO, line, n) < 0)
        bucket.held++;
}

static size_t append(char *line, size_t n, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
static size_t append(char *line, size_t n, const char *fmt, va_list ap)
{
    size_t room = LINE_BYTES - n - 1; /* the newline */
    int m = vsnprintf(line + n, room, fmt, ap);

    if (m < 0)
        return n;
    return n + ((size_t)m < room ? (size_t)m : room - 1);
}

static size_t appendf(char *line, size_t n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static size_t appendf(char *line, size_t n, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    n = append(line, n, fmt, ap);
    va_end(ap);
    return n;
}

static void log_line(const char *level, const char *event, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
static void log_line(const char *level, const char *event, const char *fmt, va_list ap)
{
    char line[LINE_BYTES];

    if (!allowed()) {
        bucket.held++;
        return;
    }
    if (bucket.held > 0) {
        size_t n = appendf(line, 0, "level=warn event=log_held_back lines=%u", bucket.held);

        bucket.held = 0;
        line[n++] = '\n';
        write_line(line, n);
    }
    size_t n = appendf(line, 0, "level=%s event=%s", level, event);
    if (fmt[0] != '\0') {
        n = appendf(line, n, " ");
        n = append(line, n, fmt, ap);
    }
    line[n++] = '\n';
    write_line(line, n);
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
    LOG_AT("info");
}

void log_warn(const char *event, const char *fmt, ...)
{
    LOG_AT("warn");
}

void log_error(const char *event, const char *fmt, ...)
{
    LOG_AT("error");
}
