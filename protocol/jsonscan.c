#include "jsonscan.h"

#include <errno.h>

#include "err.h"
#include "jsonscan_own.h"

static void scan_init(struct jsonscan_pass *s, struct view doc, const struct jsonscan_rules *rules,
                      struct err *e)
{
    /* Not a whole-struct initialiser: the bits are written before they are read. */
    s->p = s->doc = doc.p;
    s->end = doc.p + doc.n;
    s->rules = *rules;
    if (s->rules.depth > JSONSCAN_DEPTH_MAX)
        s->rules.depth = JSONSCAN_DEPTH_MAX;
    s->notes = (struct jsonscan_notes){ 0 };
    s->e = e;
    s->depth = 0;
    s->keys = NULL;
    s->count = s->slot = 0;
}

static int in_object(const struct jsonscan_pass *s)
{
    unsigned level = s->depth - 1;

    return (s->objects[level / 64] >> (level % 64)) & 1;
}

static int open_container(struct jsonscan_pass *s, int object)
{
    unsigned level = s->depth;
    uint64_t bit = UINT64_C(1) << (level % 64);

    if (level >= s->rules.depth)
        return err_set(s->e, HC_ELIMIT, "JSON byte %zu: nested deeper than %u levels",
                       (size_t)(s->p - s->doc), s->rules.depth);
    if (object)
        s->objects[level / 64] |= bit;
    else
        s->objects[level / 64] &= ~bit;
    s->depth++;
    if (s->depth > s->notes.depth)
        s->notes.depth = s->depth;
    s->p++;
    return 1;
}

/* Reads a scalar (0) or an opening bracket (1). */
static int begin_value(struct jsonscan_pass *s, enum jsonscan_kind *ret_kind)
{
    if (s->p == s->end)
        return json_fail(s, "the text ends where a value should be");
    switch (*s->p) {
    case '{':
        *ret_kind = JSONSCAN_OBJECT;
        return open_container(s, 1);
    case '[':
        *ret_kind = JSONSCAN_ARRAY;
        return open_container(s, 0);
    case '"':
        *ret_kind = JSONSCAN_STRING;
        return json_scan_string(s);
    case '-':
        if (s->end - s->p > 1 && s->p[1] == 'I')
            return json_scan_word(s, ret_kind);
        return json_scan_number(s, ret_kind);
    default:
        if (*s->p >= '0' && *s->p <= '9')
            return json_scan_number(s, ret_kind);
        return json_scan_word(s, ret_kind);
    }
}

/* Reads `"key":` of the innermost object. Returns 1: a value follows. */
static int read_key(struct jsonscan_pass *s, struct view *ret_key)
{
    json_skip_space(s);
    if (s->p == s->end || *s->p != '"')
        return json_fail(s, "expected a key in quotes");
    const uint8_t *start = s->p;
    int rc = json_scan_string(s);
    if (rc < 0)
        return rc;
    *ret_key = (struct view){ start, (size_t)(s->p - start) };
    json_skip_space(s);
    if (s->p == s->end || *s->p != ':')
        return json_fail(s, "expected ':' after a key");
    s->p++;
    json_skip_space(s);
    return 1;
}

/* As read_key(); notes whether the value to come is a wanted one. */
static int next_key(struct jsonscan_pass *s)
{
    struct view text;
    int rc = read_key(s, &text);

    if (rc < 0 || s->depth > 1)
        return rc;
    struct jsonscan_value key = { JSONSCAN_STRING, text };
    for (s->slot = 0; s->slot < s->count; s->slot++)
        if (jsonscan_string_equals(key, s->keys[s->slot])) {
            s->found[s->slot].text.p = s->p;
            break;
        }
    return 1;
}

/* Behind a complete value: closes what ends here. Returns 1 when another value
 * follows, 0 when the outermost one is complete. */
static int after_value(struct jsonscan_pass *s)
{
    for (;;) {
        if (s->depth == 1 && s->slot < s->count) {
            struct view *text = &s->found[s->slot].text;

            text->n = (size_t)(s->p - text->p);
            s->slot = s->count;
        }
        if (s->depth == 0)
            return 0;
        json_skip_space(s);
        if (s->p == s->end)
            return json_fail(s, in_object(s) ? "the text ends inside an object"
                                             : "the text ends inside an array");
        if (*s->p == ',') {
            s->p++;
            return in_object(s) ? next_key(s) : 1;
        }
        if (*s->p != (in_object(s) ? '}' : ']'))
            return json_fail(s, in_object(s) ? "expected ',' or '}'" : "expected ',' or ']'");
        s->p++;
        s->depth--;
    }
}

