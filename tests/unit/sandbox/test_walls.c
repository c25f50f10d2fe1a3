/* What a process of a session sees and may do: nothing of the host, and no way to more. */
#include "boxtest.h"

#include <sys/stat.h>

static char output[262144];

/* One sandbox for all tests of this file: they only look. */
static struct box box;

static int open_box(void **state)
{
    (void)state;
    if (geteuid() == 0)
        box_open(&box, NULL);
    return 0;
}

static int close_box(void **state)
{
    (void)state;
    if (geteuid() == 0)
        box_close(&box);
    return 0;
}

static void shell(const char *script)
{
    int status = box_shell(&box, script, output, sizeof output);

    if (status != 0)
        fail_msg("'%s' ended with %#x: %s", script, status, output);
}

static void assert_not_there(const char *text)
{
    if (strstr(output, text) != NULL)
        fail_msg("'%s' is in: %s", text, output);
}

static void the_mount_table_names_no_host_path_and_no_host_id(void **state)
{
    (void)state;
    char id[32];
    uint32_t base = box_config().id_base;

    BOX_NEEDS_ROOT();
    shell("cat /proc/self/mountinfo /proc/self/mounts /proc/self/mountstats");
    assert_non_null(strstr(output, " / / "));
    assert_not_there("/dev/vd");
    assert_not_there("/dev/sd");
    assert_not_there("/run/holdcell");
    assert_not_there("dist-packages");
    assert_not_there("uid=");
    assert_not_there("gid=");
    for (uint32_t n = 0x100; n < 0x100 + 40; n++) {
        snprintf(id, sizeof id, "%u", base + n);
        assert_not_there(id);
    }
    /* Every lower directory is a descriptor of a process that the session cannot see. */
    for (const char *p = output; (p = strstr(p, "lowerdir")) != NULL; p++)
        assert_non_null(strstr(p, "/proc/self/fd/"));
    shell("awk '{print $5, $6}' /proc/self/mountinfo");
    /* Writable are only these. */
    static const char *const writable[] = { "/dev/shm rw,",    "/tmp rw,",  "/home/user rw,",
                                            "/run/kernel rw,", "/proc rw,", "/dev/pts rw," };
    unsigned found = 0, all = 0;
    for (const char *p = output; (p = strstr(p, " rw,")) != NULL; p++)
        all++;
    for (unsigned i = 0; i < sizeof writable / sizeof *writable; i++)
        found += strstr(output, writable[i]) != NULL;
    assert_int_equal(found, sizeof writable / sizeof *writable);
    assert_int_equal(all, found);
}

static void the_identity_is_that_of_nobody_on_the_host(void **state)
{
    (void)state;
    struct box_run run;
    char *const argv[] = { BOX_TEXT("sleep"), BOX_TEXT("1000"), NULL };
    char path[64], text[4096], want[128];
    uint32_t id = box_config().id_base + 0x100 + 17; /* user of session 0 */

    BOX_NEEDS_ROOT();
    shell("exec cat /proc/self/status");
    assert_non_null(strstr(output, "Uid:\t1000\t1000\t1000\t1000\n"));
    assert_non_null(strstr(output, "Gid:\t1000\t1000\t1000\t1000\n"));
    assert_non_null(strstr(output, "CapPrm:\t0000000000000000\n"));
    assert_non_null(strstr(output, "CapEff:\t0000000000000000\n"));
    assert_non_null(strstr(output, "CapBnd:\t0000000000000000\n"));
    assert_non_null(strstr(output, "CapAmb:\t0000000000000000\n"));
    assert_non_null(strstr(output, "NoNewPrivs:\t1\n"));
    assert_non_null(strstr(output, "Seccomp:\t2\n"));
    assert_non_null(strstr(output, "PPid:\t0\n"));

    box_ok(box_start(&box, argv, &run));
    snprintf(path, sizeof path, "/proc/%d/status", (int)run.kernel.pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    snprintf(want, sizeof want, "Uid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\n", id, id, id, id, id,
             id, id, id);
    assert_non_null(strstr(text, want));
    kill(run.kernel.pid, SIGKILL);
    box_finish(&box, &run, output, sizeof output);
}

static void files_of_the_host_are_not_there(void **state)
{
    (void)state;
    static const char *const absent[] = {
        "/etc/shadow",
        "/root",
        "/boot",
        "/sys",
        "/usr/local",
        "/usr/src",
        "/var/log",
        "/mnt",
        "/srv",
        "/run/holdcell",
        "/run/systemd",
        "/dev/mem",
        "/dev/kmsg",
        "/dev/kvm",
        "/dev/fuse",
        "/dev/net",
        "/dev/loop-control",
        "/dev/console",
        "/dev/tty",
        "/proc/1",
        "/proc/1/environ",
        HC_SOURCE_DIR,
    };
    char script[256];

    BOX_NEEDS_ROOT();
    for (unsigned i = 0; i < sizeof absent / sizeof *absent; i++) {
        snprintf(script, sizeof script, "test ! -e %s && test ! -L %s", absent[i], absent[i]);
        shell(script);
    }
    shell("ls -A /home /run /var /home/user /tmp /dev/shm");
    assert_string_equal(
        output, "/dev/shm:\n\n/home:\nuser\n\n/home/user:\noutputs\n\n/run:\nkernel\n\n/tmp:\n"
                "\n/var:\nempty\ntmp\n");
}

static void nothing_but_the_own_folders_can_be_written(void **state)
{
    (void)state;
    static const char *const places[] = {
        "/x",
        "/usr/x",
        "/usr/bin/x",
        "/etc/x",
        "/etc/passwd",
        "/dev/x",
        "/run/x",
        "/run/kernel/x",
        "/var/x",
        "/home/x",
        "/kernelspecs/x",
        "/usr/lib/python3/x",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/ns_last_pid",
        "/proc/sys/user/max_user_namespaces",
        "/proc/meminfo",
        "/proc/sysrq-trigger",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/kernel/core_pattern",
    };
    char script[256];

    BOX_NEEDS_ROOT();
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(script, sizeof script, "! (echo x > %s) 2>/dev/null", places[i]);
        shell(script);
    }
    shell(
        "for d in /tmp /home/user /dev/shm /run/kernel/1-$GEN /var/tmp; do test -d $d || continue; "
        "echo x > $d/x && rm $d/x || exit 1; done; echo x > /dev/null");
}

