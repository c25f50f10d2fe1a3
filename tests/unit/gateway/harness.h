/* harness - the front on fake_core in a thread of its own, and a blocking client. */
#ifndef HC_HARNESS_H
#define HC_HARNESS_H

#include <stddef.h>
#include <stdint.h>

#include "front.h"

struct harness;

/* config->token NULL: "secret". Prepared directory with resources in it. */
struct harness *harness_start(const struct front_config *config);
struct harness *harness_start_open(const struct front_config *config); /* without a token */
/* 1: all tests of this run speak TLS, by a tunnel behind dial(). */
int harness_tunnelled(void);
/* Stops the front, waits for its end, checks that nothing was left behind. */
void harness_stop(struct harness *h);
/* Begins the stop and returns at once; harness_stop() waits. */
void harness_stop_begin(struct harness *h);
const char *harness_dir(const struct harness *h);
int harness_port(const struct harness *h);

#define DEADLINE_MS 10000

struct reply {
    int status;
    char head[8192];
    char *body; /* NUL-terminated */
    size_t body_n;
};

int dial(struct harness *h);
void hang_up(int fd); /* close */
void reset(int fd);   /* close with RST */
void put(int fd, const char *text);
void put_bytes(int fd, const void *p, size_t n);
void putf(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* 1: n bytes came; 0: the peer closed; fails the test at the deadline. */
int get_bytes(int fd, void *out, size_t n);
/* Reads one response. Status 0: the connection ended before one was complete. */
void get_reply(int fd, struct reply *r);
void get_reply_to_head(int fd, struct reply *r); /* of a HEAD request */
int ended(int fd); /* 1 when the peer closes (or resets) within the deadline; drops what comes */
void reply_free(struct reply *r);
/* One request with the token on a connection of its own. */
int ask(struct harness *h, const char *method, const char *path, const char *body, struct reply *r);
/* One request as ask(); fails unless status and, unless NULL, a part of the body are as given. */
void expect(struct harness *h, const char *method, const char *path, const char *body, int status,
            const char *part);
const char *reply_header(const struct reply *r, const char *name); /* static copy, or NULL */

/* Waits until *value is want. */
void until(_Atomic int *value, int want);

#endif
