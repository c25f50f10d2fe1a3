/*
 * zguard - bounds what libzmq holds of the kernels' messages. libzmq reads until its own limits,
 * and these count whole messages: the parts of one that never ends are held without a bound, and
 * where memory ends so does the process, with everybody's sessions. So what arrives on a
 * connection to a kernel is counted (zmtpcount.h) before libzmq has it: the functions of the C
 * library through which its one I/O thread reads are this module's (recv, connect, epoll_ctl,
 * close), for the connections to kernels alone.
 *
 * A connection waits (it is not polled) while its kernel, or all kernels together, have as much
 * in libzmq as they may; the loop reads it out of there and says so with zguard_give(). One
 * message, of whoever comes first, may go over the limit, so that messages of which each has a
 * part cannot wait for each other. What a kernel may not do at all ends the connection.
 */
#ifndef HC_ZGUARD_H
#define HC_ZGUARD_H

#include <stddef.h>
#include <stdint.h>

struct zguard;        /* a connection */
struct zguard_kernel; /* all connections to one kernel; counted references */

enum {
    ZGUARD_PART_COST = 128, /* bytes that libzmq (4.3.4) needs for a part beside its own */
    ZGUARD_PARTS_MAX = 8192,
    ZGUARD_ENDPOINT = 40,
    ZGUARD_STALL_MS = 20000, /* for a message to end while others wait for room */
};
#define ZGUARD_FRAME_MAX   (128ULL << 20) /* above, libzmq ends the connection */
#define ZGUARD_MESSAGE_MAX (256ULL << 20) /* of all parts; above, the guard does */
#define ZGUARD_KERNEL_MAX  (64ULL << 20)  /* of one kernel, and one message more */
#define ZGUARD_FREE        (2ULL << 20)   /* each kernel has, whatever others hold */

/* What all kernels may have together, and one message more: a quarter of the memory that the
 * process may have, at most of 4 GiB, or of 1 GiB where it has no limit. Looked at by the first
 * connection. */
size_t zguard_all_max(void);

/* Readable after a connection was ended for what its kernel did; -errno. One for the process, made
 * by the first call. */
int zguard_notices(void);
void zguard_notices_taken(void);
/* Ends the messages that keep others waiting; for a timer. */
void zguard_end_stalled(uint64_t stall_ms);

struct zguard_kernel *zguard_kernel_new(void);
struct zguard_kernel *zguard_kernel_drop(struct zguard_kernel *k); /* accepts NULL, returns NULL */

/* `path` is of a unix socket; the endpoint is for zmq_connect(), once. */
struct zguard *zguard_open(struct zguard_kernel *k, const char *path,
                           char ret_endpoint[ZGUARD_ENDPOINT]);
/* Before zmq_close(), which may abort otherwise: libzmq is told nothing more of the connection. What it
 * had in libzmq counts no more. Accepts NULL, returns NULL. */
struct zguard *zguard_close(struct zguard *g);

/* The loop read a message whose parts, dropped ones too, cost so much. */
void zguard_give(struct zguard *g, size_t cost);
/* Why the connection was ended, once; NULL when it was not, or that was told. */
const char *zguard_fault(struct zguard *g);

struct zguard_use {
    size_t kernel, all; /* bytes held */
    int waits;
};
struct zguard_use zguard_use(const struct zguard *g); /* for tests */
void zguard_set_all_max(size_t bytes); /* for tests; 0: the rule, for who comes next */

#endif
