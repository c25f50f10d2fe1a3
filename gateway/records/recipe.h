/*
 * recipe - what a start of a kernel's process needs, kept for the next start and,
 * in a memfd beside the note, for the next gateway.
 */
#ifndef HC_RECIPE_H
#define HC_RECIPE_H

#include "buf.h"

struct err;

struct kernel_recipe {
    char *spec_name; /* owned, as all below */
    unsigned spec_dir;
    int sockets_fd, interrupt_by_message;
    uint64_t cull_ms;       /* of kernel.json, or CULL_UNSET */
    struct buf argv;        /* strings (msgcodec.h), as the two below */
    struct buf request_env; /* of the request, filtered */
    struct buf spec_env;    /* of kernel.json, not expanded */
    char *cwd;
};

void recipe_init(struct kernel_recipe *r);
void recipe_free(struct kernel_recipe *r);

/* The strings as a NULL-terminated array that borrows them; the caller frees it. */
char **recipe_strings(const struct buf *b);

/* argv, environments and cwd in a sealed memfd, and back. What comes back is checked. */
int recipe_memfd(const struct kernel_recipe *r, int *ret_fd, struct err *e) MUST_CHECK;
int recipe_read(int fd, struct kernel_recipe *r, struct err *e) MUST_CHECK;

#endif
