/*
 * auth - see auth.h. Tokens are compared as SHA-256 digests, in a time that
 * depends on neither their content nor their length.
 */
#include "auth.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>
#include <time.h>

#include "arrival.h"
#include "buf.h"
#include "err.h"
#include "httphead.h"
#include "httpurl.h"
#include "log.h"

enum { TOKEN_MAX = 8192 }; /* longer than a request line or field can be */

struct auth {
    int open;
    struct principals *principals;    /* owned */
    char *allow_origin, *allow_hosts; /* owned, never NULL */
    char *identity_header;            /* owned; NULL */
    int identity_create;
};

static uint64_t now_s(void)
{
    return (uint64_t)time(NULL);
}

/* The file after the token: a name or hash that is there twice is told with its line. */
static int fill(struct principals *t, const struct auth_config *config, struct err *e)
{
    int rc = 0;

    if (config->token != NULL && config->token[0] != '\0')
        rc = principals_add_token(t, PRINCIPAL_DEFAULT, view_cstr(config->token), e);
    if (rc < 0 || config->principals == NULL)
        return rc;
    rc = principals_parse(t, view_cstr(config->principals), &config->maxima, e);
    return rc < 0 ? (err_wrap(e, "option --principals"), rc) : 0;
}

int auth_new(const struct auth_config *config, struct auth **ret, struct err *e)
{
    struct auth *a = xcalloc(1, sizeof *a);
    int rc;

    a->open = config->open;
    a->allow_origin = xstrdup(config->allow_origin != NULL ? config->allow_origin : "");
    a->allow_hosts = xstrdup(config->allow_hosts != NULL ? config->allow_hosts : "");
    a->identity_header = config->identity_header != NULL ? xstrdup(config->identity_header) : NULL;
    a->identity_create = config->identity_create;
    a->principals = principals_new();
    rc = fill(a->principals, config, e);
    if (rc < 0)
        auth_free(a);
    else
        *ret = a;
    return rc;
}

struct auth *auth_free(struct auth *a)
{
    if (a == NULL)
        return NULL;
    a->principals = principals_free(a->principals);
    free(a->allow_origin);
    free(a->allow_hosts);
    free(a->identity_header);
    free(a);
    return NULL;
}

/* ---- token ---------------------------------------------------------------- */

/* `token T` and `Bearer T`: any case, any run of blanks between. */
static struct view header_token(const struct http_head *head)
{
    static const char *const schemes[] = { "token", "bearer" };
    struct view v = http_value(head, "authorization");

    for (unsigned i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t n = strlen(schemes[i]);

        if (v.n <= n || !view_equals_nocase((struct view){ v.p, n }, schemes[i]) ||
            (v.p[n] != ' ' && v.p[n] != '\t'))
            continue;
        while (n < v.n && (v.p[n] == ' ' || v.p[n] == '\t'))
            n++;
        return (struct view){ v.p + n, v.n - n };
    }
    return (struct view){ 0 };
}

/* The one in the query is looked at first; an empty one counts as none. */
static int presented(const struct http_head *head, uint8_t digest[PRINCIPAL_DIGEST])
{
    autobuf struct buf query;
    struct view token;
    int found;

    buf_init(&query, TOKEN_MAX);
    if (http_query_get(head->query, "token", &query, NULL) < 0)
        return -1;
    token = buf_len(&query) > 0 ? buf_view(&query) : header_token(head);
    found = token.n > 0 && principals_digest(token, digest);
    if (query.data != NULL)
        OPENSSL_cleanse(query.data, query.size);
    return found;
}

/* ---- in the name of others ------------------------------------------------ */

/* A name that a proxy gives. The principal of --token is the operator's own, and one
 * whose time is over is not made anew. */
static int by_identity(const struct auth *a, const char *name, struct principal *ret)
{
    const struct principal *p = principals_by_name(a->principals, name, now_s());

    if (strcmp(name, PRINCIPAL_DEFAULT) == 0)
        return 0;
    if (p != NULL && p->role != ROLE_PROXY) {
        *ret = *p;
        return 1;
    }
    if (!a->identity_create || principals_has(a->principals, name))
        return 0;
    *ret = (struct principal){ .role = ROLE_FULL };
    memcpy(ret->name, name, strlen(name) + 1);
    return 1;
}

static int read_identity(const struct auth *a, const struct http_head *head, struct principal *ret,
                         struct err *e)
{
    struct view name = http_value(head, a->identity_header);
    char text[PRINCIPAL_NAME];

