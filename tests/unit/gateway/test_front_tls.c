/* The front behind TLS, over real sockets: handshakes of all kinds, ends, bounds. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "certs.h"
#include "err.h"
#include "fake_core.h"
#include "harness.h"

#define GET "GET /api HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: token secret\r\n\r\n"

enum { DAY = 86400 };

static struct cert ca, server;
static SSL_CTX *trusting;

static int make_all(void **state)
{
    (void)state;
    cert_make(&ca, "authority", NULL, -DAY, DAY);
    cert_make(&server, "server", &ca, -DAY, DAY);
    trusting = client_context(&ca, NULL);
    return 0;
}

static int free_all(void **state)
{
    (void)state;
    SSL_CTX_free(trusting);
    cert_free(&server);
    cert_free(&ca);
    return 0;
}

static struct harness *start(struct front_config config)
{
    config.tls_cert = server.pem;
    config.tls_key = server.key_pem;
    return harness_start(&config);
}

static SSL *begin_tls(SSL_CTX *ctx, int fd)
{
    SSL *ssl = SSL_new(ctx);

    assert_non_null(ssl);
    assert_int_equal(SSL_set_fd(ssl, fd), 1);
    SSL_set_connect_state(ssl);
    return ssl;
}

static SSL *dial_tls(struct harness *h)
{
    SSL *ssl = begin_tls(trusting, dial(h));

    assert_int_equal(SSL_connect(ssl), 1);
    return ssl;
}

static void hang_up_tls(SSL *ssl)
{
    close(SSL_get_fd(ssl));
    SSL_free(ssl);
}

static int open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

/* Reads one answer; 1 when it is a 200. */
static int answered(SSL *ssl)
{
    char text[8192] = "";
    size_t at = 0;
    int n;

    while (strstr(text, "\r\n\r\n") == NULL || strstr(text, "\"version\"") == NULL) {
        if (at == sizeof text - 1 ||
            (n = SSL_read(ssl, text + at, (int)(sizeof text - 1 - at))) <= 0)
            return 0;
        at += (size_t)n;
    }
    return strncmp(text, "HTTP/1.1 200 ", 13) == 0;
}

/* The first flight of a client, for half a handshake. */
static size_t client_hello(uint8_t *out, size_t size)
{
    SSL *ssl = SSL_new(trusting);
    BIO *to = BIO_new(BIO_s_mem()), *from = BIO_new(BIO_s_mem());
    int n;

    SSL_set_bio(ssl, to, from);
    SSL_set_connect_state(ssl);
    (void)SSL_do_handshake(ssl);
    n = BIO_read(from, out, (int)size);
    SSL_free(ssl);
    assert_true(n > 100);
    return (size_t)n;
}

static void requests_are_answered_on_one_connection(void **state)
{
    struct harness *h = start((struct front_config){ 0 });
    SSL *ssl = dial_tls(h);

    (void)state;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(SSL_write(ssl, GET, sizeof GET - 1), sizeof GET - 1);
        assert_true(answered(ssl));
    }
    for (size_t i = 0; i < sizeof GET - 1; i++)
        assert_int_equal(SSL_write(ssl, &GET[i], 1), 1);
    assert_true(answered(ssl));
    hang_up_tls(ssl);
    harness_stop(h);
}

static void a_request_that_is_closed_behind_is_answered(void **state)
{
    struct harness *h = start((struct front_config){ 0 });
    SSL *ssl = dial_tls(h);
    char c;

    (void)state;
    assert_int_equal(SSL_write(ssl, GET, sizeof GET - 1), sizeof GET - 1);
    assert_int_equal(SSL_shutdown(ssl), 0);
    assert_true(answered(ssl));
    assert_int_equal(SSL_read(ssl, &c, 1), 0);
    assert_int_equal(SSL_get_error(ssl, 0), SSL_ERROR_ZERO_RETURN);
    hang_up_tls(ssl);
    harness_stop(h);
}

