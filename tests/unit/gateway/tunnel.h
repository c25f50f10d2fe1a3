/* tunnel - TLS clients for tests that speak plain: one end of a socket pair for the
 * test, a thread behind the other that carries its bytes to the server in TLS. */
#ifndef HC_TEST_TUNNEL_H
#define HC_TEST_TUNNEL_H

struct tunnels;

struct tunnels *tunnels_new(void); /* with a certificate of its own */
const char *tunnels_cert(const struct tunnels *t);
const char *tunnels_key(const struct tunnels *t);
/* Waits for the threads: both ends of each have to be closed. Returns NULL. */
struct tunnels *tunnels_free(struct tunnels *t);

/* Takes the connected socket, does the handshake, returns the plain end. */
int tunnel_open(struct tunnels *t, int server_fd);

#endif
