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

/* argv and environment as blobs; the exit is waited for. */
static int spawn_strings(struct box *b, const char *argv, size_t argv_size, const char *env,
                         size_t env_size, const char *cwd)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int fds[] = { null_fd, null_fd, null_fd };
    struct init_spawn body = { { (const uint8_t *)argv, argv_size },
                               { (const uint8_t *)env, env_size },
                               view_cstr(cwd) };
    struct init_spawned spawned;
    int r = box_ask(b, INIT_SPAWN, &body, fds, &spawned);

    close(null_fd);
    if (r == 0)
        assert_int_equal(box_exited(b).pid, spawned.pid);
    return r;
}

static void a_program_is_looked_for_in_the_path_of_its_own_environment(void **state)
{
    struct box *b = *state;
    char text[256];

    (void)box_run(
        b, "mkdir -p bin; printf '#!/bin/sh\n' > bin/prog; chmod 755 bin/prog; echo > bin/plain",
        text, sizeof text);
    assert_int_equal(spawn_strings(b, "true", 5, "", 0, ""), 0);
    assert_int_equal(spawn_strings(b, "prog", 5, "", 0, ""), -ENOENT);
    assert_int_equal(spawn_strings(b, "prog", 5, "PATH=/nowhere:/home/user/bin", 29, ""), 0);
    assert_int_equal(spawn_strings(b, "prog", 5, "PATH=:/nowhere", 15, "/home/user/bin"), 0);
    assert_int_equal(spawn_strings(b, "plain", 6, "PATH=/home/user/bin:/bin", 25, ""), -EACCES);
    assert_int_equal(spawn_strings(b, "bin/prog", 9, "", 0, ""), 0);
    assert_int_equal(spawn_strings(b, "bin/none", 9, "", 0, ""), -ENOENT);
    assert_int_equal(spawn_strings(b, "", 1, "", 0, ""), -ENOENT);
    assert_int_equal(spawn_strings(b, "/home", 6, "", 0, ""), -EACCES);
    assert_int_equal(spawn_strings(b, "true", 5, "", 0, "/nowhere"), -ENOENT);
    assert_int_equal(spawn_strings(b, "true", 5, "", 0, "bin/prog"), -ENOTDIR);
}

static void the_environment_is_exactly_what_was_asked_for(void **state)
{
    char text[256];

    (void)box_run(*state, "env -u PWD -u OLDPWD -u _ -u SHLVL env", text, sizeof text);
    assert_true(strcmp(text, "PATH=/usr/bin:/bin\nHOME=/home/user\n") == 0 ||
                strcmp(text, "HOME=/home/user\nPATH=/usr/bin:/bin\n") == 0);
}

static void a_directory_is_no_descriptor_for_a_program(void **state)
{
    struct box *b = *state;
    int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int path = open("/", O_PATH | O_CLOEXEC);
    struct init_spawn body = { { (const uint8_t *)"true", 5 }, { NULL, 0 }, { NULL, 0 } };

    assert_int_equal(box_ask(b, INIT_SPAWN, &body, (const int[]){ dir, dir, dir }, NULL), -EINVAL);
    assert_int_equal(box_ask(b, INIT_SPAWN, &body, (const int[]){ 0, 1, path }, NULL), -EINVAL);
    close(dir);
    close(path);
}

static int send_signal(struct box *b, uint32_t pid, uint32_t signo)
{
    struct init_kill k = { pid, signo };

    return box_ask(b, INIT_KILL, &k, NULL, NULL);
}

