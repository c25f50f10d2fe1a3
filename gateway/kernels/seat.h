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

struct buf;
struct client;
struct jmsg;
struct jmsg_facts;
struct kernel;
struct loop_timer;
struct origin;
struct seat;
struct view;
struct zsocket;

enum {
    SEAT_SID_MAX = 1024,
    SEAT_DEALERS = 3, /* shell, control, stdin: enum jmsg_channel */
    SEATS_TAKEN_MAX =
        256, /* of one kernel: each costs the process two or three descriptors of 1,024 */
    SEAT_HELD_MAX = 1024, /* messages that wait for the proof of iopub */
    SEAT_HELD_BYTES = 16 * 1024 * 1024,
    SEAT_HELD_FREE =
        16 * 1024,          /* its only message may wait whatever others have (kernel_may_hold()) */
    SEATS_RUNS_MAX = 4096,  /* runs without an end, of all seats: the note has room; ... */
    SEATS_RUNS_SPARE = 512, /* ... and so many more, one of each seat that has nothing here */
    SEAT_HEIRS_MAX = 4,
    SEAT_UNSEEN_MAX = 1024,
    SEAT_UNSEEN_BYTES = 256 * 1024,
    SEAT_ASK_MAX = 4096,       /* bytes of an input_request that the next gateway can repeat */
    SEAT_INHERITED_MS = 60000, /* so long clients of the gateway before have a place */
};

struct held { /* a message that waits */
    struct held *next;
    enum jmsg_channel channel;
    int is_run, to_subshell;
    int interrupted; /* as soon as the kernel has it */
    uint64_t order;  /* among those of all seats */
    uint64_t stamp;  /* notes written when it came: a run goes out after a later one */
    size_t bytes;
    struct view parts[EVENT_PARTS]; /* into data */
    struct view noted;              /* of a run: seat_noted_header(), into parts or names */
    struct buf names;               /* owned */
    struct view *buffers;           /* into data; behind it */
    size_t buffer_count;
    uint8_t data[];
};

struct unseen { /* the end of a run that its client was not given yet */
    struct unseen *next;
    uint64_t seq; /* of the log's end then */
    size_t n;
    uint8_t header[]; /* of the request: seat_noted_header() */
};

struct ask { /* an input_request without an answer */
    uint64_t seq;
    int given;                      /* the client has it */
    struct view parts[EVENT_PARTS]; /* into data */
    uint8_t data[];
};

struct seat_dealer {
    struct seat *seat; /* borrowed: what a ZMQ callback finds its way by */
    struct zsocket *socket;
    enum jmsg_channel channel;
    int heard; /* something came by this socket: the kernel has taken the connection */
};

/* Sockets with the identity that the gateway before this one had: answers to what it * sent come here. Nothing is sent on them: a ROUTER without handover that still knew
 * the dead peer takes nothing from its heir, and kernels look at what an input_reply
 * says, not at who sends it. */
struct heir {
    char identity[65];
    struct seat_dealer shell, input;
};

struct seat {
    struct kernel *kernel; /* borrowed: seats end before their kernel */
    struct seat *prev, *next;
    uint64_t number;       /* addressee in the event log, owner in the queries */
    char *sid;             /* owned; what its messages of ours name as their session */
    int returns;           /* the client gave a session_id: it may come back */
    int reads_only;        /* it has no sockets at the kernel, and hears iopub from the log */
    struct client *client; /* borrowed; NULL while parked */
    uint64_t parked_ms;
    struct origin *origin; /* owned hold: of the socket that sat down last; or NULL */
    struct eventlog_cursor cursor;
    char identity[33]; /* of this generation's DEALERs */
    struct seat_dealer dealers[SEAT_DEALERS];
    struct held *held, **held_last; /* owned */
    size_t held_count, held_bytes;
    int blocked;        /* a writable() is owed to the client */
    struct heir *heirs; /* owned */
    unsigned heir_count;
    struct ask *ask;                      /* owned; NULL: none, or one too long to be kept */
    struct unseen *unseen, **unseen_last; /* owned */
    unsigned unseen_count;
    size_t unseen_bytes;
    unsigned unseen_forgotten;      /* ends that are not among them any more */
    struct loop_timer *stdin_timer; /* a run waits until the kernel can ask */
    uint64_t stdin_ms;              /* since when it does, and the kernel has nothing else to do */
    int stdin_given_up;
    int cut_off;   /* too many were away: replies to what it had sent do not come any more */
    int inherited; /* made for a client of the gateway before this one, not back yet */
};

