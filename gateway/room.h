/*
 * room - what the launcher says of the host's room for further sessions, asked again and
 * again: for /readyz and /metrics. The decision is the launcher's, at each CREATE.
 */
#ifndef HC_ROOM_H
#define HC_ROOM_H

struct err;
struct launchclient;
struct loop;
struct room;

struct room *room_new(struct loop *l, struct launchclient *c);
struct room *room_free(struct room *r); /* accepts NULL, returns NULL; before the launchclient */

/* A health_fn (health.h): fails while a session would be refused. */
int room_check(void *room, struct err *e);

#endif
