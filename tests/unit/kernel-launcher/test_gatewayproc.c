/*
 * The gateway process: what it starts with, that it has no power, and that it is
 * started again. This program is its own gateway: called as `PROGRAM gateway` it
 * tells its state on the descriptor of the settings' neighbour.
 */
#include "gatewayproc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "clock.h"
#include "err.h"
#include "launcher.h"
#include "launchlink.h"
#include "sandbox_fake.h"
#include "settings.h"

enum { UID = 0x7fff1234 };

/* ---- the other side: this program as the gateway ---- */

static void tell_status(FILE *to)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "re");

    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "Cap", 3) == 0 || strncmp(line, "NoNewPrivs", 10) == 0 ||
            strncmp(line, "Uid", 3) == 0 || strncmp(line, "Gid", 3) == 0 ||
            strncmp(line, "Groups", 6) == 0 || strncmp(line, "SigBlk", 6) == 0 ||
            strncmp(line, "SigIgn", 6) == 0)
            fputs(line, to);
    }
    if (f != NULL)
        fclose(f);
}

static void tell_fds(FILE *to)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *entry;

    while (d != NULL && (entry = readdir(d)) != NULL) {
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(d))
            fprintf(to, "fd %s\n", entry->d_name);
    }
    if (d != NULL)
        closedir(d);
}

static int be_gateway(void)
{
    FILE *to = fdopen(GATEWAY_READY_FD, "w");
    struct rlimit core = { 7, 7 };
    int death = 0;
    char cwd[64] = "", byte;

    if (to == NULL)
        return 9;
    tell_fds(to);
    tell_status(to);
    getrlimit(RLIMIT_CORE, &core);
    prctl(PR_GET_PDEATHSIG, &death);
    fprintf(to, "core %d death %d leader %d cwd %s env %s\n", (int)core.rlim_max, death,
            getsid(0) == getpid(), getcwd(cwd, sizeof cwd) != NULL ? cwd : "?",
            getenv("SECRET") != NULL ? "leaked" : "clean");
    fprintf(to, "end\n");
    fflush(to);
    /* Until told to go: a packet with its exit status, or the end of the launcher. */
    struct pollfd p = { .fd = GATEWAY_LAUNCHER_FD, .events = POLLIN };
    poll(&p, 1, -1);
    return recv(GATEWAY_LAUNCHER_FD, &byte, 1, 0) == 1 ? byte : 0;
}

/* ---- the tests ---- */

struct fixture {
    struct gateway_config config;
    int ready_fd; /* read end */
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    int ready[2];

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    f->ready_fd = ready[0];
    f->config = (struct gateway_config){
        .exe_fd = open("/proc/self/exe", O_PATH | O_CLOEXEC),
        .name = "test-gateway",
        .listen_fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
        .settings_fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
        .ready_fd = ready[1],
        .dir_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .more_listen_fds = { -1, -1, -1 },
        .uid = UID,
    };
    setenv("SECRET", "of root", 1);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    close(f->config.exe_fd);
    close(f->config.listen_fd);
    close(f->config.settings_fd);
    close(f->config.ready_fd);
    close(f->config.dir_fd);
    close(f->ready_fd);
    free(f);
    return 0;
}

/* What the gateway tells up to its last line. */
static void read_report(struct fixture *f, char *out, size_t size)
{
    size_t n = 0;

    out[0] = '\0';
    while (strstr(out, "\nend\n") == NULL) {
        struct pollfd p = { .fd = f->ready_fd, .events = POLLIN };

        assert_int_equal(poll(&p, 1, 20000), 1);
        ssize_t got = read(f->ready_fd, out + n, size - n - 1);
        assert_true(got > 0);
        n += (size_t)got;
        out[n] = '\0';
    }
}

static void end_gateway(struct gatewayproc *g)
{
    gatewayproc_kill(g);
    assert_int_equal(waitpid(g->pid, NULL, 0), g->pid);
    gatewayproc_ended(g, clock_ms());
    assert_int_equal(g->pid, 0);
    assert_null(g->link);
}

