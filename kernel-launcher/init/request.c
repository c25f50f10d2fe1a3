#include "request.h"

#include "err.h"

static int check_spawn(const struct init_spawn *spawn, struct err *e)
{
    int argc = msg_strings_count(spawn->argv, REQUEST_STRINGS_MAX, e);

    if (argc == 0)
        return err_set(e, HC_EPARSE, "spawn: empty argv");
    if (argc < 0)
        return argc;
    return msg_strings_count(spawn->env, REQUEST_STRINGS_MAX, e) < 0 ? -HC_EPARSE : 0;
}

int request_decode(struct view packet, unsigned fds, struct request *ret, struct err *e)
{
    const struct msg_spec *spec;
    int r = msg_head_decode(packet, fds, &ret->head, e);

    if (r < 0)
        return r;
    spec = init_request_spec(ret->head.verb);
    if (spec == NULL)
        return err_set(e, HC_EPARSE, "verb %u is no request", ret->head.verb);
    check(spec->size <= sizeof ret->body);
    r = msg_decode(spec, &ret->head, packet, &ret->body, e);
    if (r < 0)
        return r;
    return ret->head.verb == INIT_SPAWN ? check_spawn(&ret->body.spawn, e) : 0;
}
