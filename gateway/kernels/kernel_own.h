/* kernel_own - what the files of a kernel share; nobody else includes it. */
#ifndef HC_KERNEL_OWN_H
#define HC_KERNEL_OWN_H

#include "activity.h"
#include "client.h"
#include "deferred.h"
#include "endpoints.h"
#include "eventlog.h"
#include "heartbeat.h"
#include "jsonscan.h"
#include "kernel.h"
#include "launchclient.h"
#include "origin.h"
#include "query.h"
#include "recipe.h"
#include "restarts.h"
#include "session.h"
#include "silence.h"

struct graves;
struct jmsg;
struct jmsg_facts;
struct link;
struct seat;
struct seeding;
struct tail;

/* docs/STATES.md. What REST tells is derived from it (kernel_model()). */
enum kernel_phase {
    KERNEL_CREATING, /* the launcher builds the sandbox */
    KERNEL_STARTING, /* the launcher starts the process */
    KERNEL_OPENING,  /* the process runs; its sockets in the run folder are not there yet */
    KERNEL_ALIVE,    /* connected */
    KERNEL_ENDING,   /* asked to end, for a restart or for good */
    KERNEL_DRAINING, /* the process is gone; what it said last is read */
    KERNEL_CLEARING, /* the launcher kills what it left behind */
    KERNEL_PAUSED,   /* back-off before the next start */
    KERNEL_STOPPING, /* the launcher takes the sandbox down */
    KERNEL_GONE,     /* not listed any more; clients read to the end of the log */
};

enum {
    /* A kernel that says nothing gets its clients' messages without proof of iopub; one that
     * does not take their stdin connections gets no cell that may ask. */
    KERNEL_GIVE_UP_MS = 60000,
};

enum kernel_goal { KERNEL_RUN, KERNEL_RESTART, KERNEL_DELETE };

struct waiter { /* who is told when an operation ends */
    struct waiter *next;
    kernel_done_fn *done;
    void *arg; /* borrowed */
    uint64_t token;
};

struct kernel {
    struct sessions *all;    /* borrowed */
    struct session *session; /* borrowed: it owns this */
    struct kernel *next;     /* in the session */
    char id[UUID_TEXT];
    uint64_t number; /* never used twice: the token of questions to the launcher */
    struct kernel_recipe recipe;
    char kept[NOTE_KEPT_MAX + 1]; /* of the front, "" */

    enum kernel_phase phase;
    enum kernel_goal goal;
    struct waiter *started, *restarted, *deleted; /* owned */
    struct waiter *awaiting;                      /* owned: the first answer */
    struct loop_timer *await_timer;
    struct loop_timer *create_timer; /* until the first answer of the process */
    int create_over;                 /* its time is up, but for the grace */
    struct loop_timer *timer;        /* of the phase */
    struct loop_timer *run_timer;    /* grace times and repeated interrupts */

    struct origin *origin;      /* owned hold: who asked for the start under way; or NULL */
    uint64_t start_us;          /* CLOCK_MONOTONIC, when the last start began */
    unsigned generation;        /* of the process */
    int process;                /* 1: started and its exit was not told */
    int run_dir_fd;             /* owned: of this generation, of a foreign kernel */
    struct endpoints endpoints; /* until the link has them */
    char key[KEY_TEXT];
    struct tail *tail;
    struct link *link;
    struct heartbeat *heartbeat; /* owned; NULL while the process starts or ends */
    int adopted;             /* taken over from another gateway; what it does is not known yet */
    int listed;              /* REST finds it */
    int born;                /* it came up once: who asked for it has it */
    struct seeding *seeding; /* owned; NULL: nothing is to be run before clients may */
    unsigned
        signals; /* not delivered yet: what clients send after an interrupt waits, lest it be hit */
    int ready;   /* it answered a request: an interrupt is safe */

    struct eventlog *log;
    struct seat *seats; /* list */
    uint64_t next_seat;
    struct graves *graves; /* owned: of clients that lost their seats; NULL: none did */
    struct queries *queries;
    struct silence silence;
    uint64_t held_count; /* messages that clients had to wait with, ever */
    unsigned held_runs;  /* that wait now */
    size_t held_bytes;   /* likewise, of all messages: sessions_held.c */
    struct activity activity;
    uint64_t noted_ms; /* activity.last_ms and kernel_works() as the note has them */
    int noted_busy;
    int adopted_busy;    /* it was at work when its last gateway noted it */
    uint64_t adopted_ms; /* when its shell was asked whether it is free */
    struct restarts restarts;
    unsigned connections;
    uint64_t iopub_ms; /* when it published last */
    uint64_t replied_ms,
        replied_idle_ms; /* of the last answer on the shell: when it came, and its idle */

