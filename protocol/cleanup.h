/*
 * cleanup - scope-bound release of memory and descriptors for straight-line
 * code. Declare with the empty value (NULL, -1) and return early.
 */
#ifndef HC_CLEANUP_H
#define HC_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

static inline void freep(void *p)
{
    free(*(void **)p);
}

/* Closes what is open and leaves -1 behind: calling it twice closes once. */
static inline void closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Hands the descriptor over: the variable no longer owns it. */
static inline int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

/* Hands the allocation over: the variable no longer owns it. */
#define take_ptr(p)                         \
    ({                                      \
        __typeof__(p) *take_from_ = &(p);   \
        __typeof__(p) taken_ = *take_from_; \
        *take_from_ = NULL;                 \
        taken_;                             \
    })

#define autofree   __attribute__((cleanup(freep)))
#define autoclose  __attribute__((cleanup(closep)))
#define MUST_CHECK __attribute__((warn_unused_result))

#endif
