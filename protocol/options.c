#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "err.h"

#define NAME_MAX_LEN 80

/* Levenshtein. */
unsigned options_distance(const char *a, const char *b)
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
        unsigned d = options_distance(name, specs[i].name);

        if (specs[i].kind != OPTION_GROUP && d < best) {
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

static int out_of_range(const struct option_spec *s, const char *label, const char *text,
                        struct err *e)
{
    char min[BOUND_TEXT], max[BOUND_TEXT];

    if (s->min == s->max)
        return err_set(e, EINVAL, "%s: '%s' is not %s, the only value so far", label, text,
                       bound_text(s->min, s->kind, min));
    return err_set(e, EINVAL, "%s: '%s' is not in %s..%s", label, text,
                   bound_text(s->min, s->kind, min), bound_text(s->max, s->kind, max));
}

/* Why it is none that is taken; `-1` is one all the same. */
static int not_taken(const struct option_spec *s, const char *label, const char *text,
                     struct err *e)
{
    static const char digits[] = "0123456789";
    const char *p = text + (*text == '-' || *text == '+');
    size_t whole = strspn(p, digits);
    size_t part = p[whole] == '.' ? strspn(p + whole + 1, digits) : 0;

    if (whole + part == 0 || p[whole + (p[whole] == '.') + part] != '\0')
        return err_set(e, EINVAL, "%s: '%s' is not a number", label, text);
    if (*text == '-')
        return out_of_range(s, label, text, e);
    if (*text == '+' || whole == 0)
        return err_set(e, EINVAL, "%s: '%s' does not begin with a digit", label, text);
    if (s->kind != OPTION_MILLI)
        return err_set(e, EINVAL, "%s: '%s' is not a whole number", label, text);
    return err_set(e, EINVAL, "%s: '%s' has more than three decimals", label, text);
}

static int parse_number(const struct option_spec *s, const char *label, const char *text,
                        uint64_t *ret, struct err *e)
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
        return not_taken(s, label, text, e);
    if (s->kind == OPTION_MILLI) {
        for (unsigned have = decimals > 0 ? decimals - 1 : 0; have < 3; have++)
            value *= 10;
    }
    if (value < s->min || value > s->max)
        return out_of_range(s, label, text, e);
    *ret = value;
    return 0;
}

int options_truth(const char *value, int *ret)
{
    static const char *const words[] = { "0", "1", "false", "true", "no", "yes", "off", "on" };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(value, words[i]) == 0) {
            *ret = (int)(i % 2);
            return 0;
        }
    }
    return -EINVAL;
}

/* value NULL: a flag of the command line. */
static int append(struct option_list *list, const char *label, const char *value, struct err *e)
{
    if (list->count == OPTION_LIST_MAX)
        return err_set(e, EINVAL, "%s is given more than %d times", label, OPTION_LIST_MAX);
    list->item[list->count++] = value;
    return 0;
}

static int store(const struct option_spec *s, const char *label, const char *value, void *out,
                 struct err *e)
{
    char *member = (char *)out + s->offset;

    switch (s->kind) {
    case OPTION_FLAG:
        if (value == NULL)
            *(int *)(void *)member = 1;
        else if (options_truth(value, (int *)(void *)member) < 0)
            return err_set(e, EINVAL, "%s: '%s' is none of true, false, yes, no, on, off, 1, 0",
                           label, value);
        return 0;
    case OPTION_STRING:
        *(const char **)(void *)member = value;
        return 0;
    case OPTION_LIST:
        return append((struct option_list *)(void *)member, label, value, e);
    case OPTION_NUMBER:
    case OPTION_MILLI:
        return parse_number(s, label, value, (uint64_t *)(void *)member, e);
    case OPTION_LATER:
    case OPTION_GROUP:
        break;
    }
    return err_set(e, EINVAL, "%s is not supported yet", label);
}

static const struct option_spec *find(const struct option_spec *specs, size_t count,
                                      const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (specs[i].kind != OPTION_GROUP && strcmp(specs[i].name, name) == 0)
            return &specs[i];
    }
    return NULL;
}

/* ---- sources ---- */

const struct option_mark *options_mark(const struct option_reader *r, const char *name)
{
    const struct option_spec *s = find(r->specs, r->count, name);

    check(s != NULL);
    return &r->marks[s - r->specs];
}

static int is_same(const struct option_spec *s, const char *a, const char *b)
{
    uint64_t m = 0, n = 0;
    int p = 1, q = 1;

    if (s->kind == OPTION_FLAG)
        return (a == NULL || options_truth(a, &p) == 0) &&
               (b == NULL || options_truth(b, &q) == 0) && p == q;
    if (s->kind == OPTION_STRING || s->kind == OPTION_LIST)
        return strcmp(a, b) == 0;
    return parse_number(s, "", a, &m, NULL) == 0 && parse_number(s, "", b, &n, NULL) == 0 && m == n;
}

