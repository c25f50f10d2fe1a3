#include "outputlimit.h"

#include <string.h>

/* A budget that was crossed stays used up, however small what comes next: output with holes
 * would look whole. */
enum output_verdict output_ask(struct output_use *u, uint64_t limit, const char *type,
                               uint64_t bytes)
{
    if (strcmp(type, "status") == 0 || strcmp(type, "execute_input") == 0)
        return OUTPUT_PASS;
    int first_error = strcmp(type, "error") == 0 && !u->error;

    u->error |= first_error;
    if (limit == 0 || first_error || (u->dropped == 0 && bytes <= limit - u->bytes)) {
        u->bytes += limit == 0 || bytes <= limit - u->bytes ? bytes : limit - u->bytes;
        return OUTPUT_PASS;
    }
    u->dropped_bytes += bytes;
    return u->dropped++ == 0 ? OUTPUT_DROP_FIRST : OUTPUT_DROP;
}