    if (http_field_count(head, a->identity_header) != 1 ||
        !principal_name_valid((const char *)name.p, name.n))
        return err_set(e, HC_EAUTH, "the proxy names no user");
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    return by_identity(a, text, ret) ? 0 : err_set(e, HC_EAUTH, "this user is not known");
}

/* token: what presented() said; p: whose it is, or NULL. A token that is nobody's is
 * never made good by the socket that it came through. */
static int in_name_of(const struct auth *a, const struct http_head *head,
                      const struct arrival *from, int token, const struct principal *p,
                      struct principal *ret, struct proof *proof, struct err *e)
{
    int by_unix = token == 0 && from->peer.family == AF_UNIX;

    if (a->identity_header == NULL || (p == NULL && !(by_unix && from->trusted)))
        return err_set(e, HC_EAUTH, "a valid token is needed");
    if (!from->trusted)
        return err_set(e, HC_EAUTH, "this proxy is not among those that --trusted-proxy names");
    proof->kind = p != NULL ? PROOF_PROXY : PROOF_UNIX;
    return read_identity(a, head, ret, e);
}

static int authenticated(const struct auth *a, const struct http_head *head,
                         const struct arrival *from, struct principal *ret, struct proof *proof,
                         struct err *e)
{
    int token = presented(head, proof->digest);
    const struct principal *p =
        token > 0 ? principals_by_token(a->principals, proof->digest, now_s()) : NULL;

    if (p == NULL || p->role == ROLE_PROXY)
        return in_name_of(a, head, from, token, p, ret, proof, e) == 0;
    proof->kind = PROOF_TOKEN;
    *ret = *p;
    return 1;
}

static int same(const struct principal *a, const struct principal *b)
{
    return strcmp(a->name, b->name) == 0 && a->role == b->role &&
           strcmp(a->observes, b->observes) == 0;
}

int auth_renew(const struct auth *a, struct principal *p, const struct proof *proof)
{
    const struct principal *by = NULL;
    struct principal now;

    if (proof->kind == PROOF_NONE)
        return 1;
    if (proof->kind != PROOF_UNIX)
        by = principals_by_token(a->principals, proof->digest, now_s());
    if (proof->kind == PROOF_TOKEN) {
        if (by == NULL)
            return 0;
        now = *by;
    } else if ((proof->kind == PROOF_PROXY && (by == NULL || by->role != ROLE_PROXY)) ||
               !by_identity(a, p->name, &now)) {
        return 0;
    }
    if (!same(&now, p))
        return 0;
    *p = now;
    return 1;
}

int auth_holds(const struct auth *a, const struct principal *p, const struct proof *proof)
{
    struct principal copy = *p;

    return auth_renew(a, &copy, proof);
}

int auth_several(const struct auth *a)
{
    return !a->open && (a->identity_create || principals_count(a->principals) > 1);
}

uint64_t auth_next_expiry(const struct auth *a)
{
    return principals_next_expiry(a->principals, now_s());
}

/* ---- Origin and Host ------------------------------------------------------ */

static int equal_nocase(struct view a, struct view b)
{
    if (a.n != b.n)
        return 0;
    for (size_t i = 0; i < a.n; i++) {
        uint8_t x = a.p[i], y = b.p[i];

        x = x >= 'A' && x <= 'Z' ? (uint8_t)(x | 0x20) : x;
        y = y >= 'A' && y <= 'Z' ? (uint8_t)(y | 0x20) : y;
        if (x != y)
            return 0;
    }
    return 1;
}

/* A page that came by http may not act on the same name's https, whoever changed it on the
 * way; where the scheme is not known, the name has to do. */
static int scheme_fits(struct view scheme, enum arrival_scheme known)
{
    return known == SCHEME_UNKNOWN ||
           view_equals_nocase(scheme, known == SCHEME_HTTPS ? "https" : "http");
}

/* A browser sends Origin with every request that another page makes it send and
 * that could change something, and with every WebSocket. */
static int origin_allowed(const struct auth *a, const struct http_head *head,
                          const struct arrival *from)
{
    struct view origin = http_value(head, "origin"), netloc;
    const uint8_t *p;

    if (origin.n == 0 || from->host.n == 0 || strcmp(a->allow_origin, "*") == 0)
        return 1;
    if (a->allow_origin[0] != '\0' && view_equals(origin, a->allow_origin))
        return 1;
    p = memmem(origin.p, origin.n, "://", 3);
    if (p == NULL) /* "null" too */
        return 0;
    netloc = (struct view){ p + 3, origin.n - (size_t)(p + 3 - origin.p) };
    return scheme_fits((struct view){ origin.p, (size_t)(p - origin.p) }, from->scheme) &&
           equal_nocase(netloc, from->host);
}

