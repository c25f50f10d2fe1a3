/*
 * settingspage - the settings blob (settings.h) as it stands in the memfd that the
 * supervisor writes and the gateways read: a version and a digest before it. The
 * supervisor writes a new version over the old one while gateways may read; half of
 * a page has the wrong digest, and is read again.
 */
#ifndef HC_SETTINGSPAGE_H
#define HC_SETTINGSPAGE_H

#include <stdint.h>

#include "buf.h"

struct err;

enum {
    SETTINGSPAGE_HEAD = 56, /* magic, version, length, SHA-256 of both and the blob */
};

/* Appends the page to out. */
int settingspage_encode(uint64_t version, struct view blob, struct buf *out,
                        struct err *e) MUST_CHECK;

/* -EAGAIN: the page is half written. -HC_EPARSE: it is none. The blob is borrowed
 * from page, and passed settings_check(). */
int settingspage_decode(struct view page, uint64_t *ret_version, struct view *ret_blob,
                        struct err *e) MUST_CHECK;

#endif
