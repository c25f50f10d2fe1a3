#include "subcommand.h"

#include <string.h>

int subcommand_wrong(const char *command, const char *word, const char *known,
                     int (*usage)(FILE *to))
{
    if (word != NULL && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0))
        return usage(stdout);
    if (word == NULL)
        fprintf(stderr, "holdcell %s: %s is missing\n", command, known);
    else
        fprintf(stderr, "holdcell %s: '%.80s' is not %s\n", command, word, known);
    return usage(stderr);
}
