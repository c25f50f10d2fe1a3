#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "err.h"

#define NAME_MAX_LEN 40

/* Levenshtein distance of two short names; used only to say «did you mean». */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[NAME_MAX_LEN + 1];
    size_t n = strnlen(b, NAME_MAX_LEN);

    for (size_t j = 0; j <= n; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; a[i - 1] != '\0' && i <= NAME_MAX_LEN; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n; j++) {
            unsigned above = row[j];
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);

            if (above + 1 < best)
                best = above + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[n];
}

static int unknown(const struct option_spec *specs, size_t count, const char *name, struct err *e)
{
    const char *nearest = NULL;
    /* fewer changes than letters: else a name has nothing in common with it */
    unsigned best = strlen(name) < 4 ? (unsigned)strlen(name) : 4;

    for (size_t i = 0; i < count; i++) {
        unsigned d = distance(name, specs[i].name);

        if (d < best) {
            best = d;
            nearest = specs[i].name;
        }
    }
    if (nearest != NULL)
        return err_set(e, EINVAL, "unknown option --%s; did you mean --%s?", name, nearest);
    return err_set(e, EINVAL, "unknown option --%s", name);
}

enum { BOUND_TEXT = 32 };

/* A bound as somebody would write it: 16777216, 0.01 */
static const char *bound_text(uint64_t value, enum option_kind kind, char out[BOUND_TEXT])
{
    unsigned unit = kind == OPTION_MILLI ? 1000 : 1;
    int n = snprintf(out, BOUND_TEXT, "%" PRIu64, value / unit);

    if (value % unit != 0) {
        n += snprintf(out + n, (size_t)(BOUND_TEXT - n), ".%03u", (unsigned)(value % unit));
        while (out[n - 1] == '0')
            out[--n] = '\0';
    }
    return out;
}

static int out_of_range(const struct option_spec *s, const char *text, struct err *e)
{
    char min[BOUND_TEXT], max[BOUND_TEXT];

    if (s->min == s->max)
        return err_set(e, EINVAL, "option --%s: '%s' is not %s, the only value so far", s->name,
                       text, bound_text(s->min, s->kind, min));
    return err_set(e, EINVAL, "option --%s: '%s' is not in %s..%s", s->name, text,
                   bound_text(s->min, s->kind, min), bound_text(s->max, s->kind, max));
}

static int parse_number(const struct option_spec *s, const char *text, uint64_t *ret, struct err *e)
{
    uint64_t value = 0;
    unsigned decimals = 0;
    const char *p = text;

    for (; *p != '\0'; p++) {
        if (*p == '.' && s->kind == OPTION_MILLI && decimals == 0 && p > text) {
            decimals = 1;
            continue;
        }
        if (!isdigit((unsigned char)*p) || decimals > 3)
            break;
        if (value > UINT64_MAX / 100000) /* more digits, and the thousands of OPTION_MILLI, fit */
            value = UINT64_MAX / 100000;
        value = value * 10 + (uint64_t)(*p - '0');
        decimals += decimals > 0;
    }
    if (*p != '\0' || p == text)
        return err_set(e, EINVAL, "option --%s: '%s' is not a number", s->name, text);
    if (s->kind == OPTION_MILLI) {
        for (unsigned have = decimals > 0 ? decimals - 1 : 0; have < 3; have++)
            value *= 10;
    }
    if (value < s->min || value > s->max)
        return out_of_range(s, text, e);
    *ret = value;
    return 0;
}

static int store(const struct option_spec *s, const char *value, void *out, struct err *e)
{
    char *member = (char *)out + s->offset;

    switch (s->kind) {
    case OPTION_FLAG:
        *(int *)(void *)member = 1;
        return 0;
    case OPTION_STRING:
        *(const char **)(void *)member = value;
        return 0;
    case OPTION_NUMBER:
    case OPTION_MILLI:
        return parse_number(s, value, (uint64_t *)(void *)member, e);
    case OPTION_LATER:
        break;
    }
    return err_set(e, EINVAL, "option --%s is not supported yet", s->name);
}

/* `--token --listen ...`: somebody forgot the value. */
static int take_value(const struct option_spec *s, const char *next, struct err *e)
{
    if (next == NULL)
        return err_set(e, EINVAL, "option --%s needs a value", s->name);
    if (strncmp(next, "--", 2) == 0)
        return err_set(e, EINVAL,
                       "option --%s needs a value; a value that begins with dashes is given as "
                       "--%s=VALUE",
                       s->name, s->name);
    return 0;
}

int options_parse(const struct option_spec *specs, size_t count, int argc, char **argv, void *out,
                  const char **ret_rest, struct err *e)
{
    int rest = 0;

    for (int i = 1; i < argc; i++) {
        char name[NAME_MAX_LEN + 1];
        const char *word = strcmp(argv[i], "-h") == 0 ? "--help" : argv[i];

        if (strncmp(word, "--", 2) != 0) {
            if (ret_rest == NULL)
                return err_set(e, EINVAL, "unexpected argument '%s'", word);
            ret_rest[rest++] = argv[i];
            continue;
        }
        const char *equals = strchr(word, '=');
        size_t n = equals != NULL ? (size_t)(equals - word) - 2 : strlen(word) - 2;
        snprintf(name, sizeof name, "%.*s", (int)n, word + 2);

        const struct option_spec *s = NULL;
        for (size_t j = 0; j < count && n <= NAME_MAX_LEN; j++) {
            if (strcmp(specs[j].name, name) == 0)
                s = &specs[j];
        }
        if (s == NULL)
            return unknown(specs, count, name, e);
        const char *value = equals != NULL ? equals + 1 : NULL;
        if (s->kind == OPTION_FLAG && value != NULL)
            return err_set(e, EINVAL, "option --%s takes no value", s->name);
        if (s->kind != OPTION_FLAG && s->kind != OPTION_LATER && value == NULL) {
            value = i + 1 < argc ? argv[++i] : NULL;
            if (take_value(s, value, e) < 0)
                return -EINVAL;
        }
        int rc = store(s, value, out, e);
        if (rc < 0)
            return rc;
    }
    return rest;
}

static int left_side(const struct option_spec *s, char *out, size_t n)
{
    return snprintf(out, n, "--%s%s%s", s->name, s->metavar != NULL ? " " : "",
                    s->metavar != NULL ? s->metavar : "");
}

void options_help(const struct option_spec *specs, size_t count, FILE *to)
{
    char left[64];
    int width = 0;

    for (size_t i = 0; i < count; i++) {
        int n = left_side(&specs[i], left, sizeof left);

        width = specs[i].kind != OPTION_LATER && n > width ? n : width;
    }
    for (size_t i = 0; i < count; i++) {
        if (specs[i].kind == OPTION_LATER)
            continue;
        left_side(&specs[i], left, sizeof left);
        fprintf(to, "  %-*s  %s\n", width, left, specs[i].help);
    }
}
