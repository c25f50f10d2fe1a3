/*
 * query - what the clients of one kernel asked and the kernel did not finish:
 * decides whether a reply is one that somebody waits for, and carries the runs.
 */
#ifndef HC_QUERY_H
#define HC_QUERY_H

#include <stdint.h>

#include "interrupt.h"
#include "jmsg.h"
#include "origin.h"
#include "outputlimit.h"
#include "run.h"
#include "runclock.h"

struct queries;

enum {
    QUERY_ID_MAX = 128,
    QUERY_TYPE_MAX = 64,
    QUERIES_SEAT_MAX = 1024,   /* unfinished ones of one seat */
    QUERIES_SEAT_CONTROL = 64, /* so many more, and as many bytes again, on the control channel */
    QUERIES_LEFT_MAX = 4096,   /* of all: above, queries_leave() keeps no more than runs */
    QUERIES_SEAT_BYTES =
        1024 * 1024, /* of their headers, which a client may make as long as it likes */
};

enum query_short { SHORT_MEMORY, SHORT_TASKS, SHORT_DISK, SHORT_FILES, SHORT_OUTPUT };

struct query {
    struct query *prev, *next;           /* of all, in the order they were sent */
    struct query *chain;                 /* same hash */
    struct query *seat_prev, *seat_next; /* of the same seat, in that order */
    uint64_t number;                     /* rises; never used twice */
    uint64_t seat;
    enum jmsg_channel channel;
    char id[QUERY_ID_MAX];      /* msg_id, decoded; "" when it has none that fits */
    char session[QUERY_ID_MAX]; /* likewise */
    char type[QUERY_TYPE_MAX];  /* msg_type; "" when it does not fit */
    char subshell[QUERY_ID_MAX];
    int allow_stdin;
    int busy, replied, idle;
    int is_run;
    uint64_t busy_ms;        /* when its busy came */
    uint64_t idle_ms;        /* when its idle came */
    uint64_t replied_ms;     /* when its reply came */
    int doubtful;            /* the connection broke: the kernel may not have it */
    uint64_t quiet_since_ms; /* the kernel could have taken it since then */
    int heard;               /* the kernel published something of it, or asked for input */
    int reached;             /* it is on no way of ours any more: silence.h */
    uint64_t bytes;          /* of the whole message */
    int inherited;           /* sent by the gateway before this one */
    int unheard;             /* and nothing was heard of it since */
    unsigned probes;         /* answers of its (sub)shell that are still to come, then it is over */
    uint64_t probed_ms;      /* when they had come; 0: not yet */
    int silence_told;
    int gap_told;    /* its client knows that output may be missing */
    int counted_out; /* its run has ended and is no longer counted */
    struct run run;
    struct runclock clock;
    struct interrupt interrupt;
    int interrupt_seen; /* it said that it ended by KeyboardInterrupt, after its deadline */
    int is_next;        /* by queries_mark_next() */
    int stop_told;      /* its client knows what stopped it */
    unsigned short_of;  /* bits of enum query_short: limits that it used up */
    int memory_told;    /* that it is short of it */
    int dropped_told;   /* and how much was dropped */
    struct output_use output;
    uint64_t sent_us;      /* CLOCK_MONOTONIC; 0: not known, another gateway has it */
    struct origin *origin; /* owned hold: the socket it came by; NULL when unknown */
    uint8_t span_id[TRACE_SPAN_BYTES];
    struct view header; /* owned copy: what a message of ours names as its parent */
};

struct queries *queries_new(void);
struct queries *queries_free(struct queries *q);
void queries_clear(struct queries *q); /* all of them; numbers go on rising */

/* Adds a copy of what is filled in (channel, seat, id, session, type, subshell,
 * allow_stdin, is_run, origin, header, which is copied). NULL when the seat has too
 * many unfinished runs, or too much of them. Of a seat with too many others the oldest are forgotten. */
struct query *queries_add(struct queries *q, const struct query *what);
/* 1 when queries_add() has room for one more of that seat, with a header of so many bytes. */
int queries_room(const struct queries *q, uint64_t seat, enum jmsg_channel channel, size_t header);
/* How many that the kernel may not have read yet were forgotten so, ever. */
uint64_t queries_forgotten(const struct queries *q);
/* Sets is_next: of each (sub)shell the oldest open run, unless something is known to run
 * there; 0 for all others. It may run without ever having said busy: a cell that takes the
 * interpreter lock at once cannot. */
void queries_mark_next(struct queries *q, uint64_t now_ms);
/* The kernel said busy for it and is not known to be done. */
int query_works(const struct query *r, uint64_t now_ms);
/* After queries_mark_next(): it may be what its (sub)shell works on. */
int query_may_run(const struct query *r);
uint64_t queries_next_number(const struct queries *q); /* of the query that is added next */
/* What is added gets higher numbers than this one, and than all before. */
void queries_count_from(struct queries *q, uint64_t number);
/* r was the last one that was added, and had that number before; its own is free again. */
void queries_renumber(struct queries *q, struct query *r, uint64_t number);
void queries_remove(struct queries *q, struct query *r);
/* That seat is gone: nobody hears of what it asked. Its runs stay, and of the rest what the kernel works on, as
 * long as there are not too many of all. */
void queries_leave(struct queries *q, uint64_t seat, uint64_t now_ms);

/* execute_request is answered by execute_reply, and so on. */
int query_is_answer(const char *request_type, const char *type);

/* No run, and of a type that kernels answer before its idle: which came, without the answer. */
int query_lacks_answer(const struct query *r);

/* The oldest request of that seat and channel with this id that a message of type
 * may answer; *ret_second is 1 when there is one but it has its reply already. */
struct query *queries_match_reply(struct queries *q, uint64_t seat, enum jmsg_channel channel,
                                  const char *id, const char *type, int *ret_second);
/* The oldest one with this id and session whose idle has not come. */
struct query *queries_match_status(struct queries *q, const char *id, const char *session);

/* In the order they were sent; NULL at the end. r may be removed by the caller
 * once the next one was asked for. */
struct query *queries_first(const struct queries *q);
struct query *queries_next(const struct queries *q, const struct query *r);
struct query *queries_first_of(const struct queries *q, uint64_t seat); /* then seat_next */
unsigned queries_count(const struct queries *q, uint64_t seat);         /* of one seat */
unsigned queries_runs(const struct queries *q); /* runs that have not ended */

/* After anything that may have ended r's run; keeps the count of open runs right.
 * Removes r when nothing more can come for it and returns 1. */
int queries_settle(struct queries *q, struct query *r);

/* What an interrupt is meant for: of the runs of the main shell without a reply or an idle the
 * one that is running, else the oldest that is queued. NULL when there is none. */
struct query *queries_target(const struct queries *q);
/* Marks that one, and those of the subshells. */
void queries_interrupt(struct queries *q, uint64_t now_ms);
struct query *queries_by_number(const struct queries *q, uint64_t number); /* or NULL */

#endif
