/*
 * resource - GET and HEAD of /kernelspecs/NAME/FILE: logos and scripts of a
 * kernelspec, whole or in part. The file is opened beneath the spec's directory by the kernel's own
 * rules (openat2), whatever the path says.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "err.h"
#include "jupyter.h"
#include "kernelspec.h"
#include "request.h"

enum { RESOURCE_MAX = 4 * 1024 * 1024 };

static const char *type_of(const char *file)
{
    static const struct {
        const char *extension, *type;
    } table[] = {
        { "png", "image/png" },      { "svg", "image/svg+xml" }, { "jpg", "image/jpeg" },
        { "jpeg", "image/jpeg" },    { "gif", "image/gif" },     { "ico", "image/x-icon" },
        { "js", "text/javascript" }, { "css", "text/css" },      { "json", "application/json" },
        { "html", "text/html" },     { "woff2", "font/woff2" },
    };
    const char *dot = strrchr(file, '.');

    for (size_t i = 0; dot != NULL && i < sizeof table / sizeof *table; i++)
        if (strcasecmp(dot + 1, table[i].extension) == 0)
            return table[i].type;
    return "text/plain";
}

/* O_NONBLOCK: a fifo must not stop the loop; RESOLVE_BENEATH keeps "..", absolute
 * links and links that lead out from leaving the directory (Linux 5.6). */
static int open_beneath(const char *dir, const char *file, int *ret_fd, struct err *e)
{
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    autoclose int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (dir_fd < 0)
        return err_set(e, ENOENT, "Not Found");
    autoclose int fd = (int)syscall(SYS_openat2, dir_fd, file, &how, sizeof how);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return err_set(e, ENOENT,
                       "Not Found"); /* one answer for all: nothing is told about other files */
    *ret_fd = take_fd(&fd);
    return 0;
}

static int read_file(int fd, struct buf *ret, struct err *e)
{
    for (;;) {
        ssize_t n;

        if (buf_reserve(ret, 64 * 1024) != 0)
            return err_set(e, EMSGSIZE, "the file is too large");
        n = read(fd, buf_tail(ret), 64 * 1024);
        if (n < 0)
            return err_sys(e, EIO, "read");
        if (n == 0)
            return 0;
        buf_commit(ret, (size_t)n);
    }
}

void specs_resource(struct request *r, void *arg)
{
    const struct jupyter *j = arg;
    struct kernelspec *s = NULL;
    struct err e = { 0 };
    const char *type = type_of(r->params[1]);
    autobuf struct buf content;
    autoclose int fd = -1;
    int rc;

    buf_init(&content, RESOURCE_MAX);
    if (kernelspecs_find(j->specs, r->params[0], &s, &e) != 0) {
        request_failed(r, &e);
        return;
    }
    rc = open_beneath(s->path, r->params[1], &fd, &e);
    kernelspec_free(s);
    if (rc == 0)
        rc = read_file(fd, &content, &e);
    if (rc != 0) {
        request_failed(r, &e);
        return;
    }
    request_content(r,
                    &(struct answer){
                        .status = 200,
                        .type = type,
                        .body = buf_view(&content),
                        .cache_control = strncmp(type, "image/", 6) == 0
                                             ? "private, max-age=2592000"
                                             : "private, no-cache",
                    },
                    1);
}
