/* The file of --profiles, and the table that comes out of it: an error says where, and what is taken comes back
 * from the table as it was. The table's reader sees the bytes as they are, too. */
#include <stdint.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "profilefile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_table(struct view text)
{
    autofree struct profiles *t = NULL;
    autobuf struct buf again;
    struct err e = { 0 };

    buf_init(&again, PROFILES_TEXT);
    if (profiles_read(text, &t, &e) < 0 || t == NULL)
        return;
    check(profiles_write(t, &again, &e) == 0);
    struct view v = buf_view(&again);
    check(v.n == text.n && memcmp(v.p, text.p, v.n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct profilefile_base base = { .limits = LAUNCH_LIMITS_DEFAULT, .data = "one,two" };
    autofree struct profiles *t = NULL;
    autobuf struct buf table;
    struct err e = { 0 };

    buf_init(&table, PROFILES_TEXT);
    try_table((struct view){ data, size });
    if (profilefile_read((struct view){ data, size }, &base, &t, &e) < 0) {
        check(e.msg[0] != '\0' && strchr(e.msg, '\n') == NULL);
        return 0;
    }
    check(t->count > 0 && profiles_write(t, &table, &e) == 0);
    struct profiles *back = NULL;
    check(profiles_read(buf_view(&table), &back, &e) == 0);
    free(back);
    try_table(buf_view(&table));
    return 0;
}
