/*
 * hostile-gateway - what a real launcher starts as its gateway in tests/storm: each
 * process is one life, hostile or sane. Lives follow from the seed and their number.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "acts.h"
#include "ends.h"
#include "sane.h"
#include "settings.h"

enum { STEPS_MAX = 60, OWED_MAX = 200 };

static struct peer peer;

static struct page *map_page(void)
{
    struct page *p =
        mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED, GATEWAY_SETTINGS_FD, 0);

    if (p == MAP_FAILED)
        _exit(8);
    return p;
}

static void be_hostile(struct peer *p)
{
    static const unsigned mutants[] = { 1000000, 40, 8 }; /* one in so many steps */
    unsigned steps = 1 + peer_any(p, STEPS_MAX), rare = mutants[peer_any(p, 3)];
    int reads = !peer_one_in(p, 8);

    for (unsigned i = 0; i < steps && !p->dead && p->open_count < OWED_MAX; i++) {
        if (peer_one_in(p, rare))
            act_mutant(p);
        else
            act_anything(p);
        while (reads && peer_receive(p, 0) > 0)
            ;
    }
    if (!p->dead)
        end_life(p);
}

/* Then it sits there until it is told to make room, so that the conductor counts undisturbed. */
static void be_sane(struct peer *p, uint64_t life)
{
    sane_clear(p);
    sane_session(p);
    __atomic_add_fetch(&p->page->sane, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&p->page->fuzz_until, __ATOMIC_SEQ_CST) <= life)
        poll(NULL, 0, 10);
}

int main(void)
{
    struct peer *p = &peer;

    p->page = map_page();
    p->fd = GATEWAY_LAUNCHER_FD;
    for (unsigned i = 0; i < PEER_KNOWN; i++)
        p->known[i].init_fd = p->known[i].run_fd = -1;
    memset(p->last.fds, 0xff, sizeof p->last.fds); /* -1 each */
    for (int fd = GATEWAY_LAUNCHER_FD; fd < GATEWAY_FDS_END; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    uint64_t life = __atomic_fetch_add(&p->page->lives, 1, __ATOMIC_SEQ_CST);
    p->life = life;
    p->seed = p->page->seed ^ life << 32;
    peer_adopt(p);
    if (p->dead)
        _exit(0);
    if (life < __atomic_load_n(&p->page->fuzz_until, __ATOMIC_SEQ_CST))
        be_hostile(p);
    else
        be_sane(p, life);
    _exit(0);
}
