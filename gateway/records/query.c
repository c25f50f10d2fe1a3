#include "query.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "err.h"

enum { BUCKETS = 4096, SEAT_BUCKETS = 256, SUBSHELLS_MAX = 64 };

/* What one seat has of them. */
struct share {
    struct share *next; /* same bucket */
    uint64_t seat;
    unsigned count;
    size_t bytes; /* of headers */
    struct query *oldest, *newest;
};

struct queries {
    struct query all; /* ring head */
    struct query *buckets[BUCKETS];
    struct share *shares[SEAT_BUCKETS];
    uint64_t next_number, forgotten;
    uint32_t seed;
    unsigned runs, count;
};

/* FNV-1a. Clients choose the ids, and a long chain would hold up everybody: they do not know where it begins. */
static unsigned bucket_of(const struct queries *q, const char *id)
{
    uint32_t h = q->seed;

    for (; *id != '\0'; id++)
        h = (h ^ (uint8_t)*id) * 16777619u;
    return (h ^ h >> 16) % BUCKETS;
}

/* ---- shares ---- */

static struct share **share_at(const struct queries *q, uint64_t seat)
{
    struct share **at = (struct share **)(uintptr_t)&q->shares[seat % SEAT_BUCKETS];

    while (*at != NULL && (*at)->seat != seat)
        at = &(*at)->next;
    return at;
}

static void share_add(struct queries *q, struct query *r)
{
    struct share **at = share_at(q, r->seat), *s = *at;

    if (s == NULL) {
        s = *at = xcalloc(1, sizeof *s);
        s->seat = r->seat;
    }
    s->count++;
    s->bytes += r->header.n;
    r->seat_prev = s->newest;
    r->seat_next = NULL;
    *(s->newest != NULL ? &s->newest->seat_next : &s->oldest) = r;
    s->newest = r;
}

static void share_remove(struct queries *q, struct query *r)
{
    struct share **at = share_at(q, r->seat), *s = *at;

    s->count--;
    s->bytes -= r->header.n;
    *(r->seat_prev != NULL ? &r->seat_prev->seat_next : &s->oldest) = r->seat_next;
    *(r->seat_next != NULL ? &r->seat_next->seat_prev : &s->newest) = r->seat_prev;
    if (s->count == 0) {
        *at = s->next;
        free(s);
    }
}

/* ---- all ---- */

struct queries *queries_new(void)
{
    struct queries *q = xcalloc(1, sizeof *q);

    q->all.prev = q->all.next = &q->all;
    if (getrandom(&q->seed, sizeof q->seed, 0) != (ssize_t)sizeof q->seed)
        q->seed = 2166136261u;
    return q;
}

struct queries *queries_free(struct queries *q)
{
    if (q == NULL)
        return NULL;
    queries_clear(q);
    free(q);
    return NULL;
}

void queries_clear(struct queries *q)
{
    while (q->all.next != &q->all)
        queries_remove(q, q->all.next);
}

static int is_forgettable(const struct query *r)
{
    return !r->is_run || run_ended(&r->run);
}

/* What interrupts the kernel or ends it has room behind all that waits. */
static unsigned most_of(enum jmsg_channel channel)
{
    return channel == JMSG_CONTROL ? QUERIES_SEAT_MAX + QUERIES_SEAT_CONTROL : QUERIES_SEAT_MAX;
}

static size_t most_bytes_of(enum jmsg_channel channel)
{
    return channel == JMSG_CONTROL ? 2 * QUERIES_SEAT_BYTES : QUERIES_SEAT_BYTES;
}

static int has_no_room(enum jmsg_channel channel, unsigned count, size_t bytes, size_t header)
{
    return count >= most_of(channel) || (count > 0 && bytes + header > most_bytes_of(channel));
}

static struct query *oldest_forgettable(const struct share *s)
{
    struct query *r = s->oldest;

    while (r != NULL && !is_forgettable(r))
        r = r->seat_next;
    return r;
}

int queries_room(const struct queries *q, uint64_t seat, enum jmsg_channel channel, size_t header)
{
    const struct share *s = *share_at(q, seat);

    if (s == NULL || !has_no_room(channel, s->count, s->bytes, header))
        return 1;
    unsigned count = s->count;
    size_t bytes = s->bytes;
    for (const struct query *r = s->oldest; r != NULL; r = r->seat_next) {
        if (!is_forgettable(r))
            continue;
        bytes -= r->header.n;
        if (!has_no_room(channel, --count, bytes, header))
            return 1;
    }
    return 0;
}

