/*
 * options - table-driven command-line options, filled into a struct. One table
 * per program; every other source of settings (the environment, names of another
 * program) sets the same options through options_set().
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
    OPTION_LIST,   /* struct option_list member: each time it is given adds one */
    OPTION_MILLI,  /* uint64_t member: a decimal number times 1000, e.g. 1.5 -> 1500 */
    OPTION_LATER,  /* a name of the contract that does not work yet: refused by name */
    OPTION_GROUP,  /* no option: its name is a heading of the help text */
};

enum { OPTION_LIST_MAX = 32 };

struct option_list {
    const char *item[OPTION_LIST_MAX]; /* borrowed from argv, or the environment */
    unsigned count;
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

enum { OPTION_LABEL = 96 };

enum option_rank { OPTION_UNSET, OPTION_BY_ENVIRONMENT, OPTION_BY_USER };

struct option_mark { /* where the value of an option came from */
    enum option_rank rank;
    char label[OPTION_LABEL]; /* as it was written: "option --x", "HOLDCELL_X" */
    const char *value;        /* borrowed; NULL: a flag of the command line */
};

struct option_reader {
    const struct option_spec *specs; /* borrowed, as all here */
    size_t count;
    void *out;
    struct option_mark *marks; /* count of them, zeroed at first */
    /* A name that the table has not. value: what stood behind '=', or NULL; next: the
     * word that follows, or NULL. Returns 1 when it took it (*ret_used: next too),
     * 0 when it knows it neither. */
    int (*foreign)(void *arg, const char *name, const char *value, const char *next, int *ret_used,
                   struct err *e);
    void *foreign_arg;
};

/* As options_parse() with all words being options, and with marks. */
int options_read(const struct option_reader *r, int argc, char **argv, struct err *e) MUST_CHECK;

/* Sets the option of the table called name; value as text, of a flag a truth value.
 * Does nothing when a source of higher rank has set it. Another value from the same
 * rank under another label is an error, and so is a value that does not fit. value
 * must outlive out. */
int options_set(const struct option_reader *r, const char *name, const char *label,
                enum option_rank rank, const char *value, struct err *e) MUST_CHECK;

/* The mark of an option of the table. */
const struct option_mark *options_mark(const struct option_reader *r, const char *name);

/* 1, true, yes, on; 0, false, no, off, in any case: *ret. -EINVAL otherwise. */
int options_truth(const char *value, int *ret) MUST_CHECK;

/* Changes of one letter that lead from a to b: for «did you mean». */
unsigned options_distance(const char *a, const char *b);

/* One line per option that works. */
void options_help(const struct option_spec *specs, size_t count, FILE *to);

#endif
