/*
 * auditline - one line of the audit file, and the chain over all of them: each carries
 * the SHA-256 of the line before it, so that a line that was changed, taken out or put
 * in shows. Pure: the file is the affair of gateway/report/audit.h.
 */
#ifndef HC_AUDITLINE_H
#define HC_AUDITLINE_H

#include <stdint.h>

#include "buf.h"
#include "jsonwrite.h"

struct err;

enum {
    AUDITLINE_MAX = 8192,   /* bytes of a line with its newline */
    AUDITLINE_TAIL = 65536, /* of a file's end are enough for auditline_tail() */
    AUDITLINE_DIGEST = 65,  /* 64 hexadecimal digits and a NUL */
};

/* What the first line of all names as the one before it. */
#define AUDITLINE_FIRST "0000000000000000000000000000000000000000000000000000000000000000"

struct auditline { /* between begin and end; fields are private */
    struct buf text;
    struct jsonwrite w;
};

/* {"ts": ..., "seq": ..., "event": ... */
void auditline_begin(struct auditline *l, uint64_t realtime_us, uint64_t seq, const char *event);
void auditline_string(struct auditline *l, const char *key, const char *value);
void auditline_view(struct auditline *l, const char *key, struct view value);
void auditline_uint(struct auditline *l, const char *key, uint64_t value);
/* ..., "prev": digest} and a newline, appended to out; digest becomes that of this line. The
 * line is over, also on failure. */
int auditline_end(struct auditline *l, char digest[AUDITLINE_DIGEST], struct buf *out,
                  struct err *e) MUST_CHECK;
void auditline_drop(struct auditline *l); /* in place of the end */

/* Of a line without its newline. */
int auditline_digest(struct view line, char ret[AUDITLINE_DIGEST], struct err *e) MUST_CHECK;

/* What the next line needs to know of a file whose last bytes are these. */
struct audit_tail {
    char digest[AUDITLINE_DIGEST];
    uint64_t next_seq;
    int unfinished; /* the last line has no newline: one is to be written first */
};
int auditline_tail(struct view end, struct audit_tail *ret, struct err *e) MUST_CHECK;

/* Follows a chain line by line. Start with a zeroed one. */
struct auditcheck {
    uint64_t lines, next_seq;
    uint64_t unfinished;           /* lines cut off by a crash; they are in the chain */
    char first[AUDITLINE_DIGEST];  /* what the first line names as the one before it */
    char digest[AUDITLINE_DIGEST]; /* of the last line */
    char whole[AUDITLINE_DIGEST];  /* of the last record */
    int boundary;                  /* the next line is the first of a further file */
};
/* line without its newline. -HC_EPARSE with the number of the line when the chain breaks. */
int auditcheck_line(struct auditcheck *c, struct view line, struct err *e) MUST_CHECK;
/* The file is over; what follows is the next one. Its first record may follow the last
 * whole one of this file, whose last line was cut when the disk was full. */
void auditcheck_next_file(struct auditcheck *c);

#endif
