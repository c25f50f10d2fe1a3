/* Peers, lists of them, and whose word about a request counts. */
#include <arpa/inet.h>
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

#include "arrival.h"
#include "err.h"
#include "httphead.h"
#include "httpparse.h"
#include "peer.h"

static struct peer peer(const char *text)
{
    struct peer p = { 0 };

    if (strcmp(text, "unix") == 0)
        return (struct peer){ .family = AF_UNIX };
    assert_true(peer_parse(view_cstr(text), &p));
    return p;
}

static void addresses_are_read_as_proxies_write_them(void **state)
{
    static const char *const good[][2] = {
        { "192.0.2.1", "192.0.2.1" },
        { "192.0.2.1:4711", "192.0.2.1:4711" },
        { "2001:db8::1", "2001:db8::1" },
        { "[2001:db8::1]", "2001:db8::1" },
        { "[2001:db8::1]:4711", "[2001:db8::1]:4711" },
        { "::ffff:192.0.2.1", "192.0.2.1" },
        { "::", "::" },
    };
    static const char *const bad[] = { "",          "unknown",  "_hidden",   "1.2.3",
                                       "1.2.3.4.5", "1.2.3.4:", "1.2.3.4:x", "1.2.3.4:65536",
                                       "[::1",      "[::1]x",   "[::1]:",    "::1::",
                                       "1.2.3.4 ",  "[]",       "256.1.1.1" };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct peer p = peer(good[i][0]);
        char text[PEER_TEXT];

        assert_string_equal(peer_text(&p, text), good[i][1]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct peer p;

        if (peer_parse(view_cstr(bad[i]), &p))
            fail_msg("'%s' was taken for an address", bad[i]);
    }
}

static void lists_hold_addresses_nets_and_unix_sockets(void **state)
{
    static const struct {
        const char *list, *peer;
        int in;
    } cases[] = {
        { "10.0.0.0/8", "10.1.2.3", 1 },
        { "10.0.0.0/8", "11.1.2.3", 0 },
        { "192.0.2.128/25", "192.0.2.129", 1 },
        { "192.0.2.128/25", "192.0.2.127", 0 },
        { "192.0.2.1", "192.0.2.1:80", 1 },
        { "192.0.2.1", "192.0.2.2", 0 },
        { "0.0.0.0/0", "8.8.8.8", 1 },
        { "0.0.0.0/0", "2001:db8::1", 0 },
        { "2001:db8::/33", "2001:db8:7fff::1", 1 },
        { "2001:db8::/33", "2001:db8:8000::1", 0 },
        { "::1", "::1", 1 },
        { "127.0.0.1", "::ffff:127.0.0.1", 1 },
        { "unix", "unix", 1 },
        { "127.0.0.1,::1", "unix", 0 },
        { "1.1.1.1, 2.2.2.2 ,unix", "2.2.2.2", 1 },
        { NULL, "1.1.1.1", 0 },
        { "", "unix", 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct peer_list list;
        struct peer p = peer(cases[i].peer);
        struct err e = { 0 };

        if (peer_list_parse(cases[i].list, &list, &e) != 0)
            fail_msg("'%s': %s", cases[i].list, e.msg);
        if (peer_list_has(&list, &p) != cases[i].in)
            fail_msg("'%s' and %s", cases[i].list, cases[i].peer);
    }
}

static void a_peer_that_is_not_known_is_in_no_list(void **state)
{
    struct peer_list list;
    struct peer nobody = { 0 };

    (void)state;
    assert_int_equal(peer_list_parse("0.0.0.0/0,::/0,unix", &list, NULL), 0);
    assert_false(peer_list_has(&list, &nobody));
}

static void what_is_no_list_is_told(void **state)
{
    static const char *const bad[] = { "x", "1.2.3.4/33", "1.2.3.4/",  "::1/129",  "1.2.3.4,,::1",
                                       ",", "1.2.3.4,",   "1.2.3.4/a", "10.0.0/8", "localhost",
                                       " " };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct peer_list list;
        struct err e = { 0 };

        if (peer_list_parse(bad[i], &list, &e) != -EINVAL || e.msg[0] == '\0')
            fail_msg("'%s' was taken for a list", bad[i]);
    }
}

static void a_unix_socket_tells_who_is_there(void **state)
{
    int pair[2];
    char text[PEER_TEXT], want[PEER_TEXT];
    struct peer p;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    p = peer_of_socket(pair[0]);
    assert_int_equal(p.family, AF_UNIX);
    snprintf(want, sizeof want, "unix:uid=%u,pid=%u", (unsigned)getuid(), (unsigned)getpid());
    assert_string_equal(peer_text(&p, text), want);
    close(pair[0]);
    close(pair[1]);
    p = peer_of_socket(pair[0]);
    assert_string_equal(peer_text(&p, text), "");
}

