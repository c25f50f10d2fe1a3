/* random - bytes and names that nobody can guess, from the kernel's generator. */
#ifndef HC_RANDOM_H
#define HC_RANDOM_H

#include <stddef.h>

void random_bytes(void *out, size_t n); /* at most 256 */

/* n random hexadecimal digits and a NUL; n is even and at most 64. */
void random_text(char *out, size_t n);

#endif