    int recipe_fd;          /* owned: the recipe in a memfd, made for the first note; -1 */
    uint64_t notes;         /* written so far */
    unsigned notes_open;    /* not acknowledged by the launcher */
    int note_stale;         /* what the last one says is not all */
    int note_awaited;       /* messages wait for one */
    uint64_t note_after_us; /* the last one was long: the next is not written before */
    struct loop_timer *note_timer;
    unsigned inherited; /* runs of the gateway before this one; 0 when they are over */

    char sid[QUERY_ID_MAX]; /* of the process: what its own messages name; "" while unknown */
    char reason[256];
    char death[160];   /* said of the next death instead of its exit status; "" */
    int broke;         /* it is killed for what it sent */
    int said_shutdown; /* a client asked it to end: 1 for good, 2 to restart */
    uint64_t said_shutdown_ms;
    int ladder;                       /* steps taken while ending */
    int overdue;                      /* it is being ended for a time-out; its clients know */
    uint64_t clocks_ms;               /* when its runs' deadlines were looked at last */
    char farewell[128];               /* to runs that the end of the kernel ends; "": the usual */
    unsigned quiet;                   /* looks at iopub that found nothing, while draining */
    uint64_t drain_ms;                /* when draining began */
    uint64_t drain_seq;               /* end of the log at the last look */
    uint64_t pause_ms;                /* before the next start */
    uint64_t look_ms;                 /* between looks for a foreign kernel's sockets */
    int was_ready;                    /* of the process that exited */
    struct launch_kernel_exited exit; /* of the last process */
    enum client_end client_end;       /* what clients are told at the end */
    struct deferred_node reap;        /* frees the kernel outside of callbacks */
    struct deferred_node sweep;       /* likewise seats: seats_sweep() */
    struct output_use late_output;    /* of no open request, since the last run began */
    uint64_t tasks_limit;             /* that refused new ones, */
    uint64_t tasks_refused_ms;        /* then; 0: never */
    uint64_t run_ended_ms;            /* the last one; 0: none has */
    struct {
        uint64_t state_claims, second_replies, unasked, input, oversized;
    } dropped;
};

/* ---- kernel.c ---- */
const char *kernel_owner(const struct kernel *k);             /* name of the principal (borrowed) */
struct kernel *kernel_new(struct session *s, const char *id); /* adds itself to the session */
void kernel_free(struct kernel *k);
/* A kernel that is gone is freed after its last client. */
void kernel_client_left(struct kernel *k);
void kernel_asked_by(struct kernel *k, struct origin *o);     /* NULL: by nobody */
void kernel_phase(struct kernel *k, enum kernel_phase phase); /* also ends the phase's timer */
void kernel_timer(struct kernel *k, uint64_t ms, loop_fn *fn);
const char *kernel_phase_name(enum kernel_phase p);
/* A cell that holds the interpreter lock cannot say busy: what was sent and not
 * answered counts too, and so does what an adopted kernel may still do. */
int kernel_works(const struct kernel *k);
struct activity_now kernel_now(const struct kernel *k);
/* Signals to the process group; a failure is logged. */
void kernel_signal(struct kernel *k, int signo);
/* One of our runtime writes to its output where its code stands (tail_stack()). */
void kernel_ask_where(struct kernel *k);
void kernel_is_ready_now(struct kernel *k); /* it answered */
void kernel_watch_heart(struct kernel *k);  /* from now on, until it is asked to end */
void waiter_add(struct waiter **list, kernel_done_fn *done, void *arg, uint64_t token);
/* Calls all of a list with the same outcome. */
void waiters_call(struct waiter **list, struct kernel *k, const struct err *e);

