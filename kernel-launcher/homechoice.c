#include "homechoice.h"

#include <inttypes.h>
#include <string.h>

#include "admission.h"
#include "err.h"
#include "limit.h"

int home_mode_of(const char *name, enum home_mode *ret)
{
    static const char *const names[] = { "auto", "disk", "tmpfs" };

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            *ret = (enum home_mode)i;
            return 1;
        }
    }
    return 0;
}

/* The three file systems of memory together stay below half of it: ENOSPC, not the end of a
 * kernel. Home's share is a quarter. */
static uint64_t share_of(const struct launch_limits *l, uint64_t rest)
{
    const uint64_t quarter = l->memory_bytes / 4;
    const uint64_t share = quarter < rest ? quarter : rest;

    return share > (1 << 20) ? share : 1 << 20;
}

/* What /tmp and /dev/shm leave of the memory that files may be. The gateway has looked after those two. */
static uint64_t fit_others(struct launch_limits *l)
{
    const uint64_t files = limit_of_files_in_memory(l);

    if (l->tmp_bytes > files || l->shm_bytes > files - l->tmp_bytes)
        limit_shrink_files_in_memory(l);
    const uint64_t others = l->tmp_bytes + l->shm_bytes;
    return others < files ? files - others : 0;
}

static int fit_home(uint64_t rest, int asked, struct launch_limits *l, struct err *e)
{
    if (l->home_bytes <= rest)
        return 0;
    if (asked)
        return err_set(e, HC_ELIMIT,
                       "limits.disk_mb: the home is in the session's memory, and beside /tmp and "
                       "/dev/shm %" PRIu64 " of its %" PRIu64 " MiB can be files",
                       rest >> 20, l->memory_bytes >> 20);
    l->home_bytes = rest > (1 << 20) ? rest : 1 << 20;
    return 0;
}

int home_choose(const struct home_policy *p, const struct admission *a,
                const struct launch_limits *defaults, int asked, struct launch_limits *limits,
                enum sandbox_home *ret, struct err *e)
{
    const uint64_t rest = fit_others(limits), share = share_of(limits, rest);
    /* In memory by the operator's word, and as large as he wants it, where the session has the
     * memory that he thought of. */
    int meant = asked || (p->sized && limits->memory_bytes >= defaults->memory_bytes);

    if (p->mode == HOME_DISK ||
        (p->mode == HOME_AUTO && admission_disk_fits(a, sandbox_home_size(limits)))) {
        *ret = SANDBOX_HOME_DISK; /* of HOME_DISK the admission says whether it fits */
        return 0;
    }
    if (limits->home_bytes > share && p->mode == HOME_AUTO && (asked || p->sized))
        return err_set(e, HC_EFULL, "the host has no disk left for a home of that size");
    if (limits->home_bytes > share && !meant)
        limits->home_bytes = share;
    int rc = fit_home(rest, asked, limits, e);
    if (rc == 0)
        *ret = SANDBOX_HOME_MEMORY;
    return rc;
}
