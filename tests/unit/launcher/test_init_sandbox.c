/* holdcell-init where it belongs: pid 1 of a real sandbox, with a real kernel beside it. */
#include "init_box.h"

#include <glob.h>
#include <sys/un.h>

#include "../sandbox/startkernel.h"
#include "hostids.h"
#include "sandbox.h"

enum { SLOT_FIRST = 950, SLOT_LAST = 969 };

static struct sandbox_host *host;
static struct sandbox *sandbox;
static unsigned slot;

/* A slot that no other test program on this machine has now: held by a socket's name. */
static unsigned free_slot(void)
{
    for (unsigned number = SLOT_FIRST; number <= SLOT_LAST; number++) {
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "holdcell-test-slot-%u", number);
        if (bind(fd, (struct sockaddr *)&a, sizeof a) == 0)
            return number; /* fd stays open */
        close(fd);
    }
    fail_msg("no free slot");
    return 0;
}

static int open_sandbox(void **state)
{
    slot = free_slot();

    const uint32_t base = hostids_base(HOSTIDS_SLOTS - 51 - (slot - SLOT_FIRST));
    const struct sandbox_config config = {
        .slot = slot,
        .id_base = base,
        .gateway_uid = hostids_gateway(base),
        .init_path = HC_INIT_PATH,
        .runtime_dir = "/usr/lib/python3",
    };
    struct launch_limits limits;
    struct box *b = xcalloc(1, sizeof *b);
    struct err e = { 0 };

    sandbox_limits_default(&limits);
    if (sandbox_host_open(&config, &host, &e) < 0 ||
        sandbox_create(host, 0, &limits, NULL, &sandbox, &e) < 0)
        fail_msg("%s", e.msg);
    b->fd = sandbox_take_init_fd(sandbox);
    b->got_fd = -1;
    buf_init(&b->packet, MSG_MAX);
    *state = b;
    return 0;
}

static int close_sandbox(void **state)
{
    pid_t pid = sandbox_init_pid(sandbox);
    struct err e = { 0 };
    int status, r;

    closep(&((struct box *)*state)->fd); /* which ends init, and with it all of the sandbox */
    ((struct box *)*state)->fd = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int left = BOX_DEADLINE_MS; (r = sandbox_free(sandbox, &e)) == -EBUSY && left > 0; left--)
        poll(NULL, 0, 1);
    if (r < 0)
        fail_msg("%s", e.msg);
    host = sandbox_host_close(host);
    box_close(*state);
    return 0;
}

static void expect_output(struct box *b, const char *script, const char *expected)
{
    char text[8192];
    struct init_exited end = box_run(b, script, text, sizeof text);

    if (strcmp(text, expected) != 0 || end.exit_code != 0)
        fail_msg("exit %d, signal %d: %s", end.exit_code, end.signo, text);
}

static void a_command_sees_the_sandbox_and_not_the_host(void **state)
{
    expect_output(*state,
                  "id -u; pwd; ls /home; ls /run; hostname; echo $$ > /dev/null; [ -w /tmp ]",
                  "1000\n/home/user\nuser\nkernel\ncell\n");
}

static void files_go_in_and_out(void **state)
{
    struct box *b = *state;
    struct init_aside ask = { VIEW_STR("outputs/plot.png"), 0644 };
    struct init_aside_answer aside;
    char name[INIT_PATH_MAX + 1] = "";

    assert_int_equal(box_ask(b, INIT_ASIDE, &ask, NULL, &aside), 0);
    memcpy(name, aside.name.p, aside.name.n);
    assert_int_equal(write(b->got_fd, "png", 3), 3);
    struct init_rename move = { view_cstr(name), VIEW_STR("outputs/plot.png"), 1 };
    assert_int_equal(box_ask(b, INIT_RENAME, &move, NULL, NULL), 0);
    expect_output(b, "cat outputs/plot.png; ls -a outputs | wc -l", "png3\n");
    assert_int_equal(box_open_file(b, "/etc/passwd", INIT_OPEN_READ), 0);
    assert_int_equal(box_open_file(b, "/etc/passwd", INIT_OPEN_WRITE), -EROFS);
    assert_int_equal(box_remove(b, "outputs", 1), 0);
}