static void the_host_cannot_be_measured(void **state)
{
    (void)state;
    static const char *const empty[] = { "kallsyms",
                                         "kcore",
                                         "keys",
                                         "timer_list",
                                         "modules",
                                         "vmallocinfo",
                                         "locks",
                                         "partitions",
                                         "diskstats",
                                         "swaps",
                                         "cmdline",
                                         "version",
                                         "kmsg",
                                         "interrupts",
                                         "zoneinfo",
                                         "iomem",
                                         "sys/kernel/random/boot_id" };
    char script[256];

    BOX_NEEDS_ROOT();
    for (unsigned i = 0; i < sizeof empty / sizeof *empty; i++) {
        snprintf(script, sizeof script, "test ! -e /proc/%s || test -z \"$(cat /proc/%s)\"",
                 empty[i], empty[i]);
        shell(script);
    }
    shell(
        "ls -A /proc/bus /proc/fs /proc/irq /proc/driver | grep -v -e : -e '^$' | wc -l; ls /proc "
        "| grep -v -x -e '[0-9]*' -e filesystems -e mounts -e net -e self -e sys -e thread-self -e "
        "cpuinfo -e loadavg -e meminfo -e stat -e uptime -e vmstat | while read n; do test -f "
        "/proc/$n && cat /proc/$n; test -d /proc/$n && ls -A /proc/$n; done | wc -c");
    assert_string_equal(output, "0\n0\n");
    shell("head -1 /proc/meminfo");
    assert_string_equal(output, "MemTotal:         2097152 kB\n");
    shell("cat /proc/loadavg /proc/uptime");
    assert_string_equal(output, "0.00 0.00 0.00 1/1 1\n1.00 1.00\n");
    shell("grep -c ^cpu[0-9] /proc/stat; grep -c ^processor /proc/cpuinfo; grep -c ^flags "
          "/proc/cpuinfo; hostname; cat /etc/hostname; cat /proc/sys/kernel/domainname");
    assert_string_equal(output, "1\n1\n1\ncell\ncell\n\n");
    /* what moves with the host's load, or tells hosts apart */
    shell("grep -c -i -e mhz -e microcode -e bogomips -e ^apicid /proc/cpuinfo; grep '^siblings' "
          "/proc/cpuinfo");
    assert_string_equal(output, "0\nsiblings\t: 1\n");
    shell("cut -d: -f1 /etc/passwd; cat /etc/resolv.conf");
    assert_string_equal(output, "root\nuser\nnobody\n");
    shell("ls /proc | grep -c '^[0-9]'; cat /proc/self/cgroup");
    assert_not_there("holdcell");
    shell("cat /proc/net/dev | wc -l"); /* two lines of head, and lo */
    assert_string_equal(output, "3\n");
}

static void programs_find_what_they_need(void **state)
{
    (void)state;
    BOX_NEEDS_ROOT();
    shell("awk 'BEGIN { print 6 * 7 }'"); /* through /etc/alternatives */
    assert_string_equal(output, "42\n");
    shell("id; date +%Z; getent hosts localhost | grep -c localhost; ls -l /dev/fd/0 >/dev/null && "
          "readlink /dev/stdout "
          "| cut -c1-5; stty -a </dev/ptmx >/dev/null && echo pty");
    assert_string_equal(output, "uid=1000(user) gid=1000(user) groups=1000(user)\nUTC\n"
                                "1\n/proc\npty\n");
    shell("test -s /etc/ssl/certs/ca-certificates.crt || test ! -e /usr/share/ca-certificates; "
          "sh -c 'head -c 8 /dev/urandom; head -c 8 /dev/zero' | wc -c");
    assert_string_equal(output, "16\n");
}