static void a_signal_reaches_the_whole_group_and_only_groups_of_spawn(void **state)
{
    struct box *b = *state;
    struct init_exited end;
    uint32_t pid;
    char c;
    int fd = -1;

    assert_int_equal(
        box_spawn(b, "trap '' TERM; sleep 1000 & echo x; sleep 1000; sleep 1000", &fd, &pid), 0);
    assert_int_equal(read(fd, &c, 1), 1);
    assert_int_equal(send_signal(b, pid, 0), 0);
    assert_int_equal(send_signal(b, pid, SIGTERM), 0);
    assert_int_equal(send_signal(b, 1, SIGKILL), -ESRCH);
    assert_int_equal(send_signal(b, 0, SIGKILL), -ESRCH);
    assert_int_equal(send_signal(b, UINT32_MAX, SIGKILL), -ESRCH);
    assert_int_equal(send_signal(b, pid + 1, SIGKILL), -ESRCH); /* a member, not the group */
    assert_int_equal(send_signal(b, pid, SIGKILL), 0);
    end = box_exited(b);
    assert_int_equal(end.pid, pid);
    assert_int_equal(end.exit_code, -1);
    assert_int_equal(end.signo, SIGKILL);
    while (read(fd, &c, 1) > 0) /* ends when no process of the group holds the pipe */
        ;
    close(fd);
    for (int r = 0; r != -ESRCH;) { /* as soon as init has reaped the last one */
        r = send_signal(b, pid, 0);
        assert_true(r == 0 || r == -ESRCH);
    }
}

static void a_group_can_be_killed_after_its_leader_ended(void **state)
{
    struct box *b = *state;
    uint32_t pid;
    char c;
    int fd = -1;

    assert_int_equal(box_spawn(b, "sleep 1000 & exit 0", &fd, &pid), 0);
    assert_int_equal(box_exited(b).exit_code, 0);
    assert_int_equal(send_signal(b, pid, SIGKILL), 0);
    assert_int_equal(read(fd, &c, 1), 0);
    close(fd);
}

static void orphans_are_reaped(void **state)
{
    struct box *b = *state;
    char text[256];

    /* 200 orphans end; then none may be left as a zombie. The loop waits for init. */
    struct init_exited end = box_run(
        b,
        "for i in $(seq 200); do (sh -c : &) ; done;"
        "for t in $(seq 200); do grep -ls 'State:.Z' /proc/[0-9]*/status >/dev/null || exit 0;"
        " sleep 0.1; done; exit 1",
        text, sizeof text);
    assert_int_equal(end.exit_code, 0);
}

static void the_session_can_do_nothing_to_init(void **state)
{
    struct box *b = *state;
    char text[1024];

    (void)box_run(b,
                  "exec 2>/dev/null; for s in 9 STOP TERM INT HUP USR1 CONT 0 34; do"
                  " kill -$s 1 && echo signal $s; done;"
                  "for f in environ maps mem auxv stack syscall; do cat /proc/1/$f; done;"
                  "for f in exe root cwd; do readlink /proc/1/$f; done;"
                  "ls /proc/1/fd /proc/1/map_files; echo 500 > /proc/1/oom_score_adj && echo adj",
                  text, sizeof text);
    assert_string_equal(text, "");
    (void)box_run(b, "kill -STOP -1; kill -KILL -1", text, sizeof text);
    (void)box_run(b, "echo alive", text, sizeof text);
    assert_string_equal(text, "alive\n");
}

