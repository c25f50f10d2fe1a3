/*
 * jupyter_codec - the JSON scanner, signatures and WebSocket codecs of protocol/
 * behind stdin and stdout, for tests/differential/test_jupyter_codecs.py.
 *
 * A request: verb (1 byte), number of fields (u32 LE), each field as u32 LE size
 * and bytes. An answer: result (i32 LE, as of err.h), number of fields, fields; a
 * negative result has one field, the error's text. The verbs stand in serve().
 */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "jmsg.h"
#include "jsonscan.h"
#include "jsonwrite.h"
#include "wschannel.h"

enum { FIELDS_MAX = 1100, FIELD_MAX = 1 << 28 };

struct request {
    int verb;
    unsigned count;
    struct view fields[FIELDS_MAX]; /* owned bytes */
};

static struct buf answer = { .max = SIZE_MAX };
static unsigned answer_count;

static void add_field(struct view v)
{
    uint32_t le = htole32((uint32_t)v.n);

    check(buf_add(&answer, &le, sizeof le) == 0 && buf_add_view(&answer, v) == 0);
    answer_count++;
}

static void add_number(size_t n)
{
    char text[32];

    snprintf(text, sizeof text, "%zu", n);
    add_field(view_cstr(text));
}

static void write_le32(uint32_t n)
{
    n = htole32(n);
    check(fwrite(&n, sizeof n, 1, stdout) == 1);
}

static void write_answer(int rc, const struct err *e)
{
    if (rc < 0) {
        buf_clear(&answer);
        answer_count = 0;
        add_field(view_cstr(e->msg));
    }
    write_le32((uint32_t)rc);
    write_le32(answer_count);
    struct view v = buf_view(&answer);
    check(v.n == 0 || fwrite(v.p, v.n, 1, stdout) == 1);
    check(fflush(stdout) == 0);
    buf_clear(&answer);
    answer_count = 0;
}

static int read_le32(uint32_t *ret)
{
    uint32_t le;

    if (fread(&le, sizeof le, 1, stdin) != 1)
        return 0;
    *ret = le32toh(le);
    return 1;
}

static int read_request(struct request *r)
{
    uint32_t n;

    r->verb = getchar();
    if (r->verb == EOF)
        return 0;
    check(read_le32(&n) && n <= FIELDS_MAX);
    for (r->count = 0; r->count < n; r->count++) {
        uint32_t size;

        check(read_le32(&size) && size <= FIELD_MAX);
        uint8_t *p = malloc(size > 0 ? size : 1); /* exact, for ASan */
        check(p != NULL && (size == 0 || fread(p, size, 1, stdin) == 1));
        r->fields[r->count] = (struct view){ p, size };
    }
    return 1;
}

static void free_request(struct request *r)
{
    for (unsigned i = 0; i < r->count; i++)
        free((void *)r->fields[i].p);
}

static unsigned number(struct view v)
{
    autofree char *s = view_dup(v);

    return (unsigned)strtoul(s, NULL, 10);
}

/* Writes a value again, member by member and each string decoded and quoted. */
static void rewrite(struct jsonscan_value v, const struct jsonscan_rules *rules,
                    struct jsonwrite *w)
{
    struct jsonscan_iter it;
    struct jsonscan_value key, member;
    autobuf struct buf text = { .max = SIZE_MAX };
    int rc;

    if (v.kind == JSONSCAN_STRING) {
        check(jsonscan_string_decode(v, &text, NULL) == 0);
        jsonwrite_string(w, buf_view(&text));
    } else if (v.kind == JSONSCAN_OBJECT || v.kind == JSONSCAN_ARRAY) {
        if (v.kind == JSONSCAN_OBJECT)
            jsonwrite_object(w);
        else
            jsonwrite_array(w);
        check(jsonscan_iter_init(&it, v, rules, NULL) == 0);
        while ((rc = jsonscan_iter_next(&it, &key, &member, NULL)) > 0) {
            if (v.kind == JSONSCAN_OBJECT) {
                buf_clear(&text);
                check(jsonscan_string_decode(key, &text, NULL) == 0);
                autofree char *s = view_dup(buf_view(&text));
                jsonwrite_key(w, s); /* a key with NUL is cut: the test makes none */
            }
            rewrite(member, &it.rules, w);
        }
        check(rc == 0);
        jsonwrite_end(w);
    } else {
        jsonwrite_raw(w, v.text);
    }
}

/* flags, depth, text -> kind, bad UTF-8, NaN tokens, lone surrogates, depth and,
 * when it is not nested deeper than the writer can, the text written again. */
static int verb_scan(const struct request *r, struct err *e)
{
    const struct jsonscan_rules rules = { number(r->fields[0]), number(r->fields[1]) };
    struct jsonscan_value v;
    struct jsonscan_notes notes;
    autobuf struct buf again = { .max = SIZE_MAX };
    int rc = jsonscan_text(r->fields[2], &rules, &v, &notes, e);

    if (rc < 0)
        return rc;
    add_field(view_cstr(jsonscan_kind_name(v.kind)));
    add_number(notes.bad_utf8);
    add_number(notes.nan_tokens);
    add_number(notes.lone_surrogates);
    add_number(notes.depth);
    if (notes.depth <= JSONWRITE_DEPTH) {
        struct jsonwrite w = jsonwrite_to(&again);

        rewrite(v, &rules, &w);
        check(jsonwrite_finish(&w, NULL) == 0);
        add_field(buf_view(&again));
    }
    return 0;
}