/* ---- kernel_interrupt.c ---- */
/* The signal or message itself, when the kernel is ready for it. */
void kernel_send_interrupt(struct kernel *k);
/* It is meant for this run and no other; sent now, or when the kernel says busy for it. */
void kernel_interrupt_run(struct kernel *k, struct query *q);
/* A client sent the kernel an interrupt_request of its own. */
void kernel_interrupt_asked(struct kernel *k);
void kernel_interrupt_busy(struct kernel *k, struct query *q); /* the kernel said so */
void kernel_check_interrupt(struct kernel *k);                 /* from time to time */
/* 1: the message was the answer to an interrupt_request of the gateway. */
int kernel_interrupt_answered(struct kernel *k, const struct jmsg *m, const struct jmsg_facts *f);

/* ---- kernel_start.c ---- */
void kernel_start(struct kernel *k); /* opens the session when that is due */
/* The process runs, or could not be started: error has the text. */
void kernel_start_ended(struct kernel *k, const char *error);
void kernel_session_opened(struct kernel *k); /* the sandbox that was waited for is there */
/* The launcher could not make the sandbox or the process. */
void kernel_launch_failed(struct kernel *k, int code, const char *text);
void kernel_connect(struct kernel *k);       /* the endpoints are known: open the link */
void kernel_await_sockets(struct kernel *k); /* of a foreign kernel, then connects */
void kernel_started(struct kernel *k);       /* tells who waits for it */
void kernel_disconnect(struct kernel *k);    /* closes link, DEALERs and endpoints */

/* ---- sessions_held.c ---- */
enum {
    KERNEL_HELD_FREE =
        8 * 1024 * 1024, /* of a kernel for which nothing waits, whatever others have */
    KERNELS_HELD_BYTES =
        256 * 1024 * 1024, /* of all, less what the kernel has: as much again is left to others */
};
/* Of clients' messages that wait for the kernel. */
int kernel_may_hold(const struct kernel *k, size_t bytes);
void kernel_held_awaited(
    struct kernel *k); /* a client's message had no room: seats_release() when others have left */
void kernel_held_more(struct kernel *k, size_t bytes);
void kernel_held_less(struct kernel *k, size_t bytes);

/* ---- kernel_note.c ---- */
void kernel_note(struct kernel *k);       /* writes one */
int kernel_note_now(struct kernel *k);    /* likewise; 0: not yet, messages wait for the next one */
void kernel_note_later(struct kernel *k); /* something has changed */
void kernel_noted(struct kernel *k);      /* the launcher has one */

/* ---- kernel_inherit.c ---- */
void kernel_inherit(struct kernel *k, struct view items); /* of a note, checked */
void kernel_tell_gap(struct kernel *k, struct query *q);
/* The kernel published something of it; begins: its first message. */
void kernel_heard_of(struct kernel *k, struct query *q, int begins);
void kernel_probe_subshells(struct kernel *k);
void kernel_shell_answered(struct kernel *k, const char *subshell);
/* It must be over, and its end was missed. */
extern const char kernel_lost_text[]; /* of the reply to such a run */
int kernel_run_is_lost(const struct query *q, uint64_t now);
void kernel_watch_inherited(struct kernel *k, uint64_t now);
void kernel_end_lost(struct kernel *k, struct query *q);
void kernel_inheritance_done(struct kernel *k); /* when it is */

/* ---- kernel_end.c ---- */
void kernel_begin_end(struct kernel *k); /* the ladder of jupyter-wire.md 4.3 */
/* Children of the old process end, then the next starts or the session ends. */
void kernel_clear_leaf(struct kernel *k);
void kernel_pause(struct kernel *k);                 /* back-off, then starts */
const char *kernel_farewell(const struct kernel *k); /* to the runs of one that is deleted */
/* To requests that wait for a kernel which is ended meanwhile: HC_EGONE, or ECANCELED when the server stops. */
void kernel_gone_why(const struct kernel *k, struct err *e);
void kernel_leave(struct kernel *k);        /* for good: the session ends with its last kernel */
void kernel_session_left(struct kernel *k); /* nothing of it is left in the sandbox */
void kernel_stop_leaf(struct kernel *k);    /* its own processes; then kernel_session_left() */
void kernel_kill_leaf(struct kernel *k);    /* while ending: what is there goes at once */

/* ---- kernel_death.c ---- */
void kernel_on_broke(void *arg, const char *why); /* it sent what no kernel may: it is killed */
void kernel_exited(struct kernel *k);             /* k->exit is filled in */
void kernel_start_failed(struct kernel *k, const struct err *e);
void kernel_sandbox_gone(struct kernel *k, const char *why);
void kernel_give_up(struct kernel *k, const char *why); /* dead, for good */
void kernel_stillborn(struct kernel *k);                /* it cannot be used, k->reason says why */
void kernel_refuse(struct kernel *k,
                   const char *why); /* likewise, from inside a callback of the link */

