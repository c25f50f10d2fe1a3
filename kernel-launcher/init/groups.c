#include "groups.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

#include "err.h"

struct group *groups_find(struct groups *g, pid_t pid)
{
    for (unsigned i = 0; pid > 0 && i < GROUPS_MAX; i++) {
        if (g->slots[i].pid == pid)
            return &g->slots[i];
    }
    return NULL;
}

/* A free slot, or else the oldest group that lost its leader: what is left of it
 * can no longer be named then, but ends with the session. */
static struct group *free_slot(struct groups *g)
{
    struct group *oldest = NULL;

    for (unsigned i = 0; i < GROUPS_MAX; i++) {
        struct group *one = &g->slots[i];

        if (one->pid == 0)
            return one;
        if (one->told && (oldest == NULL || one->age < oldest->age))
            oldest = one;
    }
    return oldest;
}

int groups_has_room(struct groups *g)
{
    return free_slot(g) != NULL;
}

void groups_add(struct groups *g, pid_t pid)
{
    struct group *stale = groups_find(g, pid); /* the kernel reuses no number that is in use */
    struct group *one = stale != NULL ? stale : free_slot(g);

    check(one != NULL);
    *one = (struct group){ .pid = pid, .age = ++g->made };
}

void groups_remove(struct group *one)
{
    *one = (struct group){ 0 };
}

void groups_ended(struct groups *g, pid_t pid, int status)
{
    struct group *one = groups_find(g, pid);

    if (one == NULL || one->ended)
        return;
    one->ended = 1;
    one->status = status;
}

void groups_forget_empty(struct groups *g)
{
    for (unsigned i = 0; i < GROUPS_MAX; i++) {
        struct group *one = &g->slots[i];

        if (one->pid != 0 && one->told && kill(-one->pid, 0) < 0 && errno == ESRCH)
            groups_remove(one);
    }
}

struct group *groups_next_event(struct groups *g)
{
    struct group *next = NULL;

    for (unsigned i = 0; i < GROUPS_MAX; i++) {
        struct group *one = &g->slots[i];

        if (one->pid != 0 && one->announced && one->ended && !one->told &&
            (next == NULL || one->age < next->age))
            next = one;
    }
    return next;
}

struct init_exited groups_event(const struct group *one)
{
    const int by_signal = WIFSIGNALED(one->status);

    return (struct init_exited){
        .pid = (uint32_t)one->pid,
        .exit_code = by_signal ? -1 : WEXITSTATUS(one->status),
        .signo = by_signal ? WTERMSIG(one->status) : 0,
    };
}
