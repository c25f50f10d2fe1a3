#include "limitsjson.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "jsonwrite.h"
#include "sessionlimits.h"

/* Of the field; what no field could hold is above every maximum anyway. */
#define MOST ((uint64_t)UINT32_MAX << 20)

static const struct limit_name *named(const char *name)
{
    for (unsigned i = 0; i < LIMITS_NAMED; i++)
        if (strcmp(limits_named[i].name, name) == 0)
            return &limits_named[i];
    return NULL;
}

static int read_one(const char *key, const json_t *value, struct launch_limits *ret, struct err *e)
{
    const struct limit_name *name = named(key);
    double n;

    if (name == NULL)
        return err_set(e, EINVAL,
                       "limits.%.40s is no limit: there are memory_mb, cpus, pids, "
                       "disk_mb, tmp_mb, inodes, fds",
                       key);
    if (json_is_null(value))
        return 0;
    if (!json_is_integer(value) && !(name->milli && json_is_real(value)))
        return err_set(e, EINVAL, "limits.%s must be a %s", key,
                       name->milli ? "number" : "whole number");
    n = json_number_value(value) * (double)name->unit;
    if (n < (double)name->least)
        return err_set(e, EINVAL, "limits.%s must be at least %g", key,
                       (double)name->least / (double)name->unit);
    if (n > (double)(name->wide ? MOST : UINT32_MAX))
        return err_set(e, EINVAL, "limits.%s is too large", key);
    limits_set(ret, name, (uint64_t)n);
    return 0;
}

int limitsjson_read(const json_t *object, struct launch_limits *ret, struct err *e)
{
    json_t *limits = json_object_get(object, "limits"), *value;
    const char *key;
    int rc = 0;

    *ret = (struct launch_limits){ 0 };
    if (limits == NULL || json_is_null(limits))
        return 0;
    if (!json_is_object(limits))
        return err_set(e, EINVAL, "limits must be an object");
    json_object_foreach(limits, key, value)
    {
        rc = read_one(key, value, ret, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static void write_milli(struct jsonwrite *w, uint64_t milli)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRIu64 ".%03u", milli / 1000, (unsigned)(milli % 1000));
    for (size_t n = strlen(text); text[n - 1] == '0' || text[n - 1] == '.'; n--) {
        int point = text[n - 1] == '.';

        text[n - 1] = '\0';
        if (point)
            break;
    }
    jsonwrite_raw(w, view_cstr(text));
}

void limitsjson_write(struct jsonwrite *w, const struct launch_limits *limits)
{
    jsonwrite_object(w);
    for (unsigned i = 0; i < LIMITS_NAMED; i++) {
        uint64_t value = limits_get(limits, &limits_named[i]);

        jsonwrite_key(w, limits_named[i].name);
        if (limits_named[i].milli)
            write_milli(w, value);
        else
            jsonwrite_uint(w, value / limits_named[i].unit);
    }
    jsonwrite_end(w);
}
