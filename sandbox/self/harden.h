/*
 * harden - what our own processes take from themselves when they have what they need: a
 * process that was taken over through a bug is to gain as little as can be. What is left to
 * each: docs/SECURITY.md.
 */
#ifndef HC_HARDEN_H
#define HC_HARDEN_H

#include "cleanup.h"
#include "landlock.h"
#include "seccomp.h"

struct err;

/* For root's daemons (supervisor, launcher), before anything untrusted is near: no new
 * privileges, no core file, capabilities cut to caps_of_daemons(), not dumpable, harden_memory(),
 * the filter.
 * No Landlock: a layer forbids every change of mounts, also to what inherits it.
 * All of it goes on to children, through their exec too, but for "not dumpable" and memory.
 *
 * On a kernel without filters none is loaded, here and below: whether anything is served
 * there is what the launcher decides (kernel-launcher/checkup.h).
 *
 * In builds with a sanitizer the filter and the dumpable flag are left out: at the end of a
 * program the sanitizer looks for leaks by tracing it. */
int harden_daemon(enum seccomp_filter filter, struct err *e) MUST_CHECK;

/* For the caller and not for what it forks or execs: memory that was written is never executed.
 * Before Linux 6.6, which can say "not for children", nothing; nothing either in builds with a sanitizer. */
int harden_memory(struct err *e) MUST_CHECK;

/* For the gateway, once it is exec'ed: a Landlock layer with these rules where the kernel has
 * one, then the filter that is without exec. Before there are threads. */
int harden_gateway(const struct landlock_rule *rules, struct err *e) MUST_CHECK;

/* A write to a pipe that nobody reads, or beyond the limit of file sizes, is an error of that write and
 * does not end the process. Not inherited: what is exec'ed has the default again. */
int harden_writes(struct err *e) MUST_CHECK;

#endif
