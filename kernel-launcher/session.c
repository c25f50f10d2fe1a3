#include "session.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "err.h"

void sessions_init(struct sessions *t, unsigned max)
{
    check(max > 0 && max <= SESSION_INDEX_MAX);
    *t = (struct sessions){ .slot = xcalloc(max, sizeof(struct session *)), .max = max };
}

void sessions_grow(struct sessions *t, unsigned max)
{
    check(max <= SESSION_INDEX_MAX);
    if (max <= t->max)
        return;
    struct session **slot = xcalloc(max, sizeof *slot);
    memcpy(slot, t->slot, t->max * sizeof *slot);
    free(t->slot);
    t->slot = slot;
    t->max = max;
}

static void note_clear(struct note *n)
{
    for (unsigned i = 0; i < n->fd_count; i++)
        close(n->fds[i]);
    free((void *)(uintptr_t)n->bytes.p);
    *n = (struct note){ 0 };
}

static void session_free(struct session *s)
{
    for (unsigned i = 0; i < LAUNCH_KERNELS_MAX; i++) {
        closep(&s->kernels[i].pidfd);
        closep(&s->kernels[i].status_fd);
        closep(&s->kernels[i].run_fd);
    }
    closep(&s->init_fd);
    free((void *)(uintptr_t)s->data.p);
    free(s->kernelspecs);
    note_clear(&s->note);
    free(s);
}

void sessions_free(struct sessions *t)
{
    for (unsigned i = 0; i < t->max; i++) {
        if (t->slot[i] != NULL)
            session_free(t->slot[i]);
    }
    free(t->slot);
    *t = (struct sessions){ 0 };
}

/* Ids are random so that a gateway that lost its mind cannot guess others', and
 * an id of a session that is gone never comes back. */
static uint64_t new_id(const struct sessions *t)
{
    uint64_t id = 0;

    while (id == 0 || sessions_find(t, id) != NULL)
        check(getrandom(&id, sizeof id, 0) == sizeof id);
    return id;
}

struct session *sessions_add(struct sessions *t)
{
    unsigned index = 0;

    while (index < t->max && t->slot[index] != NULL)
        index++;
    if (index == t->max)
        return NULL;
    struct session *s = xcalloc(1, sizeof *s);
    s->id = new_id(t);
    s->index = index;
    s->init_fd = -1;
    for (unsigned i = 0; i < LAUNCH_KERNELS_MAX; i++)
        s->kernels[i] = (struct kernelproc){ .pidfd = -1, .status_fd = -1, .run_fd = -1 };
    t->slot[index] = s;
    t->count++;
    return s;
}

void sessions_remove(struct sessions *t, struct session *s)
{
    check(s->sandbox == NULL && t->slot[s->index] == s);
    t->slot[s->index] = NULL;
    t->count--;
    session_free(s);
}

struct session *sessions_find(const struct sessions *t, uint64_t id)
{
    for (unsigned i = 0; i < t->max; i++) {
        if (t->slot[i] != NULL && t->slot[i]->id == id)
            return t->slot[i];
    }
    return NULL;
}

struct session *sessions_after(const struct sessions *t, uint64_t after)
{
    struct session *best = NULL;

    for (unsigned i = 0; i < t->max; i++) {
        struct session *s = t->slot[i];

        if (s != NULL && s->state == SESSION_ALIVE && s->id > after &&
            (best == NULL || s->id < best->id))
            best = s;
    }
    return best;
}

unsigned sessions_note_fds(const struct sessions *t, const struct session *except)
{
    unsigned n = 0;

    for (unsigned i = 0; i < t->max; i++) {
        if (t->slot[i] != NULL && t->slot[i] != except)
            n += t->slot[i]->note.fd_count;
    }
    return n;
}

void session_note(struct session *s, struct view bytes, int *fds, unsigned fd_count)
{
    check(fd_count <= MSG_FDS_MAX);
    note_clear(&s->note);
    if (bytes.n > 0)
        s->note.bytes = (struct view){ (const uint8_t *)view_dup(bytes), bytes.n };
    for (unsigned i = 0; i < fd_count; i++)
        s->note.fds[i] = take_fd(&fds[i]);
    s->note.fd_count = fd_count;
}

int kernel_has_process(const struct kernelproc *k)
{
    return k->state == KERNEL_STARTING || k->state == KERNEL_RUNNING;
}

struct kernelproc *session_kernel(struct session *s, uint32_t kernel, uint32_t generation)
{
    if (kernel == 0 || kernel > LAUNCH_KERNELS_MAX)
        return NULL;
    struct kernelproc *k = &s->kernels[kernel - 1];

    return k->state != KERNEL_NONE && k->generation == generation ? k : NULL;
}

struct leaf *session_leaf(struct session *s, uint32_t kernel, uint32_t generation)
{
    for (unsigned i = 0; i < s->leaf_count; i++) {
        if (s->leaves[i].kernel == kernel && s->leaves[i].generation == generation)
            return &s->leaves[i];
    }
    return NULL;
}

struct leaf *session_leaf_add(struct session *s, uint32_t kernel, uint32_t generation,
                              uint64_t now_ms)
{
    struct leaf *leaf = session_leaf(s, kernel, generation);

    if (leaf != NULL || s->leaf_count == SESSION_LEAVES_MAX)
        return leaf;
    leaf = &s->leaves[s->leaf_count++];
    *leaf = (struct leaf){ .kernel = kernel, .generation = generation, .since_ms = now_ms };
    return leaf;
}

void session_leaf_remove(struct session *s, struct leaf *leaf)
{
    *leaf = s->leaves[--s->leaf_count];
}

int stops_add(struct stops *s, uint64_t request)
{
    if (s->count == SESSION_STOPS_MAX)
        return -HC_ELIMIT;
    s->request[s->count++] = request;
    return 0;
}
