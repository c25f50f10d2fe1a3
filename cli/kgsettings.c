#include "kgsettings.h"

#include <errno.h>
#include <string.h>

#include "err.h"
#include "kgtable.h"
#include "options.h"

void kgsettings_free(struct kgsettings *k)
{
    for (size_t i = 0; i < k->kept_count; i++) {
        explicit_bzero(k->kept[i], strlen(k->kept[i])); /* one may be the token */
        free(k->kept[i]);
    }
    free(k->kept);
    *k = (struct kgsettings){ 0 };
}

static const char *keep(struct kgsettings *k, char *text)
{
    char **more = reallocarray(k->kept, k->kept_count + 1, sizeof *more);

    check(more != NULL && text != NULL);
    k->kept = more;
    k->kept[k->kept_count++] = text;
    return text;
}

/* ---- values ---- */

static int in_list(const char *list, const char *value)
{
    size_t n = strlen(value);

    while (*list != '\0') {
        size_t item = strcspn(list, ",");

        if (item == n && memcmp(list, value, n) == 0)
            return 1;
        list += item;
        list += *list == ',';
    }
    return 0;
}

/* "['A', 'B']", "A, B" and "A,,B" are all A,B. */
static char *plain_list(const char *before, const char *value)
{
    char *out = xcalloc(1, strlen(before) + strlen(value) + 2);
    size_t n = strlen(before);
    int first = 1; /* of an item */

    memcpy(out, before, n);
    for (const char *p = value; *p != '\0'; p++) {
        if (strchr("[](){}'\" \t", *p) != NULL)
            continue;
        if (*p == ',') {
            first = 1;
            continue;
        }
        if (first && n > 0)
            out[n++] = ',';
        first = 0;
        out[n++] = *p;
    }
    return out;
}

static const char *level_of(const char *value)
{
    static const char *const levels[][2] = {
        { "10", "debug" },     { "20", "info" },     { "30", "warn" },        { "40", "error" },
        { "50", "error" },     { "DEBUG", "debug" }, { "INFO", "info" },      { "WARN", "warn" },
        { "WARNING", "warn" }, { "ERROR", "error" }, { "CRITICAL", "error" },
    };

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcasecmp(levels[i][0], value) == 0)
            return levels[i][1];
    }
    return value;
}

static int truth(const char *label, const char *value, int *ret, struct err *e)
{
    if (options_truth(value, ret) < 0)
        return err_set(e, EINVAL, "%s: '%.32s' is neither True nor False", label, value);
    return 0;
}

static int notebook(const char *label, const char **value, struct err *e)
{
    const char *v = *value;

    if (strncasecmp(v, "http:", 5) == 0 || strncasecmp(v, "https:", 6) == 0)
        return err_set(e, EINVAL,
                       "%s: '%.80s' is a URL; the server fetches nothing: download the notebook "
                       "and name the file",
                       label, v);
    if (strncasecmp(v, "file:", 5) == 0) {
        v += 5;
        if (strncmp(v, "//", 2) == 0) /* and a host, which is none other than this one */
            v = strchr(v + 2, '/') != NULL ? strchr(v + 2, '/') : "";
    }
    *value = v;
    return 0;
}

static int refused(const struct kg_setting *s, const char *label, struct err *e)
{
    return err_set(e, EINVAL, "%s is not supported: %s", label, s->why);
}

static int keep_address(struct kgsettings *k, const char **value)
{
    if (**value == '\0' || strcmp(*value, "*") == 0)
        *value = "0.0.0.0";
    else if (strchr(*value, ':') != NULL && **value != '[') {
        char *text = NULL;

        if (asprintf(&text, "[%s]", *value) < 0)
            return -ENOMEM;
        *value = keep(k, text);
    }
    return 0;
}

static int keep_base(struct kgsettings *k, const char **value)
{
    char *text = NULL;

    if (**value == '/')
        return 0;
    if (asprintf(&text, "/%s", *value) < 0)
        return -ENOMEM;
    *value = keep(k, text);
    return 0;
}

