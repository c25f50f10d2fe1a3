#include "datanames.h"

#include <string.h>

#include "buf.h"

uint32_t datanames_bit(const char *list, const char *name)
{
    size_t n = strlen(name);
    unsigned i = 0;

    for (const char *p = list; p != NULL && *p != '\0' && i < 32; i++) {
        size_t length = strcspn(p, ",");

        if (length == n && memcmp(p, name, n) == 0)
            return UINT32_C(1) << i;
        p += length + (p[length] == ',');
    }
    return 0;
}

int datanames_pack(const char *list, uint32_t bits, struct buf *out)
{
    unsigned i = 0;
    int rc = 0;

    for (const char *p = list; p != NULL && *p != '\0' && i < 32 && rc == 0; i++) {
        size_t length = strcspn(p, ",");

        if (bits >> i & 1)
            rc = buf_add(out, p, length);
        if (rc == 0 && bits >> i & 1)
            rc = buf_add(out, "", 1);
        p += length + (p[length] == ',');
    }
    return rc;
}
