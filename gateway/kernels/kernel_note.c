/* The note that the launcher keeps for the next gateway: what a kernel is, and what
 * its clients have there. Written before a run goes to the kernel, and a while after
 * whatever else changes it; never more than a few on their way. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "err.h"
#include "kernel_own.h"
#include "link.h"
#include "log.h"
#include "loop.h"
#include "note.h"
#include "noteseats.h"
#include "recipe.h"
#include "seat.h"
#include "tail.h"

enum {
    NOTES_OPEN_MAX = 2, /* without the launcher's answer */
    LATER_MS = 50,      /* what is over may be noted so late */
    SHORT_US = 500,     /* a note that took longer is followed by a pause, ... */
    PAUSE = 20,         /* ... so that the loop spends no more than this part on notes */
};

static unsigned note_fds(const struct kernel *k, int seats_fd, int fds[NOTE_FDS], unsigned *bits)
{
    const struct endpoints *ep = k->link != NULL ? link_endpoints(k->link) : &k->endpoints;
    int all[NOTE_FDS] = {
        [NOTE_RECIPE] = k->recipe_fd,
        [NOTE_INIT] = k->session->init_fd,
        [NOTE_SESSION_DIR] = k->session->dir_fd,
        [NOTE_TAIL] = tail_fd(k->tail),
        [NOTE_RUN_DIR] = k->run_dir_fd,
        [NOTE_SEATS] = seats_fd,
    };
    unsigned count = 0;

    memcpy(&all[NOTE_SOCKET], ep->fds, sizeof ep->fds);
    *bits = 0;
    for (unsigned i = 0; i < NOTE_FDS; i++) {
        if (all[i] < 0)
            continue;
        fds[count++] = all[i];
        *bits |= 1u << i;
    }
    return count;
}

/* ---- the whole ---- */

/* What has no room beside the rest goes as a file. */
static int put_seats(struct kernel *k, struct buf *seats, int *seats_fd, struct err *e)
{
    int rc = seats_put(k, seats);

    if (rc < 0)
        return err_set(e, -rc, "no room for its seats");
    if (buf_len(seats) <= LAUNCH_NOTE_MAX - NOTE_TEXT_MAX)
        return 0;
    rc = noteseats_memfd(buf_view(seats), seats_fd, e);
    buf_truncate(seats, 0);
    return rc;
}

static int write_note(struct kernel *k, struct err *e)
{
    const struct endpoints *ep = k->link != NULL ? link_endpoints(k->link) : &k->endpoints;
    struct note n = {
        .spec_dir = k->recipe.spec_dir,
        .sockets_fd = k->recipe.sockets_fd,
        .interrupt_by_message = k->recipe.interrupt_by_message,
        .generation = k->generation,
        .cull_ms = k->recipe.cull_ms,
        .last_us = k->activity.last_us,
        .last_ms = k->activity.last_ms,
        .busy = kernel_works(k),
        .seeding = k->seeding != NULL,
        .ending = k->goal == KERNEL_DELETE,
        .times = k->session->times,
        .born_ms = k->session->born_ms,
        .numbered = queries_next_number(k->queries) - 1,
        .workspace_bytes = k->session->principal.workspace_bytes,
        .overdue = k->overdue,
    };
    autobuf struct buf out = { 0 }, seats = { 0 };
    autoclose int seats_fd = -1;
    int fds[NOTE_FDS];

    snprintf(n.principal, sizeof n.principal, "%s", k->session->principal.name);
    memcpy(n.id, k->id, sizeof n.id);
    snprintf(n.spec_name, sizeof n.spec_name, "%s", k->recipe.spec_name);
    memcpy(n.key, k->key, sizeof n.key);
    memcpy(n.base, ep->base, sizeof n.base);
    memcpy(n.kept, k->kept, sizeof n.kept);
    snprintf(n.session, sizeof n.session, "%s", k->sid);
    if (k->recipe_fd < 0) {
        int rc = recipe_memfd(&k->recipe, &k->recipe_fd, e);
        if (rc < 0)
            return rc;
    }
    buf_init(&seats, NOTESEATS_MAX);
    int rc = put_seats(k, &seats, &seats_fd, e);
    if (rc < 0)
        return rc;
    unsigned count = note_fds(k, seats_fd, fds, &n.fds);
    n.seats = buf_view(&seats);
    buf_init(&out, LAUNCH_NOTE_MAX);
    rc = note_encode(&n, &out, e);
    return rc < 0 ? rc : session_note(k->session, buf_view(&out), fds, count, e);
}

/* Processor time of the loop: what others on the host do is no reason for a pause. */
static uint64_t worked_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* A kernel that cannot be noted runs all the same; it would not outlive this gateway. */
void kernel_note(struct kernel *k)
{
    uint64_t began_us = worked_us();
    struct err e = { 0 };

    k->notes++;
    k->note_stale = 0;
    k->noted_ms = k->activity.last_ms;
    k->noted_busy = kernel_works(k);
    if (k->session->sandbox == 0)
        return;
    if (write_note(k, &e) < 0)
        log_warn("note_failed", "kernel=%s error=\"%s\"", k->id, e.msg);
    else
        k->notes_open++;
    uint64_t took_us = worked_us() - began_us;
    k->note_after_us = took_us < SHORT_US ? 0 : clock_monotonic_us() + took_us * PAUSE;
}

static void on_later(void *arg)
{
    struct kernel *k = arg;

    if (k->note_stale && (k->notes_open > 0 || clock_monotonic_us() < k->note_after_us))
        return; /* the next time */
    k->note_timer = loop_timer_close(k->note_timer);
    if (k->note_stale && k->phase < KERNEL_STOPPING)
        kernel_note(k);
    if (k->note_awaited && k->notes_open == 0) { /* it failed, and nobody answers */
        k->note_awaited = 0;
        seats_release(k);
    }
}

static void note_within(struct kernel *k, uint64_t ms)
{
    k->note_stale = 1;
    if (k->phase < KERNEL_STOPPING)
        k->note_timer = loop_timer_start(sessions_loop(k->all), ms, LATER_MS, on_later, k);
}

void kernel_note_later(struct kernel *k)
{
    k->note_stale = 1;
    if (k->note_timer == NULL)
        note_within(k, LATER_MS);
}

/* One note then tells of all that wait. */
int kernel_note_now(struct kernel *k)
{
    uint64_t now = clock_monotonic_us();

    if (k->notes_open < NOTES_OPEN_MAX && now >= k->note_after_us) {
        kernel_note(k);
        return 1;
    }
    if (now < k->note_after_us && !k->note_awaited) {
        k->note_timer = loop_timer_close(k->note_timer);
        note_within(k, (k->note_after_us - now) / 1000 + 1);
    }
    k->note_awaited = 1;
    return 0;
}

void kernel_noted(struct kernel *k)
{
    if (k->notes_open > 0)
        k->notes_open--;
    if (!k->note_awaited)
        return;
    k->note_awaited = 0;
    seats_release(k);
}

void sessions_note(struct sessions *s)
{
    for (struct kernel *k = sessions_first_kernel(s); k != NULL; k = sessions_next_kernel(k)) {
        if (k->phase < KERNEL_STOPPING)
            kernel_note(k);
    }
}