/* text, keys... -> the bytes of each key's value, empty when absent */
static int verb_object(const struct request *r, struct err *e)
{
    const struct jsonscan_rules rules = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, 512 };
    struct jsonscan_value values[JSONSCAN_KEYS_MAX];
    char *keys[JSONSCAN_KEYS_MAX] = { NULL };
    size_t count = r->count - 1;

    check(count <= JSONSCAN_KEYS_MAX);
    for (size_t i = 0; i < count; i++)
        keys[i] = view_dup(r->fields[i + 1]);
    int rc =
        jsonscan_object(r->fields[0], &rules, (const char *const *)keys, count, values, NULL, e);
    for (size_t i = 0; i < count; i++) {
        if (rc == 0)
            add_field(values[i].text);
        free(keys[i]);
    }
    return rc;
}

/* scheme, key, four parts -> signature */
static int verb_sign(const struct request *r, struct err *e)
{
    struct jmsg_key *k = NULL;
    char hex[JMSG_SIGNATURE_SIZE];
    int rc = jmsg_key_new(r->fields[0], r->fields[1], &k, e);

    if (rc == 0)
        rc = jmsg_sign(k, r->fields + 2, hex, e);
    if (rc >= 0)
        add_field(view_cstr(hex));
    jmsg_key_free(k);
    return rc;
}

/* scheme, key, frames... -> number of routing frames, header, ..., content, buffers */
static int verb_receive(const struct request *r, struct err *e)
{
    struct jmsg_key *k = NULL;
    struct jmsg m;
    struct jmsg_facts facts;
    int rc = jmsg_key_new(r->fields[0], r->fields[1], &k, e);

    if (rc == 0)
        rc = jmsg_parse(r->fields + 2, r->count - 2, &jmsg_limits_default, &m, e);
    if (rc == 0)
        rc = jmsg_verify(k, &m, e);
    if (rc == 0)
        rc = jmsg_scan(&m, &jmsg_limits_default, &facts, e);
    if (rc == 0) {
        add_number(m.routing_count);
        for (int i = 0; i < JMSG_PARTS; i++)
            add_field(m.parts[i]);
        for (unsigned i = 0; i < m.buffer_count; i++)
            add_field(m.buffers[i]);
    }
    jmsg_key_free(k);
    return rc;
}

/* framing (0 legacy, 1 v1), channel, date, four parts, buffers... -> binary, payload */
static int verb_encode(const struct request *r, struct err *e)
{
    struct wschannel_frame f;
    struct jmsg m = { .buffers = r->fields + 7, .buffer_count = r->count - 7 };
    autofree char *date = view_dup(r->fields[2]);
    autobuf struct buf payload = { .max = SIZE_MAX };
    int channel = jmsg_channel_find(r->fields[1]);

    check(channel >= 0);
    for (int i = 0; i < JMSG_PARTS; i++)
        m.parts[i] = r->fields[3 + i];
    wschannel_frame_init(&f);
    int rc = wschannel_encode(&f, number(r->fields[0]) ? WSCHANNEL_V1 : WSCHANNEL_LEGACY,
                              (enum jmsg_channel)channel, &m, date, e);
    if (rc == 0) {
        check(wschannel_flatten(&f, &payload) == 0);
        add_number((size_t)f.binary);
        add_field(buf_view(&payload));
    }
    wschannel_frame_free(&f);
    return rc;
}

/* framing, text, payload -> channel, four parts, buffers... */
static int verb_decode(const struct request *r, struct err *e)
{
    struct wschannel_in in = { 0 };
    int rc = wschannel_decode(&in, number(r->fields[0]) ? WSCHANNEL_V1 : WSCHANNEL_LEGACY,
                              (int)number(r->fields[1]), r->fields[2], &jmsg_limits_default, e);

    if (rc == 0) {
        add_field(view_cstr(jmsg_channel_name(in.channel)));
        for (int i = 0; i < JMSG_PARTS; i++)
            add_field(in.msg.parts[i]);
        for (unsigned i = 0; i < in.msg.buffer_count; i++)
            add_field(in.msg.buffers[i]);
    }
    wschannel_in_free(&in);
    return rc;
}

/* msg_id, msg_type, session, username, date -> header */
static int verb_header(const struct request *r, struct err *e)
{
    const struct jmsg_own own = { .msg_id = r->fields[0],
                                  .msg_type = r->fields[1],
                                  .session = r->fields[2],
                                  .username = r->fields[3],
                                  .date = r->fields[4] };
    autobuf struct buf header = { .max = SIZE_MAX };
    int rc = jmsg_header_write(&own, &header, e);

    if (rc == 0)
        add_field(buf_view(&header));
    return rc;
}

static void serve(const struct request *r)
{
    static const struct {
        int verb;
        unsigned fields; /* at least */
        int (*run)(const struct request *r, struct err *e);
    } verbs[] = {
        { 'J', 3, verb_scan },    { 'O', 1, verb_object }, { 'S', 6, verb_sign },
        { 'R', 2, verb_receive }, { 'E', 7, verb_encode }, { 'D', 3, verb_decode },
        { 'H', 5, verb_header },
    };
    struct err e = { 0 };

    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (verbs[i].verb == r->verb) {
            check(r->count >= verbs[i].fields);
            int rc = verbs[i].run(r, &e);

            check(rc >= 0 || rc == -e.code);
            write_answer(rc, &e);
            return;
        }
    check(!"a verb of the table");
}

int main(void)
{
    static struct request r;

    while (read_request(&r)) {
        serve(&r);
        free_request(&r);
    }
    buf_free(&answer);
    return 0;
}
