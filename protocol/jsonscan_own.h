/* jsonscan_own - one pass over one text: what jsonscan and jsontoken share; nobody
 * else includes it. */
#ifndef HC_JSONSCAN_OWN_H
#define HC_JSONSCAN_OWN_H

#include "jsonscan.h"

/* The stack of open arrays and objects is a bit each. */
struct jsonscan_pass {
    const uint8_t *p, *end;
    const uint8_t *doc; /* positions in errors count from here */
    struct jsonscan_rules rules;
    struct jsonscan_notes notes;
    struct err *e;
    unsigned depth; /* open now */

    /* The wanted keys of the outermost object, and the one whose value is being read. */
    const char *const *keys;
    size_t count;
    size_t slot; /* count = none */
    struct jsonscan_value found[JSONSCAN_KEYS_MAX];

    uint64_t objects[JSONSCAN_DEPTH_MAX / 64]; /* bit per level: it is an object */
};

static inline void json_skip_space(struct jsonscan_pass *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
        s->p++;
}

/* ---- jsontoken.c: one token at s->p, stops behind it; 0 or an error ---- */
int json_fail(struct jsonscan_pass *s, const char *what); /* -HC_EPARSE with the byte */
int json_scan_string(struct jsonscan_pass *s);            /* at the opening quote */
int json_scan_number(struct jsonscan_pass *s, enum jsonscan_kind *ret_kind);
int json_scan_word(struct jsonscan_pass *s, enum jsonscan_kind *ret_kind); /* null, true, ... */

#endif
