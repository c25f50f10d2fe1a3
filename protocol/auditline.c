#include "auditline.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <string.h>

#include "err.h"
#include "hex.h"
#include "jsonscan.h"
#include "timestamp.h"

enum { DIGEST_BYTES = 32 };

static void add_time(struct auditline *l, uint64_t realtime_us)
{
    char text[TIMESTAMP_TEXT];

    timestamp_format(realtime_us, text);
    auditline_string(l, "ts", text);
}

void auditline_begin(struct auditline *l, uint64_t realtime_us, uint64_t seq, const char *event)
{
    buf_init(&l->text, AUDITLINE_MAX - 1);
    l->w = jsonwrite_to(&l->text);
    jsonwrite_object(&l->w);
    add_time(l, realtime_us);
    auditline_uint(l, "seq", seq);
    auditline_string(l, "event", event);
}

void auditline_string(struct auditline *l, const char *key, const char *value)
{
    jsonwrite_key(&l->w, key);
    jsonwrite_str(&l->w, value);
}

void auditline_view(struct auditline *l, const char *key, struct view value)
{
    jsonwrite_key(&l->w, key);
    jsonwrite_string(&l->w, value);
}

void auditline_uint(struct auditline *l, const char *key, uint64_t value)
{
    jsonwrite_key(&l->w, key);
    jsonwrite_uint(&l->w, value);
}

void auditline_drop(struct auditline *l)
{
    buf_free(&l->text);
}

int auditline_digest(struct view line, char ret[AUDITLINE_DIGEST], struct err *e)
{
    uint8_t digest[DIGEST_BYTES];

    if (EVP_Digest(line.p, line.n, digest, NULL, EVP_sha256(), NULL) != 1)
        return err_set(e, EIO, "libcrypto has no SHA-256");
    hex_encode(digest, sizeof digest, ret);
    return 0;
}

int auditline_end(struct auditline *l, char digest[AUDITLINE_DIGEST], struct buf *out,
                  struct err *e)
{
    char own[AUDITLINE_DIGEST];

    auditline_string(l, "prev", digest);
    jsonwrite_end(&l->w);
    int rc = jsonwrite_finish(&l->w, e);
    if (rc == 0)
        rc = auditline_digest(buf_view(&l->text), own, e);
    if (rc == 0 && (rc = buf_reserve(out, buf_len(&l->text) + 1)) == 0 &&
        (rc = buf_add_view(out, buf_view(&l->text))) == 0 && (rc = buf_add_str(out, "\n")) == 0)
        memcpy(digest, own, sizeof own);
    else if (rc == -EMSGSIZE || rc == -ENOMEM)
        err_set(e, -rc, "no room for a line of the audit file");
    auditline_drop(l);
    return rc;
}

/* 1 when the line is a record of ours. */
static int read_record(struct view line, uint64_t *ret_seq, char ret_prev[AUDITLINE_DIGEST])
{
    static const struct jsonscan_rules strict = { 0, 8 };
    static const char *const keys[] = { "seq", "prev" };
    struct jsonscan_value v[2];
    int64_t seq;

    if (jsonscan_object(line, &strict, keys, 2, v, NULL, NULL) < 0 ||
        jsonscan_integer(v[0], &seq, NULL) < 0 || seq < 0 ||
        jsonscan_string_copy(v[1], ret_prev, AUDITLINE_DIGEST, NULL) != AUDITLINE_DIGEST - 1)
        return 0;
    *ret_seq = (uint64_t)seq;
    return 1;
}

/* The last line of *text, which is taken off it. */
static struct view last_line(struct view *text)
{
    const uint8_t *nl;
    struct view line = *text;

    if (line.n > 0 && line.p[line.n - 1] == '\n')
        line.n--;
    nl = line.n > 0 ? memrchr(line.p, '\n', line.n) : NULL;
    if (nl == NULL) {
        text->n = 0;
        return line;
    }
    text->n = (size_t)(nl + 1 - text->p);
    return (struct view){ nl + 1, (size_t)(line.p + line.n - (nl + 1)) };
}

int auditline_tail(struct view end, struct audit_tail *ret, struct err *e)
{
    struct audit_tail t = { .digest = AUDITLINE_FIRST, .next_seq = 1 };
    char prev[AUDITLINE_DIGEST];
    uint64_t seq;

    if (end.n == 0) {
        *ret = t;
        return 0;
    }
    t.unfinished = end.p[end.n - 1] != '\n';
    struct view line = last_line(&end);
    int rc = auditline_digest(line, t.digest, e);
    if (rc < 0)
        return rc;
    /* Numbers go on behind the last record that is whole. */
    while (!read_record(line, &seq, prev)) {
        if (end.n == 0) {
            *ret = t;
            return 0;
        }
        line = last_line(&end);
    }
    t.next_seq = seq + 1;
    *ret = t;
    return 0;
}

int auditcheck_line(struct auditcheck *c, struct view line, struct err *e)
{
    char prev[AUDITLINE_DIGEST];
    uint64_t seq;
    int first = c->lines == 0, record = read_record(line, &seq, prev);

    c->lines++;
    if (!record) {
        if (first)
            return err_set(e, HC_EPARSE, "line 1 is no record of an audit file");
        c->unfinished++;
        return auditline_digest(line, c->digest, e);
    }
    if (first) {
        memcpy(c->first, prev, sizeof prev);
    } else if (strcmp(prev, c->digest) != 0 && !(c->boundary && strcmp(prev, c->whole) == 0)) {
        return err_set(e, HC_EPARSE,
                       "line %" PRIu64 " does not follow the one before it: a line was changed, "
                       "taken out or put in",
                       c->lines);
    } else if (seq != c->next_seq) {
        return err_set(e, HC_EPARSE, "line %" PRIu64 " has the number %" PRIu64 ", not %" PRIu64,
                       c->lines, seq, c->next_seq);
    }
    c->next_seq = seq + 1;
    c->boundary = 0;
    int rc = auditline_digest(line, c->digest, e);
    memcpy(c->whole, c->digest, sizeof c->whole);
    return rc;
}

void auditcheck_next_file(struct auditcheck *c)
{
    c->boundary = c->lines > 0;
}
