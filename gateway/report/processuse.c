#include "processuse.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loop.h"
#include "metrics.h"

static struct {
    uint64_t started_us;
    int statm_fd; /* of /proc/self; 0: none */
    DIR *fds;
} self;

void processuse_start(void)
{
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

    self.started_us = clock_realtime_us();
    self.statm_fd = fd > 0 ? fd : 0;
    self.fds = opendir("/proc/self/fd");
}

static uint64_t resident_bytes(void)
{
    unsigned long long all, resident = 0;
    char text[128];
    ssize_t n = self.statm_fd > 0 ? pread(self.statm_fd, text, sizeof text - 1, 0) : -1;

    if (n <= 0)
        return 0;
    text[n] = '\0';
    if (sscanf(text, "%llu %llu", &all, &resident) != 2)
        resident = 0;
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t open_fds(void)
{
    uint64_t n = 0;

    if (self.fds == NULL)
        return 0;
    rewinddir(self.fds);
    for (const struct dirent *e; (e = readdir(self.fds)) != NULL;)
        n += e->d_name[0] != '.';
    return n;
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
    metrics_set(METRIC_PROCESS_START, 0, self.started_us);
}
