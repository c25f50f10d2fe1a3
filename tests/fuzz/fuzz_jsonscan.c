/*
 * Any text through the JSON scanner, and what it accepts through everything that
 * reads values. First byte: bits 0-1 are the flags, the rest is the depth.
 * Properties: what jansson accepts is accepted; more flags accept more; members
 * add up to the document; decoded strings are UTF-8 and survive being written again.
 */
#include <stdint.h>
#include <string.h>

#include <jansson.h>

#include "err.h"
#include "jsonscan.h"
#include "jsonwrite.h"
#include "utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const keys[] = { "header", "content", "", "msg_id", "é", "a/b" };
enum { KEYS = sizeof keys / sizeof *keys };

static void use_string(struct jsonscan_value v)
{
    autobuf struct buf decoded = { .max = SIZE_MAX };
    autobuf struct buf again = { .max = SIZE_MAX };
    autobuf struct buf decoded2 = { .max = SIZE_MAX };
    const struct jsonscan_rules none = { 0, 0 };
    struct jsonscan_notes notes;
    struct jsonscan_value v2;
    char copy[32];

    check(jsonscan_string_decode(v, &decoded, NULL) == 0);
    struct view text = buf_view(&decoded);
    check(utf8_valid(text));
    check(jsonwrite_quoted(&again, text) == 0);
    check(jsonscan_text(buf_view(&again), &none, &v2, &notes, NULL) == 0);
    check(notes.lone_surrogates == 0);
    check(jsonscan_string_decode(v2, &decoded2, NULL) == 0);
    check(buf_len(&decoded2) == text.n);
    check(text.n == 0 || memcmp(buf_view(&decoded2).p, text.p, text.n) == 0);

    int nul = text.n > 0 && memchr(text.p, 0, text.n) != NULL;
    int len = jsonscan_string_copy(v, copy, sizeof copy, NULL);
    check(len < 0 ? nul || text.n >= sizeof copy : (size_t)len == text.n && !nul);
    if (nul)
        return;
    autofree char *s = view_dup(text);
    check(jsonscan_string_equals(v2, s));
    /* The original may have been lossy, and equals nothing then. */
    const struct jsonscan_rules bad = { JSONSCAN_BAD_UTF8, 0 };
    check(jsonscan_text(v.text, &bad, NULL, &notes, NULL) == 0);
    int lossy = notes.lone_surrogates > 0 || notes.bad_utf8 > 0;
    check(jsonscan_string_equals(v, s) == !lossy);
}

/* Depth first; the scan has bounded the depth. */
static void use_value(struct jsonscan_value v, const struct jsonscan_rules *rules)
{
    struct jsonscan_iter it;
    struct jsonscan_value key, member;
    int64_t i;
    int b, rc;

    check((jsonscan_integer(v, &i, NULL) == -HC_EPARSE) == (v.kind != JSONSCAN_INTEGER));
    check((jsonscan_bool(v, &b, NULL) == 0) ==
          (v.kind == JSONSCAN_TRUE || v.kind == JSONSCAN_FALSE));
    if (v.kind == JSONSCAN_STRING)
        use_string(v);
    if (jsonscan_iter_init(&it, v, rules, NULL) < 0)
        return;
    while ((rc = jsonscan_iter_next(&it, &key, &member, NULL)) > 0) {
        check((key.kind == JSONSCAN_STRING) == (v.kind == JSONSCAN_OBJECT));
        if (key.kind == JSONSCAN_STRING)
            use_string(key);
        use_value(member, &it.rules);
    }
    check(rc == 0);
}

/* The last member with the key, as the iterator sees it. */
static struct jsonscan_value last_member(struct jsonscan_value object,
                                         const struct jsonscan_rules *rules, const char *name)
{
    struct jsonscan_iter it;
    struct jsonscan_value key, member, found = { 0 };

    check(jsonscan_iter_init(&it, object, rules, NULL) == 0);
    while (jsonscan_iter_next(&it, &key, &member, NULL) > 0)
        if (jsonscan_string_equals(key, name))
            found = member;
    return found;
}

static void use_object(struct view doc, struct jsonscan_value v, const struct jsonscan_rules *rules)
{
    struct jsonscan_value values[KEYS];
    struct jsonscan_notes notes;
    int rc = jsonscan_object(doc, rules, keys, KEYS, values, &notes, NULL);

    check((rc == 0) == (v.kind == JSONSCAN_OBJECT));
    for (size_t i = 0; rc == 0 && i < KEYS; i++) {
        struct jsonscan_value last = last_member(v, rules, keys[i]);

        check(values[i].kind == last.kind);
        check(values[i].text.p == last.text.p && values[i].text.n == last.text.n);
    }
}

static int accepted_by_jansson(struct view doc)
{
    /* It takes a NUL byte for the end of the text. */
    if (doc.n == 0 || memchr(doc.p, 0, doc.n) != NULL)
        return 0;
    json_t *value = json_loadb((const char *)doc.p, doc.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    int accepted = value != NULL;

    json_decref(value);
    return accepted;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1)
        return 0;
    const struct jsonscan_rules rules = { data[0] & 3, data[0] >> 2 };
    struct view doc = { data + 1, n - 1 };
    struct jsonscan_value v;
    struct jsonscan_notes notes;
    struct err e = { 0 };
    int rc = jsonscan_text(doc, &rules, &v, &notes, &e);

    check(rc == -e.code);
    if (accepted_by_jansson(doc))
        check(rc == 0 || rc == -HC_ELIMIT);
    if (rc < 0)
        return 0;
    check(notes.depth <= rules.depth);
    check((rules.flags & JSONSCAN_NAN) || notes.nan_tokens == 0);
    check((rules.flags & JSONSCAN_BAD_UTF8) || notes.bad_utf8 == 0);
    check((notes.bad_utf8 == 0) == utf8_valid(doc));
    const struct jsonscan_rules all = { JSONSCAN_NAN | JSONSCAN_BAD_UTF8, rules.depth };
    check(jsonscan_text(doc, &all, NULL, NULL, NULL) == 0);
    use_value(v, &rules);
    use_object(doc, v, &rules);
    return 0;
}
