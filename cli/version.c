#include <stdio.h>
#include <string.h>

#include "command.h"
#include "version.h"
#include "versions.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED "address"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED "address"
#endif
#endif
#ifndef SANITIZED
#define SANITIZED "none"
#endif

int command_version(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        printf(
            "usage: holdcell version\n\n"
            "Tells version and commit, the libraries that it runs with, and how it was built.\n");
        return 0;
    }
    if (argc > 1) {
        fprintf(stderr, "holdcell version: unexpected argument '%s'\n", argv[1]);
        return EXIT_USAGE;
    }
    printf("holdcell %s (commit %s)\n", HOLDCELL_VERSION, HOLDCELL_COMMIT);
    versions_print(stdout);
    printf("build compiler=\"%s\" type=%s sanitizers=%s fortify=%d\n", __VERSION__,
           HOLDCELL_BUILD_TYPE, SANITIZED,
#ifdef _FORTIFY_SOURCE
           _FORTIFY_SOURCE
#else
           0
#endif
    );
    return 0;
}
