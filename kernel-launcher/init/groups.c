#include "groups.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

#include "err.h"
#include "leaves.h"

struct group *groups_find(struct groups *g, pid_t pid)
{
    for (unsigned i = 0; pid > 0 && i < GROUPS_MAX; i++) {
        if (g->slots[i].pid == pid)
            return &g->slots[i];
    }
    return NULL;
}

/* A free slot, or else the oldest group without a leaf that lost its leader: what is left of
 * it can no longer be named then, but ends with the session. */
static struct group *free_slot(struct groups *g)
{
    struct group *oldest = NULL;

    for (unsigned i = 0; i < GROUPS_MAX; i++) {
        struct group *one = &g->slots[i];

        if (one->pid == 0 && one->leaf == 0)
            return one;
        if (one->told && one->leaf == 0 && (oldest == NULL || one->age < oldest->age))
            oldest = one;
    }
    return oldest;
}

int groups_has_room(struct groups *g)
{
    return free_slot(g) != NULL;
}

uint64_t groups_next_leaf(struct groups *g)
{
    return ++g->leaves;
}

void groups_add(struct groups *g, pid_t pid, uint64_t leaf)
{
    struct group *stale = groups_find(g, pid);

    /* The kernel gives out no number that is in use: that group is empty. */
    if (stale != NULL)
        groups_remove(stale);
    struct group *one = free_slot(g);

    check(one != NULL);
    *one = (struct group){ .pid = pid, .leaf = leaf, .age = ++g->made };
}

/* Its leaf is tried again when something was reaped. */
void groups_remove(struct group *one)
{
    const uint64_t leaf = one->leaf != 0 && !leaves_remove(one->leaf) ? one->leaf : 0;

    *one = (struct group){ .leaf = leaf };
}

int groups_signal(const struct group *one, int signo)
{
    if (signo == SIGKILL && one->leaf != 0)
        return leaves_kill(one->leaf);
    if (one->alone)
        return -ESRCH;
    return kill(-one->pid, signo) < 0 ? -errno : 0;
}

void groups_ended(struct groups *g, pid_t pid, int status)
{
    struct group *one = groups_find(g, pid);

    if (one == NULL || one->ended)
        return;
    one->ended = 1;
    one->status = status;
}

unsigned groups_forget_empty(struct groups *g)
{
    unsigned left = 0;

    for (unsigned i = 0; i < GROUPS_MAX; i++) {
        struct group *one = &g->slots[i];

        if (one->pid != 0 && one->told && !one->alone && kill(-one->pid, 0) < 0 && errno == ESRCH)
            one->alone = 1;
        if ((one->alone || one->pid == 0) && one->leaf != 0 && leaves_remove(one->leaf))
            one->leaf = 0;
        if (one->alone && one->leaf == 0)
            *one = (struct group){ 0 };
        left += one->leaf != 0 && (one->alone || one->pid == 0);
    }
    return left;
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
