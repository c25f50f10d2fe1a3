/*
 * principal - who a token belongs to: owns everything that was made with it, and
 * sees nothing else. A plain value that is copied with requests and sessions.
 */
#ifndef HC_PRINCIPAL_H
#define HC_PRINCIPAL_H

#include "launchmsg.h"
#include "sessionprofile.h"
#include "timelimits.h"

enum { PRINCIPAL_NAME = 64 }; /* bytes, with the NUL */

enum role {
    ROLE_FULL,
    ROLE_OBSERVER, /* reads what another one owns */
    ROLE_NOBODY,   /* asks for what needs no token */
    ROLE_PROXY,    /* a trusted proxy: asks in the name of others, and has nothing of its own */
};

struct principal {
    char name[PRINCIPAL_NAME];
    enum role role;
    char observes[PRINCIPAL_NAME]; /* of an observer: whose objects; "*": everybody's */
    unsigned max_kernels;          /* 0: the server's limit alone */
    struct launch_limits limits;   /* of its sessions; 0: the server's */
    struct time_limits times;      /* likewise */
    int data_some;                 /* 1: only the data directories of these bits (datanames.h) */
    uint32_t data;
    uint64_t workspace_bytes;   /* quota; 0: the server's */
    char profile[PROFILE_NAME]; /* of sessions whose request names none; "": default */
    /* Those that a request may name beside that one: bits in the order of a table of profiles, and
     * which version of it. */
    uint32_t profiles;
    int profiles_all; /* 1: it may name all, of whatever table, and "default" */
    int default_too;  /* 1: it may name "default" too */
    uint64_t profiles_version;
};

/* With one token there is one principal. */
#define PRINCIPAL_DEFAULT "default"

/* 1..63 letters, digits, '.', '_', '-', '@', '+', the first one a letter or digit. */
int principal_name_valid(const char *name, size_t n);

/* 1 when p may read what owner has. Only the owner changes it. */
int principal_sees(const struct principal *p, const char *owner);

/* 1 when what is told of everybody may be told to p: the one of --token, an observer of all. */
int principal_sees_all(const struct principal *p);

#endif
