#include "zroom.h"

int zroom_fits(const struct zroom *r, const void *who, uint64_t number, size_t cost)
{
    if (r->over == who && r->over_number == number)
        return 1;
    return r->held + cost <= r->max || r->over == NULL;
}

static size_t take_share(struct zroom *r, size_t *share, size_t cost)
{
    const size_t taken = cost < *share ? cost : *share;

    *share -= taken;
    r->held -= taken;
    return taken;
}

void zroom_hold(struct zroom *r, const void *who, size_t *share, uint64_t number, size_t begun,
                size_t cost)
{
    int beyond = r->over == who && r->over_number == number;

    if (!beyond && r->over == NULL && r->held + cost > r->max) {
        r->over = who;
        r->over_number = number;
        r->beyond = take_share(r, share, begun);
        beyond = 1;
    }
    *(beyond ? &r->beyond : &r->held) += cost;
    *share += beyond ? 0 : cost;
}

int zroom_let_go(struct zroom *r, const void *who, size_t *share, uint64_t number, size_t cost)
{
    const int over = r->over == who && number >= r->over_number;
    const size_t before = r->held;

    if (!over || number > r->over_number)
        (void)take_share(r, share, cost);
    if (over) {
        r->over = NULL;
        r->beyond = 0;
    }
    return over || (before > r->max / 2 && r->held <= r->max / 2);
}

int zroom_leave(struct zroom *r, const void *who, size_t *share)
{
    const int over = r->over == who;

    if (over) {
        r->over = NULL;
        r->beyond = 0;
    }
    return take_share(r, share, *share) > 0 || over;
}
