/*
 * gatewaywatch - what the launcher does about its gateway: starts it when that is
 * due, serves what it asks, ends it when it is of no use, and draws the
 * consequences of its end.
 */
#ifndef HC_GATEWAYWATCH_H
#define HC_GATEWAYWATCH_H

#include <stdint.h>

struct launcher;

void gatewaywatch_start(struct launcher *l, uint64_t now_ms);
void gatewaywatch_serve(struct launcher *l, short events); /* what poll(2) said of the link */
/* A gateway that is of no use any more is ended; its successor adopts what lives. */
void gatewaywatch_check(struct launcher *l, uint64_t now_ms);
void gatewaywatch_exited(struct launcher *l, int status, uint64_t now_ms); /* it was reaped */
/* While the launcher stops: the gateway's time is up. Returns when to look again. */
uint64_t gatewaywatch_hurry(struct launcher *l, uint64_t now_ms);

#endif
