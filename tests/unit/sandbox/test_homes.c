/* A home is as large as its limits say, on disk too, and goes with its session. */
#include "disktest.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "homes.h"
#include "in_child.h"

static char output[65536];
static const struct sandbox_files on_disk = { .home = SANDBOX_HOME_DISK };

static struct launch_limits small(void)
{
    struct launch_limits l;

    sandbox_limits_default(&l);
    l.memory_bytes = 128 << 20;
    l.home_bytes = 300 << 20; /* more than the memory */
    l.tmp_bytes = 8 << 20;
    l.shm_bytes = 8 << 20;
    l.inodes = 1000;
    return l;
}

static void open_host(struct box *b)
{
    struct sandbox_config config = box_config();

    memset(b, 0, sizeof *b);
    box_ok(sandbox_host_open(&config, &b->host, &box_err));
}

static void open_on_disk(struct box *b, const struct launch_limits *l)
{
    box_ok(disk_sandbox(b, l, &on_disk));
}

/* ---- limits ---- */

static void a_full_disk_is_enospc_at_the_size_that_was_promised(void **state)
{
    (void)state;
    struct launch_limits l = small();
    struct launch_status_answer use = { 0 };
    struct box b;
    unsigned size = 0, left = 1, written = 0;

    BOX_NEEDS_ROOT();
    open_host(&b);
    DISK_NEEDED(&b);
    open_on_disk(&b, &l);
    /* More than the session has memory, to the last block, and none of it is lost on the way. */
    box_shell(&b,
              "cat /dev/zero > f; echo $?; df -m . | awk 'NR > 1 { print $2, $4 }'; "
              "stat -c %s f | awk '{ print int($1 / 1048576) }'; rm f; echo again > g && cat g",
              output, sizeof output);
    const char *rest = strstr(output, "No space left on device\n1\n");
    if (rest == NULL ||
        sscanf(rest, "No space left on device\n1\n%u %u\n%u", &size, &left, &written) != 3)
        fail_msg("%s", output);
    assert_true(left <= 1); /* rounded up */
    if (written < 300 || written > 302)
        fail_msg("%u MiB written of 300", written);
    assert_true(size >= 300 && size < 320);
    assert_non_null(strstr(output, "again\n"));
    box_ok(sandbox_status(b.sandbox, 0, &use, &box_err));
    assert_int_equal(use.oom_kills, 0);
    box_close(&b);
    disk_await_no_loops(disk_path);
}

static void files_on_disk_are_limited_in_number(void **state)
{
    (void)state;
    struct launch_limits l = small();
    struct box b;
    unsigned made = 0;

    BOX_NEEDS_ROOT();
    open_host(&b);
    DISK_NEEDED(&b);
    open_on_disk(&b, &l);
    box_shell(&b,
              "i=0; while (: > f$i) 2>/dev/null && [ $i -lt 5000 ]; do i=$((i+1)); done; touch "
              "more; echo $i; rm f*; touch more && echo again",
              output, sizeof output);
    const char *rest = strstr(output, "No space left on device\n");
    if (rest == NULL || sscanf(rest, "No space left on device\n%u\nagain\n", &made) != 1)
        fail_msg("%s", output);
    if (made < 999 || made > 1100) /* tables come in blocks of 16, for each 128 MiB */
        fail_msg("%u files of 1000", made);
    box_close(&b);
}

static void the_sizes_that_are_asked_for_are_those_that_come(void **state)
{
    static const struct {
        uint64_t mib;
        uint32_t inodes;
    } rows[] = {
        { 1, 64 },     { 1, 40000 },    { 7, 64 },       { 127, 32768 },   { 128, 1000 },
        { 129, 1000 }, { 1000, 32768 }, { 1024, 32768 }, { 1024, 200000 }, { 2600, 32768 }
    };
    (void)state;
    struct launch_limits l = small();
    struct box b;

    BOX_NEEDS_ROOT();
    open_host(&b);
    DISK_NEEDED(&b);
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned long long free_kib = 0;
        unsigned inodes = 0;

        l.home_bytes = rows[i].mib << 20;
        l.inodes = rows[i].inodes;
        if (disk_free(disk_fd) < 2 * sandbox_home_size(&l)) {
            print_message("note: no room for a home of %u MiB\n", (unsigned)rows[i].mib);
            continue;
        }
        open_on_disk(&b, &l);
        box_shell(&b, "df --output=avail,iavail . | tail -1", output, sizeof output);
        box_end_sandbox(b.sandbox);
        b.sandbox = NULL;
        if (sscanf(output, "%llu %u", &free_kib, &inodes) != 2)
            fail_msg("%s", output);
        if (free_kib < rows[i].mib * 1024 || free_kib > rows[i].mib * 1024 + 12288)
            fail_msg("%llu KiB for %u MiB with %u inodes", free_kib, (unsigned)rows[i].mib,
                     rows[i].inodes);
        /* 32768 of each 128 MiB, of which ext4 has ten. */
        uint32_t most = ((uint32_t)rows[i].mib / 128 + 1) * 32768 - 11;
        uint32_t least = rows[i].inodes - 1 < most ? rows[i].inodes - 1 : most;
        if (inodes < least || inodes > rows[i].inodes + 1024)
            fail_msg("%u inodes for %u in %u MiB", inodes, rows[i].inodes, (unsigned)rows[i].mib);
    }
    box_close(&b);
}

