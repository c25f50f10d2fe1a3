/*
 * The embedded seccomp programs as bytes: the same as a fresh compilation, and what
 * a small interpreter of BPF says about whole ranges of calls and arguments. What
 * the kernel makes of them: test_seccomp.c.
 */
#include "seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf_common.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "err.h"
#include "profile.h"

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif

enum { CALLS = 1200 }; /* well above every number that is in use */

struct named {
    const char *name;
    enum seccomp_filter filter;
};

static const struct named filters[] = {
    { "session", SECCOMP_SESSION },   { "init", SECCOMP_INIT },
    { "gateway", SECCOMP_GATEWAY },   { "gateway_start", SECCOMP_GATEWAY_START },
    { "launcher", SECCOMP_LAUNCHER }, { "supervisor", SECCOMP_SUPERVISOR }
};

static uint32_t load_word(const struct seccomp_data *data, uint32_t offset)
{
    uint32_t word;

    assert_true(offset <= sizeof *data - sizeof word);
    memcpy(&word, (const char *)data + offset, sizeof word);
    return word;
}

static int jumps(uint16_t code, uint32_t a, uint32_t k)
{
    switch (BPF_OP(code)) {
    case BPF_JEQ:
        return a == k;
    case BPF_JGT:
        return a > k;
    case BPF_JGE:
        return a >= k;
    case BPF_JSET:
        return (a & k) != 0;
    default:
        fail_msg("jump 0x%x", code);
    }
    return 0;
}

/* Only what our programs use; anything else fails the test. */
static uint32_t interpret(const struct sock_filter *code, size_t count,
                          const struct seccomp_data *data)
{
    uint32_t a = 0;

    for (size_t at = 0; at < count; at++) {
        const struct sock_filter *i = &code[at];

        switch (BPF_CLASS(i->code)) {
        case BPF_LD:
            assert_int_equal(i->code, BPF_LD | BPF_W | BPF_ABS);
            a = load_word(data, i->k);
            break;
        case BPF_ALU:
            assert_int_equal(i->code, BPF_ALU | BPF_AND | BPF_K);
            a &= i->k;
            break;
        case BPF_JMP:
            if (BPF_OP(i->code) == BPF_JA)
                at += i->k;
            else
                at += jumps(i->code, a, i->k) ? i->jt : i->jf;
            break;
        case BPF_RET:
            return i->k;
        default:
            fail_msg("instruction 0x%x", i->code);
        }
    }
    fail_msg("ran off the end");
    return 0;
}

static uint32_t verdict4(enum seccomp_filter filter, long nr, uint64_t a0, uint64_t a1, uint64_t a2,
                         uint64_t a3)
{
    struct seccomp_data data = { .nr = (int)nr, .arch = NATIVE, .args = { a0, a1, a2, a3 } };
    size_t count;
    const struct sock_filter *code = seccomp_program(filter, &count);

    return interpret(code, count, &data);
}

static uint32_t verdict(enum seccomp_filter filter, long nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
    return verdict4(filter, nr, a0, a1, a2, 0);
}

static void the_embedded_programs_are_what_the_profiles_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        struct err e = { 0 };
        autofree struct sock_filter *fresh = NULL;
        size_t fresh_count, count;
        const struct sock_filter *code = seccomp_program(filters[i].filter, &count);

        if (profile_compile(filters[i].name, HC_SOURCE_DIR "/sandbox/profiles", &fresh,
                            &fresh_count, &e) < 0)
            fail_msg("%s", e.msg);
        assert_int_equal(count, fresh_count);
        assert_memory_equal(code, fresh, count * sizeof *code);
    }
}

static void every_profile_is_embedded(void **state)
{
    (void)state;
    const char *const *names = profile_names();

    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++)
        assert_string_equal(names[i], filters[i].name);
    assert_null(names[sizeof filters / sizeof filters[0]]);
}

