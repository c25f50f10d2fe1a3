/* Files of a session through holdcell-init: what works, and a tree made by an enemy. */
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

/* Runs a script as the session's user, which must succeed. */
static void script(struct box *b, const char *text)
{
    char output[1024];
    struct init_exited end = box_run(b, text, output, sizeof output);

    if (end.exit_code != 0)
        fail_msg("%s: exit %d, signal %d: %s", text, end.exit_code, end.signo, output);
}

static void write_file(struct box *b, const char *path, const char *text)
{
    unsigned flags = INIT_OPEN_WRITE | INIT_OPEN_CREATE | INIT_OPEN_TRUNC;

    assert_int_equal(box_open_file(b, path, flags), 0);
    assert_int_equal(write(b->got_fd, text, strlen(text)), (ssize_t)strlen(text));
    box_drop_fd(b);
}

static void expect_file(struct box *b, const char *path, const char *text)
{
    char got[256];
    ssize_t n;

    assert_int_equal(box_open_file(b, path, INIT_OPEN_READ), 0);
    n = read(b->got_fd, got, sizeof got - 1);
    assert_true(n >= 0);
    got[n] = '\0';
    assert_string_equal(got, text);
    box_drop_fd(b);
}

static void a_file_that_was_written_is_read_again_and_is_the_sessions(void **state)
{
    struct box *b = *state;
    struct init_stat stat;

    write_file(b, "first.txt", "hello");
    expect_file(b, "/home/user/first.txt", "hello");
    script(b, "[ \"$(stat -c '%u %a' first.txt)\" = '1000 644' ] && echo more >> first.txt");
    assert_int_equal(box_path(b, INIT_STAT, "first.txt", &stat), 0);
    assert_true(S_ISREG(stat.mode));
    assert_int_equal(stat.size, strlen("hellomore\n"));
    assert_int_equal(stat.nlink, 1);
    assert_true(stat.mtime_ns > 0 && stat.inode > 0);
}

