/*
 * sessionprofile - named profiles: what the sessions of one may have, and how far a request may go. The file of
 * --profiles is JSON and is read by a child without power (gateway/rules/profilefile.h); what comes out of it is
 * this table, as one line of plain text: the supervisor checks it and hands it to the launcher, which decides by
 * it, and to the gateway. Pure. The reader takes what the writer makes and nothing else.
 */
#ifndef HC_SESSIONPROFILE_H
#define HC_SESSIONPROFILE_H

#include <stdint.h>

#include "buf.h"
#include "hostwalls.h"
#include "launchmsg.h"

struct err;

enum {
    PROFILES_MAX = 32, /* named ones; one bit each */
    PROFILE_NAME = 33, /* bytes, with the NUL */
    PROFILE_KERNELS_MAX = 16,
    PROFILE_LIST = 1100,       /* bytes of a comma list: 32 data directories, or some kernelspecs */
    PROFILES_TEXT = 48 * 1024, /* the whole table: it has room in a pipe and on a command line */
    PROFILES_FILE = 256 * 1024, /* the file */
    PROFILE_KERNEL_NAME = 64,   /* bytes of a kernelspec's name there */
};
#define PROFILE_DEFAULT "default" /* made by the options of serve; never in the table */
#define PROFILE_UNSET   UINT64_MAX

/* The times of a session, in the order of timelimits.h: they are the gateway's to keep, but for the lifetime,
 * which the launcher ends too. */
enum profile_time { PROFILE_CELL, PROFILE_STDIN, PROFILE_LIFE, PROFILE_TIMES };
#define PROFILE_TIME_MOST UINT64_C(31622400000) /* milliseconds */

/* Values of --home (kernel-launcher/homechoice.h has the same order). */
enum profile_home { PROFILE_HOME_AUTO, PROFILE_HOME_DISK, PROFILE_HOME_TMPFS, PROFILE_HOMES };

struct profile {
    char name[PROFILE_NAME];
    struct launch_limits limits,
        maxima; /* each default in its row's range, and no maximum below it */
    uint64_t times[PROFILE_TIMES], most[PROFILE_TIMES]; /* milliseconds; 0: no limit */
    uint64_t idle_ms;                                   /* PROFILE_UNSET: as the server has it */
    enum profile_home home;
    int home_sized;              /* somebody said how large a home is */
    int data_some, kernels_some; /* 0: all that there are; else those of the comma list */
    char data[PROFILE_LIST], kernels[PROFILE_LIST];
    enum isolation isolation; /* demanded beside what the server demands; PROCESS: nothing more */
    hostwall_set walls;       /* likewise, by name */
};

struct profiles {
    unsigned count;
    struct profile at[PROFILES_MAX];
};

/* 1 to 32 letters, digits, '.', '_' and '-', the first one a letter or digit. */
int profile_name_valid(const char *name, size_t n);
int profile_home_of(const char *name, enum profile_home *ret) MUST_CHECK;
const char *profile_home_name(enum profile_home home);

/* NULL: none of that name, or t is NULL. */
const struct profile *profiles_find(const struct profiles *t, struct view name);
/* 1 when the comma list has the name. */
int profile_list_has(const char *list, const char *name);

/* What of these missing walls the profile demands. */
hostwall_set profile_refused(const struct profile *p, hostwall_set missing);

/* -EMSGSIZE: more than PROFILES_TEXT. */
int profiles_write(const struct profiles *t, struct buf *out, struct err *e) MUST_CHECK;
/* Checks all that the struct promises, and that no name is there twice. *ret is owned; of "" NULL. */
int profiles_read(struct view text, struct profiles **ret, struct err *e) MUST_CHECK;

#endif