/* Outer allows, for these arguments, whatever inner does. */
static void expect_all_of(enum seccomp_filter inner, enum seccomp_filter outer)
{
    static const uint64_t values[] = { 0,      1,      2,      3,          5,
                                       6,      10,     16,     17,         0x5401,
                                       0x5411, 0x8913, 0x2000, 0x53564d41, 0xffffffff };
    const size_t n = sizeof values / sizeof values[0];

    for (long nr = 0; nr < CALLS; nr++) {
        for (size_t i = 0; i < n * n * n; i++) {
            uint64_t a = values[i % n], b = values[i / n % n], c = values[i / n / n];

            if (verdict(inner, nr, a, b, c) == SECCOMP_RET_ALLOW)
                assert_int_equal(verdict(outer, nr, a, b, c), SECCOMP_RET_ALLOW);
        }
    }
}

/* Filters add up in children: what is refused to a parent is refused to them. */
static void each_profile_holds_those_of_what_its_process_starts(void **state)
{
    (void)state;
    expect_all_of(SECCOMP_SESSION, SECCOMP_INIT);
    expect_all_of(SECCOMP_GATEWAY, SECCOMP_GATEWAY_START);
    expect_all_of(SECCOMP_INIT, SECCOMP_LAUNCHER);
    expect_all_of(SECCOMP_GATEWAY_START, SECCOMP_LAUNCHER);
    expect_all_of(SECCOMP_LAUNCHER, SECCOMP_SUPERVISOR);
}

static void the_gateway_has_no_exec_once_it_is_started(void **state)
{
    (void)state;
    assert_int_equal(verdict(SECCOMP_GATEWAY, SYS_execve, 0, 0, 0), SECCOMP_RET_ERRNO | EPERM);
    assert_int_equal(verdict(SECCOMP_GATEWAY, SYS_execveat, 0, 0, 0), SECCOMP_RET_ERRNO | EPERM);
    assert_int_equal(verdict(SECCOMP_GATEWAY, SYS_seccomp, 1, 0, 0), SECCOMP_RET_ERRNO | EPERM);
    assert_int_equal(verdict(SECCOMP_GATEWAY_START, SYS_execve, 0, 0, 0),
                     SECCOMP_RET_ERRNO | EPERM);
}

/* Whoever takes it over cannot bring code of his own, nor load a library. */
static void the_gateway_maps_nothing_executable_once_it_is_started(void **state)
{
    (void)state;
    static const long calls[] = { SYS_mmap, SYS_mprotect };

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (uint64_t prot = 0; prot < 0x40; prot++) {
            const uint32_t answer =
                (prot & PROT_EXEC) != 0 ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_ALLOW;

            assert_int_equal(verdict(SECCOMP_GATEWAY, calls[i], 0x1000, 0x1000, prot), answer);
            assert_int_equal(verdict(SECCOMP_GATEWAY_START, calls[i], 0x1000, 0x1000, prot),
                             SECCOMP_RET_ALLOW);
        }
    }
    assert_int_equal(verdict(SECCOMP_GATEWAY, SYS_pkey_mprotect, 0x1000, 0x1000, PROT_READ),
                     SECCOMP_RET_ERRNO | EPERM);
    assert_int_equal(verdict(SECCOMP_GATEWAY, SYS_personality, 0, 0, 0),
                     SECCOMP_RET_ERRNO | EPERM); /* READ_IMPLIES_EXEC */
}

/* Whoever closes a socket that lingers last waits for its bytes to leave, and descriptors go
 * from the gateway to the launcher, and from sessions to whoever reads their sockets. */
