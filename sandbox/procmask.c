#include "procmask.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

#include "buf.h"
#include "err.h"
#include "launchmsg.h"
#include "mountfd.h"
#include "sockmem.h"
#include "walls.h"

/* Files of our own, same name in proc. */
static const char *const replaced[] = {
    "cpuinfo", "loadavg", "meminfo", "stat", "uptime", "vmstat",
};

/* The entries of proc's root that stay, beside the folders of processes. All others get an empty read-only
 * file (never /dev/null, which would swallow writes) or an empty folder over them: so does what a future
 * kernel adds. */
static const char *const kept[] = {
    "filesystems", "sys", /* and links: mounts, net, self, thread-self */
};

/* The same below proc/sys, where most entries are settings and harmless. */
static const char *const emptied[] = {
    "sys/fs/aio-nr",      "sys/fs/dentry-state", "sys/fs/file-nr",     "sys/fs/inode-nr",
    "sys/fs/inode-state", "sys/kernel/pty/nr",   "sys/kernel/tainted", "sys/kernel/random/boot_id",
};
static const char emptied_folder[] = "sys/fs/quota"; /* counts every sync(2) */

/* Of /proc/net, which is a link into the folder of whoever looks: what tells of one network namespace
 * only. Others count for the whole host (sockstat, protocols, softnet_stat, stat ...), or might. */
static const char *const kept_in_net[] = {
    "anycast6", "arp",  "dev",     "dev_mcast",  "dev_snmp6", "fib_trie",  "icmp",    "icmp6",
    "if_inet6", "igmp", "igmp6",   "ipv6_route", "mcfilter",  "mcfilter6", "netlink", "netstat",
    "packet",   "raw",  "raw6",    "route",      "snmp",      "snmp6",     "tcp",     "tcp6",
    "udp",      "udp6", "udplite", "udplite6",   "unix",
};

static unsigned cores(const struct launch_limits *l)
{
    return l->cpu_millis > 1000 ? (l->cpu_millis + 999) / 1000 : 1;
}

static int print_meminfo(FILE *f, const struct launch_limits *l)
{
    static const char *const zero[] = {
        "Buffers",      "Cached",      "SwapCached",      "Active",         "Inactive",
        "SwapTotal",    "SwapFree",    "Dirty",           "Writeback",      "AnonPages",
        "Mapped",       "Shmem",       "KReclaimable",    "Slab",           "SReclaimable",
        "SUnreclaim",   "KernelStack", "PageTables",      "CommitLimit",    "Committed_AS",
        "VmallocTotal", "VmallocUsed", "HugePages_Total", "HugePages_Free",
    };
    uint64_t kb = l->memory_bytes / 1024;

    fprintf(f,
            "MemTotal: %15" PRIu64 " kB\nMemFree: %16" PRIu64 " kB\nMemAvailable: %11" PRIu64
            " kB\n",
            kb, kb, kb);
    for (unsigned i = 0; i < sizeof zero / sizeof *zero; i++)
        fprintf(f, strncmp(zero[i], "Huge", 4) == 0 ? "%s: %*d\n" : "%s: %*d kB\n", zero[i],
                (int)(23 - strlen(zero[i])), 0);
    return 0;
}

static int print_stat(FILE *f, const struct launch_limits *l)
{
    fprintf(f, "cpu  0 0 0 0 0 0 0 0 0 0\n");
    for (unsigned i = 0; i < cores(l); i++)
        fprintf(f, "cpu%u 0 0 0 0 0 0 0 0 0 0\n", i);
    fprintf(
        f, "intr 0\nctxt 0\nbtime %lld\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0\n",
        (long long)time(NULL));
    return 0;
}

/* What programs choose their code by, and what is the same for all processors of a kind. Not the rest: the
 * frequency follows what others do, and numbers of sockets, microcode and calibration tell hosts apart. */
static const char *const cpu_keys[] = {
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "cache size",
    "fpu",
    "fpu_exception",
    "cpuid level",
    "wp",
    "flags",
    "bugs",
    "clflush size",
    "cache_alignment",
    "address sizes",
    /* ARM */
    "Features",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
};

