/* launcher_args - the command line of holdcell-launcher. Nothing secret in it. */
#ifndef HC_LAUNCHER_ARGS_H
#define HC_LAUNCHER_ARGS_H

struct serve_options;
struct siblings;

struct launcher_context {
    const struct siblings *siblings;
    unsigned slot;
    const char *kernel_path;
    const char *data;           /* NAME=/PATH:..., or NULL */
    unsigned more_listen_count; /* listening sockets beside the first */
};

/* NULL-terminated; ended by launcher_args_free(). sweep: only clear what an
 * earlier launcher of the slot left, then exit. */
char **launcher_args(const struct serve_options *o, const struct launcher_context *c, int sweep);
void launcher_args_free(char **args);

#endif
