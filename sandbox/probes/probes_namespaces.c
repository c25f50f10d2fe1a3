/* Namespaces and ids: each is made as a session's is, and then looked at from both sides. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "birth.h"
#include "box.h"
#include "cgfile.h"
#include "err.h"
#include "probes.h"

enum { IDS = 0x10000, BACKLOG = 4 };

/* In the initial user namespace, or in one that maps the ids of the instance. */
static int maps_our_ids(uint32_t base, struct err *e)
{
    FILE *f = fopen("/proc/self/uid_map", "re");
    unsigned long long inside, outside, count;
    int found = 0;

    if (f == NULL)
        return err_sys(e, errno, "open /proc/self/uid_map");
    while (fscanf(f, "%llu %llu %llu", &inside, &outside, &count) == 3)
        found |= base >= inside && base + (uint64_t)IDS <= inside + count;
    fclose(f);
    return found ? 0
                 : err_set(e, EPERM, "a user namespace without the ids %u to %u", base,
                           base + IDS - 1);
}

int probe_privileges(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    static const struct {
        unsigned bit;
        const char *name;
    } needed[] = { { CAP_CHOWN, "CHOWN" },        { CAP_DAC_OVERRIDE, "DAC_OVERRIDE" },
                   { CAP_FOWNER, "FOWNER" },      { CAP_KILL, "KILL" },
                   { CAP_SETGID, "SETGID" },      { CAP_SETUID, "SETUID" },
                   { CAP_MKNOD, "MKNOD" },        { CAP_SETPCAP, "SETPCAP" },
                   { CAP_SYS_ADMIN, "SYS_ADMIN" } };
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2];

    if (geteuid() != 0)
        return err_set(e, EPERM, "not root");
    if (syscall(SYS_capget, &head, data) < 0)
        return err_sys(e, errno, "read the capabilities");
    for (unsigned i = 0; i < sizeof needed / sizeof *needed; i++)
        if ((data[0].effective >> needed[i].bit & 1) == 0)
            return err_set(e, EPERM, "no CAP_%s", needed[i].name);
    int r = maps_our_ids(env->id_base, e);
    if (r == 0 && (data[0].effective >> CAP_SYS_RESOURCE & 1) == 0)
        probe_say(ret, HOSTWALL_PRESENT, "without SYS_RESOURCE: limits cannot be raised");
    return r;
}

/* The outer one; a nested one that does not work is no failure of this wall. */
int probe_user_namespace(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct userns own;
    const struct userns *u;

    (void)ret;
    return box_userns(env, &own, &u, e);
}

static int reads_as(const char *path, char value)
{
    char text[16] = "";
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && read(fd, text, sizeof text - 1) > 0 && text[0] == value;
}

int probe_nested_user_namespace(const struct probe_env *env, struct probe_result *ret,
                                struct err *e)
{
    struct userns own;
    const struct userns *u;
    const char *why = "";
    int r = box_userns(env, &own, &u, e);

