/* clock - CLOCK_MONOTONIC in milliseconds: every deadline of the launcher. */
#ifndef HC_LAUNCHER_CLOCK_H
#define HC_LAUNCHER_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

#endif
