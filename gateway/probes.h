/*
 * probes - what those ask who watch over the server: /healthz, /readyz, /metrics. Served at
 * the root as well as below the base URL, since a probe knows no base.
 */
#ifndef HC_PROBES_H
#define HC_PROBES_H

struct health;
struct router;
struct server;
struct sessions;

struct probes {
    struct server *server;     /* borrowed, as all here */
    struct sessions *sessions; /* measured for /metrics */
    struct health *health;     /* NULL: always ready */
};

/* metrics_open: /metrics asks for no token. p is borrowed for the router's life. */
void probes_add(struct router *r, struct probes *p, int metrics_open);

#endif
