#include "wshandshake.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#include "err.h"
#include "httphead.h"

#define KEY_TEXT 24 /* 16 bytes in base64 */

static int is_base64(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '+' ||
           c == '/';
}

/* The last digit's unused bits may be anything: in RFC 6455's own example (4.1,
 * "AQIDBAUGBwgJCgsMDQ4PEC==") they are not zero. */
static int is_key(struct view key)
{
    if (key.n != KEY_TEXT || key.p[22] != '=' || key.p[23] != '=')
        return 0;
    for (size_t i = 0; i < 22; i++)
        if (!is_base64(key.p[i]))
            return 0;
    return 1;
}

int ws_accept(struct view key, char out[WS_ACCEPT_TEXT], struct err *e)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455 1.3 */
    uint8_t text[KEY_TEXT + sizeof guid - 1], digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    if (key.n != KEY_TEXT)
        return err_set(e, HC_EPARSE, "a Sec-WebSocket-Key of %zu bytes", key.n);
    memcpy(text, key.p, key.n);
    memcpy(text + key.n, guid, sizeof guid - 1);
    if (EVP_Digest(text, sizeof text, digest, &n, EVP_sha1(), NULL) != 1 || n != 20)
        return err_set(e, EIO, "libcrypto has no SHA-1");
    EVP_EncodeBlock((unsigned char *)out, digest, (int)n);
    return 0;
}

static int refuse(int *status, int code, struct err *e, const char *why)
{
    *status = code;
    return err_set(e, HC_EPARSE, "%s", why);
}

int ws_handshake_check(const struct http_head *head, char accept[WS_ACCEPT_TEXT], int *status,
                       struct err *e)
{
    if (!view_equals(head->method, "GET"))
        return refuse(status, 405, e, "a WebSocket is opened by GET");
    if (head->minor == 0)
        return refuse(status, 400, e, "a WebSocket needs HTTP/1.1");
    if (!head->upgrade || !http_list_has(head, "upgrade", "websocket"))
        return refuse(status, 400, e, "not an upgrade to websocket");
    if (head->body != HTTP_BODY_NONE)
        return refuse(status, 400, e, "a WebSocket handshake with a body");
    if (http_field_count(head, "sec-websocket-version") > 1)
        return refuse(status, 400, e, "more than one Sec-WebSocket-Version field");
    if (!view_equals(http_value(head, "sec-websocket-version"), "13"))
        return refuse(status, 426, e, "WebSocket version 13 is needed");
    if (http_field_count(head, "sec-websocket-key") != 1 ||
        !is_key(http_value(head, "sec-websocket-key")))
        return refuse(status, 400, e, "Sec-WebSocket-Key is not one key of 16 bytes");
    if (ws_accept(http_value(head, "sec-websocket-key"), accept, e) < 0) {
        *status = 500;
        return -EIO;
    }
    return 0;
}

int ws_handshake_offers(const struct http_head *head, const char *protocol)
{
    struct http_list it = { 0 };
    struct view offer;

    while (http_list_next(head, "sec-websocket-protocol", &it, &offer))
        if (view_equals(offer, protocol))
            return 1;
    return 0;
}
