/* wsclient - a small blocking WebSocket client of the front, for its tests. */
#ifndef HC_WSCLIENT_H
#define HC_WSCLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "harness.h"

#define KERNEL  "/api/kernels/00000000-0000-4000-8000-000000000001"
#define HOST    "Host: 127.0.0.1\r\n"
#define KEY     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define UPGRADE "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" KEY
#define V1      "Sec-WebSocket-Protocol: v1.kernel.websocket.jupyter.org\r\n"

enum { TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };

struct frame {
    int opcode, fin;
    size_t n;
    uint8_t *p; /* owned; NUL-terminated */
};

void make_kernel(struct harness *h);
int handshake(struct harness *h, const char *path, const char *headers, struct reply *r);
int open_ws(struct harness *h, const char *more);
/* Builds a masked frame; returns its size. */
size_t build(uint8_t *out, int first, const void *p, size_t n);
void send_frame(int fd, int first, const void *p, size_t n);
void send_text(int fd, const char *text);
size_t execute_text(char *out, size_t size, const char *code);
void execute(int fd, const char *code);
/* Opcode 0 in *f: the connection ended. The caller frees f->p. */
void read_frame(int fd, struct frame *f);
void expect_frame(int fd, int opcode, const char *part);
/* The code of the Close that comes next among other frames: 0 = without a code,
 * -1 = the connection ended without a Close. */
int close_code(int fd);

#endif
