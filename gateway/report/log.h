/*
 * log - one line per event on stderr, as text or JSON: `key=value` in a format is
 * read by logline.h. Ids, not payloads; never a token, a key or message content.
 * Never waits for whoever reads stderr: a line that does not fit is counted.
 */
#ifndef HC_LOG_H
#define HC_LOG_H

#include "logescape.h"
#include "logline.h"

/* Until it is called: text, level info, process "gateway". process is borrowed. */
void log_setup(const char *process, enum logline_format format, enum logline_level level);
/* 1: lines of that level are written. */
int log_enabled(enum logline_level level);

void log_debug(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_info(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_warn(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_error(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* For lines that are put together field by field. */
void log_begin(struct logline *l, enum logline_level level, const char *event);
void log_end(struct logline *l);

/* A site that a peer can make repeat: true at most `burst` times per minute; the
 * next line that is let through tells how many were held back. */
struct log_limit {
    unsigned long long minute;
    unsigned count, held;
};
int log_allowed(struct log_limit *limit, unsigned burst);

#endif
