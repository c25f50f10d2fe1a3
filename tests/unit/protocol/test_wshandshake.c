/* The opening handshake: the RFC's own example, what is refused, subprotocols. */
#include "wshandshake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "httpparse.h"

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define V13 "Sec-WebSocket-Version: 13\r\n"
#define UP  "Connection: Upgrade\r\nUpgrade: websocket\r\n"

/* Parses "<line>\r\nHost: a\r\n<fields>\r\n"; the caller frees the parser. */
static struct httpparse *parse(const char *line, const char *fields)
{
    struct httpparse *p = httpparse_new(NULL);
    autofree char *text = NULL;
    size_t used;
    int n = asprintf(&text, "%s\r\nHost: a\r\n%s\r\n", line, fields);

    assert_true(n > 0);
    assert_int_equal(httpparse_feed(p, text, (size_t)n, &used, NULL), 1);
    return p;
}

static void the_example_of_the_rfc_is_answered_as_there(void **state)
{
    (void)state;
    struct httpparse *p = parse("GET /chat HTTP/1.1", UP KEY V13);
    char accept[WS_ACCEPT_TEXT];
    int status = 0;

    assert_int_equal(ws_handshake_check(httpparse_head(p), accept, &status, NULL), 0);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    httpparse_free(p);
}

static void each_missing_or_wrong_part_has_its_status(void **state)
{
    (void)state;
    static const struct {
        const char *line, *fields;
        int status; /* 0: taken */
    } rows[] = {
        { "GET / HTTP/1.1", UP KEY V13, 0 },
        { "GET / HTTP/1.1", "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n" KEY V13,
          0 },
        { "GET / HTTP/1.1", "Connection: upgrade\r\nUpgrade: h2c, websocket\r\n" KEY V13, 0 },
        { "GET / HTTP/1.1", UP V13 "Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEC==\r\n", 0 },
        { "POST / HTTP/1.1", UP KEY V13, 405 },
        { "get / HTTP/1.1", UP KEY V13, 405 },
        { "GET / HTTP/1.0", UP KEY V13, 400 },
        { "GET / HTTP/1.1", KEY V13, 400 },
        { "GET / HTTP/1.1", "Upgrade: websocket\r\n" KEY V13, 400 },
        { "GET / HTTP/1.1", "Connection: Upgrade\r\n" KEY V13, 400 },
        { "GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websockets\r\n" KEY V13, 400 },
        { "GET / HTTP/1.1", UP KEY, 426 },
        { "GET / HTTP/1.1", UP KEY "Sec-WebSocket-Version: 8\r\n", 426 },
        { "GET / HTTP/1.1", UP KEY "Sec-WebSocket-Version: 13, 8\r\n", 426 },
        { "GET / HTTP/1.1", UP KEY V13 V13, 400 },
        { "GET / HTTP/1.1", UP V13, 400 },
        { "GET / HTTP/1.1", UP V13 KEY KEY, 400 },
        { "GET / HTTP/1.1", UP V13 "Sec-WebSocket-Key:\r\n", 400 },
        { "GET / HTTP/1.1", UP V13 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\r\n", 400 },
        { "GET / HTTP/1.1", UP V13 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=a\r\n", 400 },
        { "GET / HTTP/1.1", UP V13 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ===\r\n", 400 },
        { "GET / HTTP/1.1", UP V13 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZV9f\r\n", 400 },
        { "GET / HTTP/1.1", UP V13 "Sec-WebSocket-Key: dGhl-HNhbXBsZSBub25jZQ==\r\n", 400 },
        { "GET / HTTP/1.1", UP KEY V13 "Content-Length: 1\r\n", 400 },
        { "GET / HTTP/1.1", UP KEY V13 "Transfer-Encoding: chunked\r\n", 400 },
        { "GET / HTTP/1.1", UP KEY V13 "Content-Length: 0\r\n", 0 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct httpparse *p = parse(rows[i].line, rows[i].fields);
        char accept[WS_ACCEPT_TEXT];
        int status = 0, rc = ws_handshake_check(httpparse_head(p), accept, &status, NULL);

        if (status != rows[i].status || rc != (rows[i].status == 0 ? 0 : -HC_EPARSE))
            fail_msg("%s, %s: %d", rows[i].line, rows[i].fields, status);
        httpparse_free(p);
    }
}

static void a_subprotocol_is_found_in_whichever_field_it_is_offered(void **state)
{
    (void)state;
    static const char v1[] = "v1.kernel.websocket.jupyter.org";
    static const struct {
        const char *fields;
        int offered;
    } rows[] = {
        { "Sec-WebSocket-Protocol: v1.kernel.websocket.jupyter.org\r\n", 1 },
        { "Sec-WebSocket-Protocol: a, v1.kernel.websocket.jupyter.org,b\r\n", 1 },
        { "Sec-WebSocket-Protocol: a\r\nsec-websocket-protocol:v1.kernel.websocket.jupyter.org\r\n",
          1 },
        { "", 0 },
        { "Sec-WebSocket-Protocol: a, b\r\n", 0 },
        { "Sec-WebSocket-Protocol: V1.kernel.websocket.jupyter.org\r\n", 0 },
        { "Sec-WebSocket-Protocol: v1.kernel.websocket.jupyter.org2\r\n", 0 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct httpparse *p = parse("GET / HTTP/1.1", rows[i].fields);

        assert_int_equal(ws_handshake_offers(httpparse_head(p), v1), rows[i].offered);
        httpparse_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_rfc_is_answered_as_there),
        cmocka_unit_test(each_missing_or_wrong_part_has_its_status),
        cmocka_unit_test(a_subprotocol_is_found_in_whichever_field_it_is_offered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
