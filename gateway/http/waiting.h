/*
 * waiting - the requests of a server that wait for their answers. Handlers that answer
 * later find theirs again by its token (request_find(), request.h): it may have gone.
 */
#ifndef HC_WAITING_H
#define HC_WAITING_H

struct httpconn;

void waiting_add(struct httpconn *h);
void waiting_remove(struct httpconn *h); /* also of one that does not wait */

#endif
