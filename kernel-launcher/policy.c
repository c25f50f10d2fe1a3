#include "policy.h"

#include <errno.h>
#include <string.h>

#include "err.h"
#include "launcher.h"
#include "log.h"
#include "rlimits.h"
#include "sandbox.h"

/* The gateway ends sessions when their time is over, and tells their clients; this is for one that does not. */
enum { LIFE_GRACE_MS = 60000 };

_Static_assert((int)HOME_AUTO == (int)PROFILE_HOME_AUTO &&
                   (int)HOME_DISK == (int)PROFILE_HOME_DISK &&
                   (int)HOME_MEMORY == (int)PROFILE_HOME_TMPFS,
               "both are the values of --home");

static int check_walls(const struct profile *p, hostwall_set missing, struct err *e)
{
    hostwall_set refused = profile_refused(p, missing);
    char names[200];

    for (unsigned i = 0; i < HOSTWALL_COUNT; i++) {
        if ((refused & HOSTWALL_BIT(i)) == 0)
            continue;
        const struct hostwall_info *w = hostwall_info((enum hostwall)i);
        hostwall_set_print(refused, names, sizeof names);
        return err_set(e, ENOTSUP,
                       "profiles.%s.%s: this host has no wall '%s', which the profile demands; "
                       "without it: %s",
                       p->name, p->walls & HOSTWALL_BIT(i) ? "walls" : "isolation", names,
                       w->without);
    }
    return 0;
}

/* The bits of the names; -ENOENT names the first that is not there. */
static int data_bits(const struct profile *p, struct sandbox_host *host, uint32_t *ret,
                     struct err *e)
{
    uint32_t bits = 0;

    for (const char *at = p->data; *at != '\0';) {
        size_t n = strcspn(at, ",");
        uint32_t bit = 0;

        if (sandbox_data_bit(host, (struct view){ (const uint8_t *)at, n }, &bit) < 0)
            return err_set(e, ENOENT, "profiles.%s.data: there is no data directory '%.*s'",
                           p->name, (int)n, at);
        bits |= bit;
        at += n + (at[n] == ',');
    }
    *ret = p->data_some ? bits : sandbox_data_all(host);
    return 0;
}

/* As launcher_setup.c does for "default": a limit that may not be raised is told now, and not at some session. */
static int check_file_size(const struct profile *p, const struct launcher_config *c, struct err *e)
{
    const struct launch_limits *l = &p->limits;
    const int in_memory = p->home == PROFILE_HOME_TMPFS || !c->disk_homes;
    const struct {
        const char *field, *what;
        uint64_t bytes;
    } files[] = {
        { "disk_mb", "a home of a session", in_memory ? l->home_bytes : sandbox_home_size(l) },
        { "tmp_mb", "/tmp of a session", l->tmp_bytes },
        { "shm_mb", "/dev/shm of a session", l->shm_bytes },
    };

    for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
        int rc = rlimits_check_file_size(files[i].bytes, files[i].what, e);

        if (rc < 0)
            return err_wrap(e, "profiles.%s.limits.%s", p->name, files[i].field), rc;
    }
    return 0;
}

int policy_read(struct view table, const struct launcher_config *c, struct sandbox_host *host,
                hostwall_set missing, struct profiles **ret, struct err *e)
{
    autofree struct profiles *t = NULL;
    int rc = profiles_read(table, &t, e);

    for (unsigned i = 0; rc == 0 && t != NULL && i < t->count; i++) {
        const struct profile *p = &t->at[i];
        uint32_t bits;

        rc = check_walls(p, missing, e);
        if (rc == 0)
            rc = data_bits(p, host, &bits, e);
        if (rc == 0 && p->home == PROFILE_HOME_DISK && !c->disk_homes)
            rc = err_set(e, ENOTSUP, "profiles.%s.home: no home can lie on this host's disk",
                         p->name);
        if (rc == 0)
            rc = check_file_size(p, c, e);
    }
    if (rc == 0)
        *ret = take_ptr(t);
    return rc;
}

int policy_take(struct launcher *l, struct view table, struct err *e)
{
    struct profiles *t = NULL;
    int rc = policy_read(table, l->config, l->host, l->config->keeper.missing, &t, e);

    if (rc < 0)
        return rc;
    free(l->profiles);
    l->profiles = t;
    if (t != NULL)
        log_info("profiles", "count=%u", t->count);
    return 0;
}

int policy_terms_of(const struct launcher *l, struct view name, struct policy_terms *ret,
                    struct err *e)
{
    const struct launcher_config *c = l->config;
    const struct profile *p = profiles_find(l->profiles, name);
    struct policy_terms t = {
        .defaults = &c->defaults,
        .maxima = &c->maxima,
        .home = c->home,
        .data = sandbox_data_all(l->host),
    };

    if (p == NULL && !view_equals(name, PROFILE_DEFAULT))
        return err_set(e, ENOENT, "no such profile");
    if (p != NULL) {
        int rc = data_bits(p, l->host, &t.data, e);

        if (rc < 0)
            return rc;
        t.profile = p;
        t.defaults = &p->limits;
        t.maxima = &p->maxima;
        t.home = (struct home_policy){ (enum home_mode)p->home, p->home_sized };
        if (t.home.mode == HOME_AUTO && !c->disk_homes)
            t.home.mode = HOME_MEMORY;
    }
    *ret = t;
    return 0;
}

uint64_t policy_life_end(const struct policy_terms *t, uint64_t now_ms)
{
    const uint64_t most = t->profile != NULL ? t->profile->most[PROFILE_LIFE] : 0;

    return most != 0 ? now_ms + most + LIFE_GRACE_MS : 0;
}
