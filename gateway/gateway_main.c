/* Stands in until the loop, the fronts and the sessions are put together: says
 * that it is ready, answers nothing, ends at SIGTERM or with the launcher. */
#include "gateway.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

int gateway_main(const struct gateway_args *args)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return 1;
    int signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (signal_fd < 0 || (args->ready_fd >= 0 && write(args->ready_fd, "r", 1) != 1))
        return 1;
    struct pollfd p[] = { { .fd = signal_fd, .events = POLLIN }, { .fd = args->launcher_fd } };
    while (poll(p, 2, -1) < 0)
        ;
    return p[0].revents != 0 ? 0 : 1;
}
