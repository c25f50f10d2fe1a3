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
    uint64_t launcher, listen, settings, ready, dir, restarts, more_listen, more_listen_count,
        walls_missing;
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
    { "walls-missing", "N", OPTION_NUMBER, offsetof(struct fd_options, walls_missing), 0, 64,
      "walls that this host lacks and the operator accepts" },
    FD("more-listen-fd", more_listen),
    { "more-listen-count", "N", OPTION_NUMBER, offsetof(struct fd_options, more_listen_count), 0,
      LISTEN_MORE_MAX, "listening sockets from there on" },
};

int command_gateway(int argc, char **argv)
{
    struct fd_options fds = {
        .launcher = GATEWAY_LAUNCHER_FD,
        .listen = GATEWAY_LISTEN_FD,
        .settings = GATEWAY_SETTINGS_FD,
        .ready = GATEWAY_READY_FD,
        .dir = GATEWAY_DIR_FD,
        .more_listen = GATEWAY_MORE_LISTEN_FD,
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
    for (int i = (int)fds.more_listen_count; i < LISTEN_MORE_MAX; i++)
        close((int)fds.more_listen + i); /* /dev/null */
    struct gateway_args args = {
        .launcher_fd = (int)fds.launcher,
        .listen_fds = { (int)fds.listen },
        .listen_count = 1 + (unsigned)fds.more_listen_count,
        .settings_fd = (int)fds.settings,
        .ready_fd = (int)fds.ready,
        .dir_fd = (int)fds.dir,
        .first = fds.first,
        .restarts = (unsigned)fds.restarts,
        .walls_missing = (unsigned)fds.walls_missing,
    };
    for (unsigned i = 1; i < args.listen_count; i++)
        args.listen_fds[i] = (int)fds.more_listen + (int)i - 1;
    return gateway_main(&args);
}
