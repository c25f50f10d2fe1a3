/*
 * log - one line per event on stderr: `level=... event=... key=value`. Never
 * blocks: whoever reads stderr may stop, the launcher must not. Ids, not
 * payloads; untrusted text goes through LOG_QUOTED().
 */
#ifndef HC_LAUNCHER_LOG_H
#define HC_LAUNCHER_LOG_H

#include "logescape.h"

/* Lines beyond a burst of 200 and 50 a second are held back; the next line that
 * passes is preceded by one that tells how many. */
void log_info(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_warn(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_error(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
