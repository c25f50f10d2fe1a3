/* Whatever an argument holds, a line stays one line with the keys of its format.
 * First byte: the format; the rest: the argument. */
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "err.h"
#include "logline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct logline line;

static struct view write_line(enum logline_format format, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static struct view write_line(enum logline_format format, const char *fmt, ...)
{
    const struct logline_head head = { 1, LOGLINE_INFO, "gateway", "fuzz" };
    va_list ap;

    logline_begin(&line, format, &head);
    va_start(ap, fmt);
    logline_fields(&line, fmt, ap);
    va_end(ap);
    return logline_end(&line);
}

static struct view with(enum logline_format format, unsigned which, const char *s, size_t n)
{
    switch (which % 4) {
    case 0:
        return write_line(format, "kernel=%s count=%u", s, 7u);
    case 1:
        return write_line(format, "kernel=\"%s\" count=%u", s, 7u);
    case 2:
        return write_line(format, "kernel=x-%.*s count=%u", (int)n, s, 7u);
    default:
        return write_line(format, "kernel=\"the %s kernel\" count=%u", s, 7u);
    }
}

static void check_json(struct view v)
{
    json_t *o = json_loadb((const char *)v.p, v.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

    check(o != NULL && json_object_size(o) == 6);
    check(json_integer_value(json_object_get(o, "count")) == 7);
    check(strcmp(json_string_value(json_object_get(o, "level")), "info") == 0);
    check(json_is_string(json_object_get(o, "kernel")));
    json_decref(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    char *s = xcalloc(1, n);

    memcpy(s, data + 1, n - 1);
    for (int format = LOGLINE_TEXT; format <= LOGLINE_JSON; format++) {
        struct view v = with(format, data[0], s, n - 1);

        check(v.n > 0 && v.n <= LOGLINE_MAX && v.p[v.n - 1] == '\n');
        for (size_t i = 0; i < v.n - 1; i++)
            check(v.p[i] >= 0x20 && v.p[i] < 0x7f);
        if (format == LOGLINE_JSON && strlen(s) <= 400)
            check_json(v);
    }
    free(s);
    return 0;
}
