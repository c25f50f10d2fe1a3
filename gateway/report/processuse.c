#include "processuse.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loop.h"
#include "metrics.h"

static uint64_t started_us;

void processuse_start(void)
{
    started_us = clock_realtime_us();
}

static uint64_t resident_bytes(void)
{
    unsigned long long all, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f == NULL)
        return 0;
    if (fscanf(f, "%llu %llu", &all, &resident) != 2)
        resident = 0;
    fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    uint64_t n = 0;

    if (d == NULL)
        return 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n - 1; /* that of the directory itself */
}

static uint64_t us_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

void processuse_measure(void)
{
    struct rlimit files = { 0, 0 };
    struct rusage use;

    memset(&use, 0, sizeof use);
    getrusage(RUSAGE_SELF, &use);
    getrlimit(RLIMIT_NOFILE, &files);
    metrics_set(METRIC_PROCESS_CPU, 0, us_of(use.ru_utime) + us_of(use.ru_stime));
    metrics_set(METRIC_PROCESS_RSS, 0, resident_bytes());
    metrics_set(METRIC_PROCESS_FDS, 0, open_fds());
    metrics_set(METRIC_PROCESS_FDS_MAX, 0, files.rlim_cur);
    metrics_set(METRIC_PROCESS_START, 0, started_us);
}
