#include "versions.h"

#include <jansson.h>
#include <openssl/crypto.h>
#include <uv.h>
#include <zmq.h>

/* What is linked at run time may differ from the headers of the build: ask the
 * libraries themselves. */
void versions_print(FILE *to)
{
    int major, minor, patch;

    zmq_version(&major, &minor, &patch);
    fprintf(to, "libuv %s\n", uv_version_string());
    fprintf(to, "libzmq %d.%d.%d\n", major, minor, patch);
    fprintf(to, "jansson %s\n", jansson_version_str());
    fprintf(to, "%s\n", OpenSSL_version(OPENSSL_VERSION));
}
