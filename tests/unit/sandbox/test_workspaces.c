/* A principal's workspace outlives its sessions, has a quota, and is nobody else's. */
#include "disktest.h"

#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "workspaces.h"

/* Of the next file without a name: what happens just before, and the error that comes instead of it. */
static void (*before_unnamed)(void);
static int unnamed_error;

/* In place of libc's. */
int openat(int dir, const char *path, int flags, ...)
{
    va_list more;

    va_start(more, flags);
    mode_t mode = va_arg(more, mode_t); /* as libc does: whether there is one or not */
    va_end(more);
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        if (before_unnamed != NULL)
            before_unnamed();
        if (unnamed_error != 0) {
            errno = unnamed_error;
            return -1;
        }
    }
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

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

/* The children that sync and unmount, as the launcher reaps them. */
static void reap_others(void)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0) {
        if (box.host != NULL)
            sandbox_host_reaped(box.host, pid);
    }
}

static int exists(const char *name)
{
    struct stat st;

    return fstatat(disk_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static unsigned count_files(void)
{
    DIR *d = opendir(disk_path);
    unsigned n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
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

static void a_trial_says_what_the_start_would_and_makes_nothing(void **state)
{
    (void)state;
    char path[128];

    WORKSPACES_NEEDED();
    unsigned files = count_files();
    box_ok(workspaces_try(disk_path, &box_err));
    snprintf(path, sizeof path, "%s/later", disk_path);
    box_ok(workspaces_try(path, &box_err));
    strcat(path, "//");
    box_ok(workspaces_try(path, &box_err));
    snprintf(path, sizeof path, "%s/no/later", disk_path);
    assert_int_equal(workspaces_try(path, &box_err), -ENOENT);
    assert_int_equal(workspaces_try("/etc/passwd", &box_err), -ENOTDIR);
    assert_int_equal(count_files(), files);
    snprintf(path, sizeof path, "%s/open", disk_path);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(workspaces_try(path, &box_err), -EPERM);
    assert_int_equal(rmdir(path), 0);
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

/* ---- images ---- */

static struct workspaces open_own(void)
{
    struct workspaces w = WORKSPACES_NONE;

    box_ok(workspaces_open(&w, disk_path, 0, &box_err));
    return w;
}

static void close_own(struct workspaces *w)
{
    workspaces_close(w);
    reap_others();
}

enum { SMALL = 1 << 20 };

static int take(struct workspaces *w, const char *name, struct workspace **ret, int *ret_fd)
{
    return workspaces_take(w, name, SMALL, 4711, ret, ret_fd, &box_err);
}

static int other_fd = -1;

static void another_server_makes_gus(void)
{
    other_fd = openat(disk_fd, "gus.img", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(other_fd >= 0);
    assert_int_equal(write(other_fd, "theirs", 6), 6);
    assert_int_equal(flock(other_fd, LOCK_EX), 0);
}

static void who_comes_second_with_an_image_leaves_that_of_the_first(void **state)
{
    (void)state;
    struct workspace *one = NULL;
    char text[16] = "";
    int fd = -1;

    WORKSPACES_NEEDED();
    for (int named = 0; named < 2; named++) {
        struct workspaces w = open_own();
        unsigned files = count_files();

        before_unnamed = another_server_makes_gus;
        unnamed_error = named ? EOPNOTSUPP : 0;
        assert_int_equal(take(&w, "gus", &one, &fd), -HC_EFULL);
        before_unnamed = NULL;
        unnamed_error = 0;
        assert_non_null(strstr(box_err.msg, "in use by another server"));
        assert_int_equal(pread(other_fd, text, sizeof text, 0), 6);
        assert_string_equal(text, "theirs");
        assert_int_equal(count_files(), files + 1); /* and nothing else was left */
        closep(&other_fd);
        assert_int_equal(unlinkat(disk_fd, "gus.img", 0), 0);
        close_own(&w);
    }
}

static void without_files_without_names_it_is_made_all_the_same(void **state)
{
    (void)state;
    struct workspace *one = NULL;
    int fd = -1;

    WORKSPACES_NEEDED();
    unnamed_error = EOPNOTSUPP;
    struct workspaces w = open_own();
    unsigned files = count_files();
    box_ok(take(&w, "hal", &one, &fd));
    unnamed_error = 0;
    assert_int_equal(count_files(), files + 1);
    assert_true(exists("hal.img"));
    close(fd);
    workspaces_leave(&w, one);
    close_own(&w);
}

static void what_a_dead_server_left_unfinished_goes_and_what_a_living_one_makes_stays(void **state)
{
    (void)state;

    WORKSPACES_NEEDED();
    int dead = openat(disk_fd, ".dead.img.new", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int lives = openat(disk_fd, ".1234.img.new", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(lives, LOCK_EX), 0);
    close(dead);
    close(openat(disk_fd, "other.new", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    close(openat(disk_fd, ".other", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    struct workspaces w = open_own();
    assert_false(exists(".dead.img.new"));
    assert_true(exists(".1234.img.new"));
    assert_true(exists("other.new") && exists(".other"));
    close(lives);
    close_own(&w);
    assert_int_equal(unlinkat(disk_fd, ".1234.img.new", 0), 0);
}

static void an_image_that_was_removed_is_made_anew_for_the_next_session(void **state)
{
    (void)state;
    struct box a, b;

    WORKSPACES_NEEDED();
    begin(&a, 1, "ida");
    shell(&a, "echo old > work/f");
    assert_int_equal(unlinkat(disk_fd, "ida.img", 0), 0);
    begin(&b, 2, "ida"); /* who has it shares it on */
    shell(&b, "cat work/f");
    assert_string_equal(output, "old\n");
    end(&a);
    end(&b);
    begin(&a, 1, "ida");
    shell(&a, "ls -A work; echo new > work/f");
    assert_string_equal(output, "");
    assert_true(exists("ida.img"));
    end(&a);
    begin(&a, 2, "ida");
    shell(&a, "cat work/f");
    assert_string_equal(output, "new\n");
    end(&a);
}

static void an_image_that_was_made_larger_can_be_filled(void **state)
{
    (void)state;
    struct sandbox_config config = box_config();
    char command[400];
    struct box b;

    WORKSPACES_NEEDED();
    begin(&b, 1, "jan");
    end(&b);
    /* As docs/OPERATING.md says; its lock keeps hands off while it is mounted. */
    snprintf(
        command, sizeof command,
        "PATH=$PATH:/usr/sbin:/sbin; cd %s && flock -n jan.img sh -c 'truncate -s 64M jan.img; "
        "e2fsck -fp jan.img; resize2fs jan.img' > /dev/null 2>&1",
        disk_path);
    assert_int_not_equal(system(command), 0);
    box_close(&box);
    disk_await_no_loops(disk_path);
    assert_int_equal(system(command), 0);
    box_ok(sandbox_host_open(&config, &box.host, &box_err));
    WORKSPACES_NEEDED();
    begin(&b, 1, "jan"); /* with the old quota */
    shell(&b, "head -c 40M /dev/zero > work/large && stat -c %s work/large && rm work/large; "
              "ls -A work");
    assert_string_equal(output, "41943040\n"); /* and nothing that e2fsck made */
    end(&b);
}

/* ---- what waits for the disk ---- */

static unsigned reap_own(struct workspaces *w, pid_t *last)
{
    unsigned n = 0;
    pid_t pid;

    (void)w;
    while ((pid = waitpid(-1, NULL, __WALL)) > 0) {
        *last = pid;
        n++;
    }
    return n;
}

static void one_child_at_a_time_writes_a_workspace_to_the_disk(void **state)
{
    (void)state;
    struct workspace *one = NULL;
    pid_t pid = 0;
    int fd = -1;

    WORKSPACES_NEEDED();
    reap_others();
    struct workspaces w = open_own();
    for (int i = 0; i < 5; i++) {
        box_ok(take(&w, "kim", &one, &fd));
        closep(&fd);
        workspaces_leave(&w, one);
    }
    assert_int_equal(reap_own(&w, &pid), 1);
    workspaces_reaped(&w, pid); /* what came since then is written by another one */
    assert_int_equal(reap_own(&w, &pid), 1);
    workspaces_reaped(&w, pid);
    assert_int_equal(reap_own(&w, &pid), 0);
    close_own(&w);
}

static void what_is_still_being_unmounted_is_not_said_to_be_another_servers(void **state)
{
    (void)state;
    struct workspace *one = NULL;
    int busy = -1, fd = -1;
    char path[128];
    pid_t pid;

    WORKSPACES_NEEDED();
    reap_others();
    struct workspaces w = open_own();
    box_ok(take(&w, "lea", &one, &busy)); /* as by a process of a session that ends */
    workspaces_leave(&w, one);
    /* Another image has the name: the first one goes. And back again. */
    assert_int_equal(renameat(disk_fd, "lea.img", disk_fd, "lea.old"), 0);
    box_ok(take(&w, "lea", &one, &fd));
    closep(&fd);
    workspaces_leave(&w, one);
    assert_int_equal(renameat(disk_fd, "lea.old", disk_fd, "lea.img"), 0);
    assert_int_equal(take(&w, "lea", &one, &fd), -HC_EFULL);
    assert_non_null(strstr(box_err.msg, "is being unmounted, try again"));
    while ((pid = waitpid(-1, NULL, __WALL)) > 0)
        workspaces_reaped(&w, pid);
    assert_null(w.going);
    assert_int_equal(take(&w, "lea", &one, &fd), -HC_EFULL); /* nobody of ours has it now */
    assert_non_null(strstr(box_err.msg, "in use by another server"));
    closep(&busy);
    snprintf(path, sizeof path, "%s/lea", disk_path);
    disk_await_no_loops(path);
    box_ok(take(&w, "lea", &one, &fd));
    closep(&fd);
    workspaces_leave(&w, one);
    close_own(&w);
}

static void another_directory_is_taken_when_only_idle_ones_are_left_of_the_old_one(void **state)
{
    (void)state;
    struct workspace *one = NULL;
    char path[128];
    int fd = -1;

    WORKSPACES_NEEDED();
    snprintf(path, sizeof path, "%s/moved", disk_path);
    struct workspaces w = open_own();
    box_ok(take(&w, "max", &one, &fd));
    closep(&fd);
    assert_int_equal(workspaces_open(&w, path, 0, &box_err), -EBUSY);
    box_ok(workspaces_open(&w, disk_path, 0, &box_err));
    workspaces_leave(&w, one);
    box_ok(workspaces_open(&w, disk_path, 0, &box_err));
    assert_non_null(w.first); /* of the same directory they stay */
    box_ok(workspaces_open(&w, path, 0, &box_err));
    assert_null(w.first);
    box_ok(take(&w, "max", &one, &fd));
    closep(&fd);
    assert_true(exists("moved/max.img"));
    workspaces_leave(&w, one);
    close_own(&w);
    disk_await_no_loops(path);
    assert_int_equal(unlinkat(disk_fd, "moved/max.img", 0), 0);
    assert_int_equal(unlinkat(disk_fd, "moved", AT_REMOVEDIR), 0);
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
        cmocka_unit_test(a_trial_says_what_the_start_would_and_makes_nothing),
        cmocka_unit_test(without_room_it_is_not_made),
        cmocka_unit_test(hostile_content_changes_nothing),
        cmocka_unit_test(who_comes_second_with_an_image_leaves_that_of_the_first),
        cmocka_unit_test(without_files_without_names_it_is_made_all_the_same),
        cmocka_unit_test(what_a_dead_server_left_unfinished_goes_and_what_a_living_one_makes_stays),
        cmocka_unit_test(an_image_that_was_removed_is_made_anew_for_the_next_session),
        cmocka_unit_test(an_image_that_was_made_larger_can_be_filled),
        cmocka_unit_test(one_child_at_a_time_writes_a_workspace_to_the_disk),
        cmocka_unit_test(what_is_still_being_unmounted_is_not_said_to_be_another_servers),
        cmocka_unit_test(another_directory_is_taken_when_only_idle_ones_are_left_of_the_old_one),
    };

    box_maybe_init(argc, argv);
    return cmocka_run_group_tests(tests, open_workspaces, close_workspaces);
}
