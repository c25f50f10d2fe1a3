/* What all sandboxes of an instance share. */
#include <errno.h>
#include <fcntl.h>

#include "err.h"
#include "initimage.h"
#include "sandbox_internal.h"
#include "userns.h"

static int open_all(const struct sandbox_config *c, struct sandbox_host *h, struct err *e)
{
    userns_raise_limits();
    int r = layers_own_namespace(e);
    /* Before the rest: what an earlier launcher left may hold ids and memory. */
    if (r == 0)
        r = cgroup_base_open(c->slot, c->cgroup_parent, &h->cgroups, e);
    if (r == 0)
        r = userns_open(c->id_base, c->one_level, &h->userns, e);
    if (r == 0)
        r = initimage_open(c->init_path, &h->init_fd, e);
    if (r == 0)
        r = layers_open(c->runtime_dir, &h->layers, e);
    if (r < 0)
        return r;
    h->pid_ns_fd = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    return h->pid_ns_fd < 0 ? err_sys(e, errno, "open our pid namespace") : 0;
}

int sandbox_host_open(const struct sandbox_config *config, struct sandbox_host **ret, struct err *e)
{
    struct sandbox_host *h = xcalloc(1, sizeof *h);

    h->gateway_uid = config->gateway_uid;
    h->userns.outer_fd = h->pid_ns_fd = h->init_fd = -1;
    h->layers = LAYERS_NONE;
    h->homes = HOMES_NONE;
    h->workspaces = WORKSPACES_NONE;
    int r = open_all(config, h, e);
    if (r < 0) {
        sandbox_host_close(h);
        return r;
    }
    *ret = h;
    return 0;
}

void sandbox_host_without(struct sandbox_host *h, unsigned walls)
{
    h->without = walls;
}

int sandbox_host_levels(const struct sandbox_host *h)
{
    return h->userns.outer_fd >= 0 ? 2 : 1;
}

int sandbox_host_disk(struct sandbox_host *h, int dir_fd, const struct launch_limits *usual,
                      struct err *e)
{
    return homes_open(&h->homes, dir_fd, usual, e);
}

int sandbox_host_data(struct sandbox_host *h, const char *list, struct err *e)
{
    return datadirs_open(list, &h->layers, &h->data, e);
}

int sandbox_data_bit(const struct sandbox_host *h, struct view name, uint32_t *ret)
{
    return datadirs_bit(&h->data, name, ret);
}

uint32_t sandbox_data_all(const struct sandbox_host *h)
{
    return datadirs_all(&h->data);
}

int sandbox_host_workspaces(struct sandbox_host *h, const char *path, uint64_t reserve,
                            struct err *e)
{
    return workspaces_open(&h->workspaces, path, reserve, e);
}

void sandbox_host_reaped(struct sandbox_host *h, pid_t pid)
{
    workspaces_reaped(&h->workspaces, pid);
}

struct sandbox_host *sandbox_host_close(struct sandbox_host *h)
{
    if (h == NULL)
        return NULL;
    userns_close(&h->userns);
    closep(&h->pid_ns_fd);
    closep(&h->init_fd);
    workspaces_close(&h->workspaces);
    homes_close(&h->homes);
    datadirs_close(&h->data);
    layers_close(&h->layers);
    h->cgroups = cgroup_base_close(h->cgroups);
    free(h);
    return NULL;
}
