#include "auditfetch.h"

#include "audit.h"
#include "err.h"
#include "launchclient.h"
#include "launchmsg.h"
#include "log.h"

static void on_answer(void *arg, uint64_t token, struct launch_answer *a)
{
    const struct auditfetch *f = arg;
    struct err e = { 0 };

    (void)token;
    if (a->error != 0)
        err_set(&e, a->error, "%s", a->text);
    else if (a->fd_count != 1)
        err_set(&e, HC_EPARSE, "no descriptor");
    else if (audit_take_file(take_fd(&a->fds[0]), &e) == 0)
        log_info("audit_file_open", "%s", "");
    if (e.code != 0)
        log_error("audit_file", "error=\"%s\"", e.msg);
    f->answered(f->arg);
}

int auditfetch_start(struct auditfetch *f, struct err *e)
{
    const struct launch_audit body = { 0 };

    return launchclient_ask(f->launcher, LAUNCH_AUDIT, &body, NULL, 0, on_answer, f, 0, e);
}
