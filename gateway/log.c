#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2048 };

/* One write(2) per line, so that lines of several processes on one stderr do not
 * mix (POSIX: writes up to PIPE_BUF to a pipe are atomic). */
static void log_line(const char *level, const char *event, const char *fmt, va_list ap)
{
    char line[LINE_MAX_BYTES];
    int n = snprintf(line, sizeof line, "level=%s event=%s", level, event);

    if (n < 0 || (size_t)n >= sizeof line - 2)
        return;
    if (fmt != NULL && *fmt != '\0') {
        size_t room = sizeof line - (size_t)n - 2;
        line[n++] = ' ';
        int m = vsnprintf(line + n, room, fmt, ap);
        if (m > 0)
            n += (size_t)m < room ? m : (int)room - 1;
    }
    line[n++] = '\n';
    /* A log that cannot be written is nobody's reason to stop. */
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return;
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
