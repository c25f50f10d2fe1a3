/* What a process is after the drop, step by step; runs as root. */
#include "drop.h"

#include <fcntl.h>
#include <linux/securebits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "err.h"
#include "in_child.h"
#include "landlock.h"

static const int standard_fds[] = { 0, 1, 2 };

static struct drop_plan session_plan(void)
{
    return (struct drop_plan){
        .uid = 1000,
        .gid = 1000,
        .umask = 022,
        .filter = DROP_FILTER_SESSION,
        .fds = standard_fds,
        .fd_count = 3,
        .exec_status_fd = -1,
        .nofile = 4096,
        .nproc = 300,
        .fsize_bytes = 1 << 20,
    };
}

static void must_drop(const struct drop_plan *plan)
{
    struct err e = { 0 };

    if (drop_run(plan, &e) < 0) {
        dprintf(2, "drop: %s\n", e.msg);
        _exit(CHILD_FAILED);
    }
}

/* The value of a line of /proc/self/status as a number of the given base. Read by a
 * descriptor opened before: after the drop the file belongs to root. */
static unsigned long long status_field(int fd, const char *name, int base)
{
    char text[8192], *at;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    EXPECT(n > 0);
    text[n] = '\0';
    at = strstr(text, name);
    EXPECT(at != NULL);
    return strtoull(at + strlen(name), NULL, base);
}

static void expect_session_user(void *arg)
{
    struct drop_plan plan = session_plan();
    int fds[] = { 0, 1, 2, open("/proc/self/status", O_RDONLY) };
    static const char *const empty[] = { "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:" };

    (void)arg;
    plan.fds = fds;
    plan.fd_count = 4;
    must_drop(&plan);
    for (unsigned i = 0; i < 5; i++)
        EXPECT(status_field(3, empty[i], 16) == 0);
    EXPECT(status_field(3, "NoNewPrivs:", 10) == 1);
    EXPECT(status_field(3, "Seccomp:", 10) == 2);
    EXPECT(status_field(3, "SigBlk:", 16) == 0);
    EXPECT(status_field(3, "SigIgn:", 16) == 0);
    EXPECT(status_field(3, "SigCgt:", 16) == 0);
    uid_t u[3];
    gid_t g[3];
    EXPECT(getresuid(&u[0], &u[1], &u[2]) == 0 && u[0] == 1000 && u[1] == 1000 && u[2] == 1000);
    EXPECT(getresgid(&g[0], &g[1], &g[2]) == 0 && g[0] == 1000 && g[1] == 1000 && g[2] == 1000);
    EXPECT(getgroups(0, NULL) == 0);
    EXPECT(prctl(PR_GET_DUMPABLE) == 0);
    int signo = 0;
    EXPECT(prctl(PR_GET_PDEATHSIG, &signo) == 0 && signo == SIGKILL);
    EXPECT(umask(0) == 022);
}

static void the_session_user_holds_nothing(void **state)
{
    (void)state;
    assert_child_passes(expect_session_user, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_session_user_holds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
