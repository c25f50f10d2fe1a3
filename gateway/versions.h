/* versions - of the libraries that the gateway runs with. */
#ifndef HC_VERSIONS_H
#define HC_VERSIONS_H

#include <stdio.h>

/* One line `name version` per library. */
void versions_print(FILE *to);

#endif