static int is_shown_of_cpu(const char *line)
{
    size_t n = strcspn(line, ":");

    while (n > 0 && (line[n - 1] == '\t' || line[n - 1] == ' '))
        n--;
    for (unsigned i = 0; i < sizeof cpu_keys / sizeof *cpu_keys; i++)
        if (strlen(cpu_keys[i]) == n && strncmp(cpu_keys[i], line, n) == 0)
            return 1;
    return 0;
}

/* The host's first processor, as many times as the session has: libraries choose their code by the flags, which
 * must be true. */
static int print_cpuinfo(FILE *f, const struct launch_limits *l)
{
    FILE *host = fopen("/proc/cpuinfo", "re");
    autofree char *line = NULL;
    autobuf struct buf kind = { 0 };
    size_t size = 0;
    ssize_t n;
    int r = 0;

    if (host == NULL)
        return -errno;
    buf_init(&kind, 64 * 1024);
    /* An empty line ends an entry. */
    while (r == 0 && (n = getline(&line, &size, host)) > 0 && line[0] != '\n')
        if (is_shown_of_cpu(line))
            r = buf_add(&kind, line, (size_t)n);
    fclose(host);
    for (unsigned i = 0; r == 0 && i < cores(l); i++) {
        fprintf(f, "processor\t: %u\n", i);
        fwrite(kind.data, 1, kind.tail, f);
        fprintf(f, "physical id\t: 0\nsiblings\t: %u\ncore id\t\t: %u\ncpu cores\t: %u\n\n",
                cores(l), i, cores(l));
    }
    return r;
}

static int print_loadavg(FILE *f, const struct launch_limits *l)
{
    (void)l;
    fputs("0.00 0.00 0.00 1/1 1\n", f);
    return 0;
}

static int print_uptime(FILE *f, const struct launch_limits *l)
{
    (void)l;
    fputs("1.00 1.00\n", f);
    return 0;
}

static int print_vmstat(FILE *f, const struct launch_limits *l)
{
    (void)l;
    fputs("pgpgin 0\npgpgout 0\npswpin 0\npswpout 0\npgfault 0\npgmajfault 0\noom_kill 0\n", f);
    return 0;
}

static int (*const printers[])(FILE *, const struct launch_limits *) = {
    print_cpuinfo, print_loadavg, print_meminfo, print_stat, print_uptime, print_vmstat,
};

static int make_file(int dirfd, const char *name, FILE **ret, struct err *e)
{
    int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    if (f == NULL) {
        int r = err_sys(e, errno, "make '%s'", name);
        closep(&fd);
        return r;
    }
    *ret = f;
    return 0;
}

static int fill(int dirfd, void *arg, struct err *e)
{
    const struct launch_limits *limits = arg;
    FILE *f;
    int r;

    for (unsigned i = 0; i < sizeof replaced / sizeof *replaced; i++) {
        r = make_file(dirfd, replaced[i], &f, e);
        if (r < 0)
            return r;
        r = printers[i](f, limits);
        if (fclose(f) != 0 && r == 0)
            r = -errno;
        if (r < 0)
            return err_sys(e, -r, "write '%s'", replaced[i]);
    }
    r = make_file(dirfd, "empty", &f, e);
    if (r < 0)
        return r;
    fclose(f);
    if (mkdirat(dirfd, "none", 0555) < 0)
        return err_sys(e, errno, "make an empty folder");
    return 0;
}

int procmask_new(const struct launch_limits *limits, int *ret_fd, struct err *e)
{
    const struct mountfd_tmpfs t = {
        .source = "proc",
        .bytes = 1 << 20,
        .inodes = 32,
        .mode = 0555,
        .attributes = MOUNTFD_DATA | MOUNT_ATTR_NOEXEC,
    };

    return mountfd_sealed(&t, fill, (void *)(uintptr_t)limits, ret_fd, e) < 0
               ? err_wrap(e, "files over /proc")
               : 0;
}

