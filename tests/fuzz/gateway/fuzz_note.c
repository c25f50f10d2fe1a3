/* Any bytes as a note; what is taken comes out the same when it is written again. */
#include <stdint.h>
#include <string.h>

#include "err.h"
#include "launchmsg.h"
#include "note.h"
#include "noteitem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    autobuf struct buf out = { 0 };
    struct note first, again;
    struct noteitem i;

    if (note_decode((struct view){ data, n }, &first, NULL) < 0)
        return 0;
    for (struct view rest = first.seats; rest.n > 0;)
        check(noteitem_next(&rest, &i, NULL) == 1);
    buf_init(&out, LAUNCH_NOTE_MAX + 8192);
    if (note_encode(&first, &out, NULL) < 0)
        return 0; /* it only just fitted */
    check(note_decode(buf_view(&out), &again, NULL) == 0);
    check(again.seats.n == first.seats.n && strcmp(again.id, first.id) == 0);
    return 0;
}
