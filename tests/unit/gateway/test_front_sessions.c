/* Notebook sessions over real sockets, on the fake core. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fake_core.h"
#include "harness.h"

#define K1    "00000000-0000-4000-8000-000000000001"
#define K2    "00000000-0000-4000-8000-000000000002"
#define GHOST "99999999-9999-4999-8999-999999999999"

/* The path of the session that the body makes. */
static void make(struct harness *h, const char *body, char path[128])
{
    struct reply r;

    assert_int_equal(ask(h, "POST", "/api/sessions", body, &r), 201);
    snprintf(path, 128, "%s", reply_header(&r, "Location"));
    assert_non_null(strstr(r.body, strrchr(path, '/') + 1));
    reply_free(&r);
}

static void bodies_without_what_is_needed_are_refused(void **state)
{
    static const struct {
        const char *body, *part;
    } rows[] = {
        { "", "No JSON data provided" },
        { "null", "No JSON data provided" },
        { "{", "Invalid JSON" },
        { "[]", "object" },
        { "{}", "path" },
        { "{\"type\":\"notebook\"}", "path" },
        { "{\"path\":\"a\"}", "type" },
        { "{\"path\":1,\"type\":\"notebook\"}", "path" },
        { "{\"path\":\"a\",\"type\":\"notebook\",\"kernel\":[]}", "kernel" },
        { "{\"path\":\"a\",\"type\":\"notebook\",\"kernel\":{\"id\":\"no-uuid\"}}", "kernel.id" },
        { "{\"path\":\"a\",\"type\":\"notebook\",\"kernel\":{\"name\":7}}", "kernel.name" },
    };
    struct harness *h = harness_start(NULL);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(h, "POST", "/api/sessions", rows[i].body, 400, rows[i].part);
    expect(h, "GET", "/api/sessions", NULL, 200, "[]");
    expect(h, "GET", "/api/kernels", NULL, 200, "[]");
    harness_stop(h);
}

static void a_path_has_one_session(void **state)
{
    struct harness *h = harness_start(NULL);
    char a[128], b[128], old[128];

    (void)state;
    make(h,
         "{\"path\":\"a.ipynb\",\"type\":\"notebook\",\"name\":\"a\",\"kernel\":{\"name\":\"fake\"}"
         "}",
         a);
    make(h, "{\"path\":\"a.ipynb\",\"type\":\"console\"}", b);
    assert_string_equal(a, b);
    expect(h, "GET", a, NULL, 200, "\"notebook\":{\"path\":\"a.ipynb\",\"name\":\"a\"}");
    expect(h, "GET", a, NULL, 200, "\"kernel\":{\"id\":\"" K1 "\"");
    make(h, "{\"notebook\":{\"path\":\"old\"},\"kernel\":{\"id\":null,\"name\":null}}", old);
    expect(h, "GET", old, NULL, 200, "\"name\":\"\",\"type\":\"notebook\"");
    make(h, "{\"path\":\"c\",\"type\":\"x\",\"kernel\":{\"id\":\"" K1 "\",\"name\":\"none\"}}", b);
    expect(h, "GET", b, NULL, 200, "\"id\":\"" K1 "\"");
    make(h, "{\"path\":\"d\",\"type\":\"x\",\"kernel\":{\"id\":\"" GHOST "\"}}", b);
    expect(h, "GET", "/api/kernels/" GHOST, NULL, 200, NULL);
    harness_stop(h);
}

static void a_session_whose_kernel_has_gone_is_gone(void **state)
{
    struct harness *h = harness_start(NULL);
    char a[128], b[128];

    (void)state;
    make(h, "{\"path\":\"a\",\"type\":\"notebook\"}", a);
    make(h, "{\"path\":\"b\",\"type\":\"notebook\"}", b);
    expect(h, "DELETE", "/api/kernels/" K1, NULL, 204, NULL);
    expect(h, "GET", a, NULL, 404, "Session not found: session_id='");
    expect(h, "DELETE", "/api/kernels/" K2, NULL, 204, NULL);
    expect(h, "DELETE", b, NULL, 410, NULL);
    expect(h, "DELETE", b, NULL, 404, NULL);
    expect(h, "GET", "/api/sessions", NULL, 200, "[]");
    make(h, "{\"path\":\"a\",\"type\":\"notebook\"}", a); /* the path is free again */
    expect(h, "DELETE", a, NULL, 204, NULL);
    expect(h, "GET", "/api/kernels", NULL, 200, "[]");
    harness_stop(h);
}