/* ---- what a session sees ---- */

static void the_mount_table_names_neither_device_nor_path(void **state)
{
    (void)state;
    struct launch_limits l = small();
    struct box b;

    BOX_NEEDS_ROOT();
    open_host(&b);
    DISK_NEEDED(&b);
    open_on_disk(&b, &l);
    box_shell(&b, "cat /proc/self/mountinfo; df /home/user", output, sizeof output);
    assert_null(strstr(output, "loop"));
    assert_null(strstr(output, "holdcell"));
    assert_null(strstr(output, "/var/tmp"));
    const char *home = strstr(output, " / /home/user ");
    assert_non_null(home);
    assert_int_equal(strncmp(home, " / /home/user rw,nosuid,nodev,noatime", 37), 0);
    box_close(&b);
}

static void assert_furnished(struct box *b)
{
    box_shell(b,
              "stat -c '%U %G %a %n' . outputs; ls -A; echo x > outputs/x && cat outputs/x; "
              "mkdir d && mv outputs o && echo moved",
              output, sizeof output);
    assert_string_equal(output, "user user 700 .\nuser user 755 outputs\noutputs\nx\nmoved\n");
}

static void a_home_begins_with_outputs_and_nothing_else(void **state)
{
    (void)state;
    struct launch_limits l = small();
    struct box b;

    BOX_NEEDS_ROOT();
    open_host(&b);
    l.home_bytes = 16 << 20;
    box_ok(disk_sandbox(&b, &l, NULL));
    assert_furnished(&b);
    box_end_sandbox(b.sandbox);
    b.sandbox = NULL;
    DISK_NEEDED(&b);
    open_on_disk(&b, &l);
    assert_furnished(&b);
    box_close(&b);
}

/* ---- ends ---- */

static void a_delete_gives_the_space_back_and_waits_for_no_write(void **state)
{
    (void)state;
    struct launch_limits l = small();
    struct box b;

    BOX_NEEDS_ROOT();
    open_host(&b);
    DISK_NEEDED(&b);
    uint64_t before = disk_free(disk_fd);
    open_on_disk(&b, &l);
    assert_int_equal(disk_loops(disk_path), 1);
    /* Taken at once: what others write cannot make it fail. */
    assert_true(disk_free(disk_fd) + (250 << 20) < before);
    box_shell(&b, "head -c 60M /dev/zero > f; echo $?", output, sizeof output);
    assert_string_equal(output, "0\n");
    box_end_sandbox(b.sandbox);
    b.sandbox = NULL;
    disk_await_no_loops(disk_path);
    for (int left = BOX_TIMEOUT_MS; left > 0 && disk_free(disk_fd) + (100 << 20) < before; left--)
        poll(NULL, 0, 1);
    assert_true(disk_free(disk_fd) + (100 << 20) >= before);
    box_close(&b);
}

static unsigned open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

/* The zeros that ext4 writes around what was only promised are holes in the image (loopdev.h). */
static void a_home_keeps_the_blocks_that_it_was_given(void **state)
{
    struct launch_limits l = small();
    struct box b;
    char name[32], path[96], text[16] = "";

    (void)state;
    BOX_NEEDS_ROOT();
    open_host(&b);
    DISK_NEEDED(&b);
    open_on_disk(&b, &l);
    assert_int_equal(disk_find_loops(disk_path, name), 1);
    snprintf(path, sizeof path, "/sys/fs/ext4/%s/extent_max_zeroout_kb", name);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    assert_string_equal(text, "0\n");
    box_close(&b);
    disk_await_no_loops(disk_path);
}

static void two_hundred_homes_leave_no_device_and_no_descriptor(void **state)
{
    (void)state;
    struct launch_limits l = small();
    struct box b;
    unsigned fds = 0;

    BOX_NEEDS_ROOT();
    open_host(&b);
    DISK_NEEDED(&b);
    l.home_bytes = 8 << 20;
    for (int i = 0; i < 200; i++) {
        open_on_disk(&b, &l);
        box_end_sandbox(b.sandbox);
        b.sandbox = NULL;
        if (i == 0)
            fds = open_descriptors();
    }
    assert_int_equal(open_descriptors(), fds);
    disk_await_no_loops(disk_path);
    box_close(&b);
}

