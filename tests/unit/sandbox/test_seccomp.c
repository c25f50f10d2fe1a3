/*
 * The kernel under the session's filter: children that load it and nothing else, as
 * root with all capabilities, so that a refusal is the filter's own.
 */
#include "seccomp.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>

#include <cmocka.h>

#include <netinet/in.h>

#include "err.h"
#include "in_child.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define JUNK     0xdeadbeef00000000ULL /* upper half that the kernel does not look at */

static void load(enum seccomp_filter filter)
{
    struct err e = { 0 };

    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (seccomp_load(filter, &e) < 0) {
        dprintf(2, "%s\n", e.msg);
        _exit(CHILD_FAILED);
    }
}

static void clone_flags(void *arg)
{
    static const uint64_t refused[] = {
        CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
        CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET, CLONE_PARENT
    };
    struct clone_args args = { .exit_signal = SIGCHLD };
    long pid;

    (void)arg;
    load(SECCOMP_SESSION);
    for (size_t i = 0; i < COUNT(refused); i++) {
        EXPECT_ERRNO(syscall(SYS_clone, refused[i] | SIGCHLD, 0, 0, 0, 0), EPERM);
        EXPECT_ERRNO(syscall(SYS_clone, refused[i] | SIGCHLD | JUNK, 0, 0, 0, 0), EPERM);
        EXPECT_ERRNO(syscall(SYS_unshare, refused[i]), EPERM);
    }
    EXPECT_ERRNO(syscall(SYS_clone3, &args, sizeof args), ENOSYS);
    pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(7);
    int status;
    EXPECT(pid > 0 && waitpid((pid_t)pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
}

static void new_namespaces_are_refused_and_plain_children_are_not(void **state)
{
    (void)state;
    assert_child_passes(clone_flags, NULL);
}

/* -1: made; else the errno. */
static int try_socket(uint64_t family, uint64_t type, uint64_t protocol)
{
    long fd = syscall(SYS_socket, family, type, protocol);

    if (fd >= 0)
        close((int)fd);
    return fd >= 0 ? -1 : errno;
}

static void socket_kinds(void *arg)
{
    (void)arg;
    load(SECCOMP_SESSION);
    for (unsigned family = 0; family < 50; family++) {
        int known = family == AF_UNIX || family == AF_INET || family == AF_INET6;

        for (unsigned type = 0; type < 11; type++) {
            int wanted = known && (type == SOCK_STREAM || type == SOCK_DGRAM);
            int expected = wanted ? -1 : family == AF_NETLINK ? EOPNOTSUPP : EPERM;

            EXPECT(try_socket(family, type, 0) == expected);
            EXPECT(try_socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) == expected);
            EXPECT(try_socket(family | JUNK, type | JUNK, JUNK) == expected);
        }
    }
    EXPECT(try_socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) == -1);
    EXPECT(try_socket(AF_INET6, SOCK_DGRAM, IPPROTO_UDP) == -1);
    EXPECT(try_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP) == EPERM);
    EXPECT(try_socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP) == EPERM);
}

static void only_unix_and_internet_sockets_can_be_made(void **state)
{
    (void)state;
    assert_child_passes(socket_kinds, NULL);
}

