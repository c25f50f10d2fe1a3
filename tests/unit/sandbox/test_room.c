/* What is left of memory and tasks, in groups with limits of their own and on the host. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cgfile.h"
#include "cgroup_ops.h"
#include "err.h"
#include "sandbox.h"
#include "sandbox_internal.h"

#define MIB UINT64_C(1048576)

/* A group with a limit and one in it, in the place that the host offers. */
struct nested {
    struct cgroup_base base;
    char name[64];
    int parent, outer, inner;
};

static void nested_make(struct nested *n, enum cgplace_controller c, const char *file,
                        uint64_t limit)
{
    struct err e = { 0 };

    *n = (struct nested){ 0 };
    if (cgplace_find(NULL, &n->base.place, &e) < 0)
        fail_msg("%s", e.msg);
    struct cgplace *p = &n->base.place;
    n->base.ops = p->is_v2 ? &cgroup_v2_ops : &cgroup_v1_ops;
    int *at = p->is_v2 ? &p->unified_fd : &p->v1_fd[p->v1_of[c]];
    n->parent = dup(*at);
    snprintf(n->name, sizeof n->name, "holdcell-test-room-%d", (int)getpid());
    assert_int_equal(cgfile_make_dir(n->parent, n->name, &n->outer), 0);
    assert_int_equal(cgfile_write(n->outer, file, "%llu", (unsigned long long)limit), 0);
    assert_int_equal(cgfile_make_dir(n->outer, "inner", &n->inner), 0);
    assert_true(dup3(n->inner, *at, O_CLOEXEC) >= 0);
    n->base.base_fd = n->inner;
}

static void nested_remove(struct nested *n)
{
    cgplace_close(&n->base.place);
    closep(&n->inner);
    closep(&n->outer);
    assert_int_equal(cgfile_remove_tree_wait(n->parent, n->name), 0);
    closep(&n->parent);
}

static int is_v2(void)
{
    struct cgplace p;
    struct err e = { 0 };

    if (cgplace_find(NULL, &p, &e) < 0)
        fail_msg("%s", e.msg);
    int v2 = p.is_v2;
    cgplace_close(&p);
    return v2;
}

static void the_limit_of_a_group_above_counts(void **state)
{
    struct nested n;
    struct cgroup_room room;

    (void)state;
    nested_make(&n, CGPLACE_MEMORY, is_v2() ? "memory.max" : "memory.limit_in_bytes", 100 * MIB);
    cgroup_base_room(&n.base, &room);
    assert_int_equal(room.memory_total, 100 * MIB);
    assert_in_range(room.memory, 99 * MIB, 100 * MIB); /* nobody is in it */
    nested_remove(&n);
    nested_make(&n, CGPLACE_PIDS, "pids.max", 77);
    cgroup_base_room(&n.base, &room);
    assert_int_equal(room.tasks, 77);
    assert_int_equal(room.tasks_total, 77);
    nested_remove(&n);
}

static void the_least_of_group_and_host_is_what_is_left(void **state)
{
    struct sandbox_host host = { 0 };
    struct sandbox_room room;
    struct nested n;

    (void)state;
    nested_make(&n, CGPLACE_MEMORY, is_v2() ? "memory.max" : "memory.limit_in_bytes", 100 * MIB);
    host.cgroups = &n.base;
    sandbox_host_room(&host, &room);
    assert_int_equal(room.memory_total, 100 * MIB);
    assert_in_range(room.memory, 99 * MIB, 100 * MIB);
    nested_remove(&n);
    nested_make(&n, CGPLACE_MEMORY, is_v2() ? "memory.max" : "memory.limit_in_bytes",
                UINT64_C(1) << 50);
    sandbox_host_room(&host, &room);
    assert_in_range(room.memory_total, 256 * MIB, UINT64_C(1) << 49); /* the host's */
    assert_in_range(room.memory, 1 * MIB, room.memory_total);
    assert_in_range(room.tasks, 100, 1 << 22);
    assert_in_range(room.tasks_total, room.tasks + 1, 1 << 22);
    assert_in_range(room.files, 16, UINT64_MAX - 1);
    nested_remove(&n);
}

static void open_descriptors_are_missing_from_what_is_left(void **state)
{
    struct sandbox_host host = { 0 };
    struct sandbox_room before, after;
    struct nested n;
    int fds[100];

    (void)state;
    nested_make(&n, CGPLACE_PIDS, "pids.max", 1000000);
    host.cgroups = &n.base;
    sandbox_host_room(&host, &before);
    for (int i = 0; i < 100; i++)
        fds[i] = dup(0);
    sandbox_host_room(&host, &after);
    for (int i = 0; i < 100; i++)
        close(fds[i]);
    assert_int_equal(before.files - after.files, 100); /* our own limit is the least */
    nested_remove(&n);
}

static void so_do_the_tasks_of_all_sessions_but_not_as_a_size_of_the_host(void **state)
{
    struct cgroup_base *b;
    struct cgroup_room before, after;
    struct cgroup_share share = { UINT64_MAX, 33 }, got;
    struct err e = { 0 };

    (void)state;
    if (cgroup_base_open(899, NULL, &b, &e) < 0)
        fail_msg("%s", e.msg);
    cgroup_base_room(b, &before);
    assert_int_equal(cgroup_base_limit(b, &share, &e), 0);
    cgroup_base_room(b, &after);
    assert_int_equal(after.tasks, 33);
    assert_int_equal(after.tasks_total, before.tasks_total);
    assert_int_equal(after.memory_total, before.memory_total);
    cgroup_base_share(b, &got);
    assert_int_equal(got.tasks, 33);
    assert_true(got.memory == UINT64_MAX);
    cgroup_base_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_of_a_group_above_counts),
        cmocka_unit_test(so_do_the_tasks_of_all_sessions_but_not_as_a_size_of_the_host),
        cmocka_unit_test(the_least_of_group_and_host_is_what_is_left),
        cmocka_unit_test(open_descriptors_are_missing_from_what_is_left),
    };

    if (geteuid() != 0) {
        print_message("skipped: needs root\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
