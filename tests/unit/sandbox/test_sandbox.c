/* The life of a sandbox: create, start kernels, measure, kill, free; and that nothing stays behind. */
#include "boxtest.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char output[65536];

static void a_program_runs_inside_and_its_exit_is_seen(void **state)
{
    (void)state;
    struct box b;

    BOX_NEEDS_ROOT();
    box_open(&b, NULL);
    int status = box_shell(&b, "echo $$ $(id -u) $(pwd); exit 17", output, sizeof output);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 17);
    assert_non_null(strstr(output, " 1000 /home/user\n"));
    status = box_shell(&b, "kill -SEGV $$", output, sizeof output);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    box_close(&b);
}

static void a_program_that_is_missing_is_told_at_once(void **state)
{
    (void)state;
    struct box b;
    struct box_run run;
    char *const missing[] = { BOX_TEXT("no-such-program"), NULL };
    char *const forbidden[] = { BOX_TEXT("/etc/hostname"), NULL };

    BOX_NEEDS_ROOT();
    box_open(&b, NULL);
    assert_int_equal(box_start(&b, missing, &run), -ENOENT);
    assert_non_null(strstr(box_err.msg, "no-such-program"));
    assert_int_equal(box_start(&b, forbidden, &run), -EACCES);
    /* Nothing is left of both: the session goes on. */
    assert_int_equal(box_shell(&b, "true", output, sizeof output), 0);
    box_close(&b);
}

static void a_kernel_with_sockets_finds_them_in_their_order(void **state)
{
    (void)state;
    char *const env[] = { BOX_TEXT("PATH=/usr/bin"), NULL };
    char *const argv[] = { BOX_TEXT("sh"), BOX_TEXT("-c"),
                           BOX_TEXT("cat {connection_file}; cat <&0; for i in 4 5 6 7 8; do cat "
                                    "<&$i; done; ls /proc/self/fd | wc -l; umask"),
                           NULL };
    struct box b;
    struct box_run run;
    int sockets[5], connection = memfd_create("c", MFD_CLOEXEC), log[2];

    BOX_NEEDS_ROOT();
    box_open(&b, NULL);
    for (int i = 0; i < 5; i++) { /* stand-ins that can be told apart */
        char c = (char)('a' + i);

        sockets[i] = memfd_create("s", MFD_CLOEXEC);
        assert_int_equal(pwrite(sockets[i], &c, 1, 0), 1);
    }
    assert_int_equal(pwrite(connection, "CONN", 4, 0), 4);
    assert_int_equal(pipe2(log, O_CLOEXEC), 0);
    const struct sandbox_start start = {
        .kernel = 1,
        .generation = ++b.generation,
        .flags = LAUNCH_SOCKETS_FD,
        .spec_fd = -1,
        .argv = argv,
        .env = env,
        .cwd = "/nonexistent",
        .connection_fd = connection,
        .log_fd = log[1],
        .socket_fds = sockets,
    };
    box_ok(startkernel(b.sandbox, &start, &run.kernel, &box_err));
    close(log[1]);
    run.log_fd = log[0];
    assert_int_equal(run.kernel.run_fd, -1);
    assert_int_equal(box_finish(&b, &run, output, sizeof output), 0);
    /* 0..8 and the one of ls itself */
    assert_string_equal(output, "CONNabcde10\n0022\n");
    for (int i = 0; i < 5; i++)
        close(sockets[i]);
    close(connection);
    box_close(&b);
}