static void socket_pairs(void *arg)
{
    int pair[2];

    (void)arg;
    load(SECCOMP_SESSION);
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    EXPECT(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    EXPECT_ERRNO(socketpair(AF_TIPC, SOCK_STREAM, 0, pair), EPERM);
    EXPECT_ERRNO(socketpair(AF_UNIX, SOCK_RAW, 0, pair), EPERM);
}

static void pairs_of_sockets_are_unix_ones(void **state)
{
    (void)state;
    assert_child_passes(socket_pairs, NULL);
}

static void terminal_requests(void *arg)
{
    static const uint64_t refused[] = { TIOCSTI,  TIOCLINUX,   TIOCCONS,
                                        TIOCSETD, TIOCSSERIAL, 0x40049409 /* FICLONE */,
                                        0x8912 /* SIOCGIFCONF */ };
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    int number, n = 0, unlock = 0;
    int pipes[2];
    char c = 'x';

    (void)arg;
    EXPECT(master >= 0 && pipe(pipes) == 0);
    load(SECCOMP_SESSION);
    EXPECT(ioctl(master, TIOCSPTLCK, &unlock) == 0);
    EXPECT(ioctl(master, TIOCGPTN, &number) == 0);
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
    EXPECT(slave >= 0);
    struct winsize size = { 24, 80, 0, 0 };
    EXPECT(ioctl(slave, TIOCSWINSZ, &size) == 0 && ioctl(slave, TIOCGWINSZ, &size) == 0);
    EXPECT(isatty(slave) == 1);
    for (size_t i = 0; i < COUNT(refused); i++) {
        EXPECT_ERRNO(syscall(SYS_ioctl, slave, refused[i], &c), ENOTTY);
        EXPECT_ERRNO(syscall(SYS_ioctl, slave, refused[i] | JUNK, &c), ENOTTY);
    }
    EXPECT(ioctl(slave, FIONREAD, &n) == 0 && n == 0); /* nothing was injected */
    EXPECT(write(pipes[1], "abc", 3) == 3 && ioctl(pipes[0], FIONREAD, &n) == 0 && n == 3);
    EXPECT(ioctl(pipes[0], FIONBIO, &(int){ 1 }) == 0 && ioctl(pipes[0], FIOCLEX) == 0);
}

static void a_terminal_works_and_takes_no_injection(void **state)
{
    (void)state;
    assert_child_passes(terminal_requests, NULL);
}

static void process_attributes(void *arg)
{
    static const uint64_t refused[] = { PR_SET_MM,         PR_SET_SPECULATION_CTRL, PR_SET_SECCOMP,
                                        PR_SET_SECUREBITS, PR_CAPBSET_DROP,         PR_CAP_AMBIENT,
                                        PR_SET_KEEPCAPS,   PR_SET_PTRACER };
    char name[16] = "renamed";
    struct sched_param param = { 0 };

    (void)arg;
    load(SECCOMP_SESSION);
    for (size_t i = 0; i < COUNT(refused); i++) {
        EXPECT_ERRNO(syscall(SYS_prctl, refused[i], 0, 0, 0, 0), EPERM);
        EXPECT_ERRNO(syscall(SYS_prctl, refused[i] | JUNK, 0, 0, 0, 0), EPERM);
    }
    EXPECT(prctl(PR_SET_NAME, name) == 0 && prctl(PR_GET_SECCOMP) == 2);
    EXPECT(prctl(PR_SET_DUMPABLE, 1) == 0); /* what a warm child does after the drop */
    EXPECT(syscall(SYS_personality, 0xffffffff) >= 0);
    EXPECT(syscall(SYS_personality, 0) >= 0);
    EXPECT_ERRNO(syscall(SYS_personality, ADDR_NO_RANDOMIZE), EPERM);
    EXPECT_ERRNO(syscall(SYS_personality, READ_IMPLIES_EXEC | JUNK), EPERM);
    EXPECT(syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &param) == 0);
    param.sched_priority = 1;
    EXPECT_ERRNO(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &param), EPERM);
    EXPECT_ERRNO(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO | JUNK, &param), EPERM);
}

static void attributes_of_a_process_are_on_a_short_list(void **state)
{
    (void)state;
    assert_child_passes(process_attributes, NULL);
}

static void nodes(void *arg)
{
    const char *dir = arg;

    EXPECT(chdir(dir) == 0);
    load(SECCOMP_SESSION);
    EXPECT(mknodat(AT_FDCWD, "fifo", S_IFIFO | 0600, 0) == 0);
    EXPECT(mknodat(AT_FDCWD, "file", S_IFREG | 0600, 0) == 0);
    EXPECT_ERRNO(mknodat(AT_FDCWD, "null", S_IFCHR | 0666, makedev(1, 3)), EPERM);
    EXPECT_ERRNO(mknodat(AT_FDCWD, "white", S_IFCHR, 0), EPERM);
    EXPECT_ERRNO(mknodat(AT_FDCWD, "block", S_IFBLK | 0600, makedev(8, 0)), EPERM);
}

