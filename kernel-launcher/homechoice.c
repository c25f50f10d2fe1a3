#include "homechoice.h"

#include <string.h>

#include "admission.h"
#include "err.h"

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
static uint64_t share_of(const struct launch_limits *l)
{
    uint64_t quarter = l->memory_bytes / 4;

    return quarter > (1 << 20) ? quarter : 1 << 20;
}

int home_choose(const struct home_policy *p, const struct admission *a,
                const struct launch_limits *defaults, int asked, struct launch_limits *limits,
                enum sandbox_home *ret, struct err *e)
{
    const uint64_t share = share_of(limits);
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
    *ret = SANDBOX_HOME_MEMORY;
    return 0;
}
