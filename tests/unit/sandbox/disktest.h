/*
 * disktest - a state directory for tests of homes on disk, and what a test may ask about the
 * host's loop devices.
 */
#ifndef HC_DISKTEST_H
#define HC_DISKTEST_H

#include "boxtest.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/statvfs.h>

static char disk_path[64];
static int disk_fd = -1;

/* On a disk, unlike /tmp of many hosts. */
static inline int disk_setup(void **state)
{
    (void)state;
    strcpy(disk_path, "/var/tmp/holdcell-disk-XXXXXX");
    if (mkdtemp(disk_path) == NULL)
        return -1;
    disk_fd = open(disk_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return disk_fd < 0;
}

static inline int disk_teardown(void **state)
{
    (void)state;
    closep(&disk_fd);
    return rmdir(disk_path); /* it is empty, or something was left */
}

/* How many loop devices are on files of this directory, also on those without a name; ret_name: one of them. */
static inline unsigned disk_find_loops(const char *below, char ret_name[32])
{
    DIR *d = opendir("/sys/block");
    struct dirent *entry;
    unsigned n = 0;

    assert_non_null(d);
    while ((entry = readdir(d)) != NULL) {
        char path[300], file[512] = "";

        snprintf(path, sizeof path, "/sys/block/%s/loop/backing_file", entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (read(fd, file, sizeof file - 1) > 0 && strncmp(file, below, strlen(below)) == 0) {
            snprintf(ret_name, 32, "%.31s", entry->d_name);
            n++;
        }
        close(fd);
    }
    closedir(d);
    return n;
}

static inline unsigned disk_loops(const char *below)
{
    char name[32];

    return disk_find_loops(below, name);
}

/* The last user of a device may still be on its way out. */
static inline void disk_await_no_loops(const char *below)
{
    for (int left = BOX_TIMEOUT_MS; left > 0 && disk_loops(below) > 0; left--)
        poll(NULL, 0, 1);
    assert_int_equal(disk_loops(below), 0);
}

static inline uint64_t disk_free(int fd)
{
    struct statvfs fs;

    assert_int_equal(fstatvfs(fd, &fs), 0);
    return (uint64_t)fs.f_bavail * fs.f_frsize;
}

#define DISK_NEEDED(box)                                                                \
    do {                                                                                \
        struct launch_limits usual_;                                                    \
        sandbox_limits_default(&usual_);                                                \
        if (sandbox_host_disk((box)->host, disk_fd, &usual_, &box_err) < 0) {           \
            print_message("skipped: no homes on disk on this host: %s\n", box_err.msg); \
            box_close(box);                                                             \
            skip();                                                                     \
        }                                                                               \
    } while (0)

static inline int disk_sandbox(struct box *b, const struct launch_limits *l,
                               const struct sandbox_files *files)
{
    return sandbox_create(b->host, 0, l, files, &b->sandbox, &box_err);
}

#endif