/* ---- kernel_seed.c ---- */
void kernel_seed_plan(
    struct kernel *k); /* a process is about to start: k->seeding, if it is to be */
void kernel_seed_watch(struct kernel *k); /* the process runs: its time begins */
void kernel_seed_begin(struct kernel *k); /* when it answers and iopub is proven */
int kernel_seed_runs(const struct kernel *k);
void kernel_seed_died(struct kernel *k); /* puts the cell into k->reason */
void kernel_seed_status(struct kernel *k, struct jsonscan_value parent_id, const char *state);
void kernel_on_own_reply(void *arg, const struct jmsg *m, const struct jmsg_facts *f);
struct seeding *kernel_seed_end(struct kernel *k); /* returns NULL */

/* ---- kernel_message.c ---- */
void kernel_on_iopub(void *arg, const struct jmsg *m, const struct jmsg_facts *f);
void kernel_on_oversized(void *arg, const struct jmsg *m, const struct jmsg_facts *f, size_t bytes,
                         const char *why);
void kernel_on_oversized_reply(struct seat *s, enum jmsg_channel channel,
                               const struct jmsg_facts *f, size_t bytes, const char *why);
void kernel_on_lost(void *arg);
void kernel_on_reply(struct seat *s, enum jmsg_channel channel, const struct jmsg *m,
                     const struct jmsg_facts *f);
/* Puts an input_request into the log once more. */
void kernel_log_ask(struct seat *s, const struct view parts[EVENT_PARTS]);
int kernel_is_run(enum jmsg_channel channel, const struct jmsg_facts *f);
/* Notes a client's message that was sent. */
struct query *kernel_note_query(struct seat *s, enum jmsg_channel channel, const struct jmsg *m,
                                const struct jmsg_facts *f);
/* For metrics.h; direction is of enum metric_direction. */
void kernel_count_message(enum jmsg_channel channel, const struct jmsg *m, unsigned direction);
int kernel_run_asks(const struct jmsg *m); /* of an execute_request: with allow_stdin */
void kernel_end_ignored(struct kernel *k, struct query *q); /* q may be gone afterwards */
int kernel_may_query(struct seat *s,
                     enum jmsg_channel channel); /* 0: too much of it is outstanding */

/* ---- kernel_tell.c: messages of the gateway ---- */
void kernel_tell_status(struct kernel *k,
                        const char *execution_state); /* to each seat, in its own session */
void kernel_tell_idle(struct kernel *k, uint64_t owner, struct view parent);
void kernel_tell_stream(struct kernel *k, struct view parent, const char *text);
void kernel_tell_seat(const struct seat *s, const char *text); /* to one client, of no cell */
/* To one client: the end of the run with that header was lost on its way to it. */
void kernel_tell_lost(const struct seat *s, struct view header, const char *text);
/* All runs end like this; who waits for a reply gets one that says why. status
 * ("restarting", "dead" or NULL) is told before the replies. */
void kernel_end_runs(struct kernel *k, enum run_state how, const char *ename, const char *text,
                     const char *status);
void kernel_tell_reply(struct kernel *k, const struct query *q, const char *ename,
                       const char *evalue);
void kernel_run_ended(struct kernel *k, struct query *q); /* log */
/* The kernel is not sent it. */
void kernel_refuse_run(struct seat *s, const struct jmsg *m, const char *ename, const char *why);

/* ---- kernel_short.c: limits that a run has used up ---- */
enum { KERNEL_SHORT_TEXT = 64 };
int kernel_short_of(struct query *q, enum query_short what); /* notes it; 1: for the first time */
const char *kernel_short_text(const struct query *q,
                              char out[KERNEL_SHORT_TEXT]); /* "memory,disk" */
/* All that the kernel works on are, as far as is known. */
void kernel_runs_short_of(struct kernel *k, enum query_short what);
/* 0: a message of so many bytes is dropped. q: the open request that it belongs to, or NULL. */
int kernel_takes_output(struct kernel *k, struct query *q, struct view parent, const char *type,
                        uint64_t bytes);
/* For link_ops: of a run whose budget is used up. */
int kernel_is_unwanted(void *arg, const struct jmsg *m, const struct jmsg_header *header,
                       const struct jmsg_header *parent);