static void a_server_that_stops_says_good_bye(void **state)
{
    struct harness *h = start((struct front_config){ 0 });
    SSL *ssl = dial_tls(h);
    char c;

    (void)state;
    assert_int_equal(SSL_write(ssl, GET, sizeof GET - 1), sizeof GET - 1);
    assert_true(answered(ssl));
    harness_stop_begin(h);
    assert_int_equal(SSL_read(ssl, &c, 1), 0);
    assert_int_equal(SSL_get_error(ssl, 0), SSL_ERROR_ZERO_RETURN);
    hang_up_tls(ssl);
    harness_stop(h);
}

static void plain_http_gets_an_answer_that_it_can_read(void **state)
{
    struct harness *h = start((struct front_config){ 0 });
    struct reply r;
    int fd = dial(h);

    (void)state;
    put(fd, GET);
    get_reply(fd, &r);
    assert_int_equal(r.status, 400);
    assert_non_null(strstr(r.body, "https://"));
    reply_free(&r);
    assert_true(ended(fd));
    hang_up(fd);
    harness_stop(h);
}

static void garbage_ends_the_connection(void **state)
{
    struct harness *h = start((struct front_config){ 0 });
    int fd = dial(h);
    SSL *ssl;

    (void)state;
    put(fd, "\x01\x02\x03 what is this\r\n\r\n");
    assert_true(ended(fd));
    hang_up(fd);
    ssl = dial_tls(h); /* in the middle of a connection too */
    put(SSL_get_fd(ssl), "no record at all, and long enough to be told as such");
    assert_true(ended(SSL_get_fd(ssl)));
    hang_up_tls(ssl);
    harness_stop(h);
}

/* As many answers as fill the queue, and then the head of a message whose end never comes: nothing
 * could be sent, nothing was read, and nobody noticed when the client left. */
