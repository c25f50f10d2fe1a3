/* Any bytes as a note; what is taken comes out the same when it is written again. */
#include <stdint.h>
#include <string.h>

#include "err.h"
#include "launchmsg.h"
#include "note.h"
#include "noteitem.h"
#include "runclock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Whatever the times are, the ladder goes up to its end once a deadline has passed. */
static void read_clock(struct view bytes, const struct time_limits *limits)
{
    struct runclock c;

    runclock_adopt(&c, bytes.p, 1000000);
    runclock_run(&c, 1000000);
    check(runclock_check(&c, limits, 1000000) == RUNCLOCK_WAIT); /* not at once */
    if (runclock_check(&c, limits, 1001500) == RUNCLOCK_WAIT)
        return;
    check(runclock_check(&c, limits, 1001500 + RUNCLOCK_END_MS) == RUNCLOCK_END);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    autobuf struct buf out = { 0 };
    struct note first, again;
    struct noteitem i;

    if (note_decode((struct view){ data, n }, &first, NULL) < 0)
        return 0;
    for (struct view rest = first.seats; rest.n > 0;) {
        check(noteitem_next(&rest, &i, NULL) == 1);
        if (i.kind == NOTEITEM_CLOCK)
            read_clock(i.bytes, &first.times);
        else if (i.kind == NOTEITEM_SENT)
            (void)noteitem_sent(&i);
        else if (i.kind == NOTEITEM_MORE)
            check(noteitem_more(&i) <= UINT32_MAX);
    }
    buf_init(&out, LAUNCH_NOTE_MAX + 8192);
    if (note_encode(&first, &out, NULL) < 0)
        return 0; /* it only just fitted */
    check(note_decode(buf_view(&out), &again, NULL) == 0);
    check(again.seats.n == first.seats.n && strcmp(again.id, first.id) == 0);
    check(memcmp(&again.times, &first.times, sizeof first.times) == 0 &&
          again.born_ms == first.born_ms && again.overdue == first.overdue);
    return 0;
}
