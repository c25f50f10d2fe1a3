#include "note.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cull.h"
#include "err.h"
#include "jsonwrite.h"
#include "noteitem.h"
#include "utf8.h"

/* Repair makes a text longer (three bytes for one), and what does not fit would be refused
 * by the next gateway: it is cut, between characters. */
static void put_text(struct jsonwrite *w, const char *s, size_t size)
{
    const struct view given = { (const uint8_t *)s, strnlen(s, size - 1) };
    autobuf struct buf repaired = { 0 };
    struct view text = given;

    buf_init(&repaired, 3 * size);
    if (utf8_repair(given, &repaired, &text, NULL) < 0)
        text = (struct view){ given.p, utf8_valid_prefix(given) };
    if (text.n >= size)
        text.n = utf8_valid_prefix((struct view){ text.p, size - 1 });
    jsonwrite_string(w, text);
}

/* Only where there is one: without them the note is that of versions before. */
static void put_optional(struct jsonwrite *w, const struct note *n)
{
    for (unsigned i = 0; i < TIME_LIMITS; i++) {
        uint64_t ms = time_limits_get(&n->times, &time_limits_named[i]);
        if (ms == 0)
            continue;
        jsonwrite_key(w, time_limits_named[i].setting);
        jsonwrite_uint(w, ms);
    }
    if (n->born_ms != 0) {
        jsonwrite_key(w, "born_ms");
        jsonwrite_uint(w, n->born_ms);
    }
    if (n->numbered != 0) {
        jsonwrite_key(w, "numbered");
        jsonwrite_uint(w, n->numbered);
    }
    if (n->workspace_bytes != 0) {
        jsonwrite_key(w, "workspace_bytes");
        jsonwrite_uint(w, n->workspace_bytes);
    }
    if (n->overdue) {
        jsonwrite_key(w, "overdue");
        jsonwrite_uint(w, 1);
    }
}

int note_encode(const struct note *n, struct buf *out, struct err *e)
{
    struct jsonwrite w = jsonwrite_to(out);
    const struct {
        const char *key, *value;
        size_t size;
    } texts[] = {
        { "principal", n->principal, sizeof n->principal },
        { "id", n->id, sizeof n->id },
        { "spec", n->spec_name, sizeof n->spec_name },
        { "key", n->key, sizeof n->key },
        { "base", n->base, sizeof n->base },
        { "session", n->session, sizeof n->session },
    };
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        { "version", NOTE_VERSION },
        { "spec_dir", n->spec_dir },
        { "sockets_fd", n->sockets_fd != 0 },
        { "interrupt_by_message", n->interrupt_by_message != 0 },
        { "generation", n->generation },
        { "fds", n->fds },
        { "busy", n->busy != 0 },
        { "seeding", n->seeding != 0 },
        { "last_us", n->last_us },
        { "last_ms", n->last_ms },
        { "ending", n->ending != 0 },
        { "seats", (unsigned)n->seats.n },
    };

    jsonwrite_object(&w);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        jsonwrite_key(&w, texts[i].key);
        put_text(&w, texts[i].value, texts[i].size);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        jsonwrite_key(&w, numbers[i].key);
        jsonwrite_uint(&w, numbers[i].value);
    }
    if (n->cull_ms != CULL_UNSET) {
        jsonwrite_key(&w, "cull_ms");
        jsonwrite_uint(&w, n->cull_ms);
    }
    put_optional(&w, n);
    if (n->kept[0] != '\0') {
        jsonwrite_key(&w, "kept");
        jsonwrite_raw(&w, view_cstr(n->kept));
    }
    jsonwrite_end(&w);
    int rc = jsonwrite_finish(&w, e);
    if (rc == 0 && (buf_add(out, "", 1) < 0 || buf_add_view(out, n->seats) < 0))
        rc = err_set(e, HC_ELIMIT, "the note is too long");
    return rc;
}

static int text(const json_t *o, const char *key, char *out, size_t out_n, struct err *e)
{
    const char *s = json_string_value(json_object_get(o, key));

    if (s == NULL || strlen(s) >= out_n)
        return err_set(e, HC_EPARSE, "note: '%s' is missing or too long", key);
    snprintf(out, out_n, "%s", s);
    return 0;
}

static int number(const json_t *o, const char *key, unsigned max, unsigned *ret, struct err *e)
{
    const json_t *v = json_object_get(o, key);
    json_int_t n = json_integer_value(v);

    if (!json_is_integer(v) || n < 0 || n > (json_int_t)max)
        return err_set(e, HC_EPARSE, "note: '%s' is missing or out of range", key);
    *ret = (unsigned)n;
    return 0;
}

/* A number that notes need not have. */
static int optional(const json_t *o, const char *key, uint64_t absent, uint64_t *ret, struct err *e)
{
    const json_t *v = json_object_get(o, key);
    json_int_t n = json_integer_value(v);

    if (v != NULL && (!json_is_integer(v) || n < 0))
        return err_set(e, HC_EPARSE, "note: '%s' is out of range", key);
    *ret = v != NULL ? (uint64_t)n : absent;
    return 0;
}

static int read_activity(const json_t *o, struct note *n, struct err *e)
{
    uint64_t busy = 0, seeding = 0;
    int rc = optional(o, "cull_ms", CULL_UNSET, &n->cull_ms, e);

    if (rc == 0)
        rc = optional(o, "last_us", 0, &n->last_us, e);
    if (rc == 0)
        rc = optional(o, "last_ms", 0, &n->last_ms, e);
    if (rc == 0)
        rc = optional(o, "busy", 0, &busy, e);
    if (rc == 0)
        rc = optional(o, "seeding", 0, &seeding, e);
    n->busy = busy != 0;
    n->seeding = seeding != 0;
    return rc;
}

