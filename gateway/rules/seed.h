/*
 * seed - the notebook whose code cells a kernel runs before anybody uses it. Pure:
 * the parsed notebook, shared by the kernels that run it just now.
 */
#ifndef HC_SEED_H
#define HC_SEED_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

struct err;

enum {
    SEED_BYTES_MAX = 8 * 1024 * 1024, /* of the file */
    SEED_CELLS_MAX = 10000,
    SEED_TIMEOUT_MS = 60000, /* without --seed-timeout */
};

struct seed_cell {
    char *code;      /* owned, UTF-8 without NUL */
    unsigned number; /* among all cells of the notebook, from 1 */
};

struct seed {
    unsigned users;
    char *kernel; /* owned: the kernelspec that the notebook names, "" for none */
    struct seed_cell *cells;
    size_t count;
};

/* A notebook of nbformat 4; only the code cells are kept. -EINVAL says what is wrong. */
int seed_parse(struct view notebook, struct seed **ret, struct err *e) MUST_CHECK;

struct seed *seed_use(struct seed *s);  /* one user more; NULL-safe */
struct seed *seed_drop(struct seed *s); /* one less; the last one frees it; returns NULL */

#endif