    if (r < 0)
        return r;
    if (u->outer_fd >= 0)
        return 0;
    if (reads_as("/proc/sys/kernel/unprivileged_userns_clone", '0'))
        why = " (kernel.unprivileged_userns_clone is 0)";
    else if (reads_as("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1'))
        why = " (kernel.apparmor_restrict_unprivileged_userns is 1)";
    probe_say(ret, HOSTWALL_WEAKER, "one level: the host refuses a namespace below the outer one%s",
              why);
    return 0;
}

/* ---- ids ---- */

static int ids_inside(void *arg, int channel_fd, struct err *e)
{
    const struct userns *u = arg;
    char text[256], want[128];
    autoclose int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint32_t base = u->outer_fd >= 0 ? 0 : u->id_base + USERNS_OUTER_FIRST;
    unsigned id[2], to[2], count[2];

    (void)channel_fd;
    if (proc < 0 || cgfile_read(proc, "uid_map", text, sizeof text) < 0)
        return err_sys(e, errno, "read the map of ids");
    if (sscanf(text, "%u %u %u %u %u %u", &id[0], &to[0], &count[0], &id[1], &to[1], &count[1]) !=
        6)
        return err_set(e, EPROTO, "the map of ids is not the one that was written");
    snprintf(want, sizeof want, "%u>%u %u>%u", 0, base + userns_outer_init(BOX_INDEX),
             USERNS_USER_ID, base + userns_outer_user(BOX_INDEX));
    snprintf(text, sizeof text, "%u>%u %u>%u", id[0], to[0], id[1], to[1]);
    if (strcmp(text, want) != 0 || count[0] != 1 || count[1] != 1)
        return err_set(e, EPROTO, "ids are mapped as %s, not as %s", text, want);
    if (syscall(SYS_setresuid, 1, 1, 1) == 0)
        return err_set(e, EPROTO, "an id that is not mapped can be taken");
    return 0;
}

int probe_id_maps(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct userns own;
    const struct userns *u;
    int r = box_userns(env, &own, &u, e);

    (void)ret;
    return r < 0 ? r : box_run(env, ids_inside, NULL, (void *)(uintptr_t)u, e);
}

/* ---- one each ---- */

static int pid_inside(void *arg, int channel_fd, struct err *e)
{
    const pid_t *outside = arg;

    (void)channel_fd;
    if (getpid() != 1)
        return err_set(e, EPROTO, "the first process has number %d", (int)getpid());
    if (kill(*outside, 0) == 0 || errno != ESRCH)
        return err_set(e, EPROTO, "process %d of the host can be named", (int)*outside);
    return 0;
}

int probe_pid_namespace(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    pid_t outside = getpid();

    (void)ret;
    return box_run(env, pid_inside, NULL, &outside, e);
}

static int mount_inside(void *arg, int channel_fd, struct err *e)
{
    char done = 'm';

    (void)arg;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(e, errno, "make mounts private");
    if (mount("probe", "/", "tmpfs", 0, NULL) < 0)
        return err_sys(e, errno, "mount a tmpfs");
    if (write(channel_fd, &done, 1) != 1 || read(channel_fd, &done, 1) < 0)
        return err_sys(e, errno, "talk to the probe");
    return 0;
}

static unsigned count_mounts(void)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    unsigned lines = 0;

    for (int c; f != NULL && (c = fgetc(f)) != EOF;)
        lines += c == '\n';
    if (f != NULL)
        fclose(f);
    return lines;
}

static int mount_outside(pid_t pid, void *arg, int channel_fd, struct err *e)
{
    struct stat before, after;
    unsigned mounts = count_mounts();
    char done;

    (void)pid;
    (void)arg;
    if (stat("/", &before) < 0 || read(channel_fd, &done, 1) != 1)
        return err_sys(e, errno, "listen to the process");
    if (count_mounts() != mounts || stat("/", &after) < 0 || after.st_ino != before.st_ino ||
        after.st_dev != before.st_dev)
        return err_set(e, EPROTO, "a mount inside is seen outside");
    return 0;
}

int probe_mount_namespace(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    (void)ret;
    return box_run(env, mount_inside, mount_outside, NULL, e);
}

struct ipc {
    struct stat ns; /* the host's */
    int segment;    /* -1: the launcher's own filter refuses shared memory */
};

static int ipc_inside(void *arg, int channel_fd, struct err *e)
{
    const struct ipc *ipc = arg;
    struct shmid_ds ds;
    struct stat st;

    (void)channel_fd;
    if (stat("/proc/self/ns/ipc", &st) < 0)
        return err_sys(e, errno, "look at its namespace");
    if (st.st_ino == ipc->ns.st_ino)
        return err_set(e, EPROTO, "the namespace is the host's");
    if (ipc->segment < 0)
        return 0;
    if (shmctl(ipc->segment, IPC_STAT, &ds) == 0 || errno != EINVAL)
        return err_set(e, EPROTO, "shared memory of the host can be named");
    return 0;
}

int probe_ipc_namespace(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct ipc ipc = { .segment = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) };

    (void)ret;
    if (stat("/proc/self/ns/ipc", &ipc.ns) < 0)
        return err_sys(e, errno, "look at the host's namespace");
    if (ipc.segment < 0 && errno != EPERM)
        return err_sys(e, errno, "make shared memory");
    if (ipc.segment >= 0) {
        /* Attached and removed: it goes with this process, however that ends. */
        void *at = shmat(ipc.segment, NULL, 0);

        shmctl(ipc.segment, IPC_RMID, NULL);
        if (at == (void *)-1)
            return err_sys(e, errno, "attach shared memory");
    }
    return box_run(env, ipc_inside, NULL, &ipc, e);
}

static int uts_inside(void *arg, int channel_fd, struct err *e)
{
    (void)arg;
    (void)channel_fd;
    return birth_name_host(e);
}

