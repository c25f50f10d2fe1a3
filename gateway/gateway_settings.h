/* gateway_settings - the settings blob (settings.h) as what the modules take. */
#ifndef HC_GATEWAY_SETTINGS_H
#define HC_GATEWAY_SETTINGS_H

#include "buf.h"
#include "front.h"
#include "logline.h"
#include "sessions.h"

struct err;

struct gateway_settings {
    struct buf page; /* owned; everything else borrows from it */
    uint64_t version;
    struct front_config front;
    struct sessions_policy policy; /* without private_dir_fd */
    const char *kernel_path, *allowed_kernels, *default_kernel;
    char **env_server; /* owned array */
    int keep_kernels;
    int audit, audit_required;
    enum logline_format log_format;
    enum logline_level log_level;
    struct profiles *profiles; /* owned; NULL: none */
    struct seed *seed;         /* owned; NULL: none */
    const char *seed_kernel;   /* the kernelspec that it is for */
    unsigned prespawn;
};

/* -EAGAIN while the supervisor writes: it tells when it is done (SIGHUP). */
int gateway_settings_read(int fd, struct gateway_settings *ret, struct err *e) MUST_CHECK;
/* For the start: half a page is being written at this moment, which takes far less than
 * this waits. */
int gateway_settings_await(int fd, struct gateway_settings *ret, struct err *e) MUST_CHECK;
/* The same from a blob that is in memory. */
int gateway_settings_parse(struct view blob, struct gateway_settings *ret,
                           struct err *e) MUST_CHECK;
/* What the parts say of each other and of the host: the seed's kernelspec is there, and so on. */
int gateway_settings_check(const struct gateway_settings *s, struct err *e) MUST_CHECK;
/* Wipes the private key once TLS has made its own of it. */
void gateway_settings_forget_key(struct gateway_settings *s);
void gateway_settings_free(struct gateway_settings *s); /* wipes the token */

#endif