static void nobody_who_sends_descriptors_makes_a_socket_linger(void **state)
{
    (void)state;
    static const struct {
        enum seccomp_filter filter;
        uint32_t answer; /* a session's libraries are not to see that it was refused */
    } of[] = { { SECCOMP_GATEWAY, SECCOMP_RET_ERRNO | EPERM },
               { SECCOMP_GATEWAY_START, SECCOMP_RET_ERRNO | EPERM },
               { SECCOMP_SESSION, SECCOMP_RET_ERRNO },
               { SECCOMP_INIT, SECCOMP_RET_ERRNO } };
    const uint64_t junk = 0x100000000;

    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        const enum seccomp_filter f = of[i].filter;

        assert_int_equal(verdict(f, SYS_setsockopt, 5, SOL_SOCKET, SO_LINGER), of[i].answer);
        assert_int_equal(verdict(f, SYS_setsockopt, 5, SOL_SOCKET | junk, SO_LINGER | junk),
                         of[i].answer);
        assert_int_equal(verdict(f, SYS_setsockopt, 5, SOL_SOCKET, SO_KEEPALIVE),
                         SECCOMP_RET_ALLOW);
        assert_int_equal(verdict(f, SYS_setsockopt, SOL_SOCKET, SO_LINGER, 0), SECCOMP_RET_ALLOW);
        assert_int_equal(verdict(f, SYS_setsockopt, 5, IPPROTO_TCP, SO_LINGER), SECCOMP_RET_ALLOW);
        assert_int_equal(verdict(f, SYS_getsockopt, 5, SOL_SOCKET, SO_LINGER), SECCOMP_RET_ALLOW);
    }
}

/* What a socket keeps for them counts for no cgroup, and sockets may be many. */
static void no_option_takes_memory_that_nobody_counts(void **state)
{
    (void)state;
    static const struct {
        int level, from, to;
    } refused[] = { { SOL_SOCKET, 26, 26 },   { SOL_SOCKET, 50, 52 },   { IPPROTO_IP, 4, 4 },
                    { IPPROTO_IP, 35, 48 },   { IPPROTO_IPV6, 6, 6 },   { IPPROTO_IPV6, 20, 21 },
                    { IPPROTO_IPV6, 27, 28 }, { IPPROTO_IPV6, 32, 32 }, { IPPROTO_IPV6, 42, 48 },
                    { IPPROTO_IPV6, 54, 59 }, { IPPROTO_TCP, 14, 14 },  { IPPROTO_TCP, 31, 32 },
                    { IPPROTO_TCP, 38, 42 } };
    static const int levels[] = { SOL_SOCKET, IPPROTO_IP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_IPV6 };
    const uint64_t junk = 0xdeadbeef00000000;

    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        for (int option = 0; option < 300; option++) {
            uint32_t expected = SECCOMP_RET_ALLOW;

            if (levels[l] == SOL_SOCKET && option == SO_LINGER)
                expected = SECCOMP_RET_ERRNO;
            for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
                if (levels[l] == refused[i].level && option >= refused[i].from &&
                    option <= refused[i].to)
                    expected = SECCOMP_RET_ERRNO | ENOPROTOOPT;
            for (int init = 0; init < 2; init++) {
                const int f = init ? SECCOMP_INIT : SECCOMP_SESSION;
                const uint64_t level = (uint64_t)levels[l], o = (uint64_t)option;

                assert_int_equal(verdict(f, SYS_setsockopt, 3, level, o), expected);
                assert_int_equal(verdict(f, SYS_setsockopt, 3, level | junk, o | junk), expected);
                assert_int_equal(verdict(f, SYS_getsockopt, 3, level, o), SECCOMP_RET_ALLOW);
            }
        }
    }
}

