/* What the server sends: frame headers and close payloads of wsframe.h. */
#include <endian.h>
#include <string.h>

#include "err.h"
#include "utf8.h"
#include "wsframe.h"

size_t ws_header_encode(enum ws_opcode opcode, int fin, uint64_t len, uint8_t out[WS_HEADER_MAX])
{
    check(opcode < WS_CLOSE || (fin && len <= WS_CONTROL_MAX));
    check(len <= INT64_MAX);
    out[0] = (uint8_t)((fin ? 0x80 : 0) | opcode);
    if (len < 126) {
        out[1] = (uint8_t)len;
        return 2;
    }
    if (len <= UINT16_MAX) {
        uint16_t wide = htobe16((uint16_t)len);

        out[1] = 126;
        memcpy(out + 2, &wide, sizeof wide);
        return 4;
    }
    uint64_t wide = htobe64(len);

    out[1] = 127;
    memcpy(out + 2, &wide, sizeof wide);
    return 10;
}

/* RFC 6455 7.4 and the IANA registry (1012 to 1014); 3000 to 4999 are free for use. */
static int code_may_be_sent(int code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

int ws_close_parse(struct view payload, struct ws_close *close, int *answer, struct err *e)
{
    *answer = WS_PROTOCOL_ERROR;
    if (payload.n == 0) {
        *close = (struct ws_close){ WS_NO_STATUS, { (const uint8_t *)"", 0 } };
        *answer = WS_NO_STATUS;
        return 0;
    }
    if (payload.n == 1)
        return err_set(e, HC_EPARSE, "a close frame of one byte");

    int code = payload.p[0] << 8 | payload.p[1];
    struct view reason = { payload.p + 2, payload.n - 2 };

    if (!code_may_be_sent(code))
        return err_set(e, HC_EPARSE, "close code %d may not be sent", code);
    *answer = WS_BAD_DATA;
    if (!utf8_valid(reason))
        return err_set(e, HC_EPARSE, "the reason of a close frame is not UTF-8");
    *close = (struct ws_close){ code, reason };
    *answer = code;
    return 0;
}

size_t ws_close_encode(int code, struct view reason, uint8_t out[WS_CONTROL_MAX])
{
    if (code == WS_NO_STATUS)
        return 0;
    check(code_may_be_sent(code));
    if (reason.n > WS_CONTROL_MAX - 2)
        reason.n = WS_CONTROL_MAX - 2;
    reason.n = utf8_valid_prefix(reason);
    out[0] = (uint8_t)(code >> 8);
    out[1] = (uint8_t)code;
    if (reason.n > 0)
        memcpy(out + 2, reason.p, reason.n);
    return reason.n + 2;
}
