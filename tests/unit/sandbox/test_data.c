/* The operator's directories: seen, read, and nothing else; no way from session to session. */
#include "disktest.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static char output[65536];
static struct box box;
static uint32_t one, two, enter, list, shut;

static void put(const char *path, const char *text, mode_t mode)
{
    char full[128];

    snprintf(full, sizeof full, "%s/%s", disk_path, path);
    int fd = open(full, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static int open_data(void **state)
{
    struct sandbox_config config = box_config();
    char all[512];

    if (disk_setup(state) != 0 || geteuid() != 0)
        return 0;
    mkdirat(disk_fd, "one", 0755);
    mkdirat(disk_fd, "one/sub", 0755);
    mkdirat(disk_fd, "two", 0755);
    put("one/sub/file", "contents\n", 0644);
    put("one/secret", "root's\n", 0600);
    put("one/program", "#!/bin/sh\necho ran\n", 0755);
    put("two/file", "of two\n", 0644);
    mkdirat(disk_fd, "enter", 0711);
    mkdirat(disk_fd, "list", 0754);
    mkdirat(disk_fd, "shut", 0770);
    put("enter/file", "entered\n", 0644);
    put("list/file", "", 0644);
    put("shut/file", "", 0644);
    snprintf(all, sizeof all, "one=%s/one:two=%s/two:enter=%s/enter:list=%s/list:shut=%s/shut",
             disk_path, disk_path, disk_path, disk_path, disk_path);
    box_ok(sandbox_host_open(&config, &box.host, &box_err));
    box_ok(sandbox_host_data(box.host, all, &box_err));
    box_ok(sandbox_data_bit(box.host, VIEW_STR("one"), &one));
    box_ok(sandbox_data_bit(box.host, VIEW_STR("two"), &two));
    box_ok(sandbox_data_bit(box.host, VIEW_STR("enter"), &enter));
    box_ok(sandbox_data_bit(box.host, VIEW_STR("list"), &list));
    box_ok(sandbox_data_bit(box.host, VIEW_STR("shut"), &shut));
    return 0;
}

static int close_data(void **state)
{
    static const char *const names[] = { "one/sub/file", "one/secret", "one/program", "two/file",
                                         "enter/file",   "list/file",  "shut/file",   "enter",
                                         "list",         "shut",       "one/sub",     "one",
                                         "two" };

    if (geteuid() == 0)
        box_close(&box);
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        (void)unlinkat(disk_fd, names[i], i < 7 ? 0 : AT_REMOVEDIR);
    return disk_teardown(state);
}

/* Another one with these, in place of the last. */
static void renew(uint32_t data)
{
    const struct sandbox_files files = { .home = SANDBOX_HOME_MEMORY, .data = data };
    struct launch_limits l;

    sandbox_limits_default(&l);
    if (box.sandbox != NULL)
        box_end_sandbox(box.sandbox);
    box.sandbox = NULL;
    box.generation = 0;
    box_ok(sandbox_create(box.host, 0, &l, &files, &box.sandbox, &box_err));
}

static void shell(const char *script)
{
    int status = box_shell(&box, script, output, sizeof output);

    if (status != 0)
        fail_msg("%s: status %d: %s", script, status, output);
}

static void a_session_sees_those_that_it_was_given(void **state)
{
    (void)state;
    BOX_NEEDS_ROOT();
    renew(one | two);
    shell("cd /data && ls && cat one/sub/file two/file");
    assert_string_equal(output, "one\ntwo\ncontents\nof two\n");
    renew(two);
    shell("ls /data && test ! -e /data/one && cat /data/two/file");
    assert_string_equal(output, "two\nof two\n");
    renew(0);
    shell("test ! -e /data");
}

static void it_reads_and_does_nothing_else(void **state)
{
    (void)state;
    BOX_NEEDS_ROOT();
    renew(one);
    shell(
        "cd /data/one; ! cat secret && ! ./program && sh program; for c in 'touch x' 'rm sub/file' "
        "'chmod 777 program' 'ln sub/file l' 'mv sub s' 'mknod n p'; do $c && echo $c works; "
        "done; (: > sub/file) && echo written; echo end");
    assert_non_null(strstr(output, "Permission denied"));
    assert_non_null(strstr(output, "\nran\n"));
    assert_non_null(strstr(output, "Read-only file system"));
    assert_null(strstr(output, "works"));
    assert_null(strstr(output, "written"));
    assert_null(strstr(output, "root's"));
    shell("grep ' /data/one ' /proc/self/mountinfo");
    assert_non_null(strstr(output, " ro,nosuid,nodev,noexec,relatime - overlay data ro,"));
    assert_null(strstr(output, disk_path));
    shell("! grep -e holdcell -e /var/tmp /proc/self/mountinfo");
}

static void locks_on_its_files_do_not_meet(void **state)
{
    (void)state;
    static const char hold[] = "exec 8</data/one/sub/file 7</data/one; flock -x 8 && flock -x 7 && "
                               "echo held; sleep 1000";
    const struct sandbox_files files = { .home = SANDBOX_HOME_MEMORY, .data = 1 };
    char *const argv[] = { BOX_TEXT("sh"), BOX_TEXT("-c"), BOX_TEXT(hold), NULL };
    struct launch_limits limits;
    struct box other = { 0 };
    struct box_run run;
    char held[5], device[64];
    int status;

    BOX_NEEDS_ROOT();
    renew(one);
    sandbox_limits_default(&limits);
    other.host = box.host;
    box_ok(sandbox_create(box.host, 1, &limits, &files, &other.sandbox, &box_err));
    box_ok(box_start(&other, argv, &run));
    assert_int_equal(read(run.log_fd, held, 5), 5);
    assert_memory_equal(held, "held\n", 5);
    shell("exec 8</data/one/sub/file 7</data/one; flock -nx 8 && flock -nx 7");
    box_ok(sandbox_kill_kernel(other.sandbox, 1, 1, &box_err));
    box_finish(&other, &run, output, sizeof output);
    /* A watch is on an inode: theirs are of two devices, and none is the host's. */
    shell("stat -c %d /data/one/sub/file");
    snprintf(device, sizeof device, "%.60s", output);
    status = box_shell(&other, "stat -c %d /data/one/sub/file", output, sizeof output);
    assert_int_equal(status, 0);
    assert_string_not_equal(device, output);
    box_end_sandbox(other.sandbox);
}

static void a_file_that_comes_later_is_seen(void **state)
{
    (void)state;
    BOX_NEEDS_ROOT();
    renew(two);
    put("two/late", "late\n", 0644);
    int status = box_shell(&box, "cat /data/two/late", output, sizeof output);
    assert_int_equal(unlinkat(disk_fd, "two/late", 0), 0);
    assert_int_equal(status, 0);
    assert_string_equal(output, "late\n");
}

static void assert_refused(const char *dirs, int code, const char *word)
{
    uint32_t bit = 0;

    memset(&box_err, 0, sizeof box_err);
    if (sandbox_host_data(box.host, dirs, &box_err) != -code || strstr(box_err.msg, word) == NULL)
        fail_msg("%s: %d %s", dirs, box_err.code, box_err.msg);
    box_ok(sandbox_data_bit(box.host, VIEW_STR("two"), &bit)); /* all is as it was */
}

static void the_rights_of_the_directory_itself_count(void **state)
{
    (void)state;
    BOX_NEEDS_ROOT();
    renew(enter | list | shut);
    shell("cd /data && cat enter/file && ! ls enter 2>&1");
    assert_string_equal(output, "entered\nls: cannot open directory 'enter': Permission denied\n");
    shell("cd /data && echo list/* && ! cat list/file 2>&1");
    assert_string_equal(output, "list/file\ncat: list/file: Permission denied\n");
    shell("cd /data && ! ls shut 2>&1; ! cat shut/file 2>&1");
    assert_string_equal(output, "ls: cannot open directory 'shut': Permission denied\n"
                                "cat: shut/file: Permission denied\n");
    shell("stat -c %A /data/enter /data/list /data/shut | cut -c8-");
    assert_string_equal(output, "--x\nr--\n---\n");
}

/* Free space that others make move would be a word from them. */
static void no_mount_tells_the_space_of_the_hosts_disks(void **state)
{
    const char *const places[] = { "/", "/usr", disk_path };
    unsigned told = 0;

    (void)state;
    BOX_NEEDS_ROOT();
    renew(one | two);
    shell("cut -d' ' -f5 /proc/self/mountinfo | xargs stat -f -c '%b %S %n'");
    for (char *line = strtok(output, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        unsigned long long blocks, size;

        assert_int_equal(sscanf(line, "%llu %llu", &blocks, &size), 2);
        told++;
        for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
            struct statvfs fs;

            assert_int_equal(statvfs(places[i], &fs), 0);
            if (blocks * size == (unsigned long long)fs.f_blocks * fs.f_frsize && blocks != 0)
                fail_msg("as of the host's %s: %s", places[i], line);
        }
    }
    assert_in_range(told, 8, 100);
}

static void what_cannot_be_given_is_named(void **state)
{
    (void)state;
    char nested[256], point[128];

    BOX_NEEDS_ROOT();
    assert_refused("x=/no/such/place", ENOENT, "x: '/no/such/place': No such file");
    assert_refused("x=/etc/passwd", ENOTDIR, "x: '/etc/passwd': Not a directory");
    assert_refused("x=/usr:y", EINVAL, "'y' is not NAME=/PATH");
    assert_refused("x=/usr:x=/usr", EINVAL, "x: the name is there twice");
    assert_refused("x=/", EXDEV, "x: ");
    snprintf(point, sizeof point, "%s/one/sub", disk_path);
    assert_int_equal(mount("below", point, "tmpfs", 0, "size=64k"), 0);
    snprintf(nested, sizeof nested, "a=%s/one", disk_path);
    int r = sandbox_host_data(box.host, nested, &box_err);
    umount2(point, MNT_DETACH);
    assert_int_equal(r, -EXDEV);
    assert_non_null(strstr(box_err.msg, "one/sub is a mount of its own"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_sees_those_that_it_was_given),
        cmocka_unit_test(it_reads_and_does_nothing_else),
        cmocka_unit_test(locks_on_its_files_do_not_meet),
        cmocka_unit_test(a_file_that_comes_later_is_seen),
        cmocka_unit_test(the_rights_of_the_directory_itself_count),
        cmocka_unit_test(no_mount_tells_the_space_of_the_hosts_disks),
        cmocka_unit_test(what_cannot_be_given_is_named),
    };

    box_maybe_init(argc, argv);
    return cmocka_run_group_tests(tests, open_data, close_data);
}