/* As a launcher that is killed: nobody is there to clear anything up. */
static void a_launcher_that_is_killed_leaves_no_device(void **state)
{
    (void)state;
    struct sandbox_config config = box_config();
    const struct launch_limits l = small();
    struct box b;
    int ready[2];
    char c = 0;

    BOX_NEEDS_ROOT();
    open_host(&b);
    DISK_NEEDED(&b);
    box_close(&b);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        for (unsigned i = 0; i < 3; i++) {
            struct sandbox *s;

            if ((i == 0 && (sandbox_host_open(&config, &b.host, &box_err) < 0 ||
                            sandbox_host_disk(b.host, disk_fd, &l, &box_err) < 0)) ||
                sandbox_create(b.host, i, &l, &on_disk, &s, &box_err) < 0)
                _exit(1);
        }
        if (write(ready[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    assert_int_equal(disk_loops(disk_path), 3);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    disk_await_no_loops(disk_path);
    open_host(&b); /* sweeps the groups */
    box_close(&b);
}

/* ---- a host that lacks something ---- */

static void memory_is_no_disk(void **state)
{
    (void)state;
    const struct launch_limits l = small();
    struct box b;

    BOX_NEEDS_ROOT();
    open_host(&b);
    int fd = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        box_close(&b);
        print_message("skipped: there is no /dev/shm\n");
        skip();
    }
    assert_int_equal(sandbox_host_disk(b.host, fd, &l, &box_err), -ENOTSUP);
    assert_non_null(strstr(box_err.msg, "in memory"));
    close(fd);
    box_close(&b);
}

static void a_home_that_finds_no_room_leaves_nothing(void **state)
{
    (void)state;
    struct launch_limits l = small();
    struct box b;

    BOX_NEEDS_ROOT();
    open_host(&b);
    DISK_NEEDED(&b);
    uint64_t before = disk_free(disk_fd);
    l.home_bytes = before + (UINT64_C(1) << 30);
    if (l.home_bytes > UINT64_C(1) << 40) {
        box_close(&b);
        print_message("skipped: the disk has more room than a file of a test should have\n");
        skip();
    }
    assert_int_equal(disk_sandbox(&b, &l, &on_disk), -ENOSPC);
    assert_int_equal(disk_loops(disk_path), 0);
    l.home_bytes = 8 << 20;
    open_on_disk(&b, &l); /* the index is free */
    box_close(&b);
}

/* A container's /dev: what was there when it was made, and no device that the kernel adds. */
static void with_a_static_dev(void *arg)
{
    struct homes *h = arg;
    struct launch_limits l = small();
    struct err e = { 0 };
    int fd = -1, root = -1;

    EXPECT(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    EXPECT(mount("none", "/dev", "tmpfs", 0, NULL) == 0);
    EXPECT(homes_make(h, &l, SANDBOX_HOME_DISK, 0, 0, &fd, &root, &e) == -ENODEV);
    EXPECT(mknod("/dev/loop-control", S_IFCHR | 0600, makedev(10, 237)) == 0);
    EXPECT(homes_make(h, &l, SANDBOX_HOME_DISK, 0, 0, &fd, &root, &e) == -ENODEV);
    EXPECT(strstr(e.msg, "open /dev/loop") != NULL);
    EXPECT(homes_make(h, &l, SANDBOX_HOME_MEMORY, 0, 0, &fd, &root, &e) == 0);
}

static void without_a_free_loop_device_it_is_that_which_is_missing(void **state)
{
    (void)state;
    struct homes h = HOMES_NONE;
    struct launch_limits l = small();
    struct box b;

    BOX_NEEDS_ROOT();
    open_host(&b);
    DISK_NEEDED(&b);
    box_close(&b);
    box_ok(homes_open(&h, disk_fd, &l, &box_err));
    assert_child_passes(with_a_static_dev, &h);
    homes_close(&h);
    disk_await_no_loops(disk_path);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_is_enospc_at_the_size_that_was_promised),
        cmocka_unit_test(files_on_disk_are_limited_in_number),
        cmocka_unit_test(the_sizes_that_are_asked_for_are_those_that_come),
        cmocka_unit_test(the_mount_table_names_neither_device_nor_path),
        cmocka_unit_test(a_home_begins_with_outputs_and_nothing_else),
        cmocka_unit_test(a_delete_gives_the_space_back_and_waits_for_no_write),
        cmocka_unit_test(a_home_keeps_the_blocks_that_it_was_given),
        cmocka_unit_test(two_hundred_homes_leave_no_device_and_no_descriptor),
        cmocka_unit_test(a_launcher_that_is_killed_leaves_no_device),
        cmocka_unit_test(memory_is_no_disk),
        cmocka_unit_test(a_home_that_finds_no_room_leaves_nothing),
        cmocka_unit_test(without_a_free_loop_device_it_is_that_which_is_missing),
    };

    box_maybe_init(argc, argv);
    return cmocka_run_group_tests(tests, disk_setup, disk_teardown);
}
