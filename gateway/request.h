/*
 * request - what the clients of one kernel asked and the kernel did not finish:
 * decides whether a reply is one that somebody waits for, and carries the runs.
 */
#ifndef HC_REQUEST_H
#define HC_REQUEST_H

#include <stdint.h>

#include "client.h"
#include "run.h"

struct requests;

enum {
    REQUEST_ID_MAX = 128,
    REQUEST_TYPE_MAX = 64,
    REQUESTS_SEAT_MAX = 1024, /* unfinished ones of one seat */
};

struct request {
    struct request *prev, *next; /* of all, in the order they were sent */
    struct request *chain;       /* same hash */
    uint64_t number;             /* rises; never used twice */
    uint64_t seat;
    enum channel channel;
    char id[REQUEST_ID_MAX];      /* msg_id, decoded; "" when it has none that fits */
    char session[REQUEST_ID_MAX]; /* likewise */
    char type[REQUEST_TYPE_MAX];  /* msg_type; "" when it does not fit */
    char subshell[REQUEST_ID_MAX];
    int allow_stdin;
    int busy, replied, idle;
    int is_run;
    int counted_out; /* its run has ended and is no longer counted */
    struct run run;
    struct view header; /* owned copy, of runs: what a message of ours names as its parent */
};

struct requests *requests_new(void);
struct requests *requests_free(struct requests *q);

/* Adds a copy of what is filled in (channel, seat, id, session, type, subshell,
 * allow_stdin, is_run; header is copied for a run). NULL when the seat has too
 * many unfinished runs. Of a seat with too many others the oldest is forgotten. */
struct request *requests_add(struct requests *q, const struct request *what);
void requests_remove(struct requests *q, struct request *r);

/* The oldest request of that seat and channel with this id that a message of type
 * may answer; *ret_second is 1 when there is one but it has its reply already. */
struct request *requests_match_reply(struct requests *q, uint64_t seat, enum channel channel,
                                     const char *id, const char *type, int *ret_second);
/* The oldest one with this id and session whose idle has not come. */
struct request *requests_match_status(struct requests *q, const char *id, const char *session);

/* In the order they were sent; NULL at the end. r may be removed by the caller
 * once the next one was asked for. */
struct request *requests_first(const struct requests *q);
struct request *requests_next(const struct requests *q, const struct request *r);
unsigned requests_count(const struct requests *q, uint64_t seat); /* of one seat */
unsigned requests_runs(const struct requests *q);                 /* runs that have not ended */

/* After anything that may have ended r's run; keeps the count of open runs right.
 * Removes r when nothing more can come for it and returns 1. */
int requests_settle(struct requests *q, struct request *r);

/* Interrupts are meant for what the kernel works on: on each (sub)shell the run
 * that is running, else the oldest that is queued. */
void requests_interrupt(struct requests *q, uint64_t now_ms);

#endif
