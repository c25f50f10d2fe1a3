#include "start.h"

#include <errno.h>
#include <stdio.h>

#include "err.h"
#include "kernelspec.h"
#include "kernelstart.h"
#include "launcher.h"
#include "launchlink.h"
#include "sandbox.h"
#include "session.h"
#include "startfds.h"

/* The list as an array that borrows from the message; the caller frees it. */
static int split(struct view blob, const char *what, unsigned min, char ***ret, struct err *e)
{
    int count = msg_strings_count(blob, LAUNCH_STRINGS_MAX, e);

    if (count < 0)
        return err_wrap(e, "%s", what), count;
    if ((unsigned)count < min)
        return err_set(e, HC_EPARSE, "%s is empty", what);
    *ret = xcalloc((size_t)count + 1, sizeof **ret);
    msg_strings_split(blob, *ret, (unsigned)count);
    return 0;
}

/* Only the launcher makes kernels run and only its messages say that they ended,
 * so a gateway that starts one twice has lost its mind. */
static int check_state(const struct session *s, const struct launch_start *m, struct err *e)
{
    if (m->kernel == 0 || m->generation == 0)
        return err_set(e, HC_EPARSE, "kernel %u-%u", m->kernel, m->generation);
    const struct kernelproc *k = &s->kernels[m->kernel - 1];
    if (kernel_has_process(k))
        return err_set(e, HC_ESTATE, "kernel %u-%u runs", m->kernel, k->generation);
    if (m->generation <= k->generation)
        return err_set(e, HC_ESTATE, "generation %u after %u", m->generation, k->generation);
    if (s->leaf_count == SESSION_LEAVES_MAX)
        return err_set(e, HC_ELIMIT, "%u kernels of the session are not gone yet", s->leaf_count);
    return 0;
}

static int check_profile(const struct session *s, const char *spec_name, struct err *e)
{
    if (s->kernelspecs == NULL || profile_list_has(s->kernelspecs, spec_name))
        return 0;
    return err_set(e, EACCES, "kernelspec '%.60s' is not one of profile '%s'", spec_name,
                   s->profile);
}

int start_from_message(struct launcher *l, struct session *s, const struct launch_start *m,
                       const struct link_packet *packet, struct err *e)
{
    const int *fds = packet->fds;
    autofree char **argv = NULL;
    autofree char **env = NULL;
    autofree char *spec_name = view_dup(m->spec_name);
    char key[LAUNCH_NAME_MAX + 16]; /* two directories may offer the same name */
    autofree char *cwd = view_dup(m->cwd);
    autoclose int spec_fd = -1;

    int rc = check_state(s, m, e);
    if (rc == 0)
        rc = check_profile(s, spec_name, e);
    if (rc == 0)
        rc = startfds_check(fds, packet->head.fds, m->flags, e);
    if (rc == 0)
        rc = split(m->argv, "argv", 1, &argv, e);
    if (rc == 0)
        rc = split(m->env, "env", 0, &env, e);
    if (rc == 0)
        rc = kernelspec_open(l->config->kernel_path, m->spec_dir, spec_name, &spec_fd, e);
    if (rc < 0)
        return rc;
    snprintf(key, sizeof key, "%u-%s", m->spec_dir, spec_name);
    const struct sandbox_start start = {
        .kernel = m->kernel,
        .generation = m->generation,
        .flags = m->flags,
        .spec_fd = spec_fd,
        .spec_name = key,
        .argv = argv,
        .env = env,
        .cwd = cwd[0] != '\0' ? cwd : "/home/user",
        .connection_fd = fds[START_CONNECTION],
        .log_fd = fds[START_LOG],
        .socket_fds = m->flags & LAUNCH_SOCKETS_FD ? fds + START_SOCKETS : NULL,
    };
    return kernelstart_begin(l, s, &start, packet->head.request, e);
}
