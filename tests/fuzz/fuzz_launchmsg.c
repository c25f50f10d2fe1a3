/* Any packet, as a request, an answer or an event of either protocol. */
#include <stdint.h>
#include <string.h>

#include "initmsg.h"
#include "launchmsg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void decode(const struct msg_spec *spec, const struct msg_head *head, struct view packet)
{
    union {
        struct launch_start start;
        struct launch_listed listed;
        struct launch_kernel_exited exited;
        struct init_spawn spawn;
    } body;

    if (spec == NULL || spec->size > sizeof body)
        return;
    if (msg_decode(spec, head, packet, &body, NULL) == 0 &&
        spec == launch_request_spec(LAUNCH_START_KERNEL))
        (void)!msg_strings_count(body.start.argv, LAUNCH_STRINGS_MAX, NULL);
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
    return 0;
}
