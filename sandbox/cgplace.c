#include "cgplace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "cgfile.h"
#include "err.h"

static const char *const controller_names[CGPLACE_CONTROLLERS] = { "memory", "pids", "cpu" };
static const char own_leaf[] = "holdcell-main";

/* "a,b,c" or "a b c" holds the word. */
static int has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = list; (p = strstr(p, word)) != NULL; p += n)
        if ((p == list || strchr(", ", p[-1]) != NULL) && (p[n] == '\0' || strchr(", \n", p[n])))
            return 1;
    return 0;
}

struct found_mounts {
    char unified[PATH_MAX];
    char unified_root[PATH_MAX]; /* the group that is mounted there: "/" but in containers */
    char v1[CGPLACE_CONTROLLERS][PATH_MAX];
};

/* One line of mountinfo (proc(5)): id parent dev root point options ... - type source super. */
static void look_at_mount(char *line, struct found_mounts *m)
{
    char root[PATH_MAX], point[PATH_MAX], type[32], super[512];
    char *dash = strstr(line, " - ");

    if (dash == NULL || sscanf(line, "%*d %*d %*s %4095s %4095s", root, point) != 2 ||
        sscanf(dash + 3, "%31s %*s %511s", type, super) != 2)
        return;
    if (strcmp(type, "cgroup2") == 0 && m->unified[0] == '\0') {
        snprintf(m->unified, sizeof m->unified, "%s", point);
        snprintf(m->unified_root, sizeof m->unified_root, "%s", root);
    }
    if (strcmp(type, "cgroup") != 0)
        return;
    for (unsigned i = 0; i < CGPLACE_CONTROLLERS; i++)
        if (m->v1[i][0] == '\0' && has_word(super, controller_names[i]))
            snprintf(m->v1[i], sizeof m->v1[i], "%s", point);
}

static int read_mounts(struct found_mounts *ret, struct err *e)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    autofree char *line = NULL;
    size_t size = 0;

    memset(ret, 0, sizeof *ret);
    if (f == NULL)
        return err_sys(e, errno, "open /proc/self/mountinfo");
    while (getline(&line, &size, f) > 0)
        look_at_mount(line, ret);
    fclose(f);
    return 0;
}

/* Our group in the unified tree ("0::" line), as a path below its mount. */
static int own_group(char *ret, size_t size)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    autofree char *line = NULL;
    size_t n = 0;
    int r = -ENOENT;

    if (f == NULL)
        return -errno;
    while (getline(&line, &n, f) > 0)
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = '\0';
            r = snprintf(ret, size, "%s", line + 3) < (int)size ? 0 : -ENAMETOOLONG;
        }
    fclose(f);
    return r;
}

/* The unified tree exists on every kernel, mounted or not; on a host with v1 alone
 * a detached mount of it gives us cgroup.kill and CLONE_INTO_CGROUP all the same. */
static int mount_unified(int *ret_fd, struct err *e)
{
    autoclose int fs = fsopen("cgroup2", FSOPEN_CLOEXEC);

    if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_sys(e, errno, "create a cgroup2 mount");
    int fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "mount cgroup2");
    *ret_fd = fd;
    return 0;
}

static int open_dir(const char *path, int *ret_fd, struct err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, errno, "open cgroup '%s'", path);
    *ret_fd = fd;
    return 0;
}

