#include "messagetypes.h"

#include <string.h>

#include "log.h"

static const char *const known[] = {
    "comm_close",
    "comm_info_request",
    "comm_msg",
    "comm_open",
    "complete_request",
    "connect_request",
    "create_subshell_request",
    "debug_request",
    "delete_subshell_request",
    "execute_request",
    "history_request",
    "input_reply",
    "inspect_request",
    "interrupt_request",
    "is_complete_request",
    "kernel_info_request",
    "list_subshell_request",
    "shutdown_request",
    "usage_request", /* of ipykernel, which JupyterLab asks */
};

static int is_known(const char *type, size_t n)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strlen(known[i]) == n && memcmp(known[i], type, n) == 0)
            return 1;
    }
    return 0;
}

void messagetypes_warn(const char *option, const char *types)
{
    for (const char *p = types; p != NULL && *p != '\0'; p += *p == ',') {
        size_t n = strcspn(p, ",");

        if (!is_known(p, n))
            log_warn("unknown_message_type",
                     "option=--%s type=%.*s note=\"no message of the Jupyter protocol that clients "
                     "send; a kernel may have it\"",
                     option, (int)n, p);
        p += n;
    }
}