static const char python_probe[] =
    "import ctypes, os, socket, errno\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "def refused(name, r):\n"
    "    e = ctypes.get_errno()\n"
    "    print(name, 'refused' if r < 0 and e in (errno.EPERM, errno.EACCES, errno.ENOSPC, "
    "errno.ENOSYS, errno.EROFS) else ('LEAK', r, e))\n"
    "for name, flag in (('user', 0x10000000), ('mnt', 0x20000), ('net', 0x40000000), ('pid', "
    "0x20000000)):\n"
    "    refused('unshare ' + name, libc.unshare(flag))\n"
    "refused('mount', libc.mount(b'x', b'/tmp', b'tmpfs', 0, None))\n"
    "refused('remount', libc.mount(None, b'/', None, 32 | 4096, None))\n"
    "refused('remount proc', libc.mount(None, b'/proc/sys', None, 32 | 4096, None))\n"
    "refused('umount', libc.umount2(b'/proc/kcore', 2))\n"
    "refused('chroot', libc.chroot(b'/tmp'))\n"
    "refused('setuid', libc.setuid(0))\n"
    "refused('setns', libc.setns(os.open('/proc/self/ns/mnt', 0), 0))\n"
    "refused('mknod', libc.mknod(b'/tmp/d', 0o020666, 0x103))\n"
    "refused('sethostname', libc.sethostname(b'x', 1))\n"
    "refused('kill init', libc.kill(1, 9))\n"
    "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(1)\n"
    "socket.create_connection(s.getsockname()); print('lo works')\n"
    "try: socket.create_connection(('192.0.2.1', 80), 5); print('LEAK')\n"
    "except OSError as x: print('net', errno.errorcode[x.errno])\n";

static void no_way_to_more_rights_is_open(void **state)
{
    (void)state;
    char *const argv[] = { BOX_TEXT("/usr/bin/python3"), BOX_TEXT("-c"), BOX_TEXT(python_probe),
                           NULL };
    struct box_run run;

    BOX_NEEDS_ROOT();
    if (access("/usr/bin/python3", X_OK) < 0) {
        print_message("skipped: needs /usr/bin/python3\n");
        skip();
    }
    box_ok(box_start(&box, argv, &run));
    assert_int_equal(box_finish(&box, &run, output, sizeof output), 0);
    assert_not_there("LEAK");
    assert_non_null(strstr(output, "lo works\n"));
    assert_non_null(strstr(output, "net ENETUNREACH\n"));
    assert_non_null(strstr(output, "kill init refused\n"));
}

/* flock on one inode is a signal between sessions: runtimes, /etc and devices must be the session's own. */
static void locks_of_two_sessions_do_not_meet(void **state)
{
    (void)state;
    static const char hold[] = "exec 8</usr/bin/env 7</etc/passwd 6</dev/null 5</usr/lib/python3; "
                               "flock -x 8 && flock -x 7 && flock -x 6 && flock -x 5 && echo held; "
                               "sleep 1000";
    char *const argv[] = { BOX_TEXT("sh"), BOX_TEXT("-c"), BOX_TEXT(hold), NULL };
    struct launch_limits limits;
    struct box other = { 0 };
    struct box_run run;
    char held[5];

    BOX_NEEDS_ROOT();
    sandbox_limits_default(&limits);
    other.host = box.host;
    box_ok(sandbox_create(box.host, 1, &limits, NULL, &other.sandbox, &box_err));
    box_ok(box_start(&other, argv, &run));
    assert_int_equal(read(run.log_fd, held, 5), 5);
    assert_memory_equal(held, "held\n", 5);
    shell("exec 8</usr/bin/env 7</etc/passwd 6</dev/null 5</usr/lib/python3; flock -nx 8 && flock "
          "-nx 7 && flock -nx 6 && flock -nx 5");
    kill(run.kernel.pid, SIGKILL);
    close(run.log_fd);
    int status;
    assert_int_equal(waitpid(run.kernel.pid, &status, 0), run.kernel.pid);
    close(run.kernel.pidfd);
    close(run.kernel.run_fd);
    box_end_sandbox(other.sandbox);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mount_table_names_no_host_path_and_no_host_id),
        cmocka_unit_test(the_identity_is_that_of_nobody_on_the_host),
        cmocka_unit_test(files_of_the_host_are_not_there),
        cmocka_unit_test(nothing_but_the_own_folders_can_be_written),
        cmocka_unit_test(the_host_cannot_be_measured),
        cmocka_unit_test(programs_find_what_they_need),
        cmocka_unit_test(no_way_to_more_rights_is_open),
        cmocka_unit_test(locks_of_two_sessions_do_not_meet),
    };

    box_maybe_init(argc, argv);
    return cmocka_run_group_tests(tests, open_box, close_box);
}
