/* The codec of the launcher's and init's messages: every field, every bound. */
#include "msgcodec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "initmsg.h"
#include "launchmsg.h"

static struct launch_start example(void)
{
    return (struct launch_start){
        .sandbox = 77,
        .kernel = 1,
        .generation = 2,
        .flags = LAUNCH_SOCKETS_FD,
        .spec_dir = 0,
        .spec_name = VIEW_STR("python3"),
        .cwd = VIEW_STR("/home/user"),
        .argv = { (const uint8_t *)"python3\0-m\0x", 13 },
        .env = { (const uint8_t *)"HOME=/home/user", 16 },
    };
}

static void a_message_comes_back_as_it_was_sent(void **state)
{
    (void)state;
    struct launch_start in = example(), out;
    struct msg_head head;
    autobuf struct buf b;
    struct err e = { 0 };
    const struct msg_spec *spec = launch_request_spec(LAUNCH_START_KERNEL);

    buf_init(&b, MSG_MAX);
    assert_int_equal(msg_encode(spec, 9, 0, &in, 7, &b, &e), 0);
    assert_int_equal(msg_head_decode(buf_view(&b), 7, &head, &e), 0);
    assert_int_equal(head.request, 9);
    assert_int_equal(msg_decode(spec, &head, buf_view(&b), &out, &e), 0);
    assert_int_equal(out.sandbox, 77);
    assert_true(view_equals(out.spec_name, "python3"));
    assert_int_equal(out.argv.n, 13);
    assert_int_equal(msg_strings_count(out.argv, 8, &e), 3);
}

static void a_message_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    struct launch_start in = example(), out;
    struct msg_head head;
    autobuf struct buf b;
    const struct msg_spec *spec = launch_request_spec(LAUNCH_START_KERNEL);

    buf_init(&b, MSG_MAX);
    assert_int_equal(msg_encode(spec, 9, 0, &in, 7, &b, NULL), 0);
    for (size_t n = 0; n < buf_len(&b); n++) {
        struct view cut = { buf_view(&b).p, n };

        assert_int_equal(msg_head_decode(cut, 7, &head, NULL), -HC_EPARSE);
        if (n < sizeof head)
            continue;
        memcpy(&head, cut.p, sizeof head);
        head.size = (uint32_t)n; /* an honest head on a short body */
        assert_int_equal(msg_decode(spec, &head, cut, &out, NULL), -HC_EPARSE);
    }
}

static void a_byte_behind_the_last_field_is_refused(void **state)
{
    (void)state;
    struct launch_list in = { 1 }, out;
    struct msg_head head;
    autobuf struct buf b;
    struct err e = { 0 };
    const struct msg_spec *spec = launch_request_spec(LAUNCH_LIST);

    buf_init(&b, MSG_MAX);
    assert_int_equal(msg_encode(spec, 1, 0, &in, 0, &b, &e), 0);
    assert_int_equal(buf_add(&b, "x", 1), 0);
    memcpy(&head, buf_view(&b).p, sizeof head);
    head.size++;
    assert_int_equal(msg_decode(spec, &head, buf_view(&b), &out, &e), -HC_EPARSE);
}

static void a_wrong_number_of_descriptors_is_refused(void **state)
{
    (void)state;
    struct launch_start in = example();
    struct msg_head head;
    autobuf struct buf b;
    struct err e = { 0 };

    buf_init(&b, MSG_MAX);
    assert_int_equal(msg_encode(launch_request_spec(LAUNCH_START_KERNEL), 9, 0, &in, 8, &b, &e),
                     -EINVAL);
    assert_int_equal(buf_len(&b), 0);
    assert_int_equal(msg_encode(launch_request_spec(LAUNCH_START_KERNEL), 9, 0, &in, 7, &b, &e), 0);
    assert_int_equal(msg_head_decode(buf_view(&b), 6, &head, &e), -HC_EPARSE);
}

static void a_bound_that_is_broken_names_its_field(void **state)
{
    (void)state;
    struct launch_start in = example();
    autobuf struct buf b;
    struct err e = { 0 };

    buf_init(&b, MSG_MAX);
    in.kernel = LAUNCH_KERNELS_MAX + 1;
    assert_int_equal(msg_encode(launch_request_spec(LAUNCH_START_KERNEL), 9, 0, &in, 7, &b, &e),
                     -EINVAL);
    assert_non_null(strstr(e.msg, "'kernel'"));
    in = example();
    in.spec_name = (struct view){ (const uint8_t *)"a\0b", 3 };
    assert_int_equal(msg_encode(launch_request_spec(LAUNCH_START_KERNEL), 9, 0, &in, 7, &b, &e),
                     -EINVAL);
    assert_non_null(strstr(e.msg, "'spec_name'"));
    in.spec_name = (struct view){ NULL, 0 };
    assert_int_equal(msg_encode(launch_request_spec(LAUNCH_START_KERNEL), 9, 0, &in, 7, &b, &e),
                     -EINVAL);
    assert_non_null(strstr(e.msg, "is empty"));
}

static void every_verb_has_a_request_and_an_answer(void **state)
{
    (void)state;
    for (unsigned v = 1; v < LAUNCH_VERBS_END; v++) {
        assert_non_null(launch_request_spec(v));
        assert_non_null(launch_answer_spec(v));
    }
    for (unsigned v = 1; v < INIT_VERBS_END; v++) {
        assert_non_null(init_request_spec(v));
        assert_non_null(init_answer_spec(v));
    }
    assert_null(launch_request_spec(0));
    assert_null(launch_request_spec(LAUNCH_ERROR));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_comes_back_as_it_was_sent),
        cmocka_unit_test(a_message_cut_at_any_byte_is_refused),
        cmocka_unit_test(a_byte_behind_the_last_field_is_refused),
        cmocka_unit_test(a_wrong_number_of_descriptors_is_refused),
        cmocka_unit_test(a_bound_that_is_broken_names_its_field),
        cmocka_unit_test(every_verb_has_a_request_and_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
