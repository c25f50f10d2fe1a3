#include "memoryfiles.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "err.h"
#include "limit.h"
#include "serve_options.h"

static int is_given(const struct serve_options *o, enum limit_id id)
{
    return o->limits[id] != SERVE_UNSET;
}

static void take(struct serve_options *o, enum limit_id id, const struct launch_limits *l)
{
    if (!is_given(o, id))
        o->limits[id] = limit_get(l, &limit_rows[id]) / limit_rows[id].unit;
}

/* Of a home that nobody gave a size the launcher chooses one that fits. */
static uint64_t home_of(const struct serve_options *o, const struct launch_limits *l)
{
    int in_memory = o->home != NULL && strcmp(o->home, "tmpfs") == 0;

    return in_memory && is_given(o, LIMIT_DISK) ? l->home_bytes : 0;
}

static int too_much(const struct serve_options *o, const struct launch_limits *l, uint64_t sum,
                    struct err *e)
{
    const enum limit_id id = home_of(o, l) != 0       ? LIMIT_DISK
                             : is_given(o, LIMIT_TMP) ? LIMIT_TMP
                                                      : LIMIT_SHM;

    return err_set(e, EINVAL,
                   "option --%s: file systems in a session's memory would be %" PRIu64
                   " MiB together, and %" PRIu64 " is the most of %" PRIu64 " (--memory-mb)",
                   limit_rows[id].option, sum >> 20, limit_of_files_in_memory(l) >> 20,
                   l->memory_bytes >> 20);
}

int memoryfiles_fit(struct serve_options *o, struct err *e)
{
    struct launch_limits l = LAUNCH_LIMITS_DEFAULT;

    for (unsigned i = 0; i < LIMITS; i++)
        if (is_given(o, (enum limit_id)i))
            limit_set(&l, &limit_rows[i], o->limits[i] * limit_rows[i].unit);
    const uint64_t files = limit_of_files_in_memory(&l);
    struct launch_limits fitted = l;
    limit_shrink_files_in_memory(&fitted);

    if (home_of(o, &l) + l.tmp_bytes + l.shm_bytes <= files)
        return 0;
    if (!is_given(o, LIMIT_TMP))
        l.tmp_bytes = fitted.tmp_bytes;
    if (!is_given(o, LIMIT_SHM))
        l.shm_bytes = fitted.shm_bytes;
    const uint64_t sum = home_of(o, &l) + l.tmp_bytes + l.shm_bytes;
    if (sum > files)
        return too_much(o, &l, sum, e);
    take(o, LIMIT_TMP, &l);
    take(o, LIMIT_SHM, &l);
    return 0;
}
