/*
 * link - the gateway's own sockets to one generation of a kernel: the SUB that is
 * always read, a shell and a control DEALER for requests of the gateway, and the
 * key. Proves that the subscription is live before anything of a client is
 * let through, then asks for kernel_info once, so that the kernel's state is
 * known without any client.
 */
#ifndef HC_LINK_H
#define HC_LINK_H

#include <stdint.h>

#include "endpoints.h"
#include "jmsg.h"
#include "ownmsg.h"
#include "zsocket.h"

struct link;
struct loop;

enum link_own { LINK_SHELL, LINK_CONTROL, LINK_OWN_COUNT };

struct link_ops {
    /* Of a message of iopub that nobody has verified: 1 when it is dropped whatever that would
     * say. A flood then costs what it costs to receive it. */
    int (*unwanted)(void *arg, const struct jmsg *m, const struct jmsg_header *header,
                    const struct jmsg_header *parent);
    /* A verified message of the kernel. Views are borrowed for the call. */
    void (*iopub)(void *arg, const struct jmsg *m, const struct jmsg_facts *f);
    /* One that is over a ceiling: verified, header and parent_header are readable,
     * the rest was not looked at. bytes is its size, why the ceiling. */
    void (*oversized)(void *arg, const struct jmsg *m, const struct jmsg_facts *f, size_t bytes,
                      const char *why);
    /* iopub broke, and the kernel did not end: something may be lost. Told once, before what comes
     * on the next connection. */
    void (*lost)(void *arg);
    /* iopub is received for sure, or was given up on after `give_up_ms`. */
    void (*proven)(void *arg);
    void (*ready)(void *arg); /* the kernel answered on its shell channel, for the first time */
    /* Each answer there; "" is the main shell. */
    void (*answered)(void *arg, const char *subshell);
    void (*control)(void *arg); /* the kernel answered on its control channel */
    /* An answer to a request of the gateway that is not about the kernel itself. */
    void (*reply)(void *arg, const struct jmsg *m, const struct jmsg_facts *f);
    void (*unsupported)(void *arg,
                        const char *version); /* it speaks another major version than 5 */
    /* It sent what no kernel may, and a connection was ended for it (zguard.h). */
    void (*broke)(void *arg, const char *why);
};

struct link_config {
    struct loop *loop; /* borrowed, as zsockets */
    struct zsockets *zsockets;
    const char *key;
    const char *session; /* the gateway's own session id; borrowed for the link's life */
    uint64_t give_up_ms; /* then clients' messages go out without proof */
};

/* Takes over the endpoints on success. */
int link_open(const struct link_config *c, struct endpoints *endpoints, const struct link_ops *ops,
              void *arg, struct link **ret, struct err *e) MUST_CHECK;
struct link *
link_close(struct link *l); /* every socket opened with link_dealer() is closed before */

/* The process is gone: what is there is read, nothing is connected anew. */
void link_peer_ended(struct link *l);

int link_is_proven(const struct link *l);
int link_is_ready(const struct link *l); /* it answered on its shell channel */
/* 1: its ZMTP is older than 3.0, no socket to it ever tells that it is joined. Known when it is
 * ready. */
int link_never_joins(const struct link *l);
const struct endpoints *link_endpoints(const struct link *l);
const char *link_key(const struct link *l);

/* A DEALER of a client; iopub is read before its messages. */
int link_dealer(struct link *l, unsigned endpoint, const char *identity,
                const struct zsocket_ops *ops, void *arg, struct zsocket **ret,
                struct err *e) MUST_CHECK;

/* Signs and sends. As zsocket_send(). */
int link_send(struct link *l, struct zsocket *s, const struct jmsg *m, struct err *e) MUST_CHECK;
/* Sends a request in the gateway's name; content is JSON. */
int link_ask(struct link *l, enum link_own own, const char *type, struct view content,
             struct err *e) MUST_CHECK;

/* The same, and tells the msg_id that it went out with. */
int link_request(struct link *l, enum link_own own, const char *type, struct view content,
                 char ret_id[OWNMSG_ID], struct err *e) MUST_CHECK;

/* Asks a (sub)shell for kernel_info, as long as no such question is open there. */
int link_probe(struct link *l, const char *subshell, struct err *e) MUST_CHECK;

/* Takes a received message apart, verifies and validates it. The error says what
 * it was dropped for. */
int link_take(struct link *l, const struct view *frames, size_t count, struct jmsg *ret,
              struct jmsg_facts *ret_facts, struct err *e) MUST_CHECK;

/* Of a message that link_take() refused with -HC_ELIMIT: what it was an answer to.
 * 0 when that can be told; parent_header is {} when it is no header. */
int link_salvage(struct link *l, const struct view *frames, size_t count, struct jmsg *ret,
                 struct jmsg_facts *ret_facts, size_t *ret_bytes) MUST_CHECK;

/* Reads what iopub has now; 1 when there is more. */
int link_drain(struct link *l);

struct link_counts { /* messages that cost only themselves */
    uint64_t malformed, unsigned_;
};
struct link_counts link_counts(const struct link *l);

#endif
