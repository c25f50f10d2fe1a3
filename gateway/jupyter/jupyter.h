/*
 * jupyter - the Jupyter front: REST under /api and /kernelspecs, the channels
 * WebSocket (jupyter-wire.md 1 and 2 say what clients expect).
 */
#ifndef HC_JUPYTER_H
#define HC_JUPYTER_H

#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"
#include "launchmsg.h"
#include "router.h"
#include "timelimits.h"

struct err;
struct jsonwrite;
struct kernel;
struct kernel_request;
struct kernelspecs;
struct nbsessions;
struct server;
struct sessions;

struct jupyter {
    struct server *server; /* borrowed, as all here */
    struct sessions *sessions;
    struct kernelspecs *specs;
    struct nbsessions *notebooks;
    uint64_t
        looked_at; /* the number of the notebook session that was last looked at for its kernel */
    const char *base; /* begins and ends with '/' */
    const char *version;
    int list_kernels;
    uint64_t started_us; /* CLOCK_REALTIME */
    char *document[2];   /* the OpenAPI document, JSON and YAML; owned; NULL: not made yet */
    unsigned calls;      /* operations of sessions that will still call back here */
};

/* The table of routes; their arg is a struct jupyter. */
extern const struct route jupyter_routes[];
extern const size_t jupyter_route_count;

/* Handlers, one file per subject. */
void api_version(struct request *r, void *arg);
void api_status(struct request *r, void *arg);
void api_me(struct request *r, void *arg);
void specs_list(struct request *r, void *arg);
void specs_one(struct request *r, void *arg);
void specs_resource(struct request *r, void *arg);
void document_json(struct request *r, void *arg);
void document_yaml(struct request *r, void *arg);
void kernels_list(struct request *r, void *arg);
void kernels_create(struct request *r, void *arg);
void kernels_get(struct request *r, void *arg);
void kernels_delete(struct request *r, void *arg);
void kernels_limits(struct request *r, void *arg);
void kernels_interrupt(struct request *r, void *arg);
void kernels_restart(struct request *r, void *arg);
void nbsessions_list(struct request *r, void *arg);
void nbsessions_create(struct request *r, void *arg);
void nbsessions_get(struct request *r, void *arg);
void nbsessions_patch(struct request *r, void *arg);
void nbsessions_delete(struct request *r, void *arg);
void channels_open(struct request *r, void *arg);

/* The kernel of the first path parameter; NULL after a 404 was given. */
struct kernel *jupyter_kernel(struct request *r, const struct jupyter *j);

/* Writes the model of a kernel as one JSON value. */
void kernel_write(struct jsonwrite *w, const struct kernel *k);

/* 1 when there is nothing but white space: a body like that counts as none. */
int blank_text(const void *text, size_t n);

/*
 * The body of POST /api/kernels. All of it is optional; null counts as absent, and
 * so does no body at all. Strings are owned by the struct.
 */
struct kernel_body {
    void *document; /* the parsed body: owner of the strings */
    const char *name, *path, *kernel_id, *profile;
    struct launch_limits limits; /* 0: not asked for */
    struct time_limits times;    /* likewise */
    char **env;                  /* "NAME=value", NULL-terminated; owned; NULL without env */
};
/* -HC_EPARSE or -EINVAL (both 400) with the field named. */
int kernel_body_parse(const void *body, size_t n, struct kernel_body *ret,
                      struct err *e) MUST_CHECK;
void kernel_body_free(struct kernel_body *b);

#endif