/* What is not idle the kernel may not have read yet. */
static void forget(struct queries *q, struct query *r)
{
    q->forgotten += r->channel == JMSG_SHELL && !r->idle;
    queries_remove(q, r);
}

void queries_leave(struct queries *q, uint64_t seat, uint64_t now_ms)
{
    for (struct query *r = queries_first_of(q, seat), *next; r != NULL; r = next) {
        next = r->seat_next;
        if (is_forgettable(r) && (!query_works(r, now_ms) || q->count > QUERIES_LEFT_MAX))
            forget(q, r);
    }
}

struct query *queries_add(struct queries *q, const struct query *what)
{
    if (!queries_room(q, what->seat, what->channel, what->header.n))
        return NULL;
    for (struct share *s; (s = *share_at(q, what->seat)) != NULL &&
                          has_no_room(what->channel, s->count, s->bytes, what->header.n);) {
        forget(q, oldest_forgettable(s));
    }
    struct query *r = xcalloc(1, sizeof *r);
    *r = *what;
    origin_hold(r->origin);
    r->header = (struct view){ (uint8_t *)view_dup(what->header), what->header.n };
    q->runs += what->is_run != 0;
    q->count++;
    r->number = ++q->next_number;
    r->prev = q->all.prev;
    r->next = &q->all;
    r->prev->next = r->next->prev = r;
    share_add(q, r);
    /* At the end of its chain: matches are made oldest first. */
    struct query **at = &q->buckets[bucket_of(q, r->id)];
    while (*at != NULL)
        at = &(*at)->chain;
    r->chain = NULL;
    *at = r;
    return r;
}

uint64_t queries_forgotten(const struct queries *q)
{
    return q->forgotten;
}

void queries_remove(struct queries *q, struct query *r)
{
    struct query **at = &q->buckets[bucket_of(q, r->id)];

    share_remove(q, r);
    while (*at != r)
        at = &(*at)->chain;
    *at = r->chain;
    r->prev->next = r->next;
    r->next->prev = r->prev;
    if (r->is_run && !r->counted_out)
        q->runs--;
    q->count--;
    origin_drop(r->origin);
    free((void *)(uintptr_t)r->header.p);
    free(r);
}

/* Other types on a request's channel (usage_reply from a script, debug events) are
 * not its answer. */
int query_is_answer(const char *request_type, const char *type)
{
    static const char request[] = "_request";
    size_t n = strlen(request_type), m = sizeof request - 1;

    if (n <= m || strcmp(request_type + n - m, request) != 0)
        return 0;
    n -= m;
    return strncmp(type, request_type, n) == 0 && strcmp(type + n, "_reply") == 0;
}

/* Others may be no requests that this kernel knows. */
int query_lacks_answer(const struct query *r)
{
    static const char *const answered[] = { "complete_request",  "inspect_request",
                                            "history_request",   "is_complete_request",
                                            "comm_info_request", "kernel_info_request" };

    if (r->is_run || !r->idle || r->replied || r->inherited)
        return 0;
    for (size_t i = 0; i < sizeof answered / sizeof answered[0]; i++) {
        if (strcmp(r->type, answered[i]) == 0)
            return 1;
    }
    return 0;
}

struct query *queries_match_reply(struct queries *q, uint64_t seat, enum jmsg_channel channel,
                                  const char *id, const char *type, int *ret_second)
{
    struct query *any = NULL;

    *ret_second = 0;
    for (struct query *r = q->buckets[bucket_of(q, id)]; r != NULL; r = r->chain) {
        if (r->seat != seat || r->channel != channel || strcmp(r->id, id) != 0)
            continue;
        if (!r->replied)
            return r;
        any = r;
    }
    if (any != NULL && query_is_answer(any->type, type))
        *ret_second = 1;
    return any;
}

struct query *queries_match_status(struct queries *q, const char *id, const char *session)
{
    for (struct query *r = q->buckets[bucket_of(q, id)]; r != NULL; r = r->chain) {
        if (!r->idle && strcmp(r->id, id) == 0 && strcmp(r->session, session) == 0)
            return r;
    }
    return NULL;
}

struct query *queries_first(const struct queries *q)
{
    return q->all.next != &q->all ? q->all.next : NULL;
}

