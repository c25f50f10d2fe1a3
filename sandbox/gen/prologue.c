#include "prologue.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>

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

/* Jumps to where an answer is not given; they learn the distance when it is written. */
struct misses {
    struct {
        size_t at;
        int when_true;
    } jump[2 * PROLOGUE_CONDITIONS];
    unsigned count;
};

static void put_miss(struct code *c, struct misses *m, unsigned how, uint32_t value, int when_true)
{
    check(m->count < sizeof m->jump / sizeof m->jump[0]);
    m->jump[m->count].when_true = when_true;
    m->jump[m->count++].at = put(c, (struct sock_filter)JUMP(how, value, 0, 0));
}

static void put_condition(struct code *c, const struct prologue_answer *a, unsigned i,
                          struct misses *m)
{
    load_half(c, a->when[i].arg, 0);
    switch (a->when[i].look) {
    case PROLOGUE_IS:
        put_miss(c, m, BPF_JEQ, a->when[i].value, 0);
        break;
    case PROLOGUE_IN:
        put_miss(c, m, BPF_JGE, a->when[i].value, 0);
        put_miss(c, m, BPF_JGT, a->when[i].last, 1);
        break;
    case PROLOGUE_GIVEN:
        put(c, (struct sock_filter)JUMP(BPF_JEQ, 0, 0, 2));
        load_half(c, a->when[i].arg, 1);
        put_miss(c, m, BPF_JEQ, 0, 1);
        break;
    }
}

static void put_answer(struct code *c, const struct prologue_answer *a)
{
    struct misses m = { .count = 0 };

    for (unsigned i = 0; i < a->count; i++)
        put_condition(c, a, i, &m);
    put(c, (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | (uint32_t)a->answer));
    for (unsigned i = 0; i < m.count; i++) {
        struct sock_filter *jump = &c->out[m.jump[i].at];

        *(m.jump[i].when_true ? &jump->jt : &jump->jf) = distance(c, m.jump[i].at);
    }
}

/* The answers of one call, which stand together. The number is loaded, and is again at the end.
 * Returns how many they are. */
static size_t put_call(struct code *c, const struct prologue_answer *a, size_t count)
{
    int number = seccomp_syscall_resolve_name(a->call);
    size_t n = 0, other_call = 0;

    check(number != __NR_SCMP_ERROR);
    if (number >= 0)
        other_call = put(c, (struct sock_filter)JUMP(BPF_JEQ, number, 0, 0));
    for (; n < count && strcmp(a[n].call, a->call) == 0; n++) {
        if (number >= 0) /* else it is no call of this architecture */
            put_answer(c, &a[n]);
    }
    if (number >= 0) {
        put(c, (struct sock_filter)LOAD(nr));
        c->out[other_call].jf = distance(c, other_call);
    }
    return n;
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
    for (size_t i = 0; i < p->answer_count;)
        i += put_call(&c, &p->answers[i], p->answer_count - i);
    put_ioctls(&c, p);
    out[foreign].jf = distance(&c, foreign);
    out[x32].jt = distance(&c, x32);
    return c.count;
}
