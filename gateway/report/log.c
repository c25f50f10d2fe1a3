#include "log.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "err.h"
#include "metrics.h"
#include "origin.h"

static struct {
    const char *process; /* borrowed */
    enum logline_format format;
    enum logline_level level;
    unsigned lost; /* lines that stderr did not take */
} out = { .process = "gateway", .level = LOGLINE_INFO };

void log_setup(const char *process, enum logline_format format, enum logline_level level)
{
    out.process = process;
    out.format = format;
    out.level = level;
}

int log_enabled(enum logline_level level)
{
    return level >= out.level;
}

static uint64_t realtime_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* One write per line, so that those of several processes do not mix. A pipe is
 * writable when PIPE_BUF bytes fit: a line that poll allowed does not block. */
static int write_line(struct view line)
{
    struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

    return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) != 0 &&
           write(STDERR_FILENO, line.p, line.n) >= 0;
}

void log_begin(struct logline *l, enum logline_level level, const char *event)
{
    const struct logline_head head = {
        .realtime_us = realtime_us(), .level = level, .process = out.process, .event = event
    };

    logline_begin(l, out.format, &head);
}

static void tell_lost(void)
{
    struct logline l;

    log_begin(&l, LOGLINE_WARN, "log_lost");
    logline_uint(&l, "lines", out.lost);
    if (write_line(logline_end(&l)))
        out.lost = 0;
}

void log_end(struct logline *l)
{
    if (out.lost > 0)
        tell_lost();
    if (write_line(logline_end(l)))
        return;
    out.lost++;
    metrics_count(METRIC_LOG_LOST, 0);
}

static void log_line(enum logline_level level, const char *event, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
static void log_line(enum logline_level level, const char *event, const char *fmt, va_list ap)
{
    struct logline l;

    if (!log_enabled(level))
        return;
    log_begin(&l, level, event);
    logline_fields(&l, fmt, ap);
    origin_fields(origin_now(), &l);
    log_end(&l);
}

#define LOG_AT(level)                    \
    do {                                 \
        va_list ap;                      \
        va_start(ap, fmt);               \
        log_line(level, event, fmt, ap); \
        va_end(ap);                      \
    } while (0)

void log_debug(const char *event, const char *fmt, ...)
{
    LOG_AT(LOGLINE_DEBUG);
}

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

int log_allowed(struct log_limit *limit, unsigned burst)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    unsigned long long minute = (unsigned long long)now.tv_sec / 60 + 1;
    if (minute != limit->minute) {
        if (limit->held > 0)
            log_info("log_held_back", "count=%u", limit->held);
        *limit = (struct log_limit){ .minute = minute };
    }
    if (limit->count >= burst) {
        limit->held++;
        return 0;
    }
    limit->count++;
    return 1;
}
