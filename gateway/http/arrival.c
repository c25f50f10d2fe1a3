/* arrival - see arrival.h. */
#include "arrival.h"

#include "httphead.h"

enum {
    HOPS_MAX = 32, /* of X-Forwarded-For, from the right; more proxies nobody has in a row */
    HOST_MAX = 260,
};

/* The last element: the nearest proxy appends, or sets it alone. */
static struct view last_element(const struct http_head *head, const char *name)
{
    struct http_list it = { 0 };
    struct view last = { 0 }, element;

    while (http_list_next(head, name, &it, &element))
        last = element;
    return last;
}

/* From the right, as long as it is trusted proxies that are named: the next one is whom the
 * last of them saw. What stands before that can be anybody's invention. */
static void read_client(const struct peer_list *trusted, const struct http_head *head,
                        struct peer *client)
{
    struct view hops[HOPS_MAX], element;
    struct http_list it = { 0 };
    size_t count = 0;

    while (http_list_next(head, "x-forwarded-for", &it, &element))
        hops[count++ % HOPS_MAX] = element;
    for (size_t left = count < HOPS_MAX ? count : HOPS_MAX; left > 0; left--) {
        struct peer hop;

        if (!peer_parse(hops[--count % HOPS_MAX], &hop))
            return;
        *client = hop;
        if (!peer_list_has(trusted, &hop))
            return;
    }
}

static int host_valid(struct view v)
{
    if (v.n == 0 || v.n > HOST_MAX)
        return 0;
    for (size_t i = 0; i < v.n; i++) {
        uint8_t c = v.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']'))
            return 0;
    }
    return 1;
}

static void read_forwarded(const struct arrival_by *by, const struct http_head *head,
                           struct arrival *ret)
{
    struct view host = last_element(head, "x-forwarded-host");
    struct view scheme = last_element(head, "x-forwarded-proto");

    read_client(by->trusted, head, &ret->client);
    if (host_valid(host))
        ret->host = host;
    if (view_equals_nocase(scheme, "https"))
        ret->scheme = SCHEME_HTTPS;
    else if (view_equals_nocase(scheme, "http"))
        ret->scheme = SCHEME_HTTP;
}

void arrival_read(const struct arrival_by *by, const struct http_head *head, struct arrival *ret)
{
    *ret = (struct arrival){
        .peer = *by->peer,
        .client = *by->peer,
        .scheme = by->tls ? SCHEME_HTTPS : SCHEME_UNKNOWN,
        .trusted = peer_list_has(by->trusted, by->peer),
        .local = by->local,
    };
    if (head == NULL)
        return;
    ret->host = head->host;
    if (ret->trusted)
        read_forwarded(by, head, ret);
}
