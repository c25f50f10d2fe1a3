/* Bodies of POST /api/kernels and /api/sessions: what passes keeps its promises. */
#include <stdint.h>
#include <string.h>

#include "err.h"
#include "hex.h"
#include "jupyter.h"
#include "nbsessions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct nbsession_body session;
    struct kernel_body kernel;
    struct err e = { 0 };

    if (kernel_body_parse(data, n, &kernel, &e) == 0) {
        check(kernel.kernel_id == NULL || uuid_valid(kernel.kernel_id, strlen(kernel.kernel_id)));
        for (char **env = kernel.env; env != NULL && *env != NULL; env++)
            check(strchr(*env, '=') != NULL && (*env)[0] != '=');
        kernel_body_free(&kernel);
    } else {
        check(e.msg[0] != '\0');
    }
    e = (struct err){ 0 };
    if (nbsession_body_parse(data, n, &session, &e) == 0)
        nbsession_body_free(&session);
    else
        check(e.msg[0] != '\0');
    return 0;
}
