/*
 * tail - reads what a kernel writes to its descriptors 1 and 2, for ever and at
 * once so that it never blocks, and keeps the last 16 KiB: the reason of a start
 * that failed is there.
 */
#ifndef HC_TAIL_H
#define HC_TAIL_H

#include <stddef.h>

struct loop;
struct tail;

enum { TAIL_MAX = 16 * 1024 };

struct tail *tail_new(struct loop *l, int read_fd); /* takes over the descriptor */
struct tail *tail_free(struct tail *t);
int tail_fd(const struct tail *t); /* borrowed; -1 at the end of file */

/* Reads what is there, then writes the last lines (at most `lines`) to out as one
 * line, joined by " | ", printable ASCII only. Returns out. */
const char *tail_lines(struct tail *t, unsigned lines, char *out, size_t out_n);

/* Reads what is there, then writes of the last stack that Python's faulthandler wrote the
 * outermost frame of the cell and the innermost one, printable ASCII only; "" when there is
 * none. Nothing of it is to be believed: user code may have written it. */
const char *tail_stack(struct tail *t, char *out, size_t out_n);

#endif
