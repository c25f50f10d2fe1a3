"""Takes parts of the kernel away from a program, honestly: what it gets is what a host without them gives. Each
function returns one that runs in the child before its exec (as root)."""

import ctypes
import errno
import os
import stat
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long

# x86-64
NUMBERS = {"ioctl": 16, "listen": 50, "pivot_root": 155, "prctl": 157, "sethostname": 170, "unshare": 272, "setns": 308, "seccomp": 317, "move_mount": 429, "fsopen": 430,
           "pidfd_open": 434, "clone3": 435, "mount_setattr": 442, "landlock_create_ruleset": 444}

ALLOW, ERRNO, X86_64 = 0x7fff0000, 0x00050000, 0xc000003e
CLONE_NEWNS, MS_REC, MS_PRIVATE, MS_BIND, MNT_DETACH = 0x20000, 0x4000, 0x40000, 0x1000, 2


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "system call")


def calls(*names, code=errno.ENOSYS, first=None):
    """A seccomp filter that answers these calls with an errno, as a kernel built without them. first=(mask, value): those
    alone whose first or, of ioctl, second argument is that below the mask."""
    def line(op, jt, jf, k):
        return struct.pack("HBBI", op, jt, jf, k)
    program = [line(0x20, 0, 0, 4), line(0x15, 1, 0, X86_64), line(0x06, 0, 0, ALLOW)]
    for name in names:
        refuse = [line(0x06, 0, 0, ERRNO | code)]
        if first is not None:
            mask, value = first
            refuse = [line(0x20, 0, 0, 24 if name == "ioctl" else 16), line(0x54, 0, 0, mask), line(0x15, 0, 1, value)] + refuse
        program += [line(0x20, 0, 0, 0), line(0x15, 0, len(refuse), NUMBERS[name])] + refuse
    program.append(line(0x06, 0, 0, ALLOW))
    text = b"".join(program)

    def prepare():
        code = ctypes.create_string_buffer(text, len(text))
        fprog = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
        check(LIBC.syscall(NUMBERS["seccomp"], 1, 0, fprog))
    return prepare


def own_mounts():
    check(LIBC.unshare(CLONE_NEWNS))
    check(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))


def static_dev(loops=64):
    """A /dev that was made once, as in a container: the kernel puts no device there that it makes later."""
    def prepare():
        names = ["null", "zero", "full", "random", "urandom", "tty", "loop-control"]
        nodes = [(n, os.stat("/dev/" + n)) for n in names if os.path.exists("/dev/" + n)]
        own_mounts()
        check(LIBC.mount(b"none", b"/dev", b"tmpfs", 0, None))
        for name, st in nodes:
            os.mknod("/dev/" + name, st.st_mode, st.st_rdev)
            os.chmod("/dev/" + name, st.st_mode & 0o777)
        for n in range(loops):
            os.mknod(f"/dev/loop{n}", stat.S_IFBLK | 0o600, os.makedev(7, n))
        os.symlink("/proc/self/fd", "/dev/fd")
        os.mkdir("/dev/shm")
    return prepare


def unmounted(*paths):
    """A mount namespace in which these are not mounted."""
    def prepare():
        own_mounts()
        for path in paths:
            check(LIBC.umount2(path.encode(), MNT_DETACH))
    return prepare


def covered(path, by):
    """A mount namespace in which something else lies over path."""
    def prepare():
        own_mounts()
        check(LIBC.mount(by.encode(), path.encode(), None, MS_BIND, None))
    return prepare
