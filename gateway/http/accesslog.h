/*
 * accesslog - one line for each request that was answered, two for each WebSocket, and
 * what of them is counted. Never the query of a URL, which may hold a token.
 */
#ifndef HC_ACCESSLOG_H
#define HC_ACCESSLOG_H

#include <stddef.h>
#include <stdint.h>

struct httpconn;
struct origin;
struct view;

enum accesslog_level {
    ACCESSLOG_AUTO, /* info when the request changes something or fails, else debug */
    ACCESSLOG_DEBUG,
    ACCESSLOG_INFO,
    ACCESSLOG_OFF,
};
/* Of the option's value; AUTO for NULL. */
enum accesslog_level accesslog_level_of(const char *name);

/* bytes: of the answer's body. */
void accesslog_answered(const struct httpconn *h, int status, size_t bytes);

enum { ACCESSLOG_NO_HANDSHAKE = 1006 };

/* What one WebSocket carried. */
struct accesslog_socket {
    struct origin *origin; /* owned hold */
    char *path;            /* owned */
    enum accesslog_level level;
    uint64_t opened_us; /* CLOCK_MONOTONIC */
    uint64_t messages_in, messages_out, bytes_in, bytes_out;
    int code;       /* of the closing handshake; 1005: none in it, 1006: there was no handshake */
    const char *by; /* who closed first: client, server; NULL so far */
};
void accesslog_opened(const struct httpconn *h, struct accesslog_socket *s);
void accesslog_closing(struct accesslog_socket *s, const char *by, int code); /* the first counts */
void accesslog_closed(struct accesslog_socket *s);

#endif