int probe_uts_namespace(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct utsname before, after;

    (void)ret;
    uname(&before);
    int r = box_run(env, uts_inside, NULL, NULL, e);
    uname(&after);
    if (r == 0 && strcmp(before.nodename, after.nodename) != 0)
        r = err_set(e, EPROTO, "the host's own name was changed");
    return r;
}

static int cgroup_inside(void *arg, int channel_fd, struct err *e)
{
    char text[4096], *line;
    autoclose int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)arg;
    (void)channel_fd;
    if (proc < 0 || cgfile_read(proc, "cgroup", text, sizeof text) < 0)
        return err_sys(e, errno, "read its groups");
    for (line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        if (strcmp(line + strlen(line) - 2, ":/") != 0)
            return err_set(e, EPROTO, "the groups of the host are seen inside: %.80s", line);
    return 0;
}

int probe_cgroup_namespace(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    (void)ret;
    return box_run(env, cgroup_inside, NULL, NULL, e);
}

/* ---- network ---- */

static int listen_on_loopback(int *ret_fd, struct sockaddr_in *ret_at, struct err *e)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof at;
    autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        return err_sys(e, errno, "listen on 127.0.0.1");
    *ret_at = at;
    *ret_fd = take_fd(&fd);
    return 0;
}

static int connect_to(const struct sockaddr_in *at)
{
    autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)at, sizeof *at) < 0)
        return -errno;
    return 0;
}

static int network_inside(void *arg, int channel_fd, struct err *e)
{
    (void)channel_fd;
    int r = birth_loopback_up(e);

    if (r == 0 && connect_to(arg) == 0)
        return err_set(e, EPROTO, "a server on the host's loopback is reached from inside");
    return r;
}

int probe_network_namespace(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct sockaddr_in at;
    autoclose int fd = -1;
    int r = listen_on_loopback(&fd, &at, e);

    (void)ret;
    if (r == 0 && (r = connect_to(&at)) < 0) /* or the refusal inside would prove nothing */
        return err_sys(e, -r, "reach a server on the host's own loopback");
    return r < 0 ? r : box_run(env, network_inside, NULL, &at, e);
}

static int loopback_inside(void *arg, int channel_fd, struct err *e)
{
    struct sockaddr_in at;
    autoclose int fd = -1;

    (void)arg;
    (void)channel_fd;
    int r = birth_loopback_up(e);
    if (r == 0)
        r = listen_on_loopback(&fd, &at, e);
    if (r == 0 && (r = connect_to(&at)) < 0)
        r = err_sys(e, -r, "reach a server of its own");
    return r;
}

int probe_loopback(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    (void)ret;
    return box_run(env, loopback_inside, NULL, NULL, e);
}

/* ---- a listener inside that the host holds ---- */

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

static int send_fd(int channel_fd, int fd, struct err *e)
{
    union control control = { { 0 } };
    char byte = 'f';
    struct iovec iov = { &byte, 1 };
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return sendmsg(channel_fd, &m, 0) == 1 ? 0 : err_sys(e, errno, "hand out a socket");
}

static int receive_fd(int channel_fd, int *ret_fd, struct err *e)
{
    union control control;
    char byte;
    struct iovec iov = { &byte, 1 };
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };

    if (recvmsg(channel_fd, &m, MSG_CMSG_CLOEXEC) != 1)
        return err_sys(e, errno, "take the socket");
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c == NULL || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof *ret_fd))
        return err_set(e, EPROTO, "no socket came");
    memcpy(ret_fd, CMSG_DATA(c), sizeof *ret_fd);
    return 0;
}

static int listener_inside(void *arg, int channel_fd, struct err *e)
{
    struct sockaddr_in at;
    autoclose int fd = -1;

    (void)arg;
    int r = birth_loopback_up(e);
    if (r == 0)
        r = listen_on_loopback(&fd, &at, e);
    if (r == 0)
        r = send_fd(channel_fd, fd, e);
    if (r == 0 && (r = connect_to(&at)) < 0)
        r = err_sys(e, -r, "reach the socket that the host holds");
    return r;
}

static int listener_outside(pid_t pid, void *arg, int channel_fd, struct err *e)
{
    autoclose int fd = -1;
    int r = receive_fd(channel_fd, &fd, e);

    (void)pid;
    (void)arg;
    if (r < 0)
        return r;
    autoclose int one = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    return one < 0 ? err_sys(e, errno, "accept who came from inside") : 0;
}

int probe_namespace_listener(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    (void)ret;
    return box_run(env, listener_inside, listener_outside, NULL, e);
}
