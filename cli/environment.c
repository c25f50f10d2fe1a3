#include "environment.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "kgsettings.h"
#include "log.h"
#include "options.h"

#define PREFIX "HOLDCELL_"

enum { VARIABLE_MAX = 96 };

static void variable_of(const char *option, char out[VARIABLE_MAX])
{
    int n = snprintf(out, VARIABLE_MAX, PREFIX "%s", option);

    check(n < VARIABLE_MAX);
    for (char *p = out + strlen(PREFIX); *p != '\0'; p++)
        *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

static int is_asked(const struct option_spec *s)
{
    return s->kind != OPTION_GROUP && strncmp(s->name, "help", 4) != 0 &&
           strcmp(s->name, "token") != 0;
}

int environment_read(const struct option_reader *r, struct err *e)
{
    char name[VARIABLE_MAX];
    int rc = 0;

    for (size_t i = 0; i < r->count && rc == 0; i++) {
        if (!is_asked(&r->specs[i]))
            continue;
        variable_of(r->specs[i].name, name);
        const char *value = getenv(name);
        if (value != NULL && *value != '\0')
            rc = options_set(r, r->specs[i].name, name, OPTION_BY_ENVIRONMENT, value, e);
    }
    return rc;
}

static void warn(const char *variable, const char *nearest)
{
    log_warn("unknown_variable", "name=%s note=%s", LOG_QUOTED(variable),
             nearest != NULL ? LOG_QUOTED(nearest) : "\"it has no effect\"");
}

/* Many variables begin like ours (those of the tests, of a service of that name):
 * only one that is nearly an option's is taken for a slip. */
static void look_at_ours(const struct option_reader *r, const char *variable)
{
    char name[VARIABLE_MAX], note[VARIABLE_MAX + 32];
    unsigned best = 3;

    for (size_t i = 0; i < r->count; i++) {
        if (!is_asked(&r->specs[i]))
            continue;
        variable_of(r->specs[i].name, name);
        unsigned d = options_distance(variable, name);
        if (d == 0)
            return;
        if (d < best) {
            best = d;
            snprintf(note, sizeof note, "did you mean %s?", name);
        }
    }
    if (best < 3)
        warn(variable, note);
}

static void look_at_theirs(const char *variable)
{
    const char *nearest;
    char note[VARIABLE_MAX + 32];

    if (kgsettings_knows(variable, &nearest))
        return;
    if (nearest != NULL)
        snprintf(note, sizeof note, "did you mean %s?", nearest);
    warn(variable, nearest != NULL ? note : NULL);
}

void environment_warn(const struct option_reader *r)
{
    for (char **v = environ; *v != NULL; v++) {
        char name[VARIABLE_MAX];
        size_t n = strcspn(*v, "=");

        if (n >= sizeof name)
            continue;
        memcpy(name, *v, n);
        name[n] = '\0';
        if (strncmp(name, PREFIX, strlen(PREFIX)) == 0)
            look_at_ours(r, name);
        else if (strncmp(name, "KG_", 3) == 0)
            look_at_theirs(name);
    }
}
