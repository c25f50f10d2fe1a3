/* Kernelspecs read from real directories. */
#include "kernelspec.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cull.h"
#include "err.h"

struct fixture {
    char dir[64];
    struct kernelspecs *specs;
};

static void make(const char *path, const char *text)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void add(const struct fixture *f, const char *where, const char *name, const char *json)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s/kernels/%s", f->dir, where, name);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/%s/kernels/%s/kernel.json", f->dir, where, name);
    make(path, json);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    char path[128], list[256];

    snprintf(f->dir, sizeof f->dir, "/tmp/kernelspec-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%c", f->dir, 'a' + i);
        assert_int_equal(mkdir(path, 0755), 0);
        snprintf(path, sizeof path, "%s/%c/kernels", f->dir, 'a' + i);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    snprintf(list, sizeof list, "%s/a:%s/missing:%s/b", f->dir, f->dir, f->dir);
    f->specs = kernelspecs_new(list, NULL, NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];

    f->specs = kernelspecs_free(f->specs);
    snprintf(command, sizeof command, "rm -rf '%s'", f->dir);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void every_key_that_clients_rely_on_is_there(void **state)
{
    struct fixture *f = *state;
    struct kernelspec *s = NULL;
    static const char *const keys[] = { "argv",           "env",     "display_name", "language",
                                        "interrupt_mode", "metadata" };

    add(f, "a", "bare", "{\"argv\":[\"x\"],\"env\":{\"A\":\"b\",\"N\":1},\"metadata\":[]}");
    assert_int_equal(kernelspecs_find(f->specs, "bare", &s, NULL), 0);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_non_null(json_object_get(s->spec, keys[i]));
    assert_string_equal(json_string_value(json_object_get(s->spec, "display_name")), "bare");
    assert_string_equal(json_string_value(json_object_get(s->spec, "interrupt_mode")), "signal");
    assert_null(json_object_get(json_object_get(s->spec, "env"), "N"));
    assert_false(s->sockets_fd || s->interrupt_by_message);
    s = kernelspec_free(s);
}

static void names_have_no_case_and_the_first_directory_wins(void **state)
{
    struct fixture *f = *state;
    struct kernelspec *s = NULL;

    add(f, "a", "Same", "{\"argv\":[\"first\"]}");
    add(f, "b", "same", "{\"argv\":[\"second\"]}");
    add(f, "b", "only",
        "{\"argv\":[\"x\"],\"interrupt_mode\":\"message\",\"metadata\":{\"holdcell\":{\"sockets\":"
        "\"fds\"}}}");
    assert_int_equal(kernelspecs_find(f->specs, "SAME", &s, NULL), 0);
    assert_string_equal(s->name, "Same");
    assert_int_equal(s->dir, 0);
    s = kernelspec_free(s);
    assert_int_equal(kernelspecs_find(f->specs, "Only", &s, NULL), 0);
    assert_int_equal(s->dir, 2); /* the launcher counts a missing directory too */
    assert_true(s->sockets_fd && s->interrupt_by_message);
    s = kernelspec_free(s);
    struct kernelspec **list;
    assert_int_equal(kernelspecs_list(f->specs, &list, NULL), 2);
    assert_string_equal(list[0]->name, "only");
    assert_string_equal(list[1]->name, "Same");
    for (int i = 0; i < 2; i++)
        list[i] = kernelspec_free(list[i]);
    free(list);
}

static void a_spec_may_have_its_own_time_until_it_is_culled(void **state)
{
    static const struct {
        const char *name, *value;
        uint64_t ms;
    } rows[] = {
        { "whole", "90", 90000 },
        { "part", "1.5", 1500 },
        { "never", "0", 0 },
        { "below", "-1", CULL_UNSET },
        { "text", "\"90\"", CULL_UNSET },
        { "huge", "1e18", CULL_UNSET },
        { "nothing", "null", CULL_UNSET },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kernelspec *s = NULL;
        char text[128];

        snprintf(text, sizeof text, "{\"argv\":[\"x\"],\"metadata\":{\"cull_idle_timeout\":%s}}",
                 rows[i].value);
        add(f, "a", rows[i].name, text);
        assert_int_equal(kernelspecs_find(f->specs, rows[i].name, &s, NULL), 0);
        if (s->cull_ms != rows[i].ms)
            fail_msg("%s: %llu", rows[i].name, (unsigned long long)s->cull_ms);
        s = kernelspec_free(s);
    }
}

