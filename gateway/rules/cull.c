#include "cull.h"

int cull_is_due(const struct cull_policy *p, const struct cull_case *c, uint64_t *ret_limit_ms)
{
    uint64_t limit = c->spec_ms != CULL_UNSET ? c->spec_ms : p->idle_ms;

    if (limit == 0 || c->idle_ms <= limit)
        return 0;
    if ((c->busy && !p->busy) || (c->connections > 0 && !p->connected))
        return 0;
    *ret_limit_ms = limit;
    return 1;
}
