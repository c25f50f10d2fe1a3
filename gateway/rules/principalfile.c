/* principalfile - reads the text of --principals into the table (principals.h). */
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "buf.h"
#include "datanames.h"
#include "err.h"
#include "limit.h"
#include "namedpath.h"
#include "principals.h"

/* What one line says. */
struct record {
    struct principal principal;
    uint8_t hashes[PRINCIPAL_HASHES_MAX][PRINCIPAL_DIGEST];
    unsigned hash_count;
    uint64_t expires_s;
    const struct principals_maxima *maxima;
    int has_observes;
};

typedef int field_fn(struct record *r, const char *field, const json_t *v, struct err *e);

/* Values are never shown: one of them may be a token that stands in the wrong place. */
static int wrong(struct err *e, const char *field, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int wrong(struct err *e, const char *field, const char *fmt, ...)
{
    char text[160];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(e, EINVAL, "field '%s' %s", field, text);
}

/* NULL when it is no string, or one with a NUL in it. */
static const char *string(const json_t *v)
{
    const char *s = json_string_value(v);

    return s != NULL && strlen(s) == json_string_length(v) ? s : NULL;
}

/* ---- fields --------------------------------------------------------------- */

static int read_name(struct record *r, const char *field, const json_t *v, struct err *e)
{
    const char *s = string(v);

    if (s == NULL || !principal_name_valid(s, strlen(s)))
        return wrong(e, field,
                     "has to be 1 to %d letters, digits and .-_@+, the first a letter or digit",
                     PRINCIPAL_NAME - 1);
    memcpy(r->principal.name, s, strlen(s) + 1);
    return 0;
}

static int read_role(struct record *r, const char *field, const json_t *v, struct err *e)
{
    static const char *const names[] = {
        [ROLE_FULL] = "full",
        [ROLE_OBSERVER] = "observer",
        [ROLE_PROXY] = "proxy",
    };
    const char *s = string(v);

    for (unsigned i = 0; s != NULL && i < sizeof names / sizeof *names; i++) {
        if (names[i] != NULL && strcmp(s, names[i]) == 0) {
            r->principal.role = (enum role)i;
            return 0;
        }
    }
    return wrong(e, field, "has to be \"full\", \"observer\" or \"proxy\"");
}

static int read_observes(struct record *r, const char *field, const json_t *v, struct err *e)
{
    const char *s = string(v);

    if (s == NULL || (strcmp(s, "*") != 0 && !principal_name_valid(s, strlen(s))))
        return wrong(e, field, "has to be the name of a principal, or \"*\"");
    memcpy(r->principal.observes, s, strlen(s) + 1);
    r->has_observes = 1;
    return 0;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_hash(struct record *r, const char *field, const json_t *v, struct err *e)
{
    const char *s = string(v);
    uint8_t *out = r->hashes[r->hash_count];

    if (s == NULL || strlen(s) != 2 * PRINCIPAL_DIGEST)
        return wrong(e, field, "has to be %d hexadecimal digits in lower case",
                     2 * PRINCIPAL_DIGEST);
    for (size_t i = 0; i < PRINCIPAL_DIGEST; i++) {
        int high = hex_digit(s[2 * i]), low = hex_digit(s[2 * i + 1]);

        if (high < 0 || low < 0)
            return wrong(e, field, "has to be %d hexadecimal digits in lower case",
                         2 * PRINCIPAL_DIGEST);
        out[i] = (uint8_t)(high * 16 + low);
    }
    r->hash_count++;
    return 0;
}

/* One hash, or a list of some: the old token works on while the new one is given out. */
static int read_hashes(struct record *r, const char *field, const json_t *v, struct err *e)
{
    int rc = 0;

    if (!json_is_array(v))
        return read_hash(r, field, v, e);
    if (json_array_size(v) > PRINCIPAL_HASHES_MAX)
        return wrong(e, field, "has more than %d hashes", PRINCIPAL_HASHES_MAX);
    for (size_t i = 0; i < json_array_size(v) && rc == 0; i++)
        rc = read_hash(r, field, json_array_get(v, i), e);
    return rc;
}

static int read_profile(struct record *r, const char *field, const json_t *v, struct err *e)
{
    const char *s = string(v);

    if (s != NULL && strcmp(s, PROFILE_DEFAULT) == 0)
        return 0;
    if (s == NULL || !profile_name_valid(s, strlen(s)) ||
        (r->maxima != NULL && profiles_find(r->maxima->profiles, view_cstr(s)) == NULL))
        return wrong(e, field, "has to be \"default\" or the name of one of --profiles");
    memcpy(r->principal.profile, s, strlen(s) + 1);
    return 0;
}

/* "*", or a list of names. */
static int read_profiles(struct record *r, const char *field, const json_t *v, struct err *e)
{
    const struct profiles *t = r->maxima != NULL ? r->maxima->profiles : NULL;
    const char *all = string(v);

    r->principal.profiles_version = r->maxima != NULL ? r->maxima->profiles_version : 0;
    if (all != NULL && strcmp(all, "*") == 0) {
        r->principal.profiles_all = 1;
        return 0;
    }
    if (!json_is_array(v) || json_array_size(v) > PROFILES_MAX + 1)
        return wrong(e, field, "has to be \"*\", or a list of names of --profiles");
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *s = string(json_array_get(v, i));
        const struct profile *p = s != NULL ? profiles_find(t, view_cstr(s)) : NULL;

        if (s == NULL || !profile_name_valid(s, strlen(s)))
            return wrong(e, field, "has to be \"*\", or a list of names of --profiles");
        if (strcmp(s, PROFILE_DEFAULT) == 0)
            r->principal.default_too = 1;
        else if (p != NULL)
            r->principal.profiles |= UINT32_C(1) << (p - t->at);
        else if (r->maxima != NULL)
            return wrong(e, field, "has a name (number %zu) that --profiles does not have", i + 1);
    }
    return 0;
}

/* 2027-01-31 (its first second) or 2027-01-31T12:00:00Z: always UTC, so that nobody has
 * to know the zone of the server. */
static int read_expires(struct record *r, const char *field, const json_t *v, struct err *e)
{
    const char *s = string(v);
    struct tm tm = { 0 }, back;
    char text[40] = "", again[40];

    if (s != NULL)
        snprintf(text, sizeof text, "%.24s%s", s, strlen(s) == 10 ? "T00:00:00Z" : "");
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    time_t t = end != NULL && *end == '\0' ? timegm(&tm) : -1;
    /* The day that does not exist comes back as another one. */
    if (t <= 0 || gmtime_r(&t, &back) == NULL ||
        strftime(again, sizeof again, "%Y-%m-%dT%H:%M:%SZ", &back) == 0 || strcmp(text, again) != 0)
        return wrong(e, field, "has to be a time in UTC: 2027-01-31 or 2027-01-31T12:00:00Z");
    r->expires_s = (uint64_t)t;
    return 0;
}

static int read_note(struct record *r, const char *field, const json_t *v, struct err *e)
{
    (void)r;
    return json_is_string(v) ? 0 : wrong(e, field, "has to be text");
}

/* ---- limits --------------------------------------------------------------- */

static int read_limit(struct record *r, const struct limit *l, const json_t *v, struct err *e)
{
    double number = json_number_value(v), unit = (double)l->number_unit;
    double least = (double)l->least / unit, most = (double)l->most / unit;
    uint64_t max = r->maxima != NULL ? limit_get(&r->maxima->limits, l) : 0;
    char field[32];

    snprintf(field, sizeof field, "limits.%s", l->name);
    if (!(l->milli ? json_is_number(v) : json_is_integer(v)) || !(number >= least) ||
        !(number <= most))
        return wrong(e, field, "has to be a%s number from %g to %.0f", l->milli ? "" : " whole",
                     least, most);
    uint64_t value = (uint64_t)(number * unit + 0.5);
    if (max > 0 && value > max)
        return wrong(e, field, "is above the server's own limit, %g", (double)max / unit);
    limit_set(&r->principal.limits, l, value);
    return 0;
}

static int read_time(struct record *r, const struct time_limit_name *l, const json_t *v,
                     struct err *e)
{
    double ms = json_number_value(v) * 1000;
    uint64_t max = r->maxima != NULL ? time_limits_get(&r->maxima->times, l) : 0;
    char field[40];

    snprintf(field, sizeof field, "limits.%s", l->name);
    if (!json_is_number(v) || !(ms >= TIME_LEAST_MS) || !(ms <= (double)TIME_MOST_MS))
        return wrong(e, field, "has to be a number of seconds from %g to %.0f",
                     TIME_LEAST_MS / 1000.0, (double)TIME_MOST_MS / 1000);
    if (max > 0 && ms > (double)max + 0.5)
        return wrong(e, field, "is above the server's own limit, %g", (double)max / 1000);
    time_limits_set(&r->principal.times, l, (uint64_t)(ms + 0.5));
    return 0;
}

static int read_max_kernels(struct record *r, const json_t *v, struct err *e)
{
    json_int_t n = json_integer_value(v);
    unsigned max = r->maxima != NULL ? r->maxima->max_kernels : 0;

    if (!json_is_integer(v) || n < 1 || n > 1000000)
        return wrong(e, "limits.max_kernels", "has to be a whole number from 1 to 1000000");
    if (max > 0 && n > (json_int_t)max)
        return wrong(e, "limits.max_kernels", "is above the server's own limit, %u", max);
    r->principal.max_kernels = (unsigned)n;
    return 0;
}

static int read_workspace(struct record *r, const json_t *v, struct err *e)
{
    json_int_t mib = json_integer_value(v);
    uint64_t max = r->maxima != NULL ? r->maxima->workspace_bytes >> 20 : 0;

    if (!json_is_integer(v) || mib < 1 || mib > 1 << 24)
        return wrong(e, "limits.workspace_mb", "has to be a whole number from 1 to %d", 1 << 24);
    if (max > 0 && (uint64_t)mib > max)
        return wrong(e, "limits.workspace_mb", "is above the server's own limit, %llu",
                     (unsigned long long)max);
    r->principal.workspace_bytes = (uint64_t)mib << 20;
    return 0;
}

/* A name of the file is shown only when it looks like one. */
static const char *shown(const char *key)
{
    size_t n = strspn(key, "abcdefghijklmnopqrstuvwxyz_");

    return n > 0 && n <= 16 && key[n] == '\0' ? key : "(not shown)";
}

static int read_limits(struct record *r, const char *field, const json_t *v, struct err *e)
{
    json_t *object = (json_t *)(uintptr_t)v, *value;
    const char *key;
    int rc = 0;

    if (!json_is_object(v))
        return wrong(e, field, "has to be an object");
    json_object_foreach(object, key, value)
    {
        const struct limit *l = limit_named(key);
        const struct time_limit_name *time = time_limit_named(key);

        if (l != NULL && l->of_principal)
            rc = read_limit(r, l, value, e);
        else if (time != NULL)
            rc = read_time(r, time, value, e);
        else if (strcmp(key, "max_kernels") == 0)
            rc = read_max_kernels(r, value, e);
        else if (strcmp(key, "workspace_mb") == 0)
            rc = read_workspace(r, value, e);
        else
            rc = wrong(e, field, "has an unknown name in it: %s", shown(key));
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- data directories ---- */

static int read_data(struct record *r, const char *field, const json_t *v, struct err *e)
{
    if (!json_is_array(v) || json_array_size(v) > NAMEDPATH_MAX)
        return wrong(e, field, "has to be a list of at most %d names of --data", NAMEDPATH_MAX);
    r->principal.data_some = 1;
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *name = string(json_array_get(v, i));

        if (name == NULL || !namedpath_name_valid(name, strlen(name)))
            return wrong(e, field, "has to be a list of names of --data");
        uint32_t bit = r->maxima != NULL ? datanames_bit(r->maxima->data, name) : 0;
        if (r->maxima != NULL && bit == 0)
            return wrong(e, field, "has a name (number %zu) that the server does not have: --data",
                         i + 1);
        r->principal.data |= bit;
    }
    return 0;
}

/* ---- lines ---------------------------------------------------------------- */

static const struct {
    const char *name;
    field_fn *read;
} fields[] = {
    { "name", read_name },         { "role", read_role },       { "observes", read_observes },
    { "sha256", read_hashes },     { "limits", read_limits },   { "profile", read_profile },
    { "profiles", read_profiles }, { "expires", read_expires }, { "note", read_note },
    { "data", read_data },
};

static int read_fields(struct record *r, json_t *object, struct err *e)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        size_t i = 0, count = sizeof fields / sizeof *fields;

        while (i < count && strcmp(key, fields[i].name) != 0)
            i++;
        if (i == count)
            return err_set(e, EINVAL, "there is no field with the name %s", shown(key));
        int rc = fields[i].read(r, key, value, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int check_record(const struct record *r, const json_t *object, struct err *e)
{
    if (r->principal.name[0] == '\0')
        return wrong(e, "name", "is missing");
    if (json_object_get(object, "sha256") == NULL)
        return wrong(e, "sha256", "is missing; [] for who comes through a trusted proxy only");
    if (r->principal.role == ROLE_OBSERVER && !r->has_observes)
        return wrong(e, "observes", "is missing: whose kernels this observer reads");
    if (r->principal.role != ROLE_OBSERVER && r->has_observes)
        return wrong(e, "observes", "is for the role \"observer\" only");
    if (r->principal.role != ROLE_FULL && r->principal.data_some)
        return wrong(e, "data", "is for the role \"full\" only: others make no kernels");
    if (r->principal.role != ROLE_FULL &&
        (r->principal.profile[0] != '\0' || json_object_get(object, "profiles") != NULL))
        return wrong(e, r->principal.profile[0] != '\0' ? "profile" : "profiles",
                     "is for the role \"full\" only: others make no kernels");
    if (r->principal.role != ROLE_FULL && json_object_get(object, "limits") != NULL)
        return wrong(e, "limits", "is for the role \"full\" only: others make no kernels");
    return 0;
}

static int read_line(struct principals *t, struct view line, const struct principals_maxima *maxima,
                     struct err *e)
{
    struct record r = { .maxima = maxima };
    json_error_t why;
    json_t *object;
    int rc;

    if (memchr(line.p, '\0', line.n) != NULL)
        return err_set(e, EINVAL, "there is a NUL byte");
    object = json_loadb((const char *)line.p, line.n, JSON_REJECT_DUPLICATES, &why);
    if (object == NULL)
        /* jansson's text would show a piece of the line. */
        return json_error_code(&why) == json_error_duplicate_key
                   ? err_set(e, EINVAL, "a field is there twice")
                   : err_set(e, EINVAL, "no JSON object on one line (column %d)", why.column);
    rc = json_is_object(object) ? read_fields(&r, object, e)
                                : err_set(e, EINVAL, "no JSON object on one line");
    if (rc == 0)
        rc = check_record(&r, object, e);
    json_decref(object);
    if (rc == 0)
        rc = principals_add(t, &r.principal, (const uint8_t(*)[PRINCIPAL_DIGEST])r.hashes,
                            r.hash_count, r.expires_s, e);
    explicit_bzero(&r, sizeof r);
    return rc;
}

static int is_blank(struct view line)
{
    size_t i = 0;

    while (i < line.n && (line.p[i] == ' ' || line.p[i] == '\t' || line.p[i] == '\r'))
        i++;
    return i == line.n || line.p[i] == '#';
}

int principals_parse(struct principals *t, struct view text, const struct principals_maxima *maxima,
                     struct err *e)
{
    unsigned number = 0;

    while (text.n > 0) {
        const uint8_t *end = memchr(text.p, '\n', text.n);
        struct view line = { text.p, end != NULL ? (size_t)(end - text.p) : text.n };

        number++;
        if (!is_blank(line) && read_line(t, line, maxima, e) < 0)
            return err_wrap(e, "line %u", number), -EINVAL;
        text.p += line.n + (end != NULL);
        text.n -= line.n + (end != NULL);
    }
    return 0;
}
