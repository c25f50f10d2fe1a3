/*
 * profile - compiles a seccomp profile (a list of names and the tables of
 * argument rules) to BPF with libseccomp. Part of the build and of its test;
 * never of a program that runs.
 */
#ifndef HC_PROFILE_H
#define HC_PROFILE_H

#include <linux/filter.h>
#include <stddef.h>

struct err;

/* The names of the profiles, NULL-terminated. */
const char *const *profile_names(void);

/* Compiles profile `name`, whose lists lie in directory `lists`. On success the
 * program is owned by the caller. Returns 0 or a negative code that names file
 * and line, or the rule. */
int profile_compile(const char *name, const char *lists, struct sock_filter **ret,
                    size_t *ret_count, struct err *e) __attribute__((warn_unused_result));

#endif
