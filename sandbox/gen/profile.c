#include "profile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "cleanup.h"
#include "err.h"
#include "prologue.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* An int argument: the kernel looks at 32 bits, so do we, whatever a caller left
 * in the upper half. */
#define LOW 0xffffffffULL

enum { ARGS_MAX = 3 };

/* One condition: (argument & mask) == value. */
struct condition {
    unsigned arg;
    uint64_t mask, value;
};

/* A call that is allowed under conditions (action 0) or answered with an errno. */
struct rule {
    const char *call; /* "+name": as in a list, left out where libseccomp does not know it */
    int answer;       /* 0: allow */
    unsigned count;
    struct condition when[ARGS_MAX];
};

#define REFUSE(call, code) \
    {                      \
        call, code, 0,     \
        {                  \
            {              \
                0, 0, 0    \
            }              \
        }                  \
    }
#define WHEN1(call, a, m, v) \
    {                        \
        call, 0, 1,          \
        {                    \
            {                \
                a, m, v      \
            }                \
        }                    \
    }
#define REFUSE_WHEN(call, code, a, m, v) \
    {                                    \
        call, code, 1,                   \
        {                                \
            {                            \
                a, m, v                  \
            }                            \
        }                                \
    }
#define SOCKET(family, type, protocol)            \
    {                                             \
        "socket", 0, 3,                           \
        {                                         \
            { 0, LOW, family }, { 1, 0xf, type }, \
            {                                     \
                2, LOW, protocol                  \
            }                                     \
        }                                         \
    }
#define PAIR(type)               \
    {                            \
        "socketpair", 0, 2,      \
        {                        \
            { 0, LOW, AF_UNIX }, \
            {                    \
                1, 0xf, type     \
            }                    \
        }                        \
    }
#define MKNOD(kind)   WHEN1("mknodat", 2, S_IFMT, kind)
#define PRCTL(option) WHEN1("prctl", 0, LOW, option)

/* libzmq sets the policy that its threads have already, and aborts when it is refused: SCHED_OTHER, or
 * one of those that take less, in which the whole server may have been started. */
#define SCHEDULING                                        \
    WHEN1("sched_setscheduler", 1, LOW, SCHED_OTHER),     \
        WHEN1("sched_setscheduler", 1, LOW, SCHED_BATCH), \
        WHEN1("sched_setscheduler", 1, LOW, SCHED_IDLE)

/* NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET, and CLONE_PARENT: a kernel
 * is the launcher's child, so a sibling it makes would be a child that the
 * launcher has to reap and init never sees. */
#define CLONE_REFUSED (0x7e020000ULL | CLONE_PARENT)

static const struct rule child_rules[] = {
    WHEN1("clone", 0, CLONE_REFUSED, 0),
    REFUSE("clone3", ENOSYS), /* its flags are behind a pointer; libc falls back on ENOSYS only */
};

/* Init clones the processes that it starts into cgroups of their own. The flags that clone3
 * hides need capabilities that it does not have. */
static const struct rule init_child_rules[] = {
    WHEN1("clone", 0, CLONE_REFUSED, 0),
};