/* Sits down: the seat of sid, or a new one at the end of the log. sid "": random. */
struct seat *seat_take(struct kernel *k, const char *sid);
/* For a client that sends nothing. */
struct seat *seat_take_reader(struct kernel *k);
/* 1 when that seat can be taken: the kernel has room, or it is there already. */
int seat_has_room(const struct kernel *k, const char *sid);
void seat_end(struct seat *s);
void seats_end_all(struct kernel *k);

/* ---- seat_away.c: clients that are away; who keeps what is seat_park.h's to say ---- */
/* The client went: parks the seat, which is swept when nobody can come back for it
 * and nothing of it is outstanding. */
void seat_leave(struct seat *s);
/* Ends parked seats that nobody can come back for, and what is above the bounds: at the end of
 * this turn of the loop, so that no seat goes while something uses it. */
void seats_sweep(struct kernel *k);
void seats_sweep_now(void *kernel); /* for kernel.sweep alone */
/* The client of a new seat had one before that was given up: it is told. */
void seat_tell_lost_place(struct seat *s);

/* The kernel's sockets of this generation are there, proven, or gone. */
void seats_open(struct kernel *k);
void seats_close(struct kernel *k); /* closes the DEALERs */
/* A new socket of the same identity in the place of one whose connection broke. */
void seat_reopen(struct seat *s, enum jmsg_channel channel);

/* ---- seat_send.c: what goes to the kernel, and what waits for it ---- */
/* As client_send(). */
int seat_send(struct seat *s, const struct client_message *m, struct err *e) MUST_CHECK;
void seats_release(struct kernel *k); /* sends what was held */
void seat_resume(struct seat *s);     /* likewise, of one; room was made for its messages */
/* Interrupts the oldest run of the main shell that waits, once the kernel has it; 0: none does. */
int seats_interrupt_held(struct kernel *k);
void seat_forget_held(struct seat *s);
/* Nothing of it goes to the kernel: the runs end so, and their clients may go on. */
void seats_refuse_held(struct kernel *k, const char *ename, const char *why);

/* ---- seat_stdin.c: no run that may ask goes to a kernel that would ask nobody ---- */
enum seat_stdin { SEAT_STDIN_GO, SEAT_STDIN_WAIT, SEAT_STDIN_REFUSE };
/* Of a run; when it has to wait seat_resume() is called in time. */
enum seat_stdin seat_stdin_for(struct seat *s, const struct jmsg *m);
void seat_stdin_refuse(struct seat *s, const struct jmsg *m);
void seat_stdin_joined(void *dealer); /* of a ZMQ socket: struct seat_dealer */
void seat_stdin_gone(void *dealer);
void seat_stdin_forget(struct seat *s); /* its socket is closed */

/* ---- seat_heirs.c: what outlives a gateway ---- */
void seats_open_heirs(struct kernel *k);
void seats_close_heirs(struct kernel *k); /* nothing that was inherited is outstanding */
void seat_free_kept(struct seat *s);
/* The run has ended: until the client was given all of the log it is in the notes. */
void seat_run_ended(struct seat *s, struct view header);
void seat_asked(struct seat *s, const struct view parts[EVENT_PARTS]);
void seat_keep_ask(struct seat *s,
                   const struct view parts[EVENT_PARTS]); /* without a note at once */
void seat_answered(struct seat *s);                       /* nothing is asked any more */
void seat_delivered(struct seat *s);                      /* the cursor moved */

/* ---- seat_note.c ---- */
/* The seats, as items of the kernel's note. -EMSGSIZE, -ENOMEM. */
int seats_put(const struct kernel *k, struct buf *out) MUST_CHECK;
/* What is noted of a run's header: the header, or of a long one a header with its names alone, in room,
 * which the caller frees. */
struct view seat_noted_header(struct view header, struct buf *room);

/* ---- seat_log.c: a seat as a reader of the event log ---- */
struct eventlog_readers seats_readers(struct kernel *k);
/* What its cursor wants is gone without a trace: the client is told of each of its
 * runs that ended, and that their ends are lost. */
void seat_fell_behind(struct seat *s);
void seat_catch_up(struct seat *s); /* likewise, when that is so */

struct seat *seat_by_number(struct kernel *k, uint64_t number);

void seat_close_dealers(struct seat *s);
struct seat *seat_new(struct kernel *k, const char *sid, int returns);
int seat_open_dealer(struct seat_dealer *d, const char *identity, struct err *e) MUST_CHECK;
int seat_open_own(struct seat *s, enum jmsg_channel channel, struct err *e) MUST_CHECK;

#endif
