/* sessions_create - a kernel that a front asks for: whether it may be, and from what it is made. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "datanames.h"
#include "err.h"
#include "kernel_own.h"
#include "kernelenv.h"
#include "kernelspec.h"
#include "msgcodec.h"
#include "namedpath.h"
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
    size_t count = sessions_count_remains(s, p);

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

    int rc = kernelspecs_find(s->specs, name, ret, e);
    if (rc == -ENOENT && strcmp(name, "python") == 0 &&
        kernelspecs_find(s->specs, "python3", ret, &alias) == 0)
        return 0;
    return rc;
}

/* ---- its profile ---- */

/* What a session gets by its profile. */
struct terms {
    const struct profile *profile; /* NULL: "default" */
    const struct launch_limits *limits, *most;
    struct time_limits times, times_most;
};

/* Whom everything is allowed hears that there is no such profile; others never learn which there are. */
static int may_name(const struct sessions *s, const struct principal *p, const char *name,
                    struct err *e)
{
    const struct profile *found = profiles_find(s->profiles, view_cstr(name));
    const int is_default = strcmp(name, PROFILE_DEFAULT) == 0;

    if (strcmp(name, p->profile[0] != '\0' ? p->profile : PROFILE_DEFAULT) == 0)
        return 0;
    if (p->profiles != 0 && p->profiles_version != s->profiles_version)
        return err_set(e, EAGAIN, "profile: the settings have just changed, ask again");
    if (p->profiles_all && found == NULL && !is_default)
        return err_set(e, EINVAL, "profile: there is no profile '%.40s'", name);
    if (p->profiles_all || (is_default && p->default_too) ||
        (found != NULL && (p->profiles >> (found - s->profiles->at) & 1) != 0))
        return 0;
    return err_set(e, HC_EDENIED, "profile: '%.40s' is not one of yours", name);
}

static struct time_limits times_of(const uint64_t ms[PROFILE_TIMES])
{
    return (struct time_limits){ .cell_ms = ms[PROFILE_CELL],
                                 .stdin_ms = ms[PROFILE_STDIN],
                                 .life_ms = ms[PROFILE_LIFE] };
}

static int choose_profile(const struct sessions *s, const struct principal *p, const char *asked,
                          struct terms *ret, struct err *e)
{
    const char *name = asked != NULL ? asked : p->profile[0] != '\0' ? p->profile : PROFILE_DEFAULT;
    int rc = may_name(s, p, name, e);

    if (rc < 0)
        return rc;
    *ret = (struct terms){ .limits = &s->policy.limits,
                           .most = &s->policy.most,
                           .times = s->policy.times,
                           .times_most = s->policy.times };
    if (strcmp(name, PROFILE_DEFAULT) == 0)
        return 0;
    const struct profile *f = profiles_find(s->profiles, view_cstr(name));
    if (f == NULL) /* the principal's own: the file of principals was read with another table */
        return err_set(e, EAGAIN, "profile: the settings have just changed, ask again");
    *ret = (struct terms){ f, &f->limits, &f->maxima, times_of(f->times), times_of(f->most) };
    return 0;
}

/* The kernelspec when nobody names one: the server's, or the first that the profile has. */
static const char *default_spec(const struct sessions *s, const struct profile *f,
                                char first[PROFILE_KERNEL_NAME + 1])
{
    const char *usual = kernelspecs_default(s->specs);

    if (f == NULL || !f->kernels_some || profile_list_has(f->kernels, usual))
        return usual;
    snprintf(first, PROFILE_KERNEL_NAME + 1, "%.*s", (int)strcspn(f->kernels, ","), f->kernels);
    return first;
}

static int check_spec(const struct profile *f, const struct kernelspec *spec, struct err *e)
{
    if (f == NULL || !f->kernels_some || profile_list_has(f->kernels, spec->name))
        return 0;
    return err_set(e, HC_EDENIED, "name: kernelspec '%.60s' is not one of profile '%s': %.100s",
                   spec->name, f->name, f->kernels);
}

/* What the profile leaves of the principal's data directories. */
static void narrow_data(const struct sessions *s, const struct profile *f, struct principal *p)
{
    uint32_t bits = 0;
    char name[NAMEDPATH_NAME];

    if (f == NULL || !f->data_some)
        return;
    for (const char *at = f->data; *at != '\0';) {
        size_t n = strcspn(at, ",");

        snprintf(name, sizeof name, "%.*s", (int)n, at);
        bits |= datanames_bit(s->policy.data, name);
        at += n + (at[n] == ',');
    }
    p->data = p->data_some ? p->data & bits : bits;
    p->data_some = 1;
}

static int begin_kernel(struct sessions *s, const struct principal *p,
                        const struct kernel_request *r, struct kernel **ret, struct err *e)
{
    const char *name = s->policy.force_kernel != NULL ? s->policy.force_kernel : r->spec_name;
    struct principal owner = *p;
    struct kernelspec *spec = NULL;
    struct launch_limits limits;
    struct time_limits times;
    struct terms terms;
    char first[PROFILE_KERNEL_NAME + 1];
    char id[UUID_TEXT];

    int rc = check_request(s, p, r, e);
    if (rc == 0)
        rc = choose_profile(s, p, r->profile, &terms, e);
    if (rc == 0)
        rc = limits_choose(&r->limits, &p->limits, terms.limits, terms.most, &limits, e);
    if (rc == 0)
        rc = time_limits_choose(&r->times, &p->times, &terms.times, &terms.times_most, &times, e);
    if (rc == 0)
        rc = find_spec(s, name != NULL ? name : default_spec(s, terms.profile, first), &spec, e);
    if (rc == 0)
        rc = check_spec(terms.profile, spec, e);
    if (rc < 0) {
        kernelspec_free(spec);
        return rc;
    }
    narrow_data(s, terms.profile, &owner);
    choose_id(r->kernel_id, id);
    struct kernel *k = kernel_new(session_new(s, &owner), id);
    k->session->wanted = limits;
    k->session->times = times;
    if (terms.profile != NULL)
        memcpy(k->session->profile, terms.profile->name, sizeof k->session->profile);
    session_watch_life(k->session);
    rc = fill_recipe(s, r, spec, &k->recipe, e);
    if (terms.profile != NULL && terms.profile->idle_ms != PROFILE_UNSET)
        k->recipe.cull_ms = terms.profile->idle_ms;
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

    if (k != NULL && r->profile != NULL && strcmp(r->profile, k->session->profile) != 0) {
        err_set(&e, HC_ESTATE, "profile: the kernel runs with profile '%s'", k->session->profile);
        done(arg, token, NULL, &e);
        return;
    }
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
