/* Where a home lies and how large it is then. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "admission.h"
#include "err.h"
#include "homechoice.h"

#define MIB UINT64_C(1048576)

static const struct launch_limits defaults = { .memory_bytes = 2048 * MIB,
                                               .home_bytes = 1024 * MIB };
static const struct admission roomy = { .disk_available = 3000 * MIB, .disk_reserve = 1000 * MIB };
static const struct admission full = { .disk_available = 2023 * MIB, .disk_reserve = 1000 * MIB };

struct choice {
    enum sandbox_home home;
    uint64_t bytes;
    int rc;
};

static struct choice choose(struct home_policy p, const struct admission *a, int asked,
                            uint64_t memory_mib, uint64_t home_mib)
{
    struct launch_limits l = { .memory_bytes = memory_mib * MIB, .home_bytes = home_mib * MIB };
    struct choice c = { .home = (enum sandbox_home)9 };
    struct err e = { 0 };

    c.rc = home_choose(&p, a, &defaults, asked, &l, &c.home, &e);
    c.bytes = l.home_bytes / MIB;
    return c;
}

static void assert_choice(struct choice c, enum sandbox_home home, uint64_t mib)
{
    assert_int_equal(c.rc, 0);
    assert_int_equal(c.home, home);
    assert_int_equal(c.bytes, mib);
}

static void by_itself_it_is_on_disk_while_there_is_room(void **state)
{
    const struct home_policy p = { HOME_AUTO, 0 };

    (void)state;
    assert_choice(choose(p, &roomy, 0, 2048, 1024), SANDBOX_HOME_DISK, 1024);
    assert_choice(choose(p, &roomy, 0, 256, 1024), SANDBOX_HOME_DISK, 1024); /* not its memory */
    assert_choice(choose(p, &full, 0, 2048, 1024), SANDBOX_HOME_MEMORY, 512);
    assert_choice(choose(p, &full, 0, 256, 1024), SANDBOX_HOME_MEMORY, 64);
    assert_choice(choose(p, &full, 0, 2048, 1023), SANDBOX_HOME_DISK, 1023); /* the last byte */
}

static void what_was_asked_for_is_not_made_smaller_but_refused(void **state)
{
    (void)state;
    assert_int_equal(choose((struct home_policy){ HOME_AUTO, 0 }, &full, 1, 2048, 1024).rc,
                     -HC_EFULL);
    assert_int_equal(choose((struct home_policy){ HOME_AUTO, 1 }, &full, 0, 2048, 1024).rc,
                     -HC_EFULL);
    /* What memory can give as well is given. */
    assert_choice(choose((struct home_policy){ HOME_AUTO, 1 },
                         &(struct admission){ .disk_available = 0 }, 1, 2048, 512),
                  SANDBOX_HOME_MEMORY, 512);
}

static void disk_alone_leaves_the_lack_of_room_to_the_admission(void **state)
{
    struct admission a = full;

    (void)state;
    a.memory_available = a.tasks = a.files = UINT64_MAX;
    a.sessions_max = 1;
    assert_choice(choose((struct home_policy){ HOME_DISK, 0 }, &a, 0, 2048, 1024),
                  SANDBOX_HOME_DISK, 1024);
    assert_int_equal(admission_decide(&a, 2048 * MIB), ADMISSION_OPEN);
    a.disk_needed = 1024 * MIB;
    assert_int_equal(admission_decide(&a, 2048 * MIB), ADMISSION_DISK);
    a.disk_needed = 1023 * MIB;
    assert_int_equal(admission_decide(&a, 2048 * MIB), ADMISSION_OPEN);
    a.disk_available = a.disk_reserve - 1;
    assert_int_equal(admission_decide(&a, 2048 * MIB), ADMISSION_DISK);
    a.disk_available = UINT64_MAX; /* unknown */
    assert_int_equal(admission_decide(&a, 2048 * MIB), ADMISSION_OPEN);
}

static void in_memory_it_is_as_large_as_the_operator_says(void **state)
{
    const struct home_policy unsized = { HOME_MEMORY, 0 }, sized = { HOME_MEMORY, 1 };

    (void)state;
    assert_choice(choose(sized, &roomy, 0, 2048, 1500), SANDBOX_HOME_MEMORY, 1500);
    assert_choice(choose(sized, &roomy, 0, 256, 1500), SANDBOX_HOME_MEMORY, 64);
    assert_choice(choose(sized, &roomy, 1, 256, 100), SANDBOX_HOME_MEMORY, 100);
    assert_choice(choose(unsized, &roomy, 0, 2048, 1024), SANDBOX_HOME_MEMORY, 512);
    assert_choice(choose(unsized, &roomy, 0, 2, 1024), SANDBOX_HOME_MEMORY, 1); /* something */
}

