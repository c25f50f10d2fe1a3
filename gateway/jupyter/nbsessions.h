/*
 * nbsessions - notebook sessions, Jupyter's own /api/sessions object: a path
 * bound to a kernel (jupyter-wire.md 1.5). Each is also kept with its kernel, so
 * that a gateway that comes back knows it again.
 */
#ifndef HC_NBSESSIONS_H
#define HC_NBSESSIONS_H

#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"
#include "hex.h"
#include "principal.h"
#include "timelimits.h"

struct err;
struct jsonwrite;
struct jupyter;
struct kernel;

enum {
    NBSESSIONS_MAX = 4096,      /* of one principal */
    NBSESSIONS_ALL_MAX = 65536, /* of all */
    /* Bytes of paths, names and types of one principal: their list is one document. */
    NBSESSIONS_TEXT_MAX = 512 * 1024,
};

/* What a body asks for; every field NULL when it is not given. Owned strings. */
struct nbsession_body {
    char *path, *name, *type;
    char *kernel_id, *kernel_name, *kernel_profile;
    struct launch_limits limits; /* of a kernel that starts for it; 0: not asked for */
    struct time_limits times;    /* likewise */
};
/* -HC_EPARSE or -EINVAL with the field named; . */
int nbsession_body_parse(const void *body, size_t n, struct nbsession_body *ret,
                         struct err *e) MUST_CHECK;
void nbsession_body_free(struct nbsession_body *b);

struct nbsession {
    struct nbsession *next;
    uint64_t number; /* grows from one to the next: their order */
    char id[UUID_TEXT];
    char owner[PRINCIPAL_NAME];
    char *path, *name, *type;
    char kernel_id[UUID_TEXT]; /* "" while the first one starts: then nobody sees the session */
    /* An operation in flight, at most one: the token of its request, and what is to
     * be taken over when it succeeds. */
    uint64_t token;
    struct nbsession_body change;
};

struct nbsessions;
struct nbsessions *nbsessions_new(void);
struct nbsessions *nbsessions_free(struct nbsessions *n);
struct nbsession *nbsessions_first(struct nbsessions *n); /* in order of creation */

/* Takes the strings out of body. -HC_ELIMIT: p has no room, -HC_EFULL: there is none for anybody;
 * -EIO without randomness. */
int nbsessions_add(struct nbsessions *n, const struct principal *p, struct nbsession_body *body,
                   struct nbsession **ret, struct err *e) MUST_CHECK;
/* 0 when p has room for what the body says, in the place of s (NULL: of a new one); else
 * -HC_ELIMIT. */
int nbsessions_room(const struct nbsessions *n, const struct principal *p,
                    const struct nbsession *s, const struct nbsession_body *body,
                    struct err *e) MUST_CHECK;
void nbsessions_remove(struct nbsessions *n, struct nbsession *s);
/* The first one with a higher number, or NULL. */
struct nbsession *nbsessions_after(struct nbsessions *n, uint64_t number);
/* An observer finds the sessions of those whom it observes. */
struct nbsession *nbsessions_by_id(struct nbsessions *n, const struct principal *p, const char *id);
struct nbsession *nbsessions_by_path(struct nbsessions *n, const struct principal *p,
                                     const char *path);
struct nbsession *nbsessions_by_token(struct nbsessions *n, uint64_t token);

/* What is there of k's sessions goes into its note, as far as it has room, after every
 * change; and back into the table of the next gateway. */
void nbsessions_keep(struct nbsessions *n, const struct principal *p, struct kernel *k);
void nbsessions_restore(struct nbsessions *n, const struct principal *p, const struct kernel *k);

/* Takes path, name and type of the change over, as far as they are given. */
void nbsession_apply(struct nbsession *s);
void nbsession_write(struct jsonwrite *w, const struct nbsession *s, const struct kernel *k);

#endif
