/* The five sockets of a kernel in the private directory, and what is left there. */
#include "endpoints.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"

static unsigned names_in(int dir_fd)
{
    DIR *d = fdopendir(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct dirent *entry;
    unsigned n = 0;

    assert_non_null(d);
    while ((entry = readdir(d)) != NULL)
        n += entry->d_name[0] != '.';
    closedir(d);
    return n;
}

static int wanted_by(void *arg, const char *name)
{
    return endpoints_own(arg, name);
}

static void a_sweep_leaves_the_sockets_of_living_kernels_alone(void **state)
{
    (void)state;
    char dir[] = "/tmp/holdcell-unit-XXXXXX";
    struct endpoints lives = ENDPOINTS_NONE, dead = ENDPOINTS_NONE;
    int fds[ENDPOINT_COUNT];
    struct err e = { 0 };

    assert_non_null(mkdtemp(dir));
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(endpoints_listen(i == 0 ? &lives : &dead, dir_fd, fds, &e), 0);
        for (unsigned j = 0; j < ENDPOINT_COUNT; j++)
            close(fds[j]);
    }
    assert_int_equal(names_in(dir_fd), 2 * ENDPOINT_COUNT);
    for (int i = 0; i < 2; i++) { /* again: nobody's position in the directory is shared */
        endpoints_sweep(dir_fd, wanted_by, &lives);
        assert_int_equal(names_in(dir_fd), ENDPOINT_COUNT);
    }
    endpoints_drop(&lives);
    assert_int_equal(names_in(dir_fd), 0);
    close(dir_fd);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sweep_leaves_the_sockets_of_living_kernels_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
