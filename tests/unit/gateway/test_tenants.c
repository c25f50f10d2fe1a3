/* What one principal may take of what all share. */
#include "tenants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { MAX = 1200, TENANTS = 8 };

static size_t fill(struct tenant *n)
{
    size_t took = 0;

    for (; tenant_may(n, TENANT_BODIES, 1, MAX); took++)
        tenant_take(n, TENANT_BODIES, 1);
    return took;
}

static void whoever_is_greedy_leaves_room_for_one_more(void **state)
{
    struct tenants all = { .shared = 1 };
    struct tenant *own[TENANTS];
    size_t took[TENANTS], left = MAX;

    (void)state;
    for (unsigned i = 0; i < TENANTS; i++) {
        char name[8];

        snprintf(name, sizeof name, "n%u", i);
        own[i] = tenant_hold(&all, name);
        took[i] = fill(own[i]);
        assert_in_range(took[i], 1, left / 2);
        left -= took[i];
    }
    assert_int_equal(took[0], MAX / 2);
    assert_int_equal(all.all[TENANT_BODIES], MAX - left);
    assert_false(tenant_may(own[0], TENANT_BODIES, 1, MAX));
    tenant_give(own[0], TENANT_BODIES, took[0]);
    assert_true(tenant_may(own[0], TENANT_BODIES, 1, MAX));
    for (unsigned i = 1; i < TENANTS; i++)
        tenant_give(own[i], TENANT_BODIES, took[i]);
    for (unsigned i = 0; i < TENANTS; i++)
        tenant_drop(own[i]);
    assert_null(all.first);
}

static void alone_one_may_have_everything(void **state)
{
    struct tenants all = { 0 };
    struct tenant *n = tenant_hold(&all, "default");

    (void)state;
    assert_int_equal(fill(n), MAX);
    tenant_give(n, TENANT_BODIES, MAX);
    tenant_drop(n);
    assert_null(all.first);
}

static void amounts_that_would_wrap_do_not_fit(void **state)
{
    (void)state;
    assert_false(tenant_share(0, 0, 0, SIZE_MAX, MAX));
    assert_false(tenant_share(1, 0, MAX + 1, 0, MAX));
    assert_false(tenant_share(1, 1, MAX, 0, MAX));
    assert_true(tenant_share(1, 0, MAX, 0, MAX));
    assert_true(tenant_share(1, 0, 0, MAX / 2, MAX));
    assert_false(tenant_share(1, 0, 0, MAX / 2 + 1, MAX));
}

static void one_name_is_one_tenant_until_nobody_needs_it(void **state)
{
    struct tenants all = { .shared = 1 };
    struct tenant *a = tenant_hold(&all, "a"), *b = tenant_hold(&all, "b");

    (void)state;
    assert_ptr_equal(tenant_hold(&all, "a"), a);
    assert_ptr_not_equal(a, b);
    tenant_drop(a);
    assert_ptr_equal(tenant_hold_same(a), a);
    tenant_drop(a);
    tenant_drop(a);
    assert_ptr_equal(all.first, b);
    tenant_drop(b);
    assert_null(all.first);
    assert_null(tenant_drop(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_is_greedy_leaves_room_for_one_more),
        cmocka_unit_test(alone_one_may_have_everything),
        cmocka_unit_test(amounts_that_would_wrap_do_not_fit),
        cmocka_unit_test(one_name_is_one_tenant_until_nobody_needs_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
