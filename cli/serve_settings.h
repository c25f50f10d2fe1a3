/* serve_settings - turns options into the gateway's settings (settings.h). */
#ifndef HC_SERVE_SETTINGS_H
#define HC_SERVE_SETTINGS_H

#include "settings.h"

struct serve_options;

/* What was found out beside the options; all borrowed. */
struct serve_context {
    const char *listen;
    const char *kernel_path;
    const char *runtime;
    const char *data; /* NAME,..., or NULL */
};

int serve_settings_write(const struct serve_options *o, const struct serve_context *c,
                         struct buf *out, struct err *e) MUST_CHECK;

#endif
