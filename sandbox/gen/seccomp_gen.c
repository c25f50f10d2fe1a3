/*
 * seccomp_gen - runs during the build and writes the seccomp programs of all
 * profiles as C arrays: loading one at run time is a single system call, while
 * building it there takes ten times as long and needs libseccomp in the
 * privileged process.
 *
 *     seccomp_gen LISTS OUTPUT
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "err.h"
#include "profile.h"

static int write_profile(FILE *out, const char *name, const char *lists, struct err *e)
{
    autofree struct sock_filter *code = NULL;
    size_t count;
    int r = profile_compile(name, lists, &code, &count, e);

    if (r < 0)
        return r;
    fprintf(out, "\nstatic const struct sock_filter %s_program[%zu] = {\n", name, count);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "    { 0x%04x, %u, %u, 0x%08x },\n", code[i].code, code[i].jt, code[i].jf,
                code[i].k);
    fprintf(out, "};\n");
    return 0;
}

int main(int argc, char **argv)
{
    struct err e = { 0 };
    FILE *out;
    int r = 0;

    if (argc != 3) {
        fprintf(stderr, "usage: seccomp_gen LISTS OUTPUT\n");
        return 2;
    }
    out = fopen(argv[2], "we");
    if (out == NULL) {
        fprintf(stderr, "seccomp_gen: %s: %s\n", argv[2], strerror(errno));
        return 1;
    }
    fprintf(out, "/* Made by seccomp_gen from sandbox/profiles; do not edit. */\n");
    for (const char *const *name = profile_names(); *name != NULL && r == 0; name++)
        r = write_profile(out, *name, argv[1], &e);
    if (fclose(out) != 0 && r == 0)
        r = err_sys(&e, errno, "write '%s'", argv[2]);
    if (r < 0) {
        fprintf(stderr, "seccomp_gen: %s\n", e.msg);
        (void)remove(argv[2]); /* half a filter must not look built */
    }
    return r < 0;
}