static int mount_proc(struct err *e)
{
    autoclose int fs = fsopen("proc", FSOPEN_CLOEXEC);

    if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", "proc", 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "hidepid", "invisible", 0) < 0)
        return err_sys(e, errno, "prepare /proc");
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_sys(e, errno, "make a proc file system");
    autoclose int fd =
        fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    /* EPERM here: the visible /proc has mounts on top of it, as in many containers. */
    if (fd < 0)
        return err_sys(e, errno, "mount a fresh proc (is the host's /proc fully visible?)");
    return mountfd_attach(fd, "proc", e);
}

/* Not every kernel has every entry. */
static int cover(const char *with, const char *name, struct err *e)
{
    char source[64], target[64];

    snprintf(source, sizeof source, "run/%s", with);
    snprintf(target, sizeof target, "proc/%s", name);
    if (mount(source, target, NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
        return err_sys(e, errno, "cover /proc/%s", name);
    return 0;
}

static int is_one_of(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], name) == 0)
            return 1;
    return 0;
}

static int cover_entry(const struct dirent *d, struct err *e)
{
    const char *name = d->d_name;

    if (name[0] == '.' || (name[0] >= '0' && name[0] <= '9') ||
        is_one_of(name, kept, sizeof kept / sizeof *kept))
        return 0;
    if (is_one_of(name, replaced, sizeof replaced / sizeof *replaced))
        return cover(name, name, e);
    if (d->d_type == DT_LNK)
        return 0; /* what it names is looked up in the session's own tree */
    return cover(d->d_type == DT_DIR ? "none" : "empty", name, e);
}

static int cover_all(struct err *e)
{
    DIR *dir = opendir("proc");
    struct dirent *d;
    int r = 0;

    if (dir == NULL)
        return err_sys(e, errno, "list /proc");
    while (r == 0 && (d = readdir(dir)) != NULL)
        r = cover_entry(d, e);
    closedir(dir);
    for (unsigned i = 0; r == 0 && i < sizeof emptied / sizeof *emptied; i++)
        r = cover("empty", emptied[i], e);
    return r == 0 ? cover("none", emptied_folder, e) : r;
}

static int protect_settings(struct err *e)
{
    static const char path[] = "proc/sys";

    if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0 ||
        mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
              NULL) < 0)
        return err_sys(e, errno, "make /proc/sys read-only");
    return 0;
}

/* Nested user namespaces would give a session packet sockets, netfilter and overlayfs of its own. */
static int forbid_user_namespaces(struct err *e)
{
    autoclose int fd = open("proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, "0\n", 2) != 2)
        return err_sys(e, errno, "forbid nested user namespaces");
    return 0;
}

int procmask_mount(int files_fd, struct err *e)
{
    int r = mount_proc(e);

    if (r == 0)
        r = mountfd_attach(files_fd, "run", e);
    if (r == 0 && !wall_is_off(WALL_USERNS))
        r = forbid_user_namespaces(e);
    if (r == 0) /* the last moment that settings can be written */
        r = sockmem_bound(e);
    if (r == 0 && !wall_is_off(WALL_PROCMASK))
        r = protect_settings(e);
    if (r == 0 && !wall_is_off(WALL_PROCMASK))
        r = cover_all(e);
    if (r == 0 && umount2("run", MNT_DETACH) < 0)
        r = err_sys(e, errno, "take the files over /proc off their place");
    return r;
}

int procmask_net(pid_t pid, struct err *e)
{
    char path[64];
    struct dirent *d;
    int r = 0;

    if (wall_is_off(WALL_PROCMASK) || wall_is_off(WALL_NETNS))
        return 0;
    snprintf(path, sizeof path, "/proc/%d/net", (int)pid);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return errno == ENOENT ? 0 : err_sys(e, errno, "list %s", path);
    while (r == 0 && (d = readdir(dir)) != NULL) {
        if (d->d_name[0] == '.' ||
            is_one_of(d->d_name, kept_in_net, sizeof kept_in_net / sizeof *kept_in_net))
            continue;
        /* ENOENT: a module of the host was unloaded. */
        if (fchmodat(dirfd(dir), d->d_name, 0, 0) < 0 && errno != ENOENT)
            r = err_sys(e, errno, "close %s/%s", path, d->d_name);
    }
    closedir(dir);
    return r;
}