/* With a core_pattern that is a pipe any other limit than 1 starts the host's program. */
static void the_limit_of_core_files_can_be_read_and_not_be_set(void **state)
{
    (void)state;
    static const int filters_without[] = { SECCOMP_SESSION, SECCOMP_INIT, SECCOMP_GATEWAY,
                                           SECCOMP_GATEWAY_START };
    static const uint64_t pointers[] = { 1, 0x1000, 0x100000000, 0x7fff00000000, UINT64_MAX };
    const uint64_t junk = 0xdeadbeef00000000;

    for (size_t i = 0; i < sizeof filters_without / sizeof filters_without[0]; i++) {
        const int f = filters_without[i];

        for (size_t k = 0; k < sizeof pointers / sizeof pointers[0]; k++) {
            for (uint64_t pid = 0; pid < 2; pid++) {
                assert_int_equal(verdict(f, SYS_prlimit64, pid, RLIMIT_CORE, pointers[k]),
                                 SECCOMP_RET_ERRNO);
                assert_int_equal(verdict(f, SYS_prlimit64, pid, RLIMIT_CORE | junk, pointers[k]),
                                 SECCOMP_RET_ERRNO);
                assert_int_equal(verdict4(f, SYS_prlimit64, pid, RLIMIT_CORE, 1, pointers[k]),
                                 SECCOMP_RET_ERRNO | EINVAL);
            }
            assert_int_equal(verdict4(f, SYS_prlimit64, 0, RLIMIT_CORE, 0, pointers[k]),
                             SECCOMP_RET_ALLOW);
            assert_int_equal(verdict(f, SYS_prlimit64, 0, RLIMIT_NOFILE, pointers[k]),
                             SECCOMP_RET_ALLOW);
        }
        assert_int_equal(verdict(f, SYS_prlimit64, 0, RLIMIT_CORE, 0), SECCOMP_RET_ALLOW);
    }
#ifdef SYS_setrlimit
    for (uint64_t resource = 0; resource < RLIM_NLIMITS; resource++) {
        uint32_t expected = resource == RLIMIT_CORE ? SECCOMP_RET_ERRNO : SECCOMP_RET_ALLOW;

        assert_int_equal(verdict(SECCOMP_SESSION, SYS_setrlimit, resource, 1, 0), expected);
        assert_int_equal(verdict(SECCOMP_INIT, SYS_setrlimit, resource | junk, 1, 0), expected);
    }
#endif
}

/* What lies behind a file, or equal pages, is of all sessions. */
static void no_advice_reaches_what_sessions_share(void **state)
{
    (void)state;
    static const int inside[] = { SECCOMP_SESSION, SECCOMP_INIT };
    const uint64_t junk = 0xdeadbeef00000000;

    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
        for (uint64_t advice = 0; advice < 200; advice++) {
            uint32_t file = advice == POSIX_FADV_DONTNEED ? SECCOMP_RET_ERRNO : SECCOMP_RET_ALLOW;
            uint32_t memory =
                advice == MADV_MERGEABLE || advice == MADV_COLD || advice == MADV_PAGEOUT
                    ? SECCOMP_RET_ERRNO | EINVAL
                    : SECCOMP_RET_ALLOW;

            assert_int_equal(verdict4(inside[i], SYS_fadvise64, 3, 4, 4, advice), file);
            assert_int_equal(verdict4(inside[i], SYS_fadvise64, 3, 0, 0, advice | junk), file);
            assert_int_equal(verdict(inside[i], SYS_madvise, 12, 12, advice), memory);
            assert_int_equal(verdict(inside[i], SYS_madvise, 0, 0, advice | junk), memory);
        }
        assert_int_equal(verdict(inside[i], SYS_prctl, 67 /* PR_SET_MEMORY_MERGE */, 1, 0),
                         SECCOMP_RET_ERRNO | EPERM);
        assert_int_equal(verdict(inside[i], SYS_process_madvise, 0, 0, 0),
                         SECCOMP_RET_ERRNO | EPERM);
    }
}

/* Access lists of tmpfs are memory that counts for no cgroup. */
static void no_attribute_can_be_set_and_libraries_live_with_the_word(void **state)
{
    (void)state;
    static const int inside[] = { SECCOMP_SESSION, SECCOMP_INIT };
    static const long set[] = { SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr };
    static const long others[] = { SYS_getxattr, SYS_fgetxattr, SYS_llistxattr, SYS_removexattr };

    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
        for (size_t k = 0; k < sizeof set / sizeof set[0]; k++)
            assert_int_equal(verdict(inside[i], set[k], 1, 2, 3), SECCOMP_RET_ERRNO | EOPNOTSUPP);
        for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
            assert_int_equal(verdict(inside[i], others[k], 1, 2, 3), SECCOMP_RET_ALLOW);
        assert_int_not_equal(verdict(inside[i], 463 /* setxattrat */, 1, 2, 3), SECCOMP_RET_ALLOW);
    }
    assert_int_equal(verdict(SECCOMP_LAUNCHER, SYS_fsetxattr, 1, 2, 3), SECCOMP_RET_ALLOW);
    assert_int_equal(verdict(SECCOMP_GATEWAY, SYS_setxattr, 1, 2, 3), SECCOMP_RET_ERRNO | EPERM);
}

