/*
 * kgsettings - every setting of Jupyter Kernel Gateway 3.0 by the names that it has
 * there: variables KG_..., flags --Class.trait and their short forms. Each is one of
 * our options, or is refused with the reason. docs/OPTIONS.md shows the table.
 */
#ifndef HC_KGSETTINGS_H
#define HC_KGSETTINGS_H

#include <stdio.h>

#include "cleanup.h"

struct err;
struct option_reader;

struct kgsettings {
    const struct option_reader *reader; /* borrowed */
    char **kept;                        /* owned: values that were translated */
    size_t kept_count;
};
void kgsettings_free(struct kgsettings *k);

/* For option_reader.foreign; arg is a struct kgsettings. */
int kgsettings_flag(void *arg, const char *name, const char *value, const char *next, int *ret_used,
                    struct err *e);

/* Takes the KG_ variables, except that of the token. An empty one counts as not there. */
int kgsettings_environment(struct kgsettings *k, struct err *e) MUST_CHECK;

/* 1 when there is a variable of that name; else *ret_nearest is one that is like it, or NULL. */
int kgsettings_knows(const char *variable, const char **ret_nearest);

/* The table of the document. */
void kgsettings_print(FILE *to);

#endif
