#include "token.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "err.h"
#include "hex.h"

enum { RANDOM_BYTES = 24 };

int token_check(const char *what, const char *token, struct err *e)
{
    size_t n = strlen(token);

    if (n == 0)
        return err_set(e, EINVAL, "%s is empty; --no-auth asks for no token", what);
    if (n > TOKEN_MAX)
        return err_set(e, EINVAL, "%s is longer than %d bytes", what, TOKEN_MAX);
    for (size_t i = 0; i < n; i++) {
        if (token[i] <= ' ' || token[i] > '~')
            return err_set(e, EINVAL, "%s holds a blank or a byte outside ASCII", what);
    }
    return 0;
}

int token_random(char **ret, struct err *e)
{
    uint8_t bytes[RANDOM_BYTES];
    char text[2 * RANDOM_BYTES + 1];

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return err_sys(e, errno, "random token");
    hex_encode(bytes, sizeof bytes, text);
    *ret = xstrdup(text);
    explicit_bzero(bytes, sizeof bytes);
    explicit_bzero(text, sizeof text);
    return 0;
}

void token_forget(char **token)
{
    if (*token != NULL)
        explicit_bzero(*token, strlen(*token));
    free(*token);
    *token = NULL;
}
