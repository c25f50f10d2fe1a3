/*
 * seat - what a client has at a kernel and keeps when its socket closes: its
 * DEALERs, its cursor on the event log, and the messages that wait for the
 * kernel. A returning session_id sits down on its old seat again.
 */
#ifndef HC_SEAT_H
#define HC_SEAT_H

#include <stdint.h>

#include "client.h"
#include "eventlog.h"

struct client;
struct jmsg;
struct jmsg_facts;
struct kernel;
struct origin;
struct seat;
struct view;
struct zsocket;

enum {
    SEAT_SID_MAX = 1024,
    SEAT_DEALERS = 3,      /* shell, control, stdin: enum channel */
    SEATS_PARKED_MAX = 16, /* of one kernel; the one parked longest goes first */
    SEAT_HELD_MAX = 1024,  /* messages that wait for the proof of iopub */
    SEAT_HELD_BYTES = 16 * 1024 * 1024,
};

struct held { /* a message that waits */
    struct held *next;
    enum channel channel;
    size_t bytes;
    struct view parts[EVENT_PARTS]; /* into data */
    struct view *buffers;           /* into data; behind it */
    size_t buffer_count;
    uint8_t data[];
};

struct seat_dealer {
    struct seat *seat; /* borrowed: what a ZMQ callback finds its way by */
    struct zsocket *socket;
    enum channel channel;
};

struct seat {
    struct kernel *kernel; /* borrowed: seats end before their kernel */
    struct seat *prev, *next;
    uint64_t number;       /* addressee in the event log, owner in the queries */
    char *sid;             /* owned; what its messages of ours name as their session */
    int returns;           /* the client gave a session_id: it may come back */
    struct client *client; /* borrowed; NULL while parked */
    uint64_t parked_ms;
    struct origin *origin; /* owned hold: of the socket that sat down last; or NULL */
    struct eventlog_cursor cursor;
    char identity[33]; /* of this generation's DEALERs */
    struct seat_dealer dealers[SEAT_DEALERS];
    struct held *held, **held_last; /* owned */
    size_t held_count, held_bytes;
    int blocked; /* a writable() is owed to the client */
};

/* Sits down: the seat of sid, or a new one at the end of the log. sid "": random. */
struct seat *seat_take(struct kernel *k, const char *sid);
/* The client went: parks the seat, or ends it when nobody can come back for it
 * and nothing of it is outstanding. */
void seat_leave(struct seat *s);
void seat_end(struct seat *s);
void seats_end_all(struct kernel *k);
/* Ends parked seats that nobody can come back for, and those above the bound. */
void seats_sweep(struct kernel *k);

/* The kernel's sockets of this generation are there, proven, or gone. */
void seats_open(struct kernel *k);
void seats_release(struct kernel *k); /* sends what was held */
void seat_resume(struct seat *s);     /* likewise, of one; room was made for its messages */
void seats_close(struct kernel *k);   /* closes the DEALERs */
void seats_forget_held(struct kernel *k);
/* A new socket of the same identity in the place of one whose connection broke. */
void seat_reopen(struct seat *s, enum channel channel);

/* As client_send(). */
int seat_send(struct seat *s, const struct client_message *m, struct err *e) MUST_CHECK;

#endif
