/* launcher_setup - the launcher's configuration, made of its options. */
#ifndef HC_LAUNCHER_SETUP_H
#define HC_LAUNCHER_SETUP_H

#include "cleanup.h"

struct err;
struct launcher_config;
struct launcher_options;
struct sandbox_host;

/* Opens the gateway's program; the descriptors are those that the options name. Strings
 * are borrowed from o. On failure ret holds nothing. */
int launcher_setup(const struct launcher_options *o, struct launcher_config *ret,
                   struct err *e) MUST_CHECK;
/* What sessions get of the host's files, and what they may have of it together, from the configuration
 * to the host: tried out, and an error names the option. Changes c where the host cannot and need not. */
int launcher_setup_host(struct launcher_config *c, struct sandbox_host *host,
                        struct err *e) MUST_CHECK;
/* Closes what gateways get, except for their private directory, which stays. */
void launcher_setup_close(struct launcher_config *c);

#endif
