#include "sessionprofile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "limit.h"

static const char *const homes[PROFILE_HOMES] = { "auto", "disk", "tmpfs" };
static const char *const times[PROFILE_TIMES] = { "cell_ms", "stdin_ms", "life_ms" };

static int is_alnum(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

int profile_name_valid(const char *name, size_t n)
{
    if (n == 0 || n >= PROFILE_NAME || !is_alnum((unsigned char)name[0]))
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_alnum((unsigned char)name[i]) && memchr("._-", name[i], 3) == NULL)
            return 0;
    }
    return 1;
}

int profile_home_of(const char *name, enum profile_home *ret)
{
    for (unsigned i = 0; i < PROFILE_HOMES; i++) {
        if (strcmp(name, homes[i]) == 0) {
            *ret = (enum profile_home)i;
            return 0;
        }
    }
    return -1;
}

const char *profile_home_name(enum profile_home home)
{
    return homes[home];
}

const struct profile *profiles_find(const struct profiles *t, struct view name)
{
    for (unsigned i = 0; t != NULL && i < t->count; i++) {
        if (view_equals(name, t->at[i].name))
            return &t->at[i];
    }
    return NULL;
}

int profile_list_has(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = list; *p != '\0';) {
        size_t length = strcspn(p, ",");

        if (length == n && memcmp(p, name, n) == 0)
            return 1;
        p += length + (p[length] == ',');
    }
    return 0;
}

hostwall_set profile_refused(const struct profile *p, hostwall_set missing)
{
    const struct hostwall_policy demand = { .level = p->isolation };

    return hostwall_refused(&demand, missing) | (missing & p->walls);
}

/* ---- writing ---- */

static int write_one(const struct profile *p, struct buf *out)
{
    int rc = buf_addf(out, "%s", p->name);

    for (unsigned i = 0; i < LIMITS && rc == 0; i++)
        rc = buf_addf(out, " %s=%" PRIu64 "-%" PRIu64, limit_rows[i].member,
                      limit_get(&p->limits, &limit_rows[i]), limit_get(&p->maxima, &limit_rows[i]));
    for (unsigned i = 0; i < PROFILE_TIMES && rc == 0; i++)
        rc = buf_addf(out, " %s=%" PRIu64 "-%" PRIu64, times[i], p->times[i], p->most[i]);
    if (rc == 0 && p->idle_ms != PROFILE_UNSET)
        rc = buf_addf(out, " idle_ms=%" PRIu64, p->idle_ms);
    if (rc == 0)
        rc = buf_addf(out, " home=%s sized=%d", homes[p->home], p->home_sized != 0);
    if (rc == 0 && p->data_some)
        rc = buf_addf(out, " data=%s", p->data);
    if (rc == 0 && p->kernels_some)
        rc = buf_addf(out, " kernels=%s", p->kernels);
    return rc == 0 ? buf_addf(out, " isolation=%d walls=%" PRIu64 ";", (int)p->isolation, p->walls)
                   : rc;
}

int profiles_write(const struct profiles *t, struct buf *out, struct err *e)
{
    for (unsigned i = 0; i < t->count; i++) {
        if (write_one(&t->at[i], out) < 0)
            return err_set(e, EMSGSIZE, "the profiles take more than %d bytes", PROFILES_TEXT);
    }
    return 0;
}

/* ---- reading: a cursor, which stands still at the first thing that is not as written ---- */

struct cursor {
    struct view rest;
    int wrong;
};

static int next_is(const struct cursor *c, const char *word)
{
    size_t n = strlen(word);

    return !c->wrong && c->rest.n >= n && memcmp(c->rest.p, word, n) == 0;
}

static void skip(struct cursor *c, size_t n)
{
    c->rest.p += n;
    c->rest.n -= n;
}

static void expect(struct cursor *c, const char *word)
{
    if (next_is(c, word))
        skip(c, strlen(word));
    else
        c->wrong = 1;
}

static uint64_t take_number(struct cursor *c)
{
    uint64_t value = 0;
    size_t n = 0;

    for (; !c->wrong && n < c->rest.n && c->rest.p[n] >= '0' && c->rest.p[n] <= '9'; n++) {
        unsigned digit = c->rest.p[n] - '0';

        c->wrong = value > (UINT64_MAX - digit) / 10 || (n == 1 && c->rest.p[0] == '0');
        value = value * 10 + digit;
    }
    c->wrong |= n == 0;
    if (!c->wrong)
        skip(c, n);
    return value;
}

/* Up to the next blank. */
static void take_word(struct cursor *c, char *ret, size_t size)
{
    const uint8_t *end = c->rest.n > 0 ? memchr(c->rest.p, ' ', c->rest.n) : NULL;
    size_t n = end != NULL ? (size_t)(end - c->rest.p) : 0;

    c->wrong |= end == NULL || n >= size;
    if (c->wrong)
        return;
    memcpy(ret, c->rest.p, n);
    ret[n] = '\0';
    skip(c, n);
}

