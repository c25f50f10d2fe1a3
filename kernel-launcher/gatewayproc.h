/*
 * gatewayproc - the one gateway process: starts it without power, notices its
 * end, starts it again with a growing pause. What sandboxes do does not depend on
 * whether it lives.
 */
#ifndef HC_GATEWAYPROC_H
#define HC_GATEWAYPROC_H

#include <stdint.h>
#include <sys/types.h>

#include "cleanup.h"
#include "hostwalls.h"
#include "settings.h"

struct err;
struct link;

struct gateway_config {
    int exe_fd;       /* the program, opened at start: a respawn runs the same file even when it was
                       * replaced, and no directory on its path must be open to the gateway's id */
    const char *name; /* argv[0] */
    int listen_fd, settings_fd, ready_fd, dir_fd; /* handed to every gateway */
    int more_listen_fds[LISTEN_MORE_MAX];         /* further listening sockets */
    unsigned more_listen_count;
    uid_t uid;            /* uid and gid */
    int first;            /* set by gatewayproc_start(): no sandbox can be there */
    hostwall_set missing; /* walls that sessions do without; a gateway without its filter then */
    unsigned restarts;    /* filled in at each start */
};

struct gatewayproc {
    pid_t pid;         /* 0 while none lives */
    int pidfd;         /* owned; -1 */
    struct link *link; /* owned; NULL while none lives, or when it was broken and killed */
    unsigned starts;   /* that succeeded, in all */
    unsigned deaths;   /* in a row, without a healthy life between */
    uint64_t started_ms;
    uint64_t due_ms;       /* of the next start */
    uint64_t kill_ms;      /* when to kill one that closed its link but lives on; 0: no need */
    int spoke;             /* a valid request came from one of them */
    int inherited;         /* the sandboxes of an earlier server may be there */
    uint64_t pause_max_ms; /* between a death and the next start */
};

void gatewayproc_init(struct gatewayproc *g);
/* Forks, drops all power, execs; returns when exec succeeded. */
int gatewayproc_start(struct gatewayproc *g, const struct gateway_config *c,
                      struct err *e) MUST_CHECK;
/* It was reaped: closes the link, plans the next start. */
void gatewayproc_ended(struct gatewayproc *g, uint64_t now_ms);
/* It could not be started: plans the next try. */
void gatewayproc_failed(struct gatewayproc *g, uint64_t now_ms);
void gatewayproc_signal(const struct gatewayproc *g, int signo);
/* It closed its end, so it is about to exit: gets a moment to do so by itself,
 * so that its own exit status is seen. */
void gatewayproc_closed(struct gatewayproc *g, uint64_t now_ms);
/* Closes the link and kills: it sent nonsense or does not read. */
void gatewayproc_kill(struct gatewayproc *g);

/* At the launcher's own end, with no gateway alive: what gateways left in their directory. */
int gatewayproc_clear(const struct gatewayproc *g, const struct gateway_config *c,
                      struct err *e) MUST_CHECK;

/* The pause before the start that follows this many deaths in a row. */
uint64_t gatewayproc_backoff_ms(unsigned deaths);

#endif
