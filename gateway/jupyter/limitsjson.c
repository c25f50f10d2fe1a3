#include "limitsjson.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "jsonwrite.h"
#include "limit.h"
#include "timelimits.h"

/* Of the field; what no field could hold is above every maximum anyway. */
#define MOST ((uint64_t)UINT32_MAX << 20)

static int unknown(const char *key, struct err *e)
{
    char names[240] = "";

    for (unsigned i = 0, n = 0; i < LIMITS + TIME_LIMITS; i++) {
        const char *name = i < LIMITS ? limit_rows[i].name : time_limits_named[i - LIMITS].name;
        if (name == NULL)
            continue;
        int more = snprintf(names + n, sizeof names - n, "%s%s", n > 0 ? ", " : "", name);
        n += (unsigned)more < sizeof names - n ? (unsigned)more : 0;
    }
    return err_set(e, EINVAL, "limits.%.40s is no limit: there are %s", key, names);
}

static int read_time(const struct time_limit_name *name, const json_t *value,
                     struct time_limits *ret, struct err *e)
{
    double ms = json_number_value(value) * 1000;

    if (json_is_null(value))
        return 0;
    if (!json_is_number(value))
        return err_set(e, EINVAL, "limits.%s must be a number", name->name);
    if (!(ms >= TIME_LEAST_MS))
        return err_set(e, EINVAL, "limits.%s must be at least %g", name->name,
                       TIME_LEAST_MS / 1000.0);
    if (!(ms <= (double)TIME_MOST_MS))
        return err_set(e, EINVAL, "limits.%s is too large", name->name);
    time_limits_set(ret, name, (uint64_t)(ms + 0.5));
    return 0;
}

static int read_one(const char *key, const json_t *value, struct launch_limits *ret, struct err *e)
{
    const struct limit *l = limit_named(key);
    double n;

    if (l == NULL)
        return unknown(key, e);
    if (json_is_null(value))
        return 0;
    if (!json_is_integer(value) && !(l->milli && json_is_real(value)))
        return err_set(e, EINVAL, "limits.%s must be a %s", key,
                       l->milli ? "number" : "whole number");
    n = json_number_value(value) * (double)l->number_unit;
    if (n < (double)l->least)
        return err_set(e, EINVAL, "limits.%s must be at least %g", key,
                       (double)l->least / (double)l->number_unit);
    if (n > (double)(l->wide ? MOST : UINT32_MAX))
        return err_set(e, EINVAL, "limits.%s is too large", key);
    limit_set(ret, l, (uint64_t)(n + 0.5));
    return 0;
}

int limitsjson_read(const json_t *object, struct launch_limits *ret, struct time_limits *ret_times,
                    struct err *e)
{
    json_t *limits = json_object_get(object, "limits"), *value;
    const char *key;
    int rc = 0;

    *ret = (struct launch_limits){ 0 };
    *ret_times = (struct time_limits){ 0 };
    if (limits == NULL || json_is_null(limits))
        return 0;
    if (!json_is_object(limits))
        return err_set(e, EINVAL, "limits must be an object");
    json_object_foreach(limits, key, value)
    {
        const struct time_limit_name *time = time_limit_named(key);

        rc = time != NULL ? read_time(time, value, ret_times, e) : read_one(key, value, ret, e);
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

void limitsjson_write(struct jsonwrite *w, const struct launch_limits *limits,
                      const struct time_limits *times)
{
    jsonwrite_object(w);
    for (unsigned i = 0; i < LIMITS; i++) {
        const struct limit *l = &limit_rows[i];
        uint64_t value = limit_get(limits, l);

        if (l->name == NULL)
            continue;
        jsonwrite_key(w, l->name);
        if (l->milli)
            write_milli(w, value);
        else
            jsonwrite_uint(w, value / l->unit);
    }
    for (unsigned i = 0; i < TIME_LIMITS; i++) {
        uint64_t ms = time_limits_get(times, &time_limits_named[i]);

        if (ms == 0)
            continue;
        jsonwrite_key(w, time_limits_named[i].name);
        write_milli(w, ms);
    }
    jsonwrite_end(w);
}
