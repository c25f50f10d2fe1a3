#include "request.h"

#include <stdlib.h>
#include <string.h>

#include "err.h"

enum { BUCKETS = 256, SUBSHELLS_MAX = 64 };

struct requests {
    struct request all; /* ring head */
    struct request *buckets[BUCKETS];
    uint64_t next_number;
    unsigned runs;
};

static unsigned bucket_of(const char *id)
{
    uint32_t h =
        2166136261u; /* FNV-1a: ids are chosen by clients of one principal, a chain hurts only them */

    for (; *id != '\0'; id++)
        h = (h ^ (uint8_t)*id) * 16777619u;
    return h % BUCKETS;
}

struct requests *requests_new(void)
{
    struct requests *q = xcalloc(1, sizeof *q);

    q->all.prev = q->all.next = &q->all;
    return q;
}

struct requests *requests_free(struct requests *q)
{
    if (q == NULL)
        return NULL;
    while (q->all.next != &q->all)
        requests_remove(q, q->all.next);
    free(q);
    return NULL;
}

static struct request *oldest_forgettable(struct requests *q, uint64_t seat)
{
    for (struct request *r = q->all.next; r != &q->all; r = r->next) {
        if (r->seat == seat && (!r->is_run || run_ended(&r->run)))
            return r;
    }
    return NULL;
}

struct request *requests_add(struct requests *q, const struct request *what)
{
    if (requests_count(q, what->seat) >= REQUESTS_SEAT_MAX) {
        struct request *old = oldest_forgettable(q, what->seat);
        if (old == NULL)
            return NULL;
        requests_remove(q, old);
    }
    struct request *r = xcalloc(1, sizeof *r);
    *r = *what;
    r->header = (struct view){ NULL, 0 };
    if (what->is_run) {
        r->header = (struct view){ (uint8_t *)view_dup(what->header), what->header.n };
        q->runs++;
    }
    r->number = ++q->next_number;
    r->prev = q->all.prev;
    r->next = &q->all;
    r->prev->next = r->next->prev = r;
    /* At the end of its chain: matches are made oldest first. */
    struct request **at = &q->buckets[bucket_of(r->id)];
    while (*at != NULL)
        at = &(*at)->chain;
    r->chain = NULL;
    *at = r;
    return r;
}

void requests_remove(struct requests *q, struct request *r)
{
    struct request **at = &q->buckets[bucket_of(r->id)];

    while (*at != r)
        at = &(*at)->chain;
    *at = r->chain;
    r->prev->next = r->next;
    r->next->prev = r->prev;
    if (r->is_run && !r->counted_out)
        q->runs--;
    free((void *)(uintptr_t)r->header.p);
    free(r);
}

/* execute_request is answered by execute_reply; other types on a request's
 * channel (usage_reply from a script, debug events) are not its answer. */
static int is_answer(const char *request_type, const char *type)
{
    static const char request[] = "_request";
    size_t n = strlen(request_type), m = sizeof request - 1;

    if (n <= m || strcmp(request_type + n - m, request) != 0)
        return 0;
    n -= m;
    return strncmp(type, request_type, n) == 0 && strcmp(type + n, "_reply") == 0;
}

struct request *requests_match_reply(struct requests *q, uint64_t seat, enum channel channel,
                                     const char *id, const char *type, int *ret_second)
{
    struct request *any = NULL;

    *ret_second = 0;
    for (struct request *r = q->buckets[bucket_of(id)]; r != NULL; r = r->chain) {
        if (r->seat != seat || r->channel != channel || strcmp(r->id, id) != 0)
            continue;
        if (!r->replied)
            return r;
        any = r;
    }
    if (any != NULL && is_answer(any->type, type))
        *ret_second = 1;
    return any;
}

struct request *requests_match_status(struct requests *q, const char *id, const char *session)
{
    for (struct request *r = q->buckets[bucket_of(id)]; r != NULL; r = r->chain) {
        if (!r->idle && strcmp(r->id, id) == 0 && strcmp(r->session, session) == 0)
            return r;
    }
    return NULL;
}

struct request *requests_first(const struct requests *q)
{
    return q->all.next != &q->all ? q->all.next : NULL;
}

struct request *requests_next(const struct requests *q, const struct request *r)
{
    return r->next != &q->all ? r->next : NULL;
}

unsigned requests_count(const struct requests *q, uint64_t seat)
{
    unsigned n = 0;

    for (struct request *r = q->all.next; r != &q->all; r = r->next)
        n += r->seat == seat;
    return n;
}

unsigned requests_runs(const struct requests *q)
{
    return q->runs;
}

static int expects_reply(const struct request *r)
{
    size_t n = strlen(r->type);

    return n > 8 && strcmp(r->type + n - 8, "_request") == 0;
}

int requests_settle(struct requests *q, struct request *r)
{
    if (r->is_run && run_ended(&r->run) && !r->counted_out) {
        r->counted_out = 1;
        q->runs--;
    }
    /* A request without its reply is kept: a late one is still its own. */
    if (!r->idle || (expects_reply(r) && !r->replied))
        return 0;
    requests_remove(q, r);
    return 1;
}

void requests_interrupt(struct requests *q, uint64_t now_ms)
{
    const char *seen[SUBSHELLS_MAX];
    size_t count = 0;

    for (int running = 1; running >= 0; running--) {
        for (struct request *r = q->all.next; r != &q->all; r = r->next) {
            if (!r->is_run || run_ended(&r->run) || (r->run.state == RUN_RUNNING) != running)
                continue;
            size_t i = 0;
            while (i < count && strcmp(seen[i], r->subshell) != 0)
                i++;
            if (i < count || count == SUBSHELLS_MAX)
                continue;
            seen[count++] = r->subshell;
            run_interrupt(&r->run, now_ms);
        }
    }
}
