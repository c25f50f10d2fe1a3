#include "optionvalue.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "err.h"
#include "hostwalls.h"
#include "httphead.h"

enum { HEADER_MAX = 4096 };

int optionvalue_header(const char *option, const char *value, struct err *e)
{
    if (value == NULL)
        return 0;
    if (strlen(value) > HEADER_MAX)
        return err_set(e, EINVAL, "option --%s: the value is longer than %d bytes", option,
                       HEADER_MAX);
    for (const char *p = value; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return err_set(e, EINVAL, "option --%s: the value holds a control character", option);
    }
    return 0;
}

int optionvalue_origin(const char *option, const char *value, struct err *e)
{
    if (value == NULL || strcmp(value, "*") == 0)
        return 0;
    /* A browser compares letter by letter: a path, or even a last slash, never matches. */
    const char *host = strstr(value, "://");
    int good = host != NULL && host > value && host[3] != '\0';

    for (const char *p = value; good && *p != '\0'; p++) {
        if ((unsigned char)*p <= ' ' || (unsigned char)*p > '~' || strchr("?#,", *p) != NULL)
            good = 0;
        if (*p == '/' && p >= host + 3)
            good = 0;
    }
    if (!good)
        return err_set(e, EINVAL,
                       "option --%s: '%.80s' is not an origin such as https://lab.example:8443 "
                       "(no path, no final slash), nor *",
                       option, value);
    return 0;
}

int optionvalue_file(const char *option, const char *value, struct err *e)
{
    if (value == NULL)
        return 0;
    if (value[0] == '\0')
        return err_set(e, EINVAL, "option --%s: the name is empty", option);
    if (strstr(value, "://") != NULL)
        return err_set(e, EINVAL,
                       "option --%s: '%.80s' is a URL; the server fetches nothing, it reads a file",
                       option, value);
    return 0;
}

int optionvalue_seconds(const char *option, const char *value, struct err *e)
{
    if (value == NULL)
        return 0;
    size_t digits = strspn(value, "0123456789");
    if (digits == 0 || digits > 9 || value[digits] != '\0')
        return err_set(e, EINVAL, "option --%s: '%.32s' is not a number of seconds in 0..999999999",
                       option, value);
    return 0;
}

static int one_of(const char *option, const char *value, const char *names, struct err *e)
{
    const char *at = value != NULL && *value != '\0' ? strstr(names, value) : NULL;
    size_t n = value != NULL ? strlen(value) : 0;

    if (value == NULL ||
        (at != NULL && (at == names || at[-1] == ' ') && (at[n] == ',' || at[n] == '\0')))
        return 0;
    return err_set(e, EINVAL, "option --%s: '%.32s' is none of %s", option, value, names);
}

int optionvalue_log_format(const char *option, const char *value, struct err *e)
{
    return one_of(option, value, "text, json", e);
}

int optionvalue_log_level(const char *option, const char *value, struct err *e)
{
    return one_of(option, value, "debug, info, warn, error", e);
}

int optionvalue_access_log(const char *option, const char *value, struct err *e)
{
    return one_of(option, value, "auto, debug, info, off", e);
}

/* Calls good() for each item; an empty item is none. */
static int each(const char *list, int (*good)(const char *item, size_t n))
{
    const char *p = list;

    for (;;) {
        size_t n = strcspn(p, ",");

        if (n == 0 || !good(p, n))
            return 0;
        if (p[n] == '\0')
            return 1;
        p += n + 1;
    }
}

/* jupyter_client's rule: letters, digits and the three signs. */
static int is_kernel_name(const char *item, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)item[i]) && strchr("._-", item[i]) == NULL)
            return 0;
    }
    return 1;
}

static int is_variable_name(const char *item, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)item[i]) && item[i] != '_')
            return 0;
    }
    return !isdigit((unsigned char)item[0]);
}

int optionvalue_kernels(const char *option, const char *value, struct err *e)
{
    if (value == NULL || each(value, is_kernel_name))
        return 0;
    return err_set(e, EINVAL, "option --%s: '%.80s' is not the name of a kernelspec", option,
                   value);
}

int optionvalue_variables(const char *option, const char *value, struct err *e)
{
    if (value == NULL || each(value, is_variable_name))
        return 0;
    return err_set(e, EINVAL, "option --%s: '%.80s' is not a list of names of variables, NAME,NAME",
                   option, value);
}

int optionvalue_types(const char *option, const char *value, struct err *e)
{
    if (value == NULL || each(value, is_variable_name))
        return 0;
    return err_set(e, EINVAL, "option --%s: '%.80s' is not a list of types of messages, TYPE,TYPE",
                   option, value);
}

int optionvalue_header_name(const char *option, const char *value, struct err *e)
{
    if (value == NULL || (strlen(value) <= 64 && http_is_token(view_cstr(value))))
        return 0;
    return err_set(e, EINVAL, "option --%s: '%.64s' is not the name of a header", option, value);
}

int optionvalue_isolation(const char *option, const char *value, struct err *e)
{
    enum isolation level;

    if (value == NULL || isolation_of(value, &level, e) == 0)
        return 0;
    err_wrap(e, "option --%s", option);
    return -EINVAL;
}

int optionvalue_walls(const char *option, const char *value, struct err *e)
{
    struct hostwall_policy policy = { .level = ISOLATION_HARDENED };

    if (value == NULL || hostwall_policy_accept(&policy, value, e) == 0)
        return 0;
    return err_wrap(e, "option --%s", option);
}

int optionvalue_workspaces(const char *option, const char *value, struct err *e)
{
    if (value == NULL || value[0] == '/')
        return 0;
    return err_set(e, EINVAL, "option --%s: '%.80s' is no absolute path", option, value);
}

int optionvalue_home(const char *option, const char *value, struct err *e)
{
    if (value == NULL || strcmp(value, "auto") == 0 || strcmp(value, "disk") == 0 ||
        strcmp(value, "tmpfs") == 0)
        return 0;
    return err_set(e, EINVAL, "option --%s: '%.32s' is not auto, disk or tmpfs", option, value);
}
