/*
 * kernelenv - the environment of a kernel, built from scratch: a safe base, what
 * the operator lets through of the server's own, what the request may set, and
 * the kernelspec's on top. Pure.
 */
#ifndef HC_KERNELENV_H
#define HC_KERNELENV_H

#include "buf.h"

struct err;

enum { KERNELENV_VALUE_MAX = 32 * 1024 };

struct kernelenv {
    const char *runtime;  /* its bin is first in PATH; or NULL */
    unsigned cores;       /* threads that numeric libraries start */
    char *const *server;  /* NAME=value that the operator passes on; NULL-terminated, or NULL */
    char *const *request; /* NAME=value of the request, or NULL */
    const char
        *allow; /* comma list of names let through from the request beside KERNEL_*; or NULL */
    char *const *spec; /* NAME=value of kernel.json, values not expanded; or NULL */
};

/* Appends the strings, each with its NUL, to out (msg_strings). -EINVAL names a
 * variable of the request with a bad name or value; -EMSGSIZE when it is too much. */
int kernelenv_build(const struct kernelenv *k, struct buf *out, struct err *e) MUST_CHECK;

/* The strings of the request that pass, the others left out: what a later start
 * of the same kernel needs again. */
int kernelenv_filter(const struct kernelenv *k, struct buf *out, struct err *e) MUST_CHECK;

/* What the server says of the notebook session; a request cannot. kernelenv_build() lets it pass. */
#define KERNELENV_SESSION "JPY_SESSION_NAME"
/* Replaces that string among the others, or adds it. */
int kernelenv_set_session(struct buf *strings, const char *name, struct err *e) MUST_CHECK;

/* The working directory for an API path ("sub/nb.ipynb" -> "/home/user/sub"):
 * always below /home/user, whatever the path says. Caller frees. */
char *kernelenv_cwd(const char *path);
/* The one of KERNEL_WORKING_DIR in env, when that lies in /home/user; else /home/user: it is
 * mostly a directory of the client's machine. Caller frees. */
char *kernelenv_working_dir(char *const *env);

#endif