/* Behind an opening bracket; results as after_value(). */
static int first_member(struct jsonscan_pass *s)
{
    json_skip_space(s);
    if (s->p < s->end && *s->p == (in_object(s) ? '}' : ']')) {
        s->p++;
        s->depth--;
        return after_value(s);
    }
    return in_object(s) ? next_key(s) : 1;
}

/* One value at s->p; stops behind it. */
static int scan_value(struct jsonscan_pass *s, struct jsonscan_value *ret)
{
    const uint8_t *start;
    enum jsonscan_kind kind, outermost = JSONSCAN_ABSENT;
    int rc;

    json_skip_space(s);
    start = s->p;
    do {
        json_skip_space(s);
        rc = begin_value(s, &kind);
        if (rc < 0)
            return rc;
        if (outermost == JSONSCAN_ABSENT)
            outermost = kind;
        else if (s->slot < s->count && s->depth == 1 + (unsigned)rc)
            s->found[s->slot].kind = kind;
        rc = rc > 0 ? first_member(s) : after_value(s);
    } while (rc > 0);
    if (rc < 0)
        return rc;
    *ret = (struct jsonscan_value){ outermost, { start, (size_t)(s->p - start) } };
    return 0;
}

static int scan_document(struct jsonscan_pass *s, struct jsonscan_value *ret)
{
    int rc = scan_value(s, ret);

    if (rc < 0)
        return rc;
    json_skip_space(s);
    return s->p == s->end ? 0 : json_fail(s, "something follows the value");
}

int jsonscan_text(struct view doc, const struct jsonscan_rules *rules, struct jsonscan_value *ret,
                  struct jsonscan_notes *ret_notes, struct err *e)
{
    struct jsonscan_pass s;
    struct jsonscan_value value;

    scan_init(&s, doc, rules, e);
    int rc = scan_document(&s, &value);
    if (rc < 0)
        return rc;
    if (ret != NULL)
        *ret = value;
    if (ret_notes != NULL)
        *ret_notes = s.notes;
    return 0;
}

int jsonscan_object(struct view doc, const struct jsonscan_rules *rules, const char *const *keys,
                    size_t count, struct jsonscan_value *ret_values,
                    struct jsonscan_notes *ret_notes, struct err *e)
{
    struct jsonscan_pass s;
    struct jsonscan_value value;

    check(count <= JSONSCAN_KEYS_MAX);
    scan_init(&s, doc, rules, e);
    s.keys = keys;
    s.count = s.slot = count;
    for (size_t i = 0; i < count; i++)
        s.found[i] = (struct jsonscan_value){ 0 };
    int rc = scan_document(&s, &value);
    if (rc < 0)
        return rc;
    if (value.kind != JSONSCAN_OBJECT)
        return err_set(e, HC_EPARSE, "JSON is %s, not an object", jsonscan_kind_name(value.kind));
    for (size_t i = 0; i < count; i++)
        ret_values[i] = s.found[i];
    if (ret_notes != NULL)
        *ret_notes = s.notes;
    return 0;
}

int jsonscan_iter_init(struct jsonscan_iter *it, struct jsonscan_value container,
                       const struct jsonscan_rules *rules, struct err *e)
{
    if ((container.kind != JSONSCAN_ARRAY && container.kind != JSONSCAN_OBJECT) ||
        container.text.n < 2)
        return err_set(e, EINVAL, "JSON is %s, not an array or object",
                       jsonscan_kind_name(container.kind));
    *it = (struct jsonscan_iter){
        .rest = { container.text.p + 1, container.text.n - 1 },
        .rules = *rules,
        .kind = container.kind,
    };
    if (it->rules.depth > 0)
        it->rules.depth--;
    return 0;
}

int jsonscan_iter_next(struct jsonscan_iter *it, struct jsonscan_value *ret_key,
                       struct jsonscan_value *ret_value, struct err *e)
{
    struct jsonscan_pass s;
    struct jsonscan_value key = { 0 }, value;

    scan_init(&s, it->rest, &it->rules, e);
    json_skip_space(&s);
    if (s.p == s.end)
        return json_fail(&s, "the text ends inside an array or object");
    if (*s.p == (it->kind == JSONSCAN_OBJECT ? '}' : ']'))
        return 0; /* rest stays: asking again gives the same answer */
    if (it->started && *s.p++ != ',')
        return json_fail(&s, "expected ','");
    int rc = 0;
    if (it->kind == JSONSCAN_OBJECT) {
        key.kind = JSONSCAN_STRING;
        rc = read_key(&s, &key.text);
    }
    if (rc >= 0)
        rc = scan_value(&s, &value);
    if (rc < 0)
        return rc;
    it->rest = (struct view){ s.p, (size_t)(s.end - s.p) };
    it->started = 1;
    if (ret_key != NULL)
        *ret_key = key;
    *ret_value = value;
    return 1;
}
