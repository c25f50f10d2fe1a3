#include "tail.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "err.h"
#include "loop.h"

enum { TURN_MAX = 256 * 1024 }; /* bytes read per turn: a flood must not hold the loop */

struct tail {
    int fd; /* owned; -1 at end of file */
    struct loop_poll *poll;
    char ring[TAIL_MAX];
    size_t end, len; /* the last byte is at end - 1 */
};

static void keep(struct tail *t, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        t->ring[t->end] = p[i];
        t->end = (t->end + 1) % TAIL_MAX;
    }
    t->len = t->len + n < TAIL_MAX ? t->len + n : TAIL_MAX;
}

static void finish(struct tail *t)
{
    t->poll = loop_poll_close(t->poll);
    closep(&t->fd);
    t->fd = -1;
}

static void drain(struct tail *t)
{
    char piece[16 * 1024];

    for (size_t total = 0; t->fd >= 0 && total < TURN_MAX;) {
        ssize_t n = read(t->fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            finish(t);
            return;
        }
        keep(t, piece, (size_t)n);
        total += (size_t)n;
    }
}

static void on_readable(void *arg, int events)
{
    (void)events;
    drain(arg);
}

struct tail *tail_new(struct loop *l, int read_fd)
{
    struct tail *t = xcalloc(1, sizeof *t);

    t->fd = read_fd;
    fcntl(read_fd, F_SETFL, fcntl(read_fd, F_GETFL) | O_NONBLOCK);
    t->poll = loop_poll_start(l, read_fd, LOOP_READ, on_readable, t);
    return t;
}

struct tail *tail_free(struct tail *t)
{
    if (t == NULL)
        return NULL;
    finish(t);
    free(t);
    return NULL;
}

int tail_fd(const struct tail *t)
{
    return t != NULL ? t->fd : -1;
}

static char at(const struct tail *t, size_t i)
{
    return t->ring[(t->end + TAIL_MAX - t->len + i) % TAIL_MAX];
}

const char *tail_lines(struct tail *t, unsigned lines, char *out, size_t out_n)
{
    size_t n = 0;

    check(out_n > 0);
    out[0] = '\0';
    if (t == NULL)
        return out;
    drain(t);
    size_t end = t->len;
    while (end > 0 && (at(t, end - 1) == '\n' || at(t, end - 1) == ' '))
        end--;
    size_t from = end;
    for (unsigned found = 0; from > 0; from--) {
        if (at(t, from - 1) == '\n' && ++found == lines)
            break;
        if (end - from + 3 * (found + 1) >= out_n)
            break;
    }
    for (size_t i = from; i < end && n + 4 < out_n; i++) {
        char c = at(t, i);
        if (c == '\n') {
            memcpy(out + n, " | ", 3);
            n += 3;
        } else {
            out[n++] = c >= ' ' && c < 0x7f ? c : '?';
        }
    }
    out[n] = '\0';
    return out;
}
