/*
 * keepermsg - between a launcher and the supervisor above it: to keep the sandboxes
 * when the supervisor goes (`--on-exit keep`), and to take them over later. A
 * launcher that keeps sandboxes without a supervisor is called their keeper.
 *
 *   supervisor                      launcher
 *   KEEP                     ->                  the gateway ends, the sandboxes stay
 *                            <-     KEPT (event) nothing that was given is held any more
 *
 *   next supervisor                 keeper       a new connection
 *   HELLO                    ->
 *                            <-     HELLO        the locks and the slot of the instance
 *   ATTACH                   ->                  what a launcher gets at its start
 *                            <-     ATTACH       from here on it obeys this supervisor
 *
 *   PROFILES                 ->                  a table of profiles, instead of that of the options
 *                            <-     PROFILES     taken over: CREATE goes by it; ERROR: it goes on with the old one
 *
 * Both ends are root; packets are as in launchmsg.h. A request that failed is answered
 * by ERROR and changes nothing.
 */
#ifndef HC_KEEPERMSG_H
#define HC_KEEPERMSG_H

#include "msgcodec.h"

enum keeper_verb {
    KEEPER_KEEP = 1, /* a second one: no patience with the gateway */
    KEEPER_HELLO,
    KEEPER_ATTACH,
    KEEPER_PROFILES, /* of the supervisor: another table of profiles (sessionprofile.h) */
    KEEPER_VERBS_END,
    KEEPER_ERROR = 64,
    KEEPER_KEPT = 128, /* events */
    KEEPER_ENDED,      /* the launcher exits */
};

enum {
    /* Of these messages, of launchmsg.h and of what init is asked: a launcher that lives
     * on serves gateways that were built later. */
    KEEPER_VERSION = 5,
    KEEPER_ARGV_MAX = 96 * 1024,
    KEEPER_STRINGS_MAX = 64,
    KEEPER_TEXT_MAX = 1024,
    KEEPER_PATH_MAX = 4096,
};

/* The socket in the state directory. */
#define KEEPER_SOCKET "keeper"

enum keeper_offer_fd { KEEPER_STATE_FD, KEEPER_SLOT_FD, KEEPER_DIR_FD, KEEPER_OFFER_FDS };
/* From KEEPER_MORE_FD on: listening sockets beside the first. */
enum keeper_attach_fd {
    KEEPER_LISTEN_FD,
    KEEPER_SETTINGS_FD,
    KEEPER_READY_FD,
    KEEPER_STDERR_FD,
    KEEPER_MORE_FD
};

struct keeper_hello {
    uint32_t version; /* KEEPER_VERSION */
    /* In the answer: */
    uint32_t slot;
    struct view runtime; /* what the sandboxes have mounted */
};

struct keeper_attach {
    struct view argv; /* the launcher's command line, as strings of msgcodec.h */
};

struct keeper_profiles {
    struct view table;
};

struct keeper_count { /* all others */
    uint32_t sessions;
    uint32_t failed; /* KEPT: the gateway does not start; ENDED: the exit status */
};

struct keeper_error {
    struct view text;
};

/* NULL for verbs that do not exist. */
const struct msg_spec *keeper_request_spec(unsigned verb);
const struct msg_spec *keeper_answer_spec(unsigned verb); /* events too */

#endif
