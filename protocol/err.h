/*
 * err - the one error type: a code and a text in a fixed array, on the caller's
 * stack, so that it never allocates and nothing leaks.
 *
 * A fallible function returns 0 (or a count) on success and a negative code on
 * failure, takes `struct err *` last, which may be NULL, and leaves its outputs
 * untouched on failure. Codes are errno values and the few of ours below.
 */
#ifndef HC_ERR_H
#define HC_ERR_H

#include "cleanup.h"

struct err {
    int code;      /* positive errno value or HC_E*, 0 while unset */
    char msg[240]; /* always NUL-terminated; longer texts are cut */
};

/* Our own codes lie above every errno value of Linux (4095 is MAX_ERRNO). */
enum {
    HC_EPARSE = 5000, /* malformed input from a peer */
    HC_EAUTH,         /* signature or token does not verify */
    HC_ELIMIT,        /* a configured limit was reached */
    HC_ESTATE,        /* not allowed in the present state */
    HC_EGONE,         /* the other side is no longer there */
    HC_EAUDIT,        /* it must be audited and cannot be */
    HC_EFULL,         /* the host has no room for it now; later it may */
    HC_EDENIED,       /* the caller may not have it */
};

/* Fills e (when not NULL) and returns -code, so that a failure is one line:
 *     return err_set(e, ENOENT, "kernelspec '%s' not found", name);          */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As err_set() with ": strerror(code)" appended. */
int err_sys(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "what: " before the text that is there; returns -e->code. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* 1 for the errno values by which a kernel says that the machine has run out of something (memory, descriptors, tasks,
 * disk, files on it): nobody's request was wrong, and later it may go. */
int err_is_shortage(int code);

/* Programmer errors: logs expression, function and line to stderr, then aborts;
 * on in every build. Peer errors are never checked this way. */
#define check(x) ((x) ? (void)0 : check_failed(#x, __func__, __FILE__, __LINE__))
_Noreturn void check_failed(const char *expr, const char *func, const char *file, int line);

/* Memory of small fixed sizes: aborts when there is none. Caller frees. */
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));

#endif
