/*
 * world - a launcher over the fake sandbox with a gateway that is the test: the
 * test asks through the socket and turns the loop by hand.
 */
#ifndef HC_WORLD_H
#define HC_WORLD_H

#include "launcher.h"
#include "sandbox_fake.h"

enum { WORLD_MEMORY_MAX = 128 << 20 };

struct world {
    struct launcher launcher;
    struct launcher_config config;
    int fd;         /* the gateway's end */
    uint64_t asked; /* last request number */
    char dir[64];   /* data directory with kernels/python3 */
};

struct answer {
    struct msg_head head;
    union {
        struct launch_created created;
        struct launch_started started;
        struct launch_done done;
        struct launch_status_answer status;
        struct launch_room_answer room;
        struct launch_listed listed;
        struct launch_error error;
        struct launch_kernel_exited exited;
        struct launch_out_of_memory oom;
        struct launch_sandbox_gone gone;
        struct launch_tasks_refused tasks;
    };
    int fds[MSG_FDS_MAX];
    uint8_t bytes[MSG_MAX]; /* what the views point into */
};

int world_setup(void **state);    /* cmocka fixtures */
int world_teardown(void **state); /* also checks that no descriptor leaked */

/* A new stand-in process with a fresh socket, as after a respawn. */
void world_attach(struct world *w);

/* Sends a request and returns its number. */
uint64_t world_ask(struct world *w, unsigned verb, const void *body, const int *fds,
                   unsigned fd_count);
void world_send_raw(struct world *w, const void *bytes, size_t n);

/* 1 and the packet when one is there now. */
int world_poll(struct world *w, struct answer *a);
/* Turns the loop until a packet is there (fails after 20 s); closes what descriptors
 * the answer before brought. */
void world_next(struct world *w, struct answer *a);
/* world_ask() and the answer to it, which must come next. */
void world_call(struct world *w, unsigned verb, const void *body, const int *fds, unsigned fd_count,
                struct answer *a);
/* Turns the loop until cond() is true (fails after 20 s). */
void world_until(struct world *w, int (*cond)(struct world *w));
/* 1 when the launcher has ended the stand-in process. */
int world_gateway_dead(struct world *w);

void world_fresh(struct answer *a); /* forgets what was received before */
void world_assert_error(const struct answer *a, int code, const char *part);
/* Turns until the launcher has ended the gateway, checks that so many sandboxes
 * live, and attaches the next one. */
void world_assert_gateway_ended(struct world *w, int sandboxes);

/* Shorthands that must succeed. */
void world_stop_session(struct world *w, uint64_t sandbox);
uint64_t world_create(struct world *w);
void world_start(struct world *w, uint64_t sandbox, uint32_t kernel, uint32_t generation,
                 const char *argv0);
/* Descriptors as START_KERNEL wants them; fds_close() ends them. */
unsigned world_start_fds(int fds[7], int with_sockets);
void world_close(int *fds, unsigned n);

#endif
