#include "msgcodec.h"

#include <errno.h>
#include <string.h>

#include "err.h"

const struct msg_spec *msg_find(const struct msg_spec *specs, size_t count, unsigned verb)
{
    for (size_t i = 0; i < count; i++) {
        if (specs[i].verb == verb)
            return &specs[i];
    }
    return NULL;
}

static int add_bytes(struct buf *out, struct view v)
{
    uint32_t n = (uint32_t)v.n;
    int rc = buf_add(out, &n, sizeof n);

    return rc < 0 ? rc : buf_add_view(out, v);
}

static int check_bytes(const struct msg_field *f, struct view v, int code, struct err *e)
{
    if (v.n > f->max)
        return err_set(e, code, "field '%s': %zu bytes, at most %u", f->name, v.n, f->max);
    if (f->kind != MSG_STR)
        return 0;
    if (v.n == 0 && !f->optional)
        return err_set(e, code, "field '%s' is empty", f->name);
    if (v.n > 0 && memchr(v.p, '\0', v.n) != NULL)
        return err_set(e, code, "field '%s' holds a NUL", f->name);
    return 0;
}

static int check_number(const struct msg_field *f, uint64_t value, int code, struct err *e)
{
    if (f->max > 0 && value > f->max)
        return err_set(e, code, "field '%s': %llu, at most %u", f->name, (unsigned long long)value,
                       f->max);
    return 0;
}

static int encode_field(const struct msg_field *f, const void *member, struct buf *out,
                        struct err *e)
{
    uint32_t u32;
    uint64_t u64;
    struct view v;
    int rc = 0;

    switch ((enum msg_kind)f->kind) {
    case MSG_U32:
        memcpy(&u32, member, sizeof u32);
        rc = check_number(f, u32, EINVAL, e);
        return rc < 0 ? rc : buf_add(out, &u32, sizeof u32);
    case MSG_U64:
        memcpy(&u64, member, sizeof u64);
        rc = check_number(f, u64, EINVAL, e);
        return rc < 0 ? rc : buf_add(out, &u64, sizeof u64);
    case MSG_I32:
        return buf_add(out, member, sizeof(int32_t));
    case MSG_STR:
    case MSG_BLOB:
        memcpy(&v, member, sizeof v);
        rc = check_bytes(f, v, EINVAL, e);
        return rc < 0 ? rc : add_bytes(out, v);
    }
    return err_set(e, EINVAL, "field '%s' has an unknown kind", f->name);
}

int msg_encode(const struct msg_spec *spec, uint64_t request, int error, const void *body,
               unsigned fds, struct buf *out, struct err *e)
{
    size_t start = buf_len(out);
    struct msg_head head = {
        .version = MSG_VERSION, .verb = spec->verb, .request = request, .error = error, .fds = fds
    };
    int rc = buf_add(out, &head, sizeof head);

    if (rc == 0 && (fds < spec->fds_min || fds > spec->fds_max))
        rc = err_set(e, EINVAL, "%s: %u descriptors", spec->name, fds);
    for (unsigned i = 0; rc == 0 && i < spec->count; i++) {
        const struct msg_field *f = &spec->fields[i];
        rc = encode_field(f, (const char *)body + f->offset, out, e);
    }
    if (rc == 0 && buf_len(out) - start > MSG_MAX)
        rc = err_set(e, EMSGSIZE, "%s: message of %zu bytes", spec->name, buf_len(out) - start);
    if (rc < 0) {
        out->tail = out->head + start;
        return rc;
    }
    head.size = (uint32_t)(buf_len(out) - start);
    memcpy(out->data + out->head + start, &head, sizeof head);
    return 0;
}

int msg_head_decode(struct view packet, unsigned fds, struct msg_head *ret, struct err *e)
{
    struct msg_head head;

    if (packet.n < sizeof head)
        return err_set(e, HC_EPARSE, "packet of %zu bytes is shorter than its head", packet.n);
    memcpy(&head, packet.p, sizeof head);
    if (head.version != MSG_VERSION)
        return err_set(e, HC_EPARSE, "protocol version %u, expected %u", head.version, MSG_VERSION);
    if (head.size != packet.n || packet.n > MSG_MAX)
        return err_set(e, HC_EPARSE, "size %u in a packet of %zu bytes", head.size, packet.n);
    if (head.fds != fds)
        return err_set(e, HC_EPARSE, "%u descriptors said, %u received", head.fds, fds);
    *ret = head;
    return 0;
}

static int take(struct view *rest, void *out, size_t n)
{
    if (rest->n < n)
        return -1;
    memcpy(out, rest->p, n);
    rest->p += n;
    rest->n -= n;
    return 0;
}

static int decode_field(const struct msg_field *f, struct view *rest, void *member, struct err *e)
{
    uint32_t u32;
    uint64_t u64;
    struct view v;
    int rc;

    switch ((enum msg_kind)f->kind) {
    case MSG_U32:
        if (take(rest, &u32, sizeof u32) < 0)
            break;
        memcpy(member, &u32, sizeof u32);
        return check_number(f, u32, HC_EPARSE, e);
    case MSG_U64:
        if (take(rest, &u64, sizeof u64) < 0)
            break;
        memcpy(member, &u64, sizeof u64);
        return check_number(f, u64, HC_EPARSE, e);
    case MSG_I32:
        if (take(rest, member, sizeof(int32_t)) < 0)
            break;
        return 0;
    case MSG_STR:
    case MSG_BLOB:
        if (take(rest, &u32, sizeof u32) < 0 || rest->n < u32)
            break;
        v = (struct view){ rest->p, u32 };
        rc = check_bytes(f, v, HC_EPARSE, e);
        if (rc < 0)
            return rc;
        rest->p += u32;
        rest->n -= u32;
        memcpy(member, &v, sizeof v);
        return 0;
    }
    return err_set(e, HC_EPARSE, "field '%s' is cut short", f->name);
}

int msg_decode(const struct msg_spec *spec, const struct msg_head *head, struct view packet,
               void *ret_body, struct err *e)
{
    struct view rest = { packet.p + sizeof *head, packet.n - sizeof *head };

    if (head->fds < spec->fds_min || head->fds > spec->fds_max)
        return err_set(e, HC_EPARSE, "%s: %u descriptors", spec->name, head->fds);
    memset(ret_body, 0, spec->size);
    for (unsigned i = 0; i < spec->count; i++) {
        const struct msg_field *f = &spec->fields[i];
        int rc = decode_field(f, &rest, (char *)ret_body + f->offset, e);

        if (rc < 0)
            return (void)err_wrap(e, "%s", spec->name), rc;
    }
    if (rest.n > 0)
        return err_set(e, HC_EPARSE, "%s: %zu bytes behind the last field", spec->name, rest.n);
    return 0;
}

int msg_strings_add(struct buf *blob, const char *s)
{
    return buf_add(blob, s, strlen(s) + 1);
}

int msg_strings_count(struct view blob, unsigned max, struct err *e)
{
    unsigned count = 0;

    if (blob.n > 0 && blob.p[blob.n - 1] != '\0')
        return err_set(e, HC_EPARSE, "list of strings does not end in NUL");
    for (size_t i = 0; i < blob.n; i++)
        count += blob.p[i] == '\0';
    if (count > max)
        return err_set(e, HC_EPARSE, "%u strings, at most %u", count, max);
    return (int)count;
}

void msg_strings_split(struct view blob, char **out, unsigned count)
{
    char *p = (char *)(uintptr_t)blob.p;

    for (unsigned i = 0; i < count; i++) {
        out[i] = p;
        p += strlen(p) + 1;
    }
    out[count] = NULL;
}
