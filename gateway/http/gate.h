/* gate - what a request has to pass before a byte of its body is read: route, right, size. */
#ifndef HC_GATE_H
#define HC_GATE_H

#include "cleanup.h"

struct err;
struct http_head;
struct httpconn;

/* 0, or the status to answer with and why. Fills in route, principal and proof. */
int gate_admit(struct httpconn *h, const struct http_head *head, struct err *e) MUST_CHECK;

#endif
