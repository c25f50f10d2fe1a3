/*
 * log - one line per event on stderr, as text or JSON: `key=value` in a format is
 * read by logline.h. Never blocks: whoever reads stderr may stop, the launcher must
 * not. Ids, not payloads.
 */
#ifndef HC_LAUNCHER_LOG_H
#define HC_LAUNCHER_LOG_H

#include "cleanup.h"
#include "logescape.h"
#include "logline.h"

struct err;

/* Until it is called: text, level info. */
void log_setup(enum logline_format format, enum logline_level level);

/* Where lines go and how they look; log_place_set() puts stderr back there and closes the fd. */
struct log_place {
    int fd; /* owned: a copy of stderr */
    enum logline_format format;
    enum logline_level level;
};
int log_place_get(struct log_place *ret, struct err *e) MUST_CHECK;
void log_place_set(struct log_place *place);

/* Lines beyond a burst of 200 and 50 a second are held back; the next line that
 * passes is preceded by one that tells how many. */
void log_info(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_warn(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_error(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
