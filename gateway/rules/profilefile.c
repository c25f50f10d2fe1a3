#include "profilefile.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "limit.h"
#include "namedpath.h"

#define MIB (UINT64_C(1) << 20)

/* One profile on its way into the table. */
struct reading {
    const struct profilefile_base *base;
    struct profile *p;
    struct launch_limits limits, maxima; /* as given; 0: not */
    struct time_limits times, most;
};

typedef int field_fn(struct reading *r, const json_t *v, struct err *e);

static int wrong(const struct reading *r, struct err *e, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static int wrong(const struct reading *r, struct err *e, const char *field, const char *fmt, ...)
{
    char text[200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(e, EINVAL, "profiles.%s.%s: %s", r->p->name, field, text);
}

/* NULL when it is no string, or one with a NUL in it. */
static const char *string(const json_t *v)
{
    const char *s = json_string_value(v);

    return s != NULL && strlen(s) == json_string_length(v) ? s : NULL;
}

/* A name of the file as it may stand in one line of a log. */
static const char *shown(const char *key)
{
    size_t n = strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

    return n > 0 && n <= 40 && key[n] == '\0' ? key : "(not shown)";
}

/* ---- limits and maxima ---- */

static int read_limit(struct reading *r, const char *group, const struct limit *l, const json_t *v,
                      struct launch_limits *to, struct err *e)
{
    double number = json_number_value(v), unit = (double)l->number_unit;
    double least = (double)l->least / unit, most = (double)l->most / unit;
    char field[64];

    snprintf(field, sizeof field, "%s.%s", group, l->name);
    if (!(l->milli ? json_is_number(v) : json_is_integer(v)) || !(number >= least) ||
        !(number <= most))
        return wrong(r, e, field, "has to be a%s number from %g to %.0f", l->milli ? "" : " whole",
                     least, most);
    limit_set(to, l, (uint64_t)(number * unit + 0.5));
    return 0;
}

static int read_ms(const struct reading *r, const char *field, const json_t *v, uint64_t *ret,
                   struct err *e)
{
    double ms = json_number_value(v) * 1000;

    if (!json_is_number(v) || !(ms >= TIME_LEAST_MS) || !(ms <= (double)TIME_MOST_MS))
        return wrong(r, e, field, "has to be a number of seconds from %g to %.0f",
                     TIME_LEAST_MS / 1000.0, (double)TIME_MOST_MS / 1000);
    *ret = (uint64_t)(ms + 0.5);
    return 0;
}

static int read_time(struct reading *r, const char *group, const struct time_limit_name *l,
                     const json_t *v, struct time_limits *to, struct err *e)
{
    char field[64];
    uint64_t ms = 0;

    snprintf(field, sizeof field, "%s.%s", group, l->name);
    int rc = read_ms(r, field, v, &ms, e);
    if (rc == 0)
        time_limits_set(to, l, ms);
    return rc;
}

static int read_group(struct reading *r, const char *group, const json_t *v,
                      struct launch_limits *limits, struct time_limits *times, struct err *e)
{
    json_t *object = (json_t *)(uintptr_t)v, *value;
    const char *key;
    char field[80];
    int rc = 0;

    if (!json_is_object(v))
        return wrong(r, e, group, "has to be an object");
    json_object_foreach(object, key, value)
    {
        const struct limit *l = limit_named(key);
        const struct time_limit_name *time = time_limit_named(key);

        snprintf(field, sizeof field, "%s.%s", group, shown(key));
        if (l != NULL)
            rc = read_limit(r, group, l, value, limits, e);
        else if (time != NULL)
            rc = read_time(r, group, time, value, times, e);
        else if (limits == &r->limits && strcmp(key, "cull_idle_timeout") == 0)
            rc = read_ms(r, field, value, &r->p->idle_ms, e);
        else
            rc = wrong(r, e, field, "there is no such limit");
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_limits(struct reading *r, const json_t *v, struct err *e)
{
    return read_group(r, "limits", v, &r->limits, &r->times, e);
}

static int read_maxima(struct reading *r, const json_t *v, struct err *e)
{
    return read_group(r, "maxima", v, &r->maxima, &r->most, e);
}

/* ---- the other fields ---- */

static int read_home(struct reading *r, const json_t *v, struct err *e)
{
    const char *s = string(v);

    if (s == NULL || profile_home_of(s, &r->p->home) < 0)
        return wrong(r, e, "home", "has to be \"auto\", \"disk\" or \"tmpfs\"");
    return 0;
}

/* Appends one to a comma list. */
static int add_name(const struct reading *r, const char *field, size_t i, const char *name,
                    char list[PROFILE_LIST], struct err *e)
{
    size_t n = strlen(list);

    if (profile_list_has(list, name))
        return wrong(r, e, field, "number %zu is there twice", i + 1);
    if (n + strlen(name) + 2 > PROFILE_LIST)
        return wrong(r, e, field, "the list is too long");
    snprintf(list + n, PROFILE_LIST - n, "%s%s", n > 0 ? "," : "", name);
    return 0;
}

static int read_data(struct reading *r, const json_t *v, struct err *e)
{
    int rc = 0;

    if (!json_is_array(v) || json_array_size(v) > NAMEDPATH_MAX)
        return wrong(r, e, "data", "has to be a list of at most %d names of --data", NAMEDPATH_MAX);
    r->p->data_some = 1;
    for (size_t i = 0; i < json_array_size(v) && rc == 0; i++) {
        const char *name = string(json_array_get(v, i));

        if (name == NULL || !namedpath_name_valid(name, strlen(name)))
            return wrong(r, e, "data", "number %zu is no name of --data", i + 1);
        if (!r->base->data_unknown &&
            !profile_list_has(r->base->data != NULL ? r->base->data : "", name))
            return wrong(r, e, "data", "the server has no '%s': --data", name);
        rc = add_name(r, "data", i, name, r->p->data, e);
    }
    return rc;
}

static int kernel_name_valid(const char *s)
{
    size_t n = strlen(s);

    return n > 0 && n <= PROFILE_KERNEL_NAME &&
           s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] ==
               '\0';
}

static int read_kernels(struct reading *r, const json_t *v, struct err *e)
{
    int rc = 0;

    if (!json_is_array(v) || json_array_size(v) == 0 || json_array_size(v) > PROFILE_KERNELS_MAX)
        return wrong(r, e, "kernels", "has to be a list of 1 to %d names of kernelspecs",
                     PROFILE_KERNELS_MAX);
    r->p->kernels_some = 1;
    for (size_t i = 0; i < json_array_size(v) && rc == 0; i++) {
        const char *name = string(json_array_get(v, i));

        if (name == NULL || !kernel_name_valid(name))
            return wrong(r, e, "kernels", "number %zu is no name of a kernelspec", i + 1);
        rc = add_name(r, "kernels", i, name, r->p->kernels, e);
    }
    return rc;
}

static int read_isolation(struct reading *r, const json_t *v, struct err *e)
{
    const char *s = string(v);
    struct err why = { 0 };

    if (s == NULL || isolation_of(s, &r->p->isolation, &why) < 0)
        return wrong(r, e, "isolation", "has to be \"namespaces\" or \"hardened\"");
    return 0;
}

static int read_walls(struct reading *r, const json_t *v, struct err *e)
{
    if (!json_is_array(v))
        return wrong(r, e, "walls", "has to be a list of names that `holdcell doctor` prints");
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *name = string(json_array_get(v, i));
        enum hostwall wall;

        if (name == NULL || hostwall_of(name, &wall) < 0)
            return wrong(r, e, "walls", "number %zu is no wall", i + 1);
        if (hostwall_info(wall)->demanded_by == ISOLATION_NEVER)
            return wrong(r, e, "walls", "'%s' can be demanded by nobody: no level has it", name);
        if (r->p->walls & HOSTWALL_BIT(wall))
            return wrong(r, e, "walls", "number %zu is there twice", i + 1);
        r->p->walls |= HOSTWALL_BIT(wall);
    }
    return 0;
}

static int read_note(struct reading *r, const json_t *v, struct err *e)
{
    return json_is_string(v) ? 0 : wrong(r, e, "note", "has to be text");
}

static const struct {
    const char *name;
    field_fn *read;
} fields[] = {
    { "limits", read_limits }, { "maxima", read_maxima },   { "home", read_home },
    { "data", read_data },     { "kernels", read_kernels }, { "isolation", read_isolation },
    { "walls", read_walls },   { "note", read_note },
};

static int read_fields(struct reading *r, const json_t *v, struct err *e)
{
    json_t *object = (json_t *)(uintptr_t)v, *value;
    const char *key;

    if (!json_is_object(v))
        return err_set(e, EINVAL, "profiles.%s: has to be an object", r->p->name);
    json_object_foreach(object, key, value)
    {
        size_t i = 0, count = sizeof fields / sizeof *fields;

        while (i < count && strcmp(key, fields[i].name) != 0)
            i++;
        int rc = i < count ? fields[i].read(r, value, e)
                           : wrong(r, e, shown(key), "there is no field with this name");
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- what was not given, and what the parts say of each other ---- */

static int above(const struct reading *r, const struct limit *l, struct err *e)
{
    const int by_limit = limit_get(&r->limits, l) != 0;
    char field[64];

    snprintf(field, sizeof field, "%s.%s", by_limit ? "limits" : "maxima", l->name);
    if (by_limit)
        return wrong(r, e, field, "%g is above the profile's maximum, %g",
                     (double)limit_get(&r->p->limits, l) / (double)l->number_unit,
                     (double)limit_get(&r->p->maxima, l) / (double)l->number_unit);
    return wrong(r, e, field, "%g is below what sessions get without a wish, %g",
                 (double)limit_get(&r->p->maxima, l) / (double)l->number_unit,
                 (double)limit_get(&r->p->limits, l) / (double)l->number_unit);
}

static int complete_limits(struct reading *r, struct err *e)
{
    struct profile *p = r->p;

    for (unsigned i = 0; i < LIMITS; i++) {
        const struct limit *l = &limit_rows[i];
        uint64_t value = limit_get(&p->limits, l), most = limit_get(&r->maxima, l);

        limit_set(&p->maxima, l, most != 0 ? most : value);
        if (most != 0 && value > most)
            return above(r, l, e);
    }
    return 0;
}

/* As memoryfiles_fit() of the options: what nobody gave shrinks, what somebody gave and does not fit is wrong. */
static int fit_files(struct reading *r, struct err *e)
{
    struct profile *p = r->p;
    struct launch_limits fitted = p->limits;
    const uint64_t files = limit_of_files_in_memory(&p->limits);
    const uint64_t home =
        p->home == PROFILE_HOME_TMPFS && r->limits.home_bytes != 0 ? p->limits.home_bytes : 0;

    if (home + p->limits.tmp_bytes + p->limits.shm_bytes <= files)
        return 0;
    limit_shrink_files_in_memory(&fitted);
    if (r->limits.tmp_bytes == 0)
        p->limits.tmp_bytes = fitted.tmp_bytes;
    if (r->limits.shm_bytes == 0)
        p->limits.shm_bytes = fitted.shm_bytes;
    const uint64_t sum = home + p->limits.tmp_bytes + p->limits.shm_bytes;
    if (sum <= files)
        return 0;
    return wrong(r, e,
                 home != 0                  ? "limits.disk_mb"
                 : r->limits.tmp_bytes != 0 ? "limits.tmp_mb"
                                            : "limits.shm_mb",
                 "file systems in a session's memory would be %" PRIu64
                 " MiB together, and %" PRIu64 " is the most of %" PRIu64,
                 sum / MIB, files / MIB, p->limits.memory_bytes / MIB);
}

static int complete_times(struct reading *r, struct err *e)
{
    for (unsigned i = 0; i < TIME_LIMITS; i++) {
        const struct time_limit_name *l = &time_limits_named[i];
        const uint64_t given = time_limits_get(&r->times, l), most = time_limits_get(&r->most, l);
        uint64_t value = given != 0 ? given : time_limits_get(&r->base->times, l);
        char field[64];

        if (value == 0)
            value = most; /* no session may be without one */
        snprintf(field, sizeof field, "%s.%s", given != 0 ? "limits" : "maxima", l->name);
        if (most != 0 && value > most)
            return wrong(r, e, field,
                         given != 0 ? "%g is above the profile's maximum, %g"
                                    : "%g is what sessions get, above the maximum, %g",
                         (double)value / 1000, (double)most / 1000);
        r->p->times[i] = value;
        r->p->most[i] = most != 0 ? most : value;
    }
    return 0;
}

static int complete(struct reading *r, struct err *e)
{
    struct profile *p = r->p;

    p->limits = r->base->limits;
    p->home_sized = r->limits.home_bytes != 0 || r->base->home_sized;
    if (r->limits.home_bytes == 0 && !r->base->home_sized && p->home != r->base->home)
        p->limits.home_bytes = p->home == PROFILE_HOME_TMPFS ? LAUNCH_HOME_MEMORY_DEFAULT
                                                             : LAUNCH_LIMITS_DEFAULT.home_bytes;
    for (unsigned i = 0; i < LIMITS; i++) {
        uint64_t given = limit_get(&r->limits, &limit_rows[i]);

        if (given != 0)
            limit_set(&p->limits, &limit_rows[i], given);
    }
    int rc = fit_files(r, e);
    if (rc == 0)
        rc = complete_limits(r, e);
    return rc == 0 ? complete_times(r, e) : rc;
}

/* ---- the file ---- */

static int read_profile(struct profiles *t, const char *name, const json_t *v,
                        const struct profilefile_base *base, struct err *e)
{
    struct reading r = { .base = base, .p = &t->at[t->count] };

    if (!profile_name_valid(name, strlen(name)))
        return err_set(e, EINVAL,
                       "profiles: a name has to be 1 to %d letters, digits and ._-, the first a "
                       "letter or digit, and not %s",
                       PROFILE_NAME - 1, shown(name));
    if (strcmp(name, PROFILE_DEFAULT) == 0)
        return err_set(e, EINVAL, "profiles.default: this one is made by the options of serve");
    memcpy(r.p->name, name, strlen(name) + 1);
    r.p->idle_ms = PROFILE_UNSET;
    r.p->home = base->home;
    int rc = read_fields(&r, v, e);
    if (rc == 0)
        rc = complete(&r, e);
    t->count += rc == 0;
    return rc;
}

static int read_profiles(struct profiles *t, const json_t *v, const struct profilefile_base *base,
                         struct err *e)
{
    json_t *object = (json_t *)(uintptr_t)v, *value;
    const char *key;
    int rc = 0;

    if (!json_is_object(v))
        return err_set(e, EINVAL, "profiles: has to be an object, a member for each profile");
    if (json_object_size(v) == 0 || json_object_size(v) > PROFILES_MAX)
        return err_set(e, EINVAL, "profiles: there have to be 1 to %d", PROFILES_MAX);
    json_object_foreach(object, key, value)
    {
        rc = read_profile(t, key, value, base, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_document(struct profiles *t, const json_t *document,
                         const struct profilefile_base *base, struct err *e)
{
    json_t *object = (json_t *)(uintptr_t)document, *value;
    const char *key;

    if (!json_is_object(document))
        return err_set(e, EINVAL, "the file has to be a JSON object: {\"profiles\": {...}}");
    json_object_foreach(object, key, value)
    {
        if (strcmp(key, "profiles") != 0 && strcmp(key, "note") != 0)
            return err_set(e, EINVAL, "%s: there is no field with this name", shown(key));
        if (strcmp(key, "note") == 0 && !json_is_string(value))
            return err_set(e, EINVAL, "note: has to be text");
    }
    if (json_object_get(document, "profiles") == NULL)
        return err_set(e, EINVAL, "profiles: is missing");
    return read_profiles(t, json_object_get(document, "profiles"), base, e);
}

int profilefile_read(struct view text, const struct profilefile_base *base, struct profiles **ret,
                     struct err *e)
{
    json_error_t why;

    if (text.n > PROFILES_FILE)
        return err_set(e, EINVAL, "the file has more than %d bytes", PROFILES_FILE);
    json_t *document =
        json_loadb((const char *)text.p, text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (document == NULL)
        return json_error_code(&why) == json_error_duplicate_key
                   ? err_set(e, EINVAL, "line %d, column %d: a name is there twice in one object",
                             why.line, why.column)
                   : err_set(e, EINVAL, "line %d, column %d: this is no JSON", why.line,
                             why.column);
    autofree struct profiles *t = xcalloc(1, sizeof *t);
    autobuf struct buf table;
    buf_init(&table, PROFILES_TEXT);
    int rc = read_document(t, document, base, e);
    json_decref(document);
    if (rc == 0)
        rc = profiles_write(t, &table, e);
    if (rc == 0)
        *ret = take_ptr(t);
    return rc;
}
