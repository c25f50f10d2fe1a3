/* What a process may do: the steps of the drop (drop.h), each followed by what it must refuse. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "caps.h"
#include "cgfile.h"
#include "err.h"
#include "landlock.h"
#include "probes.h"
#include "proc.h"
#include "report.h"
#include "seccomp.h"
#include "userns.h"

int probe_capabilities(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    const uid_t id = userns_host_id(env->id_base, userns_outer_user(USERNS_SESSIONS - 1));
    int r = caps_empty_bounding_set(e);

    (void)ret;
    if (r == 0)
        r = caps_clear_ambient(e);
    if (r == 0)
        r = caps_lock_securebits(e);
    if (r == 0)
        r = caps_become(id, id, e);
    if (r == 0)
        r = caps_set(0, e);
    if (r == 0)
        r = caps_verify(id, id, 0, e);
    if (r == 0 && syscall(SYS_setresuid, 0, 0, 0) == 0)
        r = err_set(e, EPROTO, "who dropped all power became root again");
    return r;
}

int probe_no_new_privs(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    char text[4096];
    uint64_t set = 0;
    autoclose int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)env;
    (void)ret;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(e, errno, "set no_new_privs");
    if (prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
        return err_set(e, EPROTO, "no_new_privs can be taken back");
    if (proc < 0 || cgfile_read(proc, "status", text, sizeof text) < 0)
        return err_sys(e, errno, "read its own status");
    if (cgfile_find_key(text, "NoNewPrivs:\t1", &set) == -ENOENT &&
        prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return err_set(e, EPROTO, "no_new_privs is not set");
    return 0;
}

/* ---- seccomp ---- */

/* In a child of its own: filters add up. unshare(0) does nothing, and no filter of ours lets it
 * through. */
static int filter_holds(enum seccomp_filter filter, int status_fd)
{
    struct err e = { 0 };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        err_sys(&e, errno, "set no_new_privs");
    else if (unshare(0) < 0)
        err_sys(&e, errno, "call unshare(0) without a filter");
    else if (seccomp_load(filter, &e) == 0 && unshare(0) == 0)
        err_set(&e, EPROTO, "a call that is not on the list was let through");
    return report_send(status_fd, &e);
}

static int try_filter(enum seccomp_filter filter, struct err *e)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return err_sys(e, errno, "pipe");
    pid_t pid = fork();
    if (pid == 0)
        _exit(filter_holds(filter, p[1]) < 0);
    close(p[1]);
    int r = pid < 0 ? err_sys(e, errno, "fork") : report_wait(p[0], 10000, e);
    close(p[0]);
    if (pid > 0 && kill(pid, SIGKILL) == 0)
        (void)!proc_reap(pid, NULL);
    if (r == REPORT_END)
        return err_set(e, EPROTO, "the process under the filter died");
    return r < 0 ? r : 0;
}

int probe_seccomp(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    static const struct {
        enum seccomp_filter filter;
        const char *name;
    } all[] = { { SECCOMP_SESSION, "session" },
                { SECCOMP_INIT, "init" },
                { SECCOMP_GATEWAY, "gateway" },
                { SECCOMP_GATEWAY_START, "gateway_start" } };

    (void)env;
    (void)ret;
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (try_filter(all[i].filter, e) < 0)
            return err_wrap(e, "filter '%s'", all[i].name);
    return 0;
}

/* ---- Landlock ---- */

/* What the session's rules leave to the walls in front where the kernel is older (landlock.h). */
static void tell_abi(struct probe_result *ret)
{
    int abi = landlock_abi();

    if (abi >= 5)
        probe_say(ret, HOSTWALL_PRESENT, "ABI %d", abi);
    else if (abi >= 3)
        probe_say(ret, HOSTWALL_WEAKER,
                  "ABI %d: no ioctl of devices (Linux 6.10); seccomp has those", abi);
    else if (abi == 2)
        probe_say(ret, HOSTWALL_WEAKER,
                  "ABI 2: no truncate (Linux 6.2) and no ioctl of devices (6.10); permissions and "
                  "seccomp have those");
    else
        probe_say(ret, HOSTWALL_WEAKER,
                  "ABI 1: no truncate and no ioctl of devices, and files cannot move between "
                  "folders (Linux 5.19)");
}

int probe_landlock(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    static const char path[] = "/proc/self/comm"; /* our own, and written by everybody who is us */
    int before = open(path, O_WRONLY | O_CLOEXEC);

    (void)env;
    if (before < 0)
        return err_sys(e, errno, "open %s", path);
    close(before);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(e, errno, "set no_new_privs");
    int abi = landlock_abi();
    if (abi == 0)
        return err_set(e, ENOSYS, "the kernel has no Landlock, or it was not enabled at boot");
    if (abi > 0)
        tell_abi(ret); /* asking may be forbidden behind the wall */
    int r = landlock_enter(abi, landlock_session_rules(0), e);
    if (r < 0)
        return r;
    autoclose int after = open(path, O_WRONLY | O_CLOEXEC);
    if (after >= 0 || errno != EACCES)
        return err_set(e, EPROTO, "what the rules forbid was not refused");
    autoclose int seen = open(path, O_RDONLY | O_CLOEXEC);
    return seen < 0 ? err_sys(e, errno, "read what the rules allow") : 0;
}
