#include "seccomp.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "err.h"
#include "seccomp_programs.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const struct sock_filter *seccomp_program(enum seccomp_filter filter, size_t *ret_count)
{
    switch (filter) {
    case SECCOMP_SESSION:
        *ret_count = COUNT(session_program);
        return session_program;
    case SECCOMP_INIT:
        *ret_count = COUNT(init_program);
        return init_program;
    case SECCOMP_GATEWAY:
        *ret_count = COUNT(gateway_program);
        return gateway_program;
    case SECCOMP_GATEWAY_START:
        *ret_count = COUNT(gateway_start_program);
        return gateway_start_program;
    case SECCOMP_LAUNCHER:
        *ret_count = COUNT(launcher_program);
        return launcher_program;
    case SECCOMP_SUPERVISOR:
        *ret_count = COUNT(supervisor_program);
        return supervisor_program;
    }
    *ret_count = 0;
    return NULL;
}

int seccomp_load(enum seccomp_filter filter, struct err *e)
{
    size_t count;
    const struct sock_filter *code = seccomp_program(filter, &count);
    struct sock_fprog program = { (unsigned short)count, (struct sock_filter *)(uintptr_t)code };

    if (code == NULL)
        return err_set(e, EINVAL, "no filter %d", (int)filter);
    /* The system call itself and not prctl(2): init's own filter allows one of the two only. */
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return err_sys(e, errno, "load the filter");
    return 0;
}

int seccomp_offered(void)
{
    const uint32_t action = SECCOMP_RET_ERRNO;

    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0 ||
           (errno != ENOSYS && errno != EINVAL && errno != EOPNOTSUPP);
}
