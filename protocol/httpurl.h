/*
 * httpurl - raw paths and queries of a request target: strict percent-decoding,
 * segments, comparison with a base URL, tolerant parameter lookup.
 */
#ifndef HC_HTTPURL_H
#define HC_HTTPURL_H

#include "buf.h"
#include "cleanup.h"

struct err;

/* Appends in with every %XX replaced by its byte. -HC_EPARSE for a '%' without two
 * hexadecimal digits, or buf's error; out is unchanged then. NUL bytes may come out. */
int http_percent_decode(struct view in, struct buf *out, struct err *e) MUST_CHECK;

/* 1 when every '%' has its two hexadecimal digits. */
int http_percent_valid(struct view in);

/*
 * Takes the next raw segment off *rest, which begins with '/': "/a/b%2Fc" gives
 * "a", then "b%2Fc"; "/a/" gives "a", then "". Returns 0 when none is left.
 */
int http_path_next(struct view *rest, struct view *segment);

/*
 * Appends the decoded segment. -HC_EPARSE for what must not become part of a
 * name: "." and ".." however they are encoded, %2F, %00 and other control
 * characters, bytes that are not UTF-8.
 */
int http_segment_decode(struct view segment, struct buf *out, struct err *e) MUST_CHECK;

/*
 * 1 when the raw path lies at or beneath the raw base URL, with the remainder in
 * *rest ("/" at the base itself, else beginning with '/'). Escapes are compared
 * by the byte they mean: base "/a%40b/" holds "/a@b/x" and "/%61%40b/x". "%2F"
 * equals only "%2F", never '/'; a path with a "." or ".." segment (or an escape
 * of one) or with %00 lies beneath nothing.
 */
int http_path_under(struct view path, struct view base, struct view *rest);

/*
 * Finds the first parameter of that name in a raw query. Free-form queries are
 * normal: JupyterLab appends a bare time stamp ("?1732000000000"), and
 * "x=%20&&=&user" has x = "%20" and user = "". Names are compared decoded.
 * Returns 1 and the raw value, or 0.
 */
int http_query_find(struct view query, const char *name, struct view *raw);

/* The same, appending the decoded value ('+' is a blank): 1 found, 0 absent,
 * -HC_EPARSE for a malformed escape in it, or buf's error. */
int http_query_get(struct view query, const char *name, struct buf *out, struct err *e) MUST_CHECK;

#endif
