#include "outputlimit.h"

#include <string.h>

static int is_exempt(const struct output_use *u, const char *type)
{
    return strcmp(type, "status") == 0 || strcmp(type, "execute_input") == 0 ||
           (strcmp(type, "error") == 0 && !u->error);
}

int output_is_over(const struct output_use *u, const char *type)
{
    return u->dropped > 0 && !is_exempt(u, type);
}

/* A budget that was crossed stays used up, however small what comes next: output with holes
 * would look whole. */
enum output_verdict output_ask(struct output_use *u, uint64_t limit, const char *type,
                               uint64_t bytes)
{
    int exempt = is_exempt(u, type), is_error = strcmp(type, "error") == 0;

    if (exempt && !is_error)
        return OUTPUT_PASS;
    u->error |= is_error;
    if (limit == 0 || exempt || (u->dropped == 0 && bytes <= limit - u->bytes)) {
        u->bytes += limit == 0 || bytes <= limit - u->bytes ? bytes : limit - u->bytes;
        return OUTPUT_PASS;
    }
    u->dropped_bytes += bytes;
    return u->dropped++ == 0 ? OUTPUT_DROP_FIRST : OUTPUT_DROP;
}
