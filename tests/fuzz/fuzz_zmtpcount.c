/*
 * Bytes of a connection in one piece and in small ones, with and without room for every part: the
 * same messages and the same end. First byte: the size of the pieces.
 */
#include <stdint.h>
#include <string.h>

#include "err.h"
#include "zmtpcount.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct seen {
    struct zmtpcount z;
    size_t taken;
    unsigned parts, messages;
    uint64_t bytes;
    unsigned asked, refuse; /* every so many questions */
};

static const struct zmtpcount_limits limits = { .part = 4096, .message = 6000, .parts = 16 };

static int on_part(void *arg, uint64_t part, int first)
{
    struct seen *s = arg;

    check(part <= limits.part);
    check(!first || !zmtpcount_in_message(&s->z));
    if (s->refuse != 0 && ++s->asked % s->refuse == 0)
        return 0;
    s->parts++;
    s->bytes += part;
    return 1;
}

static void on_message(void *arg)
{
    ((struct seen *)arg)->messages++;
}

static void run(struct seen *s, const uint8_t *p, size_t n, size_t piece)
{
    static const struct zmtpcount_ops ops = { on_part, on_message };
    unsigned idle = 0;

    while (s->taken < n && zmtpcount_fault(&s->z) == NULL && idle < 2) {
        size_t step = piece < n - s->taken ? piece : n - s->taken;
        autofree uint8_t *copy = xcalloc(1, step);

        memcpy(copy, p + s->taken, step);
        size_t got = zmtpcount_take(&s->z, &limits, copy, step, &ops, s);
        check(got <= step);
        check(got == step || zmtpcount_fault(&s->z) != NULL || s->refuse != 0);
        s->taken += got;
        idle = got == 0 ? idle + 1 : 0;
    }
    check(s->z.bytes <= limits.message && s->z.parts <= limits.parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct seen whole = { 0 }, pieces = { 0 }, waits = { .refuse = 2 };

    if (n < 1)
        return 0;
    run(&whole, data + 1, n - 1, n);
    run(&pieces, data + 1, n - 1, data[0] % 16 + 1U);
    run(&waits, data + 1, n - 1, data[0] % 16 + 1U);
    check(whole.taken == pieces.taken && whole.taken == waits.taken);
    check(whole.messages == pieces.messages && whole.messages == waits.messages);
    check(whole.parts == pieces.parts && whole.parts == waits.parts);
    check(whole.bytes == pieces.bytes && whole.bytes == waits.bytes);
    check(zmtpcount_fault(&whole.z) == zmtpcount_fault(&pieces.z));
    return 0;
}