/* name_max: bytes of a name; most: names. */
static int list_valid(const char *list, size_t name_max, unsigned most)
{
    unsigned count = 0;

    for (const char *p = list; *p != '\0'; count++) {
        size_t n = strcspn(p, ",");

        if (n == 0 || n > name_max || count == most || (p[n] == ',' && p[n + 1] == '\0'))
            return 0;
        for (size_t i = 0; i < n; i++) {
            if (!is_alnum((unsigned char)p[i]) && memchr("._-", p[i], 3) == NULL)
                return 0;
        }
        p += n + (p[n] == ',');
    }
    return 1;
}

static int take_list(struct cursor *c, const char *key, size_t name_max, unsigned most,
                     char ret[PROFILE_LIST])
{
    if (!next_is(c, key))
        return 0;
    expect(c, key);
    take_word(c, ret, PROFILE_LIST);
    c->wrong |= !c->wrong && !list_valid(ret, name_max, most);
    return 1;
}

static void take_limits(struct cursor *c, struct profile *p)
{
    for (unsigned i = 0; i < LIMITS && !c->wrong; i++) {
        const struct limit *l = &limit_rows[i];

        expect(c, " ");
        expect(c, l->member);
        expect(c, "=");
        uint64_t value = take_number(c);
        expect(c, "-");
        uint64_t most = take_number(c);
        c->wrong |= value < l->least || most < value || most > l->most;
        limit_set(&p->limits, l, value);
        limit_set(&p->maxima, l, most);
    }
    for (unsigned i = 0; i < PROFILE_TIMES && !c->wrong; i++) {
        expect(c, " ");
        expect(c, times[i]);
        expect(c, "=");
        p->times[i] = take_number(c);
        expect(c, "-");
        p->most[i] = take_number(c);
        c->wrong |= p->most[i] > PROFILE_TIME_MOST || p->times[i] > PROFILE_TIME_MOST ||
                    (p->most[i] != 0 && (p->times[i] == 0 || p->times[i] > p->most[i]));
    }
}

static void take_profile(struct cursor *c, struct profile *p)
{
    char word[16] = "";
    uint64_t sized, level;

    take_word(c, p->name, sizeof p->name);
    take_limits(c, p);
    p->idle_ms = PROFILE_UNSET;
    if (next_is(c, " idle_ms=")) {
        expect(c, " idle_ms=");
        p->idle_ms = take_number(c);
        c->wrong |= p->idle_ms > PROFILE_TIME_MOST;
    }
    expect(c, " home=");
    take_word(c, word, sizeof word);
    c->wrong |= profile_home_of(word, &p->home) < 0;
    expect(c, " sized=");
    sized = take_number(c);
    p->home_sized = sized == 1;
    p->data_some = take_list(c, " data=", 32, 32, p->data);
    p->kernels_some =
        take_list(c, " kernels=", PROFILE_KERNEL_NAME, PROFILE_KERNELS_MAX, p->kernels);
    expect(c, " isolation=");
    level = take_number(c);
    p->isolation = level <= ISOLATION_HARDENED ? (enum isolation)level : ISOLATION_PROCESS;
    expect(c, " walls=");
    p->walls = take_number(c);
    expect(c, ";");
    c->wrong |= sized > 1 || level > ISOLATION_HARDENED || (p->walls >> HOSTWALL_COUNT) != 0;
}

int profiles_read(struct view text, struct profiles **ret, struct err *e)
{
    struct cursor c = { .rest = text };

    if (text.n == 0) {
        *ret = NULL;
        return 0;
    }
    if (text.n > PROFILES_TEXT)
        return err_set(e, EMSGSIZE, "the table of profiles has more than %d bytes", PROFILES_TEXT);
    autofree struct profiles *t = xcalloc(1, sizeof *t);
    while (c.rest.n > 0 && !c.wrong && t->count < PROFILES_MAX) {
        struct profile *p = &t->at[t->count];

        take_profile(&c, p);
        if (c.wrong || !profile_name_valid(p->name, strlen(p->name)) ||
            strcmp(p->name, PROFILE_DEFAULT) == 0 || profiles_find(t, view_cstr(p->name)) != NULL)
            return err_set(e, HC_EPARSE, "the table of profiles is wrong in number %u",
                           t->count + 1);
        t->count++;
    }
    if (c.rest.n > 0)
        return err_set(e, HC_EPARSE, "the table of profiles has more than %d", PROFILES_MAX);
    *ret = take_ptr(t);
    return 0;
}
