#include "jsonscan.h"

#include <errno.h>
#include <string.h>

#include "err.h"

/* One pass over one text. The stack of open arrays and objects is a bit each. */
struct scan {
    const uint8_t *p, *end;
    const uint8_t *doc; /* positions in errors count from here */
    struct jsonscan_rules rules;
    struct jsonscan_notes notes;
    struct err *e;
    unsigned depth; /* open now */

    /* The wanted keys of the outermost object, and the one whose value is being read. */
    const char *const *keys;
    size_t count;
    size_t slot; /* count = none */
    struct jsonscan_value found[JSONSCAN_KEYS_MAX];

    uint64_t objects[JSONSCAN_DEPTH_MAX / 64]; /* bit per level: it is an object */
};

static void scan_init(struct scan *s, struct view doc, const struct jsonscan_rules *rules,
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

static int fail(struct scan *s, const char *what)
{
    return err_set(s->e, HC_EPARSE, "JSON byte %zu: %s", (size_t)(s->p - s->doc), what);
}

static void skip_space(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
        s->p++;
}

#define ONES  UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

static uint64_t has_zero(uint64_t w)
{
    return (w - ONES) & ~w & HIGHS;
}

/* Skips bytes of a string that stand for themselves, eight at a time: outputs of
 * many megabytes are one string. */
static void skip_plain(struct scan *s)
{
    while (s->end - s->p >= 8) {
        uint64_t w;

        memcpy(&w, s->p, sizeof w);
        if ((w & HIGHS) != 0 || ((w - ONES * 0x20) & ~w & HIGHS) != 0 ||
            has_zero(w ^ (ONES * '"')) != 0 || has_zero(w ^ (ONES * '\\')) != 0)
            break;
        s->p += 8;
    }
    while (s->p < s->end && *s->p >= 0x20 && *s->p < 0x80 && *s->p != '"' && *s->p != '\\')
        s->p++;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The 16 bits of \uXXXX at p, or -1 when that is not what is there. */
static int unicode_escape(const uint8_t *p, const uint8_t *end)
{
    int unit = 0;

    if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(p[i]);

        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static int scan_escape(struct scan *s)
{
    if (s->end - s->p >= 2 && s->p[1] != '\0' && strchr("\"\\/bfnrt", s->p[1]) != NULL) {
        s->p += 2;
        return 0;
    }
    int unit = unicode_escape(s->p, s->end);
    if (unit < 0)
        return fail(s, "invalid escape in a string");
    s->p += 6;
    if (unit < 0xd800 || unit > 0xdfff)
        return 0;
    if (unit < 0xdc00) {
        int low = unicode_escape(s->p, s->end);

        if (low >= 0xdc00 && low <= 0xdfff) {
            s->p += 6;
            return 0;
        }
    }
    s->notes.lone_surrogates++;
    return 0;
}

/* Length of the sequence that a byte >= 0x80 begins. An invalid one is counted as
 * its maximal subpart (Unicode 3.9, U+FFFD substitution): never an ASCII byte. */
static unsigned sequence(const uint8_t *p, const uint8_t *end, int *valid)
{
    unsigned more = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : p[0] < 0xf5 ? 3 : 0;
    uint8_t lo = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t hi = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    unsigned n = 1;

    while (n <= more && p + n < end && p[n] >= lo && p[n] <= hi) {
        n++;
        lo = 0x80;
        hi = 0xbf;
    }
    *valid = more > 0 && n == more + 1;
    return n;
}

static int scan_multibyte(struct scan *s)
{
    while (s->p < s->end && *s->p >= 0x80) {
        int valid;
        unsigned n = sequence(s->p, s->end, &valid);

        if (!valid && !(s->rules.flags & JSONSCAN_BAD_UTF8))
            return fail(s, "invalid UTF-8 in a string");
        s->notes.bad_utf8 += !valid;
        s->p += n;
    }
    return 0;
}

/* At the opening quote. */
static int scan_string(struct scan *s)
{
    s->p++;
    for (;;) {
        int rc = 0;

        skip_plain(s);
        if (s->p == s->end)
            return fail(s, "the text ends inside a string");
        if (*s->p == '"') {
            s->p++;
            return 0;
        }
        if (*s->p == '\\')
            rc = scan_escape(s);
        else if (*s->p >= 0x80)
            rc = scan_multibyte(s);
        else
            return fail(s, "control character in a string");
        if (rc < 0)
            return rc;
    }
}

/* 1 and past it when the word is next. */
static int take_word(struct scan *s, const char *word)
{
    size_t n = strlen(word);

    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
        return 0;
    s->p += n;
    return 1;
}

static size_t skip_digits(struct scan *s)
{
    const uint8_t *start = s->p;

    while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
        s->p++;
    return (size_t)(s->p - start);
}

static int scan_number(struct scan *s, enum jsonscan_kind *ret_kind)
{
    *ret_kind = JSONSCAN_INTEGER;
    if (*s->p == '-')
        s->p++;
    if (s->p < s->end && *s->p == '0')
        s->p++;
    else if (skip_digits(s) == 0)
        return fail(s, "expected a digit");
    if (s->p < s->end && *s->p == '.') {
        s->p++;
        *ret_kind = JSONSCAN_REAL;
        if (skip_digits(s) == 0)
            return fail(s, "expected a digit after the decimal point");
    }
    if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
        s->p++;
        *ret_kind = JSONSCAN_REAL;
        if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
            s->p++;
        if (skip_digits(s) == 0)
            return fail(s, "expected a digit in the exponent");
    }
    return 0;
}

static int scan_word(struct scan *s, enum jsonscan_kind *ret_kind)
{
    if (take_word(s, "null")) {
        *ret_kind = JSONSCAN_NULL;
    } else if (take_word(s, "true")) {
        *ret_kind = JSONSCAN_TRUE;
    } else if (take_word(s, "false")) {
        *ret_kind = JSONSCAN_FALSE;
    } else if ((s->rules.flags & JSONSCAN_NAN) &&
               (take_word(s, "NaN") || take_word(s, "Infinity") || take_word(s, "-Infinity"))) {
        *ret_kind = JSONSCAN_REAL;
        s->notes.nan_tokens++;
    } else {
        return fail(s, "expected a value");
    }
    return 0;
}

static int in_object(const struct scan *s)
{
    unsigned level = s->depth - 1;

    return (s->objects[level / 64] >> (level % 64)) & 1;
}

static int open_container(struct scan *s, int object)
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
static int begin_value(struct scan *s, enum jsonscan_kind *ret_kind)
{
    if (s->p == s->end)
        return fail(s, "the text ends where a value should be");
    switch (*s->p) {
    case '{':
        *ret_kind = JSONSCAN_OBJECT;
        return open_container(s, 1);
    case '[':
        *ret_kind = JSONSCAN_ARRAY;
        return open_container(s, 0);
    case '"':
        *ret_kind = JSONSCAN_STRING;
        return scan_string(s);
    case '-':
        if (s->end - s->p > 1 && s->p[1] == 'I')
            return scan_word(s, ret_kind);
        return scan_number(s, ret_kind);
    default:
        if (*s->p >= '0' && *s->p <= '9')
            return scan_number(s, ret_kind);
        return scan_word(s, ret_kind);
    }
}

/* Reads `"key":` of the innermost object. Returns 1: a value follows. */
static int read_key(struct scan *s, struct view *ret_key)
{
    skip_space(s);
    if (s->p == s->end || *s->p != '"')
        return fail(s, "expected a key in quotes");
    const uint8_t *start = s->p;
    int rc = scan_string(s);
    if (rc < 0)
        return rc;
    *ret_key = (struct view){ start, (size_t)(s->p - start) };
    skip_space(s);
    if (s->p == s->end || *s->p != ':')
        return fail(s, "expected ':' after a key");
    s->p++;
    skip_space(s);
    return 1;
}

/* As read_key(); notes whether the value to come is a wanted one. */
static int next_key(struct scan *s)
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
static int after_value(struct scan *s)
{
    for (;;) {
        if (s->depth == 1 && s->slot < s->count) {
            struct view *text = &s->found[s->slot].text;

            text->n = (size_t)(s->p - text->p);
            s->slot = s->count;
        }
        if (s->depth == 0)
            return 0;
        skip_space(s);
        if (s->p == s->end)
            return fail(s, in_object(s) ? "the text ends inside an object"
                                        : "the text ends inside an array");
        if (*s->p == ',') {
            s->p++;
            return in_object(s) ? next_key(s) : 1;
        }
        if (*s->p != (in_object(s) ? '}' : ']'))
            return fail(s, in_object(s) ? "expected ',' or '}'" : "expected ',' or ']'");
        s->p++;
        s->depth--;
    }
}

/* Behind an opening bracket; results as after_value(). */
static int first_member(struct scan *s)
{
    skip_space(s);
    if (s->p < s->end && *s->p == (in_object(s) ? '}' : ']')) {
        s->p++;
        s->depth--;
        return after_value(s);
    }
    return in_object(s) ? next_key(s) : 1;
}

/* One value at s->p; stops behind it. */
static int scan_value(struct scan *s, struct jsonscan_value *ret)
{
    const uint8_t *start;
    enum jsonscan_kind kind, outermost = JSONSCAN_ABSENT;
    int rc;

    skip_space(s);
    start = s->p;
    do {
        skip_space(s);
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

static int scan_document(struct scan *s, struct jsonscan_value *ret)
{
    int rc = scan_value(s, ret);

    if (rc < 0)
        return rc;
    skip_space(s);
    return s->p == s->end ? 0 : fail(s, "something follows the value");
}

int jsonscan_text(struct view doc, const struct jsonscan_rules *rules, struct jsonscan_value *ret,
                  struct jsonscan_notes *ret_notes, struct err *e)
{
    struct scan s;
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
    struct scan s;
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
    struct scan s;
    struct jsonscan_value key = { 0 }, value;

    scan_init(&s, it->rest, &it->rules, e);
    skip_space(&s);
    if (s.p == s.end)
        return fail(&s, "the text ends inside an array or object");
    if (*s.p == (it->kind == JSONSCAN_OBJECT ? '}' : ']'))
        return 0; /* rest stays: asking again gives the same answer */
    if (it->started && *s.p++ != ',')
        return fail(&s, "expected ','");
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
