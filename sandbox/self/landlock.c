#include "landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "err.h"

/* Own definitions: the build's kernel headers may be older than the kernel. */
struct ruleset_attr {
    uint64_t handled_fs, handled_net,
        scoped; /* older kernels take the longer struct when the rest is 0 */
};

struct path_attr {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed));

enum { RULE_PATH_BENEATH = 1 };
enum { CREATE_VERSION = 1 };
enum { RESTRICT_LOG_SAME_EXEC_OFF = 1 };

#define EXECUTE     (UINT64_C(1) << 0)
#define WRITE_FILE  (UINT64_C(1) << 1)
#define READ_FILE   (UINT64_C(1) << 2)
#define READ_DIR    (UINT64_C(1) << 3)
#define REMOVE_DIR  (UINT64_C(1) << 4)
#define REMOVE_FILE (UINT64_C(1) << 5)
#define MAKE_CHAR   (UINT64_C(1) << 6)
#define MAKE_DIR    (UINT64_C(1) << 7)
#define MAKE_REG    (UINT64_C(1) << 8)
#define MAKE_SOCK   (UINT64_C(1) << 9)
#define MAKE_FIFO   (UINT64_C(1) << 10)
#define MAKE_BLOCK  (UINT64_C(1) << 11)
#define MAKE_SYM    (UINT64_C(1) << 12)
#define REFER       (UINT64_C(1) << 13)
#define TRUNCATE    (UINT64_C(1) << 14)
#define IOCTL_DEV   (UINT64_C(1) << 15)

#define NET_TCP   (UINT64_C(1) << 0 | UINT64_C(1) << 1) /* bind, connect */
#define SCOPE_ALL (UINT64_C(1) << 0 | UINT64_C(1) << 1) /* abstract sockets, signals */

#define OF_FILES (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV)

static const struct landlock_rule session_rules[] = {
    { "/", LANDLOCK_READ, -1 },      /* the tree holds what a session may see, and nothing else */
    { "/dev", LANDLOCK_DEVICE, -1 }, /* null zero full random urandom, terminals */
    { "/dev/shm", LANDLOCK_WRITE, -1 },
    { "/home/user", LANDLOCK_WRITE, -1 },
    { "/run/kernel", LANDLOCK_WRITE, -1 }, /* foreign kernels bind their sockets there */
    { "/tmp", LANDLOCK_WRITE, -1 },
    { NULL, LANDLOCK_READ, -1 },
};

/* A socket in the workspace is a way for descriptors from session to session, and what they hold counts for
 * nobody when the session that made it is gone. Rights add up along a path: the workspace has what the home
 * around it has, so the whole home goes without. */
static const struct landlock_rule sharing_rules[] = {
    { "/", LANDLOCK_READ, -1 },
    { "/dev", LANDLOCK_DEVICE, -1 },
    { "/dev/shm", LANDLOCK_WRITE, -1 },
    { "/home/user", LANDLOCK_NO_SOCKET, -1 },
    { "/run/kernel", LANDLOCK_WRITE, -1 },
    { "/tmp", LANDLOCK_WRITE, -1 },
    { NULL, LANDLOCK_READ, -1 },
};

const struct landlock_rule *landlock_session_rules(int with_workspace)
{
    return with_workspace ? sharing_rules : session_rules;
}

int landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0UL, CREATE_VERSION);

    if (abi >= 0)
        return (int)abi;
    /* Not built in, or not enabled at boot. Anything else (a filter around us) is a
     * failure and must not read as absence. */
    return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
}

/* The rights on files that an ABI knows; asking for more is EINVAL. */
static uint64_t rights_of_abi(int abi)
{
    uint64_t rights = (MAKE_SYM << 1) - 1;

    if (abi >= 2)
        rights |= REFER;
    if (abi >= 3)
        rights |= TRUNCATE;
    if (abi >= 5)
        rights |= IOCTL_DEV;
    return rights;
}

static uint64_t rights_of_kind(int kind)
{
    const uint64_t look = EXECUTE | READ_FILE | READ_DIR;
    const uint64_t change = WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG |
                            MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER;

    switch (kind) {
    case LANDLOCK_READ:
        return look;
    case LANDLOCK_DEVICE:
        return look | WRITE_FILE | TRUNCATE | IOCTL_DEV;
    case LANDLOCK_WRITE:
        return look | change;
    case LANDLOCK_NO_SOCKET:
        return look | (change & ~MAKE_SOCK);
    case LANDLOCK_LOOK:
        return look & ~EXECUTE;
    case LANDLOCK_KEEP:
        return (look & ~EXECUTE) | change;
    }
    return 0;
}

static int add_rule(int ruleset_fd, const struct landlock_rule *rule, uint64_t known, struct err *e)
{
    autoclose int fd = rule->path[0] == '\0' ? fcntl(rule->fd, F_DUPFD_CLOEXEC, 0)
                                             : open(rule->path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    struct path_attr attr = { rights_of_kind(rule->kind) & known, fd };
    struct stat st;

    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "open '%s'", rule->path);
    if (fstat(fd, &st) < 0)
        return err_sys(e, errno, "stat '%s'", rule->path);
    if (!S_ISDIR(st.st_mode))
        attr.allowed &= OF_FILES; /* rights of directories on a file are EINVAL */
    if (syscall(SYS_landlock_add_rule, ruleset_fd, RULE_PATH_BENEATH, &attr, 0) < 0)
        return err_sys(e, errno, "rule for '%s'", rule->path);
    return 0;
}

static int enter(int abi, const struct landlock_rule *rules, int alone, struct err *e)
{
    struct ruleset_attr attr = { rights_of_abi(abi), alone && abi >= 4 ? NET_TCP : 0,
                                 alone && abi >= 6 ? SCOPE_ALL : 0 };
    /* ABI 7: no audit record for what the code of a cell is refused; it could fill the log. */
    unsigned flags = abi >= 7 ? RESTRICT_LOG_SAME_EXEC_OFF : 0;
    autoclose int ruleset_fd = -1;

    if (abi < 0)
        return err_sys(e, -abi, "ask for Landlock's ABI");
    if (abi == 0)
        return err_set(e, ENOSYS, "no Landlock");
    ruleset_fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (ruleset_fd < 0)
        return err_sys(e, errno, "make a ruleset for ABI %d", abi);
    for (const struct landlock_rule *rule = rules; rule->path != NULL; rule++) {
        int r = add_rule(ruleset_fd, rule, attr.handled_fs, e);

        if (r < 0)
            return r;
    }
    if (syscall(SYS_landlock_restrict_self, ruleset_fd, flags) < 0)
        return err_sys(e, errno, "enter the layer");
    return 0;
}

int landlock_enter(int abi, const struct landlock_rule *rules, struct err *e)
{
    return enter(abi, rules, 0, e);
}

int landlock_enter_alone(int abi, const struct landlock_rule *rules, struct err *e)
{
    return enter(abi, rules, 1, e);
}
