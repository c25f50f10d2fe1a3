/* How much of what clients sent may wait for kernels, in the gateway's memory. */
#include "kernel_own.h"
#include "seat.h"
#include "sessions_own.h"

static void release(void *arg)
{
    struct sessions *s = arg;

    s->held_awaited = 0;
    for (struct kernel *k = sessions_first_kernel(s); k != NULL; k = sessions_next_kernel(k))
        seats_release(k);
}

void sessions_held_init(struct sessions *s)
{
    s->held_release = (struct deferred_node){ .fn = release, .arg = s };
}

void sessions_held_end(struct sessions *s)
{
    deferred_remove(s->deferred, DEFERRED_WORK, &s->held_release);
}

/* A kernel may have as much as all together leave free, so that one which takes nothing leaves the others room. */
int kernel_may_hold(const struct kernel *k, size_t bytes)
{
    return (k->held_bytes == 0 && bytes <= KERNEL_HELD_FREE) ||
           k->held_bytes + bytes + k->all->held_bytes <= KERNELS_HELD_BYTES;
}

void kernel_held_awaited(struct kernel *k)
{
    k->all->held_awaited = 1;
}

void kernel_held_more(struct kernel *k, size_t bytes)
{
    k->held_bytes += bytes;
    k->all->held_bytes += bytes;
}

void kernel_held_less(struct kernel *k, size_t bytes)
{
    k->held_bytes -= bytes;
    k->all->held_bytes -= bytes;
    if (k->all->held_awaited)
        deferred_add(k->all->deferred, DEFERRED_WORK, &k->all->held_release);
}
