#include "extimage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "diskroom.h"
#include "err.h"
#include "loopdev.h"
#include "mountfd.h"
#include "proc.h"
#include "rlimits.h"

enum {
    BLOCK = 4096,
    GROUP = 32768, /* blocks: what one block's bitmap describes */
    INODE = 256,
    RESERVED_INODES = 11, /* ten of ext4's own, and our outputs/ */
    JOURNAL_SMALL = 1024, /* blocks, the least there can be */
    JOURNAL = 4096,       /* from 1 GiB on */
    DESCRIPTOR = 64,
    PAD = 256, /* blocks behind the file system: see extimage_size() */
    MKFS_MS = 20000,
};

/* ext4: EXT4_IOC_SHUTDOWN, since 4.11; no header of the kernel's exports it. */
#define IOC_SHUTDOWN        _IOR('X', 125, uint32_t)
#define SHUTDOWN_NOLOGFLUSH 2

static uint64_t round_up(uint64_t n, uint64_t step)
{
    return (n + step - 1) / step * step;
}

static int is_power(uint64_t n, uint64_t of)
{
    while (n % of == 0)
        n /= of;
    return n == 1;
}

/* Those with a copy of the superblock (sparse_super). */
static int has_superblock(uint64_t group)
{
    return group <= 1 || is_power(group, 3) || is_power(group, 5) || is_power(group, 7);
}

/* Blocks that bitmaps, tables and copies of the superblock take with so many groups. */
static uint64_t metadata(uint64_t groups, uint64_t inodes)
{
    const uint64_t per_group = round_up((inodes + groups - 1) / groups, BLOCK / INODE);
    const uint64_t descriptors = (groups * DESCRIPTOR + BLOCK - 1) / BLOCK;
    uint64_t blocks = groups * (2 + per_group / (BLOCK / INODE));

    for (uint64_t g = 0; g < groups; g++)
        blocks += has_superblock(g) ? 1 + descriptors : 0;
    return blocks;
}

struct layout {
    uint64_t blocks, inodes, journal;
};

/* The blocks that the files are to have come first: a group describes 32768 inodes at most, and
 * more groups for more of them would be more bytes than are allowed. */
static struct layout lay_out(const struct extimage_spec *s)
{
    const uint64_t journal = s->bytes >> 30 != 0 ? JOURNAL : JOURNAL_SMALL;
    struct layout l = { .inodes = (uint64_t)s->inodes + RESERVED_INODES,
                        .journal = s->journal ? journal : 0 };
    const uint64_t wanted = round_up(s->bytes, BLOCK) / BLOCK + 32 + l.journal;
    uint64_t before, groups;

    groups = (wanted + GROUP - 1) / GROUP;
    if (l.inodes > groups * GROUP)
        l.inodes = groups * GROUP;
    l.blocks = wanted;
    do {
        before = l.blocks;
        groups = (before + GROUP - 1) / GROUP;
        l.blocks = wanted + metadata(groups, l.inodes);
        /* ext4 keeps a fiftieth of all, 4096 at most, for itself (ext4_calculate_resv_clusters). */
        l.blocks += l.blocks / 49 < 4096 ? l.blocks / 49 + 1 : 4096;
        /* mkfs drops a last group that is too small. */
        if (groups > 1 && l.blocks < (groups - 1) * GROUP + GROUP / 16)
            l.blocks = (groups - 1) * GROUP + GROUP / 16;
    } while (l.blocks > before);
    return l;
}

/* Behind the file system some blocks stay that no file can have: signatures that a host's tools
 * look for at the end of a device (RAID members) are then not for a session to write. */
uint64_t extimage_size(const struct extimage_spec *spec)
{
    return (lay_out(spec).blocks + PAD) * BLOCK;
}

/* ---- templates ---- */

/* All that counts is said here, whatever the host's mke2fs.conf says. */
#define FEATURES                                                                                  \
    "none,filetype,extent,flex_bg,sparse_super,large_file,huge_file,dir_nlink,extra_isize,64bit," \
    "metadata_csum,dir_index,ext_attr"

