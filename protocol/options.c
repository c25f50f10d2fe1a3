#include "options.h"

#include <ctype.h>
#include <errno.h>
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
    unsigned best = 4;

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
        if (!isdigit((unsigned char)*p) || value > UINT64_MAX / 10000 || decimals > 3)
            break;
        value = value * 10 + (uint64_t)(*p - '0');
        decimals += decimals > 0;
    }
    if (*p != '\0' || p == text)
        return err_set(e, EINVAL, "option --%s: '%s' is not a number", s->name, text);
    if (s->kind == OPTION_MILLI) {
        for (unsigned have = decimals > 0 ? decimals - 1 : 0; have < 3; have++)
            value *= 10;
    }
    if (value < s->min || value > s->max) {
        unsigned unit = s->kind == OPTION_MILLI ? 1000 : 1;
        return err_set(e, EINVAL, "option --%s: %s is not in %g..%g", s->name, text,
                       (double)s->min / unit, (double)s->max / unit);
    }
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

int options_parse(const struct option_spec *specs, size_t count, int argc, char **argv, void *out,
                  const char **ret_rest, struct err *e)
{
    int rest = 0;

    for (int i = 1; i < argc; i++) {
        char name[NAME_MAX_LEN + 1];

        if (strncmp(argv[i], "--", 2) != 0) {
            if (ret_rest == NULL)
                return err_set(e, EINVAL, "unexpected argument '%s'", argv[i]);
            ret_rest[rest++] = argv[i];
            continue;
        }
        const char *equals = strchr(argv[i], '=');
        size_t n = equals != NULL ? (size_t)(equals - argv[i]) - 2 : strlen(argv[i]) - 2;
        snprintf(name, sizeof name, "%.*s", (int)n, argv[i] + 2);

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
            if (i + 1 >= argc)
                return err_set(e, EINVAL, "option --%s needs a value", s->name);
            value = argv[++i];
        }
        int rc = store(s, value, out, e);
        if (rc < 0)
            return rc;
    }
    return rest;
}

void options_help(const struct option_spec *specs, size_t count, FILE *to)
{
    for (size_t i = 0; i < count; i++) {
        char left[64];

        if (specs[i].kind == OPTION_LATER)
            continue;
        snprintf(left, sizeof left, "--%s%s%s", specs[i].name, specs[i].metavar ? " " : "",
                 specs[i].metavar ? specs[i].metavar : "");
        fprintf(to, "  %-28s %s\n", left, specs[i].help);
    }
}
