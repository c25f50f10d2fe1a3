#include "runfolder.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "err.h"

void runfolder_name(uint32_t kernel, uint32_t generation, char ret[RUNFOLDER_NAME_SIZE])
{
    snprintf(ret, RUNFOLDER_NAME_SIZE, "%u-%u", kernel, generation);
}

/* Tags of posix_acl.h; entries must come in this order. */
enum { TAG_USER_OBJ = 1, TAG_USER = 2, TAG_GROUP_OBJ = 4, TAG_MASK = 16, TAG_OTHER = 32 };
enum { ACL_ENTRIES = 5 };

struct acl {
    struct posix_acl_xattr_header head;
    struct posix_acl_xattr_entry entry[ACL_ENTRIES];
};

static struct posix_acl_xattr_entry acl_entry(unsigned tag, unsigned permissions, uint32_t id)
{
    return (struct posix_acl_xattr_entry){
        .e_tag = htole16((uint16_t)tag),
        .e_perm = htole16((uint16_t)permissions),
        .e_id = htole32(id),
    };
}

static int set_acl(int fd, const char *kind, unsigned owner, unsigned gateway, uid_t gateway_uid)
{
    const struct acl a = {
        .head.a_version = htole32(POSIX_ACL_XATTR_VERSION),
        .entry = { acl_entry(TAG_USER_OBJ, owner, UINT32_MAX),
                   acl_entry(TAG_USER, gateway, gateway_uid),
                   acl_entry(TAG_GROUP_OBJ, 0, UINT32_MAX), acl_entry(TAG_MASK, 7, UINT32_MAX),
                   acl_entry(TAG_OTHER, 0, UINT32_MAX) },
    };

    return fsetxattr(fd, kind, &a, sizeof a, 0);
}

static int write_connection(int dirfd, uid_t uid, const void *connection, size_t size,
                            struct err *e)
{
    autoclose int fd = openat(dirfd, "connection.json",
                              O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(e, errno, "make connection.json");
    ssize_t n = write(fd, connection, size);
    if (n != (ssize_t)size)
        return err_sys(e, n < 0 ? errno : ENOSPC, "write connection.json");
    if (fchown(fd, uid, uid) < 0)
        return err_sys(e, errno, "give connection.json away");
    return 0;
}

/* All while the folder is still root's: its future owner cannot interfere. */
static int furnish(int fd, uid_t uid, uid_t gateway_uid, const void *connection, size_t size,
                   struct err *e)
{
    int r = write_connection(fd, uid, connection, size, e);

    if (r < 0)
        return r;
    /* connect() needs write permission on the socket; bind() applies the umask even under a
     * default ACL, so such kernels run with umask 007. */
    if (set_acl(fd, "system.posix_acl_default", 6, 6, gateway_uid) < 0 ||
        set_acl(fd, "system.posix_acl_access", 7, 5, gateway_uid) < 0)
        return err_sys(e, errno, "set the access list of the run folder");
    if (fchown(fd, uid, uid) < 0)
        return err_sys(e, errno, "give the run folder to the kernel");
    return 0;
}

int runfolder_new(int run_fd, const char *name, uid_t uid, uid_t gateway_uid,
                  const void *connection, size_t connection_size, int *ret_fd, struct err *e)
{
    if (mkdirat(run_fd, name, 0700) < 0)
        return err_sys(e, errno, "make run folder '%s'", name);
    autoclose int fd = openat(run_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = fd < 0 ? err_sys(e, errno, "open run folder '%s'", name)
                   : furnish(fd, uid, gateway_uid, connection, connection_size, e);
    int path_fd = -1;
    if (r == 0) {
        path_fd = openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (path_fd < 0)
            r = err_sys(e, errno, "open run folder '%s'", name);
    }
    if (r < 0) {
        runfolder_remove(run_fd, name);
        return r;
    }
    *ret_fd = path_fd;
    return 0;
}

int runfolder_seal(int run_fd, const char *name, struct err *e)
{
    autoclose int fd = openat(run_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, errno, "open run folder '%s'", name);
    /* The owner first: until then it could set the mode back. */
    if (fchown(fd, 0, 0) < 0 || fchmod(fd, 0755) < 0)
        return err_sys(e, errno, "seal run folder '%s'", name);
    return 0;
}

void runfolder_remove(int run_fd, const char *name)
{
    static const char *const names[] = { "connection.json", "s-1", "s-2", "s-3", "s-4", "s-5" };
    autoclose int fd = openat(run_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        (void)unlinkat(fd, names[i], 0);
    (void)unlinkat(run_fd, name, AT_REMOVEDIR);
}
