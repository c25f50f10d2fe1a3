/*
 * settings - what `holdcell serve` tells its gateway: key=value strings, each
 * ended by NUL, in one blob. It travels in a memfd (settingspage.h), so that no secret
 * ever stands in an argv or an environment. The content of some files is a setting
 * (cli/livefiles.h): those change while the gateway runs, all others never do.
 *
 * Keys (absent means off, none or the gateway's own default):
 *   listen                  ADDRESS:PORT as it was bound (the port is never 0), or unix:PATH; comma list
 *   base-url                begins and ends with '/', percent-encoding as given
 *   token                   the token of principal "default"
 *   principals              text of the file of --principals
 *   profiles                text of the file of --profiles; read in the trial alone
 *   profile-table           what came out of it (sessionprofile.h)
 *   max-memory-mb ...       numbers: most that a request may ask for, where options set them
 *   no-auth                 1; without it there is one of the two above
 *   allow-hosts             comma list
 *   trusted-proxy           a peer_list (gateway/http/peer.h)
 *   tls-cert tls-key tls-client-ca   PEM texts (files)
 *   kernel-path             ':'-list of data directories in the launcher's order (launch_start.spec_dir);
 *                           the runtime's share/jupyter is the last
 *   runtime                 the runtime's directory, same path inside a sandbox
 *   allowed-kernels         comma list
 *   default-kernel force-kernel
 *   no-list-kernels         1
 *   identity-header         name of the field by which trusted proxies name the user
 *   identity-unknown        refuse | create
 *   max-kernels             number
 *   memory-mb cpu-millis pids disk-mb   numbers: limits of a session, where options set them
 *   env-allow               comma list of names a request may set
 *   env.NAME                value of a variable of the server's environment that kernels get
 *   cull-idle-timeout-ms cull-interval-ms        numbers
 *   cull-connected cull-busy                     1
 *   seed-notebook           the notebook's text (of a file); seed-timeout-ms: a number
 *   prespawn                number of kernels
 *   kernel-info-timeout-ms ws-ping-interval-ms   numbers
 *   allow-origin allow-credentials allow-headers allow-methods expose-headers
 *   cors-max-age            sent as given
 *   log-format log-level    names of logline.h
 *   audit                   1: the launcher has an audit file to open
 *   audit-required          1: what cannot be written there is refused
 *   metrics-open            1: /metrics asks for no token
 *   access-log              debug | info | auto | off
 *   on-exit                 stop | keep
 *   home                    auto | disk | tmpfs
 *   data                    comma list: names of the operator's directories
 *   workspace-mb            number: most that a principal's workspace may have
 */
#ifndef HC_SETTINGS_H
#define HC_SETTINGS_H

#include <stdint.h>

#include "buf.h"

struct err;

enum {
    SETTINGS_MAX = 9 * 1024 * 1024, /* bytes of the whole blob: one large file and the rest */
    SETTINGS_COUNT_MAX = 1024,
    SETTINGS_KEY_MAX = 128,
};

enum { LISTEN_MORE_MAX = 3 /* listening sockets beside the first */ };

/* The descriptors a gateway starts with; `holdcell gateway` names them by
 * --launcher-fd and so on. */
enum gateway_fd {
    GATEWAY_LAUNCHER_FD = 3, /* SEQPACKET to the launcher (launchmsg.h) */
    GATEWAY_LISTEN_FD,       /* listening socket; shared with the gateways before and after */
    GATEWAY_SETTINGS_FD,     /* memfd with the page, open for reading, read with pread */
    GATEWAY_READY_FD,        /* the gateway writes one byte when it accepts, then closes it */
    GATEWAY_DIR_FD,          /* private directory (0700, owned by the gateway) for its sockets and
                              * spool; its path need not be reachable, use /proc/self/fd/N/NAME */
    GATEWAY_MORE_LISTEN_FD,  /* and the places behind it: further listening sockets, or /dev/null */
    GATEWAY_FDS_END = GATEWAY_MORE_LISTEN_FD + LISTEN_MORE_MAX,
};

/* Appends one setting. -EINVAL names a key that is empty, too long, or holds
 * anything but letters, digits, '-', '_' and '.'; -EMSGSIZE when the blob is full. */
int settings_add(struct buf *out, const char *key, const char *value, struct err *e) MUST_CHECK;
int settings_add_number(struct buf *out, const char *key, uint64_t value, struct err *e) MUST_CHECK;

/* Checks a received blob once: every string is key=value with a valid key, no key
 * comes twice. The lookups below expect a blob that passed; what they return is
 * borrowed from it. */
int settings_check(struct view blob, struct err *e) MUST_CHECK;

const char *settings_text(struct view blob, const char *key, const char *fallback);
int settings_flag(struct view blob, const char *key); /* 1 when the value is "1" */
/* -HC_EPARSE when the value is no decimal number of 64 bit. */
int settings_number(struct view blob, const char *key, uint64_t fallback, uint64_t *ret,
                    struct err *e) MUST_CHECK;

/* Walks over the settings whose key begins with prefix ("env."): returns
 * "rest-of-key=value" and moves *cursor (0 at first), or NULL at the end. */
const char *settings_next(struct view blob, const char *prefix, size_t *cursor);

#endif
