#include "restarts.h"

void restarts_started(struct restarts *r, uint64_t now_ms)
{
    r->started_ms = now_ms;
}

int restarts_died(struct restarts *r, uint64_t now_ms, uint64_t *ret_delay_ms)
{
    if (now_ms - r->started_ms >= RESTARTS_STABLE_MS)
        r->deaths = 0;
    r->deaths++;
    if (r->deaths > RESTARTS_MAX)
        return 0;
    /* At once the first time, then 0.5, 1, 2 and 4 s. */
    *ret_delay_ms = r->deaths == 1 ? 0 : 250u << (r->deaths - 1);
    return 1;
}