/* ---- arrivals ------------------------------------------------------------- */

static void arrive(const char *by_peer, const char *trusted, const char *headers,
                   const char *client, const char *host, enum arrival_scheme scheme)
{
    struct httpparse *parse = httpparse_new(NULL);
    struct peer p = peer(by_peer);
    struct peer_list list;
    struct arrival a;
    char head[4096], text[PEER_TEXT];
    size_t used;
    int n = snprintf(head, sizeof head, "GET / HTTP/1.1\r\nHost: inner:1\r\n%s\r\n", headers);
    const struct arrival_by by = { .peer = &p, .trusted = &list };

    assert_int_equal(peer_list_parse(trusted, &list, NULL), 0);
    assert_int_equal(httpparse_feed(parse, (const uint8_t *)head, (size_t)n, &used, NULL), 1);
    arrival_read(&by, httpparse_head(parse), &a);
    assert_string_equal(peer_text(&a.client, text), client);
    assert_true(view_equals(a.host, host));
    assert_int_equal(a.scheme, scheme);
    httpparse_free(parse);
}

#define ALL                                                           \
    "X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Host: lab.example\r\n" \
    "X-Forwarded-Proto: https\r\n"

static void only_trusted_proxies_are_believed(void **state)
{
    (void)state;
    arrive("10.0.0.1", "10.0.0.0/8", ALL, "192.0.2.9", "lab.example", SCHEME_HTTPS);
    arrive("unix", "unix", ALL, "192.0.2.9", "lab.example", SCHEME_HTTPS);
    arrive("11.0.0.1", "10.0.0.0/8", ALL, "11.0.0.1", "inner:1", SCHEME_UNKNOWN);
    arrive("11.0.0.1", "", ALL, "11.0.0.1", "inner:1", SCHEME_UNKNOWN);
    arrive("11.0.0.1", "unix", ALL, "11.0.0.1", "inner:1", SCHEME_UNKNOWN);
    arrive("10.0.0.1", "10.0.0.1", "", "10.0.0.1", "inner:1", SCHEME_UNKNOWN);
}

static void what_a_client_invents_before_its_proxy_does_not_count(void **state)
{
    (void)state;
    arrive("10.0.0.1", "10.0.0.1", "X-Forwarded-For: 1.1.1.1, 192.0.2.9\r\n", "192.0.2.9",
           "inner:1", SCHEME_UNKNOWN);
    arrive("10.0.0.1", "10.0.0.1",
           "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 192.0.2.9\r\n"
           "X-Forwarded-Host: evil.example, lab.example:8443\r\n"
           "X-Forwarded-Proto: ftp, http\r\n",
           "192.0.2.9", "lab.example:8443", SCHEME_HTTP);
    /* A chain: all that is trusted is walked through. */
    arrive("10.0.0.1", "10.0.0.0/24", "X-Forwarded-For: 1.1.1.1, 192.0.2.9, 10.0.0.3, 10.0.0.2\r\n",
           "192.0.2.9", "inner:1", SCHEME_UNKNOWN);
    arrive("10.0.0.1", "10.0.0.0/24", "X-Forwarded-For: 10.0.0.3, 10.0.0.2\r\n", "10.0.0.3",
           "inner:1", SCHEME_UNKNOWN);
}

static void nonsense_of_a_proxy_is_not_taken(void **state)
{
    char many[2000] = "X-Forwarded-For: 192.0.2.9";

    (void)state;
    arrive("10.0.0.1", "10.0.0.1", "X-Forwarded-For: 1.1.1.1, unknown\r\n", "10.0.0.1", "inner:1",
           SCHEME_UNKNOWN);
    arrive("10.0.0.1", "10.0.0.1",
           "X-Forwarded-Host: a/b\r\nX-Forwarded-Proto: wss\r\nX-Forwarded-For: ,\r\n", "10.0.0.1",
           "inner:1", SCHEME_UNKNOWN);
    for (int i = 0; i < 100; i++)
        strcat(many, ",10.0.0.2");
    strcat(many, "\r\n");
    arrive("10.0.0.1", "10.0.0.0/24", many, "10.0.0.2", "inner:1", SCHEME_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_as_proxies_write_them),
        cmocka_unit_test(lists_hold_addresses_nets_and_unix_sockets),
        cmocka_unit_test(a_peer_that_is_not_known_is_in_no_list),
        cmocka_unit_test(what_is_no_list_is_told),
        cmocka_unit_test(a_unix_socket_tells_who_is_there),
        cmocka_unit_test(only_trusted_proxies_are_believed),
        cmocka_unit_test(what_a_client_invents_before_its_proxy_does_not_count),
        cmocka_unit_test(nonsense_of_a_proxy_is_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