static const struct rule common_rules[] = {
    SOCKET(AF_UNIX, SOCK_STREAM, 0),
    SOCKET(AF_UNIX, SOCK_DGRAM, 0),
    SOCKET(AF_INET, SOCK_STREAM, 0),
    SOCKET(AF_INET, SOCK_STREAM, IPPROTO_TCP), /* any other protocol may load a module */
    SOCKET(AF_INET, SOCK_DGRAM, 0),
    SOCKET(AF_INET, SOCK_DGRAM, IPPROTO_UDP),
    SOCKET(AF_INET6, SOCK_STREAM, 0),
    SOCKET(AF_INET6, SOCK_STREAM, IPPROTO_TCP),
    SOCKET(AF_INET6, SOCK_DGRAM, 0),
    SOCKET(AF_INET6, SOCK_DGRAM, IPPROTO_UDP),
    /* libzmq looks for interfaces and aborts on EPERM, EACCES and EAFNOSUPPORT. */
    { "socket", EOPNOTSUPP, 1, { { 0, LOW, AF_NETLINK } } },
    /* The host's huge pages, where it has some, count as no session's memory. */
    WHEN1("mmap", 3, MAP_HUGETLB, 0),
    WHEN1("memfd_create", 1, MFD_HUGETLB, 0),
    PAIR(SOCK_STREAM),
    PAIR(SOCK_DGRAM),
    PAIR(SOCK_SEQPACKET),

    SCHEDULING,
    WHEN1("personality", 0, LOW, 0),
    WHEN1("personality", 0, LOW, 0xffffffff), /* asks for the present one */

    /* No devices; the kernel would refuse them but for the whiteout node 0:0. */
    MKNOD(S_IFIFO),
    MKNOD(S_IFSOCK),
    MKNOD(S_IFREG),
    MKNOD(0),

    PRCTL(PR_SET_PDEATHSIG),
    PRCTL(PR_GET_PDEATHSIG),
    PRCTL(PR_GET_DUMPABLE),
    PRCTL(PR_SET_DUMPABLE),
    PRCTL(PR_SET_NAME),
    PRCTL(PR_GET_NAME),
    PRCTL(PR_GET_SECCOMP),
    PRCTL(PR_CAPBSET_READ),
    PRCTL(PR_SET_TIMERSLACK),
    PRCTL(PR_GET_TIMERSLACK),
    PRCTL(PR_SET_CHILD_SUBREAPER),
    PRCTL(PR_GET_CHILD_SUBREAPER),
    PRCTL(PR_SET_NO_NEW_PRIVS),
    PRCTL(PR_GET_NO_NEW_PRIVS),
    PRCTL(PR_SET_THP_DISABLE),
    PRCTL(PR_GET_THP_DISABLE),
    PRCTL(0x53564d41 /* PR_SET_VMA: names of mappings */),
};

/* A byte out of band is not where it was sent: it stands elsewhere, or not at all, in what the
 * receiver peeks at and in what it reads. The gateway's guard peeks at what kernels send. */
#define IN_BAND(call, flags) \
    WHEN1(call, flags, MSG_OOB, 0), REFUSE_WHEN(call, EOPNOTSUPP, flags, MSG_OOB, MSG_OOB)

static const struct rule band_rules[] = {
    IN_BAND("sendto", 3),
    IN_BAND("sendmsg", 2),
    IN_BAND("sendmmsg", 3),
};

static const struct rule session_rules[] = {
    /* inotify and fanotify reach every inode that two sessions share; on ENOSYS
     * watchers fall back to polling. */
    REFUSE("inotify_init", ENOSYS),
    REFUSE("inotify_init1", ENOSYS),
    REFUSE("fanotify_init", ENOSYS),
};

/* An access list is up to 64 KB of memory for each inode, and what tmpfs keeps it in counts for no
 * cgroup (fs/posix_acl.c allocates without __GFP_ACCOUNT): a session would take the host's memory.
 * EOPNOTSUPP is what a file system without attributes says; cp, tar, install and Python's shutil go
 * on after it. Taking one away stays allowed: a workspace may hold some of an older server. */
static const struct rule attribute_rules[] = {
    REFUSE("setxattr", EOPNOTSUPP),
    REFUSE("lsetxattr", EOPNOTSUPP),
    REFUSE("fsetxattr", EOPNOTSUPP),
    REFUSE("+setxattrat", EOPNOTSUPP),
};

static const struct rule gateway_rules[] = {
    WHEN1("clone", 0, CLONE_REFUSED | CLONE_THREAD, CLONE_THREAD), /* threads, no processes */
    REFUSE("clone3", ENOSYS),

    SOCKET(AF_UNIX, SOCK_STREAM, 0),
    { "socket", EOPNOTSUPP, 1, { { 0, LOW, AF_NETLINK } } },
    PAIR(SOCK_STREAM),

    SCHEDULING,
    PRCTL(PR_SET_PDEATHSIG),
    PRCTL(PR_GET_PDEATHSIG),
    PRCTL(PR_GET_DUMPABLE),
    PRCTL(PR_SET_DUMPABLE),
    PRCTL(PR_SET_NAME),
    PRCTL(PR_GET_NAME),
    PRCTL(PR_SET_NO_NEW_PRIVS),
    PRCTL(PR_GET_NO_NEW_PRIVS),
    PRCTL(0x53564d41 /* PR_SET_VMA: names of mappings */),
};

