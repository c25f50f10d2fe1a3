/* vectors - reads the tables of tests/vectors (their README tells the format). */
#ifndef HC_TEST_VECTORS_H
#define HC_TEST_VECTORS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "err.h"

struct vector {
    const char *verdict, *name;
    struct view bytes;
};

/* Appends the bytes that the text stands for, up to `end` or '\0'; returns its end. */
static inline const char *vector_bytes(const char *s, char end, struct buf *out)
{
    while (*s != '\0' && *s != end) {
        static const char escapes[] = "r\rn\nt\t\\\\";
        const char *known;

        if (*s != '\\') {
            check(buf_add(out, s++, 1) == 0);
            continue;
        }
        s++;
        if (*s == 'x') {
            char digits[3] = { s[1], s[2], '\0' };
            uint8_t byte = (uint8_t)strtoul(digits, NULL, 16);

            check(buf_add(out, &byte, 1) == 0);
            s += 3;
        } else if (*s == '{') {
            char *text;
            unsigned long count = strtoul(s + 1, &text, 10);
            const char *tail = text;

            check(*text == '*' && count > 0);
            while (count-- > 0)
                tail = vector_bytes(text + 1, '}', out);
            check(*tail == '}');
            s = tail + 1;
        } else {
            known = strchr(escapes, *s++);
            check(known != NULL);
            check(buf_add(out, known + 1, 1) == 0);
        }
    }
    return s;
}

/* Calls run for each row of tests/vectors/<file>; returns how many there were. */
static inline unsigned vectors_each(const char *file, void (*run)(const struct vector *))
{
    autofree char *path = NULL, *line = NULL;
    size_t size = 0;
    unsigned rows = 0;

    check(asprintf(&path, "%s/tests/vectors/%s", HC_SOURCE_DIR, file) > 0);
    FILE *f = fopen(path, "r");
    check(f != NULL);
    while (getline(&line, &size, f) > 0) {
        autobuf struct buf bytes;
        char *rest = line;
        struct vector v;

        buf_init(&bytes, 1 << 20);
        if (line[0] == '#')
            continue;
        line[strcspn(line, "\n")] = '\0';
        v.verdict = strsep(&rest, "\t");
        v.name = strsep(&rest, "\t");
        check(rest != NULL);
        vector_bytes(rest, '\0', &bytes);
        v.bytes = buf_view(&bytes);
        run(&v);
        rows++;
    }
    fclose(f);
    return rows;
}

#endif