void kernel_tell_dropped(struct kernel *k, struct query *q); /* before the idle that ends it */
void kernel_see_shortage(struct kernel *k, struct query *q, const struct jmsg *m); /* of an error */
void kernel_tasks_refused(struct kernel *k, const struct launch_tasks_refused *t);
/* For the reason of a death: "" unless it was so a moment ago. */
const char *kernel_tasks_text(const struct kernel *k, char out[KERNEL_SHORT_TEXT]);

/* ---- kernel_silence.c: requests that the kernel threw away without a word ---- */
void kernel_watch_silence(struct kernel *k, uint64_t now);
void kernel_silence_answered(struct kernel *k); /* the main shell did */

/* ---- kernel_watch.c ---- */
void kernel_watch(struct kernel *k);      /* until all that it looks at has ended */
void kernel_watch_runs(struct kernel *k); /* when there is one */

/* ---- kernel_clock.c: deadlines of runs ---- */
/* Takes the rungs that are due. 1: all runs have ended, the kernel is being ended. */
int kernel_check_clocks(struct kernel *k, uint64_t now);
/* The next gateway has to know of its clock. */
int kernel_has_clock(const struct kernel *k, const struct query *q);
/* What the kernel said of q, which is past its deadline: was it stopped by that? */
void kernel_see_stop(struct query *q, const struct jmsg *m, const char *type);
/* Tells the client of q, once, of the interrupt that its deadline brought; before the idle that ends
 * it. stopped: the interrupt ended it; else it went on to an end of its own. */
void kernel_tell_stop(struct kernel *k, struct query *q, int stopped);
/* "the cell timeout of 2 s": the limit that it ran into. */
const char *kernel_limit_text(const struct kernel *k, const struct query *q, char *out, size_t n);
/* ename of the reply to a run that the end of the kernel ends; usual for the others. */
const char *kernel_overdue_ename(const struct query *q, const char *usual);
void kernel_input_asked(struct kernel *k, struct query *q);
void kernel_input_answered(struct seat *s);

/* ---- kernel_create.c: from the start of a process to its first answer ---- */
void kernel_create_begins(struct kernel *k);
void kernel_create_ends(struct kernel *k); /* it answered, or something else became of it */
/* What is told of one that was too late, in the phase that it is in. */
void kernel_create_late(struct kernel *k);

/* ---- kernel_audit.c ---- */
/* key NULL: no further field. */
void kernel_audit(struct kernel *k, const char *event, const char *key, const char *value);
/* -HC_EAUDIT: it must not happen. */
int kernel_audit_intent(struct kernel *k, const char *event, struct err *e) MUST_CHECK;
void kernel_audit_start(struct kernel *k, int ok, uint64_t took_us);
/* Before the request goes to the kernel; then it is sent, or the one below says why not. */
int kernel_audit_run(struct seat *s, const struct jmsg *m, struct err *e) MUST_CHECK;
void kernel_audit_run_unsent(struct seat *s, const char *state);
void kernel_audit_run_end(struct kernel *k, const struct query *q, uint64_t took_us);

/* ---- client.c ---- */
void kernel_wake_clients(struct kernel *k); /* the log has grown */
/* The seat goes before its client. */
void client_orphan(struct client *c);
void client_end_later(struct client *c, enum client_end why, int now);
void client_writable_later(struct client *c);
void kernel_end_clients(struct kernel *k, enum client_end why, int now);

/* ---- sessions.c ---- */
struct loop *sessions_loop(const struct sessions *s);
struct launchclient *sessions_launcher(const struct sessions *s);
struct zsockets *sessions_zsockets(const struct sessions *s);
struct deferred *sessions_deferred(const struct sessions *s);
const struct sessions_policy *sessions_policy(const struct sessions *s);
struct seed *sessions_seed(const struct sessions *s);       /* borrowed; NULL for none */
const char *sessions_seed_kernel(const struct sessions *s); /* what it is for */
int sessions_has_profiles(const struct sessions *s);
const char *sessions_own_sid(const struct sessions *s); /* the gateway's own message session */
struct kernel *sessions_by_number(struct sessions *s, uint64_t number);
struct session *sessions_session(struct sessions *s, uint64_t number);
struct kernel *sessions_first_kernel(const struct sessions *s); /* session by session */
struct kernel *sessions_next_kernel(const struct kernel *k);

#endif
