/* A principal's workspace outlives its sessions, has a quota, and is nobody else's. */
#include "disktest.h"

#include <sys/file.h>
#include <sys/stat.h>

static char output[65536];
static struct box box;

enum { QUOTA_MIB = 24 };

static int open_workspaces(void **state)
{
    struct sandbox_config config = box_config();

    if (disk_setup(state) != 0 || geteuid() != 0)
        return 0;
    box_ok(sandbox_host_open(&config, &box.host, &box_err));
    return 0;
}

static int close_workspaces(void **state)
{
    DIR *d;
    struct dirent *entry;

    if (geteuid() == 0)
        box_close(&box);
    disk_await_no_loops(disk_path);
    d = opendir(disk_path);
    while (d != NULL && (entry = readdir(d)) != NULL)
        (void)unlinkat(disk_fd, entry->d_name, 0);
    if (d != NULL)
        closedir(d);
    return disk_teardown(state);
}

#define WORKSPACES_NEEDED()                                                          \
    do {                                                                             \
        BOX_NEEDS_ROOT();                                                            \
        if (sandbox_host_workspaces(box.host, disk_path, 0, &box_err) < 0) {         \
            print_message("skipped: no workspaces on this host: %s\n", box_err.msg); \
            skip();                                                                  \
        }                                                                            \
    } while (0)

static void begin(struct box *b, unsigned index, const char *name)
{
    const struct sandbox_files files = { .home = SANDBOX_HOME_MEMORY,
                                         .workspace = name,
                                         .workspace_bytes = QUOTA_MIB << 20 };
    struct launch_limits l;

    sandbox_limits_default(&l);
    l.memory_bytes = 256 << 20;
    l.home_bytes = l.tmp_bytes = l.shm_bytes = 16 << 20;
    memset(b, 0, sizeof *b);
    b->host = box.host;
    box_ok(sandbox_create(box.host, index, &l, &files, &b->sandbox, &box_err));
}

static void end(struct box *b)
{
    box_end_sandbox(b->sandbox);
    b->sandbox = NULL;
}

static void shell(struct box *b, const char *script)
{
    int status = box_shell(b, script, output, sizeof output);

    if (status != 0)
        fail_msg("%s: status %d: %s", script, status, output);
}

static void it_outlives_the_session_and_has_one_owner(void **state)
{
    (void)state;
    struct box b;

    WORKSPACES_NEEDED();
    begin(&b, 1, "ann");
    shell(&b, "cd work && stat -c '%U %a' . && ls -A && echo contents > f && mkdir d && stat -c "
              "'%U %G' f d");
    assert_string_equal(output, "user 755\nuser user\nuser user\n");
    end(&b);
    begin(&b, 5, "ann"); /* other host ids */
    shell(&b,
          "cd work && cat f && stat -c '%U %G' f d && rmdir d && echo more >> f && chmod 600 f");
    assert_string_equal(output, "contents\nuser user\nuser user\n");
    shell(&b, "grep ' /home/user/work ' /proc/self/mountinfo; ! grep -e loop -e holdcell "
              "/proc/self/mountinfo");
    assert_non_null(strstr(output, " rw,nosuid,nodev"));
    end(&b);
}

static void a_new_host_finds_what_the_last_one_left(void **state)
{
    (void)state;
    struct sandbox_config config = box_config();
    struct box b;

    WORKSPACES_NEEDED();
    begin(&b, 1, "bob");
    shell(&b, "echo kept > work/f");
    end(&b);
    box_close(&box);
    disk_await_no_loops(disk_path);
    box_ok(sandbox_host_open(&config, &box.host, &box_err));
    WORKSPACES_NEEDED();
    begin(&b, 2, "bob");
    shell(&b, "cat work/f");
    assert_string_equal(output, "kept\n");
    end(&b);
}

static void nobody_else_sees_it(void **state)
{
    (void)state;
    struct box a, b, none;

    WORKSPACES_NEEDED();
    begin(&a, 1, "ann");
    begin(&b, 2, "eve");
    begin(&none, 3, NULL);
    shell(&a, "echo hers > work/only-hers");
    shell(&b, "ls -A work; echo mine > work/f");
    assert_string_equal(output, "");
    shell(&none, "test ! -e work");
    shell(&a, "cat work/only-hers; rm work/only-hers");
    assert_string_equal(output, "hers\n");
    end(&a);
    end(&b);
    end(&none);
}

static void two_sessions_of_one_principal_share_it(void **state)
{
    (void)state;
    struct box a, b;

    WORKSPACES_NEEDED();
    begin(&a, 1, "ann");
    begin(&b, 2, "ann");
    shell(&a, "echo from-a > work/shared");
    shell(&b, "cat work/shared && stat -c %U work/shared && echo from-b > work/shared");
    assert_string_equal(output, "from-a\nuser\n");
    end(&a);
    shell(&b, "cat work/shared && rm work/shared");
    assert_string_equal(output, "from-b\n");
    end(&b);
}

