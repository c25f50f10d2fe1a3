/* The file of principals: whatever it says, no crash, and an error names a line. */
#include <stdint.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "principals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct principals_maxima maxima = { .max_kernels = 10, .limits = { .pids = 100 } };
    struct principals *t = principals_new();
    struct err e = { 0 };

    if (principals_parse(t, (struct view){ data, size }, &maxima, &e) < 0) {
        check(strncmp(e.msg, "line ", 5) == 0);
    } else {
        const uint8_t digest[PRINCIPAL_DIGEST] = { 0 };

        principals_by_token(t, digest, 1800000000);
        principals_next_expiry(t, 1800000000);
    }
    principals_free(t);
    return 0;
}
