/* Homes on a disk, by the functions that make them (homes.h), and ids laid over a mount. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "box.h"
#include "err.h"
#include "homes.h"
#include "mountfd.h"
#include "probes.h"
#include "workspaces.h"

static const struct launch_limits limits = {
    .memory_bytes = 64 << 20,
    .home_bytes = 4 << 20,
    .tmp_bytes = 1 << 20,
    .shm_bytes = 1 << 20,
    .inodes = 64,
    .pids = 16,
    .cpu_millis = 1000,
    .nofile = 64,
};

/* The state directory, or the nearest one above it that exists: a server would make it there. */
static int open_nearest(const char *state_dir, int *ret_fd, struct err *e)
{
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof path, "%s", state_dir);
    while ((fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 && errno == ENOENT) {
        char *slash = strrchr(path, '/');

        if (slash == NULL || slash == path)
            break;
        *slash = '\0';
    }
    if (fd < 0)
        return err_sys(e, errno, "open '%.120s'", path);
    *ret_fd = fd;
    return 0;
}

static int make_home(const struct probe_env *env, uid_t owner, int *ret_fd, int *ret_root_fd,
                     struct err *e)
{
    struct homes h = HOMES_NONE;
    autoclose int dir = -1;
    int r = open_nearest(env->state_dir, &dir, e);

    if (r == 0)
        r = homes_open(&h, dir, &limits, e);
    if (r == 0)
        r = homes_make(&h, &limits, SANDBOX_HOME_DISK, owner, 0, ret_fd, ret_root_fd, e);
    homes_close(&h);
    return r;
}

/* A full one says so, and no process is killed for it. */
static int fill(int mount_fd, struct err *e)
{
    static const char block[64 * 1024];
    autoclose int fd = openat(mount_fd, "probe", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(e, errno, "make a file in a home on a disk");
    for (size_t n = 0; n < 4 * limits.home_bytes; n += sizeof block)
        if (write(fd, block, sizeof block) < 0)
            return errno == ENOSPC ? 0 : err_sys(e, errno, "fill a home on a disk");
    return err_set(e, EPROTO, "a home on a disk takes more than its size");
}

int probe_disk_home(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    const uid_t owner = userns_host_id(env->id_base, userns_outer_user(BOX_INDEX));
    autoclose int fd = -1;
    autoclose int root = -1;
    int r = make_home(env, owner, &fd, &root, e);

    (void)ret;
    if (r == 0)
        r = fill(fd, e);
    if (root >= 0)
        extimage_drop(root);
    return r;
}

enum { SHOWN_ID = 4711 };

/* The owner of what lies there is another one through this mount. */
static int lay_ids(int mount_fd, struct err *e)
{
    char map[32];
    autoclose int ns = -1;
    struct stat st;

    snprintf(map, sizeof map, "0 %d 1\n", SHOWN_ID);
    int r = userns_make(map, &ns, e);
    if (r < 0)
        return r;
    struct mount_attr a = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)ns };
    if (mount_setattr(mount_fd, "", AT_EMPTY_PATH, &a, sizeof a) < 0)
        return err_sys(e, errno, "lay ids over a mount");
    if (fstat(mount_fd, &st) < 0)
        return err_sys(e, errno, "look at the mount");
    if (st.st_uid != SHOWN_ID)
        return err_set(e, EPROTO, "the mount shows owner %u, not %d", st.st_uid, SHOWN_ID);
    return 0;
}

static int lay_ids_over_tmpfs(struct err *e)
{
    const struct mountfd_tmpfs t = {
        .source = "probe", .bytes = 1 << 20, .inodes = 16, .mode = 0755, .attributes = MOUNTFD_DATA
    };
    autoclose int fd = -1;
    int r = mountfd_tmpfs(&t, &fd, e);

    return r < 0 ? r : lay_ids(fd, e);
}

/* As a workspace needs it: where they would be, or, when no server asks for them, where homes would be. */
int probe_idmapped_mount(const struct probe_env *env, struct probe_result *ret, struct err *e)
{
    struct err why = { 0 };
    autoclose int dir = -1;

    if (env->workspaces != NULL)
        return workspaces_try(env->workspaces, e);
    int r = open_nearest(env->state_dir, &dir, e);
    if (r < 0)
        return r;
    if (workspaces_try_in(dir, &why) == 0)
        return 0;
    r = lay_ids_over_tmpfs(e);
    if (r == 0)
        probe_say(ret, HOSTWALL_WEAKER, "over a tmpfs, but not for workspaces: %.120s", why.msg);
    return r;
}