/* The value of our option, in *value. 1: there is nothing to set. */
static int translate(struct kgsettings *k, const struct kg_setting *s, const char *label,
                     const char **value, struct err *e)
{
    int on = 0, rc = 0;

    switch (s->kind) {
    case KG_TEXT:
    case KG_TOKEN:
    case KG_SWITCH_LEVEL:
        return 0;
    case KG_COUNT:
        if (**value != '\0' && strspn(*value, "0") == strlen(*value))
            return err_set(e, EINVAL, "%s: 0 would let no kernel start; leave it out for no limit",
                           label);
        return 0;
    case KG_LIST:
        *value = keep(k, plain_list("", *value));
        return **value == '\0';
    case KG_LISTING:
        rc = truth(label, *value, &on, e);
        *value = on ? "false" : "true";
        return rc;
    case KG_TRUTH:
        rc = truth(label, *value, &on, e);
        *value = on ? "true" : "false";
        return rc;
    case KG_BASE:
        return keep_base(k, value);
    case KG_ADDRESS:
        return keep_address(k, value);
    case KG_NOTEBOOK:
        return notebook(label, value, e);
    case KG_LEVEL:
        *value = level_of(*value);
        return 0;
    case KG_ONLY:
        if (in_list(s->values, *value))
            return 1;
        return err_set(e, EINVAL, "%s: '%.80s' is not supported: %s", label, *value, s->why);
    default:
        return refused(s, label, e);
    }
}

static int apply(struct kgsettings *k, const struct kg_setting *s, const char *label,
                 enum option_rank rank, const char *value, struct err *e)
{
    int rc = translate(k, s, label, &value, e);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    /* A list may be given item by item. */
    const struct option_mark *m = options_mark(k->reader, s->option);
    if (s->kind == KG_LIST && m->rank == rank && strcmp(m->label, label) == 0)
        value = keep(k, plain_list(m->value, value));
    return options_set(k->reader, s->option, label, rank, value, e);
}

/* ---- flags ---- */

/* Configuration may name the class that is meant, or one that it comes from. */
static const char *with_base_class(const char *name, char *out, size_t n)
{
    static const char *const derived[] = { "Seeding", "Async" };

    for (size_t i = 0; i < sizeof derived / sizeof derived[0]; i++) {
        size_t skip = strlen(derived[i]);

        if (strncmp(name, derived[i], skip) == 0 &&
            strncmp(name + skip, "MappingKernelManager.", 21) == 0) {
            snprintf(out, n, "%s", name + skip);
            return out;
        }
    }
    return name;
}

static int is_named(const struct kg_setting *s, const char *name)
{
    return (s->trait != NULL && strcmp(s->trait, name) == 0) ||
           (s->alias != NULL && strcmp(s->alias, name) == 0);
}

static int unknown(const char *name, struct err *e)
{
    const char *nearest = NULL;
    unsigned best = 6;

    if (strchr(name, '.') == NULL)
        return 0;
    for (size_t i = 0; i < kg_setting_count; i++) {
        unsigned d =
            kg_settings[i].trait != NULL ? options_distance(name, kg_settings[i].trait) : best;

        if (d < best) {
            best = d;
            nearest = kg_settings[i].trait;
        }
    }
    if (nearest != NULL)
        return err_set(e, EINVAL, "unknown option --%s; did you mean --%s?", name, nearest);
    return err_set(e, EINVAL, "unknown option --%s: see holdcell serve --help-kernel-gateway",
                   name);
}

int kgsettings_flag(void *arg, const char *name, const char *value, const char *next, int *ret_used,
                    struct err *e)
{
    struct kgsettings *k = arg;
    const struct kg_setting *s = kg_settings, *end = kg_settings + kg_setting_count;
    char based[OPTION_LABEL], label[OPTION_LABEL];

