/*
 * culling - the walk over the kernels at an interval that ends those nobody uses
 * (the rule is cull.h).
 */
#ifndef HC_CULLING_H
#define HC_CULLING_H

enum { CULLING_NOTE_MS = 10000 }; /* so old may be what a note knows of a kernel's last activity */

struct sessions;

/* Looks at the kernels from now on, until culling_stop(). Also keeps the notes of the
 * kernels up to date with their activity, so that an adopted one goes on from there. */
void culling_start(struct sessions *s);
void culling_stop(struct sessions *s);

#endif
