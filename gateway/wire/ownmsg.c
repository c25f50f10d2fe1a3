#include "ownmsg.h"

#include <string.h>

#include "err.h"
#include "jmsg.h"
#include "jsonwrite.h"
#include "loop.h"
#include "random.h"
#include "timestamp.h"

void ownmsg_header(struct buf *out, const char *type, const char *session, char ret_id[OWNMSG_ID])
{
    ownmsg_header_to(out, type, session, "", ret_id);
}

void ownmsg_header_to(struct buf *out, const char *type, const char *session, const char *subshell,
                      char ret_id[OWNMSG_ID])
{
    char id[OWNMSG_ID], date[TIMESTAMP_TEXT];

    random_text(id, OWNMSG_ID - 1);
    timestamp_format(clock_realtime_us(), date);
    struct jmsg_own own = {
        .msg_id = view_cstr(id),
        .msg_type = view_cstr(type),
        .session = view_cstr(session),
        .username = VIEW_STR(OWNMSG_USER),
        .date = view_cstr(date),
        .subshell_id = view_cstr(subshell),
    };
    /* The texts are ours and the buffer is large: only memory can fail. */
    check(jmsg_header_write(&own, out, NULL) == 0);
    if (ret_id != NULL)
        memcpy(ret_id, id, sizeof id);
}

static void text(struct jsonwrite *w, const char *key, const char *value)
{
    jsonwrite_key(w, key);
    jsonwrite_str(w, value);
}

static void finish(struct jsonwrite *w)
{
    jsonwrite_end(w);
    check(jsonwrite_finish(w, NULL) == 0);
}

void ownmsg_status(struct buf *out, const char *execution_state)
{
    struct jsonwrite w = jsonwrite_to(out);

    jsonwrite_object(&w);
    text(&w, "execution_state", execution_state);
    finish(&w);
}

void ownmsg_stream(struct buf *out, const char *name, const char *words)
{
    struct jsonwrite w = jsonwrite_to(out);

    jsonwrite_object(&w);
    text(&w, "name", name);
    text(&w, "text", words);
    finish(&w);
}

void ownmsg_error(struct buf *out, int reply, const char *ename, const char *evalue,
                  const char *line)
{
    struct jsonwrite w = jsonwrite_to(out);

    jsonwrite_object(&w);
    if (reply)
        text(&w, "status", "error");
    text(&w, "ename", ename);
    text(&w, "evalue", evalue);
    jsonwrite_key(&w, "traceback");
    jsonwrite_array(&w);
    if (line != NULL)
        jsonwrite_str(&w, line);
    jsonwrite_end(&w);
    finish(&w);
}

void ownmsg_shutdown(struct buf *out, int restart)
{
    struct jsonwrite w = jsonwrite_to(out);

    jsonwrite_object(&w);
    jsonwrite_key(&w, "restart");
    jsonwrite_bool(&w, restart);
    finish(&w);
}
