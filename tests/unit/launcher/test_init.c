/* holdcell-init as pid 1: programs, signals, orphans, and a controller that misbehaves. */
#include "init_box.h"

static int open_box(void **state)
{
    *state = box_open();
    return 0;
}

static int close_box(void **state)
{
    box_close(*state);
    return 0;
}

static void a_spawned_program_runs_and_its_end_is_told(void **state)
{
    char text[256];
    struct init_exited end = box_run(*state, "echo hello $HOME; pwd; exit 3", text, sizeof text);

    assert_string_equal(text, "hello /home/user\n/home/user\n");
    assert_int_equal(end.exit_code, 3);
    assert_int_equal(end.signo, 0);
}

static void a_spawned_program_is_the_sessions_user_behind_all_walls(void **state)
{
    char text[4096];

    (void)box_run(*state,
                  "id -u; id -G; umask; ls /proc/self/fd | tr '\\n' ' '; ulimit -Hn;"
                  "egrep '^(Cap|NoNew|Seccomp:|SigIgn|SigBlk)' /proc/self/status",
                  text, sizeof text);
    assert_non_null(
        strstr(text, "1000\n1000\n0022\n0 1 2 3 4096\n")); /* 3: ls itself, of the folder */
    assert_non_null(strstr(text, "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
                                 "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\n"));
    assert_non_null(strstr(text, "NoNewPrivs:\t1\nSeccomp:\t2\n"));
    assert_non_null(strstr(text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spawned_program_runs_and_its_end_is_told),
        cmocka_unit_test(a_spawned_program_is_the_sessions_user_behind_all_walls),
    };

    return cmocka_run_group_tests(tests, open_box, close_box);
}
