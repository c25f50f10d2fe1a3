/* kgtable - the rows of kgsettings; nobody else includes it. */
#ifndef HC_KGTABLE_H
#define HC_KGTABLE_H

#include <stddef.h>

enum kg_kind {
    KG_TEXT,     /* goes as it is */
    KG_COUNT,    /* a number, which is not 0 */
    KG_LIST,     /* A,B or the text of a Python list, which may come several times */
    KG_LISTING,  /* a truth value: the opposite of a --no-... option */
    KG_TRUTH,    /* a truth value of Python */
    KG_BASE,     /* a path that may lack its first slash */
    KG_ADDRESS,  /* to listen on; * for all */
    KG_NOTEBOOK, /* a path, or a URL with scheme file */
    KG_LEVEL,    /* of the log: a number or a name of Python's logging */
    KG_TOKEN,    /* a secret: its variable is read elsewhere */
    KG_ONLY,     /* what the values say is how it is here anyway; others are refused */
    KG_REFUSED,
    KG_SWITCH_LEVEL,   /* a flag without a value: the level debug */
    KG_SWITCH_IGNORED, /* likewise; nothing comes of it */
    KG_SWITCH_REFUSED,
};

struct kg_setting {
    const char *env, *trait, *alias; /* NULL: it has none */
    const char *option;              /* ours, NULL for none */
    enum kg_kind kind;
    const char *values; /* KG_ONLY: comma list */
    const char *why;    /* it, or another value, is refused */
};

extern const struct kg_setting kg_settings[];
extern const size_t kg_setting_count;

#endif
