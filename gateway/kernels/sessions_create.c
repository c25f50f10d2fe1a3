/* sessions_create - a kernel that a front asks for: whether it may be, and from what it is made. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "kernel_own.h"
#include "kernelenv.h"
#include "kernelspec.h"
#include "msgcodec.h"
#include "random.h"
#include "sessionlimits.h"
#include "sessions_own.h"

static int add_strings(const json_t *argv, struct buf *out, struct err *e)
{
    size_t i;
    json_t *v;

    json_array_foreach(argv, i, v)
    {
        if (i >= LAUNCH_STRINGS_MAX || msg_strings_add(out, json_string_value(v)) < 0)
            return err_set(e, EIO, "the kernelspec's argv is too long");
    }
    return 0;
}

static int add_spec_env(json_t *env, struct buf *out, struct err *e)
{
    const char *key;
    json_t *v;
    unsigned count = 0;

    json_object_foreach(env, key, v)
    {
        autofree char *var = NULL;
        if (asprintf(&var, "%s=%s", key, json_string_value(v)) < 0)
            return err_set(e, ENOMEM, "no memory for the environment");
        if (*key == '\0' || strchr(key, '=') != NULL)
            continue;
        if (++count > LAUNCH_STRINGS_MAX || msg_strings_add(out, var) < 0)
            return err_set(e, EIO, "the kernelspec's environment is too large");
    }
    return 0;
}

static int fill_recipe(struct sessions *s, const struct kernel_request *r, struct kernelspec *spec,
                       struct kernel_recipe *ret, struct err *e)
{
    const struct kernelenv env = { .request = r->env, .allow = s->policy.env_allow };

    ret->spec_name = xstrdup(spec->name);
    ret->spec_dir = spec->dir;
    ret->sockets_fd = spec->sockets_fd;
    ret->interrupt_by_message = spec->interrupt_by_message;
    ret->cull_ms = spec->cull_ms;
    ret->cwd = r->path != NULL ? kernelenv_cwd(r->path) : kernelenv_working_dir(r->env);
    int rc = kernelenv_filter(&env, &ret->request_env, e);
    if (rc == 0 && r->session_name != NULL)
        rc = kernelenv_set_session(&ret->request_env, r->session_name, e);
    if (rc == 0)
        rc = add_strings(json_object_get(spec->spec, "argv"), &ret->argv, e);
    if (rc == 0)
        rc = add_spec_env(json_object_get(spec->spec, "env"), &ret->spec_env, e);
    return rc;
}

static void choose_id(const char *asked, char out[UUID_TEXT])
{
    uint8_t raw[16];

    if (asked != NULL) {
        snprintf(out, UUID_TEXT, "%s", asked);
        return;
    }
    random_bytes(raw, sizeof raw);
    uuid_format(raw, out);
}

/* What takes room, of those that p may see, or of all: a kernel does from the moment it
 * is asked for until nothing of it is left. */
static size_t count_taken(const struct sessions *s, const struct principal *p)
{
    size_t count = 0;

    for (struct kernel *k = sessions_first_kernel(s); k != NULL; k = sessions_next_kernel(k))
        count +=
            k->phase != KERNEL_GONE && (p == NULL || principal_sees(p, k->session->principal.name));
    return count;
}

/* What others have is told to nobody. */
static int check_room(struct sessions *s, const struct principal *p, struct err *e)
{
    size_t own = count_taken(s, p), all = count_taken(s, NULL);
    unsigned max = s->policy.max_kernels;

    if (p->max_kernels > 0 && own >= p->max_kernels)
        return err_set(e, HC_ELIMIT, "%zu kernels are running, the limit is %u", own,
                       p->max_kernels);
    if (max == 0 || all < max)
        return 0;
    if (own == all)
        return err_set(e, HC_ELIMIT, "%zu kernels are running, the limit is %u", own, max);
    return err_set(e, HC_ELIMIT, "the server runs as many kernels as it may");
}

static int check_request(struct sessions *s, const struct principal *p,
                         const struct kernel_request *r, struct err *e)
{
    if (s->stopping)
        return err_set(e, ECANCELED, "the server is stopping");
    if (r->kernel_id != NULL && !uuid_valid(r->kernel_id, strlen(r->kernel_id)))
        return err_set(e, EINVAL, "kernel_id is no UUID");
    return check_room(s, p, e);
}

/* Jupyter's managers read "python" as their native kernel, whose name is "python3", and
 * old clients ask for it. Here a kernelspec of that very name goes first. */
static int find_spec(const struct sessions *s, const char *name, struct kernelspec **ret,
                     struct err *e)
{
    struct err alias = { 0 };

    if (name == NULL)
        name = kernelspecs_default(s->specs);
    int rc = kernelspecs_find(s->specs, name, ret, e);
    if (rc == -ENOENT && strcmp(name, "python") == 0 &&
        kernelspecs_find(s->specs, "python3", ret, &alias) == 0)
        return 0;
    return rc;
}

static int begin_kernel(struct sessions *s, const struct principal *p,
                        const struct kernel_request *r, struct kernel **ret, struct err *e)
{
    const char *name = s->policy.force_kernel != NULL ? s->policy.force_kernel : r->spec_name;
    struct kernelspec *spec = NULL;
    struct launch_limits limits;
    struct time_limits times;
    char id[UUID_TEXT];

    int rc = check_request(s, p, r, e);
    if (rc == 0)
        rc = limits_choose(&r->limits, &p->limits, &s->policy.limits, &limits, e);
    if (rc == 0)
        rc = time_limits_choose(&r->times, &p->times, &s->policy.times, &times, e);
    if (rc == 0)
        rc = find_spec(s, name, &spec, e);
    if (rc < 0)
        return rc;
    choose_id(r->kernel_id, id);
    struct kernel *k = kernel_new(session_new(s, p), id);
    k->session->wanted = limits;
    k->session->times = times;
    session_watch_life(k->session);
    rc = fill_recipe(s, r, spec, &k->recipe, e);
    spec = kernelspec_free(spec);
    if (rc == 0)
        rc = kernel_audit_intent(k, "kernel_create", e);
    if (rc < 0) {
        kernel_free(k);
        return rc;
    }
    k->listed = 1;
    *ret = k;
    return 0;
}

void sessions_create_kernel(struct sessions *s, const struct principal *p,
                            const struct kernel_request *r, kernel_done_fn *done, void *arg,
                            uint64_t token)
{
    struct err e = { 0 };
    struct kernel *k = r->kernel_id != NULL ? sessions_find_kernel(s, p, r->kernel_id) : NULL;

    if (k != NULL && (k->phase == KERNEL_CREATING || k->phase == KERNEL_STARTING || !k->born)) {
        waiter_add(&k->started, done, arg, token);
        return;
    }
    if (k != NULL) {
        done(arg, token, k, NULL);
        return;
    }
    if (begin_kernel(s, p, r, &k, &e) < 0) {
        done(arg, token, NULL, &e);
        return;
    }
    waiter_add(&k->started, done, arg, token);
    kernel_start(k);
}