/* Once it is started nothing more becomes code: what it maps or changes cannot be executed. Nothing
 * of it loads a library later. */
static const struct rule gateway_memory_rules[] = {
    WHEN1("mmap", 2, PROT_EXEC, 0),
    WHEN1("mprotect", 2, PROT_EXEC, 0),
};

/* The launcher loads the gateway's filter with these and then starts the program from a
 * descriptor; the program closes the door behind itself by the one without them. */
static const struct rule gateway_start_rules[] = {
    WHEN1("execveat", 4, LOW, AT_EMPTY_PATH), WHEN1("seccomp", 0, LOW, SECCOMP_SET_MODE_FILTER),
    PRCTL(PR_CAPBSET_READ), /* glibc's start, in builds with sanitizers */
};

/* Root's daemons. Their filter is inherited by all that they start, so it must let through
 * whatever any other profile does; what it takes from root is the rest. */
static const struct rule daemon_rules[] = {
    SOCKET(AF_UNIX, SOCK_SEQPACKET, 0),
    MKNOD(S_IFCHR), /* a session's null, zero, random; block devices are for nobody */
    PRCTL(65 /* PR_SET_MDWE, Linux 6.3: theirs (launcher) and init's */),
};

static const struct rule init_rules[] = {
    PRCTL(PR_CAPBSET_DROP),
    PRCTL(PR_CAP_AMBIENT),
    PRCTL(PR_SET_SECUREBITS),
    PRCTL(PR_GET_SECUREBITS),
    WHEN1("seccomp", 0, LOW, SECCOMP_SET_MODE_FILTER),
};

/* The requests of ioctl(2) that terminals, pipes and sockets need. All others
 * answer ENOTTY, what an unknown request gets: injection into a terminal's input
 * (TIOCSTI, TIOCLINUX), FICLONE, and whatever a driver understands. */
static const uint32_t ioctl_requests[] = {
    TCGETS,    TCSETS,     TCSETSW,    TCSETSF,     TIOCSCTTY, TIOCGPGRP,
    TIOCSPGRP, TIOCGWINSZ, TIOCSWINSZ, FIONREAD,    FIONBIO,   FIOCLEX,
    FIONCLEX,  TIOCGPTN,   TIOCSPTLCK, TIOCGPTPEER, TIOCGSID,
};

/* ... and what the launcher adds: bytes that a peer has not taken, `lo` of a session, and the
 * file that a home on disk is in: its flags (btrfs), its loop device, and the end of an ext4 in it. */
static const uint32_t daemon_ioctls[] = {
    SIOCOUTQ,          SIOCGIFFLAGS,    SIOCSIFFLAGS,
    LOOP_CTL_GET_FREE, LOOP_CONFIGURE,  _IOR('X', 125, uint32_t) /* EXT4_IOC_SHUTDOWN */,
    FS_IOC_GETFLAGS,   FS_IOC_SETFLAGS,
};

/* Who closes a TCP socket that lingers last waits until its bytes have left, and a descriptor may
 * be closed by somebody else: by the gateway's one I/O thread, when it came over a unix socket
 * that only bytes are read from. */
#define LINGER(code)                           \
    {                                          \
        "setsockopt", code, 2,                 \
        {                                      \
            { 1, PROLOGUE_IS, SOL_SOCKET, 0 }, \
            {                                  \
                2, PROLOGUE_IS, SO_LINGER, 0   \
            }                                  \
        }                                      \
    }

/* The limit of core files is 1, and must not become 0: at any other value than 1 a core_pattern
 * that is a pipe has the kernel start the host's program, as root of the host, for a crash inside.
 * Not an error: who sets it wants no core file, and has none; programs with a sanitizer, and those
 * that guard secrets, die of a refusal. Who asks for the old limit in the same call would read
 * what nobody wrote, and gets one. Reading it, prlimit64 without a new one, is allowed. */
