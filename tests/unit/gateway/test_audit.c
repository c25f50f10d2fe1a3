/* The audit file under a disk that fills up, rotations and gateways that come and go. */
#include "audit.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "err.h"
#include "loop.h"
#include "metrics.h"

static struct loop *loop;
static char folder[] = "/tmp/holdcell-audit-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void take(const char *name)
{
    struct err e = { 0 };
    int fd = open(path_of(name), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (audit_take_file(fd, &e) < 0)
        fail_msg("%s", e.msg);
}

static void note(const char *event)
{
    struct auditline l;

    audit_begin(&l, event, "somebody", NULL);
    audit_note(&l);
}

static int intent(const char *event)
{
    struct auditline l;

    audit_begin(&l, event, "somebody", NULL);
    return audit_intent(&l, NULL);
}

/* As a full disk does: a write takes what fits, the next one fails. */
static void limit_files(rlim_t bytes)
{
    struct rlimit r;

    getrlimit(RLIMIT_FSIZE, &r);
    r.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

static struct auditcheck check_files(const char *const *names, unsigned count)
{
    struct auditcheck c = { 0 };
    struct err e = { 0 };
    char *line = NULL;
    size_t size = 0;

    for (unsigned i = 0; i < count; i++) {
        FILE *f = fopen(path_of(names[i]), "re");
        ssize_t n;

        assert_non_null(f);
        while ((n = getline(&line, &size, f)) > 0) {
            n -= line[n - 1] == '\n';
            if (auditcheck_line(&c, (struct view){ (const uint8_t *)line, (size_t)n }, &e) < 0)
                fail_msg("%s: %s", names[i], e.msg);
        }
        fclose(f);
        auditcheck_next_file(&c);
    }
    free(line);
    return c;
}

static struct auditcheck check_file(const char *name)
{
    return check_files(&name, 1);
}

static long size_of(const char *name)
{
    FILE *f = fopen(path_of(name), "re");

    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    fclose(f);
    return n;
}

static void start(int required)
{
    audit_start(loop, required);
}

static void stop_loop(void *arg)
{
    (void)arg;
    loop_stop(loop);
}

static void let_time_pass(uint64_t ms)
{
    struct loop_timer *t = loop_timer_start(loop, ms, 0, stop_loop, NULL);

    loop_run(loop);
    loop_timer_close(t);
}

static int set_up(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    loop = loop_new();
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int tear_down(void **state)
{
    char command[128];

    (void)state;
    limit_files(RLIM_INFINITY);
    audit_stop();
    let_time_pass(0);
    loop = loop_free(loop);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void lines_of_several_gateways_are_one_chain(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        start(0);
        take("log");
        note("one");
        note("two");
        audit_stop();
    }
    struct auditcheck c = check_file("log");
    assert_int_equal(c.lines, 3 * 4); /* opened, two, closed */
    assert_int_equal(c.unfinished, 0);
    assert_string_equal(c.first, AUDITLINE_FIRST);
}

static void a_line_cut_by_a_crash_stays_and_the_chain_goes_on(void **state)
{
    (void)state;
    start(0);
    take("log");
    note("one");
    audit_stop();
    assert_int_equal(truncate(path_of("log"), size_of("log") - 10), 0);
    start(0);
    take("log");
    note("two");
    audit_stop();
    assert_int_equal(check_file("log").unfinished, 1);
}

/* The disk is full, the gateway is killed in the middle of a line, its successor finds
 * the disk full still: not even the end of that line fits. */
static void a_line_cut_on_a_full_disk_never_takes_the_next_one_with_it(void **state)
{
    (void)state;
    start(0);
    take("log");
    note("one");
    audit_stop();
    assert_int_equal(truncate(path_of("log"), size_of("log") - 10), 0);
    limit_files((rlim_t)size_of("log"));
    start(0);
    take("log");
    note("waits");
    assert_true(audit_writable(NULL, NULL) < 0);
    limit_files(RLIM_INFINITY);
    let_time_pass(1500);
    assert_int_equal(audit_writable(NULL, NULL), 0);
    note("two");
    audit_stop();
    struct auditcheck c = check_file("log");
    assert_int_equal(c.unfinished, 1);
    assert_int_equal(c.lines, 3 + 4); /* opened, one, cut; opened, waits, two, closed */
}

static void a_rotated_file_and_the_next_are_one_chain(void **state)
{
    static const char *const names[] = { "log.1", "log" };
    char old[128];

    (void)state;
    start(0);
    take("log");
    note("one");
    take("log"); /* the same file: nothing changes */
    snprintf(old, sizeof old, "%s", path_of("log.1"));
    assert_int_equal(rename(path_of("log"), old), 0);
    note("two"); /* into the old one, which is still open */
    take("log");
    note("three");
    audit_stop();
    assert_int_equal(check_files(names, 2).lines, 6);
    assert_int_equal(check_file("log.1").lines, 3);
}

static void a_full_disk_keeps_lines_waiting_and_whole(void **state)
{
    (void)state;
    start(0);
    take("log");
    limit_files((rlim_t)size_of("log") + 50); /* in the middle of a line */
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(intent("waits"), 0); /* not required: it goes on */
    assert_true(audit_writable(NULL, NULL) < 0);
    assert_int_equal(check_file("log").unfinished, 1);
    limit_files(RLIM_INFINITY);
    let_time_pass(1500);
    assert_int_equal(audit_writable(NULL, NULL), 0);
    struct auditcheck c = check_file("log");
    assert_int_equal(c.lines, 21);
    assert_int_equal(c.unfinished, 0);
}

static void a_full_disk_refuses_what_must_be_audited(void **state)
{
    uint64_t before = metrics_value(METRIC_AUDIT_REFUSED, 0, 0, 0);

    (void)state;
    start(1);
    take("log");
    assert_int_equal(intent("good"), 0);
    limit_files((rlim_t)size_of("log") + 50);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(intent("refused"), -HC_EAUDIT);
    note("still noted");
    assert_int_equal(metrics_value(METRIC_AUDIT_REFUSED, 0, 0, 0) - before, 5);
    limit_files(RLIM_INFINITY);
    let_time_pass(1500);
    assert_int_equal(intent("good again"), 0);
    assert_int_equal(check_file("log").unfinished, 0);
}

static void a_line_that_was_cut_is_whole_in_the_file_that_has_its_place(void **state)
{
    static const char *const names[] = { "old", "new" };

    (void)state;
    start(0);
    take("old");
    limit_files((rlim_t)size_of("old") + 50);
    note("cut");
    note("waits");
    limit_files(RLIM_INFINITY);
    /* The old one is full for good: only the new one has room. */
    limit_files((rlim_t)size_of("old"));
    assert_true(audit_writable(NULL, NULL) < 0);
    struct err e = { 0 };
    int fd = open(path_of("new"), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(audit_take_file(fd, &e), 0);
    limit_files(RLIM_INFINITY);
    let_time_pass(1500);
    audit_stop();
    struct auditcheck c = check_files(names, 2);
    assert_int_equal(c.unfinished, 1);
    assert_int_equal(check_file("new").unfinished, 0);
}

static void more_than_the_queue_holds_is_counted_in_its_place(void **state)
{
    (void)state;
    start(0);
    take("log");
    limit_files((rlim_t)size_of("log"));
    for (unsigned i = 0; i < 8000; i++)
        note("flood");
    limit_files(RLIM_INFINITY);
    let_time_pass(1500);
    struct auditcheck c = check_file("log");
    assert_in_range(c.lines, 1000, 7999);
    FILE *f = fopen(path_of("log"), "re");
    char *line = NULL;
    size_t size = 0;
    unsigned told = 0;
    while (getline(&line, &size, f) > 0)
        told += strstr(line, "\"event\":\"records_lost\"") != NULL;
    fclose(f);
    free(line);
    assert_int_equal(told, 1);
}

static void without_a_file_what_is_required_is_refused(void **state)
{
    (void)state;
    start(1);
    assert_int_equal(intent("x"), -HC_EAUDIT);
    take("log");
    assert_int_equal(intent("x"), 0);
    assert_int_equal(check_file("log").unfinished, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(lines_of_several_gateways_are_one_chain),
        T(a_line_cut_by_a_crash_stays_and_the_chain_goes_on),
        T(a_line_cut_on_a_full_disk_never_takes_the_next_one_with_it),
        T(a_rotated_file_and_the_next_are_one_chain),
        T(a_full_disk_keeps_lines_waiting_and_whole),
        T(a_full_disk_refuses_what_must_be_audited),
        T(a_line_that_was_cut_is_whole_in_the_file_that_has_its_place),
        T(more_than_the_queue_holds_is_counted_in_its_place),
        T(without_a_file_what_is_required_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
