/*
 * in_child - runs a part of a test in a forked child, where walls can be put up
 * that never come down again. cmocka's asserts belong to the parent; the child
 * uses the EXPECT macros, which say what failed and end it.
 */
#ifndef HC_IN_CHILD_H
#define HC_IN_CHILD_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_FAILED = 99 };

#define EXPECT(x)                                                                               \
    do {                                                                                        \
        errno = 0;                                                                              \
        if (!(x)) {                                                                             \
            dprintf(2, "%s:%d: not true in the child: %s (errno %d)\n", __FILE__, __LINE__, #x, \
                    errno);                                                                     \
            _exit(CHILD_FAILED);                                                                \
        }                                                                                       \
    } while (0)

/* The call fails with exactly this errno. */
#define EXPECT_ERRNO(x, code) EXPECT((long)(x) == -1 && errno == (code))

/* Runs body(arg) in a child; the wait status of it. A body that returns exits 0. */
static inline int in_child(void (*body)(void *), void *arg)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        body(arg);
        _exit(0);
    }
    if (pid > 0) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    return status;
}

#define assert_child_passes(body, arg)             \
    do {                                           \
        int status_ = in_child(body, arg);         \
        assert_true(WIFEXITED(status_));           \
        assert_int_equal(WEXITSTATUS(status_), 0); \
    } while (0)

#endif
