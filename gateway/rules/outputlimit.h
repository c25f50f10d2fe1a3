/*
 * outputlimit - how much one run may publish. What is beyond is dropped and counted; its
 * state, its input, and errors of OUTPUT_ERRORS bytes together always pass. Pure.
 */
#ifndef HC_OUTPUTLIMIT_H
#define HC_OUTPUTLIMIT_H

#include <stdint.h>

enum { OUTPUT_ERRORS = 1 << 20 };

struct output_use { /* all zero at the start */
    uint64_t bytes; /* that passed and count */
    uint64_t dropped, dropped_bytes;
    uint64_t error_bytes;
    int input; /* the execute_input was there */
};

enum output_verdict {
    OUTPUT_PASS,
    OUTPUT_DROP,
    OUTPUT_DROP_FIRST, /* likewise, and it is the first: the client is told */
};

/* 1: output_ask() will say drop. */
int output_is_over(const struct output_use *u, const char *type, uint64_t bytes);

/* bytes: of all parts of the message. limit 0: none. */
enum output_verdict output_ask(struct output_use *u, uint64_t limit, const char *type,
                               uint64_t bytes);

#endif
