#include "httpchunk.h"

#include "err.h"
#include "httpchars.h"

enum state { /* negative: refused with that status */
             SIZE,
             EXTENSION,
             SIZE_LF,
             DATA,
             DATA_CR,
             DATA_LF,
             TRAILER, /* at the beginning of a trailer line */
             TRAILER_NAME,
             TRAILER_VALUE,
             TRAILER_LF,
             END_LF,
             DONE,
};

#define DIGITS_MAX     16 /* hexadecimal digits of a size: all that a uint64_t holds */
#define EXTENSIONS_MAX 16384
#define TRAILERS_MAX   8192

void httpchunk_init(struct httpchunk *c, uint64_t max_body)
{
    *c = (struct httpchunk){ .state = SIZE, .room = max_body };
}

int httpchunk_status(const struct httpchunk *c)
{
    return c->state < 0 ? -c->state : 0;
}

static int refuse(struct httpchunk *c, int status, struct err *e, const char *why)
{
    c->state = -status;
    return err_set(e, status == 400 ? HC_EPARSE : HC_ELIMIT, "%s", why);
}

static int expect(struct httpchunk *c, uint8_t byte, uint8_t want, enum state next, struct err *e)
{
    if (byte != want)
        return refuse(c, 400, e, "malformed line end in a chunked body");
    c->state = next;
    return 0;
}

static int on_size(struct httpchunk *c, uint8_t byte, struct err *e)
{
    int digit = http_hex_value(byte);

    if (digit >= 0) {
        if (c->digits++ == DIGITS_MAX)
            return refuse(c, 400, e, "a chunk size of too many digits");
        c->left = c->left << 4 | (unsigned)digit;
        return 0;
    }
    if (c->digits == 0 || (byte != '\r' && byte != ';'))
        return refuse(c, 400, e, "malformed chunk size");
    if (c->left > c->room)
        return refuse(c, 413, e, "the body is too large");
    c->room -= c->left;
    c->state = byte == ';' ? EXTENSION : SIZE_LF;
    return 0;
}

static int on_extension(struct httpchunk *c, uint8_t byte, struct err *e)
{
    if (byte == '\r') {
        c->state = SIZE_LF;
        return 0;
    }
    if (!http_is_value_char(byte))
        return refuse(c, 400, e, "malformed chunk extension");
    if (c->extensions++ == EXTENSIONS_MAX)
        return refuse(c, 431, e, "too many chunk extensions");
    return 0;
}

static int on_data_lf(struct httpchunk *c, uint8_t byte, struct err *e)
{
    c->digits = 0;
    return expect(c, byte, '\n', SIZE, e);
}

static int name_is_framing(const struct httpchunk *c)
{
    static const char *const names[] = { "content-length", "transfer-encoding", "host" };
    struct view name = { (const uint8_t *)c->name, c->name_len };

    if (name.n > sizeof c->name)
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (view_equals_nocase(name, names[i]))
            return 1;
    return 0;
}

static int on_trailer_name(struct httpchunk *c, uint8_t byte, struct err *e)
{
    if (byte == ':') {
        if (name_is_framing(c))
            return refuse(c, 400, e, "a framing field among the trailers");
        c->state = TRAILER_VALUE;
        return 0;
    }
    if (!http_token_chars[byte])
        return refuse(c, 400, e, "malformed trailer field");
    if (c->name_len < sizeof c->name)
        c->name[c->name_len] = (char)byte;
    c->name_len++; /* bounded by TRAILERS_MAX */
    return 0;
}

static int on_trailer(struct httpchunk *c, uint8_t byte, struct err *e)
{
    static const char malformed[] = "malformed trailer field";

    if (c->trailers++ == TRAILERS_MAX)
        return refuse(c, 431, e, "the trailer fields are too large");
    switch (c->state) {
    case TRAILER:
        if (byte == '\r') {
            c->state = END_LF;
            return 0;
        }
        if (byte == ':')
            return refuse(c, 400, e, malformed);
        c->name_len = 0;
        c->state = TRAILER_NAME;
        return on_trailer_name(c, byte, e);
    case TRAILER_NAME:
        return on_trailer_name(c, byte, e);
    case TRAILER_VALUE:
        if (byte != '\r' && !http_is_value_char(byte))
            return refuse(c, 400, e, malformed);
        c->state = byte == '\r' ? TRAILER_LF : TRAILER_VALUE;
        return 0;
    default:
        return expect(c, byte, '\n', TRAILER, e);
    }
}

static int on_byte(struct httpchunk *c, uint8_t byte, struct err *e)
{
    switch (c->state) {
    case SIZE:
        return on_size(c, byte, e);
    case EXTENSION:
        return on_extension(c, byte, e);
    case SIZE_LF:
        return expect(c, byte, '\n', c->left > 0 ? DATA : TRAILER, e);
    case DATA_CR:
        return expect(c, byte, '\r', DATA_LF, e);
    case DATA_LF:
        return on_data_lf(c, byte, e);
    case END_LF:
        return expect(c, byte, '\n', DONE, e);
    default:
        return on_trailer(c, byte, e);
    }
}

int httpchunk_feed(struct httpchunk *c, const void *in, size_t len, size_t *used, struct view *data,
                   struct err *e)
{
    const uint8_t *p = in;
    size_t i = 0;
    int rc = 0;

    check(c->state != DONE);
    if (c->state < 0)
        return err_set(e, HC_EPARSE, "the body was refused before");
    *data = (struct view){ p, 0 };
    while (rc == 0 && i < len && c->state != DONE) {
        if (c->state != DATA) {
            rc = on_byte(c, p[i++], e);
            continue;
        }
        if (data->n > 0)
            break;
        *data = (struct view){ p + i, c->left < len - i ? (size_t)c->left : len - i };
        i += data->n;
        c->left -= data->n;
        if (c->left == 0)
            c->state = DATA_CR;
    }
    *used = i;
    return rc < 0 ? rc : c->state == DONE;
}
