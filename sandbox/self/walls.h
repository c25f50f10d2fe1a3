/*
 * walls - which walls a test has asked to leave out, to see that the attacks they hold then
 * succeed (tests/attacks/walls.txt). Only in builds with HOLDCELL_TEST_WALLS, which cannot be
 * optimized nor installed; in every other build nothing of it exists.
 */
#ifndef HC_WALLS_H
#define HC_WALLS_H

enum wall {
    WALL_SECCOMP,  /* the filters of sessions and of init */
    WALL_DAEMONS,  /* those of root's daemons, which sessions inherit */
    WALL_LANDLOCK, /* of sessions */
    WALL_NETNS,
    WALL_IPCNS,
    WALL_USERNS,   /* nested user namespaces are allowed */
    WALL_ROOT,     /* /tmp, /dev/shm and /etc are the host's */
    WALL_OVERLAY,  /* /usr and the runtime are the host's inodes */
    WALL_PROCMASK, /* nothing lies over /proc */
    WALL_CAPS,     /* the bounding set stays full */
    WALL_PIDS,
    WALL_MEMORY,
    WALL_CPU,
    WALL_DISK, /* sizes and inodes */
    WALL_FDS,
    WALL_RIGHTS, /* the gateway takes descriptors from its sockets, to close them */
    WALLS_END,
};

#define WALLS_VARIABLE "HOLDCELL_TEST_WITHOUT" /* names, joined by commas */

#ifdef HC_TEST_WALLS

int wall_is_off(enum wall wall);
/* "HOLDCELL_TEST_WITHOUT=...": for a child with an environment of its own; NULL: none. */
char *walls_environment(void);
/* On stderr, when some are off; a name that is no wall's ends the program. */
void walls_tell(const char *program);

#else

static inline int wall_is_off(enum wall wall)
{
    (void)wall;
    return 0;
}

static inline char *walls_environment(void)
{
    return (char *)0;
}

static inline void walls_tell(const char *program)
{
    (void)program;
}

#endif
#endif