static void changes_take_only_what_is_given(void **state)
{
    struct harness *h = harness_start(NULL);
    char a[128];

    (void)state;
    make(h, "{\"path\":\"a\",\"type\":\"notebook\",\"name\":\"n\"}", a);
    expect(h, "PATCH", a, "{\"id\":\"x\",\"name\":\"m\"}", 200, "\"path\":\"a\",\"name\":\"m\"");
    expect(h, "PATCH", a, "{\"path\":\"b\",\"type\":\"console\"}", 200, "\"type\":\"console\"");
    expect(h, "PATCH", a, "", 400, "No JSON");
    expect(h, "PATCH", a, "{\"kernel\":{\"id\":\"" K1 "\"}}", 200, K1);
    expect(h, "PATCH", a, "{\"path\":\"z\",\"kernel\":{\"id\":\"" GHOST "\"}}", 400, GHOST);
    expect(h, "GET", a, NULL, 200, "\"path\":\"b\"");
    expect(h, "PATCH", a, "{\"path\":\"z\",\"kernel\":{\"name\":\"none\"}}", 501, "short_message");
    expect(h, "GET", a, NULL, 200, "\"path\":\"b\"");
    expect(h, "PATCH", a, "{\"path\":\"c\",\"kernel\":{\"id\":null,\"name\":\"fake\"}}", 200, K2);
    expect(h, "GET", a, NULL, 200, "\"path\":\"c\"");
    expect(h, "GET", "/api/kernels/" K1, NULL, 404, NULL);
    expect(h, "PATCH", "/api/sessions/" GHOST, "{}", 404, NULL);
    harness_stop(h);
}

static void two_that_ask_at_once_do_not_mix(void **state)
{
    struct harness *h = harness_start(NULL);
    static const char head[] = " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: token secret\r\n";
    static const char body[] = "{\"path\":\"a\",\"type\":\"notebook\"}";
    struct reply r;
    char path[128];
    int fd = dial(h), other = dial(h);

    (void)state;
    fake.create_ms = 200;
    putf(fd, "POST /api/sessions%sContent-Length: %zu\r\n\r\n%s", head, strlen(body), body);
    until(&fake.calls, 1);
    expect(h, "POST", "/api/sessions", body, 409, "being started");
    expect(h, "GET", "/api/sessions", NULL, 200, "[]");
    get_reply(fd, &r);
    assert_int_equal(r.status, 201);
    snprintf(path, sizeof path, "%s", reply_header(&r, "Location"));
    reply_free(&r);
    /* A change that starts a kernel, the session deleted meanwhile: no kernel stays. */
    putf(other, "PATCH %s%sContent-Length: 26\r\n\r\n{\"kernel\":{\"name\":\"fake\"}}", path, head);
    until(&fake.calls, 1);
    expect(h, "PATCH", path, "{}", 409, "being changed");
    expect(h, "DELETE", path, NULL, 204, NULL);
    get_reply(other, &r);
    assert_int_equal(r.status, 404);
    reply_free(&r);
    until(&fake.calls, 0);
    expect(h, "GET", "/api/kernels", NULL, 200, "[]");
    /* Clients that leave while their kernel starts. */
    putf(fd, "POST /api/sessions%sContent-Length: %zu\r\n\r\n%s", head, strlen(body), body);
    until(&fake.calls, 1);
    reset(fd);
    hang_up(other);
    until(&fake.calls, 0);
    expect(h, "GET", "/api/sessions", NULL, 200, "\"path\":\"a\"");
    harness_stop(h);
}

static void limits_and_failures_leave_nothing(void **state)
{
    struct front_config config = { .no_list_kernels = 1 };
    struct harness *h = harness_start(&config);

    (void)state;
    fake.max_kernels = 1;
    expect(h, "GET", "/api/sessions", NULL, 403, NULL);
    expect(h, "POST", "/api/sessions",
           "{\"path\":\"a\",\"type\":\"t\",\"kernel\":{\"name\":\"none\"}}", 501, "none");
    expect(h, "POST", "/api/sessions", "{\"path\":\"a\",\"type\":\"t\"}", 201, NULL);
    expect(h, "POST", "/api/sessions", "{\"path\":\"b\",\"type\":\"t\"}", 403, "Resource Limit");
    harness_stop(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_without_what_is_needed_are_refused),
        cmocka_unit_test(a_path_has_one_session),
        cmocka_unit_test(a_session_whose_kernel_has_gone_is_gone),
        cmocka_unit_test(changes_take_only_what_is_given),
        cmocka_unit_test(two_that_ask_at_once_do_not_mix),
        cmocka_unit_test(limits_and_failures_leave_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
