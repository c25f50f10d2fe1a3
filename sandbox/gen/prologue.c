#include "prologue.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>

#include "err.h"

#define LOAD(field)   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)
#define JUMP(how, value, yes, no) \
    BPF_JUMP(BPF_JMP | (how) | BPF_K, (uint32_t)(value), (uint8_t)(yes), (uint8_t)(no))

/* A program in the making. */
struct code {
    struct sock_filter *out;
    size_t count;
};

static size_t put(struct code *c, struct sock_filter instruction)
{
    check(c->count < PROLOGUE_MAX);
    c->out[c->count] = instruction;
    return c->count++;
}

/* How far a jump at `from` is from what comes next. */
static uint8_t distance(const struct code *c, size_t from)
{
    size_t far = c->count - from - 1;

    check(far <= UINT8_MAX);
    return (uint8_t)far;
}

/* The low half first: both architectures are little-endian. */
static uint32_t half(unsigned arg, unsigned which)
{
    return (uint32_t)(offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t) +
                      which * sizeof(uint32_t));
}

static void load_half(struct code *c, unsigned arg, unsigned which)
{
    put(c, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, half(arg, which)));
}

static uint32_t highest_call(void)
{
    uint32_t highest = 0;

    for (int i = 0; i < 1024; i++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);

        if (name != NULL)
            highest = (uint32_t)i;
        free(name);
    }
    return highest;
}

/* The number is loaded, and is again at the end. */
static void put_answer(struct code *c, const struct prologue_answer *a)
{
    int number = seccomp_syscall_resolve_name(a->call);
    size_t misses[PROLOGUE_CONDITIONS], other_call;

    check(number != __NR_SCMP_ERROR);
    if (number < 0) /* not a call of this architecture */
        return;
    other_call = put(c, (struct sock_filter)JUMP(BPF_JEQ, number, 0, 0));
    for (unsigned i = 0; i < a->count; i++) {
        load_half(c, a->when[i].arg, 0);
        if (a->when[i].look == PROLOGUE_IS) {
            misses[i] = put(c, (struct sock_filter)JUMP(BPF_JEQ, a->when[i].value, 0, 0));
            continue;
        }
        put(c, (struct sock_filter)JUMP(BPF_JEQ, 0, 0, 2));
        load_half(c, a->when[i].arg, 1);
        misses[i] = put(c, (struct sock_filter)JUMP(BPF_JEQ, 0, 0, 0));
    }
    put(c, (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | (uint32_t)a->answer));
    for (unsigned i = 0; i < a->count; i++) {
        struct sock_filter *jump = &c->out[misses[i]];

        *(a->when[i].look == PROLOGUE_IS ? &jump->jf : &jump->jt) = distance(c, misses[i]);
    }
    put(c, (struct sock_filter)LOAD(nr));
    c->out[other_call].jf = distance(c, other_call);
}

static void put_ioctls(struct code *c, const struct prologue *p)
{
    size_t requests = p->ioctl_counts[0] + p->ioctl_counts[1];
    size_t other_call = put(c, (struct sock_filter)JUMP(BPF_JEQ, SCMP_SYS(ioctl), 0, 0));

    load_half(c, 1, 0);
    for (unsigned list = 0; list < 2; list++) {
        for (size_t i = 0; i < p->ioctl_counts[list]; i++)
            put(c, (struct sock_filter)JUMP(BPF_JEQ, p->ioctls[list][i], requests--, 0));
    }
    put(c, (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | ENOTTY));
    put(c, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
    c->out[other_call].jf = distance(c, other_call);
}

size_t prologue_write(const struct prologue *p, struct sock_filter out[PROLOGUE_MAX])
{
    struct code c = { .out = out };
    size_t foreign, x32;

    put(&c, (struct sock_filter)LOAD(arch));
    foreign = put(&c, (struct sock_filter)JUMP(BPF_JEQ, seccomp_arch_native(), 0, 0));
    put(&c, (struct sock_filter)LOAD(nr));
    x32 = put(&c, (struct sock_filter)JUMP(BPF_JSET, 0x40000000, 0, 0));
    put(&c, (struct sock_filter)JUMP(BPF_JGT, highest_call(), 0, 1));
    put(&c, (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | ENOSYS));
    for (size_t i = 0; i < p->answer_count; i++)
        put_answer(&c, &p->answers[i]);
    put_ioctls(&c, p);
    out[foreign].jf = distance(&c, foreign);
    out[x32].jt = distance(&c, x32);
    return c.count;
}