static int set(const struct option_reader *r, const struct option_spec *s, const char *label,
               enum option_rank rank, const char *value, struct err *e)
{
    struct option_mark *m = &r->marks[s - r->specs];

    if (m->rank > rank)
        return 0;
    if (m->rank == rank && strcmp(m->label, label) != 0) {
        if (is_same(s, m->value, value))
            return 0;
        return err_set(e, EINVAL, "%s contradicts %s", label, m->label);
    }
    int rc = store(s, label, value, r->out, e);
    if (rc < 0)
        return rc;
    m->rank = rank;
    m->value = value;
    snprintf(m->label, sizeof m->label, "%s", label);
    return 0;
}

int options_set(const struct option_reader *r, const char *name, const char *label,
                enum option_rank rank, const char *value, struct err *e)
{
    const struct option_spec *s = find(r->specs, r->count, name);

    check(s != NULL && value != NULL);
    return set(r, s, label, rank, value, e);
}

/* ---- the command line ---- */

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

struct word { /* of the command line, taken apart */
    char name[NAME_MAX_LEN + 1];
    const char *value, *next; /* behind its '='; the word after it; or NULL */
};

/* 0: it is no option. */
static int split(const char *text, const char *next, struct word *ret)
{
    const char *word = strcmp(text, "-h") == 0 ? "--help" : text;
    /* -Class.trait=value: one dash is enough for those who wrote configuration for Jupyter */
    size_t dashes = strncmp(word, "--", 2) == 0 ? 2 : word[0] == '-' && word[1] != '\0' ? 1 : 0;
    const char *equals = strchr(word, '=');
    size_t n = equals != NULL ? (size_t)(equals - word) : strlen(word);

    snprintf(ret->name, sizeof ret->name, "%.*s", (int)(n - dashes), word + dashes);
    ret->value = equals != NULL ? equals + 1 : NULL;
    ret->next = next;
    return (int)dashes;
}

/* Takes an option of the table; *ret_used: also the next word. */
static int take(const struct option_reader *r, const struct option_spec *s, const struct word *w,
                int *ret_used, struct err *e)
{
    const char *value = w->value;
    char label[OPTION_LABEL];

    snprintf(label, sizeof label, "option --%s", s->name);
    if (s->kind == OPTION_FLAG && value != NULL)
        return err_set(e, EINVAL, "%s takes no value", label);
    if (s->kind != OPTION_FLAG && s->kind != OPTION_LATER && value == NULL) {
        value = w->next;
        *ret_used = 1;
        if (take_value(s, value, e) < 0)
            return -EINVAL;
    }
    return r->marks != NULL ? set(r, s, label, OPTION_BY_USER, value, e)
                            : store(s, label, value, r->out, e);
}

static int read_words(const struct option_reader *r, int argc, char **argv, const char **ret_rest,
                      struct err *e)
{
    int rest = 0;

    for (int i = 1; i < argc; i++) {
        struct word w;
        int used = 0, rc = 0;
        int dashes = split(argv[i], i + 1 < argc ? argv[i + 1] : NULL, &w);

        const struct option_spec *s = dashes == 2 ? find(r->specs, r->count, w.name) : NULL;
        if (s != NULL)
            rc = take(r, s, &w, &used, e);
        else if (dashes > 0 && r->foreign != NULL)
            rc = r->foreign(r->foreign_arg, w.name, w.value, w.next, &used, e);
        if (rc < 0)
            return rc;
        if (s == NULL && rc == 0) {
            if (dashes == 2)
                return unknown(r->specs, r->count, w.name, e);
            if (ret_rest == NULL)
                return err_set(e, EINVAL, "unexpected argument '%s'", argv[i]);
            ret_rest[rest++] = argv[i];
        }
        i += used;
    }
    return rest;
}

int options_parse(const struct option_spec *specs, size_t count, int argc, char **argv, void *out,
                  const char **ret_rest, struct err *e)
{
    const struct option_reader r = { .specs = specs, .count = count, .out = out };

    return read_words(&r, argc, argv, ret_rest, e);
}

int options_read(const struct option_reader *r, int argc, char **argv, struct err *e)
{
    check(r->marks != NULL);
    return read_words(r, argc, argv, NULL, e);
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

        width = specs[i].kind < OPTION_LATER && n > width ? n : width;
    }
    for (size_t i = 0; i < count; i++) {
        if (specs[i].kind == OPTION_GROUP)
            fprintf(to, "%s%s:\n", i > 0 ? "\n" : "", specs[i].name);
        if (specs[i].kind >= OPTION_LATER)
            continue;
        left_side(&specs[i], left, sizeof left);
        fprintf(to, "  %-*s  %s\n", width, left, specs[i].help);
    }
}
