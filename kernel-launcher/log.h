/*
 * log - one line per event on stderr, as text or JSON: `key=value` in a format is
 * read by logline.h. Never blocks: whoever reads stderr may stop, the launcher must
 * not. Ids, not payloads.
 */
#ifndef HC_LAUNCHER_LOG_H
#define HC_LAUNCHER_LOG_H

#include "logescape.h"
#include "logline.h"

/* Until it is called: text, level info. */
void log_setup(enum logline_format format, enum logline_level level);

/* Lines beyond a burst of 200 and 50 a second are held back; the next line that
 * passes is preceded by one that tells how many. */
void log_info(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_warn(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_error(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
