#include "guard.h"

#include <errno.h>
#include <limits.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "err.h"
#include "harden.h"

enum { FIXED_RULES = 3 }; /* the private directory, /dev/null, the end */

/* The directory, or the nearest one above it; NULL for the root. Landlock's rules hold for
 * what a path names now and do not follow a link in its last place. Owned by the caller. */
static char *nearest(const char *path, size_t n)
{
    char text[PATH_MAX], *real;

    if (n == 0 || n >= sizeof text)
        return NULL;
    memcpy(text, path, n);
    text[n] = '\0';
    while ((real = realpath(text, NULL)) == NULL) {
        char *slash = strrchr(text, '/');

        if (slash == NULL || slash == text)
            return NULL;
        *slash = '\0';
    }
    if (real[1] != '\0')
        return real;
    free(real);
    return NULL;
}

static unsigned count_directories(const char *list)
{
    unsigned n = 1;

    for (; *list != '\0'; list++)
        n += *list == ':';
    return n;
}

int guard_enter(const char *kernel_path, int private_dir_fd, struct err *e)
{
    const unsigned most = count_directories(kernel_path) + FIXED_RULES;
    struct landlock_rule *rules = xcalloc(most, sizeof *rules);
    char **owned = xcalloc(most, sizeof *owned);
    unsigned n = 0, paths = 0;

    /* Reads its file of settings, which names what the operator allows, and is kept. */
    OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, NULL);
    for (const char *p = kernel_path; *p != '\0'; p += *p == ':') {
        size_t length = strcspn(p, ":");
        char *dir = nearest(p, length);

        p += length;
        if (dir != NULL)
            rules[n++] = (struct landlock_rule){ owned[paths++] = dir, LANDLOCK_LOOK, -1 };
    }
    rules[n++] = (struct landlock_rule){ "", LANDLOCK_KEEP, private_dir_fd };
    rules[n++] = (struct landlock_rule){ "/dev/null", LANDLOCK_LOOK, -1 };
    rules[n] = (struct landlock_rule){ NULL, LANDLOCK_LOOK, -1 };
    int rc = harden_gateway(rules, e);
    while (paths > 0)
        free(owned[--paths]);
    free(owned);
    free(rules);
    return rc;
}
