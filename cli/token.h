/* token - what may be a client's token, and how a random one is made. */
#ifndef HC_TOKEN_H
#define HC_TOKEN_H

#include "cleanup.h"

struct err;

enum { TOKEN_MAX = 512 };

/* Printable ASCII without blanks. -EINVAL; the text begins with what. */
int token_check(const char *what, const char *token, struct err *e) MUST_CHECK;

/* 192 random bits as text. Caller frees. */
/* Wipes and frees; leaves NULL. */
void token_forget(char **token);

int token_random(char **ret, struct err *e) MUST_CHECK;

#endif
