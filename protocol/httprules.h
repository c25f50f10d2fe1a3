/*
 * httprules - what a request head means once its bytes are in order: target form,
 * Host, framing of the body, expectation, persistence; internal to httpparse.
 */
#ifndef HC_HTTPRULES_H
#define HC_HTTPRULES_H

#include "cleanup.h"

struct err;
struct http_head;

/* Needs method, target, minor and fields; fills in the rest. 0, or -HC_EPARSE and
 * the status to answer with. */
int http_rules_apply(struct http_head *head, int *status, struct err *e) MUST_CHECK;

#endif
