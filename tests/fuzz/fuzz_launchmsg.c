/* Any packet, as a request, an answer or an event of each protocol. What is understood is written again to the
 * byte. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "err.h"
#include "initmsg.h"
#include "keepermsg.h"
#include "launchmsg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The struct has the size of its own verb and no more: the sanitizer sees a field that lies beyond. */
static void decode(const struct msg_spec *spec, const struct msg_head *head, struct view packet)
{
    autofree void *body = NULL;
    struct buf again;

    if (spec == NULL)
        return;
    body = malloc(spec->size);
    check(body != NULL);
    if (msg_decode(spec, head, packet, body, NULL) < 0)
        return;
    buf_init(&again, MSG_MAX);
    check(msg_encode(spec, head->request, head->error, body, head->fds, &again, NULL) == 0);
    check(buf_len(&again) == packet.n && memcmp(buf_view(&again).p, packet.p, packet.n) == 0);
    buf_free(&again);
    if (spec == launch_request_spec(LAUNCH_START_KERNEL))
        (void)!msg_strings_count(((struct launch_start *)body)->argv, LAUNCH_STRINGS_MAX, NULL);
    if (spec == keeper_request_spec(KEEPER_ATTACH))
        (void)!msg_strings_count(((struct keeper_attach *)body)->argv, KEEPER_STRINGS_MAX, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct view packet = { data, n };
    struct msg_head head;

    if (n < sizeof head)
        return 0;
    memcpy(&head, data, sizeof head);
    if (msg_head_decode(packet, head.fds, &head, NULL) < 0)
        return 0;
    decode(launch_request_spec(head.verb), &head, packet);
    decode(launch_answer_spec(head.verb), &head, packet);
    decode(launch_event_spec(head.verb), &head, packet);
    decode(init_request_spec(head.verb), &head, packet);
    decode(init_answer_spec(head.verb), &head, packet);
    decode(init_event_spec(head.verb), &head, packet);
    decode(keeper_request_spec(head.verb), &head, packet);
    decode(keeper_answer_spec(head.verb), &head, packet);
    return 0;
}