static void requests_are_answered_while_others_wait(void **state)
{
    enum { MANY = 300 };
    struct box *b = *state;
    struct init_path ask = { VIEW_STR(".") };
    unsigned char answered[MANY] = { 0 };
    uint64_t first = b->next_request + 1;
    unsigned limited = 0, done = 0;

    /* More than init serves at once and more than the socket holds: init stops
     * reading, and we read when it does. */
    for (unsigned sent = 0; sent < MANY || done < MANY;) {
        struct pollfd p = { .fd = b->fd, .events = POLLIN | (sent < MANY ? POLLOUT : 0) };

        assert_int_equal(poll(&p, 1, BOX_DEADLINE_MS), 1);
        if (p.revents & POLLOUT) {
            (void)box_send(b, INIT_STAT, &ask, NULL);
            sent++;
        } else {
            struct msg_head head;

            assert_int_equal(box_receive(b, &head), 1);
            assert_in_range(head.request, first, first + MANY - 1);
            answered[head.request - first]++;
            assert_true(head.verb == INIT_STAT ||
                        (head.verb == INIT_ERROR && head.error == HC_ELIMIT));
            limited += head.verb == INIT_ERROR;
            done++;
        }
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(answered[i], 1);
    assert_true(limited < MANY);
}

static void answers_wait_for_a_controller_that_does_not_read(void **state)
{
    enum { MANY = 40 };
    struct box *b = *state;
    struct init_list ask = { VIEW_STR("pages"), 0 };
    struct init_exited end;
    uint32_t pid = 0;
    unsigned lists = 0, spawned = 0;
    char text[64];
    int out[2];

    (void)box_run(
        b, "mkdir pages; cd pages; for i in $(seq 900); do echo > $i-$(printf %0100d 0); done",
        text, sizeof text);
    for (unsigned i = 0; i < MANY; i++) /* far more than the socket holds */
        (void)box_send(b, INIT_LIST, &ask, NULL);
    struct init_spawn spawn = { { (const uint8_t *)"true", 5 }, { NULL, 0 }, { NULL, 0 } };
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    (void)box_send(b, INIT_SPAWN, &spawn, (const int[]){ out[0], out[1], out[1] });
    close(out[1]);
    close(out[0]);
    for (unsigned i = 0; i < MANY + 2; i++) {
        struct msg_head head;

        assert_int_equal(box_receive(b, &head), 1);
        lists += head.verb == INIT_LIST;
        if (head.verb == INIT_SPAWN) {
            struct init_spawned body;
            assert_int_equal(
                msg_decode(init_answer_spec(INIT_SPAWN), &head, buf_view(&b->packet), &body, NULL),
                0);
            pid = body.pid;
            spawned++;
        } else if (head.verb == INIT_EXITED) {
            assert_int_equal(
                msg_decode(init_event_spec(INIT_EXITED), &head, buf_view(&b->packet), &end, NULL),
                0);
            assert_int_equal(end.pid, pid); /* and never before the number is known */
        }
    }
    assert_int_equal(lists, MANY);
    assert_int_equal(spawned, 1);
}

static void a_worker_killed_by_the_session_costs_one_request(void **state)
{
    struct box *b = *state;
    struct init_path ask = { VIEW_STR(".") };
    unsigned killed = 0;
    uint32_t pid;
    char c;
    int fd = -1;

    assert_int_equal(box_spawn(b, "echo x; while :; do kill -KILL -1; done 2>/dev/null", &fd, &pid),
                     0);
    assert_int_equal(read(fd, &c, 1), 1);
    for (unsigned i = 0; i < 200; i++) {
        int r = box_ask(b, INIT_STAT, &ask, NULL, NULL);

        assert_true(r == 0 || r == -EIO);
        killed += r != 0;
    }
    assert_int_equal(send_signal(b, pid, SIGKILL), 0);
    assert_int_equal(box_exited(b).signo, SIGKILL);
    close(fd);
    print_message("%u of 200 workers were killed\n", killed);
}

/* Beside the group's box, because they end. */

static void a_malformed_message_ends_the_connection_and_not_init(void **state)
{
    (void)state;
    static const char lying_head[64] = { 64, 0, 0, 0, 1 };
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = { { "x", 1 }, { "", 0 }, { lying_head, sizeof lying_head } };

    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct box *b = box_open();
        struct msg_head head;
        uint32_t pid;
        char c;
        int fd = -1;

        assert_int_equal(box_spawn(b, "while sleep 0.01; do (sh -c : &) ; echo x; done", &fd, &pid),
                         0);
        assert_int_equal(send(b->fd, bad[i].bytes, bad[i].n, MSG_NOSIGNAL), (ssize_t)bad[i].n);
        assert_int_equal(box_receive(b, &head), 0);
        for (unsigned k = 0; k < 20; k++) /* the session lives on */
            assert_int_equal(read(fd, &c, 1), 1);
        assert_int_equal(waitpid(b->pid, NULL, WNOHANG), 0);
        box_close(b);
        while (read(fd, &c, 1) > 0)
            ;
        close(fd);
    }
}

