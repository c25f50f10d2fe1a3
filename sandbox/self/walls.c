#include "walls.h"

#ifdef HC_TEST_WALLS

#if defined(NDEBUG) || defined(__OPTIMIZE__)
#error "a build whose walls can be left out is for tests alone"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[WALLS_END] = {
    [WALL_SECCOMP] = "seccomp", [WALL_DAEMONS] = "daemons", [WALL_LANDLOCK] = "landlock",
    [WALL_NETNS] = "netns",     [WALL_IPCNS] = "ipcns",     [WALL_USERNS] = "userns",
    [WALL_ROOT] = "root",       [WALL_OVERLAY] = "overlay", [WALL_PROCMASK] = "procmask",
    [WALL_CAPS] = "caps",       [WALL_PIDS] = "pids",       [WALL_MEMORY] = "memory",
    [WALL_CPU] = "cpu",         [WALL_DISK] = "disk",       [WALL_FDS] = "fds",
    [WALL_RIGHTS] = "rights",
};

/* 1 when the list of the environment has the name; no allocation: children of a clone ask too. */
static int is_listed(const char *name)
{
    const char *list = getenv(WALLS_VARIABLE);
    const size_t n = strlen(name);

    for (const char *p = list; p != NULL && *p != '\0'; p += *p == ',') {
        size_t length = strcspn(p, ",");

        if (length == n && memcmp(p, name, n) == 0)
            return 1;
        p += length;
    }
    return 0;
}

int wall_is_off(enum wall wall)
{
    return is_listed(names[wall]);
}

char *walls_environment(void)
{
    for (char **v = environ; *v != NULL; v++)
        if (strncmp(*v, WALLS_VARIABLE "=", sizeof WALLS_VARIABLE) == 0)
            return *v;
    return NULL;
}

static int is_wall(const char *name, size_t n)
{
    for (unsigned i = 0; i < WALLS_END; i++)
        if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
            return 1;
    return 0;
}

void walls_tell(const char *program)
{
    const char *list = getenv(WALLS_VARIABLE);

    fprintf(stderr, "%s: THIS IS A TEST BUILD: its walls can be left out, and must hold nobody\n",
            program);
    if (list == NULL || *list == '\0')
        return;
    for (const char *p = list; *p != '\0'; p += *p == ',') {
        size_t n = strcspn(p, ",");

        if (!is_wall(p, n)) {
            fprintf(stderr, "%s: %s: '%.*s' is no wall\n", program, WALLS_VARIABLE, (int)n, p);
            exit(2);
        }
        p += n;
    }
    fprintf(stderr, "%s: WALLS THAT ARE LEFT OUT: %s\n", program, list);
}

#endif
