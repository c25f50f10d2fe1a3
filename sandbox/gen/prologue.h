/*
 * prologue - the head of a seccomp program: what libseccomp cannot say, in front of
 * what it compiles. A range of numbers; answers to calls that are allowed but for some
 * arguments; requests of ioctl(2).
 */
#ifndef HC_PROLOGUE_H
#define HC_PROLOGUE_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

/* PROLOGUE_IS and PROLOGUE_IN (value to last) look at 32 bits, as the kernel does with an int;
 * PROLOGUE_GIVEN at all of a pointer. */
enum prologue_look { PROLOGUE_IS, PROLOGUE_IN, PROLOGUE_GIVEN };

enum { PROLOGUE_CONDITIONS = 3, PROLOGUE_MAX = 256 };

struct prologue_answer {
    const char *call;
    int answer; /* an errno; 0: success, and nothing is done */
    unsigned count;
    struct {
        unsigned arg;
        enum prologue_look look;
        uint32_t value, last;
    } when[PROLOGUE_CONDITIONS];
};

struct prologue {
    const struct prologue_answer *answers;
    size_t answer_count;
    const uint32_t *ioctls[2]; /* allowed; all others answer ENOTTY */
    size_t ioctl_counts[2];
};

/* Falls through to the program behind it with whatever it has no word on: a foreign
 * architecture and x32 numbers too, which are not touched here. */
size_t prologue_write(const struct prologue *p, struct sock_filter out[PROLOGUE_MAX]);

#endif
