/*
 * log - one line per event on stderr, `level=... event=... key=value`. Ids, not
 * payloads; never a token, a key or message content; untrusted text goes
 * through log_escape() or LOG_QUOTED().
 */
#ifndef HC_LOG_H
#define HC_LOG_H

#include "logescape.h"

void log_info(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_warn(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_error(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A site that a peer can make repeat: true at most `burst` times per minute; the
 * next line that is let through tells how many were held back. */
struct log_limit {
    unsigned long long minute;
    unsigned count, held;
};
int log_allowed(struct log_limit *limit, unsigned burst);

#endif