#define CORE_LIMIT                                                 \
    { "setrlimit", 0, 1, { { 0, PROLOGUE_IS, RLIMIT_CORE, 0 } } }, \
        { "prlimit64",                                             \
          EINVAL,                                                  \
          3,                                                       \
          { { 1, PROLOGUE_IS, RLIMIT_CORE, 0 },                    \
            { 2, PROLOGUE_GIVEN, 0, 0 },                           \
            { 3, PROLOGUE_GIVEN, 0, 0 } } },                       \
    {                                                              \
        "prlimit64", 0, 2,                                         \
        {                                                          \
            { 1, PROLOGUE_IS, RLIMIT_CORE, 0 },                    \
            {                                                      \
                2, PROLOGUE_GIVEN, 0, 0                            \
            }                                                      \
        }                                                          \
    }

/* Options of sockets that keep memory which counts for no cgroup: net/core/sock.c has a limit for
 * each socket (128 KB since Linux 6.9) and none for their number, and one that joins 2,000 groups
 * costs the host half a megabyte. Programs of socket filters are half as bad, and all that are
 * compiled share one limit of the whole host, behind which nobody can load a filter of system
 * calls. ENOPROTOOPT is what a kernel without the option says. */
#define OPTIONS(level, from, to)          \
    {                                     \
        "setsockopt", ENOPROTOOPT, 2,     \
        {                                 \
            { 1, PROLOGUE_IS, level, 0 }, \
            {                             \
                2, PROLOGUE_IN, from, to  \
            }                             \
        }                                 \
    }
#define OPTION(level, option) OPTIONS(level, option, option)

static const struct prologue_answer session_answers[] = {
    OPTION(SOL_SOCKET, SO_ATTACH_FILTER),
    OPTIONS(SOL_SOCKET, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_EBPF),
    OPTION(IPPROTO_IP, IP_OPTIONS),
    OPTIONS(IPPROTO_IP, IP_ADD_MEMBERSHIP, MCAST_MSFILTER), /* all of groups and their sources */
    OPTION(IPPROTO_IPV6, IPV6_2292PKTOPTIONS),
    OPTIONS(IPPROTO_IPV6, IPV6_JOIN_GROUP, IPV6_LEAVE_GROUP),
    OPTIONS(IPPROTO_IPV6, IPV6_JOIN_ANYCAST, IPV6_LEAVE_ANYCAST),
    OPTION(IPPROTO_IPV6, 32 /* IPV6_FLOWLABEL_MGR */),
    OPTIONS(IPPROTO_IPV6, MCAST_JOIN_GROUP, MCAST_MSFILTER),
    OPTIONS(IPPROTO_IPV6, IPV6_HOPOPTS, IPV6_DSTOPTS),
    OPTION(IPPROTO_TCP, TCP_MD5SIG),
    OPTIONS(IPPROTO_TCP, TCP_ULP, TCP_MD5SIG_EXT),
    OPTIONS(IPPROTO_TCP, 38 /* TCP_AO_ADD_KEY */, 42 /* TCP_AO_REPAIR */),
    /* Not an error: jupyter_client asks for "no linger" (which is so already, and which a filter
     * cannot tell from the other, behind a pointer) at each port that it tries, and dies of a
     * refusal. */
    LINGER(0),
    CORE_LIMIT,
    /* The runtime's files are an overlay's: advice goes on to the real file, and the pages that it
     * drops are those of all sessions, and of the host. It is a hint that may be ignored. */
    { "fadvise64", 0, 1, { { 3, PROLOGUE_IS, POSIX_FADV_DONTNEED, 0 } } },
    /* Pages of equal content become one: the time of a write tells what others have in memory.
     * EINVAL is what a kernel without it says. */
    { "madvise", EINVAL, 1, { { 2, PROLOGUE_IS, MADV_MERGEABLE, 0 } } },
    /* As POSIX_FADV_DONTNEED, for mapped files that the mode lets the session write, read-only
     * overlay or not: data of the operator's. So answers Linux before 5.4. */
    { "madvise", EINVAL, 1, { { 2, PROLOGUE_IN, MADV_COLD, MADV_PAGEOUT } } },
};

