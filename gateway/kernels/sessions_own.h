/* sessions_own - what the files of sessions and session.c share; nobody else includes it. */
#ifndef HC_SESSIONS_OWN_H
#define HC_SESSIONS_OWN_H

#include "deferred.h"
#include "eventlog.h"
#include "launchclient.h"
#include "loop.h"
#include "sessions.h"
#include "zsocket.h"

struct sessions {
    struct loop *loop; /* borrowed, as launcher and specs */
    struct launchclient *launcher;
    struct kernelspecs *specs;
    struct sessions_policy policy;
    struct deferred *deferred; /* owned */
    struct zsockets *zsockets;
    struct session *first, *last; /* owned list, in the order they were made */
    struct owner *owners;         /* owned list: principals that have sessions */
    struct remains *remains;      /* owned list */
    char sid[33];                 /* the gateway's own message session */
    struct seed *seed;            /* a use of it; NULL */
    char *seed_kernel;            /* owned */
    struct profiles *profiles;    /* owned; NULL: none */
    uint64_t profiles_version;
    int stopping;
    void (*shutdown_done)(void *arg);
    void *shutdown_arg;
    struct loop_timer *shutdown_timer;
    struct loop_timer *cull_timer, *note_timer;
    void (*adopt_done)(void *arg);
    void *adopt_arg;
    struct loop_timer *deadline_timer;
    size_t held_bytes; /* of clients' messages that wait for kernels */
    int held_awaited;  /* a client waits for room among them */
    struct deferred_node held_release;
};

/* ---- sessions_held.c ---- */
void sessions_held_init(struct sessions *s);
void sessions_held_end(struct sessions *s); /* no kernel is left */

/* ---- sessions_deadline.c ---- */
void sessions_watch_deadlines(struct sessions *s); /* renews them from now on */
void sessions_renew_deadline(struct sessions *s, struct session *n);

#endif