static void assert_has(const char *report, const char *line)
{
    if (strstr(report, line) == NULL)
        fail_msg("no '%s' in:\n%s", line, report);
}

static void a_gateway_starts_with_its_descriptors_and_without_power(void **state)
{
    struct fixture *f = *state;
    struct gatewayproc g;
    struct err e = { 0 };
    char report[4096], uid[64];

    gatewayproc_init(&g);
    if (gatewayproc_start(&g, &f->config, &e) < 0)
        fail_msg("%s", e.msg);
    read_report(f, report, sizeof report);
    for (int fd = 0; fd < GATEWAY_FDS_END; fd++) {
        char line[16];

        snprintf(line, sizeof line, "fd %d\n", fd);
        assert_has(report, line);
    }
    unsigned fds = 0;
    for (const char *p = report; (p = strstr(p, "fd ")) != NULL; p++)
        fds++;
    assert_int_equal(fds, GATEWAY_FDS_END);
    snprintf(uid, sizeof uid, "Uid:\t%d\t%d\t%d\t%d\n", UID, UID, UID, UID);
    assert_has(report, uid);
    uid[0] = 'G';
    assert_has(report, uid);
    assert_has(report, "Groups:\t \n");
    assert_has(report, "CapInh:\t0000000000000000");
    assert_has(report, "CapPrm:\t0000000000000000");
    assert_has(report, "CapEff:\t0000000000000000");
    assert_has(report, "CapBnd:\t0000000000000000");
    assert_has(report, "CapAmb:\t0000000000000000");
    assert_has(report, "NoNewPrivs:\t1");
    assert_has(report, "SigBlk:\t0000000000000001"); /* SIGHUP, until it has a place for it */
    assert_has(report, "core 1 death 9 leader 1 cwd / ");
    assert_has(report, "env clean");
    end_gateway(&g);
}