static int read_times(const json_t *o, struct note *n, struct err *e)
{
    uint64_t overdue = 0;
    int rc = optional(o, "born_ms", 0, &n->born_ms, e);

    for (unsigned i = 0; rc == 0 && i < TIME_LIMITS; i++) {
        uint64_t ms = 0;
        rc = optional(o, time_limits_named[i].setting, 0, &ms, e);
        if (rc == 0 && ms > TIME_MOST_MS)
            rc = err_set(e, HC_EPARSE, "note: '%s' is out of range", time_limits_named[i].setting);
        time_limits_set(&n->times, &time_limits_named[i], ms);
    }
    if (rc == 0)
        rc = optional(o, "numbered", 0, &n->numbered, e);
    if (rc == 0 && n->numbered > NOTEITEM_NUMBER_MAX)
        rc = err_set(e, HC_EPARSE, "note: 'numbered' is out of range");
    if (rc == 0)
        rc = optional(o, "workspace_bytes", 0, &n->workspace_bytes, e);
    if (rc == 0)
        rc = optional(o, "overdue", 0, &overdue, e);
    n->overdue = overdue != 0;
    return rc;
}

/* What notes of before did not have; absent is zero. */
static int read_later_fields(const json_t *o, struct note *n, struct err *e)
{
    const json_t *kept = json_object_get(o, "kept");
    unsigned ending = 0;
    int rc = json_object_get(o, "ending") != NULL ? number(o, "ending", 1, &ending, e) : 0;

    n->ending = (int)ending;
    if (rc < 0 || kept == NULL)
        return rc;
    if (!json_is_array(kept))
        return err_set(e, HC_EPARSE, "note: 'kept' is no array");
    size_t size = json_dumpb(kept, n->kept, sizeof n->kept - 1, JSON_COMPACT);
    if (size == 0 || size > sizeof n->kept - 1)
        return err_set(e, HC_EPARSE, "note: 'kept' is too long");
    n->kept[size] = '\0';
    return 0;
}

static int is_hex(const char *s)
{
    return s[strspn(s, "0123456789abcdef-")] == '\0';
}

static int read_fields(const json_t *o, struct note *n, struct err *e)
{
    unsigned version, fds, by_message, sockets_fd, seats = 0;
    int rc = number(o, "version", NOTE_VERSION, &version, e);

    if (rc == 0 && version == 0)
        rc = err_set(e, HC_EPARSE, "note: version 0");
    if (rc == 0 && version >= 2)
        rc = number(o, "seats", LAUNCH_NOTE_MAX, &seats, e);
    if (rc == 0 && version >= 2 && n->seats.p == NULL)
        rc = err_set(e, HC_EPARSE, "note: it is cut short");
    if (rc == 0 && seats != n->seats.n)
        rc = err_set(e, HC_EPARSE, "note: %zu bytes of seats, not %u", n->seats.n, seats);
    if (rc == 0)
        rc = text(o, "principal", n->principal, sizeof n->principal, e);
    if (rc == 0)
        rc = text(o, "id", n->id, sizeof n->id, e);
    if (rc == 0)
        rc = text(o, "spec", n->spec_name, sizeof n->spec_name, e);
    if (rc == 0)
        rc = text(o, "key", n->key, sizeof n->key, e);
    if (rc == 0)
        rc = text(o, "base", n->base, sizeof n->base, e);
    if (rc == 0 && version >= 2)
        rc = text(o, "session", n->session, sizeof n->session, e);
    if (rc == 0)
        rc = number(o, "spec_dir", 255, &n->spec_dir, e);
    if (rc == 0)
        rc = number(o, "generation", INT32_MAX, &n->generation, e);
    if (rc == 0)
        rc = number(o, "sockets_fd", 1, &sockets_fd, e);
    if (rc == 0)
        rc = number(o, "interrupt_by_message", 1, &by_message, e);
    if (rc == 0)
        rc = number(o, "fds", (1u << NOTE_FDS) - 1, &fds, e);
    if (rc == 0)
        rc = read_activity(o, n, e);
    if (rc < 0)
        return rc;
    n->sockets_fd = (int)sockets_fd;
    n->interrupt_by_message = (int)by_message;
    n->fds = fds;
    if (!uuid_valid(n->id, strlen(n->id)))
        return err_set(e, HC_EPARSE, "note: 'id' is no UUID");
    if (!is_hex(n->key) || !is_hex(n->base))
        return err_set(e, HC_EPARSE, "note: 'key' or 'base' is not hexadecimal");
    return 0;
}

int note_decode(struct view bytes, struct note *ret, struct err *e)
{
    const uint8_t *end = bytes.n > 0 ? memchr(bytes.p, '\0', bytes.n) : NULL;
    size_t text_n = end != NULL ? (size_t)(end - bytes.p) : bytes.n;
    json_error_t je;
    json_t *o = json_loadb((const char *)bytes.p, text_n, JSON_REJECT_DUPLICATES, &je);
    struct note n = { 0 };

    if (end != NULL)
        n.seats = (struct view){ end + 1, bytes.n - text_n - 1 };
    if (!json_is_object(o)) {
        json_decref(o);
        return err_set(e, HC_EPARSE, "note: no JSON object");
    }
    int rc = read_fields(o, &n, e);
    if (rc == 0)
        rc = read_times(o, &n, e);
    if (rc == 0)
        rc = read_later_fields(o, &n, e);
    json_decref(o);
    if (rc == 0)
        rc = noteitem_check(n.seats, e);
    if (rc == 0)
        *ret = n;
    return rc;
}
