/*
 * box - what several probes share: a process in namespaces of its own, made by the
 * very code that makes a session's (userns.h), and the host's parts for it.
 */
#ifndef HC_BOX_H
#define HC_BOX_H

#include "layers.h"
#include "probe.h"
#include "userns.h"

enum { BOX_INDEX = USERNS_SESSIONS - 1 }; /* of the session whose ids it has */

/* In the new namespaces, as their root, all of the set-up of a session's pid 1 still ahead.
 * channel_fd: to box_outside; its other end. */
typedef int box_inside(void *arg, int channel_fd, struct err *e);
/* In the probe's process, while the other one runs. */
typedef int box_outside(pid_t pid, void *arg, int channel_fd, struct err *e);

/* Either may be what fails. outside may be NULL. */
int box_run(const struct probe_env *env, box_inside *inside, box_outside *outside, void *arg,
            struct err *e) MUST_CHECK;

/* Those of env's host, or new ones in *own, which live as long as the probe's process. */
int box_userns(const struct probe_env *env, struct userns *own, const struct userns **ret,
               struct err *e) MUST_CHECK;
int box_layers(const struct probe_env *env, struct layers *own, const struct layers **ret,
               struct err *e) MUST_CHECK;

#endif