static struct view host_name(struct view host)
{
    const uint8_t *end;

    if (host.n > 0 && host.p[0] == '[')
        end = memchr(host.p, ']', host.n);
    else
        end = memchr(host.p, ':', host.n);
    if (end == NULL)
        return host;
    return (struct view){ host.p, (size_t)(end - host.p) + (host.p[0] == '[') };
}

static int ends_with_nocase(struct view v, const char *end)
{
    size_t n = strlen(end);

    return v.n >= n && view_equals_nocase((struct view){ v.p + v.n - n, n }, end);
}

/* 127.0.0.0/8 as four decimal numbers; other spellings are not needed by anybody. */
static int is_loopback_v4(struct view v)
{
    unsigned parts = 0, digits = 0, value = 0, first = 0;

    for (size_t i = 0; i <= v.n; i++) {
        if (i == v.n || v.p[i] == '.') {
            if (digits == 0 || digits > 3 || value > 255)
                return 0;
            if (parts++ == 0)
                first = value;
            digits = value = 0;
        } else if (v.p[i] >= '0' && v.p[i] <= '9') {
            value = value * 10 + (v.p[i] - '0');
            digits++;
        } else {
            return 0;
        }
    }
    return parts == 4 && first == 127;
}

static int in_list(const char *list, struct view name)
{
    while (*list != '\0') {
        size_t n = strcspn(list, ","), skip = strspn(list, " ");

        if (skip <= n) {
            struct view item = { (const uint8_t *)list + skip, n - skip };

            while (item.n > 0 && item.p[item.n - 1] == ' ')
                item.n--;
            if (item.n > 0 && equal_nocase(item, name))
                return 1;
        }
        list += n + (list[n] == ',');
    }
    return 0;
}

/* DNS rebinding: a page at a name that its owner points to 127.0.0.1 has our
 * address as its own origin, but not a name that is ours. A proxy in front of a Unix
 * socket is reached that way too. */
static int host_allowed(const struct auth *a, const struct arrival *from)
{
    struct view name = host_name(from->host);

    if (!from->local || from->host.n == 0)
        return 1;
    if (view_equals_nocase(name, "localhost") || ends_with_nocase(name, ".localhost") ||
        view_equals(name, "[::1]") || is_loopback_v4(name))
        return 1;
    return in_list(a->allow_hosts, name);
}

/* What pages are kept out by: whoever runs one finds here why. */
static void log_refused(const char *event, const struct http_head *head, const struct arrival *from)
{
    static struct log_limit limit;
    struct view origin = http_value(head, "origin");
    char text[200], host[200];

    if (log_allowed(&limit, 20))
        log_info(event, "origin=%s host=%s", log_escape(origin.p, origin.n, text, sizeof text),
                 log_escape(from->host.p, from->host.n, host, sizeof host));
}

static int check_origin(const struct auth *a, const struct http_head *head,
                        const struct arrival *from, int websocket, struct err *e)
{
    if (origin_allowed(a, head, from))
        return 0;
    log_refused("origin_refused", head, from);
    /* 404 is what Jupyter's servers answer; the page that asked is not let read why. */
    err_set(e, EPERM, "%sthis Origin is not allowed (--allow-origin)",
            websocket ? "" : "Not Found: ");
    return websocket ? 403 : 404;
}

int auth_check(const struct auth *a, const struct http_head *head, const struct arrival *from,
               int websocket, int open, struct principal *ret, struct proof *proof, struct err *e)
{
    *ret = (struct principal){ .name = PRINCIPAL_DEFAULT, .profiles_all = 1 };
    *proof = (struct proof){ .kind = PROOF_NONE };
    if (a->open && !host_allowed(a, from)) {
        log_refused("host_refused", head, from);
        err_set(e, EPERM, "this name of the server is not allowed (Host, --allow-hosts)");
        return 403;
    }
    if (a->open)
        return check_origin(a, head, from, websocket, e);
    if (authenticated(a, head, from, ret, proof, e)) {
        /* A browser sends the proxy's cookie with what any page makes it send, so the token
         * that the proxy adds proves nothing of the page. */
        return proof->kind == PROOF_TOKEN ? 0 : check_origin(a, head, from, websocket, e);
    }
    *ret = (struct principal){ .role = ROLE_NOBODY };
    *proof = (struct proof){ .kind = PROOF_NONE };
    return open ? 0 : 401;
}