static void a_command_can_do_what_python_does(void **state)
{
    expect_output(
        *state,
        "python3 -Ec '\n"
        "import os, pty, socket, sqlite3, ssl, subprocess, sys, threading, time\n"
        "import multiprocessing as mp\n"
        "for method in (\"fork\", \"spawn\", \"forkserver\"):\n"
        "    with mp.get_context(method).Pool(2) as p: print(p.map(abs, [-1, 2]))\n"
        "q = mp.Queue(); q.put(5); print(q.get())\n"
        "from multiprocessing import shared_memory as sm\n"
        "s = sm.SharedMemory(create=True, size=4096); s.buf[0] = 7; print(s.buf[0])\n"
        "s.close(); s.unlink()\n"
        "t = threading.Thread(target=lambda: print(\"thread\")); t.start(); t.join()\n"
        "print(subprocess.run([\"echo\", \"sub\"], capture_output=True, text=True).stdout)\n"
        "d = sqlite3.connect(\"/tmp/db\"); d.execute(\"create table t(x)\"); d.commit()\n"
        "l = socket.create_server((\"127.0.0.1\", 0)); c = "
        "socket.create_connection(l.getsockname())\n"
        "c.sendall(b\"tcp\"); print(l.accept()[0].recv(9))\n"
        "ssl.create_default_context()\n"
        "pid, fd = pty.fork()\n"
        "if pid == 0: os.execvp(\"sh\", [\"sh\", \"-c\", \"test -t 0 && echo tty\"])\n"
        "t = b\"\"\n"
        "while not t.endswith(b\"\\n\"): t += os.read(fd, 9)\n" /* a slow tty hands out parts */
        "print(t); os.waitpid(pid, 0)\n"
        "' 2>&1",
        "[1, 2]\n[1, 2]\n[1, 2]\n5\n7\nthread\nsub\n\nb'tcp'\nb'tty\\r\\n'\n");
}

static void commands_of_a_session_see_and_signal_each_other(void **state)
{
    struct box *b = *state;
    uint32_t first, second;
    char text[64];
    int first_fd = -1, second_fd = -1;

    assert_int_equal(box_spawn(b, "echo x; exec sleep 1000", &first_fd, &first), 0);
    assert_int_equal(read(first_fd, text, 2), 2);
    assert_int_equal(box_spawn(b,
                               "for p in /proc/[0-9]*; do grep -aqs ^sleep $p/cmdline &&"
                               " kill ${p#/proc/} && echo done; done",
                               &second_fd, &second),
                     0);
    assert_int_equal(read(second_fd, text, sizeof text), 5);
    assert_int_equal(read(first_fd, text, 1), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct init_exited end = box_exited(b);

        assert_true(end.pid == first || end.pid == second);
        assert_int_equal(end.signo, end.pid == first ? SIGTERM : 0);
    }
    close(first_fd);
    close(second_fd);
}

/* A kernel is in a Landlock layer beside that of the commands: signals pass. */
static void a_command_can_signal_a_kernel(void **state)
{
    struct box *b = *state;
    char *const argv[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                           (char *)(uintptr_t) "trap 'echo got; exit' USR1; echo $$; while :; do"
                                               " sleep 0.1; done",
                           NULL };
    char *const env[] = { (char *)(uintptr_t) "PATH=/usr/bin:/bin", NULL };
    int log[2], connection = memfd_create("connection", MFD_CLOEXEC);
    char text[64] = "", script[128];
    struct sandbox_kernel kernel = { .pidfd = -1, .run_fd = -1 };
    struct err e = { 0 };
    int status;

    assert_int_equal(pipe2(log, O_CLOEXEC), 0);
    assert_int_equal(write(connection, "{}", 2), 2);
    const struct sandbox_start start = { .kernel = 1,
                                         .generation = 1,
                                         .spec_fd = -1,
                                         .argv = argv,
                                         .env = env,
                                         .cwd = "/home/user",
                                         .connection_fd = connection,
                                         .log_fd = log[1] };
    if (startkernel(sandbox, &start, &kernel, &e) != 0)
        fail_msg("%s", e.msg);
    close(log[1]);
    close(connection);
    assert_true(read(log[0], text, sizeof text - 1) > 0);
    snprintf(script, sizeof script, "kill -USR1 %d", atoi(text));
    expect_output(b, script, "");
    assert_int_equal(waitpid(kernel.pid, &status, 0), kernel.pid);
    assert_int_equal(status, 0);
    memset(text, 0, sizeof text);
    assert_int_equal(read(log[0], text, sizeof text - 1), 4);
    assert_string_equal(text, "got\n");
    close(log[0]);
    close(kernel.pidfd);
    closep(&kernel.run_fd);
}

/* Groups p<n> below init's own, as the host sees them. */
static unsigned count_leaves(void)
{
    const char *root =
        access("/sys/fs/cgroup/unified", F_OK) == 0 ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup";
    static const char *const places[] = { "", "/*", "/*/*" }; /* of what was delegated to us */
    unsigned n = 0;

    for (unsigned i = 0; i < 3; i++) {
        char pattern[128];
        glob_t found;

        snprintf(pattern, sizeof pattern, "%s%s/holdcell-%u/s/*/init/p[0-9]*", root, places[i],
                 slot);
        if (glob(pattern, 0, NULL, &found) == 0)
            n += (unsigned)found.gl_pathc;
        globfree(&found);
    }
    return n;
}

static void expect_no_leaves(void)
{
    for (int left = BOX_DEADLINE_MS; count_leaves() > 0 && left > 0; left--)
        poll(NULL, 0, 1);
    assert_int_equal(count_leaves(), 0);
}

static int kill_group(struct box *b, uint32_t pid, uint32_t signo)
{
    struct init_kill k = { pid, signo };

    return box_ask(b, INIT_KILL, &k, NULL, NULL);
}

