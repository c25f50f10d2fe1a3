#include "health.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "jsonwrite.h"
#include "log.h"

enum {
    CHECKS_MAX = 16,
    WRITTEN = 4096, /* a block: a file without content needs no room on the disk */
};

struct check {
    const char *name;
    health_fn *fn;
    void *arg; /* borrowed */
    uint64_t every_ms, looked_ms;
    int looked, failed;
};

struct health {
    struct check checks[CHECKS_MAX];
    unsigned count;
    const char *note, *note_value; /* borrowed; NULL: none */
};

struct health *health_new(void)
{
    return xcalloc(1, sizeof(struct health));
}

struct health *health_free(struct health *h)
{
    free(h);
    return NULL;
}

void health_add(struct health *h, const char *name, uint64_t every_ms, health_fn *fn, void *arg)
{
    check(h->count < CHECKS_MAX);
    h->checks[h->count++] =
        (struct check){ .name = name, .fn = fn, .arg = arg, .every_ms = every_ms };
}

void health_note(struct health *h, const char *name, const char *value)
{
    h->note = name;
    h->note_value = value;
}

static void look(struct check *c, uint64_t now_ms)
{
    struct err e = { 0 };
    int failed = c->fn(c->arg, &e) < 0;

    if (failed && !c->failed)
        log_warn("not_ready", "check=%s error=\"%s\"", c->name, e.msg);
    else if (!failed && c->failed)
        log_info("ready_again", "check=%s", c->name);
    c->failed = failed;
    c->looked = 1;
    c->looked_ms = now_ms;
}

int health_ready(struct health *h, uint64_t now_ms)
{
    int ready = 1;

    for (unsigned i = 0; h != NULL && i < h->count; i++) {
        struct check *c = &h->checks[i];

        if (!c->looked || now_ms - c->looked_ms >= c->every_ms)
            look(c, now_ms);
        ready &= !c->failed;
    }
    return ready;
}

void health_write(const struct health *h, struct jsonwrite *w)
{
    int ready = 1;

    for (unsigned i = 0; h != NULL && i < h->count; i++)
        ready &= !h->checks[i].failed;
    jsonwrite_object(w);
    jsonwrite_key(w, "status");
    jsonwrite_str(w, ready ? "ready" : "unready");
    jsonwrite_key(w, "checks");
    jsonwrite_object(w);
    for (unsigned i = 0; h != NULL && i < h->count; i++) {
        jsonwrite_key(w, h->checks[i].name);
        jsonwrite_str(w, h->checks[i].failed ? "failed" : "ok");
    }
    jsonwrite_end(w);
    if (h != NULL && h->note != NULL) {
        jsonwrite_key(w, h->note);
        jsonwrite_str(w, h->note_value);
    }
    jsonwrite_end(w);
}

int health_directory(void *arg, struct err *e)
{
    static const char block[WRITTEN];
    const int *dir_fd = arg;
    autoclose int fd = openat(*dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(e, errno, "make a file");
    ssize_t n = write(fd, block, sizeof block);
    if (n != (ssize_t)sizeof block)
        return err_sys(e, n < 0 ? errno : ENOSPC, "write a file");
    return 0;
}
