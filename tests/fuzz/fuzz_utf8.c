/* Validation in one piece, in pieces and by prefix must agree; what was repaired
 * is valid and not repaired again. First byte: where the text is cut. */
#include <stdint.h>
#include <string.h>

#include "err.h"
#include "utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2)
        return 0;
    struct view in = { data + 1, n - 1 }, text, again;
    size_t cut = data[0] % n;
    struct utf8_state s = { 0 };
    autobuf struct buf out;

    buf_init(&out, 3 * in.n);
    utf8_feed(&s, (struct view){ in.p, cut });
    utf8_feed(&s, (struct view){ in.p + cut, in.n - cut });
    check(utf8_complete(&s) == utf8_valid(in));

    size_t prefix = utf8_valid_prefix(in);
    check(prefix <= in.n && utf8_valid((struct view){ in.p, prefix }));

    int changed = utf8_repair(in, &out, &text, NULL);
    check(changed == !utf8_valid(in));
    check(changed ? buf_len(&out) == text.n : text.p == in.p && buf_len(&out) == 0);
    check(memcmp(text.p, in.p, prefix) == 0);
    check(utf8_valid(text));
    check(utf8_repair(text, &out, &again, NULL) == 0 && again.p == text.p);
    return 0;
}
