/*
 * logvalue - one value of a line of the log, as the format string and its arguments
 * make it (logline.h says which conversions there are). Nothing is escaped here.
 */
#ifndef HC_LOGVALUE_H
#define HC_LOGVALUE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

enum { LOGVALUE_MAX = 1024 }; /* bytes of one value; longer ones are cut */

struct logvalue {
    size_t n;
    unsigned conversions;
    int literal; /* has text of the format string in it */
    int number;  /* its one conversion is a number */
    int quoted, cut;
    uint8_t text[LOGVALUE_MAX];
};

/* The arguments lie in a struct: a va_list that was handed down by value is spent. */
struct logvalue_args {
    va_list list;
};

/* From behind the '=' to behind the value, or to the end of the format. v is empty
 * before. Returns NULL when the rest cannot be read. */
const char *logvalue_read(const char *p, struct logvalue *v, struct logvalue_args *a,
                          int to_the_end);

void logvalue_add(struct logvalue *v, const char *p, size_t n);
void logvalue_add_uint(struct logvalue *v, uint64_t n);

#endif
