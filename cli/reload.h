/*
 * reload - the settings page that every gateway reads, and its next version: at
 * SIGHUP the files among the settings are read again, tried, and published when all
 * of it is right. Else everything stays as it was.
 */
#ifndef HC_RELOAD_H
#define HC_RELOAD_H

#include <stdint.h>
#include <sys/types.h>

#include "buf.h"
#include "livefiles.h"
#include "trial.h"

struct err;

struct reload {
    struct livefiles files; /* owned */
    uid_t uid;              /* of gateway and trial */
    int page_fd;            /* owned; open for writing, in this process alone */
    int read_fd;            /* owned; the same, open for reading: for launcher and gateway */
    uint64_t version;
    size_t fixed; /* bytes of the blob that come from options */
    struct trial trial;
    struct buf tried; /* the blob of the trial */
    struct buf table; /* of profiles (sessionprofile.h), as it was published last */
    struct buf tried_table;
    int asking; /* 1: the launcher is asked whether it takes tried_table */
    int again;  /* asked for while a trial ran */
};

/* Takes the files. Reads them, tries all, makes the page with version 1. fixed: the
 * settings that come from options, which never change. */
int reload_open(struct reload *r, struct livefiles *files, struct view fixed, uid_t uid,
                struct err *e) MUST_CHECK;
void reload_close(struct reload *r);
#define RELOAD_NONE ((struct reload){ .page_fd = -1, .read_fd = -1, .trial = TRIAL_NONE })

enum reload_next {
    RELOAD_NOTHING,
    RELOAD_ASK, /* the launcher: does it take reload_asked()? Its answer goes to reload_answered() */
    RELOAD_PUBLISHED, /* a new version */
};

/* SIGHUP came. Logs what is wrong. */
void reload_begin(struct reload *r);
/* A child was reaped. */
enum reload_next reload_reaped(struct reload *r, pid_t pid, int status);
/* The table of profiles of the trial: what the host has for it, the launcher alone knows. */
struct view reload_asked(const struct reload *r);
/* refusal: NULL when the launcher has taken it over; else why not. */
enum reload_next reload_answered(struct reload *r, const char *refusal);
/* The table in force; borrowed until the next version. */
struct view reload_table(const struct reload *r);

#endif
