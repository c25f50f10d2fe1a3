/*
 * session - one sandbox and the kernels in it, owned by one principal
 * (docs/STATES.md). Its sandbox is made when the first kernel starts, made anew when it
 * was lost and a kernel starts again, and ends with the last kernel.
 */
#ifndef HC_SESSION_H
#define HC_SESSION_H

#include <stdint.h>

#include "hex.h"
#include "launchclient.h"
#include "launchmsg.h"
#include "log.h"
#include "sessions.h"

struct err;
struct kernel;
struct loop_timer;
struct owner;
struct spool_quota;

enum session_phase {
    SESSION_EMPTY,    /* no sandbox: not asked for yet, or lost */
    SESSION_CREATING, /* CREATE is on its way to the launcher */
    SESSION_OPEN,     /* the sandbox holds init */
    SESSION_ENDING,   /* STOP of the session was sent */
    SESSION_GONE,
};
const char *session_phase_name(enum session_phase p);

struct session {
    struct sessions *all;        /* borrowed */
    struct session *prev, *next; /* in the order they were made */
    uint64_t number;             /* never used twice: the token of questions to the launcher */
    char id[UUID_TEXT];
    struct principal principal; /* as it was then: its limits hold for this session */
    struct owner *owner;        /* borrowed: what all sessions of the principal share */
    char profile[PROFILE_NAME]; /* of the sandbox */
    enum session_phase phase;
    uint64_t sandbox;         /* the launcher's id; 0: none */
    int init_fd, dir_fd;      /* owned: init's socket, O_PATH of the run folder */
    struct time_limits times; /* in force from the start */
    uint64_t born_ms;         /* CLOCK_MONOTONIC */
    struct loop_timer *life_timer;
    struct launch_limits wanted; /* of the launcher (sessionlimits.h) */
    struct launch_limits limits; /* those in force */
    struct kernel *kernels;      /* owned list, in start order */
    struct loop_timer *oom_timer;
    struct log_limit tasks_log;   /* how often its refused processes are told there */
    uint64_t oom_limit, oom_peak; /* of what is told then */
};

/* Bytes of spool files, over all kernels of the principal. */
struct spool_quota *session_quota(const struct session *s);

/* Adds itself to sessions. wanted is set by whoever makes it or takes it over. */
struct session *session_new(struct sessions *all, const struct principal *p);
void session_free(struct session *s); /* with no kernel left in it */

/* Ends the session when its lifetime is over; times and born_ms are set before. */
void session_watch_life(struct session *s);
uint64_t session_life_end(const struct session *s); /* CLOCK_MONOTONIC; 0: never */

void session_add_kernel(struct session *s, struct kernel *k);
/* The last kernel takes its session along. */
void session_remove_kernel(struct session *s, struct kernel *k);

/* 1: the sandbox is there. 0: it was asked for; kernel_session_opened() or
 * kernel_start_failed() of each waiting kernel tells. */
int session_open(struct session *s, struct err *e) MUST_CHECK;

/* A sandbox that another gateway made. Takes over the descriptors. */
void session_adopt(struct session *s, uint64_t sandbox, const struct launch_limits *limits,
                   int init_fd, int dir_fd);

/* k is at its end. The last kernel takes the sandbox down, another one only its own
 * processes; kernel_session_left() tells when that is done. */
void session_leave(struct session *s, struct kernel *k);

/* The launcher says that memory ended for some process of it: its runs hear of it soon, unless
 * it is the end of their kernel. */
void session_out_of_memory(struct session *s, const struct launch_out_of_memory *o);

/* Now, if it waits: a run of it is about to end. */
void session_tell_memory(struct session *s);

/* The launcher says that the sandbox ended by itself. */
void session_lost(struct session *s, const char *why);

/* Sessions that were killed, answered and forgotten, but are not gone yet, as the launcher says (ETIMEDOUT of its
 * STOP): each takes its place until it says that they are. p: of whom; NULL: all. */
size_t sessions_count_remains(const struct sessions *all, const struct principal *p);
void sessions_remains_gone(struct sessions *all, uint64_t sandbox); /* or none of ours */
void sessions_forget_remains(struct sessions *all);

/* What the next gateway needs of this session and its kernel. fds stay the caller's. */
int session_note(struct session *s, struct view note, const int *fds, unsigned fd_count,
                 struct err *e) MUST_CHECK;

#endif
