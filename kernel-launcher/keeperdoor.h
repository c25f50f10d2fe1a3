/* keeperdoor - where the next server finds a keeper: the socket, who comes, the take-over. */
#ifndef HC_KEEPERDOOR_H
#define HC_KEEPERDOOR_H

#include <stdint.h>

#include "cleanup.h"

struct err;
struct launcher;

int keeperdoor_open(struct launcher *l, struct err *e) MUST_CHECK;
void keeperdoor_close(struct launcher *l); /* socket, its name, and who was at it */

void keeperdoor_accept(struct launcher *l, uint64_t now_ms);
void keeperdoor_serve(struct launcher *l, uint64_t now_ms); /* the candidate has said something */
void keeperdoor_drop(struct launcher *l, const char *why);  /* the candidate; all stays kept */
void keeperdoor_name_us(struct launcher *l); /* in the instance's lock: the keeper has it */

#endif
