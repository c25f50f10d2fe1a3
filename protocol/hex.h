/* hex - lower-case hexadecimal, constant-time comparison, UUID texts. */
#ifndef HC_HEX_H
#define HC_HEX_H

#include <stddef.h>
#include <stdint.h>

/* Writes 2n digits and a NUL: out holds at least 2n + 1 bytes. */
void hex_encode(const uint8_t *in, size_t n, char *out);

/* 1 when a and b are equal; time depends on n only. */
int equal_secret(const void *a, const void *b, size_t n);

#define UUID_TEXT 37 /* 36 characters and a NUL */

/* Formats 16 random bytes as an RFC 9562 version 4 UUID. */
void uuid_format(const uint8_t random[16], char out[UUID_TEXT]);

/* 1 when the n bytes are a UUID as 8-4-4-4-12 hexadecimal digits (either case). */
int uuid_valid(const char *s, size_t n);

#endif
