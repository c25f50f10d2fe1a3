#include "outbox.h"

#include <errno.h>
#include <string.h>

#include "err.h"
#include "initmsg.h"
#include "packet.h"

void outbox_init(struct outbox *o)
{
    buf_init(&o->bytes, MSG_MAX);
    o->fd = -1;
}

int outbox_full(const struct outbox *o)
{
    return buf_len(&o->bytes) > 0;
}

void outbox_clear(struct outbox *o)
{
    buf_clear(&o->bytes);
    closep(&o->fd);
}

int outbox_put(struct outbox *o, const struct msg_spec *spec, uint64_t request, int code,
               const void *body)
{
    check(!outbox_full(o));
    return msg_encode(spec, request, code, body, 0, &o->bytes, NULL);
}

int outbox_put_error(struct outbox *o, uint64_t request, unsigned verb, const struct err *why)
{
    struct init_error body = { verb, view_cstr(why->msg) };

    return outbox_put(o, init_answer_spec(INIT_ERROR), request, why->code, &body);
}

int outbox_pass(struct outbox *o, struct view packet, int *fd)
{
    check(!outbox_full(o));
    int r = buf_add_view(&o->bytes, packet);

    if (r == 0)
        o->fd = take_fd(fd);
    return r;
}

/* The kernel would not take the packet (too many descriptors on their way, for
 * one): the asker gets that error instead. */
static int replace_by_error(struct outbox *o, int code)
{
    struct msg_head head;
    struct err e = { 0 };

    memcpy(&head, buf_view(&o->bytes).p, sizeof head);
    outbox_clear(o);
    if (head.verb == INIT_ERROR || head.request == 0)
        return -code;
    (void)err_sys(&e, code, "send the answer");
    return outbox_put_error(o, head.request, head.verb, &e);
}

int outbox_flush(struct outbox *o, int socket_fd)
{
    while (outbox_full(o)) {
        int r = packet_send(socket_fd, buf_view(&o->bytes), o->fd);

        if (r == -EAGAIN)
            return 0;
        if (r == -EPIPE || r == -ECONNRESET)
            return -HC_EGONE;
        if (r == 0)
            outbox_clear(o);
        else if ((r = replace_by_error(o, -r)) < 0)
            return r;
    }
    return 0;
}
