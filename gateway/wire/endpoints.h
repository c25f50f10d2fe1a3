/*
 * endpoints - where the five sockets of one kernel generation are: listening
 * sockets of ours in the private directory, or sockets that the kernel bound in
 * its run folder, held by descriptor so that no path can be exchanged below us.
 */
#ifndef HC_ENDPOINTS_H
#define HC_ENDPOINTS_H

#include <stddef.h>

#include "cleanup.h"

struct err;

enum {
    ENDPOINT_SHELL,
    ENDPOINT_CONTROL,
    ENDPOINT_STDIN,
    ENDPOINT_IOPUB,
    ENDPOINT_HB,
    ENDPOINT_COUNT
};
enum { ENDPOINT_BASE = 17, ENDPOINT_TEXT = 80, KEY_TEXT = 34 };

struct endpoints {
    int dir_fd;               /* borrowed: the gateway's private directory */
    char base[ENDPOINT_BASE]; /* of the names there; "" for a kernel with a run folder */
    int fds[ENDPOINT_COUNT];  /* owned, O_PATH: sockets in a run folder; -1 each else */
};
#define ENDPOINTS_NONE                              \
    {                                               \
        .dir_fd = -1, .fds = { -1, -1, -1, -1, -1 } \
    }

/* Makes five listening sockets under a random name; the caller passes them on and
 * closes them. */
int endpoints_listen(struct endpoints *p, int dir_fd, int ret_listening[ENDPOINT_COUNT],
                     struct err *e) MUST_CHECK;

/* Takes hold of s-1 .. s-5 in a run folder. 1 when all are there and take
 * connections, 0 when not yet, -HC_EPARSE when a name is no socket or its owner differs
 * from the others'. */
int endpoints_resolve(struct endpoints *p, int run_fd, struct err *e) MUST_CHECK;

/* The path of one of them, for connect(2). */
void endpoints_text(const struct endpoints *p, unsigned which, char out[ENDPOINT_TEXT]);

/* Removes names and descriptors; p is ENDPOINTS_NONE afterwards. */
void endpoints_drop(struct endpoints *p);

/* Removes every name in the private directory for which wanted() says 0: what a
 * gateway before this one left for kernels that are no more. */
void endpoints_sweep(int dir_fd, int (*wanted)(void *arg, const char *name), void *arg);
/* 1 when the name is one of the five. */
int endpoints_own(const struct endpoints *p, const char *name);

/* A key as Jupyter makes them: 32 hexadecimal digits with a dash. */
void endpoints_key(char out[KEY_TEXT]);

/* The connection data as a sealed memfd. ip: prefix of the socket names that the
 * kernel binds ("<ip>-1" is shell ...). */
int endpoints_connection(const char *ip, const char *key, const char *kernel_name, int *ret_fd,
                         struct err *e) MUST_CHECK;

#endif
