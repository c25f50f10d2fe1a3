/* TLS without a socket: a client in memory on the other side. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "certs.h"
#include "err.h"
#include "tls.h"
#include "tlscontext.h"

enum { DAY = 86400, ROOM = 256 * 1024 };

static struct cert ca, server, other_ca, client, stranger;
static uint8_t plain[ROOM + TLS_RECORD_MAX];
static size_t plain_n; /* what the server decrypted in this test */

static int make_all(void **state)
{
    (void)state;
    cert_make(&ca, "authority", NULL, -DAY, DAY);
    cert_make(&server, "server", &ca, -DAY, DAY);
    cert_make(&client, "client", &ca, -DAY, DAY);
    cert_make(&other_ca, "another authority", NULL, -DAY, DAY);
    cert_make(&stranger, "stranger", &other_ca, -DAY, DAY);
    return 0;
}

static int free_all(void **state)
{
    (void)state;
    cert_free(&ca);
    cert_free(&server);
    cert_free(&client);
    cert_free(&other_ca);
    cert_free(&stranger);
    return 0;
}

/* ---- two ends ------------------------------------------------------------- */

struct ends {
    struct tlscontext *context;
    struct tls *tls;
    SSL_CTX *client_ctx;
    SSL *ssl;
    BIO *to_client, *from_client;
    size_t piece; /* of what the server gets at a time */
    struct err e; /* the server's */
    int rc;
};

/* Of a client_ctx. */
static void connect_end(struct ends *n)
{
    n->ssl = SSL_new(n->client_ctx);
    n->to_client = BIO_new(BIO_s_mem());
    n->from_client = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(n->to_client, -1);
    SSL_set_bio(n->ssl, n->to_client, n->from_client);
    SSL_set_connect_state(n->ssl);
}

static void open_ends(struct ends *n, const char *client_ca, const struct cert *own)
{
    const struct tlscontext_config config = { server.pem, server.key_pem, client_ca };
    struct err e = { 0 };

    plain_n = 0;
    if (tlscontext_new(&config, &n->context, &e) != 0)
        fail_msg("%s", e.msg);
    n->tls = tls_new(n->context);
    assert_non_null(n->tls);
    n->client_ctx = client_context(&ca, own);
    connect_end(n);
    n->piece = ROOM;
}

static void close_ends(struct ends *n)
{
    SSL_free(n->ssl);
    SSL_CTX_free(n->client_ctx);
    n->tls = tls_free(n->tls);
    n->context = tlscontext_free(n->context);
}

static void feed(struct ends *n, const void *p, size_t size)
{
    for (size_t at = 0; at < size && n->rc == 0;) {
        size_t part = size - at < n->piece ? size - at : n->piece, got = 0;

        n->rc = tls_feed(n->tls, (struct view){ (const uint8_t *)p + at, part }, plain + plain_n,
                         &got, &n->e);
        plain_n += got;
        at += part;
    }
}

/* Carries what each side has for the other; 1 when anything moved. */
static int carry(struct ends *n)
{
    struct view wire = buf_view(tls_wire(n->tls));
    char *p = NULL;
    long size = BIO_get_mem_data(n->from_client, &p);
    int moved = wire.n > 0 || size > 0;

    if (wire.n > 0)
        assert_int_equal(BIO_write(n->to_client, wire.p, (int)wire.n), wire.n);
    buf_consume(tls_wire(n->tls), wire.n);
    if (size > 0)
        feed(n, p, (size_t)size);
    (void)BIO_reset(n->from_client);
    return moved;
}

/* The whole handshake. Returns the client's last error. */
static int handshake(struct ends *n)
{
    int rc;

    do {
        rc = SSL_do_handshake(n->ssl);
    } while (carry(n));
    return rc == 1 ? SSL_ERROR_NONE : SSL_get_error(n->ssl, rc);
}

static void say(struct ends *n, const char *text)
{
    assert_int_equal(SSL_write(n->ssl, text, (int)strlen(text)), strlen(text));
    carry(n);
}

static void hears(struct ends *n, const char *text)
{
    char got[256] = "";

    assert_int_equal(tls_write(n->tls, view_cstr(text)), 0);
    carry(n);
    assert_int_equal(SSL_read(n->ssl, got, sizeof got - 1), strlen(text));
    assert_string_equal(got, text);
}