/* What the operator named. */
static int open_parent(const char *path, int *ret_fd, struct err *e)
{
    struct statfs fs;
    autoclose int fd = -1;
    int r = open_dir(path, &fd, e);

    if (r < 0)
        return r;
    if (fstatfs(fd, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
        return err_set(e, EINVAL, "'%s' is no directory of a cgroup2 mount", path);
    *ret_fd = take_fd(&fd);
    return 0;
}

/* systemd marks the groups that it hands over (Delegate=yes). */
static int is_delegated(int fd)
{
    static const char *const names[] = { "user.delegate", "trusted.delegate" };
    char value[8];

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (fgetxattr(fd, names[i], value, sizeof value) > 0 && value[0] == '1')
            return 1;
    return 0;
}

/* Moves every process of the group at fd into its leaf. New ones may appear while
 * we move: their parent is moved in the end, so a few rounds reach all. */
static int empty_group(int fd, struct err *e)
{
    autoclose int leaf = -1;
    int r = cgfile_make_dir(fd, own_leaf, &leaf);

    if (r < 0)
        return err_sys(e, -r, "make cgroup '%s'", own_leaf);
    for (int round = 0; round < 16; round++) {
        char text[16384];
        unsigned moved = 0;

        r = cgfile_read(fd, "cgroup.procs", text, sizeof text);
        if (r < 0)
            return err_sys(e, -r, "read cgroup.procs");
        /* Whole lines only: a number that was cut would be another process. */
        for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            long pid = strtol(line, NULL, 10);

            /* 0: a process of another pid namespace; it cannot be moved from here. */
            r = pid > 0 ? cgfile_write(leaf, "cgroup.procs", "%ld", pid) : 0;
            if (r < 0 && r != -ESRCH)
                return err_sys(e, -r, "move process %ld to '%s'", pid, own_leaf);
            moved++;
        }
        if (moved == 0)
            return 0;
    }
    return err_set(e, EBUSY, "processes keep appearing in our own cgroup");
}

/* In a group of our own, the server's processes come before its sessions: for processor time,
 * and, as far as the unit itself is protected (MemoryLow=), for memory. Older kernels lack
 * some of it, and it is no more than a preference. */
static void prefer_own_leaf(int fd)
{
    autoclose int leaf = -1;

    if (cgfile_open_dir(fd, own_leaf, &leaf) < 0)
        return;
    (void)!cgfile_write(leaf, "cpu.weight", "%d", 1000);
    (void)!cgfile_write(leaf, "memory.low", "%d", 256 << 20);
}

/* Lets children of fd have the controllers. */
static int share_controllers(int fd, int ours, struct err *e)
{
    char have[512];
    int r = cgfile_read(fd, "cgroup.controllers", have, sizeof have);

    if (r < 0)
        return err_sys(e, -r, "read cgroup.controllers");
    for (unsigned i = 0; i < CGPLACE_CONTROLLERS; i++)
        if (!has_word(have, controller_names[i]))
            return err_set(e, ENOTSUP, "the cgroup that is ours to divide has no %s controller",
                           controller_names[i]);
    r = cgfile_write(fd, "cgroup.subtree_control", "+memory +pids +cpu");
    if (r == -EBUSY && ours) {
        r = empty_group(fd, e);
        if (r < 0)
            return r;
        r = cgfile_write(fd, "cgroup.subtree_control", "+memory +pids +cpu");
    }
    if (r == 0 && ours)
        prefer_own_leaf(fd);
    return r < 0 ? err_sys(e, -r, "hand out cgroup controllers") : 0;
}

/* The group below which the base goes: our own when it is delegated, else the root. */
static int find_v2_group(const char *mount, const char *mount_root, int *ret_fd, int *ret_ours,
                         struct err *e)
{
    char own[PATH_MAX], path[2 * PATH_MAX];
    autoclose int fd = -1;
    int r = own_group(own, sizeof own);

    if (r < 0)
        return err_sys(e, -r, "find our own cgroup");
    char *last = strrchr(own, '/');
    if (strcmp(last + 1, own_leaf) == 0)
        *last = '\0'; /* an earlier start moved us here */
    /* A container without a cgroup namespace mounts a part of the tree only. */
    size_t skip = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);
    if (strncmp(own, mount_root, skip) != 0)
        skip = 0;
    snprintf(path, sizeof path, "%s%s", mount, own + skip);
    r = open_dir(path, &fd, e);
    if (r < 0)
        return r;
    *ret_ours = 1;
    if (own[0] != '\0' && strcmp(own, "/") != 0 && !is_delegated(fd)) {
        closep(&fd);
        r = open_dir(mount, &fd, e);
        if (r < 0)
            return r;
        *ret_ours = 0;
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

static int place_v2(const char *parent, const struct found_mounts *m, struct cgplace *p,
                    struct err *e)
{
    int ours = 0;
    int r = parent != NULL ? open_parent(parent, &p->unified_fd, e)
                           : find_v2_group(m->unified, m->unified_root, &p->unified_fd, &ours, e);

    if (r == 0)
        r = share_controllers(p->unified_fd, ours, e);
    return r < 0 && parent != NULL ? err_wrap(e, "--cgroup-parent") : r;
}

static int place_v1(const struct found_mounts *m, struct cgplace *p, struct err *e)
{
    for (unsigned i = 0; i < CGPLACE_CONTROLLERS; i++) {
        unsigned same = 0;

        if (m->v1[i][0] == '\0')
            return err_set(e, ENOTSUP, "no mounted cgroup hierarchy has the %s controller",
                           controller_names[i]);
        while (strcmp(m->v1[same], m->v1[i]) != 0)
            same++;
        p->v1_of[i] = (enum cgplace_controller)same;
        if (same != i)
            continue;
        int r = open_dir(m->v1[i], &p->v1_fd[i], e);
        if (r < 0)
            return r;
    }
    return 0;
}

int cgplace_find(const char *parent, struct cgplace *ret, struct err *e)
{
    struct cgplace p = { .unified_fd = -1, .v1_fd = { -1, -1, -1 } };
    struct found_mounts m;
    int r = read_mounts(&m, e);

    if (r < 0)
        return r;
    p.is_v2 = m.v1[CGPLACE_MEMORY][0] == '\0' && m.unified[0] != '\0';
    if (p.is_v2) {
        r = place_v2(parent, &m, &p, e);
    } else if (parent != NULL) {
        /* One path cannot name a group in each of the hierarchies. */
        r = err_set(e, ENOTSUP,
                    "--cgroup-parent works with cgroup v2 alone: this host has its memory "
                    "controller in v1");
    } else {
        r = m.unified[0] != '\0' ? open_dir(m.unified, &p.unified_fd, e)
                                 : mount_unified(&p.unified_fd, e);
        if (r == 0)
            r = place_v1(&m, &p, e);
    }
    if (r < 0) {
        cgplace_close(&p);
        return r;
    }
    *ret = p;
    return 0;
}

void cgplace_close(struct cgplace *p)
{
    closep(&p->unified_fd);
    for (unsigned i = 0; i < CGPLACE_CONTROLLERS; i++)
        closep(&p->v1_fd[i]);
}
