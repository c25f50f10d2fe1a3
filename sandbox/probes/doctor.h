/*
 * doctor - all walls, one after the other: for `holdcell doctor`, and those few that a
 * server makes sure of before it serves.
 */
#ifndef HC_DOCTOR_H
#define HC_DOCTOR_H

#include "probe.h"

/* Called once per wall, in the order of hostwalls.h. */
typedef void doctor_tell(enum hostwall wall, const struct probe_result *result, void *arg);

/* Needs no other children of the caller. runtime: NULL when there is none, and env->runtime_dir
 * is a stand-in. */
int doctor_run(const struct probe_env *env, const char *runtime, doctor_tell *tell, void *arg,
               struct err *e) MUST_CHECK;

/* With env->host: only what the server relies on and what would fail in silence. The set of
 * those that are missing goes to *ret. */
int doctor_start(const struct probe_env *env, doctor_tell *tell, void *arg, hostwall_set *ret,
                 struct err *e) MUST_CHECK;

/* Which walls are the reason that a host could not be opened, or a sandbox not built: tries those
 * that are demanded and that doctor_start() does not, and tells of the missing ones. */
hostwall_set doctor_diagnose(const struct probe_env *env, doctor_tell *tell, void *arg);

/* SANDBOX_WITHOUT_* (sandbox.h) for those that are missing and not refused. */
unsigned doctor_without(const struct hostwall_policy *p, hostwall_set missing);

#endif
