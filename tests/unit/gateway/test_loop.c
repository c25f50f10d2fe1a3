#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "log.h"
#include "loop.h"

struct count {
    struct loop *l;
    struct loop_timer *timer;
    struct loop_poll *poll;
    int fd, fired, readable, after;
};

static void stop_after_three(void *arg)
{
    struct count *c = arg;

    if (++c->fired == 3) {
        c->timer = loop_timer_close(c->timer); /* inside its own callback */
        loop_stop(c->l);
    }
}

static void a_repeating_timer_fires_until_it_is_closed_inside_its_own_callback(void **state)
{
    struct count c = { .l = loop_new() };

    (void)state;
    c.timer = loop_timer_start(c.l, 1, 1, stop_after_three, &c);
    loop_run(c.l);
    assert_int_equal(c.fired, 3);
    c.l = loop_free(c.l);
}

static void on_readable(void *arg, int events)
{
    struct count *c = arg;
    char byte;

    assert_int_equal(events & LOOP_READ, LOOP_READ);
    assert_int_equal(read(c->fd, &byte, 1), 1);
    c->readable++;
    c->poll = loop_poll_close(c->poll);
    loop_stop(c->l);
}

static void a_readable_descriptor_is_told_once_it_is_readable(void **state)
{
    struct count c = { .l = loop_new() };
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    c.fd = pair[0];
    c.poll = loop_poll_start(c.l, pair[0], LOOP_READ, on_readable, &c);
    assert_int_equal(write(pair[1], "x", 1), 1);
    loop_run(c.l);
    assert_int_equal(c.readable, 1);
    close(pair[0]);
    close(pair[1]);
    c.l = loop_free(c.l);
}

static int always_before(void *arg)
{
    (void)arg;
    return 1;
}

static void count_after(void *arg)
{
    struct count *c = arg;

    if (++c->after == 1000)
        loop_stop(c->l);
}

static void never(void *arg)
{
    (void)arg;
    fail_msg("the loop slept although something was readable");
}

static void the_loop_does_not_sleep_while_before_says_readable(void **state)
{
    struct count c = { .l = loop_new() };

    (void)state;
    c.timer = loop_timer_start(c.l, 60000, 0, never, &c);
    loop_hooks(c.l, always_before, count_after, &c);
    loop_run(c.l);
    assert_int_equal(c.after, 1000);
    c.timer = loop_timer_close(c.timer);
    c.l = loop_free(c.l);
}

static void a_site_is_heard_only_so_often_a_minute(void **state)
{
    struct log_limit limit = { 0 };
    int heard = 0;

    (void)state;
    for (int i = 0; i < 100; i++)
        heard += log_allowed(&limit, 3);
    /* Two minutes may meet in this loop. */
    assert_in_range(heard, 3, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeating_timer_fires_until_it_is_closed_inside_its_own_callback),
        cmocka_unit_test(a_readable_descriptor_is_told_once_it_is_readable),
        cmocka_unit_test(the_loop_does_not_sleep_while_before_says_readable),
        cmocka_unit_test(a_site_is_heard_only_so_often_a_minute),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