static const struct prologue_answer gateway_answers[] = {
    LINGER(EPERM),
    CORE_LIMIT,
};

struct profile {
    const char *name;
    const char *lists[6];
    const struct rule *rules[5];
    size_t rule_counts[5];
    const uint32_t *more_ioctls;
    size_t more_ioctl_count;
    const struct prologue_answer *answers;
    size_t answer_count;
};

static const struct profile profiles[] = {
    { "session",
      { "session.list" },
      { child_rules, common_rules, session_rules, attribute_rules, band_rules },
      { COUNT(child_rules), COUNT(common_rules), COUNT(session_rules), COUNT(attribute_rules),
        COUNT(band_rules) },
      NULL,
      0,
      session_answers,
      COUNT(session_answers) },
    { "init",
      { "session.list", "init.list" },
      { init_child_rules, common_rules, init_rules, attribute_rules, band_rules },
      { COUNT(init_child_rules), COUNT(common_rules), COUNT(init_rules), COUNT(attribute_rules),
        COUNT(band_rules) },
      NULL,
      0,
      session_answers,
      COUNT(session_answers) },
    { "gateway",
      { "gateway.list" },
      { gateway_rules, gateway_memory_rules },
      { COUNT(gateway_rules), COUNT(gateway_memory_rules) },
      NULL,
      0,
      gateway_answers,
      COUNT(gateway_answers) },
    { "gateway_start",
      { "gateway.list", "gateway_start.list" },
      { gateway_rules, gateway_start_rules },
      { COUNT(gateway_rules), COUNT(gateway_start_rules) },
      NULL,
      0,
      gateway_answers,
      COUNT(gateway_answers) },
    { "launcher",
      { "session.list", "init.list", "gateway.list", "gateway_start.list", "launcher.list" },
      { common_rules, init_rules, daemon_rules },
      { COUNT(common_rules), COUNT(init_rules), COUNT(daemon_rules) },
      daemon_ioctls,
      COUNT(daemon_ioctls),
      NULL,
      0 },
    { "supervisor",
      { "session.list", "init.list", "gateway.list", "gateway_start.list", "launcher.list",
        "supervisor.list" },
      { common_rules, init_rules, daemon_rules },
      { COUNT(common_rules), COUNT(init_rules), COUNT(daemon_rules) },
      daemon_ioctls,
      COUNT(daemon_ioctls),
      NULL,
      0 },
};

const char *const *profile_names(void)
{
    static const char *names[COUNT(profiles) + 1];

    for (size_t i = 0; i < COUNT(profiles); i++)
        names[i] = profiles[i].name;
    return names;
}

/* Takes one line of a list: a name, or "+name". The line is cut in place. */
static int add_line(scmp_filter_ctx filter, char *line, struct err *e)
{
    char *name = line + strspn(line, " \t");
    int optional = *name == '+';
    int number, r;

    name += optional;
    name[strcspn(name, " \t\r\n#")] = '\0';
    if (*name == '\0')
        return 0;
    number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR && !optional)
        return err_set(e, EINVAL, "'%s' is no system call", name);
    if (number < 0) /* not known, or not a call of this architecture */
        return 0;
    r = seccomp_rule_add_exact(filter, SCMP_ACT_ALLOW, number, 0);
    return r < 0 ? err_sys(e, -r, "allow '%s'", name) : 0;
}

static int add_list(scmp_filter_ctx filter, const char *dir, const char *file, struct err *e)
{
    char path[4096], line[256];
    unsigned number = 0;
    int r = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, file);
    f = fopen(path, "re");
    if (f == NULL)
        return err_sys(e, errno, "open '%s'", path);
    while (r == 0 && fgets(line, sizeof line, f) != NULL) {
        number++;
        r = add_line(filter, line, e);
    }
    if (r < 0)
        (void)err_wrap(e, "%s:%u", path, number);
    else if (ferror(f))
        r = err_set(e, EIO, "read '%s'", path);
    fclose(f);
    return r;
}