static void the_ways_to_open_are_kept_apart(void **state)
{
    struct box *b = *state;

    write_file(b, "kept", "text");
    assert_int_equal(box_open_file(b, "kept", INIT_OPEN_WRITE | INIT_OPEN_CREATE | INIT_OPEN_EXCL),
                     -EEXIST);
    assert_int_equal(box_open_file(b, "missing", INIT_OPEN_READ), -ENOENT);
    assert_int_equal(box_open_file(b, "kept", 0), -EINVAL);
    assert_int_equal(box_open_file(b, "kept", INIT_OPEN_READ | INIT_OPEN_TRUNC), -EINVAL);
    assert_int_equal(box_open_file(b, "kept", INIT_OPEN_READ | INIT_OPEN_EXCL), -EINVAL);
    expect_file(b, "kept", "text");
    assert_int_equal(box_open_file(b, "kept", INIT_OPEN_READ | INIT_OPEN_WRITE), 0);
    assert_int_equal(fcntl(b->got_fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDWR);
}

static void what_is_no_regular_file_is_not_opened_and_does_not_block(void **state)
{
    struct box *b = *state;

    script(b, "mkfifo fifo; mkdir dir; ln -s fifo to-fifo; ln -s loop loop");
    assert_int_equal(box_open_file(b, "fifo", INIT_OPEN_READ), -EINVAL);
    assert_int_equal(box_open_file(b, "fifo", INIT_OPEN_WRITE), -ENXIO);
    assert_int_equal(box_open_file(b, "fifo", INIT_OPEN_READ | INIT_OPEN_WRITE), -EINVAL);
    assert_int_equal(box_open_file(b, "to-fifo", INIT_OPEN_READ), -EINVAL);
    assert_int_equal(box_open_file(b, "dir", INIT_OPEN_READ), -EISDIR);
    assert_int_equal(box_open_file(b, "dir", INIT_OPEN_WRITE), -EISDIR);
    assert_int_equal(box_open_file(b, "loop", INIT_OPEN_READ), -ELOOP);
    assert_int_equal(box_open_file(b, "/dev/null", INIT_OPEN_READ), -EINVAL);
    assert_int_equal(box_open_file(b, "kept/below", INIT_OPEN_READ), -ENOTDIR);
}

static void a_file_under_a_lease_does_not_block(void **state)
{
    struct box *b = *state;
    char c;
    uint32_t pid;
    int fd = -1;

    write_file(b, "leased", "x");
    /* F_SETLEASE F_WRLCK (1024, 1), its signal ignored: an open would wait 45 s. */
    assert_int_equal(box_spawn(b,
                               "exec python3 -Ec 'import fcntl,signal,time,sys\n"
                               "signal.signal(signal.SIGIO,signal.SIG_IGN)\n"
                               "f=open(\"/home/user/leased\",\"r+\")\n"
                               "fcntl.fcntl(f,1024,1); print(1,flush=True); time.sleep(1000)'",
                               &fd, &pid),
                     0);
    assert_int_equal(read(fd, &c, 1), 1);
    assert_int_equal(box_open_file(b, "leased", INIT_OPEN_READ), -EAGAIN);
    struct init_kill k = { pid, SIGKILL };
    assert_int_equal(box_ask(b, INIT_KILL, &k, NULL, NULL), 0);
    (void)box_exited(b);
    close(fd);
}

static void links_give_no_more_than_the_session_has(void **state)
{
    struct box *b = *state;

    write_file(b, "inside", "mine");
    script(b,
           "ln -s inside link; ln -s /etc/shadow shadow; ln -s /proc/self/mem mem;"
           "ln -s /proc/self/fd/3 fd; ln -s /proc/1/root/etc/shadow root; ln -s /proc/cpuinfo cpu");
    expect_file(b, "link", "mine");
    assert_int_equal(box_open_file(b, "shadow", INIT_OPEN_READ), -EACCES);
    assert_int_equal(box_open_file(b, "mem", INIT_OPEN_READ), -EACCES);
    assert_true(box_open_file(b, "fd", INIT_OPEN_READ) < 0);
    assert_true(box_open_file(b, "root", INIT_OPEN_READ) < 0);
    assert_int_equal(box_open_file(b, "cpu", INIT_OPEN_READ), -EINVAL);
    assert_int_equal(box_open_file(b, "/etc/hc-new", INIT_OPEN_WRITE | INIT_OPEN_CREATE), -EACCES);
}

static void stat_tells_of_a_link_itself(void **state)
{
    struct box *b = *state;
    struct init_stat stat;

    script(b, "ln -s nowhere dangling");
    assert_int_equal(box_path(b, INIT_STAT, "dangling", &stat), 0);
    assert_true(S_ISLNK(stat.mode));
    assert_int_equal(box_path(b, INIT_STAT, "missing", &stat), -ENOENT);
}

static unsigned count_entries(struct view page, unsigned char *seen, unsigned seen_size)
{
    unsigned count = 0;

    while (page.n > 0) {
        struct init_entry entry;
        char name[INIT_NAME_MAX + 1] = "";
        unsigned number;

        assert_true(page.n >= sizeof entry);
        memcpy(&entry, page.p, sizeof entry);
        assert_in_range(entry.name_len, 1, INIT_NAME_MAX);
        assert_true(page.n >= sizeof entry + entry.name_len);
        memcpy(name, page.p + sizeof entry, entry.name_len);
        page.p += sizeof entry + entry.name_len;
        page.n -= sizeof entry + entry.name_len;
        assert_true(S_ISREG(entry.mode));
        assert_int_equal(sscanf(name, "\n\xff%u-", &number), 1);
        assert_in_range(number, 1, seen_size - 1);
        seen[number]++;
        count++;
    }
    return count;
}

static void a_huge_directory_comes_in_pages_and_every_name_once(void **state)
{
    enum { NAMES = 5000 };
    struct box *b = *state;
    static unsigned char seen[NAMES + 1];
    struct init_listed page = { 0 };
    struct init_list ask = { VIEW_STR("huge"), 0 };
    unsigned pages = 0, count = 0;

    script(b, "mkdir huge && cd huge && python3 -Ec 'import os\n"
              "for i in range(1,5001): open(b\"\\n\\xff%d-\"%i + b\"n\"*100,\"w\").close()'");
    do {
        assert_int_equal(box_ask(b, INIT_LIST, &ask, NULL, &page), 0);
        count += count_entries(page.entries, seen, NAMES + 1);
        ask.cursor = page.cursor;
        pages++;
    } while (page.cursor != 0);
    assert_int_equal(count, NAMES);
    for (unsigned i = 1; i <= NAMES; i++)
        assert_int_equal(seen[i], 1);
    assert_in_range(pages, NAMES * 110 / INIT_PAGE_MAX, 20);
    assert_int_equal(box_remove(b, "huge", 1), 0);
}

static void a_listing_of_what_is_no_directory_is_refused(void **state)
{
    struct box *b = *state;
    struct init_list ask = { VIEW_STR("fifo2"), 0 };
    struct init_listed page;

    script(b, "mkfifo fifo2; mkdir empty dark; echo x > dark/file; chmod 444 dark");
    assert_int_equal(box_ask(b, INIT_LIST, &ask, NULL, &page), -ENOTDIR);
    ask.path = VIEW_STR("empty");
    assert_int_equal(box_ask(b, INIT_LIST, &ask, NULL, &page), 0);
    assert_int_equal(page.entries.n, 0);
    assert_true(page.cursor == 0);
    ask.cursor = UINT64_MAX;
    assert_int_equal(box_ask(b, INIT_LIST, &ask, NULL, &page), -EINVAL);
    ask = (struct init_list){ VIEW_STR("dark"), 0 }; /* names may be read, nothing else */
    assert_int_equal(box_ask(b, INIT_LIST, &ask, NULL, &page), 0);
    struct init_entry entry;
    assert_int_equal(page.entries.n, sizeof entry + 4);
    memcpy(&entry, page.entries.p, sizeof entry);
    assert_true(S_ISREG(entry.mode));
    assert_int_equal(entry.size, 0);
    script(b, "chmod 755 dark");
}

static void a_file_written_aside_replaces_its_target_in_one_step(void **state)
{
    struct box *b = *state;
    struct init_aside ask = { VIEW_STR("new/deep/target"), 0644 };
    struct init_aside_answer aside;
    char name[INIT_PATH_MAX + 1] = "";

    assert_int_equal(box_ask(b, INIT_ASIDE, &ask, NULL, &aside), 0);
    memcpy(name, aside.name.p, aside.name.n);
    assert_int_equal(strncmp(name, "new/deep/.holdcell-", 19), 0);
    assert_int_equal(write(b->got_fd, "one", 3), 3);
    assert_int_equal(box_open_file(b, "new/deep/target", INIT_OPEN_READ), -ENOENT);
    struct init_rename move = { view_cstr(name), VIEW_STR("new/deep/target"), 0 };
    assert_int_equal(box_ask(b, INIT_RENAME, &move, NULL, NULL), 0);
    expect_file(b, "new/deep/target", "one");

    assert_int_equal(box_ask(b, INIT_ASIDE, &ask, NULL, &aside), 0);
    assert_int_equal(write(b->got_fd, "two", 3), 3);
    memset(name, 0, sizeof name);
    memcpy(name, aside.name.p, aside.name.n);
    assert_int_equal(box_ask(b, INIT_RENAME, &move, NULL, NULL), -EEXIST);
    expect_file(b, "new/deep/target", "one");
    move.replace = 1;
    assert_int_equal(box_ask(b, INIT_RENAME, &move, NULL, NULL), 0);
    expect_file(b, "new/deep/target", "two");
}

static void a_target_that_cannot_be_a_file_is_refused(void **state)
{
    struct box *b = *state;
    static const char *const bad[] = { "", "/", "a/", ".", "..", "a/..", "taken" };
    struct init_aside ask = { .mode = 0644 };
    char name[300];

    script(b, "mkdir taken; echo > plain");
    for (unsigned i = 1; i < sizeof bad / sizeof bad[0]; i++) {
        ask.path = view_cstr(bad[i]);
        assert_int_equal(box_ask(b, INIT_ASIDE, &ask, NULL, NULL), -EISDIR);
    }
    ask.path = VIEW_STR("plain/below");
    assert_int_equal(box_ask(b, INIT_ASIDE, &ask, NULL, NULL), -ENOTDIR);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ask.path = view_cstr(name);
    assert_int_equal(box_ask(b, INIT_ASIDE, &ask, NULL, NULL), -ENAMETOOLONG);
}

static void a_full_file_system_says_so(void **state)
{
    struct box *b = *state;
    struct init_aside ask = { VIEW_STR("/tmp/f"), 0644 };
    char block[4096] = "";
    unsigned made = 0;
    int r;

    assert_int_equal(box_ask(b, INIT_ASIDE, &ask, NULL, NULL), 0);
    while (write(b->got_fd, block, sizeof block) > 0)
        made++;
    assert_int_equal(errno, ENOSPC);
    assert_true(made >= 16);
    for (made = 0; (r = box_ask(b, INIT_ASIDE, &ask, NULL, NULL)) == 0; made++)
        assert_true(made < 100);
    assert_int_equal(r, -ENOSPC);
    assert_int_equal(box_path(b, INIT_MKDIR, "/tmp/d", NULL), -ENOSPC);
    assert_int_equal(box_path(b, INIT_STAT, "/tmp", &(struct init_stat){ 0 }), 0);
    script(b, "rm -rf /tmp/.holdcell*");
}

static void directories_are_made_with_their_parents(void **state)
{
    struct box *b = *state;
    struct init_stat stat;

    assert_int_equal(box_path(b, INIT_MKDIR, "m//a/b/", NULL), 0);
    assert_int_equal(box_path(b, INIT_MKDIR, "/home/user/m/a/b", NULL), 0);
    assert_int_equal(box_path(b, INIT_STAT, "m/a/b", &stat), 0);
    assert_true(S_ISDIR(stat.mode));
    assert_int_equal(stat.mode & 07777, 0755);
    script(b, "echo > m/file; ln -s a m/link");
    assert_int_equal(box_path(b, INIT_MKDIR, "m/link/c", NULL), 0);
    assert_int_equal(box_path(b, INIT_STAT, "m/a/c", &stat), 0);
    assert_int_equal(box_path(b, INIT_MKDIR, "m/file", NULL), -ENOTDIR);
    assert_int_equal(box_path(b, INIT_MKDIR, "m/file/x", NULL), -ENOTDIR);
    assert_int_equal(box_path(b, INIT_MKDIR, "/etc/hc", NULL), -EACCES);
    assert_int_equal(box_path(b, INIT_MKDIR, "/", NULL), 0);
}

static void removal_takes_what_is_named_and_follows_no_link(void **state)
{
    struct box *b = *state;
    struct init_stat stat;

    script(b, "mkdir -p keep r/d/e && echo x > keep/file && cd r && ln -s ../keep link &&"
              "ln -s ../../keep d/link && mkfifo d/fifo && echo > d/e/f && ln -s nowhere x");
    assert_int_equal(box_remove(b, "r", 0), -ENOTEMPTY);
    assert_int_equal(box_remove(b, "r/link", 1), 0);
    assert_int_equal(box_remove(b, "r/x", 0), 0);
    assert_int_equal(box_remove(b, "r", 1), 0);
    assert_int_equal(box_path(b, INIT_STAT, "r", &stat), -ENOENT);
    expect_file(b, "keep/file", "x\n");
    assert_int_equal(box_remove(b, "r", 1), -ENOENT);
    assert_int_equal(box_remove(b, "keep/..", 1), -EINVAL);
    assert_int_equal(box_remove(b, "keep/.", 1), -EINVAL);
    expect_file(b, "keep/file", "x\n");
}

static void removal_stops_at_what_it_may_not_remove(void **state)
{
    struct box *b = *state;

    script(b, "mkdir -p s/a && echo x > s/a/f && chmod 555 s/a");
    assert_int_equal(box_remove(b, "s", 1), -EACCES);
    expect_file(b, "s/a/f", "x\n");
    script(b, "chmod 755 s/a");
    assert_int_equal(box_remove(b, "s", 1), 0);
    assert_true(box_remove(b, "/home/user", 1) < 0);
    expect_file(b, "keep/file", "x\n"); /* the home was not emptied first */
}

static void a_tree_deeper_than_any_path_is_removed(void **state)
{
    struct box *b = *state;
    struct init_stat stat;

    script(b, "python3 -Ec 'import os\nos.mkdir(\"deep\"); os.chdir(\"deep\")\n"
              "for i in range(1500): os.mkdir(\"ddd\"); os.chdir(\"ddd\")'");
    assert_int_equal(box_remove(b, "deep", 1), 0);
    assert_int_equal(box_path(b, INIT_STAT, "deep", &stat), -ENOENT);
}

static void removal_survives_directories_that_turn_into_links(void **state)
{
    struct box *b = *state;
    uint32_t pid;
    int fd = -1, removed = 0;

    script(b, "mkdir -p safe swap && echo x > safe/file");
    /* A directory and a link to the safe one change places as fast as they can (2 is
     * RENAME_EXCHANGE), in the target and one level below it. */
    assert_int_equal(
        box_spawn(b,
                  "exec python3 -Ec 'import ctypes, os\n"
                  "call = ctypes.CDLL(None).renameat2\n"
                  "os.chdir(\"swap\")\n"
                  "def make(f, *a):\n"
                  "    try: f(*a)\n"
                  "    except OSError: pass\n"
                  "while True:\n"
                  "    make(os.makedirs, \"d/d/d\"); make(os.symlink, \"../safe\", \"l\")\n"
                  "    make(os.symlink, \"../../safe\", \"d/l\")\n"
                  "    for i in range(20):\n"
                  "        call(-100, b\"d/d\", -100, b\"d/l\", 2)\n"
                  "        call(-100, b\"d\", -100, b\"l\", 2)'",
                  &fd, &pid),
        0);
    while (removed < 300) {
        int r = box_remove(b, "swap/d", 1);
        /* Whatever it met, it ends; and what the links point to stays. */
        assert_true(r == 0 || r == -ENOENT || r == -ENOTDIR || r == -ESTALE || r == -ELOOP);
        removed += r != -ENOENT;
    }
    struct init_kill k = { pid, SIGKILL };
    assert_int_equal(box_ask(b, INIT_KILL, &k, NULL, NULL), 0);
    (void)box_exited(b);
    close(fd);
    expect_file(b, "safe/file", "x\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_was_written_is_read_again_and_is_the_sessions),
        cmocka_unit_test(the_ways_to_open_are_kept_apart),
        cmocka_unit_test(what_is_no_regular_file_is_not_opened_and_does_not_block),
        cmocka_unit_test(a_file_under_a_lease_does_not_block),
        cmocka_unit_test(links_give_no_more_than_the_session_has),
        cmocka_unit_test(stat_tells_of_a_link_itself),
        cmocka_unit_test(a_huge_directory_comes_in_pages_and_every_name_once),
        cmocka_unit_test(a_listing_of_what_is_no_directory_is_refused),
        cmocka_unit_test(a_file_written_aside_replaces_its_target_in_one_step),
        cmocka_unit_test(a_target_that_cannot_be_a_file_is_refused),
        cmocka_unit_test(a_full_file_system_says_so),
        cmocka_unit_test(directories_are_made_with_their_parents),
        cmocka_unit_test(removal_takes_what_is_named_and_follows_no_link),
        cmocka_unit_test(removal_stops_at_what_it_may_not_remove),
        cmocka_unit_test(a_tree_deeper_than_any_path_is_removed),
        cmocka_unit_test(removal_survives_directories_that_turn_into_links),
    };

    if (geteuid() != 0) {
        print_message("skipped: needs root\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, open_box, close_box);
}
