/*
 * livefiles - the files whose content is a setting of the gateway (settings.h), read
 * at the start and again at SIGHUP. The supervisor only carries the bytes: what they
 * mean is found out by a process without power (trial.h).
 */
#ifndef HC_LIVEFILES_H
#define HC_LIVEFILES_H

#include <stddef.h>

#include "buf.h"

struct err;

enum {
    LIVEFILES_MAX = 8,
    LIVEFILE_BYTES = 512 * 1024, /* of one file */
    LIVEFILE_LARGE_BYTES = 8 * 1024 * 1024,
};

enum {
    LIVEFILE_SECRET = 1, /* root's alone: others may neither read nor write it */
    LIVEFILE_TOKEN = 2,  /* one token on a line of its own */
    LIVEFILE_POLICY = 8, /* root's: others may read it, but not write */
    LIVEFILE_LARGE = 4,  /* LIVEFILE_LARGE_BYTES, not LIVEFILE_BYTES; one of them at most */
};

struct livefile {
    const char *key;    /* of the setting (borrowed) */
    const char *option; /* that names the file (borrowed); NULL: an argument did */
    char label[40];     /* how errors begin: "option --NAME: ", or nothing */
    char *path;         /* owned, absolute */
    unsigned flags;
};

struct livefiles {
    struct livefile at[LIVEFILES_MAX];
    unsigned count;
};

/* path may be relative to the working directory of now. option: without dashes; NULL: an argument
 * names the file. */
void livefiles_add(struct livefiles *l, const char *key, const char *option, const char *path,
                   unsigned flags);
void livefiles_free(struct livefiles *l);

/* Reads all and appends a setting for each. The text names option and file. */
int livefiles_read(const struct livefiles *l, struct buf *out, struct err *e) MUST_CHECK;

#endif
