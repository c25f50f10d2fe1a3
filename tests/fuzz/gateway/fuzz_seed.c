/* The seed notebook: what passes has cells that can be run. */
#include <stdint.h>
#include <string.h>

#include "err.h"
#include "seed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct seed *s = NULL;
    struct err e = { 0 };

    if (seed_parse((struct view){ data, n }, &s, &e) < 0) {
        check(s == NULL && e.msg[0] != '\0');
        return 0;
    }
    check(s->kernel != NULL && s->count <= SEED_CELLS_MAX);
    for (size_t i = 0; i < s->count; i++)
        check(s->cells[i].code != NULL &&
              s->cells[i].number > (i > 0 ? s->cells[i - 1].number : 0));
    seed_drop(s);
    return 0;
}