static void fifos_can_be_made_and_devices_cannot(void **state)
{
    (void)state;
    char dir[] = "/tmp/hc-nodes-XXXXXX";

    assert_non_null(mkdtemp(dir));
    assert_child_passes(nodes, dir);
    char path[64];
    snprintf(path, sizeof path, "%s/fifo", dir);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s/file", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

struct refused {
    const char *name;
    long nr;
};

#define CALL(name)        \
    {                     \
#name, SYS_##name \
    }

/* What nobody needs in a cell; zeros as arguments, for the filter looks first. */
static const struct refused refused_calls[] = {
    CALL(ptrace),
    CALL(process_vm_readv),
    CALL(process_vm_writev),
    CALL(kcmp),
    CALL(pidfd_getfd),
    CALL(bpf),
    CALL(perf_event_open),
    CALL(userfaultfd),
    CALL(io_uring_setup),
    CALL(io_uring_enter),
    CALL(io_uring_register),
    CALL(io_setup),
    CALL(io_submit),
    CALL(add_key),
    CALL(request_key),
    CALL(keyctl),
    CALL(mount),
    CALL(umount2),
    CALL(pivot_root),
    CALL(chroot),
    CALL(move_mount),
    CALL(open_tree),
    CALL(fsopen),
    CALL(fsconfig),
    CALL(fsmount),
    CALL(fspick),
    CALL(mount_setattr),
    CALL(unshare),
    CALL(setns),
    CALL(open_by_handle_at),
    CALL(name_to_handle_at),
    CALL(vmsplice),
    CALL(memfd_secret),
    CALL(mbind),
    CALL(move_pages),
    CALL(migrate_pages),
    CALL(set_mempolicy),
    CALL(get_mempolicy),
    CALL(quotactl),
    CALL(quotactl_fd),
    CALL(syslog),
    CALL(init_module),
    CALL(finit_module),
    CALL(delete_module),
    CALL(kexec_load),
    CALL(kexec_file_load),
    CALL(reboot),
    CALL(swapon),
    CALL(swapoff),
    CALL(acct),
    CALL(settimeofday),
    CALL(clock_settime),
    CALL(clock_adjtime),
    CALL(adjtimex),
    CALL(sethostname),
    CALL(setdomainname),
    CALL(vhangup),
    CALL(setuid),
    CALL(setgid),
    CALL(setreuid),
    CALL(setregid),
    CALL(setresuid),
    CALL(setresgid),
    CALL(setfsuid),
    CALL(setfsgid),
    CALL(setgroups),
    CALL(capset),
    CALL(fchown),
    CALL(fchownat),
    CALL(shmget),
    CALL(shmat),
    CALL(shmctl),
    CALL(semget),
    CALL(msgget),
    CALL(mq_open),
    CALL(sync),
    CALL(syncfs),
    CALL(seccomp),
    CALL(landlock_create_ruleset),
    CALL(landlock_restrict_self),
    CALL(process_madvise),
    CALL(process_mrelease),
    CALL(sched_setattr),
    CALL(sched_setparam),
    CALL(ioprio_set),
    CALL(lookup_dcookie),
    CALL(fanotify_mark),
    CALL(inotify_add_watch),
    CALL(tee),
#if defined(__x86_64__)
    CALL(chown),
    CALL(lchown),
    CALL(mknod),
    CALL(modify_ldt),
    CALL(iopl),
    CALL(ioperm),
    CALL(uselib),
    CALL(ustat),
    CALL(sysfs),
    CALL(nfsservctl),
    CALL(create_module),
    CALL(get_kernel_syms),
    CALL(query_module),
    CALL(_sysctl),
#endif
};

static void refused_table(void *arg)
{
    (void)arg;
    load(SECCOMP_SESSION);
    for (size_t i = 0; i < COUNT(refused_calls); i++) {
        errno = 0;
        if (syscall(refused_calls[i].nr, 0x5a5a5a5aL, 0, 0, 0, 0, 0) == -1 && errno == EPERM)
            continue;
        dprintf(2, "%s: errno %d\n", refused_calls[i].name, errno);
        _exit(CHILD_FAILED);
    }
    EXPECT_ERRNO(syscall(SYS_inotify_init1, 0), ENOSYS);
    EXPECT_ERRNO(syscall(SYS_fanotify_init, 0, 0), ENOSYS);
    EXPECT_ERRNO(syscall(900), ENOSYS);
}

static void what_nobody_needs_is_refused(void **state)
{
    (void)state;
    assert_child_passes(refused_table, NULL);
}

static void useful_calls(void *arg)
{
    char *const argv[] = { (char *)(uintptr_t) "true", NULL }, *const env[] = { NULL };
    int true_fd = open("/bin/true", O_RDONLY | O_CLOEXEC);
    int fd, status;
    pid_t pid;

    (void)arg;
    load(SECCOMP_SESSION);
    fd = memfd_create("m", MFD_CLOEXEC);
    EXPECT(fd >= 0 && ftruncate(fd, 4096) == 0);
    EXPECT(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
    EXPECT((pid = fork()) >= 0);
    if (pid == 0) {
        execveat(true_fd, "", argv, env, AT_EMPTY_PATH);
        _exit(1);
    }
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    EXPECT((pid = fork()) >= 0);
    if (pid == 0) {
        for (;;)
            pause();
    }
    EXPECT(kill(pid, SIGTERM) == 0 && waitpid(pid, &status, 0) == pid &&
           WTERMSIG(status) == SIGTERM);
}

static void huge_pages(void *arg)
{
    const unsigned long high = 0xbeefUL << 32;
    const int private = MAP_PRIVATE | MAP_ANONYMOUS;

    (void)arg;
    load(SECCOMP_SESSION);
    EXPECT(syscall(SYS_mmap, 0UL, 4096UL, 3UL, high | private, -1L, 0UL) != -1);
    EXPECT(syscall(SYS_mmap, 0UL, 2UL << 20, 3UL, private | MAP_HUGETLB, -1L, 0UL) == -1 &&
           errno == EPERM);
    EXPECT(syscall(SYS_mmap, 0UL, 2UL << 20, 3UL, high | private | MAP_HUGETLB, -1L, 0UL) == -1 &&
           errno == EPERM);
    EXPECT(syscall(SYS_memfd_create, "m", (unsigned long)MFD_HUGETLB) == -1 && errno == EPERM);
    EXPECT(syscall(SYS_memfd_create, "m", high | MFD_HUGETLB) == -1 && errno == EPERM);
}

static void huge_pages_of_the_host_are_refused(void **state)
{
    (void)state;
    assert_child_passes(huge_pages, NULL);
}

/* A socket whose bytes nobody takes, told to linger for a minute: its last close does not wait. */
static void lingering(void *arg)
{
    struct linger minute = { 1, 60 }, now = { 7, 7 };
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t n = sizeof any, m = sizeof now;
    static const char bytes[65536];
    struct timespec before, after;
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    int sender = socket(AF_INET, SOCK_STREAM, 0);

    (void)arg;
    load(SECCOMP_SESSION);
    EXPECT(bind(listening, (struct sockaddr *)&any, sizeof any) == 0 && listen(listening, 1) == 0);
    EXPECT(getsockname(listening, (struct sockaddr *)&any, &n) == 0);
    EXPECT(connect(sender, (struct sockaddr *)&any, sizeof any) == 0);
    while (send(sender, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
    EXPECT(setsockopt(sender, SOL_SOCKET, SO_LINGER, &minute, sizeof minute) == 0);
    EXPECT(getsockopt(sender, SOL_SOCKET, SO_LINGER, &now, &m) == 0 && now.l_onoff == 0);
    EXPECT(setsockopt(sender, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int)) == 0);
    EXPECT(getsockopt(sender, SOL_SOCKET, SO_KEEPALIVE, &now.l_onoff, &m) == 0 && now.l_onoff == 1);
    EXPECT(clock_gettime(CLOCK_MONOTONIC, &before) == 0);
    EXPECT(close(sender) == 0);
    EXPECT(clock_gettime(CLOCK_MONOTONIC, &after) == 0 && after.tv_sec - before.tv_sec < 30);
}

static void nobody_waits_for_the_last_close_of_a_socket(void **state)
{
    (void)state;
    assert_child_passes(lingering, NULL);
}

static void uncounted_options(void *arg)
{
    static const struct {
        int family, type, level, option;
    } refused[] = {
        { AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_ATTACH_FILTER },
        { AF_UNIX, SOCK_STREAM, SOL_SOCKET, SO_ATTACH_FILTER },
        { AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF },
        { AF_INET, SOCK_DGRAM, IPPROTO_IP, IP_ADD_MEMBERSHIP },
        { AF_INET, SOCK_DGRAM, IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP },
        { AF_INET6, SOCK_DGRAM, IPPROTO_IPV6, IPV6_JOIN_GROUP },
        { AF_INET6, SOCK_STREAM, IPPROTO_IPV6, MCAST_JOIN_GROUP },
        { AF_INET, SOCK_STREAM, IPPROTO_TCP, 14 /* TCP_MD5SIG */ },
        { AF_INET, SOCK_STREAM, IPPROTO_TCP, 38 /* TCP_AO_ADD_KEY */ },
    };
    static const struct {
        int family, type, level, option;
    } allowed[] = {
        { AF_INET, SOCK_STREAM, SOL_SOCKET, SO_REUSEADDR },
        { AF_INET, SOCK_STREAM, IPPROTO_TCP, 1 /* TCP_NODELAY */ },
        { AF_INET, SOCK_DGRAM, IPPROTO_IP, IP_MULTICAST_LOOP },
        { AF_INET6, SOCK_STREAM, IPPROTO_IPV6, IPV6_V6ONLY },
    };
    char value[256] = { 1 };

    (void)arg;
    load(SECCOMP_SESSION);
    for (size_t i = 0; i < COUNT(refused); i++) {
        int fd = socket(refused[i].family, refused[i].type, 0);

        EXPECT_ERRNO(setsockopt(fd, refused[i].level, refused[i].option, value, sizeof value),
                     ENOPROTOOPT);
        EXPECT(close(fd) == 0);
    }
    for (size_t i = 0; i < COUNT(allowed); i++) {
        int fd = socket(allowed[i].family, allowed[i].type, 0);

        EXPECT(setsockopt(fd, allowed[i].level, allowed[i].option, value, sizeof(int)) == 0);
        EXPECT(close(fd) == 0);
    }
}

static void no_option_of_a_socket_takes_uncounted_memory(void **state)
{
    (void)state;
    assert_child_passes(uncounted_options, NULL);
}

static void core_limit(void *arg)
{
    struct rlimit before, now, none = { 5, 5 };

    (void)arg;
    EXPECT(getrlimit(RLIMIT_CORE, &before) == 0);
    load(SECCOMP_SESSION);
    /* answered, and nothing is done */
    EXPECT(setrlimit(RLIMIT_CORE, &none) == 0);
    EXPECT(prlimit(getpid(), RLIMIT_CORE, &none, NULL) == 0);
    EXPECT(syscall(SYS_prlimit64, 0, JUNK | RLIMIT_CORE, &none, NULL) == 0);
    EXPECT_ERRNO(prlimit(0, RLIMIT_CORE, &none, &now), EINVAL);
#ifdef SYS_setrlimit
    EXPECT(syscall(SYS_setrlimit, RLIMIT_CORE, &none) == 0);
    EXPECT(syscall(SYS_setrlimit, JUNK | RLIMIT_CORE, &none) == 0);
#endif
    EXPECT(getrlimit(RLIMIT_CORE, &now) == 0 && memcmp(&now, &before, sizeof now) == 0);
    EXPECT(prlimit(0, RLIMIT_CORE, NULL, &now) == 0 && memcmp(&now, &before, sizeof now) == 0);
    EXPECT(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 50, 60 }) == 0);
    EXPECT(getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_max == 60);
}

static void the_limit_of_core_files_stays_what_it_is(void **state)
{
    (void)state;
    assert_child_passes(core_limit, NULL);
}

static void attributes_of_files(void *arg)
{
    int fd = open(arg, O_RDONLY | O_DIRECTORY);
    char value[8];

    load(SECCOMP_SESSION);
    EXPECT_ERRNO(setxattr(arg, "user.a", "b", 1, 0), EOPNOTSUPP);
    EXPECT_ERRNO(lsetxattr(arg, "system.posix_acl_access", "b", 1, 0), EOPNOTSUPP);
    EXPECT_ERRNO(fsetxattr(fd, "system.posix_acl_default", "b", 1, 0), EOPNOTSUPP);
    EXPECT(getxattr(arg, "user.a", value, sizeof value) == -1 && errno != EPERM);
    EXPECT(listxattr(arg, value, 0) >= 0);
    EXPECT(removexattr(arg, "user.a") == -1 && errno != EPERM);
}

static void no_file_gets_an_attribute_or_access_list(void **state)
{
    (void)state;
    char dir[] = "/tmp/hc-attributes-XXXXXX";

    assert_non_null(mkdtemp(dir));
    assert_child_passes(attributes_of_files, dir);
    assert_int_equal(rmdir(dir), 0);
}

static void advice(void *arg)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = open("/bin/true", O_RDONLY);

    (void)arg;
    EXPECT(page != MAP_FAILED && fd >= 0);
    load(SECCOMP_SESSION);
    EXPECT(syscall(SYS_fadvise64, fd, 0, 0, POSIX_FADV_WILLNEED) == 0);
    EXPECT_ERRNO(syscall(SYS_fadvise64, -1, 0, 0, POSIX_FADV_WILLNEED), EBADF);
    /* answered, and nothing looked at */
    EXPECT(syscall(SYS_fadvise64, -1, 0, 0, POSIX_FADV_DONTNEED) == 0);
    EXPECT(syscall(SYS_fadvise64, -1, 0, 0, JUNK | POSIX_FADV_DONTNEED) == 0);
    EXPECT(madvise(page, 4096, MADV_DONTNEED) == 0);
    EXPECT_ERRNO(madvise(page, 4096, MADV_MERGEABLE), EINVAL);
    EXPECT_ERRNO(madvise(page, 4096, MADV_PAGEOUT), EINVAL);
    EXPECT_ERRNO(syscall(SYS_madvise, page, 4096, JUNK | MADV_MERGEABLE), EINVAL);
    EXPECT_ERRNO(prctl(67 /* PR_SET_MEMORY_MERGE */, 1, 0, 0, 0), EPERM);
}