static void an_unknown_number_answers_enosys_and_a_known_one_does_not(void **state)
{
    (void)state;
    long highest = -1;

    for (long nr = 0; nr < CALLS; nr++) {
        if (verdict(SECCOMP_SESSION, nr, 0, 0, 0) != (SECCOMP_RET_ERRNO | ENOSYS))
            highest = nr;
    }
    assert_in_range(highest, SYS_clone3, 600);
    for (long nr = highest + 1; nr < CALLS; nr++)
        assert_int_equal(verdict(SECCOMP_SESSION, nr, 1, 1, 1), SECCOMP_RET_ERRNO | ENOSYS);
    for (long nr = 0; nr <= highest; nr++) {
        if (verdict(SECCOMP_SESSION, nr, 0, 0, 0) == (SECCOMP_RET_ERRNO | ENOSYS))
            assert_true(nr == SYS_clone3 || nr == SYS_inotify_init1 || nr == SYS_fanotify_init
#ifdef SYS_inotify_init
                        || nr == SYS_inotify_init
#endif
            );
    }
}

/* An int argument counts with its lower half, whatever stands above it. */
static void the_upper_half_of_an_int_argument_changes_nothing(void **state)
{
    (void)state;
    static const uint64_t junk = 0xdeadbeef00000000;
    static const long calls[] = { SYS_socket,  SYS_socketpair,  SYS_ioctl,
                                  SYS_prctl,   SYS_personality, SYS_sched_setscheduler,
                                  SYS_mknodat, SYS_setsockopt,  SYS_fadvise64,
                                  SYS_madvise };

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (uint64_t v = 0; v < 0x6000; v++) {
            uint64_t a[] = { v & 0xff, v >> 8, 0 };

            assert_int_equal(
                verdict(SECCOMP_SESSION, calls[i], a[0], a[1], a[2]),
                verdict(SECCOMP_SESSION, calls[i], a[0] | junk, a[1] | junk, a[2] | junk));
            assert_int_equal(verdict(SECCOMP_SESSION, calls[i], v, v, v),
                             verdict(SECCOMP_SESSION, calls[i], v | junk, v | junk, v | junk));
        }
    }
}

static void a_foreign_architecture_kills(void **state)
{
    (void)state;
    static const uint32_t foreign[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_PPC64, 0 };
    size_t count;

    for (size_t f = 0; f < sizeof filters / sizeof filters[0]; f++) {
        const struct sock_filter *code = seccomp_program(filters[f].filter, &count);

        for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
            for (int nr = 0; nr < CALLS; nr++) {
                struct seccomp_data data = { .nr = nr, .arch = foreign[i] };
                assert_int_equal(interpret(code, count, &data), SECCOMP_RET_KILL_PROCESS);
            }
        }
#if defined(__x86_64__)
        for (int nr = 0; nr < CALLS; nr++)
            assert_int_equal(verdict(filters[f].filter, nr | 0x40000000, 0, 0, 0),
                             SECCOMP_RET_KILL_PROCESS);
#endif
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_embedded_programs_are_what_the_profiles_say),
        cmocka_unit_test(every_profile_is_embedded),
        cmocka_unit_test(each_profile_holds_those_of_what_its_process_starts),
        cmocka_unit_test(the_gateway_has_no_exec_once_it_is_started),
        cmocka_unit_test(the_gateway_maps_nothing_executable_once_it_is_started),
        cmocka_unit_test(nobody_who_sends_descriptors_makes_a_socket_linger),
        cmocka_unit_test(no_option_takes_memory_that_nobody_counts),
        cmocka_unit_test(the_limit_of_core_files_can_be_read_and_not_be_set),
        cmocka_unit_test(no_advice_reaches_what_sessions_share),
        cmocka_unit_test(no_attribute_can_be_set_and_libraries_live_with_the_word),
        cmocka_unit_test(an_unknown_number_answers_enosys_and_a_known_one_does_not),
        cmocka_unit_test(the_upper_half_of_an_int_argument_changes_nothing),
        cmocka_unit_test(a_foreign_architecture_kills),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