/* ---- the tests ------------------------------------------------------------ */

static void both_versions_work_in_pieces_of_any_size(void **state)
{
    static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
    static const size_t pieces[] = { 1, 2, 5, 7, 100, 1459, ROOM };

    (void)state;
    for (size_t v = 0; v < 2; v++)
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            struct ends n = { 0 };

            open_ends(&n, NULL, NULL);
            n.piece = pieces[i];
            SSL_set_max_proto_version(n.ssl, versions[v]);
            assert_false(tls_ready(n.tls));
            assert_int_equal(handshake(&n), SSL_ERROR_NONE);
            assert_true(tls_ready(n.tls));
            assert_int_equal(SSL_version(n.ssl), versions[v]);
            say(&n, "GET / HTTP/1.1\r\n");
            say(&n, "\r\n");
            assert_int_equal(plain_n, 18);
            assert_memory_equal(plain, "GET / HTTP/1.1\r\n\r\n", 18);
            hears(&n, "HTTP/1.1 200 OK\r\n\r\n");
            close_ends(&n);
        }
}

static void old_versions_are_refused_by_an_alert(void **state)
{
    struct ends n = { 0 };

    (void)state;
    open_ends(&n, NULL, NULL);
    SSL_CTX_set_security_level(n.client_ctx, 0);
    SSL_set_security_level(n.ssl, 0);
    SSL_set_min_proto_version(n.ssl, TLS1_VERSION);
    SSL_set_max_proto_version(n.ssl, TLS1_1_VERSION);
    assert_int_not_equal(handshake(&n), SSL_ERROR_NONE);
    assert_int_equal(n.rc, -HC_EPARSE);
    assert_non_null(strstr(n.e.msg, "TLS handshake: "));
    close_ends(&n);
}

static void the_chain_is_sent_with_the_certificate(void **state)
{
    autofree char *both = joined(server.pem, ca.pem);
    struct ends n = { 0 };
    char *keep = server.pem;

    (void)state;
    server.pem = both;
    open_ends(&n, NULL, NULL);
    server.pem = keep;
    assert_int_equal(handshake(&n), SSL_ERROR_NONE);
    assert_int_equal(sk_X509_num(SSL_get_peer_cert_chain(n.ssl)), 2);
    close_ends(&n);
}

static void garbage_gets_an_alert_and_the_end(void **state)
{
    (void)state;
    srand(4711);
    for (int round = 0; round < 300; round++) {
        struct ends n = { 0 };
        uint8_t bytes[600];

        open_ends(&n, NULL, NULL);
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)rand();
        if (bytes[0] >= 'A' && bytes[0] <= 'Z')
            bytes[0] = 0x80;
        if (round % 3 == 1) /* a record of the right kind, but no message in it */
            memcpy(bytes, "\x16\x03\x01\x02\x00", 5);
        n.piece = round % 2 ? 1 : ROOM;
        feed(&n, bytes, sizeof bytes);
        /* What looks like the head of a longer record may still become right. */
        if (n.rc == 0)
            assert_false(tls_ready(n.tls));
        else
            assert_int_equal(n.rc, -HC_EPARSE);
        assert_int_equal(plain_n, 0);
        tls_bye(n.tls);
        close_ends(&n);
    }
}