static void advice_does_not_reach_what_is_shared(void **state)
{
    (void)state;
    assert_child_passes(advice, NULL);
}

static void out_of_band(void *arg)
{
    char byte = 0;
    struct iovec part = { &byte, 1 };
    struct mmsghdr messages = { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } };
    int fds[2];

    (void)arg;
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    load(SECCOMP_SESSION);
    EXPECT_ERRNO(send(fds[0], "a", 1, MSG_OOB), EOPNOTSUPP);
    EXPECT_ERRNO(sendmsg(fds[0], &messages.msg_hdr, MSG_OOB | MSG_DONTWAIT), EOPNOTSUPP);
    EXPECT_ERRNO(sendmmsg(fds[0], &messages, 1, MSG_OOB), EOPNOTSUPP);
    EXPECT(send(fds[0], "a", 1, MSG_NOSIGNAL) == 1);
    EXPECT(sendmsg(fds[0], &messages.msg_hdr, MSG_NOSIGNAL | MSG_DONTWAIT) == 1);
    EXPECT(sendmmsg(fds[0], &messages, 1, MSG_NOSIGNAL) == 1);
}

static void nothing_is_sent_out_of_band(void **state)
{
    (void)state;
    assert_child_passes(out_of_band, NULL);
}

static void memory_files_and_signals_work(void **state)
{
    (void)state;
    assert_child_passes(useful_calls, NULL);
}

