/*
 * page - what the conductor (tests/storm/storm.py) and the hostile gateways that the
 * launcher starts one after another share: the memfd that a real server fills with
 * settings. The launcher hands it on without a look.
 */
#ifndef HC_HOSTILE_PAGE_H
#define HC_HOSTILE_PAGE_H

#include <stdint.h>

enum { PAGE_VERBS = 16, PAGE_ENDINGS = 16, PAGE_TEXT = 512 };

/* storm.py knows the order. */
struct page {
    uint64_t seed;
    uint64_t fuzz_until; /* lives below this number are hostile, the others sane */
    uint64_t lives;
    uint64_t sane; /* sane lives that found all as it should be */
    uint64_t messages, mutated, answers, errors, events;
    uint64_t created, started, ended; /* sandboxes, kernels, kernels that ended */
    uint64_t slowest_sane_ms, slowest_ms;
    uint64_t verbs[PAGE_VERBS];     /* sent */
    uint64_t endings[PAGE_ENDINGS]; /* of lives, by enum ending; 0: killed before */
    uint64_t failed;
    char failure[PAGE_TEXT];
};

#endif
