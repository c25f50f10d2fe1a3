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
    enum reload_stage {
        RELOAD_IDLE,        /* or a trial runs */
        RELOAD_ASKING,      /* the launcher, whether it takes tried_table */
        RELOAD_TAKING_BACK, /* it has taken it, and is asked to go back to `table` */
    } stage;
    uint64_t question; /* number of the last one to the launcher, counted from 1 */
    int again;         /* asked for while another was under way */
};

/* Takes the files. Reads them, tries all, makes the page with version 1. fixed: the
 * settings that come from options, which never change. */
int reload_open(struct reload *r, struct livefiles *files, struct view fixed, uid_t uid,
                struct err *e) MUST_CHECK;
void reload_close(struct reload *r);
#define RELOAD_NONE ((struct reload){ .page_fd = -1, .read_fd = -1, .trial = TRIAL_NONE })

enum reload_next {
    RELOAD_NOTHING,
    RELOAD_ASK,       /* the launcher, to take reload_asked(), under the number r->question */
    RELOAD_PUBLISHED, /* a new version */
    RELOAD_RESTART, /* the launcher: it does not go back to the table in force, with which it starts */
};

/* SIGHUP came. Logs what is wrong. */
void reload_begin(struct reload *r);
/* A child was reaped. */
enum reload_next reload_reaped(struct reload *r, pid_t pid, int status);
/* What the launcher is to take now: the trial's table, for what the host has for it, the launcher
 * alone knows; or the one in force again, when the other was not published. */
struct view reload_asked(const struct reload *r);
/* The launcher's answer to the question of this number; answers to earlier ones are of no use.
 * refusal: NULL when it has taken the table; else why not. No other reload begins before the last
 * question has its answer. */
enum reload_next reload_answered(struct reload *r, uint64_t question, const char *refusal);
/* Nobody will answer: the launcher has gone, or there is none. The next one starts with the table
 * in force. */
void reload_unanswered(struct reload *r, const char *why);
/* The table in force; borrowed until the next version. */
struct view reload_table(const struct reload *r);

#endif
