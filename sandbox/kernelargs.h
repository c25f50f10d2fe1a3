/*
 * kernelargs - the argument list of a kernel with its placeholders filled in, and
 * the search for its program inside the sandbox.
 */
#ifndef HC_KERNELARGS_H
#define HC_KERNELARGS_H

#include "cleanup.h"

struct err;

/* A copy (owned, ended by NULL, one allocation per string) of argv with every
 * `{connection_file}` and `{resource_dir}` replaced. */
int kernelargs_fill(char *const *argv, const char *connection_file, const char *resource_dir,
                    char ***ret, struct err *e) MUST_CHECK;
char **kernelargs_free(char **argv);

/* In the child, behind the last wall: looks argv[0] up in the PATH of env and execs it. Returns only
 * on failure, with a negative errno. Allocates nothing. */
int kernelargs_exec(char *const *argv, char *const *env, struct err *e);

#endif
