#include "seat_park.h"

#include <stdlib.h>
#include <string.h>

#include "err.h"

const struct park_limits park_limits_default = {
    .places = 256,
    .sockets = 64,
    .held = (size_t)256 << 20,
};

/* The higher, the longer it keeps what it has. */
static unsigned rank(const struct park_place *p)
{
    if (!p->returns)
        return 0; /* nobody comes back for it */
    return p->runs ? 3 : p->unread ? 2 : 1;
}

static int before(const struct park_place *a, const struct park_place *b)
{
    if (rank(a) != rank(b))
        return rank(a) < rank(b);
    return a->since_ms < b->since_ms;
}

enum park_loss park_choose(const struct park_place *all, size_t n, const struct park_limits *l,
                           size_t *ret_who)
{
    size_t sockets = 0, held = 0, first = n, first_open = n;

    for (size_t i = 0; i < n; i++) {
        sockets += all[i].sockets != 0;
        held += all[i].held;
        if (first == n || before(&all[i], &all[first]))
            first = i;
        if ((all[i].sockets || all[i].held > 0) &&
            (first_open == n || before(&all[i], &all[first_open])))
            first_open = i;
    }
    if (n > l->places) {
        *ret_who = first;
        return PARK_PLACE;
    }
    if (sockets > l->sockets || held > l->held) {
        *ret_who = first_open;
        return all[first_open].returns ? PARK_SOCKETS : PARK_PLACE;
    }
    return PARK_NONE;
}

/* ---- those without a place ---- */

struct graves {
    struct grave *first, *last; /* the oldest first */
    size_t count, bytes;
    uint64_t *forgotten; /* owned ring of hashes; NULL until one is */
    size_t forgotten_next;
};

struct graves *graves_new(void)
{
    return xcalloc(1, sizeof(struct graves));
}

struct grave *grave_free(struct grave *r)
{
    if (r == NULL)
        return NULL;
    while (r->runs != NULL) {
        struct grave_run *next = r->runs->next;
        free(r->runs);
        r->runs = next;
    }
    free(r->sid);
    free(r);
    return NULL;
}

struct graves *graves_free(struct graves *g)
{
    if (g == NULL)
        return NULL;
    while (g->first != NULL) {
        struct grave *next = g->first->next;
        grave_free(g->first);
        g->first = next;
    }
    free(g->forgotten);
    free(g);
    return NULL;
}

/* FNV-1a; 0 stands for none. */
static uint64_t hash(const char *sid)
{
    uint64_t h = 14695981039346656037u;

    for (; *sid != '\0'; sid++)
        h = (h ^ (uint8_t)*sid) * 1099511628211u;
    return h != 0 ? h : 1;
}

static struct grave *unlink_after(struct graves *g, struct grave *prev)
{
    struct grave *r = prev != NULL ? prev->next : g->first;

    if (prev != NULL)
        prev->next = r->next;
    else
        g->first = r->next;
    if (g->last == r)
        g->last = prev;
    r->next = NULL;
    g->count--;
    g->bytes -= r->bytes;
    return r;
}

static void forget_oldest(struct graves *g)
{
    struct grave *r = unlink_after(g, NULL);

    if (g->forgotten == NULL)
        g->forgotten = xcalloc(GRAVES_FORGOTTEN, sizeof *g->forgotten);
    g->forgotten[g->forgotten_next] = hash(r->sid);
    g->forgotten_next = (g->forgotten_next + 1) % GRAVES_FORGOTTEN;
    grave_free(r);
}

void graves_add(struct graves *g, const char *sid)
{
    struct grave *r = xcalloc(1, sizeof *r);

    r->sid = xstrdup(sid);
    r->bytes = sizeof *r + strlen(sid) + 1;
    if (g->last != NULL)
        g->last->next = r;
    else
        g->first = r;
    g->last = r;
    g->count++;
    g->bytes += r->bytes;
    while (g->count > 1 && (g->count > GRAVES_MAX || g->bytes > GRAVES_BYTES))
        forget_oldest(g);
}

void graves_add_run(struct graves *g, struct view header)
{
    struct grave *r = g->last;
    size_t bytes = sizeof *r->runs + header.n;
    struct grave_run **at = &r->runs;

    /* One alone takes at most a quarter of the room. */
    struct grave_run *run =
        header.n <= GRAVE_HEADER_MAX && r->bytes + bytes <= GRAVES_BYTES / 4 ? malloc(bytes) : NULL;
    if (run == NULL) {
        r->unnamed++;
        return;
    }
    run->next = NULL;
    run->n = header.n;
    if (header.n > 0)
        memcpy(run->header, header.p, header.n);
    while (*at != NULL)
        at = &(*at)->next;
    *at = run;
    r->bytes += bytes;
    g->bytes += bytes;
    while (g->count > 1 && g->bytes > GRAVES_BYTES)
        forget_oldest(g);
}

static struct grave *take_forgotten(struct graves *g, const char *sid)
{
    uint64_t h = hash(sid);

    for (size_t i = 0; g->forgotten != NULL && i < GRAVES_FORGOTTEN; i++) {
        if (g->forgotten[i] != h)
            continue;
        g->forgotten[i] = 0;
        return xcalloc(1, sizeof(struct grave));
    }
    return NULL;
}

struct grave *graves_take(struct graves *g, const char *sid)
{
    struct grave *prev = NULL;

    for (struct grave *r = g->first; r != NULL; prev = r, r = r->next) {
        if (strcmp(r->sid, sid) == 0)
            return unlink_after(g, prev);
    }
    return take_forgotten(g, sid);
}

size_t graves_bytes(const struct graves *g)
{
    return g->bytes;
}
