#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fill(struct err *e, int code, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
static void fill(struct err *e, int code, const char *fmt, va_list ap)
{
    if (e == NULL)
        return;
    e->code = code;
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fill(e, code, fmt, ap);
    va_end(ap);
    return -code;
}

int err_sys(struct err *e, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fill(e, code, fmt, ap);
    va_end(ap);
    if (e != NULL) {
        size_t n = strlen(e->msg);
        snprintf(e->msg + n, sizeof e->msg - n, ": %s", strerror(code));
    }
    return -code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    char old[sizeof e->msg];
    va_list ap;

    if (e == NULL)
        return -EXIT_FAILURE;
    memcpy(old, e->msg, sizeof old);
    va_start(ap, fmt);
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    size_t n = strlen(e->msg);
    snprintf(e->msg + n, sizeof e->msg - n, ": %s", old);
    return -e->code;
}

int err_is_shortage(int code)
{
    switch (code) {
    case EAGAIN: /* clone: tasks */
    case ENOMEM:
    case ENOBUFS:
    case EMFILE:
    case ENFILE:
    case ENOSPC: /* disk, inodes; of the kernel's own: namespaces, mounts, cgroups */
    case EDQUOT:
        return 1;
    default:
        return 0;
    }
}

_Noreturn void check_failed(const char *expr, const char *func, const char *file, int line)
{
    fprintf(stderr, "level=fatal event=check_failed expr=\"%s\" func=%s at=%s:%d\n", expr, func,
            file, line);
    abort();
}

void *xcalloc(size_t count, size_t size)
{
    void *p = calloc(count, size);

    check(p != NULL);
    return p;
}

char *xstrdup(const char *s)
{
    char *p = strdup(s);

    check(p != NULL);
    return p;
}
