/*
 * profilefile - reads the file of --profiles (docs/PROFILES.md), JSON, into the table of sessionprofile.h. What a profile
 * does not say it has from the server's options.
 */
#ifndef HC_PROFILEFILE_H
#define HC_PROFILEFILE_H

#include "cleanup.h"
#include "sessionprofile.h"
#include "timelimits.h"

struct err;
struct view;

struct profilefile_base {
    struct launch_limits limits; /* of the options */
    struct time_limits times;
    enum profile_home home;
    int home_sized;   /* --disk-mb was given */
    const char *data; /* comma list of the names of --data; NULL: none */
    int data_unknown; /* 1: nobody knows here which there are */
};

/* *ret is owned. -EINVAL: the text names where, as profiles.small.limits.memory_mb. */
int profilefile_read(struct view text, const struct profilefile_base *base, struct profiles **ret,
                     struct err *e) MUST_CHECK;

#endif
