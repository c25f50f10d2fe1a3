#include "httphead.h"

#include "httpchars.h"

const uint8_t http_token_chars[256] = {
    ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1, ['!'] = 1, ['#'] = 1, ['$'] = 1,
    ['%'] = 1,         ['&'] = 1,         ['\''] = 1,        ['*'] = 1, ['+'] = 1, ['-'] = 1,
    ['.'] = 1,         ['^'] = 1,         ['_'] = 1,         ['`'] = 1, ['|'] = 1, ['~'] = 1,
};

const struct http_field *http_field(const struct http_head *head, const char *name)
{
    for (size_t i = 0; i < head->field_count; i++)
        if (view_equals_nocase(head->fields[i].name, name))
            return &head->fields[i];
    return NULL;
}

size_t http_field_count(const struct http_head *head, const char *name)
{
    size_t count = 0;

    for (size_t i = 0; i < head->field_count; i++)
        count += view_equals_nocase(head->fields[i].name, name) ? 1 : 0;
    return count;
}

struct view http_value(const struct http_head *head, const char *name)
{
    const struct http_field *field = http_field(head, name);

    return field != NULL ? field->value : (struct view){ (const uint8_t *)"", 0 };
}

/* The end of the element that begins at `at`: a comma outside quotes, or the end. */
static size_t element_end(struct view v, size_t at)
{
    int quoted = 0;

    for (; at < v.n; at++) {
        if (quoted && v.p[at] == '\\' && at + 1 < v.n)
            at++;
        else if (v.p[at] == '"')
            quoted = !quoted;
        else if (v.p[at] == ',' && !quoted)
            break;
    }
    return at;
}

static struct view trim(struct view v)
{
    while (v.n > 0 && http_is_blank(v.p[0])) {
        v.p++;
        v.n--;
    }
    while (v.n > 0 && http_is_blank(v.p[v.n - 1]))
        v.n--;
    return v;
}

int http_list_next(const struct http_head *head, const char *name, struct http_list *it,
                   struct view *element)
{
    for (; it->field < head->field_count; it->field++, it->at = 0) {
        struct view v = head->fields[it->field].value;

        if (!view_equals_nocase(head->fields[it->field].name, name))
            continue;
        while (it->at < v.n) {
            size_t from = it->at, end = element_end(v, from);
            struct view found = trim((struct view){ v.p + from, end - from });

            it->at = end + 1;
            if (found.n > 0) {
                *element = found;
                return 1;
            }
        }
    }
    return 0;
}

int http_list_has(const struct http_head *head, const char *name, const char *element)
{
    struct http_list it = { 0 };
    struct view found;

    while (http_list_next(head, name, &it, &found))
        if (view_equals_nocase(found, element))
            return 1;
    return 0;
}

int http_is_token(struct view v)
{
    for (size_t i = 0; i < v.n; i++)
        if (!http_token_chars[v.p[i]])
            return 0;
    return v.n > 0;
}

static const struct {
    int status;
    const char *reason;
} reasons[] = {
    { 100, "Continue" },
    { 101, "Switching Protocols" },
    { 200, "OK" },
    { 201, "Created" },
    { 202, "Accepted" },
    { 204, "No Content" },
    { 206, "Partial Content" },
    { 302, "Found" },
    { 304, "Not Modified" },
    { 400, "Bad Request" },
    { 401, "Unauthorized" },
    { 403, "Forbidden" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 406, "Not Acceptable" },
    { 408, "Request Timeout" },
    { 409, "Conflict" },
    { 411, "Length Required" },
    { 412, "Precondition Failed" },
    { 413, "Content Too Large" },
    { 414, "URI Too Long" },
    { 415, "Unsupported Media Type" },
    { 416, "Range Not Satisfiable" },
    { 417, "Expectation Failed" },
    { 422, "Unprocessable Content" },
    { 426, "Upgrade Required" },
    { 428, "Precondition Required" },
    { 429, "Too Many Requests" },
    { 431, "Request Header Fields Too Large" },
    { 500, "Internal Server Error" },
    { 501, "Not Implemented" },
    { 502, "Bad Gateway" },
    { 503, "Service Unavailable" },
    { 504, "Gateway Timeout" },
    { 505, "HTTP Version Not Supported" },
    { 507, "Insufficient Storage" },
};

const char *http_reason(int status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Unknown";
}
