#include "caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "err.h"

#define BIT(cap) (UINT64_C(1) << (cap))

uint64_t caps_of_init(void)
{
    return BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SETPCAP) | BIT(CAP_KILL) |
           BIT(CAP_SYS_CHROOT);
}

/*
 * CHOWN, DAC_OVERRIDE, FOWNER: files of sessions and of the gateway. SETUID, SETGID, SETPCAP:
 * the drops. SYS_ADMIN: namespaces, mounts, cgroups. MKNOD: a session's /dev. KILL: processes
 * of other ids. SYS_RESOURCE: limits above the inherited ones, and scores for the OOM killer
 * that a session cannot take back. Not SYS_PTRACE (the owner of a user namespace may look into
 * it without), not NET_ADMIN (a session's network is its own namespace's).
 */
uint64_t caps_of_daemons(void)
{
    return BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_KILL) |
           BIT(CAP_SETGID) | BIT(CAP_SETUID) | BIT(CAP_SETPCAP) | BIT(CAP_SYS_ADMIN) |
           BIT(CAP_MKNOD) | BIT(CAP_SYS_RESOURCE);
}

/* Drops those that are not in keep. */
static int cut_bounding_set(uint64_t keep, struct err *e)
{
    /* The kernel may know more capabilities than our headers: ask it. */
    for (unsigned long cap = 0; cap < 64; cap++) {
        int in = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

        if (in < 0)
            return cap > 0 ? 0 : err_sys(e, errno, "read the bounding set");
        if (in == 1 && (keep >> cap & 1) == 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return err_sys(e, errno, "drop capability %lu", cap);
    }
    return 0;
}

int caps_keep(uint64_t keep, struct err *e)
{
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct d[2];
    int r = cut_bounding_set(keep, e);

    if (r == 0)
        r = caps_clear_ambient(e);
    if (r < 0)
        return r;
    if (syscall(SYS_capget, &head, d) < 0)
        return err_sys(e, errno, "read the capabilities");
    return caps_set(keep & (d[0].permitted | (uint64_t)d[1].permitted << 32), e);
}

int caps_empty_bounding_set(struct err *e)
{
    return cut_bounding_set(0, e);
}

int caps_clear_ambient(struct err *e)
{
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return err_sys(e, errno, "clear the ambient set");
    return 0;
}

int caps_lock_securebits(struct err *e)
{
    /* NO_SETUID_FIXUP stays off and is locked there: the children of init rely on
     * the kernel taking everything away when they leave uid 0. */
    unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
                         SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                         SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

    if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
        return err_sys(e, errno, "lock the securebits");
    return 0;
}

int caps_become(uid_t uid, gid_t gid, struct err *e)
{
    if (syscall(SYS_setgroups, 0UL, NULL) < 0)
        return err_sys(e, errno, "leave all groups");
    if (syscall(SYS_setresgid, gid, gid, gid) < 0)
        return err_sys(e, errno, "become group %u", gid);
    if (syscall(SYS_setresuid, uid, uid, uid) < 0)
        return err_sys(e, errno, "become user %u", uid);
    return 0;
}

int caps_set(uint64_t keep, struct err *e)
{
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2] = {
        { (uint32_t)keep, (uint32_t)keep, 0 },
        { (uint32_t)(keep >> 32), (uint32_t)(keep >> 32), 0 },
    };

    if (syscall(SYS_capset, &head, data) < 0)
        return err_sys(e, errno, "set the capabilities");
    return 0;
}

static int verify_ids(uid_t uid, gid_t gid, struct err *e)
{
    uid_t u[3];
    gid_t g[3];

    if (syscall(SYS_getresuid, &u[0], &u[1], &u[2]) < 0 ||
        syscall(SYS_getresgid, &g[0], &g[1], &g[2]) < 0)
        return err_sys(e, errno, "read the ids");
    for (unsigned i = 0; i < 3; i++) {
        if (u[i] != uid || g[i] != gid)
            return err_set(e, EPERM, "id %u is %u:%u, expected %u:%u", i, u[i], g[i], uid, gid);
    }
    if (syscall(SYS_getgroups, 0, NULL) != 0)
        return err_set(e, EPERM, "groups are left");
    return 0;
}

int caps_verify(uid_t uid, gid_t gid, uint64_t keep, struct err *e)
{
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct d[2];
    int r = verify_ids(uid, gid, e);

    if (r < 0)
        return r;
    if (syscall(SYS_capget, &head, d) < 0)
        return err_sys(e, errno, "read the capabilities");
    if ((d[0].permitted | (uint64_t)d[1].permitted << 32) != keep ||
        (d[0].effective | (uint64_t)d[1].effective << 32) != keep ||
        (d[0].inheritable | d[1].inheritable) != 0)
        return err_set(e, EPERM, "the capability sets are not as set");
    for (unsigned long cap = 0; cap < 64; cap++) {
        int in = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

        if (in < 0)
            break;
        if (in != 0)
            return err_set(e, EPERM, "capability %lu is still in the bounding set", cap);
    }
    return 0;
}
