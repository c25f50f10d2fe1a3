#include "harden.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>

#include "caps.h"
#include "err.h"
#include "rlimits.h"
#include "walls.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

static int load(enum seccomp_filter filter, struct err *e)
{
    return seccomp_offered() ? seccomp_load(filter, e) : 0;
}

/* linux/prctl.h of Linux 6.6 */
enum { SET_MDWE = 65, MDWE_REFUSE_EXEC_GAIN = 1, MDWE_NO_INHERIT = 2 };

int harden_memory(struct err *e)
{
    if (SANITIZED || prctl(SET_MDWE, MDWE_REFUSE_EXEC_GAIN | MDWE_NO_INHERIT, 0, 0, 0) == 0)
        return 0;
    /* EINVAL: an older kernel. EPERM: who started us has it already, without the second flag. */
    return errno == EINVAL || errno == EPERM ? 0 : err_sys(e, errno, "PR_SET_MDWE");
}

int harden_daemon(enum seccomp_filter filter, struct err *e)
{
    int r = rlimits_forbid_core(e);

    if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = err_sys(e, errno, "PR_SET_NO_NEW_PRIVS");
    if (r == 0)
        r = caps_keep(caps_of_daemons(), e);
    if (r == 0 && !SANITIZED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        r = err_sys(e, errno, "PR_SET_DUMPABLE");
    if (r == 0)
        r = harden_memory(e);
    if (r == 0 && !SANITIZED && !wall_is_off(WALL_DAEMONS))
        r = load(filter, e);
    return r < 0 ? err_wrap(e, "give up power") : 0;
}

/* Not SIG_IGN, which children would inherit: a handler is gone after exec. */
static void on_failed_write(int signo)
{
    (void)signo;
}

int harden_writes(struct err *e)
{
    const struct sigaction a = { .sa_handler = on_failed_write, .sa_flags = SA_RESTART };

    if (sigaction(SIGPIPE, &a, NULL) < 0 || sigaction(SIGXFSZ, &a, NULL) < 0)
        return err_sys(e, errno, "SIGPIPE, SIGXFSZ");
    return 0;
}

int harden_gateway(const struct landlock_rule *rules, struct err *e)
{
    const int abi = landlock_abi();
    int r = abi != 0 ? landlock_enter_alone(abi, rules, e) : 0;

    return r < 0 ? r : load(SECCOMP_GATEWAY, e);
}