static void a_program_that_cannot_run_is_an_error_that_names_the_step(void **state)
{
    struct fixture *f = *state;
    struct gatewayproc g;
    struct err e = { 0 };
    int exe = f->config.exe_fd;

    gatewayproc_init(&g);
    f->config.exe_fd = open("/etc/passwd", O_PATH | O_CLOEXEC);
    assert_int_equal(gatewayproc_start(&g, &f->config, &e), -EACCES);
    assert_non_null(strstr(e.msg, "exec 'test-gateway'"));
    close(f->config.exe_fd);
    f->config.exe_fd = -1;
    assert_true(gatewayproc_start(&g, &f->config, &e) < 0);
    assert_non_null(strstr(e.msg, "descriptors"));
    f->config.exe_fd = exe;
    assert_int_equal(g.pid, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

static void the_pause_grows_with_the_deaths_and_stays_bounded(void **state)
{
    (void)state;
    static const uint64_t expected[] = { 0, 0, 100, 500, 1000, 2000, 5000, 5000, 5000 };
    struct gatewayproc g;

    for (unsigned i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(gatewayproc_backoff_ms(i), expected[i]);
    gatewayproc_init(&g);
    for (int i = 0; i < 5; i++)
        gatewayproc_failed(&g, 1000);
    assert_int_equal(g.due_ms, 3000);
    g.started_ms = 1000;
    gatewayproc_ended(&g, 1000 + 61000); /* a healthy life forgives */
    assert_int_equal(g.deaths, 1);
    assert_int_equal(g.due_ms, 62000);
}

/* ---- the loop keeps a gateway alive ---- */

static void turn_until(struct launcher *l, int (*cond)(struct launcher *l))
{
    uint64_t end = clock_ms() + 20000;

    while (!cond(l)) {
        assert_true(clock_ms() < end);
        launcher_turn(l, 10);
    }
}

static pid_t previous;

static int another_one_lives(struct launcher *l)
{
    return l->gateway.pid > 0 && l->gateway.pid != previous;
}

static void start_launcher(struct launcher *l, struct launcher_config *config, struct fixture *f)
{
    *config = (struct launcher_config){
        .kernel_path = "/none",
        .sessions_max = 2,
        .gateway = f->config,
        .keeper = { .state_fd = -1, .slot_fd = -1, .state_dir_fd = -1, .control_fd = -1 }
    };
    launcher_init(l, config, NULL);
    assert_int_equal(launcher_open(l, NULL), 0);
    previous = 0;
}

static void end_launcher(struct launcher *l)
{
    uint64_t end = clock_ms() + 20000;

    launcher_stop(l);
    while (launcher_turn(l, 10))
        assert_true(clock_ms() < end);
    launcher_free(l);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void a_killed_gateway_is_replaced_with_a_fresh_link(void **state)
{
    struct fixture *f = *state;
    struct launcher_config config;
    struct launcher l;
    char report[4096];

    start_launcher(&l, &config, f);
    for (int i = 0; i < 2; i++) {
        turn_until(&l, another_one_lives);
        read_report(f, report, sizeof report);
        assert_non_null(l.gateway.link);
        previous = l.gateway.pid;
        assert_int_equal(kill(previous, SIGKILL), 0);
    }
    turn_until(&l, another_one_lives);
    assert_int_equal(l.gateway.deaths, 2);
    end_launcher(&l);
    assert_int_equal(l.failed, 0);
}

static int has_failed(struct launcher *l)
{
    return l->failed;
}

static void a_gateway_that_never_gets_as_far_as_asking_ends_the_launcher(void **state)
{
    struct fixture *f = *state;
    struct launcher_config config;
    struct launcher l;
    int exe = f->config.exe_fd;

    f->config.exe_fd = open("/bin/true", O_PATH | O_CLOEXEC);
    start_launcher(&l, &config, f);
    turn_until(&l, has_failed);
    assert_int_equal(l.gateway.deaths, 3);
    end_launcher(&l);
    close(f->config.exe_fd);
    f->config.exe_fd = exe;
}

static void at_the_end_a_gateway_that_ignores_sigterm_is_killed_in_time(void **state)
{
    struct fixture *f = *state;
    struct launcher_config config;
    struct launcher l;
    char report[4096];
    uint64_t begin;

    start_launcher(&l, &config, f);
    turn_until(&l, another_one_lives);
    read_report(f, report, sizeof report);
    kill(l.gateway.pid, SIGSTOP); /* deaf to everything but SIGKILL */
    begin = clock_ms();
    end_launcher(&l);
    assert_true(clock_ms() - begin < 10000);
}

/* The last test: where CAP_SYS_RESOURCE is missing nothing raises the limit again. */
static void a_gateway_starts_where_core_files_are_forbidden_for_good(void **state)
{
    const struct rlimit none = { 0, 0 };
    struct fixture *f = *state;
    struct gatewayproc g;
    struct err e = { 0 };
    char report[4096];

    assert_int_equal(setrlimit(RLIMIT_CORE, &none), 0);
    gatewayproc_init(&g);
    if (gatewayproc_start(&g, &f->config, &e) < 0)
        fail_msg("%s", e.msg);
    read_report(f, report, sizeof report);
    if (strstr(report, "core 1 ") == NULL)
        assert_has(report, "core 0 ");
    end_gateway(&g);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        T(a_gateway_starts_with_its_descriptors_and_without_power),
        T(a_program_that_cannot_run_is_an_error_that_names_the_step),
        T(the_pause_grows_with_the_deaths_and_stays_bounded),
        T(a_killed_gateway_is_replaced_with_a_fresh_link),
        T(a_gateway_that_never_gets_as_far_as_asking_ends_the_launcher),
        T(at_the_end_a_gateway_that_ignores_sigterm_is_killed_in_time),
        T(a_gateway_starts_where_core_files_are_forbidden_for_good),
    };

    if (argc > 1 && strcmp(argv[1], "gateway") == 0)
        return be_gateway();
    if (getuid() != 0) {
        printf("skipped: only root can start a gateway under another id\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
