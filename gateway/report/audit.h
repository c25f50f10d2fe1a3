/*
 * audit - the audit file: who did what, in lines that are chained (auditline.h). The process
 * has one, like the log. Lines are written at once; those that the disk does not take
 * wait in a bounded queue and go out, in order, as soon as it does again. What must not
 * happen unseen asks for an intent first, and is refused where its line cannot be written.
 */
#ifndef HC_AUDIT_H
#define HC_AUDIT_H

#include "auditline.h"

struct err;
struct loop;
struct origin;

/* Until it is called nothing is audited. required: an intent whose line cannot be
 * written fails. The file comes later, by audit_take_file(). */
void audit_start(struct loop *l, int required);
/* Takes the descriptor: of the first file, or of the one that has its place after a
 * rotation. The same file again changes nothing. */
int audit_take_file(int fd, struct err *e) MUST_CHECK;
void audit_stop(void); /* the last line, then the file is closed */
int audit_on(void);

/* 0, or -HC_EAUDIT while lines cannot be written. Also a health_fn. */
int audit_writable(void *unused, struct err *e) MUST_CHECK;

/* A line: begin, fields, end. principal may be ""; o may be NULL. Only while audit_on(). */
void audit_begin(struct auditline *l, const char *event, const char *principal,
                 const struct origin *o);
void audit_note(struct auditline *l);
/* -HC_EAUDIT: it is required and was not written; what was meant must not happen. */
int audit_intent(struct auditline *l, struct err *e) MUST_CHECK;

#endif
