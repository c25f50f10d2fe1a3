/* `holdcell gateway`: the unprivileged server. Only the launcher starts it, with
 * its descriptors in place; there is nothing to configure here. */
#include "gateway.h"

#include <stdio.h>
#include <unistd.h>

#include "command.h"
#include "err.h"
#include "options.h"
#include "settings.h"

struct fd_options {
    uint64_t launcher, listen, settings, ready, dir, restarts;
    int first;
};

#define FD(name, member)                                                          \
    {                                                                             \
        name, "FD", OPTION_NUMBER, offsetof(struct fd_options, member), 3, 65535, \
            "inherited descriptor"                                                \
    }
static const struct option_spec specs[] = {
    FD("launcher-fd", launcher),
    FD("listen-fd", listen),
    FD("settings-fd", settings),
    FD("ready-fd", ready),
    FD("dir-fd", dir),
    { "first", NULL, OPTION_FLAG, offsetof(struct fd_options, first), 0, 0, "none served before" },
    { "restarts", "N", OPTION_NUMBER, offsetof(struct fd_options, restarts), 0, UINT32_MAX,
      "gateways before this one" },
};

int command_gateway(int argc, char **argv)
{
    struct fd_options fds = {
        .launcher = GATEWAY_LAUNCHER_FD,
        .listen = GATEWAY_LISTEN_FD,
        .settings = GATEWAY_SETTINGS_FD,
        .ready = GATEWAY_READY_FD,
        .dir = GATEWAY_DIR_FD,
    };
    struct err e = { 0 };

    if (options_parse(specs, sizeof specs / sizeof specs[0], argc, argv, &fds, NULL, &e) < 0) {
        fprintf(stderr, "holdcell gateway: %s\n", e.msg);
        return EXIT_USAGE;
    }
    if (getuid() == 0 || geteuid() == 0) {
        fprintf(stderr, "holdcell gateway: is started by the launcher and never runs as root\n");
        return 1;
    }
    struct gateway_args args = {
        .launcher_fd = (int)fds.launcher,
        .listen_fd = (int)fds.listen,
        .settings_fd = (int)fds.settings,
        .ready_fd = (int)fds.ready,
        .dir_fd = (int)fds.dir,
        .first = fds.first,
        .restarts = (unsigned)fds.restarts,
    };
    return gateway_main(&args);
}
