#include "init_start.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "report.h"

void init_start_format(const struct init_start *start, struct init_start_args *ret)
{
    snprintf(ret->text[0], sizeof ret->text[0], "holdcell-init");
    snprintf(ret->text[1], sizeof ret->text[1], "nofile=%" PRIu64, start->nofile);
    snprintf(ret->text[2], sizeof ret->text[2], "nproc=%" PRIu64, start->nproc);
    snprintf(ret->text[3], sizeof ret->text[3], "fsize=%" PRIu64, start->fsize_bytes);
    snprintf(ret->text[4], sizeof ret->text[4], "groups=%" PRIu64, start->groups);
    snprintf(ret->text[5], sizeof ret->text[5], "workspace=%" PRIu64, start->workspace);
    snprintf(ret->text[6], sizeof ret->text[6], "without=%" PRIu64, start->without);
    for (unsigned i = 0; i < INIT_START_ARGS - 1; i++)
        ret->argv[i] = ret->text[i];
    ret->argv[INIT_START_ARGS - 1] = NULL;
}

/* "name=digits" -> 1 and the number, or 0. */
static int parse_one(const char *arg, const char *name, uint64_t *ret)
{
    size_t n = strlen(name);
    char *end;

    if (strncmp(arg, name, n) != 0 || arg[n] != '=' || arg[n + 1] < '0' || arg[n + 1] > '9')
        return 0;
    errno = 0;
    *ret = strtoull(arg + n + 1, &end, 10);
    return errno == 0 && *end == '\0';
}

int init_start_parse(int argc, char *const argv[], struct init_start *ret, struct err *e)
{
    struct init_start got;

    if (argc != INIT_START_ARGS - 1 || !parse_one(argv[1], "nofile", &got.nofile) ||
        !parse_one(argv[2], "nproc", &got.nproc) ||
        !parse_one(argv[3], "fsize", &got.fsize_bytes) ||
        !parse_one(argv[4], "groups", &got.groups) || got.groups > 1 ||
        !parse_one(argv[5], "workspace", &got.workspace) || got.workspace > 1 ||
        !parse_one(argv[6], "without", &got.without))
        return err_set(e, EINVAL, "not started by the launcher");
    *ret = got;
    return 0;
}

int init_start_ready(int fd)
{
    struct err fine = { 0 };
    int r = report_send(fd, &fine);

    close(fd);
    return r;
}

void init_start_failed(int fd, const struct err *why)
{
    struct err copy = *why;

    if (copy.code == 0)
        copy.code = EPROTO; /* a failure without a code must not read as "ready" */
    if (report_send(fd, &copy) < 0) {
        /* Nobody listens: the end of the process says enough. */
    }
    close(fd);
}