struct query *queries_first_of(const struct queries *q, uint64_t seat)
{
    const struct share *s = *share_at(q, seat);

    return s != NULL ? s->oldest : NULL;
}

struct query *queries_next(const struct queries *q, const struct query *r)
{
    return r->next != &q->all ? r->next : NULL;
}

unsigned queries_count(const struct queries *q, uint64_t seat)
{
    const struct share *s = *share_at(q, seat);

    return s != NULL ? s->count : 0;
}

unsigned queries_runs(const struct queries *q)
{
    return q->runs;
}

static int expects_reply(const struct query *r)
{
    size_t n = strlen(r->type);

    return n > 8 && strcmp(r->type + n - 8, "_request") == 0;
}

int queries_settle(struct queries *q, struct query *r)
{
    if (r->is_run && run_ended(&r->run) && !r->counted_out) {
        r->counted_out = 1;
        q->runs--;
    }
    /* A request without its reply is kept: a late one is still its own. */
    if (!r->idle || (expects_reply(r) && !r->replied))
        return 0;
    queries_remove(q, r);
    return 1;
}

/* Its code is over once its reply is out: what is asked for then is meant for what follows. */
static int can_be_interrupted(const struct query *r, int running)
{
    return r->is_run && !run_ended(&r->run) && !r->run.replied && !r->run.idle &&
           (r->run.state == RUN_RUNNING) == running;
}

struct query *queries_target(const struct queries *q)
{
    for (int running = 1; running >= 0; running--) {
        for (struct query *r = q->all.next; r != &q->all; r = r->next) {
            if (can_be_interrupted(r, running) && r->subshell[0] == '\0')
                return r;
        }
    }
    return NULL;
}

struct query *queries_by_number(const struct queries *q, uint64_t number)
{
    struct query *r = q->all.next;

    while (r != &q->all && r->number != number)
        r = r->next;
    return r != &q->all ? r : NULL;
}

void queries_interrupt(struct queries *q, uint64_t now_ms)
{
    const char *seen[SUBSHELLS_MAX];
    size_t count = 0;

    for (int running = 1; running >= 0; running--) {
        for (struct query *r = q->all.next; r != &q->all; r = r->next) {
            if (!can_be_interrupted(r, running))
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

struct lane { /* a (sub)shell */
    const char *subshell;
    struct query *first;
    int taken;
};

/* NULL for those above the bound: who makes so many of them has runs that count later. */
static struct lane *find_lane(struct lane *lanes, size_t *count, const char *subshell)
{
    size_t i = 0;

    while (i < *count && strcmp(lanes[i].subshell, subshell) != 0)
        i++;
    if (i == SUBSHELLS_MAX)
        return NULL;
    if (i == *count)
        lanes[(*count)++] = (struct lane){ .subshell = subshell };
    return &lanes[i];
}

/* The idle of what is no run may be lost, and nobody looks for it: its reply came before. */
int query_works(const struct query *r, uint64_t now_ms)
{
    if (!r->busy || r->idle)
        return 0;
    return r->is_run || !r->replied || now_ms < r->replied_ms + RUN_REPLY_GRACE_MS;
}

void queries_mark_next(struct queries *q, uint64_t now_ms)
{
    struct lane lanes[SUBSHELLS_MAX];
    size_t count = 0;

    for (struct query *r = q->all.next; r != &q->all; r = r->next) {
        int open_run = r->is_run && !run_ended(&r->run), runs = query_works(r, now_ms);
        r->is_next = 0;
        if (r->channel != JMSG_SHELL || (!open_run && !runs))
            continue;
        struct lane *l = find_lane(lanes, &count, r->subshell);
        if (l == NULL)
            continue;
        l->taken |= runs;
        if (open_run && l->first == NULL)
            l->first = r;
    }
    for (size_t i = 0; i < count; i++) {
        if (!lanes[i].taken && lanes[i].first != NULL)
            lanes[i].first->is_next = 1;
    }
}

int query_may_run(const struct query *r)
{
    return r->busy || r->inherited || r->is_next;
}

void queries_count_from(struct queries *q, uint64_t number)
{
    q->next_number = number > q->next_number ? number : q->next_number;
}

void queries_renumber(struct queries *q, struct query *r, uint64_t number)
{
    q->next_number -= r->number == q->next_number;
    r->number = number;
    queries_count_from(q, number);
}

uint64_t queries_next_number(const struct queries *q)
{
    return q->next_number + 1;
}
