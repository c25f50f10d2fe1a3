/*
 * msgtable - the macros with which a protocol writes down its fields.
 * For the .c files of protocols only (launchmsg.c, initmsg.c).
 */
#ifndef HC_MSGTABLE_H
#define HC_MSGTABLE_H

#include "msgcodec.h"

#define MSG_COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define U32(s, m)                                \
    {                                            \
#m, MSG_U32, 0, offsetof(struct s, m), 0 \
    }
#define U32_UPTO(s, m, max)                        \
    {                                              \
#m, MSG_U32, 0, offsetof(struct s, m), max \
    }
#define U64(s, m)                                \
    {                                            \
#m, MSG_U64, 0, offsetof(struct s, m), 0 \
    }
#define I32(s, m)                                \
    {                                            \
#m, MSG_I32, 0, offsetof(struct s, m), 0 \
    }
#define STR(s, m, max)                             \
    {                                              \
#m, MSG_STR, 0, offsetof(struct s, m), max \
    }
#define TEXT(s, m, max)                            \
    {                                              \
#m, MSG_STR, 1, offsetof(struct s, m), max \
    }
#define BLOB(s, m, max)                             \
    {                                               \
#m, MSG_BLOB, 0, offsetof(struct s, m), max \
    }

/* A verb whose packets bring fds_min..fds_max descriptors. */
#define SPEC(verb, name, s, fields, fds_min, fds_max)                             \
    {                                                                             \
        verb, name, fields, MSG_COUNT(fields), sizeof(struct s), fds_min, fds_max \
    }

#define FIND(specs, verb) msg_find(specs, MSG_COUNT(specs), verb)

#endif
