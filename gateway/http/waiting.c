#include "waiting.h"

#include "httpconn.h"
#include "server.h"

void waiting_add(struct httpconn *h)
{
    h->waiting = 1;
    h->prev_waiting = NULL;
    h->next_waiting = h->server->waiting;
    if (h->next_waiting != NULL)
        h->next_waiting->prev_waiting = h;
    h->server->waiting = h;
}

void waiting_remove(struct httpconn *h)
{
    if (!h->waiting)
        return;
    h->waiting = 0;
    if (h->prev_waiting != NULL)
        h->prev_waiting->next_waiting = h->next_waiting;
    else
        h->server->waiting = h->next_waiting;
    if (h->next_waiting != NULL)
        h->next_waiting->prev_waiting = h->prev_waiting;
}

struct request *request_find(struct server *s, uint64_t token)
{
    for (struct httpconn *h = s->waiting; h != NULL; h = h->next_waiting)
        if (h->request.token == token)
            return conn_ended(h->conn) ? NULL : &h->request;
    return NULL;
}
