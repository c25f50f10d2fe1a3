/*
 * msgcodec - fixed binary messages described by a table of fields: the common
 * codec of the launcher's and of init's protocol.
 *
 * A message is one SOCK_SEQPACKET packet: the head below, then the fields of
 * its verb in table order; integers in the machine's byte order (both ends are
 * on one host), strings and blobs as u32 length + bytes. Nothing may follow the
 * last field. Descriptors travel beside it (SCM_RIGHTS); their count is in the
 * head and must fall into the verb's range.
 */
#ifndef HC_MSGCODEC_H
#define HC_MSGCODEC_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

struct err;

enum {
    MSG_VERSION = 1,
    MSG_MAX = 160 * 1024, /* bytes of one packet; below the default net.core.wmem_max (212992) */
    MSG_FDS_MAX = 32,
};

struct msg_head {
    uint32_t size;    /* of the whole packet */
    uint16_t version; /* MSG_VERSION */
    uint16_t verb;
    uint64_t request; /* chosen by the asker, echoed in the answer; 0 in events */
    int32_t error;    /* answers: 0, or the positive code of err.h */
    uint32_t fds;     /* exact number of descriptors beside the packet */
};

enum msg_kind {
    MSG_U32,
    MSG_U64,
    MSG_I32,
    MSG_STR,  /* struct view; no NUL inside; 1..max bytes, or empty when the field is optional */
    MSG_BLOB, /* struct view; 0..max bytes */
};

struct msg_field {
    const char *name; /* used in errors */
    uint8_t kind;     /* enum msg_kind */
    uint8_t optional; /* MSG_STR only: may be empty */
    uint16_t offset;  /* of the member in the verb's struct */
    uint32_t max;     /* bytes for strings and blobs; largest value for integers, 0 = any */
};

struct msg_spec {
    uint16_t verb;
    const char *name;
    const struct msg_field *fields;
    uint16_t count;
    uint16_t size; /* sizeof the verb's struct */
    uint8_t fds_min, fds_max;
};

/* The entry of a verb in a table, or NULL. */
const struct msg_spec *msg_find(const struct msg_spec *specs, size_t count, unsigned verb);

/* Appends one packet to out. body points to the verb's struct. Returns 0,
 * -EINVAL naming a field that breaks its bound, -EMSGSIZE, -ENOMEM. */
int msg_encode(const struct msg_spec *spec, uint64_t request, int error, const void *body,
               unsigned fds, struct buf *out, struct err *e) MUST_CHECK;

/* Reads only the head; checks size, version and the number of descriptors received. */
int msg_head_decode(struct view packet, unsigned fds, struct msg_head *ret,
                    struct err *e) MUST_CHECK;

/* Decodes the fields behind a checked head into the verb's struct. Views borrow
 * from the packet. -HC_EPARSE names the field. */
int msg_decode(const struct msg_spec *spec, const struct msg_head *head, struct view packet,
               void *ret_body, struct err *e) MUST_CHECK;

/* Lists of strings ride in a blob as NUL-terminated strings one after another. */
int msg_strings_add(struct buf *blob, const char *s) MUST_CHECK;
/* Counts them; -HC_EPARSE when the blob does not end in NUL or holds more than max. */
int msg_strings_count(struct view blob, unsigned max, struct err *e) MUST_CHECK;
/* Fills a NULL-terminated array of borrowed pointers; out holds count + 1. */
void msg_strings_split(struct view blob, char **out, unsigned count);

#endif
