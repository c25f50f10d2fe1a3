/* Pure rules around a kernel: state and activity, restarts, environment, recipe. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "activity.h"
#include "cull.h"
#include "err.h"
#include "kernelenv.h"
#include "launchmsg.h"
#include "memfd.h"
#include "msgcodec.h"
#include "recipe.h"
#include "restarts.h"

/* ---- activity ---- */

static void execution_state_follows_jupyters_table(void **state)
{
    static const struct {
        const char *type, *parent, *execution_state;
        enum activity_state before, after;
        int moves;
    } rows[] = {
        { "status", "", "starting", ACTIVITY_IDLE, ACTIVITY_STARTING, 1 },
        { "status", "execute_request", "busy", ACTIVITY_IDLE, ACTIVITY_BUSY, 1 },
        { "status", "execute_request", "idle", ACTIVITY_BUSY, ACTIVITY_IDLE, 1 },
        { "status", "kernel_info_request", "busy", ACTIVITY_IDLE, ACTIVITY_IDLE, 0 },
        { "status", "kernel_info_request", "busy", ACTIVITY_STARTING, ACTIVITY_IDLE, 0 },
        { "status", "kernel_info_request", "starting", ACTIVITY_STARTING, ACTIVITY_STARTING, 0 },
        { "status", "kernel_info_request", "idle", ACTIVITY_BUSY, ACTIVITY_BUSY, 1 },
        { "status", "complete_request", "busy", ACTIVITY_IDLE, ACTIVITY_BUSY, 1 },
        { "status", "comm_info_request", "busy", ACTIVITY_IDLE, ACTIVITY_IDLE, 0 },
        { "status", "comm_msg", "busy", ACTIVITY_IDLE, ACTIVITY_BUSY, 1 },
        { "status", "debug_request", "busy", ACTIVITY_IDLE, ACTIVITY_IDLE, 0 },
        { "status", "shutdown_request", "busy", ACTIVITY_IDLE, ACTIVITY_IDLE, 0 },
        { "stream", "execute_request", "", ACTIVITY_BUSY, ACTIVITY_BUSY, 1 },
        { "stream", "kernel_info_request", "", ACTIVITY_IDLE, ACTIVITY_IDLE, 0 },
        { "debug_event", "debug_request", "", ACTIVITY_IDLE, ACTIVITY_IDLE, 0 },
        { "comm_open", "kernel_info_request", "", ACTIVITY_IDLE, ACTIVITY_IDLE, 1 },
        { "iopub_welcome", "", "", ACTIVITY_BUSY, ACTIVITY_BUSY, 0 },
        { "status", "execute_request", "dancing", ACTIVITY_IDLE, ACTIVITY_IDLE, 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct activity a = { .state = rows[i].before, .last_us = 1 };
        activity_message(&a, rows[i].type, rows[i].parent, rows[i].execution_state,
                         (struct activity_now){ 99, 9 });
        if (a.state != rows[i].after || (a.last_us == 99) != rows[i].moves)
            fail_msg("row %zu: state %d, moved %d", i, a.state, a.last_us == 99);
    }
}

static void what_a_kernel_says_moves_what_clients_see_and_not_its_idleness(void **state)
{
    struct activity a;

    (void)state;
    activity_start(&a, (struct activity_now){ 100, 10 });
    assert_int_equal(a.state, ACTIVITY_STARTING);
    activity_message(&a, "status", "kernel_info_request", "idle", (struct activity_now){ 200, 20 });
    assert_int_equal(a.last_us, 100);
    assert_int_equal(a.last_ms, 10);
    activity_message(&a, "status", "execute_request", "busy", (struct activity_now){ 300, 30 });
    assert_int_equal(a.state, ACTIVITY_BUSY);
    assert_int_equal(a.last_us, 300);
    assert_int_equal(a.last_ms, 10);
    activity_answer(&a, "kernel_info_request", (struct activity_now){ 400, 40 });
    assert_int_equal(a.last_ms, 10);
    activity_answer(&a, "execute_request", (struct activity_now){ 500, 50 });
    assert_int_equal(a.last_us, 500);
    assert_int_equal(a.last_ms, 50);
}

/* ---- culling ---- */

static void culling_spares_what_is_used(void **state)
{
    enum { IDLE = 1001, OWN = CULL_INTERVAL_MS };
    static const struct {
        struct cull_policy p;
        struct cull_case c;
        int due;
        uint64_t limit;
    } rows[] = {
        { { .idle_ms = 1000 }, { IDLE, CULL_UNSET, 0, 0 }, 1, 1000 },
        { { .idle_ms = 1000 }, { 1000, CULL_UNSET, 0, 0 }, 0, 0 },
        { { .idle_ms = 0 }, { UINT64_MAX, CULL_UNSET, 0, 0 }, 0, 0 },
        { { .idle_ms = 1000 }, { IDLE, CULL_UNSET, 1, 0 }, 0, 0 },
        { { .idle_ms = 1000, .busy = 1 }, { IDLE, CULL_UNSET, 1, 0 }, 1, 1000 },
        { { .idle_ms = 1000 }, { IDLE, CULL_UNSET, 0, 1 }, 0, 0 },
        { { .idle_ms = 1000, .connected = 1 }, { IDLE, CULL_UNSET, 0, 1 }, 1, 1000 },
        { { .idle_ms = 1000, .connected = 1 }, { IDLE, CULL_UNSET, 1, 1 }, 0, 0 },
        { { .idle_ms = 1000, .busy = 1 }, { IDLE, CULL_UNSET, 1, 1 }, 0, 0 },
        { { .idle_ms = 1000, .busy = 1, .connected = 1 }, { IDLE, CULL_UNSET, 1, 1 }, 1, 1000 },
        /* the kernelspec's own time wins, whichever is shorter; 0 is never */
        { { .idle_ms = 1000 }, { IDLE, OWN, 0, 0 }, 0, 0 },
        { { .idle_ms = 1000 }, { OWN + 1, OWN, 0, 0 }, 1, OWN },
        { { .idle_ms = 0 }, { IDLE, 500, 0, 0 }, 1, 500 },
        { { .idle_ms = 1000 }, { UINT64_MAX, 0, 0, 0 }, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t limit = 0;
        int due = cull_is_due(&rows[i].p, &rows[i].c, &limit);
        if (due != rows[i].due || limit != rows[i].limit)
            fail_msg("row %zu: due %d, limit %llu", i, due, (unsigned long long)limit);
    }
}

/* ---- restarts ---- */

static void five_quick_deaths_are_borne_the_sixth_is_the_end(void **state)
{
    struct restarts r = { 0 };
    uint64_t delay, now = 1000, total = 0;

    (void)state;
    for (int i = 0; i < 5; i++) {
        restarts_started(&r, now);
        assert_int_equal(restarts_died(&r, now + 5, &delay), 1);
        if (i == 0)
            assert_int_equal(delay, 0);
        total += delay;
        now += delay + 5;
    }
    assert_true(total < 20000); /* 404 within 25 s, checklist line 44 */
    restarts_started(&r, now);
    assert_int_equal(restarts_died(&r, now + 5, &delay), 0);
}

static void a_stable_life_begins_a_new_row(void **state)
{
    struct restarts r = { 0 };
    uint64_t delay, now = 0;

    (void)state;
    for (int i = 0; i < 50; i++) {
        restarts_started(&r, now);
        now += RESTARTS_STABLE_MS;
        assert_int_equal(restarts_died(&r, now, &delay), 1);
        assert_int_equal(delay, 0);
    }
}

/* ---- environment ---- */

static const char *get(const struct buf *b, const char *name)
{
    size_t n = strlen(name);
    struct view v = buf_view(b);

    for (size_t at = 0; at < v.n; at += strlen((const char *)v.p + at) + 1) {
        const char *s = (const char *)v.p + at;
        if (strncmp(s, name, n) == 0 && s[n] == '=')
            return s + n + 1;
    }
    return NULL;
}

static void the_environment_is_built_from_scratch(void **state)
{
    char *server[] = { (char *)"TZ=UTC", NULL };
    char *request[] = { (char *)"KERNEL_X=a b=c",
                        (char *)"OTHER=no",
                        (char *)"ALSO=yes",
                        (char *)"PATH=/evil",
                        (char *)"LD_PRELOAD=/e",
                        (char *)"PYTHONPATH=/e",
                        (char *)"KERNEL_GATEWAY=0",
                        (char *)"KERNEL_BOTH=request",
                        NULL };
    char *spec[] = { (char *)"S1=${HOME}/x",
                     (char *)"S2=${NOPE_1}",
                     (char *)"S3=$HOME-$",
                     (char *)"S4=${KERNEL_X}",
                     (char *)"KERNEL_BOTH=spec",
                     (char *)"S5=${HOME",
                     NULL };
    const struct kernelenv env = { .runtime = "/opt/r",
                                   .cores = 2,
                                   .server = server,
                                   .request = request,
                                   .allow = "ALSO, PATH,LD_PRELOAD,PYTHONPATH",
                                   .spec = spec };
    autobuf struct buf out = { 0 };

    (void)state;
    setenv("SECRET_OF_THE_SERVER", "x", 1);
    buf_init(&out, LAUNCH_ENV_MAX);
    assert_int_equal(kernelenv_build(&env, &out, NULL), 0);
    assert_string_equal(get(&out, "HOME"), "/home/user");
    assert_string_equal(get(&out, "PATH"), "/opt/r/bin:/usr/local/bin:/usr/bin:/bin");
    assert_string_equal(get(&out, "OMP_NUM_THREADS"), "2");
    assert_string_equal(get(&out, "TZ"), "UTC");
    assert_string_equal(get(&out, "KERNEL_X"), "a b=c");
    assert_string_equal(get(&out, "ALSO"), "yes");
    assert_string_equal(get(&out, "KERNEL_GATEWAY"), "1");
    assert_string_equal(get(&out, "KERNEL_BOTH"), "spec");
    assert_string_equal(get(&out, "S1"), "/home/user/x");
    assert_string_equal(get(&out, "S2"), "${NOPE_1}");
    assert_string_equal(get(&out, "S3"), "/home/user-$");
    assert_string_equal(get(&out, "S4"), "a b=c");
    assert_string_equal(get(&out, "S5"), "${HOME");
    static const char *const absent[] = { "OTHER",          "LD_PRELOAD",
                                          "PYTHONPATH",     "SECRET_OF_THE_SERVER",
                                          "JPY_PARENT_PID", "KG_AUTH_TOKEN" };
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
        assert_null(get(&out, absent[i]));
}

static void a_bad_variable_of_the_request_is_named(void **state)
{
    static const char *const bad[] = { "=x", "1A=x", "A-B=x", "NOVALUE", "A B=x" };
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char *request[] = { (char *)(uintptr_t)bad[i], NULL };
        const struct kernelenv env = { .request = request };
        autobuf struct buf out = { 0 };
        buf_init(&out, LAUNCH_ENV_MAX);
        assert_int_equal(kernelenv_filter(&env, &out, &e), -EINVAL);
        assert_int_equal(kernelenv_build(&env, &out, &e), -EINVAL);
    }
}

static void the_working_directory_never_leaves_the_home(void **state)
{
    static const char *const rows[][2] = {
        { NULL, "/home/user" },
        { "", "/home/user" },
        { "nb.ipynb", "/home/user" },
        { "sub/nb.ipynb", "/home/user/sub" },
        { "/sub/deep/", "/home/user/sub/deep" },
        { "../../etc/passwd", "/home/user/etc/passwd" },
        { "a/../../../b/./c", "/home/user/b/c" },
        { "..", "/home/user" },
        { "a/..", "/home/user" },
        { "//x//y", "/home/user/x/y" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        autofree char *cwd = kernelenv_cwd(rows[i][0]);
        assert_string_equal(cwd, rows[i][1]);
    }
    static const char *const dirs[][2] = {
        { "KERNEL_WORKING_DIR=/home/user", "/home/user" },
        { "KERNEL_WORKING_DIR=/home/user/a.b", "/home/user/a.b" },
        { "KERNEL_WORKING_DIR=/home/user/../../etc", "/home/user/etc" },
        { "KERNEL_WORKING_DIR=/home/user2", "/home/user" },
        { "KERNEL_WORKING_DIR=/etc", "/home/user" },
        { "KERNEL_WORKING_DIR=", "/home/user" },
        { "KERNEL_WORKING_DIRECTORY=/home/user/x", "/home/user" },
    };
    for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
        char *const env[] = { (char *)(uintptr_t) "A=1", (char *)(uintptr_t)dirs[i][0], NULL };
        autofree char *dir = kernelenv_working_dir(env);
        assert_string_equal(dir, dirs[i][1]);
    }
    char long_path[4000];
    memset(long_path, 'a', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    autofree char *cwd = kernelenv_cwd(long_path);
    assert_string_equal(cwd, "/home/user");
}

/* ---- recipe ---- */

static void a_recipe_survives_in_a_memfd(void **state)
{
    struct kernel_recipe r, back;
    int fd;

    (void)state;
    recipe_init(&r);
    recipe_init(&back);
    r.cwd = xstrdup("/home/user/sub");
    assert_int_equal(msg_strings_add(&r.argv, "python3"), 0);
    assert_int_equal(msg_strings_add(&r.argv, ""), 0);
    assert_int_equal(msg_strings_add(&r.spec_env, "A=b"), 0);
    assert_int_equal(recipe_memfd(&r, &fd, NULL), 0);
    assert_int_equal(write(fd, "x", 1), -1); /* sealed */
    assert_int_equal(recipe_read(fd, &back, NULL), 0);
    assert_string_equal(back.cwd, r.cwd);
    autofree char **argv = recipe_strings(&back.argv);
    assert_string_equal(argv[0], "python3");
    assert_string_equal(argv[1], "");
    assert_null(argv[2]);
    assert_int_equal(buf_len(&back.request_env), 0);
    close(fd);
    recipe_free(&r);
    recipe_free(&back);
}

static void a_damaged_recipe_is_refused(void **state)
{
    struct kernel_recipe r;
    int fd;

    (void)state;
    for (uint32_t claim = 0; claim < 64; claim += 3) {
        uint8_t bytes[24] = { 0 };
        memcpy(bytes, &claim, sizeof claim);
        recipe_init(&r);
        assert_int_equal(memfd_sealed("test", bytes, sizeof bytes, &fd, NULL), 0);
        assert_true(recipe_read(fd, &r, NULL) < 0);
        close(fd);
        recipe_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(execution_state_follows_jupyters_table),
        cmocka_unit_test(what_a_kernel_says_moves_what_clients_see_and_not_its_idleness),
        cmocka_unit_test(culling_spares_what_is_used),
        cmocka_unit_test(five_quick_deaths_are_borne_the_sixth_is_the_end),
        cmocka_unit_test(a_stable_life_begins_a_new_row),
        cmocka_unit_test(the_environment_is_built_from_scratch),
        cmocka_unit_test(a_bad_variable_of_the_request_is_named),
        cmocka_unit_test(the_working_directory_never_leaves_the_home),
        cmocka_unit_test(a_recipe_survives_in_a_memfd),
        cmocka_unit_test(a_damaged_recipe_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
