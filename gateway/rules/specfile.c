#include "specfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"

enum { SPEC_FILE_MAX = 64 * 1024 };

#define FILE_NAME "kernel.json"

/* A link that leads nowhere is there, and somebody meant something by it. */
static int open_file(int dir_fd, int *ret, struct err *e)
{
    struct stat st;
    int fd = openat(dir_fd, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int code = errno;

    if (fd < 0 && code == ENOENT && fstatat(dir_fd, FILE_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return err_set(e, EINVAL, "it is a link to what is not there");
    if (fd < 0)
        return err_sys(e, code, "open it");
    *ret = fd;
    return 0;
}

static int read_all(int fd, char *text, size_t *ret_n, struct err *e)
{
    size_t n = 0;
    ssize_t got = 0;

    while (n <= SPEC_FILE_MAX && (got = read(fd, text + n, SPEC_FILE_MAX + 1 - n)) > 0)
        n += (size_t)got;
    if (got < 0)
        return err_sys(e, errno == ENOENT ? EIO : errno, "read it");
    if (n > SPEC_FILE_MAX)
        return err_set(e, EFBIG, "it is larger than %d bytes", SPEC_FILE_MAX);
    *ret_n = n;
    return 0;
}

static int load_json(int dir_fd, json_t **ret, struct err *e)
{
    autoclose int fd = -1;
    autofree char *text = NULL;
    struct stat st;
    json_error_t je;
    size_t n = 0;
    int rc = open_file(dir_fd, &fd, e);

    if (rc < 0)
        return rc;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, EINVAL, "it is no regular file");
    text = malloc(SPEC_FILE_MAX + 1);
    rc = text != NULL ? read_all(fd, text, &n, e) : err_set(e, ENOMEM, "no memory");
    if (rc < 0)
        return rc;
    json_t *spec = json_loadb(text, n, 0, &je);
    if (spec == NULL) /* the parser's own text quotes the file, which may hold secrets */
        return err_set(e, EINVAL, "it is not valid JSON (line %d, column %d)", je.line, je.column);
    *ret = spec;
    return 0;
}

static int all_strings(const json_t *a)
{
    size_t i;
    json_t *v;

    json_array_foreach(a, i, v)
    {
        if (!json_is_string(v))
            return 0;
    }
    return 1;
}

/* Clients rely on every key; a value of the wrong kind counts as absent. An
 * environment with values that are no strings loses those. */
static int complete(json_t *spec, const char *name, struct err *e)
{
    static const char *const texts[][2] = { { "display_name", NULL },
                                            { "language", "" },
                                            { "interrupt_mode", "signal" } };
    json_t *argv = json_object_get(spec, "argv");
    const char *key;
    json_t *value;
    void *next;

    if (!json_is_object(spec))
        return err_set(e, EINVAL, "it is not a JSON object");
    if (!json_is_array(argv) || json_array_size(argv) == 0 || !all_strings(argv))
        return err_set(e, EINVAL, "field 'argv' must be a list of strings, at least one");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!json_is_string(json_object_get(spec, texts[i][0])))
            json_object_set_new(spec, texts[i][0],
                                json_string(texts[i][1] != NULL ? texts[i][1] : name));
    }
    if (!json_is_object(json_object_get(spec, "env")))
        json_object_set_new(spec, "env", json_object());
    if (!json_is_object(json_object_get(spec, "metadata")))
        json_object_set_new(spec, "metadata", json_object());
    json_object_foreach_safe(json_object_get(spec, "env"), next, key, value)
    {
        if (!json_is_string(value))
            json_object_del(json_object_get(spec, "env"), key);
    }
    return 0;
}

int specfile_read(int kernels_fd, const char *name, json_t **ret, struct err *e)
{
    autoclose int fd = openat(kernels_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    json_t *spec = NULL;

    if (fd < 0) /* also a file that lies among the directories */
        return err_sys(e, errno == ENOTDIR ? ENOENT : errno, "open its directory");
    int rc = load_json(fd, &spec, e);
    if (rc == 0)
        rc = complete(spec, name, e);
    if (rc == 0)
        *ret = spec;
    else
        json_decref(spec);
    return rc;
}