static _Noreturn void exec_mkfs(int image_fd, int stderr_fd, const struct extimage_spec *s)
{
    static const char *const programs[] = { "/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4" };
    static char config[] = "MKE2FS_CONFIG=/dev/null";
    char image[32], inodes[24], blocks[24], extended[128];
    const struct layout l = lay_out(s);
    int null = open("/dev/null", O_RDWR);

    snprintf(image, sizeof image, "/proc/self/fd/%d", image_fd);
    snprintf(inodes, sizeof inodes, "%" PRIu64, l.inodes);
    snprintf(blocks, sizeof blocks, "%" PRIu64, l.blocks);
    snprintf(extended, sizeof extended, "nodiscard,lazy_itable_init=1,root_owner=%u:%u", s->owner,
             s->owner);
    char journal[24];
    snprintf(journal, sizeof journal, "size=%u", (unsigned)(l.journal * BLOCK >> 20));
    const char *const plain[] = { "mkfs.ext4", "-q", "-F",     "-b",  "4096", "-I",
                                  "256",       "-m", "0",      "-N",  inodes, "-O",
                                  FEATURES,    "-E", extended, image, blocks, NULL };
    const char *const journaled[] = { "mkfs.ext4",
                                      "-q",
                                      "-F",
                                      "-b",
                                      "4096",
                                      "-I",
                                      "256",
                                      "-m",
                                      "0",
                                      "-N",
                                      inodes,
                                      "-O",
                                      FEATURES ",has_journal",
                                      "-J",
                                      journal,
                                      "-E",
                                      extended,
                                      image,
                                      blocks,
                                      NULL };
    const char *const *argv = s->journal ? journaled : plain;
    char *const env[] = { config, NULL };
    proc_reset_signals();
    if (null < 0 || proc_die_with_parent(NULL) < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
        dup2(stderr_fd, 2) < 0 || fcntl(image_fd, F_SETFD, 0) < 0)
        _exit(126);
    for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++)
        execve(programs[i], (char *const *)(uintptr_t)argv, env);
    _exit(127);
}

