/* kernel.json files of a real directory, and what is said of those that cannot be used. */
#include "specfile.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "err.h"

struct fixture {
    char dir[64];
    int fd;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);

    snprintf(f->dir, sizeof f->dir, "/tmp/specfile-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->fd >= 0);
    assert_int_equal(mkdirat(f->fd, "k", 0755), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];

    close(f->fd);
    snprintf(command, sizeof command, "rm -rf '%s'", f->dir);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void make(const struct fixture *f, const char *text, size_t n)
{
    autoclose int fd =
        openat(f->fd, "k/kernel.json", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

    assert_int_equal(write(fd, text, n), (ssize_t)n);
}

static void said(const struct fixture *f, const char *text)
{
    struct err e = { 0 };
    json_t *spec = NULL;

    assert_int_not_equal(specfile_read(f->fd, "k", &spec, &e), 0);
    assert_null(spec);
    assert_string_equal(e.msg, text);
    assert_int_not_equal(e.code, ENOENT); /* which would mean that there is nothing to tell */
}

static void what_cannot_be_used_is_told_with_its_reason(void **state)
{
    static const char argv[] = "field 'argv' must be a list of strings, at least one";
    static const char *const rows[][2] = {
        { "{bad", "it is not valid JSON (line 1, column 4)" },
        { "{\"argv\": [\"x\"],\n \"env\": {\"KEY\": secret}}",
          "it is not valid JSON (line 2, column 22)" },
        { "", "it is not valid JSON (line 1, column 0)" },
        { "[]", "it is not a JSON object" },
        { "{\"display_name\":\"x\"}", argv },
        { "{\"argv\":[1]}", argv },
        { "{\"argv\":[]}", argv },
        { "{\"argv\":\"x\"}", argv },
    };
    const struct fixture *f = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        make(f, rows[i][0], strlen(rows[i][0]));
        said(f, rows[i][1]);
    }
}

static void a_file_that_is_too_large_or_no_file_is_told(void **state)
{
    const struct fixture *f = *state;
    autofree char *huge = xcalloc(1, 64 * 1024 + 1);

    memset(huge, ' ', 64 * 1024 + 1);
    make(f, huge, 64 * 1024 + 1);
    said(f, "it is larger than 65536 bytes");
    assert_int_equal(unlinkat(f->fd, "k/kernel.json", 0), 0);
    assert_int_equal(mkfifoat(f->fd, "k/kernel.json", 0644), 0); /* must not block */
    said(f, "it is no regular file");
    assert_int_equal(unlinkat(f->fd, "k/kernel.json", 0), 0);
    assert_int_equal(symlinkat("nowhere", f->fd, "k/kernel.json"), 0);
    said(f, "it is a link to what is not there");
}

static void where_there_is_none_nothing_is_wrong(void **state)
{
    const struct fixture *f = *state;
    struct err e = { 0 };
    json_t *spec = NULL;

    assert_int_equal(specfile_read(f->fd, "k", &spec, &e), -ENOENT);
    assert_int_equal(specfile_read(f->fd, "other", &spec, &e), -ENOENT);
    make(f, "{}", 2);
    assert_int_equal(renameat(f->fd, "k/kernel.json", f->fd, "README"), 0);
    assert_int_equal(specfile_read(f->fd, "README", &spec, &e), -ENOENT);
    assert_null(spec);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_cannot_be_used_is_told_with_its_reason),
        TEST(a_file_that_is_too_large_or_no_file_is_told),
        TEST(where_there_is_none_nothing_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
