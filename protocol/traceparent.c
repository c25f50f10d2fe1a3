#include "traceparent.h"

#include <string.h>

enum {
    VERSION_AT = 0,
    TRACE_AT = 3,
    SPAN_AT = 36,
    FLAGS_AT = 53,
    LENGTH = 55, /* of version 00; later ones may be longer */
};

/* Lower case only (2.2.2: the others are invalid). Returns 0 for anything else. */
static int read_hex(const uint8_t *p, size_t bytes, uint8_t *out)
{
    for (size_t i = 0; i < 2 * bytes; i++) {
        uint8_t digit;

        if (p[i] >= '0' && p[i] <= '9')
            digit = (uint8_t)(p[i] - '0');
        else if (p[i] >= 'a' && p[i] <= 'f')
            digit = (uint8_t)(p[i] - 'a' + 10);
        else
            return 0;
        out[i / 2] = i % 2 == 0 ? (uint8_t)(digit << 4) : (uint8_t)(out[i / 2] | digit);
    }
    return 1;
}

static int all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] != 0)
            return 0;
    }
    return 1;
}

int traceparent_parse(struct view value, struct traceparent *ret)
{
    const uint8_t *p = value.p;
    struct traceparent t;
    uint8_t version;

    if (value.n < LENGTH || p[TRACE_AT - 1] != '-' || p[SPAN_AT - 1] != '-' ||
        p[FLAGS_AT - 1] != '-')
        return 0;
    if (!read_hex(p + VERSION_AT, 1, &version) ||
        !read_hex(p + TRACE_AT, TRACE_ID_BYTES, t.trace_id) ||
        !read_hex(p + SPAN_AT, TRACE_SPAN_BYTES, t.span_id) || !read_hex(p + FLAGS_AT, 1, &t.flags))
        return 0;
    /* A later version has these fields in these places, and what it adds comes behind a
     * dash; 255 is none (versioning of traceparent). */
    if (version == 0xff || (version == 0 && value.n != LENGTH) ||
        (value.n > LENGTH && p[LENGTH] != '-'))
        return 0;
    if (all_zero(t.trace_id, sizeof t.trace_id) || all_zero(t.span_id, sizeof t.span_id))
        return 0;
    t.flags &= TRACE_SAMPLED | TRACE_RANDOM;
    *ret = t;
    return 1;
}
