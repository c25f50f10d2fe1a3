/*
 * outputlimit - how much one run may publish. What is beyond is dropped and counted; that
 * of its state and its first error always pass. Pure.
 */
#ifndef HC_OUTPUTLIMIT_H
#define HC_OUTPUTLIMIT_H

#include <stdint.h>

struct output_use { /* all zero at the start */
    uint64_t bytes; /* that passed and count */
    uint64_t dropped, dropped_bytes;
    int error; /* one was there */
};

enum output_verdict {
    OUTPUT_PASS,
    OUTPUT_DROP,
    OUTPUT_DROP_FIRST, /* likewise, and it is the first: the client is told */
};

/* 1: output_ask() will say drop, whatever the size. */
int output_is_over(const struct output_use *u, const char *type);

/* bytes: of all parts of the message. limit 0: none. */
enum output_verdict output_ask(struct output_use *u, uint64_t limit, const char *type,
                               uint64_t bytes);

#endif