static void each_command_has_a_cgroup_of_its_own_that_goes_with_it(void **state)
{
    char text[2][4096];

    expect_no_leaves();
    for (unsigned i = 0; i < 2; i++) {
        struct init_exited end =
            box_run(*state, "grep ^0:: /proc/self/cgroup; cat /proc/self/oom_score_adj", text[i],
                    sizeof text[i]);
        assert_int_equal(end.exit_code, 0);
        assert_memory_equal(text[i], "0::/p", 5); /* nothing of the host's path */
        assert_string_equal(strchr(text[i], '\n'), "\n500\n");
    }
    assert_string_not_equal(text[0], text[1]);
    expect_no_leaves();
}

static void sigkill_ends_also_what_has_left_the_process_group(void **state)
{
    struct box *b = *state;
    uint32_t victim, other;
    char text[8] = "";
    int fd = -1, other_fd = -1;

    assert_int_equal(box_spawn(b, "echo x; exec sleep 1000", &other_fd, &other), 0);
    assert_int_equal(read(other_fd, text, 2), 2);
    assert_int_equal(
        box_spawn(b,
                  "trap '' TERM; setsid sh -c 'trap \"\" TERM; setsid sleep 1000 & echo y;"
                  " sleep 1000' & wait",
                  &fd, &victim),
        0);
    assert_int_equal(read(fd, text, 2), 2);
    assert_int_equal(count_leaves(), 2);
    assert_int_equal(kill_group(b, victim, SIGKILL), 0);
    assert_int_equal(box_exited(b).signo, SIGKILL);
    assert_int_equal(read(fd, text, 1), 0); /* the end of file: nobody holds it */
    close(fd);
    /* One leaf, not the others. */
    assert_int_equal(kill_group(b, other, 0), 0);
    assert_int_equal(kill_group(b, other, SIGKILL), 0);
    assert_int_equal(box_exited(b).pid, other);
    close(other_fd);
    expect_no_leaves();
}

static void a_daemon_can_be_killed_by_the_number_of_its_command(void **state)
{
    struct box *b = *state;
    uint32_t pid;
    char text[8];
    int fd = -1;

    assert_int_equal(box_spawn(b, "setsid sleep 1000 & echo z", &fd, &pid), 0);
    assert_int_equal(read(fd, text, 2), 2);
    assert_int_equal(box_exited(b).exit_code, 0);
    assert_int_equal(count_leaves(), 1);
    for (int r = 0; r != -ESRCH;) { /* the group is empty as soon as its child has left it */
        r = kill_group(b, pid, SIGTERM);
        assert_true(r == 0 || r == -ESRCH);
        if (count_leaves() == 0) /* the signal came before the setsid */
            break;
        poll(NULL, 0, 1);
    }
    (void)kill_group(b, pid, SIGKILL);
    assert_int_equal(read(fd, text, 1), 0);
    close(fd);
    expect_no_leaves();
}

static void a_command_whose_exec_fails_leaves_no_group(void **state)
{
    struct box *b = *state;
    static const char argv[] = "/nonexistent", env[] = "A=b";
    struct init_spawn body = { { (const uint8_t *)argv, sizeof argv },
                               { (const uint8_t *)env, sizeof env },
                               { NULL, 0 } };
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int fds[3] = { null_fd, null_fd, null_fd };

    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(box_ask(b, INIT_SPAWN, &body, fds, NULL), -ENOENT);
    close(null_fd);
    expect_no_leaves();
}

static long field_of_init(const char *file)
{
    char path[64];
    long value = -1;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)sandbox_init_pid(sandbox), file);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld", &value), 1);
    fclose(f);
    return value;
}

/* Whoever could take a score below init's would have init killed in its place. */
static void init_is_never_the_first_to_go_when_memory_ends(void **state)
{
    for (unsigned i = 0; i < 3; i++)
        expect_output(*state,
                      "cat /proc/self/oom_score_adj; for score in 0 399; do"
                      " (echo $score > /proc/self/oom_score_adj) 2> /dev/null && echo $score;"
                      " echo $score | dd of=/proc/self/oom_score_adj conv=notrunc 2> /dev/null &&"
                      " echo $score; done; cat /proc/self/oom_score_adj",
                      "500\n500\n");
    assert_int_equal(field_of_init("oom_score_adj"), 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_command_has_a_cgroup_of_its_own_that_goes_with_it),
        cmocka_unit_test(sigkill_ends_also_what_has_left_the_process_group),
        cmocka_unit_test(a_daemon_can_be_killed_by_the_number_of_its_command),
        cmocka_unit_test(a_command_whose_exec_fails_leaves_no_group),
        cmocka_unit_test(init_is_never_the_first_to_go_when_memory_ends),
        cmocka_unit_test(a_command_sees_the_sandbox_and_not_the_host),
        cmocka_unit_test(files_go_in_and_out),
        cmocka_unit_test(a_command_can_do_what_python_does),
        cmocka_unit_test(commands_of_a_session_see_and_signal_each_other),
        cmocka_unit_test(a_command_can_signal_a_kernel),
    };

    if (geteuid() != 0) {
        print_message("skipped: needs root\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, open_sandbox, close_sandbox);
}
