#include "timestamp.h"

#include <stdio.h>
#include <time.h>

void timestamp_format(uint64_t realtime_us, char out[TIMESTAMP_TEXT])
{
    time_t seconds = (time_t)(realtime_us / 1000000);
    struct tm tm = { 0 };
    char date[24];

    gmtime_r(&seconds, &tm);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, TIMESTAMP_TEXT, "%.19s.%06uZ", date, (unsigned)(realtime_us % 1000000));
}