static void a_foreign_kernel_has_a_run_folder_that_can_be_sealed(void **state)
{
    (void)state;
    struct box b;
    struct box_run run;
    struct stat st;
    char *const argv[] = {
        BOX_TEXT("sh"), BOX_TEXT("-c"),
        BOX_TEXT("cd /run/kernel/1-1 && cat connection.json && umask && touch s-1 && echo made; "
                 "while [ -O . ]; do sleep 0.02; done; rm -f s-1 2>/dev/null || echo sealed"),
        NULL
    };

    BOX_NEEDS_ROOT();
    box_open(&b, NULL);
    box_ok(box_start(&b, argv, &run));
    for (int left = BOX_TIMEOUT_MS; left > 0 && fstatat(run.kernel.run_fd, "s-1", &st, 0) < 0;
         left--)
        poll(NULL, 0, 1);
    box_ok(sandbox_seal(b.sandbox, 1, 1, &box_err));
    assert_int_equal(fstatat(run.kernel.run_fd, "", &st, AT_EMPTY_PATH), 0);
    assert_int_equal(st.st_uid, 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(box_finish(&b, &run, output, sizeof output), 0);
    assert_string_equal(output, "{}0007\nmade\nsealed\n");
    /* Its leaf was removed, and what it left in the folder that has its usual names. */
    assert_int_equal(fstatat(sandbox_run_fd(b.sandbox), "1-1", &st, 0), -1);
    box_close(&b);
}

static void a_kernelspec_folder_is_mounted_once_and_named_in_the_arguments(void **state)
{
    (void)state;
    char *const env[] = { BOX_TEXT("PATH=/usr/bin"), NULL };
    char *const argv[] = { BOX_TEXT("sh"), BOX_TEXT("-c"),
                           BOX_TEXT("echo {resource_dir}; ls {resource_dir}/python3; touch "
                                    "{resource_dir}/x || grep -c kernelspec /proc/self/mounts"),
                           NULL };
    struct box b;
    struct box_run run;

    BOX_NEEDS_ROOT();
    box_open(&b, NULL);
    for (int round = 0; round < 2; round++) {
        int spec = open("/usr/lib", O_PATH | O_DIRECTORY | O_CLOEXEC), log[2];
        int connection = memfd_create("c", MFD_CLOEXEC);

        assert_int_equal(pipe2(log, O_CLOEXEC), 0);
        const struct sandbox_start start = {
            .kernel = 1,
            .generation = ++b.generation,
            .spec_fd = spec,
            .spec_name = "lib",
            .argv = argv,
            .env = env,
            .cwd = "/",
            .connection_fd = connection,
            .log_fd = log[1],
        };
        box_ok(startkernel(b.sandbox, &start, &run.kernel, &box_err));
        close(log[1]);
        close(spec);
        close(connection);
        run.log_fd = log[0];
        assert_int_equal(box_finish(&b, &run, output, sizeof output), 0);
        assert_ptr_equal(strstr(output, "/kernelspecs/0\n"), output);
        assert_non_null(strstr(output, "dist-packages\n"));
        assert_non_null(strstr(output, "\n1\n"));
    }
    box_close(&b);
}

/* In /proc/net, whoever looks, and whatever this kernel has in it. */
static void counters_of_the_hosts_network_are_shut(void **state)
{
    (void)state;
    struct box b;
    struct stat st;

    BOX_NEEDS_ROOT();
    box_open(&b, NULL);
    box_shell(
        &b,
        "cd /proc/net; for f in sockstat sockstat6 protocols softnet_stat ptype rt_acct "
        "stat/rt_cache stat/arp_cache stat/nf_conntrack rt_cache; do cat $f 2>/dev/null && "
        "echo $f is open; chmod 444 $f 2>/dev/null && echo $f can be changed; done; ls stat "
        "2>/dev/null && echo stat can be listed; ls -l /proc/self/net /proc/thread-self/net | "
        "grep -c -e '^[-d]------.* sockstat$' -e '^[-d]------.* protocols$' -e "
        "'^d---------.* stat$'",
        output, sizeof output);
    assert_string_equal(output, "6\n"); /* both folders name those three */
    assert_int_equal(box_shell(&b,
                               "cd /proc/net && cat dev route unix tcp udp if_inet6 snmp netstat "
                               ">/dev/null && grep -c . dev && ls dev_snmp6",
                               output, sizeof output),
                     0);
    assert_string_equal(output, "3\nlo\n");
    /* The host's own are as they were. */
    assert_int_equal(stat("/proc/net/sockstat", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0444);
    box_close(&b);
}

/* A word from another session would be a number that moves. */
static void settings_hold_still(void **state)
{
    (void)state;
    static const char look[] = "grep -ars '' /proc/sys --exclude=uuid --exclude=ns_last_pid; true";
    static char before[1 << 18], after[1 << 18];
    struct box b;
    int fds[200];

    BOX_NEEDS_ROOT();
    box_open(&b, NULL);
    box_shell(&b, look, before, sizeof before);
    assert_true(strlen(before) > 1000 && strlen(before) < sizeof before - 1);
    for (unsigned i = 0; i < 200; i++)
        fds[i] = memfd_create("x", MFD_CLOEXEC);
    sync();
    box_shell(&b, look, after, sizeof after);
    for (unsigned i = 0; i < 200; i++)
        close(fds[i]);
    assert_string_equal(before, after);
    box_close(&b);
}

static void kill_ends_what_ignores_every_signal_and_daemonised(void **state)
{
    (void)state;
    struct box b;
    struct box_run run;
    struct launch_status_answer use = { 0 };
    char *const argv[] = { BOX_TEXT("sh"), BOX_TEXT("-c"),
                           BOX_TEXT("trap '' INT TERM HUP QUIT; for i in 1 2 3; do setsid sh -c "
                                    "'trap \"\" TERM; exec sleep 1000' >/dev/null 2>&1 & done; "
                                    "echo up; while :; do sleep 1000; done"),
                           NULL };
    int status;
    char c[3];

    BOX_NEEDS_ROOT();
    box_open(&b, NULL);
    box_ok(box_start(&b, argv, &run));
    assert_int_equal(read(run.log_fd, c, 3), 3);
    assert_false(sandbox_kernel_empty(b.sandbox, 1, 1));
    box_ok(sandbox_status(b.sandbox, 0, &use, &box_err));
    assert_true(use.pids >= 5);
    box_ok(sandbox_kill_kernel(b.sandbox, 1, 1, &box_err));
    assert_int_equal(waitpid(run.kernel.pid, &status, 0), run.kernel.pid);
    for (int left = BOX_TIMEOUT_MS; left > 0 && !sandbox_kernel_empty(b.sandbox, 1, 1); left--)
        poll(NULL, 0, 1);
    assert_true(sandbox_kernel_empty(b.sandbox, 1, 1));
    assert_false(sandbox_empty(b.sandbox)); /* init lives on */
    close(run.kernel.pidfd);
    close(run.kernel.run_fd);
    close(run.log_fd);
    /* The session is usable still. */
    assert_int_equal(box_shell(&b, "true", output, sizeof output), 0);
    box_close(&b);
}

static void a_session_whose_init_died_refuses_kernels(void **state)
{
    (void)state;
    struct box b;
    struct box_run run;
    char *const argv[] = { BOX_TEXT("true"), NULL };
    int status;

    BOX_NEEDS_ROOT();
    box_open(&b, NULL);
    box_ok(sandbox_kill(b.sandbox, &box_err));
    struct pollfd p = { .fd = sandbox_init_pidfd(b.sandbox), .events = POLLIN };
    assert_int_equal(poll(&p, 1, BOX_TIMEOUT_MS), 1);
    assert_true(box_start(&b, argv, &run) < 0);
    assert_int_equal(waitpid(sandbox_init_pid(b.sandbox), &status, 0), sandbox_init_pid(b.sandbox));
    int r;
    while ((r = sandbox_free(b.sandbox, &box_err)) == -EBUSY)
        poll(NULL, 0, 1);
    box_ok(r);
    b.sandbox = NULL;
    box_close(&b);
}

static unsigned count_entries(const char *path)
{
    DIR *d = opendir(path);
    unsigned n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static void assert_descriptors(unsigned want, const char *after)
{
    unsigned now = count_entries("/proc/self/fd");

    for (int fd = 0; now != want && fd < 200; fd++) {
        char path[64], target[256];
        ssize_t n;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        n = readlink(path, target, sizeof target - 1);
        if (n > 0)
            print_message("%d %.*s\n", fd, (int)n, target);
    }
    if (now != want)
        fail_msg("%u instead of %u descriptors after %s: %s", now, want, after, box_err.msg);
}

static unsigned count_lines(const char *path)
{
    FILE *f = fopen(path, "re");
    unsigned n = 0;

    assert_non_null(f);
    for (int c; (c = getc(f)) != EOF;)
        n += c == '\n';
    fclose(f);
    return n;
}

static void assert_groups_are_gone(void)
{
    static const char *const trees[] = {
        "", "unified/", "memory/", "pids/", "cpu/", "cpu,cpuacct/"
    };
    for (unsigned i = 0; i < sizeof trees / sizeof *trees; i++) {
        char path[96];

        snprintf(path, sizeof path, "/sys/fs/cgroup/%sholdcell-%u", trees[i], box_slot());
        assert_int_equal(access(path, F_OK), -1);
    }
}

static void fifty_sessions_leave_nothing_behind(void **state)
{
    (void)state;
    struct box b;
    struct launch_limits limits;
    char children[64];

    BOX_NEEDS_ROOT();
    box_open(&b, NULL);
    sandbox_limits_default(&limits);
    snprintf(children, sizeof children, "/proc/self/task/%d/children", (int)getpid());
    unsigned fds = count_entries("/proc/self/fd"), mounts = count_lines("/proc/self/mountinfo");
    for (int i = 0; i < 50; i++) {
        struct box one = { .host = b.host };

        box_ok(sandbox_create(b.host, 1, &limits, NULL, &one.sandbox, &box_err));
        if (i % 10 == 0)
            assert_int_equal(box_shell(&one, "touch /tmp/x; sleep 1000 >/dev/null 2>&1 & true",
                                       output, sizeof output),
                             0);
        box_end_sandbox(one.sandbox);
    }
    assert_descriptors(fds, "all");
    assert_int_equal(count_lines("/proc/self/mountinfo"), mounts);
    box_end_sandbox(b.sandbox);
    b.sandbox = NULL;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, reaped or not */
    assert_int_equal(errno, ECHILD);
    box_close(&b);
    assert_groups_are_gone();
}

static void a_limit_that_is_missing_is_refused(void **state)
{
    (void)state;
    struct box b;
    struct launch_limits limits;
    struct sandbox *s = NULL;

    BOX_NEEDS_ROOT();
    box_open(&b, NULL);
    sandbox_limits_default(&limits);
    limits.pids = 0;
    assert_int_equal(sandbox_create(b.host, 1, &limits, NULL, &s, &box_err), -EINVAL);
    sandbox_limits_default(&limits);
    limits.nofile = 1U << 30;
    assert_int_equal(sandbox_create(b.host, 1, &limits, NULL, &s, &box_err), -EINVAL);
    /* Files that are memory, by one byte. */
    sandbox_limits_default(&limits);
    limits.home_bytes = limits.memory_bytes - limits.tmp_bytes - limits.shm_bytes + 1;
    assert_int_equal(sandbox_create(b.host, 1, &limits, NULL, &s, &box_err), -EINVAL);
    assert_non_null(strstr(box_err.msg, "larger than the memory"));
    limits.shm_bytes = UINT64_MAX;
    assert_int_equal(sandbox_create(b.host, 1, &limits, NULL, &s, &box_err), -EINVAL);
    assert_null(s);
    box_close(&b);
}

/* Its own exit comes last: it waits for ours, which is not reaped here before the question. */
static void an_init_that_is_killed_is_seen_by_the_death_of_a_kernel(void **state)
{
    (void)state;
    char *const argv[] = { BOX_TEXT("sleep"), BOX_TEXT("1000"), NULL };
    struct box b;
    struct box_run run;
    int status;

    BOX_NEEDS_ROOT();
    box_open(&b, NULL);
    box_ok(box_start(&b, argv, &run));
    assert_int_equal(sandbox_is_ending(b.sandbox), 0);
    assert_int_equal(kill(run.kernel.pid, SIGKILL), 0);
    box_finish(&b, &run, output, sizeof output);
    assert_int_equal(sandbox_is_ending(b.sandbox), 0); /* it died alone */
    box_ok(box_start(&b, argv, &run));
    assert_int_equal(kill(sandbox_init_pid(b.sandbox), SIGKILL), 0);
    assert_int_equal(waitpid(run.kernel.pid, &status, 0), run.kernel.pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(sandbox_is_ending(b.sandbox), 1);
    close(run.log_fd);
    close(run.kernel.pidfd);
    if (run.kernel.run_fd >= 0)
        close(run.kernel.run_fd);
    box_close(&b);
}

static void an_init_that_dies_is_told_and_leaves_nothing(void **state)
{
    (void)state;
    struct sandbox_config config = box_config();
    struct sandbox_host *host;
    struct sandbox *s = NULL;
    struct launch_limits limits;

    BOX_NEEDS_ROOT();
    config.init_path = "/usr/bin/true";
    sandbox_limits_default(&limits);
    box_ok(sandbox_host_open(&config, &host, &box_err));
    unsigned fds = count_entries("/proc/self/fd");
    assert_int_equal(sandbox_create(host, 0, &limits, NULL, &s, &box_err), -ECHILD);
    assert_non_null(strstr(box_err.msg, "died"));
    assert_null(s);
    assert_descriptors(fds, "all");
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    sandbox_host_close(host);
    assert_groups_are_gone();

    config.init_path = "/nonexistent";
    assert_int_equal(sandbox_host_open(&config, &host, &box_err), -ENOENT);
    assert_groups_are_gone();
    config = box_config();
    config.runtime_dir = "/tmp";
    assert_int_equal(sandbox_host_open(&config, &host, &box_err), -EINVAL);
    assert_groups_are_gone();
}

/* Where the host refuses namespaces below the outer one; tests/unit/sandbox run whole in this mode with
 * HOLDCELL_TEST_ONE_LEVEL=1 in the environment. */
static void without_an_outer_namespace_the_sandbox_is_the_same(void **state)
{
    (void)state;
    struct sandbox_config config = box_config();
    struct box b = { 0 };
    struct launch_limits limits;

    BOX_NEEDS_ROOT();
    config.one_level = 1;
    sandbox_limits_default(&limits);
    box_ok(sandbox_host_open(&config, &b.host, &box_err));
    assert_int_equal(sandbox_host_levels(b.host), 1);
    box_ok(sandbox_create(b.host, 7, &limits, NULL, &b.sandbox, &box_err));
    assert_int_equal(box_shell(&b, "id -u; cat /proc/self/uid_map; grep CapEff /proc/self/status",
                               output, sizeof output),
                     0);
    unsigned init_id = 0, inside = 0, user_id = 0;
    assert_int_equal(sscanf(output, "1000 0 %u 1 %u %u 1", &init_id, &inside, &user_id), 3);
    assert_int_equal(inside, 1000);
    assert_non_null(strstr(output, "CapEff:\t0000000000000000\n"));
    box_close(&b);
}

/* Every call that makes a descriptor fails once: the error comes back, and nothing stays behind. */
static void running_out_of_descriptors_leaves_nothing(void **state)
{
    (void)state;
    struct box b;
    struct launch_limits limits;
    struct rlimit before, low;
    char *const argv[] = { BOX_TEXT("true"), NULL };
    unsigned failed_creates = 0, failed_starts = 0, started = 0;

    BOX_NEEDS_ROOT();
    box_open(&b, NULL);
    sandbox_limits_default(&limits);
    unsigned fds = count_entries("/proc/self/fd");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (unsigned limit = 4; limit < fds + 64; limit++) { /* there are gaps in the numbers in use */
        struct box one = { .host = b.host };
        struct box_run run;

        low = (struct rlimit){ limit, before.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        int r = sandbox_create(b.host, 1, &limits, NULL, &one.sandbox, &box_err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (r < 0) {
            failed_creates++;
        } else {
            box_end_sandbox(one.sandbox);
        }
        assert_descriptors(fds, "a create");
        box_start_rlimit = limit;
        r = box_start(&b, argv, &run);
        box_start_rlimit = 0;
        if (r < 0) {
            failed_starts++;
        } else {
            started++;
            box_finish(&b, &run, output, sizeof output);
        }
        assert_descriptors(fds, "a start");
    }
    assert_true(failed_creates > 20);
    assert_true(failed_starts > 3);
    assert_true(started > 3);
    assert_int_equal(box_shell(&b, "true", output, sizeof output), 0);
    box_end_sandbox(b.sandbox);
    b.sandbox = NULL;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    box_close(&b);
    assert_groups_are_gone();
}

/* A session can stop or kill a process of its user on the way to its exec. */
static void a_start_that_the_session_stops_can_be_given_up(void **state)
{
    (void)state;
    char *const hostile[] = { BOX_TEXT("sh"), BOX_TEXT("-c"),
                              BOX_TEXT("echo; while :; do kill -STOP -1; done 2>/dev/null"), NULL };
    char *const argv[] = { BOX_TEXT("sleep"), BOX_TEXT("1000"), NULL };
    char *const env[] = { BOX_TEXT("PATH=/usr/bin"), NULL };
    struct box b;
    struct box_run run;
    int connection = memfd_create("c", MFD_CLOEXEC), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    char c;

    BOX_NEEDS_ROOT();
    box_open(&b, NULL);
    box_ok(box_start(&b, hostile, &run));
    assert_int_equal(read(run.log_fd, &c, 1), 1);
    for (uint32_t generation = 1; generation <= 5; generation++) {
        const struct sandbox_start start = { .kernel = 2,
                                             .generation = generation,
                                             .spec_fd = -1,
                                             .argv = argv,
                                             .env = env,
                                             .cwd = "/",
                                             .connection_fd = connection,
                                             .log_fd = null };
        struct sandbox_kernel k;
        struct pollfd p;
        int status, r;

        box_ok(sandbox_start_begin(b.sandbox, &start, &k, &box_err));
        p = (struct pollfd){ .fd = k.status_fd, .events = POLLIN };
        (void)poll(&p, 1, 20); /* exec'ed by then, or stopped */
        box_ok(sandbox_kill_kernel(b.sandbox, 2, generation, &box_err));
        do {
            assert_int_equal(poll(&p, 1, BOX_TIMEOUT_MS), 1);
            r = sandbox_start_end(b.sandbox, 2, generation, &k, &box_err);
        } while (r == -EAGAIN);
        box_ok(r);
        assert_int_equal(waitpid(k.pid, &status, 0), k.pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        close(k.pidfd);
        close(k.run_fd);
        while ((r = sandbox_remove_kernel(b.sandbox, 2, generation, &box_err)) == -EBUSY)
            poll(NULL, 0, 1);
        box_ok(r);
    }
    box_ok(sandbox_kill_kernel(b.sandbox, 1, 1, &box_err));
    box_finish(&b, &run, output, sizeof output);
    close(connection);
    close(null);
    box_close(&b);
}

/* A launcher that was killed leaves its groups; the next one of the slot clears them. */
static void a_new_host_sweeps_what_the_last_one_left(void **state)
{
    (void)state;
    struct sandbox_config config = box_config();
    struct box b;
    int ready[2];
    char c;

    BOX_NEEDS_ROOT();
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct launch_limits limits;
        struct sandbox *s;

        sandbox_limits_default(&limits);
        if (sandbox_host_open(&config, &b.host, &box_err) < 0 ||
            sandbox_create(b.host, 0, &limits, NULL, &s, &box_err) < 0 ||
            write(ready[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    box_open(&b, NULL);
    assert_int_equal(box_shell(&b, "true", output, sizeof output), 0);
    box_close(&b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_runs_inside_and_its_exit_is_seen),
        cmocka_unit_test(a_program_that_is_missing_is_told_at_once),
        cmocka_unit_test(a_kernel_with_sockets_finds_them_in_their_order),
        cmocka_unit_test(a_foreign_kernel_has_a_run_folder_that_can_be_sealed),
        cmocka_unit_test(a_kernelspec_folder_is_mounted_once_and_named_in_the_arguments),
        cmocka_unit_test(counters_of_the_hosts_network_are_shut),
        cmocka_unit_test(settings_hold_still),
        cmocka_unit_test(kill_ends_what_ignores_every_signal_and_daemonised),
        cmocka_unit_test(a_session_whose_init_died_refuses_kernels),
        cmocka_unit_test(fifty_sessions_leave_nothing_behind),
        cmocka_unit_test(a_limit_that_is_missing_is_refused),
        cmocka_unit_test(an_init_that_is_killed_is_seen_by_the_death_of_a_kernel),
        cmocka_unit_test(an_init_that_dies_is_told_and_leaves_nothing),
        cmocka_unit_test(without_an_outer_namespace_the_sandbox_is_the_same),
        cmocka_unit_test(running_out_of_descriptors_leaves_nothing),
        cmocka_unit_test(a_start_that_the_session_stops_can_be_given_up),
        cmocka_unit_test(a_new_host_sweeps_what_the_last_one_left),
    };

    box_maybe_init(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
