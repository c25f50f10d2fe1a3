/* The last lines of a kernel's output, and the stack in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "loop.h"
#include "tail.h"

struct fixture {
    struct loop *loop;
    struct tail *tail;
    int fd;
};

static int set_up(void **state)
{
    static struct fixture f;
    int ends[2];

    if (pipe(ends) < 0)
        return -1;
    f = (struct fixture){ .loop = loop_new(), .fd = ends[1] };
    f.tail = tail_new(f.loop, ends[0]);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    close(f->fd);
    f->tail = tail_free(f->tail);
    f->loop = loop_free(f->loop);
    return 0;
}

static void say(struct fixture *f, const char *text)
{
    assert_int_equal(write(f->fd, text, strlen(text)), strlen(text));
}

#define HEAD "Current thread 0x00007f00 (most recent call first):\n"

static void both_ends_of_the_last_stack_are_told(void **state)
{
    struct fixture *f = *state;
    char out[400];

    assert_string_equal(tail_stack(f->tail, out, sizeof out), "");
    say(f, "noise\n" HEAD "  File \"old.py\", line 1 in f\n");
    assert_string_equal(tail_stack(f->tail, out, sizeof out), "\"old.py\", line 1 in f");
    say(f, HEAD "  File \"/tmp/ipykernel_2/1.py\", line 4 in work\n"
                "  File \"/tmp/ipykernel_2/1.py\", line 9 in <module>\n"
                "  File \"/x/IPython/core/interactiveshell.py\", line 3 in run_code\n");
    assert_string_equal(tail_stack(f->tail, out, sizeof out),
                        "\"/tmp/ipykernel_2/1.py\", line 9 in <module>, in "
                        "\"/tmp/ipykernel_2/1.py\", line 4 in work");
    assert_string_equal(tail_lines(f->tail, 1, out, sizeof out),
                        "  File \"/x/IPython/core/interactiveshell.py\", line 3 in run_code");
}

static void what_it_says_is_bounded_and_printable(void **state)
{
    struct fixture *f = *state;
    char out[400], small[12], much[TAIL_MAX];

    say(f, HEAD "  File \"a\x1b[2J\xff\", line 1 in f\nno frame\n  File \"b\"\n");
    assert_string_equal(tail_stack(f->tail, out, sizeof out), "\"a?[2J?\", line 1 in f");
    assert_string_equal(tail_stack(f->tail, small, sizeof small), "\"a?[2J?\", l");
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    say(f, HEAD "  File ");
    say(f, much + 1000);
    assert_true(strlen(tail_stack(f->tail, out, sizeof out)) < 200);
    say(f, much); /* it pushes the stack out */
    assert_string_equal(tail_stack(f->tail, out, sizeof out), "");
    assert_string_equal(tail_stack(NULL, out, sizeof out), "");
}

static void a_mark_at_the_very_end_is_no_stack(void **state)
{
    struct fixture *f = *state;
    char out[400];

    say(f, HEAD);
    assert_string_equal(tail_stack(f->tail, out, sizeof out), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_ends_of_the_last_stack_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_it_says_is_bounded_and_printable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_mark_at_the_very_end_is_no_stack, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
