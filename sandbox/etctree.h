/*
 * etctree - fills a directory with the /etc that sessions see: synthetic accounts
 * and names, and copies of what programs below /usr need to run (loader cache,
 * certificates, fonts, alternatives).
 */
#ifndef HC_ETCTREE_H
#define HC_ETCTREE_H

#include "cleanup.h"

struct err;

int etctree_fill(int dirfd, struct err *e) MUST_CHECK;

#endif