static void what_is_no_spec_is_left_out(void **state)
{
    struct fixture *f = *state;
    struct kernelspec **list, *s;
    struct err e;
    char path[256];

    add(f, "a", "broken", "{");
    add(f, "a", "list", "[]");
    add(f, "a", "noargv", "{\"display_name\":\"x\"}");
    add(f, "a", "numbers", "{\"argv\":[1]}");
    add(f, "a", "empty", "{\"argv\":[]}");
    add(f, "a", "bad name", "{\"argv\":[\"x\"]}");
    add(f, "a", ".hidden", "{\"argv\":[\"x\"]}");
    snprintf(path, sizeof path, "%s/a/kernels/fifo", f->dir);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/a/kernels/fifo/kernel.json", f->dir);
    assert_int_equal(mkfifo(path, 0644), 0); /* must not block the loop */
    autofree char *huge = xcalloc(1, 100 * 1024 + 64);
    snprintf(huge, 32, "{\"argv\":[\"x\"],\"pad\":\"");
    memset(huge + strlen(huge), 'p', 100 * 1024);
    add(f, "a", "huge", strcat(huge, "\"}"));
    assert_int_equal(kernelspecs_list(f->specs, &list, NULL), 0);
    free(list);
    assert_int_equal(kernelspecs_find(f->specs, "broken", &s, &e), -ENOENT);
    assert_non_null(strstr(e.msg, "broken"));
    static const char *const odd[] = { "", "..", "../a", "a/b", ".hidden", "bad name" };
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        assert_int_equal(kernelspecs_find(f->specs, odd[i], &s, &e), -ENOENT);
}

static void a_spec_that_is_dropped_in_is_seen_at_once(void **state)
{
    struct fixture *f = *state;
    struct kernelspec *s = NULL;

    assert_int_equal(kernelspecs_find(f->specs, "late", &s, NULL), -ENOENT);
    add(f, "b", "late", "{\"argv\":[\"x\"]}");
    assert_int_equal(kernelspecs_find(f->specs, "late", &s, NULL), 0);
    s = kernelspec_free(s);
}

static void the_allow_list_hides(void **state)
{
    struct fixture *f = *state;
    struct kernelspec **list, *s = NULL;
    char dirs[128];

    add(f, "a", "yes", "{\"argv\":[\"x\"]}");
    add(f, "a", "no", "{\"argv\":[\"x\"]}");
    snprintf(dirs, sizeof dirs, "%s/a", f->dir);
    struct kernelspecs *few = kernelspecs_new(dirs, "other, YES", "yes");
    assert_int_equal(kernelspecs_list(few, &list, NULL), 1);
    assert_string_equal(list[0]->name, "yes");
    list[0] = kernelspec_free(list[0]);
    free(list);
    assert_int_equal(kernelspecs_find(few, "no", &s, NULL), -ENOENT);
    assert_string_equal(kernelspecs_default(few), "yes");
    few = kernelspecs_free(few);
}

static void only_logos_and_front_end_files_are_resources(void **state)
{
    struct fixture *f = *state;
    struct kernelspec *s = NULL;
    char path[256];

    add(f, "a", "res", "{\"argv\":[\"x\"]}");
    static const char *const files[] = { "logo-64x64.png", "logo-svg.svg", "kernel.js",
                                         "kernel.css", "secret.py" };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/a/kernels/res/%s", f->dir, files[i]);
        make(path, "x");
    }
    assert_int_equal(kernelspecs_find(f->specs, "res", &s, NULL), 0);
    assert_string_equal(s->resources[0], "kernel.css");
    assert_string_equal(s->resources[1], "kernel.js");
    assert_string_equal(s->resources[2], "logo-64x64.png");
    assert_string_equal(s->resources[3], "logo-svg.svg");
    assert_null(s->resources[4]);
    s = kernelspec_free(s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Tests may run as root, to whom no permission is denied: a file in the place of the
 * folder cannot be listed by anybody. */
static void an_unknown_name_tells_that_a_directory_could_not_be_read(void **state)
{
    struct fixture *f = *state;
    struct kernelspec *s = NULL;
    struct err e = { 0 };
    char path[128];

    assert_int_equal(kernelspecs_find(f->specs, "nosuch", &s, &e), -ENOENT);
    assert_string_equal(e.msg, "Kernel spec nosuch not found");
    snprintf(path, sizeof path, "%s/a/kernels", f->dir);
    assert_int_equal(rmdir(path), 0);
    make(path, "");
    assert_int_equal(kernelspecs_find(f->specs, "nosuch", &s, &e), -ENOENT);
    assert_non_null(strstr(e.msg, "Kernel spec nosuch not found"));
    assert_non_null(strstr(e.msg, "could not be read"));
    assert_null(strstr(e.msg, f->dir));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_key_that_clients_rely_on_is_there),
        TEST(names_have_no_case_and_the_first_directory_wins),
        TEST(a_spec_may_have_its_own_time_until_it_is_culled),
        TEST(what_is_no_spec_is_left_out),
        TEST(a_spec_that_is_dropped_in_is_seen_at_once),
        TEST(the_allow_list_hides),
        TEST(only_logos_and_front_end_files_are_resources),
        TEST(an_unknown_name_tells_that_a_directory_could_not_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