#if defined(__x86_64__)
static void call_by_interrupt(void *arg)
{
    long r = 20; /* getpid of i386 */

    (void)arg;
    load(SECCOMP_SESSION);
    __asm__ volatile("int $0x80" : "+a"(r) : : "memory");
}

static void call_x32(void *arg)
{
    (void)arg;
    load(SECCOMP_SESSION);
    syscall(0x40000000L | SYS_getpid);
}

static void foreign_calls_kill_the_process(void **state)
{
    (void)state;
    int status = in_child(call_by_interrupt, NULL);

    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
    status = in_child(call_x32, NULL);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
}
#endif

static void init_calls(void *arg)
{
    (void)arg;
    load(SECCOMP_INIT);
    EXPECT(syscall(SYS_inotify_init1, O_CLOEXEC) >= 0);
    EXPECT(prctl(PR_CAPBSET_DROP, 0, 0, 0, 0) == 0);
    EXPECT_ERRNO(syscall(SYS_ptrace, 0, 0, 0, 0), EPERM);
    EXPECT_ERRNO(syscall(SYS_unshare, CLONE_NEWNS), EPERM);
    EXPECT_ERRNO(syscall(SYS_seccomp, 0 /* strict mode */, 0, NULL), EPERM);
    EXPECT(syscall(SYS_setresuid, 1000, 1000, 1000) == 0);
    load(SECCOMP_SESSION); /* on top, as its children do */
    EXPECT_ERRNO(syscall(SYS_setresuid, 1000, 1000, 1000), EPERM);
    EXPECT_ERRNO(syscall(SYS_inotify_init1, 0), ENOSYS);
    EXPECT_ERRNO(syscall(SYS_socket, AF_NETLINK, SOCK_RAW, 0), EOPNOTSUPP);
}

