#include "random.h"

#include <stdint.h>
#include <sys/random.h>
#include <sys/types.h>

#include "err.h"
#include "hex.h"

void random_bytes(void *out, size_t n)
{
    /* Up to 256 bytes of an initialised generator are never cut short. */
    check(n <= 256 && getrandom(out, n, 0) == (ssize_t)n);
}

void random_text(char *out, size_t n)
{
    uint8_t raw[32];

    check(n % 2 == 0 && n <= 2 * sizeof raw);
    random_bytes(raw, n / 2);
    hex_encode(raw, n / 2, out);
}