static void in_memory_it_leaves_some_of_it_to_the_kernel(void **state)
{
    const struct home_policy p = { HOME_MEMORY, 1 };
    struct launch_limits l = { .memory_bytes = 2048 * MIB,
                               .home_bytes = 1500 * MIB,
                               .tmp_bytes = 256 * MIB,
                               .shm_bytes = 164 * MIB };
    enum sandbox_home home = SANDBOX_HOME_DISK;
    struct err e = { 0 };

    (void)state;
    assert_int_equal(home_choose(&p, &roomy, &defaults, 1, &l, &home, &e), 0);
    assert_int_equal(l.home_bytes, 1500 * MIB); /* the last byte of 2048 - 128 */
    l.home_bytes++;
    home = SANDBOX_HOME_DISK;
    assert_int_equal(home_choose(&p, &roomy, &defaults, 1, &l, &home, &e), -HC_ELIMIT);
    assert_ptr_equal(strstr(e.msg, "limits.disk_mb: "), e.msg);
    assert_non_null(strstr(e.msg, "1500 of its 2048 MiB"));
    assert_int_equal(home, SANDBOX_HOME_DISK); /* untouched */
    /* Who did not ask gets what there is. */
    assert_int_equal(home_choose(&p, &roomy, &defaults, 0, &l, &home, &e), 0);
    assert_int_equal(l.home_bytes, 1500 * MIB);
    /* Where a disk could give it later, it is not the request's fault. */
    l.home_bytes = 200 * MIB;
    l.tmp_bytes = 1600 * MIB;
    const struct home_policy either = { HOME_AUTO, 0 };
    assert_int_equal(home_choose(&either, &full, &defaults, 1, &l, &home, &e), 0); /* disk */
    assert_int_equal(home, SANDBOX_HOME_DISK);
    const struct admission none = { .disk_available = 0 };
    assert_int_equal(home_choose(&either, &none, &defaults, 1, &l, &home, &e), -HC_EFULL);
    /* A gateway that says anything. */
    l.tmp_bytes = UINT64_MAX;
    l.shm_bytes = UINT64_MAX;
    assert_int_equal(home_choose(&p, &roomy, &defaults, 0, &l, &home, &e), 0);
    assert_int_equal(l.tmp_bytes, 256 * MIB);
    assert_int_equal(l.shm_bytes, 128 * MIB);
    l.memory_bytes = l.home_bytes = l.tmp_bytes = l.shm_bytes = 1;
    assert_int_equal(home_choose(&p, &roomy, &defaults, 1, &l, &home, &e), -HC_ELIMIT);
}

static void the_reserve_of_a_disk_follows_its_size(void **state)
{
    (void)state;
    assert_int_equal(admission_disk_reserve(ADMISSION_DEFAULT, 100 * 1024 * MIB), 5120 * MIB);
    assert_int_equal(admission_disk_reserve(ADMISSION_DEFAULT, 10 * 1024 * MIB), 1024 * MIB);
    assert_int_equal(admission_disk_reserve(ADMISSION_DEFAULT, 1024 * MIB), 256 * MIB);
    assert_int_equal(admission_disk_reserve(0, 1024 * MIB), 0);
}

static void the_words_of_the_option_are_known(void **state)
{
    enum home_mode mode = HOME_AUTO;

    (void)state;
    assert_int_equal(home_mode_of("disk", &mode), 1);
    assert_int_equal(mode, HOME_DISK);
    assert_int_equal(home_mode_of("tmpfs", &mode), 1);
    assert_int_equal(mode, HOME_MEMORY);
    assert_int_equal(home_mode_of("auto", &mode), 1);
    assert_int_equal(mode, HOME_AUTO);
    assert_int_equal(home_mode_of("ram", &mode), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_itself_it_is_on_disk_while_there_is_room),
        cmocka_unit_test(what_was_asked_for_is_not_made_smaller_but_refused),
        cmocka_unit_test(disk_alone_leaves_the_lack_of_room_to_the_admission),
        cmocka_unit_test(in_memory_it_is_as_large_as_the_operator_says),
        cmocka_unit_test(in_memory_it_leaves_some_of_it_to_the_kernel),
        cmocka_unit_test(the_reserve_of_a_disk_follows_its_size),
        cmocka_unit_test(the_words_of_the_option_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
