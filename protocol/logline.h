/*
 * logline - one event as one line, as text or as a JSON object. Keys come from the
 * format string alone and values from its arguments: whatever bytes an argument
 * holds, it can add no key and no line. That is why the format itself is read
 * here, and not the text that printf would have made of it.
 *
 *     logline_begin(&l, LOGLINE_JSON, &head);
 *     logline_fields(&l, "kernel=%s generation=%u reason=\"%s\"", ap);
 *     struct view line = logline_end(&l);
 */
#ifndef HC_LOGLINE_H
#define HC_LOGLINE_H

#include <stdarg.h>
#include <stdint.h>

#include "buf.h"

enum logline_format { LOGLINE_TEXT, LOGLINE_JSON };
enum logline_level { LOGLINE_DEBUG, LOGLINE_INFO, LOGLINE_WARN, LOGLINE_ERROR };

/* PIPE_BUF: a whole line goes into a pipe at once or not at all. */
enum { LOGLINE_MAX = 4096 };

struct logline_head {
    uint64_t realtime_us;
    enum logline_level level;
    const char *process, *event; /* plain words of ours */
};

struct logline { /* on the caller's stack; fields are private */
    enum logline_format format;
    int cut; /* something did not fit */
    size_t n;
    char text[LOGLINE_MAX];
};

void logline_begin(struct logline *l, enum logline_format format, const struct logline_head *h);

/* `key=value` pairs with one blank between; a value with blanks stands in double
 * quotes. Conversions: d i u x X c s f and %%, with zero padding, width,
 * precision and size. An integer that is a value by itself is a JSON number,
 * %s is a string whatever it holds; one that is a value by itself may come from
 * logescape, whose escapes are undone before the line's own are made. Text without
 * a key becomes the field "text". */
void logline_fields(struct logline *l, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

/* Fields added one by one; key is a plain word of ours. */
void logline_string(struct logline *l, const char *key, struct view value);
void logline_uint(struct logline *l, const char *key, uint64_t value);

/* The line with its newline, at most LOGLINE_MAX bytes; borrowed from l. */
struct view logline_end(struct logline *l);

/* 1 and the value, or 0 for an unknown name. */
int logline_format_of(const char *name, enum logline_format *ret);
int logline_level_of(const char *name, enum logline_level *ret);

#endif
