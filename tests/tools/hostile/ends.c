#include "ends.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "acts.h"

enum {
    CLOSED_MS = 15000, /* in which the launcher ends one whose link is of no use */
    BLIND_MS = 60000,  /* in which it ends one that does not read */
    MUTANTS_MAX = 400,
};

enum ending {
    END_NOISE = 1, /* until the launcher has had enough */
    END_EXIT,
    END_KILLED,
    END_CLOSED,  /* lives on without its link */
    END_DEAF,    /* shut down to one side, or both */
    END_BLIND,   /* asks and asks, and reads nothing */
    END_PARTING, /* leaves requests in the socket */
    END_EMPTY,   /* a packet of no bytes */
    END_SETTLED, /* everything was answered */
    END_FLOOD,   /* of descriptors */
    END_STOPPED,
    ENDINGS,
};

/* The launcher has to kill us: nobody else will. */
static void wait_for_death(struct peer *p, uint64_t ms, const char *after)
{
    uint64_t until = peer_clock_ms() + ms;

    while (peer_clock_ms() < until)
        poll(NULL, 0, 50);
    peer_fail(p, "still alive %llu ms after %s", (unsigned long long)ms, after);
}

static void make_noise(struct peer *p)
{
    /* Some mutants are requests. */
    for (unsigned i = 0; i < MUTANTS_MAX && !p->dead; i++) {
        act_mutant(p);
        while (peer_receive(p, 0) > 0)
            ;
    }
}

static void go_blind(struct peer *p)
{
    const struct launch_list list = { 0 };
    autobuf struct buf out;
    uint64_t until = peer_clock_ms() + BLIND_MS;

    buf_init(&out, MSG_MAX);
    if (msg_encode(launch_request_spec(LAUNCH_LIST), 7, 0, &list, 0, &out, NULL) < 0)
        return;
    while (peer_clock_ms() < until && !p->dead) {
        if (peer_send(p, buf_view(&out).p, buf_len(&out), NULL, 0) == 0)
            poll(NULL, 0, 1);
    }
    if (!p->dead)
        peer_fail(p, "who does not read is served for ever");
}

static void leave_requests(struct peer *p)
{
    unsigned count = peer_any(p, 30);

    for (unsigned i = 0; i < count && !p->dead && p->open_count < PEER_OPEN / 2; i++)
        act_anything(p);
    if (peer_one_in(p, 2))
        make_noise(p);
}

void end_life(struct peer *p)
{
    static const int sides[] = { SHUT_RD, SHUT_WR, SHUT_RDWR };
    /* Those that take the launcher's patience are rare. */
    static const uint8_t choice[] = { END_NOISE,   END_NOISE, END_NOISE,   END_NOISE,  END_NOISE,
                                      END_NOISE,   END_NOISE, END_EXIT,    END_KILLED, END_PARTING,
                                      END_PARTING, END_FLOOD, END_SETTLED, END_SETTLED };
    enum ending e = choice[peer_any(p, sizeof choice)];

    if (peer_one_in(p, 25))
        e = peer_one_in(p, 2) ? END_CLOSED : peer_one_in(p, 2) ? END_DEAF : END_EMPTY;
    if (peer_one_in(p, 400))
        e = peer_one_in(p, 2) ? END_BLIND : END_STOPPED;
    p->page->endings[e]++;
    switch (e) {
    case END_NOISE:
        make_noise(p);
        break;
    case END_KILLED:
        raise(SIGKILL);
        break;
    case END_CLOSED:
        close(p->fd);
        if (!p->nested)
            wait_for_death(p, CLOSED_MS, "the end of its link");
        break;
    case END_DEAF:
        shutdown(p->fd, sides[peer_any(p, 3)]);
        for (unsigned i = 0; i < 5 && !p->dead; i++)
            act_anything(p);
        break;
    case END_BLIND:
        go_blind(p);
        break;
    case END_PARTING:
        leave_requests(p);
        break;
    case END_EMPTY:
        peer_send(p, "", 0, NULL, 0);
        wait_for_death(p, CLOSED_MS, "a packet of no bytes");
        break;
    case END_SETTLED:
        peer_settle(p);
        break;
    case END_FLOOD:
        for (unsigned i = 0; i < 4 && !p->dead; i++)
            act_fd_flood(p);
        break;
    case END_STOPPED: /* with answers that nobody reads */
        for (unsigned i = 0; i < 5 && !p->dead; i++)
            act_anything(p);
        raise(SIGSTOP);
        break;
    default:
        break;
    }
}