static int add_rule(scmp_filter_ctx filter, const struct rule *rule, struct err *e)
{
    struct scmp_arg_cmp compare[ARGS_MAX];
    uint32_t action = rule->answer != 0 ? SCMP_ACT_ERRNO((uint32_t)rule->answer) : SCMP_ACT_ALLOW;
    int optional = rule->call[0] == '+';
    int number = seccomp_syscall_resolve_name(rule->call + optional);
    int r;

    if (number == __NR_SCMP_ERROR && !optional)
        return err_set(e, EINVAL, "'%s' is no system call", rule->call);
    if (number < 0)
        return 0;
    for (unsigned i = 0; i < rule->count; i++)
        compare[i] = (struct scmp_arg_cmp){ rule->when[i].arg, SCMP_CMP_MASKED_EQ,
                                            rule->when[i].mask, rule->when[i].value };
    r = seccomp_rule_add_exact_array(filter, action, number, rule->count, compare);
    return r < 0 ? err_sys(e, -r, "rule for '%s'", rule->call) : 0;
}

static int fill(scmp_filter_ctx filter, const struct profile *p, const char *dir, struct err *e)
{
    int r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

    if (r == 0)
        r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* binary tree */
    if (r < 0)
        return err_sys(e, -r, "attributes of the filter");
    for (size_t i = 0; i < COUNT(p->lists) && p->lists[i] != NULL; i++) {
        r = add_list(filter, dir, p->lists[i], e);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < COUNT(p->rules); i++) {
        for (size_t k = 0; k < p->rule_counts[i]; k++) {
            r = add_rule(filter, &p->rules[i][k], e);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static size_t write_prologue(const struct profile *p, struct sock_filter out[PROLOGUE_MAX])
{
    const struct prologue head = {
        .answers = p->answers,
        .answer_count = p->answer_count,
        .ioctls = { ioctl_requests, p->more_ioctls },
        .ioctl_counts = { COUNT(ioctl_requests), p->more_ioctl_count },
    };

    return prologue_write(&head, out);
}

/* libseccomp writes programs to descriptors only. */
static int export(scmp_filter_ctx filter, const struct profile *p, struct sock_filter **ret,
                  size_t *ret_count, struct err *e)
{
    autoclose int fd = memfd_create("bpf", MFD_CLOEXEC);
    autofree struct sock_filter *code = NULL;
    struct stat st;
    size_t n;
    int r;

    if (fd < 0)
        return err_sys(e, errno, "memfd");
    r = seccomp_export_bpf(filter, fd);
    if (r < 0)
        return err_sys(e, -r, "export the program");
    if (fstat(fd, &st) < 0)
        return err_sys(e, errno, "size of the program");
    code = xcalloc(PROLOGUE_MAX + (size_t)st.st_size / sizeof *code, sizeof *code);
    n = write_prologue(p, code);
    if (pread(fd, code + n, (size_t)st.st_size, 0) != st.st_size)
        return err_set(e, EIO, "read the program");
    n += (size_t)st.st_size / sizeof *code;
    if (n > BPF_MAXINSNS)
        return err_set(e, E2BIG, "%zu instructions", n);
    *ret = take_ptr(code);
    *ret_count = n;
    return 0;
}

int profile_compile(const char *name, const char *lists, struct sock_filter **ret,
                    size_t *ret_count, struct err *e)
{
    for (size_t i = 0; i < COUNT(profiles); i++) {
        scmp_filter_ctx filter;
        int r;

        if (strcmp(profiles[i].name, name) != 0)
            continue;
        filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        if (filter == NULL)
            return err_set(e, ENOMEM, "filter");
        r = fill(filter, &profiles[i], lists, e);
        if (r == 0)
            r = export(filter, &profiles[i], ret, ret_count, e);
        seccomp_release(filter);
        return r;
    }
    return err_set(e, ENOENT, "no profile '%s'", name);
}
