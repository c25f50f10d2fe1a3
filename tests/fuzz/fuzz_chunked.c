/*
 * A chunked body in one piece and in small ones: the same end, the same data.
 * First byte: the size of the pieces; second: the limit of the body.
 */
#include <stdint.h>
#include <string.h>

#include "err.h"
#include "httpchunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct result {
    int rc, status;
    size_t taken;
    struct buf body;
};

static void run(struct view in, size_t piece, uint64_t max, struct result *r)
{
    struct httpchunk c;

    httpchunk_init(&c, max);
    while (r->rc == 0 && r->taken < in.n) {
        size_t n = piece < in.n - r->taken ? piece : in.n - r->taken, used = 0;
        autofree uint8_t *copy = xcalloc(1, n);
        struct view data = { NULL, 0 };

        memcpy(copy, in.p + r->taken, n);
        r->rc = httpchunk_feed(&c, copy, n, &used, &data, NULL);
        check(used > 0 && used <= n);
        r->taken += used;
        if (r->rc < 0)
            break;
        check(data.n == 0 || (data.p >= copy && data.p + data.n <= copy + used));
        check(buf_add_view(&r->body, data) == 0); /* never more than max */
    }
    r->status = httpchunk_status(&c);
    check((r->rc < 0) == (r->status != 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 3)
        return 0;
    struct view in = { data + 2, n - 2 };
    uint64_t max = data[1] == 255 ? UINT64_MAX : data[1];
    struct result whole = { 0 }, cut = { 0 };

    buf_init(&whole.body, max < n ? max : n);
    buf_init(&cut.body, max < n ? max : n);
    run(in, in.n, max, &whole);
    run(in, 1 + data[0] % 32, max, &cut);
    check(whole.rc == cut.rc && whole.status == cut.status);
    if (whole.rc >= 0) {
        struct view a = buf_view(&whole.body), b = buf_view(&cut.body);

        check(whole.taken == cut.taken && a.n == b.n);
        check(a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
    }
    buf_free(&whole.body);
    buf_free(&cut.body);
    return 0;
}