    const char *known = with_base_class(name, based, sizeof based);
    while (s < end && !is_named(s, known))
        s++;
    if (s == end)
        return unknown(name, e);
    snprintf(label, sizeof label, "option --%s", name);
    if (s->kind == KG_SWITCH_REFUSED || s->kind == KG_REFUSED)
        return refused(s, label, e);
    if (s->kind >= KG_SWITCH_LEVEL && value != NULL)
        return err_set(e, EINVAL, "%s takes no value", label);
    if (s->kind == KG_SWITCH_IGNORED)
        return 1;
    if (s->kind == KG_SWITCH_LEVEL)
        value = "debug";
    if (value == NULL) {
        if (next == NULL || strncmp(next, "--", 2) == 0)
            return err_set(e, EINVAL, "%s needs a value", label);
        value = next;
        *ret_used = 1;
    }
    /* The word of Python for "not set". */
    if (strcmp(value, "None") == 0)
        return 1;
    int rc = apply(k, s, label, OPTION_BY_USER, value, e);
    return rc < 0 ? rc : 1;
}

/* ---- variables ---- */

int kgsettings_environment(struct kgsettings *k, struct err *e)
{
    int rc = 0;

    for (size_t i = 0; i < kg_setting_count && rc == 0; i++) {
        const struct kg_setting *s = &kg_settings[i];
        const char *value = s->env != NULL && s->kind != KG_TOKEN ? getenv(s->env) : NULL;

        if (value == NULL || *value == '\0')
            continue;
        /* There exactly this word is true, and every other one false. */
        if (s->kind == KG_LISTING)
            value = strcmp(value, "True") == 0 ? "True" : "False";
        rc = apply(k, s, s->env, OPTION_BY_ENVIRONMENT, value, e);
    }
    return rc;
}

int kgsettings_knows(const char *variable, const char **ret_nearest)
{
    /* Of the letters behind KG_ most have to be right: KG_FOO is no slip for KG_IP. */
    size_t letters = strlen(variable) > 3 ? strlen(variable) - 3 : 0;
    unsigned best = letters < 8 ? (unsigned)(letters + 2) / 2 : 4;

    *ret_nearest = NULL;
    for (size_t i = 0; i < kg_setting_count; i++) {
        if (kg_settings[i].env == NULL)
            continue;
        unsigned d = options_distance(variable, kg_settings[i].env);

        if (d == 0)
            return 1;
        if (d < best) {
            best = d;
            *ret_nearest = kg_settings[i].env;
        }
    }
    return 0;
}

/* ---- the document ---- */

static void print_names(const struct kg_setting *s, FILE *to)
{
    if (s->trait != NULL)
        fprintf(to, "`--%s`", s->trait);
    if (s->alias != NULL)
        fprintf(to, "%s`-%s%s`", s->trait != NULL ? ", " : "", strlen(s->alias) > 1 ? "-" : "",
                s->alias);
}

static void print_values(const char *list, FILE *to)
{
    for (const char *p = list; *p != '\0';) {
        size_t n = strcspn(p, ",");

        fprintf(to, "%s`%.*s`", p > list ? ", " : "", (int)n, p);
        p += n;
        p += *p == ',';
    }
}

static void print_meaning(const struct kg_setting *s, FILE *to)
{
    switch (s->kind) {
    case KG_ONLY:
        print_values(s->values, to);
        fprintf(to, "; else refused: %s", s->why);
        return;
    case KG_REFUSED:
    case KG_SWITCH_REFUSED:
        fprintf(to, "refused: %s", s->why);
        return;
    case KG_SWITCH_IGNORED:
        fprintf(to, "no effect: %s", s->why);
        return;
    case KG_SWITCH_LEVEL:
        fprintf(to, "`--%s debug`", s->option);
        return;
    case KG_LISTING:
        fprintf(to, "`False` is `--%s`", s->option);
        return;
    default:
        fprintf(to, "`--%s`", s->option);
    }
}

void kgsettings_print(FILE *to)
{
    fprintf(to, "| variable | flag | here |\n|---|---|---|\n");
    for (size_t i = 0; i < kg_setting_count; i++) {
        const struct kg_setting *s = &kg_settings[i];

        fprintf(to, "| %s%s%s | ", s->env != NULL ? "`" : "", s->env != NULL ? s->env : "",
                s->env != NULL ? "`" : "");
        print_names(s, to);
        fprintf(to, " | ");
        print_meaning(s, to);
        fprintf(to, " |\n");
    }
}