static void plain_http_is_told_the_right_scheme(void **state)
{
    struct ends n = { 0 };
    struct view wire;
    autofree char *text = NULL;
    char *body;

    (void)state;
    open_ends(&n, NULL, NULL);
    n.piece = 1;
    feed(&n, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
    assert_int_equal(n.rc, -HC_EPARSE);
    wire = buf_view(tls_wire(n.tls));
    text = view_dup(wire);
    assert_memory_equal(text, "HTTP/1.1 400 ", 13);
    body = strstr(text, "\r\n\r\n") + 4;
    assert_int_equal(strtoul(strstr(text, "Content-Length: ") + 16, NULL, 10), strlen(body));
    assert_non_null(strstr(body, "https://"));
    close_ends(&n);
}

static void changed_bytes_end_the_connection(void **state)
{
    struct ends n = { 0 };
    char *p = NULL;

    (void)state;
    open_ends(&n, NULL, NULL);
    assert_int_equal(handshake(&n), SSL_ERROR_NONE);
    assert_int_equal(SSL_write(n.ssl, "hello", 5), 5);
    BIO_get_mem_data(n.from_client, &p);
    p[8] ^= 1;
    carry(&n);
    assert_int_equal(n.rc, -HC_EPARSE);
    assert_int_equal(plain_n, 0);
    close_ends(&n);
}

static void only_http_1_1_is_offered(void **state)
{
    const unsigned char *chosen = NULL;
    struct ends n = { 0 };
    unsigned size = 0;

    (void)state;
    open_ends(&n, NULL, NULL);
    SSL_set_alpn_protos(n.ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    assert_int_equal(handshake(&n), SSL_ERROR_NONE);
    SSL_get0_alpn_selected(n.ssl, &chosen, &size);
    assert_int_equal(size, 8);
    assert_memory_equal(chosen, "http/1.1", 8);
    close_ends(&n);

    n = (struct ends){ 0 };
    open_ends(&n, NULL, NULL);
    SSL_set_alpn_protos(n.ssl, (const unsigned char *)"\x02h2", 3);
    assert_int_not_equal(handshake(&n), SSL_ERROR_NONE);
    assert_int_equal(n.rc, -HC_EPARSE);
    close_ends(&n);
}

static void nobody_renegotiates(void **state)
{
    struct ends n = { 0 };
    char c;

    (void)state;
    open_ends(&n, NULL, NULL);
    SSL_set_max_proto_version(n.ssl, TLS1_2_VERSION);
    assert_int_equal(handshake(&n), SSL_ERROR_NONE);
    assert_int_equal(SSL_renegotiate(n.ssl), 1);
    for (int i = 0; i < 10 && SSL_do_handshake(n.ssl) != 1; i++)
        carry(&n);
    assert_int_equal(SSL_read(n.ssl, &c, 1), -1);
    assert_true(SSL_renegotiate_pending(n.ssl) || SSL_get_error(n.ssl, -1) == SSL_ERROR_SSL);
    close_ends(&n);
}

/* Each asks for an answer; who does not read them is not served for ever. */
static void key_updates_without_end_are_bounded(void **state)
{
    struct ends n = { 0 };
    char *p = NULL;

    (void)state;
    open_ends(&n, NULL, NULL);
    assert_int_equal(handshake(&n), SSL_ERROR_NONE);
    for (int i = 0; i < 30000 && n.rc == 0; i++) {
        assert_int_equal(SSL_key_update(n.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        assert_int_equal(SSL_do_handshake(n.ssl), 1);
        long size = BIO_get_mem_data(n.from_client, &p);
        feed(&n, p, (size_t)size);
        (void)BIO_reset(n.from_client);
        assert_true(buf_len(tls_wire(n.tls)) <= TLS_WIRE_MAX);
    }
    close_ends(&n);
}

/* Until the rest came the server could send nothing, and there is no clock for that. */
static void a_handshake_message_in_parts_after_the_handshake_is_the_end(void **state)
{
    static const uint8_t head[] = { SSL3_MT_KEY_UPDATE, 0, 0, 1, SSL_KEY_UPDATE_NOT_REQUESTED };
    uint8_t record[2 * ODD_RECORD_MAX];

    (void)state;
    for (size_t size = sizeof head; size >= sizeof head - 1; size--) {
        struct ends n = { 0 };

        open_ends(&n, NULL, NULL);
        SSL_free(n.ssl);
        SSL_CTX_free(n.client_ctx);
        n.client_ctx = odd_client_context(&ca);
        connect_end(&n);
        assert_int_equal(handshake(&n), SSL_ERROR_NONE);
        feed(&n, record, odd_record(0, head, size, record));
        if (size == sizeof head) { /* whole: this is how such a record is made */
            assert_int_equal(n.rc, 0);
            assert_true(tls_ready(n.tls));
            hears(&n, "and on it goes");
        } else {
            assert_int_equal(n.rc, -HC_EPARSE);
            assert_non_null(strstr(n.e.msg, "in parts"));
        }
        close_ends(&n);
    }
}

static void both_ends_say_good_bye(void **state)
{
    struct ends n = { 0 };
    char c;

    (void)state;
    open_ends(&n, NULL, NULL);
    assert_int_equal(handshake(&n), SSL_ERROR_NONE);
    assert_int_equal(SSL_write(n.ssl, "last", 4), 4);
    assert_int_equal(SSL_shutdown(n.ssl), 0);
    carry(&n);
    assert_int_equal(plain_n, 4);
    assert_true(tls_ended(n.tls));
    hears(&n, "the answer comes all the same");
    tls_bye(n.tls);
    tls_bye(n.tls);
    carry(&n);
    assert_int_equal(SSL_read(n.ssl, &c, 1), 0);
    assert_int_equal(SSL_get_error(n.ssl, 0), SSL_ERROR_ZERO_RETURN);
    close_ends(&n);
}

static void a_good_bye_before_the_handshake_says_nothing(void **state)
{
    struct ends n = { 0 };

    (void)state;
    open_ends(&n, NULL, NULL);
    tls_bye(n.tls);
    assert_int_equal(buf_len(tls_wire(n.tls)), 0);
    close_ends(&n);
}

static void clients_without_a_right_certificate_are_refused(void **state)
{
    static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
    const struct {
        const struct cert *own;
        int right;
    } cases[] = { { &client, 1 }, { NULL, 0 }, { &stranger, 0 } };

    (void)state;
    for (size_t v = 0; v < 2; v++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct ends n = { 0 };

            open_ends(&n, ca.pem, cases[i].own);
            SSL_set_max_proto_version(n.ssl, versions[v]);
            (void)handshake(&n);
            assert_int_equal(n.rc, cases[i].right ? 0 : -HC_EPARSE);
            assert_int_equal(tls_ready(n.tls), cases[i].right);
            if (cases[i].own == &stranger)
                assert_non_null(strstr(n.e.msg, "client certificate: "));
            close_ends(&n);
        }
}

static void a_session_is_resumed_by_its_ticket_also_with_client_certificates(void **state)
{
    struct ends n = { 0 };
    SSL_SESSION *session;

    (void)state;
    open_ends(&n, ca.pem, &client);
    SSL_set_max_proto_version(n.ssl, TLS1_2_VERSION);
    assert_int_equal(handshake(&n), SSL_ERROR_NONE);
    session = SSL_get1_session(n.ssl);
    SSL_set_shutdown(n.ssl, SSL_SENT_SHUTDOWN); /* else the session counts as spoilt */
    SSL_free(n.ssl);
    n.tls = tls_free(n.tls);

    n.tls = tls_new(n.context);
    connect_end(&n);
    SSL_set_max_proto_version(n.ssl, TLS1_2_VERSION);
    assert_int_equal(SSL_set_session(n.ssl, session), 1);
    assert_int_equal(handshake(&n), SSL_ERROR_NONE);
    assert_true(SSL_session_reused(n.ssl));
    assert_int_equal(n.rc, 0);
    SSL_SESSION_free(session);
    close_ends(&n);
}

static void a_large_answer_goes_through_whole(void **state)
{
    struct ends n = { 0 };
    uint8_t *data = malloc(100000), *got = calloc(1, 100000);
    size_t at = 0;

    (void)state;
    for (size_t i = 0; i < 100000; i++)
        data[i] = (uint8_t)(i * 7);
    open_ends(&n, NULL, NULL);
    assert_int_equal(handshake(&n), SSL_ERROR_NONE);
    assert_int_equal(tls_write(n.tls, (struct view){ data, 100000 }), 0);
    carry(&n);
    for (int r; at < 100000 && (r = SSL_read(n.ssl, got + at, (int)(100000 - at))) > 0;)
        at += (size_t)r;
    assert_int_equal(at, 100000);
    assert_memory_equal(got, data, 100000);
    free(data);
    free(got);
    close_ends(&n);
}

/* ---- certificates --------------------------------------------------------- */

static void refused(const char *cert, const char *key, const char *client_ca, const char *option,
                    const char *what)
{
    const struct tlscontext_config config = { cert, key, client_ca };
    struct tlscontext *context = NULL;
    struct err e = { 0 };

    if (tlscontext_new(&config, &context, &e) != -EINVAL || context != NULL)
        fail_msg("%s: %s: not refused: %s", option, what, e.msg);
    if (strstr(e.msg, option) == NULL || strstr(e.msg, what) == NULL)
        fail_msg("'%s' does not tell '%s' and '%s'", e.msg, option, what);
    assert_null(strstr(e.msg, "PRIVATE"));
}

static void what_is_wrong_with_the_files_is_told_by_the_option(void **state)
{
    autofree char *encrypted = cert_encrypted_key(&server);
    autofree char *cut = joined(server.pem, ca.pem);
    struct tlscontext *context = NULL;

    (void)state;
    char *second = cut + strlen(server.pem);
    second[200] = '\0';
    refused("", server.key_pem, NULL, "--tls-cert", "no certificate");
    refused("hello\n", server.key_pem, NULL, "--tls-cert", "no certificate");
    refused(server.key_pem, server.key_pem, NULL, "--tls-cert", "no certificate");
    refused(cut, server.key_pem, NULL, "--tls-cert", "damaged");
    refused(server.pem, "", NULL, "--tls-key", "no private key");
    refused(server.pem, server.pem, NULL, "--tls-key", "no private key");
    refused(server.pem, NULL, NULL, "--tls-key", "no private key");
    refused(server.pem, client.key_pem, NULL, "--tls-key", "does not belong");
    refused(server.pem, encrypted, NULL, "--tls-key", "encrypted");
    refused(server.pem, server.key_pem, "", "--tls-client-ca", "no certificate");
    refused(server.pem, server.key_pem, server.key_pem, "--tls-client-ca", "no certificate");
    refused(server.pem, server.key_pem, second, "--tls-client-ca", "damaged");

    autofree char *both = joined(server.key_pem, server.pem);
    assert_int_equal(tlscontext_new(&(struct tlscontext_config){ .cert = both }, &context, NULL),
                     0);
    assert_int_equal(tlscontext_check_dates(context, NULL), 0);
    tlscontext_free(context);
}

static void dates_are_looked_at_apart(void **state)
{
    static const struct {
        long from, to;
        const char *what;
    } cases[] = { { -2 * DAY, -DAY, "expired" }, { DAY, 2 * DAY, "not valid yet" } };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tlscontext *context = NULL;
        struct cert c = { 0 };
        struct err e = { 0 };

        cert_make(&c, "server", &ca, cases[i].from, cases[i].to);
        const struct tlscontext_config config = { c.pem, c.key_pem, NULL };
        assert_int_equal(tlscontext_new(&config, &context, NULL), 0);
        assert_int_equal(tlscontext_check_dates(context, &e), -EINVAL);
        assert_non_null(strstr(e.msg, cases[i].what));
        assert_non_null(strstr(e.msg, "--tls-cert"));
        tlscontext_free(context);
        cert_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_versions_work_in_pieces_of_any_size),
        cmocka_unit_test(old_versions_are_refused_by_an_alert),
        cmocka_unit_test(the_chain_is_sent_with_the_certificate),
        cmocka_unit_test(garbage_gets_an_alert_and_the_end),
        cmocka_unit_test(plain_http_is_told_the_right_scheme),
        cmocka_unit_test(changed_bytes_end_the_connection),
        cmocka_unit_test(only_http_1_1_is_offered),
        cmocka_unit_test(nobody_renegotiates),
        cmocka_unit_test(key_updates_without_end_are_bounded),
        cmocka_unit_test(a_handshake_message_in_parts_after_the_handshake_is_the_end),
        cmocka_unit_test(both_ends_say_good_bye),
        cmocka_unit_test(a_good_bye_before_the_handshake_says_nothing),
        cmocka_unit_test(clients_without_a_right_certificate_are_refused),
        cmocka_unit_test(a_session_is_resumed_by_its_ticket_also_with_client_certificates),
        cmocka_unit_test(a_large_answer_goes_through_whole),
        cmocka_unit_test(what_is_wrong_with_the_files_is_told_by_the_option),
        cmocka_unit_test(dates_are_looked_at_apart),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
