/*
 * zconsole - a small `jupyter console` on czmq.
 *
 *   zconsole attach CONNECTION_FILE   runs the lines of stdin in a kernel that runs already
 *   zconsole gateway [--...-fd N]     stands in for the gateway under holdcell-launcher: runs the
 *                                     script in the settings (script.h)
 *
 * Output is one line per event, for tests.
 */
#include <czmq.h>
#include <jansson.h>

#include "err.h"
#include "kernelconn.h"
#include "script.h"
#include "settings.h"

static int attach(const char *path, struct err *e)
{
    json_error_t je;
    json_t *cf = json_load_file(path, 0, &je);
    const char *transport, *ip, *key;
    int ports[4];
    char ends[4][512];

    if (cf == NULL)
        return err_set(e, EINVAL, "%s: %s", path, je.text);
    if (json_unpack_ex(cf, &je, 0, "{s:s, s:s, s:s, s:i, s:i, s:i, s:i}", "transport", &transport,
                       "ip", &ip, "key", &key, "shell_port", &ports[0], "control_port", &ports[1],
                       "stdin_port", &ports[2], "iopub_port", &ports[3]) < 0) {
        json_decref(cf);
        return err_set(e, EINVAL, "%s: %s", path, je.text);
    }
    for (int i = 0; i < 4; i++)
        snprintf(ends[i], sizeof ends[i], "%s://%s%c%d", transport, ip,
                 strcmp(transport, "tcp") == 0 ? ':' : '-', ports[i]);
    struct kernelconn_ends to = { ends[0], ends[1], ends[2], ends[3], key };
    struct kernelconn *k = kernelconn_new(&to, e);
    json_decref(cf);
    if (k == NULL)
        return -1;

    int rc = kernelconn_wait_ready(k, 30000, e);
    char line[65536];
    while (rc == 0 && fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        rc = kernelconn_run(k, line, NULL, 60000, e);
    }
    kernelconn_free(k);
    return rc;
}

int main(int argc, char **argv)
{
    struct err e = { 0 };
    int rc;

    setvbuf(stdout, NULL, _IOLBF, 0);
    zsys_handler_set(NULL); /* czmq must not take SIGINT and SIGTERM */
    if (argc == 3 && strcmp(argv[1], "attach") == 0) {
        rc = attach(argv[2], &e);
    } else if (argc >= 2 && strcmp(argv[1], "gateway") == 0) {
        rc = script_run(GATEWAY_LAUNCHER_FD, GATEWAY_SETTINGS_FD, GATEWAY_READY_FD, &e);
    } else {
        fprintf(stderr, "usage: zconsole attach FILE | zconsole gateway\n");
        return 2;
    }
    if (rc < 0)
        printf("failed: %s\n", e.msg);
    return rc < 0;
}
