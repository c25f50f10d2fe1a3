/* Any packet as a request to holdcell-init: what passes must keep what workers rely on. */
#include <stdint.h>
#include <string.h>

#include "err.h"
#include "request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_path(struct view path, struct view packet)
{
    check(path.n > 0 && path.n <= INIT_PATH_MAX && memchr(path.p, '\0', path.n) == NULL);
    check(path.p >= packet.p && path.p + path.n <= packet.p + packet.n);
}

static void check_strings(struct view strings, struct view packet)
{
    static char *split[REQUEST_STRINGS_MAX + 1];
    int count = msg_strings_count(strings, REQUEST_STRINGS_MAX, NULL);

    check(count >= 0);
    msg_strings_split(strings, split, (unsigned)count);
    for (int i = 0; i < count; i++)
        check((const uint8_t *)split[i] + strlen(split[i]) < packet.p + packet.n);
    check(split[count] == NULL);
}

static void check_request(const struct request *r, struct view packet)
{
    switch ((enum init_verb)r->head.verb) {
    case INIT_OPEN:
        check_path(r->body.open.path, packet);
        check(r->body.open.mode <= 0777);
        break;
    case INIT_RENAME:
        check_path(r->body.rename.from, packet);
        check_path(r->body.rename.to, packet);
        break;
    case INIT_SPAWN:
        check(r->head.fds == 3 && r->body.spawn.cwd.n <= INIT_PATH_MAX);
        check(msg_strings_count(r->body.spawn.argv, REQUEST_STRINGS_MAX, NULL) > 0);
        check_strings(r->body.spawn.argv, packet);
        check_strings(r->body.spawn.env, packet);
        break;
    case INIT_KILL:
        check(r->body.kill.signo <= 31);
        break;
    case INIT_STAT:
    case INIT_MKDIR:
    case INIT_LIST:
    case INIT_ASIDE:
    case INIT_REMOVE:
        check_path(r->body.path.path, packet); /* the first field of each */
        break;
    default:
        check(!"a verb that is no request");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct view packet = { data, n };
    struct request request;
    struct msg_head head = { 0 };

    if (n >= sizeof head)
        memcpy(&head, data, sizeof head);
    if (request_decode(packet, head.fds, &request, NULL) == 0)
        check_request(&request, packet);
    return 0;
}
