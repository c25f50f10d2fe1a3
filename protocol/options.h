/*
 * options - table-driven command-line options, filled into a struct. One table
 * per program; every later source of settings (file, environment) reads the
 * same table.
 */
#ifndef HC_OPTIONS_H
#define HC_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cleanup.h"

struct err;

enum option_kind {
    OPTION_FLAG,   /* int member, set to 1; takes no value */
    OPTION_STRING, /* const char * member, borrowed from argv */
    OPTION_NUMBER, /* uint64_t member, decimal, min..max */
    OPTION_MILLI,  /* uint64_t member: a decimal number times 1000, e.g. 1.5 -> 1500 */
    OPTION_LATER,  /* a name of the contract that does not work yet: refused by name */
};

struct option_spec {
    const char *name;    /* without the dashes */
    const char *metavar; /* in the help text; NULL for flags */
    enum option_kind kind;
    size_t offset;
    uint64_t min, max; /* OPTION_NUMBER, OPTION_MILLI */
    const char *help;
};

/* Reads `--name value` and `--name=value`. Words that are no option end up in
 * ret_rest (argc - 1 slots at least), or are an error when it is NULL. Unknown
 * names are errors that tell the nearest known one. A separate value does not begin
 * with two dashes; `-h` is `--help`. Returns the number of other
 * words, or -EINVAL naming the option. */
int options_parse(const struct option_spec *specs, size_t count, int argc, char **argv, void *out,
                  const char **ret_rest, struct err *e) MUST_CHECK;

/* One line per option that works. */
void options_help(const struct option_spec *specs, size_t count, FILE *to);

#endif
