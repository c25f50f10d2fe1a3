/* What is accepted is, written anew, accepted with the same meaning. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "hex.h"
#include "traceparent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char trace[2 * TRACE_ID_BYTES + 1], span[2 * TRACE_SPAN_BYTES + 1], text[64];
    struct traceparent t = { 0 }, again = { 0 };

    if (!traceparent_parse((struct view){ data, n }, &t))
        return 0;
    hex_encode(t.trace_id, TRACE_ID_BYTES, trace);
    hex_encode(t.span_id, TRACE_SPAN_BYTES, span);
    snprintf(text, sizeof text, "00-%s-%s-%02x", trace, span, t.flags);
    check(memcmp(data + 3, trace, strlen(trace)) == 0);
    check(traceparent_parse(view_cstr(text), &again) && memcmp(&t, &again, sizeof t) == 0);
    return 0;
}
