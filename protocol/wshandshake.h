/* wshandshake - the server's side of the RFC 6455 opening handshake. */
#ifndef HC_WSHANDSHAKE_H
#define HC_WSHANDSHAKE_H

#include "buf.h"
#include "cleanup.h"

struct err;
struct http_head;

#define WS_ACCEPT_TEXT 29 /* 28 characters and a NUL */

/*
 * Checks that the request opens a WebSocket: GET, HTTP/1.1, Upgrade: websocket,
 * Connection: upgrade, version 13, one key of 16 bytes, no body. Returns 0 and
 * the Sec-WebSocket-Accept value, or -HC_EPARSE with *status the status to answer with:
 * 400; 405; 500 (-EIO: no SHA-1); 426, which must carry "Sec-WebSocket-Version: 13" and "Upgrade: websocket".
 * Origin, token and subprotocol are the caller's to check before it answers 101.
 */
int ws_handshake_check(const struct http_head *head, char accept[WS_ACCEPT_TEXT], int *status,
                       struct err *e) MUST_CHECK;

/* 1 when the client offers that subprotocol (case matters), in whichever of its
 * Sec-WebSocket-Protocol fields. */
int ws_handshake_offers(const struct http_head *head, const char *protocol);

/* The Sec-WebSocket-Accept value of a key. -EIO when libcrypto has no SHA-1. */
int ws_accept(struct view key, char out[WS_ACCEPT_TEXT], struct err *e) MUST_CHECK;

#endif
