/*
 * health - whether this gateway can do its work: named checks, each looked at again after
 * a while at the earliest, so that nobody who asks often causes more than one look.
 * A change is told in the log; whoever asks hears names only.
 */
#ifndef HC_HEALTH_H
#define HC_HEALTH_H

#include <stdint.h>

struct err;
struct health;
struct jsonwrite;

/* 0, or a negative code with the reason in e. */
typedef int health_fn(void *arg, struct err *e);

struct health *health_new(void);
struct health *health_free(struct health *h); /* accepts NULL, returns NULL */
/* name is a plain word; it and arg are borrowed. every_ms 0: looked at each time. */
void health_add(struct health *h, const char *name, uint64_t every_ms, health_fn *fn, void *arg);

/* 1 when all checks pass. h NULL: 1. */
int health_ready(struct health *h, uint64_t now_ms);
/* {"status": "ready" or "unready", "checks": {name: "ok" or "failed"}} as of the last health_ready(), and the notes. */
void health_write(const struct health *h, struct jsonwrite *w);

/* Something that is so and no failure; one at most, both borrowed. */
void health_note(struct health *h, const char *name, const char *value);

/* A check for health_add(). */
/* A file can be written in the directory; arg points to its descriptor. */
int health_directory(void *arg, struct err *e);

#endif
