/* subcommand - the word behind the name of a command that has several. */
#ifndef HC_SUBCOMMAND_H
#define HC_SUBCOMMAND_H

#include <stdio.h>

/* word is none of `known`, or NULL: says so and shows the usage, or that alone when it asks for help.
 * Returns the exit status. */
int subcommand_wrong(const char *command, const char *word, const char *known,
                     int (*usage)(FILE *to));

#endif
