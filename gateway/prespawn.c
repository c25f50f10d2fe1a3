#include "prespawn.h"

#include "err.h"
#include "log.h"
#include "loop.h"

enum { AT_A_TIME = 4, AGAIN_MS = 5000 };

static const struct principal owner = { .name = PRINCIPAL_DEFAULT, .profiles_all = 1 };

static void again(void *arg)
{
    struct prespawn *p = arg;

    p->timer = loop_timer_close(p->timer);
    prespawn_start(p);
}

static void wait_for_room(struct prespawn *p)
{
    p->asked--;
    if (p->timer != NULL)
        return;
    log_warn("prespawn_waits", "kernels=%u of=%u note=\"the host has no room for more\"", p->done,
             p->count);
    p->timer = loop_timer_start(p->loop, AGAIN_MS, 0, again, p);
}

static void on_created(void *arg, uint64_t number, struct kernel *k, const struct err *e)
{
    struct prespawn *p = arg;

    (void)k;
    if (e != NULL && e->code == HC_EFULL) {
        wait_for_room(p);
        return;
    }
    p->done++;
    if (e != NULL) {
        p->failed++;
        log_error("prespawn_failed", "number=%llu kernelspec=%s error=%s",
                  (unsigned long long)number, p->kernel != NULL ? p->kernel : "(default)",
                  LOG_QUOTED(e->msg));
    }
    if (p->done < p->count)
        prespawn_start(p);
    else if (p->failed > 0)
        log_error("prespawned", "kernels=%u failed=%u", p->count - p->failed, p->failed);
    else
        log_info("prespawned", "kernels=%u failed=0", p->count);
}

void prespawn_start(struct prespawn *p)
{
    const struct kernel_request r = { .spec_name = p->kernel };

    /* A request may end within the call: then on_created() has asked for the rest. */
    while (p->timer == NULL && p->asked < p->count && p->asked - p->done < AT_A_TIME) {
        p->asked++;
        sessions_create_kernel(p->sessions, &owner, &r, on_created, p, p->asked);
    }
}

void prespawn_stop(struct prespawn *p)
{
    p->timer = loop_timer_close(p->timer);
    p->count = p->asked;
}