static void the_end_of_the_connection_ends_the_sandbox(void **state)
{
    (void)state;
    struct box *b = box_open();
    uint32_t pid;
    char c;
    int fd = -1, status;

    assert_int_equal(box_spawn(b, "trap '' TERM HUP; sleep 1000", &fd, &pid), 0);
    closep(&b->fd);
    b->fd = -1;
    status = box_wait(b);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(read(fd, &c, 1), 0);
    close(fd);
    box_close(b);
}

static void too_many_programs_are_refused_until_one_ends(void **state)
{
    (void)state;
    struct box *b = box_open();
    uint32_t pids[300], extra;
    int fds[300], extra_fd = -1, r;
    unsigned n = 0;

    while (n < 300 && (r = box_spawn(b, "exec sleep 1000", &fds[n], &pids[n])) == 0)
        n++;
    assert_int_equal(r, -HC_ELIMIT);
    assert_int_equal(n, 256);
    assert_int_equal(send_signal(b, pids[7], SIGKILL), 0);
    assert_int_equal(box_exited(b).pid, pids[7]);
    assert_int_equal(box_spawn(b, "exit 4", &extra_fd, &extra), 0);
    assert_int_equal(box_exited(b).exit_code, 4);
    close(extra_fd);
    for (unsigned i = 0; i < n; i++)
        close(fds[i]);
    box_close(b);
}

/* The deadline of half a minute is waited for: only when asked. */
static void a_worker_that_is_stopped_is_given_up(void **state)
{
    (void)state;
    struct box *b;
    struct init_path ask = { VIEW_STR(".") };
    uint32_t pid;
    char c;
    int fd = -1, r = 0;

    if (getenv("HOLDCELL_SLOW_TESTS") == NULL)
        skip();
    b = box_open();
    assert_int_equal(box_spawn(b, "echo x; while :; do kill -STOP -1; done 2>/dev/null", &fd, &pid),
                     0);
    assert_int_equal(read(fd, &c, 1), 1);
    for (unsigned i = 0; i < 2000 && r == 0; i++)
        r = box_ask(b, INIT_STAT, &ask, NULL, NULL);
    assert_int_equal(r, -ETIMEDOUT);
    close(fd);
    box_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spawned_program_runs_and_its_end_is_told),
        cmocka_unit_test(a_spawned_program_is_the_sessions_user_behind_all_walls),
        cmocka_unit_test(a_program_is_looked_for_in_the_path_of_its_own_environment),
        cmocka_unit_test(the_environment_is_exactly_what_was_asked_for),
        cmocka_unit_test(a_directory_is_no_descriptor_for_a_program),
        cmocka_unit_test(a_signal_reaches_the_whole_group_and_only_groups_of_spawn),
        cmocka_unit_test(a_group_can_be_killed_after_its_leader_ended),
        cmocka_unit_test(orphans_are_reaped),
        cmocka_unit_test(the_session_can_do_nothing_to_init),
        cmocka_unit_test(requests_are_answered_while_others_wait),
        cmocka_unit_test(answers_wait_for_a_controller_that_does_not_read),
        cmocka_unit_test(a_worker_killed_by_the_session_costs_one_request),
        cmocka_unit_test(a_malformed_message_ends_the_connection_and_not_init),
        cmocka_unit_test(the_end_of_the_connection_ends_the_sandbox),
        cmocka_unit_test(too_many_programs_are_refused_until_one_ends),
        cmocka_unit_test(a_worker_that_is_stopped_is_given_up),
    };

    if (geteuid() != 0) {
        print_message("skipped: needs root\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, open_box, close_box);
}
