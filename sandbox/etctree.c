#include "etctree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "err.h"

enum {
    DEPTH_MAX = 6,
    ENTRIES_MAX = 8000,
    FILE_MAX = 4 << 20,
};

struct text_file {
    const char *name, *text;
};

static const struct text_file texts[] = {
    { "passwd", "root:x:0:0:root:/:/usr/sbin/nologin\n"
                "user:x:1000:1000::/home/user:/bin/bash\n"
                "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n" },
    { "group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n" },
    { "hosts", "127.0.0.1 localhost cell\n::1 localhost ip6-localhost ip6-loopback\n" },
    { "nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files\n"
                       "services: files\nprotocols: files\nnetworks: files\n" },
    { "hostname", "cell\n" },
    { "resolv.conf", "" },
    { "host.conf", "multi on\n" },
    { "timezone", "Etc/UTC\n" },
    { "shells", "/bin/sh\n/bin/bash\n" },
};

/* Copied when the host has them: what Debian keeps in /etc although it belongs to a program in /usr. */
static const char *const copies[] = {
    "ImageMagick-6", "R",           "alternatives",    "bash.bashrc",     "debian_version",
    "fonts",         "inputrc",     "java-11-openjdk", "java-17-openjdk", "java-21-openjdk",
    "ld.so.cache",   "ld.so.conf",  "ld.so.conf.d",    "libpaper.d",      "magic",
    "mime.types",    "octave.conf", "os-release",      "papersize",       "protocols",
    "services",      "ssl/certs",   "ssl/openssl.cnf", "terminfo",
};

struct copy_state {
    unsigned entries, depth;
};

static int copy_entry(int from_dir, int to_dir, const char *name, struct copy_state *s,
                      struct err *e);

static int write_text(int dirfd, const struct text_file *t, struct err *e)
{
    autoclose int fd = openat(dirfd, t->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (fd < 0 || write(fd, t->text, strlen(t->text)) != (ssize_t)strlen(t->text))
        return err_sys(e, errno, "write etc/%s", t->name);
    return 0;
}

/* What the host's other users may not read, the session may not either. */
static int copy_file(int from_dir, int to_dir, const char *name, const struct stat *st,
                     struct err *e)
{
    if ((st->st_mode & S_IROTH) == 0 || st->st_size > FILE_MAX)
        return 0;
    autoclose int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (from < 0)
        return err_sys(e, errno, "open etc file '%s'", name);
    autoclose int to =
        openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444 | (st->st_mode & 0111));
    if (to < 0)
        return err_sys(e, errno, "make etc file '%s'", name);
    for (;;) {
        ssize_t n = sendfile(to, from, NULL, FILE_MAX);

        if (n < 0)
            return err_sys(e, errno, "copy etc file '%s'", name);
        if (n == 0)
            return 0;
    }
}

/* Links are taken over when what they name exists inside: below /usr or /etc, or near the link itself. */
static int copy_link(int from_dir, int to_dir, const char *name, struct err *e)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(from_dir, name, target, sizeof target - 1);

    if (n < 0)
        return err_sys(e, errno, "read etc link '%s'", name);
    target[n] = '\0';
    if (target[0] == '/' && strncmp(target, "/usr/", 5) != 0 && strncmp(target, "/etc/", 5) != 0)
        return 0;
    if (symlinkat(target, to_dir, name) < 0)
        return err_sys(e, errno, "make etc link '%s'", name);
    return 0;
}

static int copy_dir(int from_dir, int to_dir, const char *name, struct copy_state *s, struct err *e)
{
    autoclose int from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (from < 0)
        return err_sys(e, errno, "open etc folder '%s'", name);
    if (mkdirat(to_dir, name, 0755) < 0 && errno != EEXIST)
        return err_sys(e, errno, "make etc folder '%s'", name);
    autoclose int to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    autoclose int list = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = to < 0 || list < 0 ? NULL : fdopendir(list);
    struct dirent *d;
    int r = 0;

    if (dir == NULL)
        return err_sys(e, errno, "list etc folder '%s'", name);
    list = -1; /* closedir() closes it */
    s->depth++;
    while (r == 0 && (d = readdir(dir)) != NULL)
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            r = copy_entry(from, to, d->d_name, s, e);
    s->depth--;
    closedir(dir);
    return r;
}

static int copy_entry(int from_dir, int to_dir, const char *name, struct copy_state *s,
                      struct err *e)
{
    struct stat st;

    if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "look at etc entry '%s'", name);
    if (++s->entries > ENTRIES_MAX || s->depth > DEPTH_MAX)
        return err_set(e, HC_ELIMIT, "/etc has too many entries to copy, at '%s'", name);
    if (S_ISREG(st.st_mode))
        return copy_file(from_dir, to_dir, name, &st, e);
    if (S_ISLNK(st.st_mode))
        return copy_link(from_dir, to_dir, name, e);
    if (S_ISDIR(st.st_mode) && (st.st_mode & S_IXOTH) != 0)
        return copy_dir(from_dir, to_dir, name, s, e);
    return 0;
}

/* "a/b": the folder a is made, b is copied. */
static int copy_path(int from_dir, int to_dir, const char *path, struct copy_state *s,
                     struct err *e)
{
    const char *slash = strchr(path, '/');
    char parent[64];

    if (slash == NULL)
        return copy_entry(from_dir, to_dir, path, s, e);
    check((size_t)(slash - path) < sizeof parent);
    memcpy(parent, path, (size_t)(slash - path));
    parent[slash - path] = '\0';
    autoclose int from = openat(from_dir, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0)
        return 0;
    if (mkdirat(to_dir, parent, 0755) < 0 && errno != EEXIST)
        return err_sys(e, errno, "make etc folder '%s'", parent);
    autoclose int to = openat(to_dir, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0)
        return err_sys(e, errno, "open etc folder '%s'", parent);
    return copy_entry(from, to, slash + 1, s, e);
}

int etctree_fill(int dirfd, struct err *e)
{
    autoclose int host = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct copy_state s = { 0 };

    if (host < 0)
        return err_sys(e, errno, "open /etc");
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        int r = write_text(dirfd, &texts[i], e);
        if (r < 0)
            return r;
    }
    for (unsigned i = 0; i < sizeof copies / sizeof *copies; i++) {
        int r = copy_path(host, dirfd, copies[i], &s, e);
        if (r < 0)
            return r;
    }
    if (symlinkat("/usr/share/zoneinfo/Etc/UTC", dirfd, "localtime") < 0 ||
        symlinkat("/proc/self/mounts", dirfd, "mtab") < 0)
        return err_sys(e, errno, "make links in etc");
    return 0;
}