static void init_may_take_a_child_through_the_drop_and_no_more(void **state)
{
    (void)state;
    assert_child_passes(init_calls, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_namespaces_are_refused_and_plain_children_are_not),
        cmocka_unit_test(only_unix_and_internet_sockets_can_be_made),
        cmocka_unit_test(pairs_of_sockets_are_unix_ones),
        cmocka_unit_test(a_terminal_works_and_takes_no_injection),
        cmocka_unit_test(attributes_of_a_process_are_on_a_short_list),
        cmocka_unit_test(fifos_can_be_made_and_devices_cannot),
        cmocka_unit_test(what_nobody_needs_is_refused),
        cmocka_unit_test(huge_pages_of_the_host_are_refused),
        cmocka_unit_test(nobody_waits_for_the_last_close_of_a_socket),
        cmocka_unit_test(no_option_of_a_socket_takes_uncounted_memory),
        cmocka_unit_test(the_limit_of_core_files_stays_what_it_is),
        cmocka_unit_test(no_file_gets_an_attribute_or_access_list),
        cmocka_unit_test(advice_does_not_reach_what_is_shared),
        cmocka_unit_test(nothing_is_sent_out_of_band),
        cmocka_unit_test(memory_files_and_signals_work),
#if defined(__x86_64__)
        cmocka_unit_test(foreign_calls_kill_the_process),
#endif
        cmocka_unit_test(init_may_take_a_child_through_the_drop_and_no_more),
    };

    if (geteuid() != 0) {
        print_message("skipped: needs root\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
