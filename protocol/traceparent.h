/*
 * traceparent - the header field of W3C Trace Context (levels 1 and 2) that names the
 * trace and the span a request belongs to. What it says is only carried on.
 */
#ifndef HC_TRACEPARENT_H
#define HC_TRACEPARENT_H

#include <stdint.h>

#include "buf.h"

enum { TRACE_ID_BYTES = 16, TRACE_SPAN_BYTES = 8 };
enum { TRACE_SAMPLED = 1, TRACE_RANDOM = 2 }; /* the flags that are defined */

struct traceparent {
    uint8_t trace_id[TRACE_ID_BYTES];
    uint8_t span_id[TRACE_SPAN_BYTES]; /* of the caller: "parent-id" */
    uint8_t flags;                     /* defined ones only */
};

/* The value of one field, without white space around it. 1, or 0 for one that is to
 * be ignored: the request is then served as if it had none. */
int traceparent_parse(struct view value, struct traceparent *ret);

#endif
