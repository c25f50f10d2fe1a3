#include "tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "loop.h"

enum {
    TURN_MAX = 256 * 1024, /* bytes read per turn: a flood must not hold the loop */
    STACK_FRAMES = 100,    /* faulthandler tells no more */
    FRAME_MAX = 160,
};

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

static char printable(char c)
{
    return c >= ' ' && c < 0x7f ? c : '?';
}

/* Where the text behind the last `mark` begins; 0: there is none. */
static size_t behind_last(const struct tail *t, const char *mark)
{
    size_t n = strlen(mark);

    for (size_t from = t->len; from-- > 0;) {
        size_t i = 0;
        while (i < n && from + i < t->len && at(t, from + i) == mark[i])
            i++;
        if (i == n)
            return from + n;
    }
    return 0;
}

/* The line at *pos, cut to n, and behind it. 0: there is none. */
static int take_line(const struct tail *t, size_t *pos, char *out, size_t n)
{
    size_t len = 0;

    if (*pos >= t->len)
        return 0;
    for (; *pos < t->len && at(t, *pos) != '\n'; ++*pos) {
        if (len + 1 < n)
            out[len++] = printable(at(t, *pos));
    }
    out[len] = '\0';
    *pos += *pos < t->len;
    return 1;
}

const char *tail_stack(struct tail *t, char *out, size_t out_n)
{
    static const char frame[] = "  File ";
    char line[FRAME_MAX], inner[FRAME_MAX] = "", outer[FRAME_MAX] = "";

    check(out_n > 0);
    out[0] = '\0';
    if (t == NULL)
        return out;
    drain(t);
    size_t pos = behind_last(t, "(most recent call first):\n");
    for (unsigned i = 0; pos > 0 && i < STACK_FRAMES; i++) {
        if (!take_line(t, &pos, line, sizeof line) || strncmp(line, frame, sizeof frame - 1) != 0 ||
            strstr(line, "/IPython/core/") != NULL) /* it runs the cell */
            break;
        snprintf(i == 0 ? inner : outer, FRAME_MAX, "%s", line + sizeof frame - 1);
    }
    snprintf(out, out_n, "%s%s%s", outer, outer[0] != '\0' ? ", in " : "", inner);
    return out;
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
            out[n++] = printable(c);
        }
    }
    out[n] = '\0';
    return out;
}
