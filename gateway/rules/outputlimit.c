#include "outputlimit.h"

#include <string.h>

static int is_error(const char *type)
{
    return strcmp(type, "error") == 0;
}

static int is_input(const char *type)
{
    return strcmp(type, "execute_input") == 0;
}

static int is_exempt(const struct output_use *u, const char *type, uint64_t bytes)
{
    return strcmp(type, "status") == 0 || (is_input(type) && !u->input) ||
           (is_error(type) && bytes <= OUTPUT_ERRORS - u->error_bytes);
}

int output_is_over(const struct output_use *u, const char *type, uint64_t bytes)
{
    return u->dropped > 0 && !is_exempt(u, type, bytes);
}

/* A budget that was crossed stays used up, however small what comes next: output with holes
 * would look whole. */
enum output_verdict output_ask(struct output_use *u, uint64_t limit, const char *type,
                               uint64_t bytes)
{
    if (is_exempt(u, type, bytes)) {
        u->input |= is_input(type);
        u->error_bytes += is_error(type) ? bytes : 0;
        return OUTPUT_PASS;
    }
    if (limit == 0 || (u->dropped == 0 && bytes <= limit - u->bytes)) {
        u->bytes += limit == 0 ? 0 : bytes;
        return OUTPUT_PASS;
    }
    u->dropped_bytes += bytes;
    return u->dropped++ == 0 ? OUTPUT_DROP_FIRST : OUTPUT_DROP;
}