/* The first line of what it says. */
static void read_complaint(int fd, char *ret, size_t size)
{
    ssize_t n = read(fd, ret, size - 1);

    ret[n > 0 ? n : 0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
}

static int run_mkfs(int image_fd, const struct extimage_spec *s, struct err *e)
{
    int p[2], pidfd = -1, status = -1;
    char text[120];

    if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(e, errno, "pipe");
    pid_t pid = proc_clone(0, -1, &pidfd);
    if (pid == 0)
        exec_mkfs(image_fd, p[1], s);
    close(p[1]);
    struct pollfd end = { .fd = pidfd, .events = POLLIN };
    int late = pid > 0 && poll(&end, 1, MKFS_MS) == 0;
    if (late)
        (void)kill(pid, SIGKILL);
    int r = pid < 0 ? pid : proc_reap(pid, &status);
    closep(&pidfd);
    read_complaint(p[0], text, sizeof text);
    close(p[0]);
    if (r < 0)
        return err_sys(e, -r, "run mkfs.ext4");
    if (late)
        return err_set(e, ETIMEDOUT, "mkfs.ext4 does not end");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return err_set(e, ENOPKG, "there is no mkfs.ext4 (package e2fsprogs)");
    if (WIFSIGNALED(status))
        return err_set(e, EIO, "mkfs.ext4 was ended by signal %d", WTERMSIG(status));
    return status == 0 ? 0 : err_set(e, EIO, "mkfs.ext4: %s", text);
}

static int make_template(const struct extimage_spec *s, int *ret_fd, struct err *e)
{
    autoclose int fd = memfd_create("ext4-template", MFD_CLOEXEC);

    int r = rlimits_check_file_size(extimage_size(s), "a file system of that size", e);
    if (r < 0)
        return r;
    if (fd < 0 || ftruncate(fd, (off_t)extimage_size(s)) < 0)
        return err_sys(e, errno, "make a template of a file system");
    r = run_mkfs(fd, s, e);
    if (r == 0)
        *ret_fd = take_fd(&fd);
    return r;
}

static int same(const struct extimage_spec *a, const struct extimage_spec *b)
{
    return a->bytes == b->bytes && a->inodes == b->inodes && a->journal == b->journal &&
           a->owner == b->owner;
}

/* Borrowed, until the next call. */
static int find_template(struct extimage_cache *c, const struct extimage_spec *s, int *ret_fd,
                         struct err *e)
{
    unsigned oldest = 0;

    for (unsigned i = 0; i < EXTIMAGE_TEMPLATES; i++) {
        if (c->templates[i].fd > 0 && same(&c->templates[i].spec, s)) {
            c->templates[i].used = ++c->clock;
            *ret_fd = c->templates[i].fd;
            return 0;
        }
        if (c->templates[i].used < c->templates[oldest].used)
            oldest = i;
    }
    int fd = -1;
    int r = make_template(s, &fd, e);
    if (r < 0)
        return r;
    if (c->templates[oldest].fd > 0)
        close(c->templates[oldest].fd);
    c->templates[oldest].fd = *ret_fd = fd;
    c->templates[oldest].spec = *s;
    c->templates[oldest].used = ++c->clock;
    return 0;
}

int extimage_prepare(struct extimage_cache *c, const struct extimage_spec *spec, struct err *e)
{
    int fd;

    return find_template(c, spec, &fd, e);
}

void extimage_cache_clear(struct extimage_cache *c)
{
    for (unsigned i = 0; i < EXTIMAGE_TEMPLATES; i++)
        if (c->templates[i].fd > 0)
            close(c->templates[i].fd);
    memset(c, 0, sizeof *c);
}

/* ---- images ---- */

static int copy_range(int from, int to, off_t at, off_t end)
{
    char buffer[64 * 1024];

    while (at < end) {
        size_t n = end - at < (off_t)sizeof buffer ? (size_t)(end - at) : sizeof buffer;
        ssize_t got = pread(from, buffer, n, at);

        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        ssize_t put = pwrite(to, buffer, (size_t)got, at);
        if (put <= 0)
            return put < 0 ? -errno : -EIO;
        at += put;
    }
    return 0;
}

static int copy_data(int from, int to)
{
    off_t end = 0, at;

    while ((at = lseek(from, end, SEEK_DATA)) >= 0) {
        end = lseek(from, at, SEEK_HOLE);
        int r = end < 0 ? -errno : copy_range(from, to, at, end);
        if (r < 0)
            return r;
    }
    return errno == ENXIO ? 0 : -errno;
}

int extimage_make(struct extimage_cache *c, const struct extimage_spec *spec, int file_fd,
                  struct err *e)
{
    int template = -1;
    int r = find_template(c, spec, &template, e);

    if (r == 0)
        r = rlimits_check_file_size(extimage_size(spec), "a file system of that size", e);
    if (r < 0)
        return r;
    r = diskroom_take(file_fd, extimage_size(spec), e);
    if (r < 0)
        return r;
    r = copy_data(template, file_fd);
    return r < 0 ? err_sys(e, -r, "write a file system") : 0;
}

static int set(int fs, const char *key, const char *value, struct err *e)
{
    enum fsconfig_command how = value != NULL ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

    if (fsconfig(fs, how, key, value, 0) < 0)
        return err_sys(e, errno, "ext4 option %s", key);
    return 0;
}

int extimage_mount(int device_fd, int lasting, int *ret_fd, struct err *e)
{
    autoclose int fs = fsopen("ext4", FSOPEN_CLOEXEC);
    char source[32];

    if (fs < 0)
        return err_sys(e, errno, "fsopen ext4");
    /* What mountinfo shows: neither the device's name nor a path. */
    snprintf(source, sizeof source, "/proc/self/fd/%d", device_fd);
    int r = set(fs, "source", source, e);
    if (r == 0)
        r = set(fs, "errors", "remount-ro", e);
    if (r == 0)
        r = set(fs, "noinit_itable", NULL, e);
    if (r == 0 && !lasting)
        r = set(fs, "barrier", "0",
                e); /* fsync() of a session makes the host's disk flush nothing */
    if (r < 0)
        return r;
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_sys(e, errno, "mount an image");
    int fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNTFD_DATA | (lasting ? 0 : MOUNT_ATTR_NOATIME));
    if (fd < 0)
        return err_sys(e, errno, "fsmount");
    (void)loopdev_keep_blocks(device_fd); /* what it prevents harms that session most */
    *ret_fd = fd;
    return 0;
}

void extimage_drop(int fd)
{
    uint32_t how = SHUTDOWN_NOLOGFLUSH;

    (void)ioctl(fd, IOC_SHUTDOWN, &how);
}
