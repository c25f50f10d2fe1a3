/*
 * ownmsg - messages that the gateway makes: its own requests to kernels, and the
 * few that it tells clients in its own name (marked in their metadata).
 */
#ifndef HC_OWNMSG_H
#define HC_OWNMSG_H

#include "buf.h"

/* Everything below appends to a buf made with buf_init(b, OWNMSG_MAX). */
enum { OWNMSG_MAX = 256 * 1024, OWNMSG_ID = 33 };

#define OWNMSG_USER     "holdcell"
#define OWNMSG_METADATA "{\"holdcell\":{\"synthetic\":true}}"

/* A header with a fresh msg_id, which is also written to ret_id unless that is NULL. */
void ownmsg_header(struct buf *out, const char *type, const char *session, char ret_id[OWNMSG_ID]);
/* Likewise, for a subshell; "" is the main one. */
void ownmsg_header_to(struct buf *out, const char *type, const char *session, const char *subshell,
                      char ret_id[OWNMSG_ID]);

/* Contents. */
void ownmsg_status(struct buf *out, const char *execution_state);
void ownmsg_stream(struct buf *out, const char *name, const char *text);
/* reply: with a status, as replies have it. line: the traceback; NULL for an empty one. */
void ownmsg_error(struct buf *out, int reply, const char *ename, const char *evalue,
                  const char *line);
void ownmsg_shutdown(struct buf *out, int restart);

#endif
