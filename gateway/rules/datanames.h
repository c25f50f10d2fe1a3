/*
 * datanames - the operator's data directories as the gateway knows them: by name only, a comma
 * list, and bits in its order for some of them.
 */
#ifndef HC_DATANAMES_H
#define HC_DATANAMES_H

#include <stdint.h>

#include "cleanup.h"

struct buf;

/* list NULL: none. 0 when it has no such name. */
uint32_t datanames_bit(const char *list, const char *name);

/* The names of these bits, as strings of msgcodec.h. */
int datanames_pack(const char *list, uint32_t bits, struct buf *out) MUST_CHECK;

#endif
