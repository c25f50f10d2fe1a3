/*
 * client - one client socket's place at a kernel: its own DEALERs for shell,
 * control and stdin, and a cursor on the kernel's event log. The front pulls
 * events while it may write; nothing a client does stops the reading of a kernel.
 */
#ifndef HC_CLIENT_H
#define HC_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "jmsg.h"

struct client;
struct err;
struct kernel;

/* One entry of the event log as a front sends it on. All views are borrowed
 * until the next client_next() or turn of the loop. */
struct client_event {
    uint64_t seq;
    enum jmsg_channel channel;
    struct view header, parent_header, metadata,
        content; /* verbatim, validated as JSON (NaN and Infinity pass) */
    const struct view *buffers;
    size_t buffer_count;
};

/* Why a front is told to close its socket. */
enum client_end {
    CLIENT_REPLACED, /* the same session_id connected again: Close without a code */
    CLIENT_DELETED,  /* the kernel was deleted; what it said last has been delivered: 1000 */
    CLIENT_DEAD,     /* restarts were given up; after the "dead" status: no code */
    CLIENT_LAGGED,   /* fell off the end of the event log: 1013 */
    CLIENT_SHUTDOWN, /* the server stops: 1012 */
};

struct client_ops {
    void (*readable)(void *arg); /* events wait; called once until client_next() returned 0 */
    void (*writable)(
        void *arg); /* the kernel takes messages again after client_send() gave -EAGAIN */
    void (*ended)(
        void *arg,
        enum client_end
            why); /* comes after the last event was pulled; the front then calls client_detach() */
};

/* session_id: the WebSocket's session_id parameter, "" for none (a random one is made, no replay), NULL for a client that
 * only reads iopub: the kernel does not notice it. -HC_ELIMIT: too many clients. A returning id gets
 * what it missed since its last socket closed; the same id twice ends the older one. Messages are held until the
 * kernel's iopub subscription is proven. */
int client_attach(struct kernel *k, const char *session_id, const struct client_ops *ops, void *arg,
                  struct client **ret, struct err *e) MUST_CHECK;
/* The socket closed. The cursor is kept for its session_id as long as the log reaches back. */
void client_detach(struct client *c);

/* Sends one message to the kernel, signed here. The four JSON parts go verbatim. Returns 0; -EAGAIN when the kernel's queue
 * is full (message not taken: stop reading this client until writable()); -HC_EPARSE or -HC_ELIMIT when
 * the message itself is at fault (log, go on). An execute_request becomes a run. */
struct client_message {
    enum jmsg_channel channel; /* shell, control or stdin */
    struct view header, parent_header, metadata, content;
    const struct view *buffers;
    size_t buffer_count;
};
int client_send(struct client *c, const struct client_message *m, struct err *e) MUST_CHECK;

/* 1: an event is in *ret; 0: none now. */
int client_next(struct client *c, struct client_event *ret);

#endif
