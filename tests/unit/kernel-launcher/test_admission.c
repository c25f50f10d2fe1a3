/* When the host has room for one more session. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admission.h"
#include "err.h"

#define MIB UINT64_C(1048576)
#define GIB (1024 * MIB)

static void the_reserve_follows_the_size_of_the_host(void **state)
{
    (void)state;
    assert_int_equal(admission_reserve(ADMISSION_DEFAULT, 64 * GIB), 64 * GIB / 20);
    assert_int_equal(admission_reserve(ADMISSION_DEFAULT, 8 * GIB), 512 * MIB);
    assert_int_equal(admission_reserve(ADMISSION_DEFAULT, 1 * GIB), 256 * MIB);
    assert_int_equal(admission_reserve(ADMISSION_DEFAULT, UINT64_MAX), 512 * MIB);
    assert_int_equal(admission_reserve(0, 8 * GIB), 0);
    assert_int_equal(admission_reserve(5 * MIB, UINT64_MAX), 5 * MIB);
}

static void all_sessions_together_leave_the_reserve(void **state)
{
    (void)state;
    assert_int_equal(admission_share_memory(512 * MIB, 8 * GIB), 8 * GIB - 512 * MIB);
    assert_int_equal(admission_share_memory(1, 8 * GIB), 8 * GIB - 1);
    assert_int_equal(admission_share_memory(0, 8 * GIB), UINT64_MAX);
    assert_int_equal(admission_share_memory(512 * MIB, UINT64_MAX), UINT64_MAX);
    /* More is to be kept than there is: the trial at the start has room, and nobody is admitted. */
    assert_int_equal(admission_share_memory(UINT64_MAX, 8 * GIB), 128 * MIB);
    assert_int_equal(admission_share_memory(8 * GIB, 8 * GIB), 128 * MIB);
    assert_int_equal(admission_share_memory(8 * GIB - 1, 8 * GIB), 128 * MIB);
    assert_int_equal(admission_share_tasks(4194304), 4194304 - 4194304 / 20);
    assert_int_equal(admission_share_tasks(20000), 20000 - 1024);
    assert_int_equal(admission_share_tasks(1000), 750);
    assert_int_equal(admission_share_tasks(UINT64_MAX), UINT64_MAX);
}

static void a_promise_is_what_a_start_takes_and_has_not_yet(void **state)
{
    (void)state;
    assert_int_equal(admission_promise(2 * GIB, 0), 128 * MIB);
    assert_int_equal(admission_promise(2 * GIB, 100 * MIB), 28 * MIB);
    assert_int_equal(admission_promise(2 * GIB, 128 * MIB), 0);
    assert_int_equal(admission_promise(2 * GIB, 1 * GIB), 0);
    assert_int_equal(admission_promise(64 * MIB, 0), 64 * MIB);
    assert_int_equal(admission_promise(64 * MIB, 60 * MIB), 4 * MIB);
}

static struct admission plenty(void)
{
    return (struct admission){
        .memory_total = 8 * GIB,
        .memory_available = 4 * GIB,
        .memory_reserve = 512 * MIB,
        .tasks = 10000,
        .files = 10000,
        .sessions_max = 1024,
    };
}

static void memory_is_refused_at_the_last_byte(void **state)
{
    struct admission a = plenty();

    (void)state;
    assert_int_equal(admission_decide(&a, 2 * GIB), ADMISSION_OPEN);
    a.memory_available = (512 + 128) * MIB;
    assert_int_equal(admission_decide(&a, 2 * GIB), ADMISSION_OPEN);
    a.memory_available--;
    assert_int_equal(admission_decide(&a, 2 * GIB), ADMISSION_MEMORY);
    assert_int_equal(admission_decide(&a, 127 * MIB),
                     ADMISSION_OPEN); /* a smaller one still fits */
    a.memory_available = (512 + 128 + 300) * MIB;
    a.memory_promised = 300 * MIB;
    assert_int_equal(admission_decide(&a, 2 * GIB), ADMISSION_OPEN);
    a.memory_promised++;
    assert_int_equal(admission_decide(&a, 2 * GIB), ADMISSION_MEMORY);
}

static void numbers_beyond_the_host_do_not_wrap_around(void **state)
{
    struct admission a = plenty();

    (void)state;
    a.memory_reserve = UINT64_MAX - 1;
    assert_int_equal(admission_decide(&a, 2 * GIB), ADMISSION_MEMORY);
    a = plenty();
    a.memory_promised = UINT64_MAX - 1;
    assert_int_equal(admission_decide(&a, 2 * GIB), ADMISSION_MEMORY);
    a = plenty();
    a.memory_available = 0;
    a.memory_reserve = 0;
    assert_int_equal(admission_decide(&a, UINT64_MAX), ADMISSION_MEMORY);
}

static void what_is_unknown_refuses_nobody(void **state)
{
    struct admission a = { .memory_total = UINT64_MAX,
                           .memory_available = UINT64_MAX,
                           .memory_reserve = UINT64_MAX,
                           .memory_promised = UINT64_MAX,
                           .tasks = UINT64_MAX,
                           .files = UINT64_MAX,
                           .sessions_max = 1 };

    (void)state;
    assert_int_equal(admission_decide(&a, 2 * GIB), ADMISSION_OPEN);
}

static void tasks_files_and_places_run_out_too(void **state)
{
    struct admission a = plenty();

    (void)state;
    a.tasks = 255;
    assert_int_equal(admission_decide(&a, 2 * GIB), ADMISSION_TASKS);
    a.tasks = 256;
    assert_int_equal(admission_decide(&a, 2 * GIB), ADMISSION_OPEN);
    a.files = 255;
    assert_int_equal(admission_decide(&a, 2 * GIB), ADMISSION_FILES);
    a = plenty();
    a.sessions = 1023;
    assert_int_equal(admission_decide(&a, 2 * GIB), ADMISSION_OPEN);
    a.sessions = 1024;
    assert_int_equal(admission_decide(&a, 2 * GIB), ADMISSION_SESSIONS);
    assert_string_equal(admission_lack_name(ADMISSION_OPEN), "");
    assert_string_equal(admission_lack_name(ADMISSION_SESSIONS), "sessions");
}

static void what_the_kernel_ran_out_of_is_for_the_moment(void **state)
{
    static const int temporary[] = {
        EAGAIN, ENOMEM, EMFILE, ENFILE, ENOSPC, EDQUOT, ENOBUFS, ENODEV
    };

    (void)state;
    for (size_t i = 0; i < sizeof temporary / sizeof *temporary; i++) {
        struct err e = { 0 };
        int rc = err_sys(&e, temporary[i], "clone");
        assert_int_equal(admission_failure(rc, &e), -HC_EFULL);
        assert_int_equal(e.code, HC_EFULL);
    }
    struct err e = { 0 };
    int rc = err_sys(&e, EPERM, "clone");
    assert_int_equal(admission_failure(rc, &e), -EPERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reserve_follows_the_size_of_the_host),
        cmocka_unit_test(all_sessions_together_leave_the_reserve),
        cmocka_unit_test(a_promise_is_what_a_start_takes_and_has_not_yet),
        cmocka_unit_test(memory_is_refused_at_the_last_byte),
        cmocka_unit_test(numbers_beyond_the_host_do_not_wrap_around),
        cmocka_unit_test(what_is_unknown_refuses_nobody),
        cmocka_unit_test(tasks_files_and_places_run_out_too),
        cmocka_unit_test(what_the_kernel_ran_out_of_is_for_the_moment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