static void the_quota_is_enospc(void **state)
{
    (void)state;
    struct box b;
    unsigned mib = 0;

    WORKSPACES_NEEDED();
    begin(&b, 1, "carl");
    shell(&b, "cat /dev/zero > work/big; stat -c %s work/big | awk '{ print int($1 / 1048576) }'; "
              "echo home > still-works && cat still-works; rm work/big; echo ok > work/f");
    const char *rest = strstr(output, "No space left on device\n");
    if (rest == NULL || sscanf(rest, "No space left on device\n%u\nhome\n", &mib) != 1)
        fail_msg("%s", output);
    if (mib < QUOTA_MIB - 1 || mib > QUOTA_MIB + 1)
        fail_msg("%u MiB of %d", mib, QUOTA_MIB);
    end(&b);
}

static void another_server_cannot_have_it_at_the_same_time(void **state)
{
    (void)state;
    const struct sandbox_files files = { .workspace = "dora", .workspace_bytes = QUOTA_MIB << 20 };
    struct launch_limits l;
    struct sandbox *s = NULL;
    struct box b;

    WORKSPACES_NEEDED();
    begin(&b, 1, "dora");
    end(&b);
    int fd = openat(disk_fd, "dora.img", O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    /* It is mounted still, for the next session: the lock is taken. */
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    close(fd);
    fd = openat(disk_fd, "emil.img", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    sandbox_limits_default(&l);
    l.home_bytes = 16 << 20;
    const struct sandbox_files locked = { .workspace = "emil",
                                          .workspace_bytes = files.workspace_bytes };
    assert_int_equal(sandbox_create(box.host, 2, &l, &locked, &s, &box_err), -HC_EFULL);
    assert_non_null(strstr(box_err.msg, "in use by another server"));
    close(fd);
}

static void what_is_no_directory_of_root_is_refused(void **state)
{
    (void)state;
    char path[128];

    WORKSPACES_NEEDED();
    snprintf(path, sizeof path, "%s/open", disk_path);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(sandbox_host_workspaces(box.host, path, 0, &box_err), -EPERM);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(sandbox_host_workspaces(box.host, "/etc/passwd", 0, &box_err), -ENOTDIR);
}

static void without_room_it_is_not_made(void **state)
{
    (void)state;
    const struct sandbox_files files = { .workspace = "fay", .workspace_bytes = QUOTA_MIB << 20 };
    struct launch_limits l;
    struct sandbox *s = NULL;
    struct stat st;

    WORKSPACES_NEEDED();
    sandbox_limits_default(&l);
    l.home_bytes = 16 << 20;
    box_ok(sandbox_host_workspaces(box.host, disk_path, disk_free(disk_fd) - (10 << 20), &box_err));
    assert_int_equal(sandbox_create(box.host, 2, &l, &files, &s, &box_err), -HC_EFULL);
    assert_non_null(strstr(box_err.msg, "no room for the workspace"));
    assert_int_equal(fstatat(disk_fd, "fay.img", &st, 0), -1);
    box_ok(sandbox_host_workspaces(box.host, disk_path, 0, &box_err));
}

/* Whatever a session leaves there, a server never walks over it; it only mounts it again. */
static void hostile_content_changes_nothing(void **state)
{
    (void)state;
    struct box b;

    WORKSPACES_NEEDED();
    begin(&b, 1, "mallory");
    shell(&b, "cd work && ln -s /etc/passwd outputs && ln -s / lost+found && mkfifo f && "
              "mkdir -p a/b/c && chmod 000 a && ln -s loop loop");
    end(&b);
    begin(&b, 2, "mallory");
    shell(&b, "cd work && readlink lost+found outputs && test -p f && stat -c %a a");
    assert_string_equal(output, "/\n/etc/passwd\n0\n");
    end(&b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_outlives_the_session_and_has_one_owner),
        cmocka_unit_test(a_new_host_finds_what_the_last_one_left),
        cmocka_unit_test(nobody_else_sees_it),
        cmocka_unit_test(two_sessions_of_one_principal_share_it),
        cmocka_unit_test(the_quota_is_enospc),
        cmocka_unit_test(another_server_cannot_have_it_at_the_same_time),
        cmocka_unit_test(what_is_no_directory_of_root_is_refused),
        cmocka_unit_test(without_room_it_is_not_made),
        cmocka_unit_test(hostile_content_changes_nothing),
    };

    box_maybe_init(argc, argv);
    return cmocka_run_group_tests(tests, open_workspaces, close_workspaces);
}
