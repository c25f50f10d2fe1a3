#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "err.h"

static int key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

/* Length of a valid key that ends at '=' or NUL; 0 when it is none. */
static size_t key_length(const char *s)
{
    size_t n = 0;

    while (n <= SETTINGS_KEY_MAX && key_char(s[n]))
        n++;
    return n <= SETTINGS_KEY_MAX && (s[n] == '=' || s[n] == '\0') ? n : 0;
}

int settings_add(struct buf *out, const char *key, const char *value, struct err *e)
{
    size_t n = key_length(key);

    if (n == 0 || key[n] != '\0')
        return err_set(e, EINVAL, "'%.64s' cannot be the key of a setting", key);
    int rc = buf_reserve(out, n + strlen(value) + 2);
    if (rc == 0)
        rc = buf_add(out, key, n);
    if (rc == 0)
        rc = buf_add(out, "=", 1);
    if (rc == 0)
        rc = buf_add(out, value, strlen(value) + 1);
    return rc < 0 ? err_sys(e, -rc, "setting '%s'", key) : 0;
}

int settings_add_number(struct buf *out, const char *key, uint64_t value, struct err *e)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return settings_add(out, key, text, e);
}

/* The string at *cursor, which moves behind it; NULL at the end of the blob. */
static const char *next_string(struct view blob, size_t *cursor)
{
    if (*cursor >= blob.n)
        return NULL;
    const char *s = (const char *)blob.p + *cursor;
    *cursor += strnlen(s, blob.n - *cursor) + 1;
    return s;
}

static const char *lookup(struct view blob, const char *key, size_t n)
{
    size_t cursor = 0;

    for (const char *s; (s = next_string(blob, &cursor)) != NULL;) {
        if (strncmp(s, key, n) == 0 && s[n] == '=')
            return s + n + 1;
    }
    return NULL;
}

int settings_check(struct view blob, struct err *e)
{
    size_t cursor = 0;
    unsigned count = 0;

    if (blob.n > SETTINGS_MAX)
        return err_set(e, HC_EPARSE, "settings of %zu bytes, at most %d", blob.n, SETTINGS_MAX);
    if (blob.n > 0 && blob.p[blob.n - 1] != '\0')
        return err_set(e, HC_EPARSE, "settings do not end in NUL");
    for (const char *s; (s = next_string(blob, &cursor)) != NULL;) {
        size_t n = key_length(s);

        if (n == 0 || s[n] != '=')
            return err_set(e, HC_EPARSE, "setting %u has no valid key", count);
        if (++count > SETTINGS_COUNT_MAX)
            return err_set(e, HC_EPARSE, "more than %d settings", SETTINGS_COUNT_MAX);
        if (lookup(blob, s, n) != s + n + 1)
            return err_set(e, HC_EPARSE, "setting '%.*s' comes twice", (int)n, s);
    }
    return 0;
}

const char *settings_text(struct view blob, const char *key, const char *fallback)
{
    const char *value = lookup(blob, key, strlen(key));

    return value != NULL ? value : fallback;
}

int settings_flag(struct view blob, const char *key)
{
    return strcmp(settings_text(blob, key, ""), "1") == 0;
}

int settings_number(struct view blob, const char *key, uint64_t fallback, uint64_t *ret,
                    struct err *e)
{
    const char *text = settings_text(blob, key, NULL);
    uint64_t value = 0;
    const char *p = text;

    if (text == NULL) {
        *ret = fallback;
        return 0;
    }
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            break;
    }
    if (p == text || *p != '\0')
        return err_set(e, HC_EPARSE, "setting '%s': '%.32s' is not a number", key, text);
    *ret = value;
    return 0;
}

const char *settings_next(struct view blob, const char *prefix, size_t *cursor)
{
    size_t n = strlen(prefix);

    for (const char *s; (s = next_string(blob, cursor)) != NULL;) {
        if (strncmp(s, prefix, n) == 0)
            return s + n;
    }
    return NULL;
}