static void who_begins_a_handshake_message_behind_its_requests_is_ended(void **state)
{
    static const uint8_t head[] = { SSL3_MT_KEY_UPDATE, 0, 0, 1 };
    struct harness *h = start((struct front_config){ .stall_ms = 200 });
    SSL_CTX *odd = odd_client_context(&ca);
    uint8_t record[2 * ODD_RECORD_MAX];
    SSL *ssl = begin_tls(odd, dial(h));
    BIO *wire = BIO_new(BIO_s_mem());
    char requests[110 * 28 + 1] = "", *p = NULL;

    (void)state;
    for (size_t at = 0; at + 1 < sizeof requests; at += 28)
        memcpy(requests + at, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n", 28);
    assert_int_equal(SSL_connect(ssl), 1);
    SSL_set0_wbio(ssl, wire);
    assert_true(SSL_write(ssl, requests, sizeof requests - 1) > 0);
    size_t n = odd_record(1, head, sizeof head, record);
    assert_int_equal(BIO_write(wire, record, (int)n), n);
    long size = BIO_get_mem_data(wire, &p);
    put_bytes(SSL_get_rfd(ssl), p, (size_t)size); /* read at once, as it is sent */
    assert_true(ended(SSL_get_rfd(ssl)));
    close(SSL_get_rfd(ssl));
    SSL_free(ssl);
    SSL_CTX_free(odd);
    harness_stop(h);
}

static void handshakes_that_stall_end_at_the_deadline(void **state)
{
    struct harness *h = start((struct front_config){ .head_ms = 300 });
    uint8_t hello[4096];
    size_t n = client_hello(hello, sizeof hello);
    int silent = dial(h), half = dial(h), whole = dial(h), slow = dial(h);

    (void)state;
    put_bytes(half, hello, n / 2);
    put_bytes(whole, hello, n);
    for (size_t i = 0; i < n / 2; i++) { /* a byte now and then is no excuse */
        put_bytes(slow, hello + i, 1);
        usleep(2000);
    }
    assert_true(ended(slow));
    assert_true(ended(silent));
    assert_true(ended(half));
    assert_true(ended(whole));
    hang_up(silent);
    hang_up(half);
    hang_up(whole);
    hang_up(slow);
    harness_stop(h);
}

static void handshakes_that_are_dropped_leave_nothing_behind(void **state)
{
    struct harness *h = start((struct front_config){ 0 });
    uint8_t hello[4096];
    size_t n = client_hello(hello, sizeof hello);
    int before = open_files();
    SSL *ssl;

    (void)state;
    for (int i = 0; i < 300; i++) {
        int fd = dial(h);

        put_bytes(fd, hello, (size_t)i * 7 % (n + 1));
        i % 2 ? reset(fd) : hang_up(fd);
    }
    ssl = dial_tls(h);
    assert_int_equal(SSL_write(ssl, GET, sizeof GET - 1), sizeof GET - 1);
    assert_true(answered(ssl));
    hang_up_tls(ssl);
    for (int i = 0; i < DEADLINE_MS / 10 && open_files() > before; i++)
        usleep(10000);
    assert_true(open_files() <= before);
    harness_stop(h);
}

static void a_crowd_in_the_middle_of_handshakes_keeps_nobody_out(void **state)
{
    struct harness *h = start((struct front_config){ .max_connections = 40 });
    uint8_t hello[4096];
    size_t n = client_hello(hello, sizeof hello);
    int fds[30];
    SSL *ssl;

    (void)state;
    for (int i = 0; i < 30; i++) { /* 11 at a time */
        fds[i] = dial(h);
        put_bytes(fds[i], hello, i % 2 ? n : 1);
    }
    ssl = dial_tls(h);
    assert_int_equal(SSL_write(ssl, GET, sizeof GET - 1), sizeof GET - 1);
    assert_true(answered(ssl));
    for (int i = 0; i < 10; i++) /* who waited longest gave way */
        assert_true(ended(fds[i]));
    for (int i = 0; i < 30; i++)
        hang_up(fds[i]);
    hang_up_tls(ssl);
    harness_stop(h);
}

static void an_empty_file_is_never_a_server_without_tls(void **state)
{
    const struct front_config configs[] = {
        { .tls_cert = "" },
        { .tls_cert = server.pem, .tls_key = "" },
        { .tls_cert = server.pem, .tls_key = server.key_pem, .tls_client_ca = "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        struct err e = { 0 };

        assert_int_equal(front_check(&configs[i], 1, &e), -EINVAL);
        assert_non_null(strstr(e.msg, "option --tls-"));
    }
}

static void only_a_start_asks_for_a_certificate_that_is_valid_now(void **state)
{
    struct cert old = { 0 };
    struct err e = { 0 };

    (void)state;
    cert_make(&old, "server", &ca, -2 * DAY, -DAY);
    const struct front_config config = { .tls_cert = old.pem, .tls_key = old.key_pem };
    assert_int_equal(front_check(&config, 0, &e), 0);
    assert_int_equal(front_check(&config, 1, &e), -EINVAL);
    assert_non_null(strstr(e.msg, "expired"));
    cert_free(&old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_answered_on_one_connection),
        cmocka_unit_test(a_request_that_is_closed_behind_is_answered),
        cmocka_unit_test(a_server_that_stops_says_good_bye),
        cmocka_unit_test(plain_http_gets_an_answer_that_it_can_read),
        cmocka_unit_test(garbage_ends_the_connection),
        cmocka_unit_test(who_begins_a_handshake_message_behind_its_requests_is_ended),
        cmocka_unit_test(handshakes_that_stall_end_at_the_deadline),
        cmocka_unit_test(handshakes_that_are_dropped_leave_nothing_behind),
        cmocka_unit_test(an_empty_file_is_never_a_server_without_tls),
        cmocka_unit_test(only_a_start_asks_for_a_certificate_that_is_valid_now),
        cmocka_unit_test(a_crowd_in_the_middle_of_handshakes_keeps_nobody_out),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
