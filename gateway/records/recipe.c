#include "recipe.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cull.h"
#include "err.h"
#include "launchmsg.h"
#include "memfd.h"
#include "msgcodec.h"

enum { PIECES = 4, RECIPE_MAX = LAUNCH_ARGV_MAX + 2 * LAUNCH_ENV_MAX + LAUNCH_PATH_MAX + 64 };

void recipe_init(struct kernel_recipe *r)
{
    *r = (struct kernel_recipe){ .cull_ms = CULL_UNSET };
    buf_init(&r->argv, LAUNCH_ARGV_MAX);
    buf_init(&r->request_env, LAUNCH_ENV_MAX);
    buf_init(&r->spec_env, LAUNCH_ENV_MAX);
}

void recipe_free(struct kernel_recipe *r)
{
    buf_free(&r->argv);
    buf_free(&r->request_env);
    buf_free(&r->spec_env);
    free(r->spec_name);
    free(r->cwd);
    *r = (struct kernel_recipe){ 0 };
}

char **recipe_strings(const struct buf *b)
{
    int count = msg_strings_count(buf_view(b), LAUNCH_STRINGS_MAX, NULL);

    check(count >= 0); /* they were added one by one, or checked when they came back */
    char **out = xcalloc((size_t)count + 1, sizeof *out);
    msg_strings_split(buf_view(b), out, (unsigned)count);
    return out;
}

int recipe_memfd(const struct kernel_recipe *r, int *ret_fd, struct err *e)
{
    const struct view pieces[PIECES] = { buf_view(&r->argv), buf_view(&r->request_env),
                                         buf_view(&r->spec_env), view_cstr(r->cwd) };
    autobuf struct buf out = { 0 };
    int rc = 0;

    buf_init(&out, RECIPE_MAX);
    for (unsigned i = 0; rc == 0 && i < PIECES; i++) {
        uint32_t n = (uint32_t)pieces[i].n;
        rc = buf_add(&out, &n, sizeof n);
        if (rc == 0)
            rc = buf_add_view(&out, pieces[i]);
    }
    if (rc < 0)
        return err_set(e, -rc, "the kernel's recipe is too large");
    return memfd_sealed("recipe", buf_view(&out).p, buf_len(&out), ret_fd, e);
}

static int take_piece(struct view *rest, struct view *ret)
{
    uint32_t n;

    if (rest->n < sizeof n)
        return -1;
    memcpy(&n, rest->p, sizeof n);
    if (n > rest->n - sizeof n)
        return -1;
    *ret = (struct view){ rest->p + sizeof n, n };
    *rest = (struct view){ ret->p + n, rest->n - sizeof n - n };
    return 0;
}

static int take_strings(struct view *rest, struct buf *out, struct err *e)
{
    struct view piece;

    if (take_piece(rest, &piece) < 0 || msg_strings_count(piece, LAUNCH_STRINGS_MAX, e) < 0 ||
        buf_add_view(out, piece) < 0)
        return err_set(e, HC_EPARSE, "the kernel's recipe is damaged");
    return 0;
}

int recipe_read(int fd, struct kernel_recipe *r, struct err *e)
{
    struct stat st;
    struct view cwd;

    if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > RECIPE_MAX)
        return err_set(e, HC_EPARSE, "the kernel's recipe has a wrong size");
    size_t size = (size_t)st.st_size;
    autofree uint8_t *bytes = malloc(size);
    if (bytes == NULL || pread(fd, bytes, size, 0) != (ssize_t)size)
        return err_set(e, HC_EPARSE, "the kernel's recipe cannot be read");
    struct view rest = { bytes, size };
    int rc = take_strings(&rest, &r->argv, e);
    if (rc == 0)
        rc = take_strings(&rest, &r->request_env, e);
    if (rc == 0)
        rc = take_strings(&rest, &r->spec_env, e);
    if (rc == 0 && (take_piece(&rest, &cwd) < 0 || cwd.n == 0 || cwd.n >= LAUNCH_PATH_MAX ||
                    memchr(cwd.p, '\0', cwd.n) != NULL))
        rc = err_set(e, HC_EPARSE, "the kernel's recipe is damaged");
    if (rc == 0)
        r->cwd = view_dup(cwd);
    return rc;
}
