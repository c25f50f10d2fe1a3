/*
 * note - what the launcher keeps with a sandbox so that the next gateway can take
 * its kernel over (LAUNCH_NOTE): a JSON object, a NUL, items. Pure. Our own words come back, but they are
 * checked all the same: another version may have written them.
 */
#ifndef HC_NOTE_H
#define HC_NOTE_H

#include "buf.h"
#include "endpoints.h"
#include "hex.h"
#include "launchmsg.h"
#include "timelimits.h"

struct err;

/* Version 2 has the row of seats; a note of version 1 is taken without one, a newer
 * one is refused. */
enum {
    NOTE_VERSION = 2,
    NOTE_KEPT_MAX = 12 * 1024,
    NOTE_TEXT_MAX = NOTE_KEPT_MAX + 4 * 1024, /* of the JSON object; the seats have the rest */
};

/* The descriptors beside it, in this order, each only when its bit is set. */
enum note_fd {
    NOTE_RECIPE,      /* memfd: argv, request's and kernelspec's environment, cwd */
    NOTE_INIT,        /* init's socket */
    NOTE_SESSION_DIR, /* the session's run folder */
    NOTE_TAIL,        /* read end of the kernel's output pipe */
    NOTE_RUN_DIR,     /* the kernel's run folder */
    NOTE_SOCKET,      /* its five sockets, O_PATH */
    NOTE_SEATS = NOTE_SOCKET +
                 ENDPOINT_COUNT, /* memfd (noteseats.h): the seats, for which there was no room */
    NOTE_FDS,
};

struct note {
    char principal[64];
    char id[UUID_TEXT];
    char spec_name[LAUNCH_NAME_MAX + 1];
    unsigned spec_dir;
    int sockets_fd, interrupt_by_message;
    unsigned generation; /* the last one that was asked for */
    char key[KEY_TEXT];
    char base[ENDPOINT_BASE];     /* of the sockets in the private directory; "" */
    char session[128];            /* what the process names as its own; "" while unknown */
    uint64_t cull_ms;             /* the kernelspec's; CULL_UNSET */
    uint64_t last_us, last_ms;    /* of its activity, on both clocks; 0: not told */
    int busy;                     /* it was at work when this was written */
    int seeding;                  /* its seed notebook was not done */
    struct time_limits times;     /* of its session */
    uint64_t born_ms;             /* when that was made; 0: not told */
    uint64_t numbered;            /* the last number that a request at the kernel got (query.h) */
    uint64_t workspace_bytes;     /* its principal's quota; 0: the server's, or not told */
    int overdue;                  /* it was being ended for a time-out */
    unsigned fds;                 /* bits of enum note_fd */
    int ending;                   /* 1: it was being deleted: nobody takes it over */
    char kept[NOTE_KEPT_MAX + 1]; /* a JSON array of the front; "" */
    struct view seats;            /* items (noteitem.h); borrowed */
};

int note_encode(const struct note *n, struct buf *out, struct err *e) MUST_CHECK;
/* -HC_EPARSE tells the field. ret borrows from bytes. */
int note_decode(struct view bytes, struct note *ret, struct err *e) MUST_CHECK;

#endif
