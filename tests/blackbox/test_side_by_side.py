"""Two sessions side by side: nothing that one does shows in the other, but for what docs/SECURITY.md names."""

import json
import os

import pytest

from channels import Channels

pytestmark = pytest.mark.guest
PRELUDE = r"""
import ctypes, errno, fcntl, glob, json, mmap, os, socket, struct, subprocess, sys, tempfile, time
libc = ctypes.CDLL(None, use_errno=True)
FILES = [os.path.join(sys.prefix, "pyvenv.cfg"), os.path.realpath(sys.executable), "/etc/passwd", "/dev/null",
         "/dev/zero", "/dev/urandom", "/data/set/table.csv", "/usr/bin/env"]
FOLDERS = ["/", "/usr", "/usr/bin", "/etc", "/dev", "/data/set", "/proc", "/tmp", "/home/user", sys.prefix]
def tell(value):
    print("TOLD " + json.dumps(value))
def no(call, *args):
    try:
        return call(*args)
    except OSError as e:
        return errno.errorcode[e.errno]
"""


class Side:
    def __init__(self, server, kid):
        self.c = Channels(server, kid)
        assert self.c.run(PRELUDE).status == "ok"

    def do(self, code):
        got = self.c.run(code)
        assert got.status == "ok", (got.ename, got.reply["content"].get("evalue"))
        told = [line[5:] for line in got.text.splitlines() if line.startswith("TOLD ")]
        return json.loads(told[-1]) if told else None


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """(a, b): kernels of one principal, each in its own session, with one data folder."""
    from server import Server
    top = tmp_path_factory.mktemp("data")
    for d in (top, top.parent, top.parent.parent):
        os.chmod(d, 0o755)
    (top / "table.csv").write_text("a,b\n1,2\n" * 20000)
    s = Server("--data", f"set={top}").start()
    sides = [Side(s, s.start_kernel("python3")) for _ in range(2)]
    yield sides
    for side in sides:
        side.c.close()
    s.close()


def test_locks_of_one_are_free_for_the_other(two):
    a, b = two
    hold = """
held = []
for path in FILES + FOLDERS:
    fd = os.open(path, os.O_RDONLY)
    held.append(fd)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
for path in FILES:
    try:
        fd = os.open(path, os.O_RDWR)
        kind = fcntl.F_WRLCK
    except OSError:
        fd, kind = os.open(path, os.O_RDONLY), fcntl.F_RDLCK
    held.append(fd)
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0))
tell(len(held))
"""
    assert a.do(hold) > 20
    assert b.do(hold) > 20          # each would say EAGAIN
    a.do("for fd in held: os.close(fd)")
    b.do("for fd in held: os.close(fd)")


def test_leases_and_folder_signals_hear_nothing_of_the_other(two):
    a, b = two
    heard = """
import signal
heard = []
signal.signal(signal.SIGIO, lambda *_: heard.append(1))
watched = []
for path in FILES:
    fd = os.open(path, os.O_RDONLY); watched.append(fd)
    no(fcntl.fcntl, fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
for path in FOLDERS:
    fd = os.open(path, os.O_RDONLY); watched.append(fd)
    no(fcntl.fcntl, fd, fcntl.F_NOTIFY, 0x80000000 - (1 << 32) | 0x3f)
tell(len(watched))
"""
    assert a.do(heard) > 10
    b.do("""
for path in FILES:
    fd = no(os.open, path, os.O_RDWR)
    with open(path, "rb") as f: f.read(100)
    if isinstance(fd, int): os.close(fd)
for path in FOLDERS:
    os.listdir(path)
    fd = no(os.open, path + "/probe", os.O_RDWR | os.O_CREAT)
    if isinstance(fd, int): os.close(fd)
""")
    assert a.do("time.sleep(0.3); tell(len(heard))") == 0
    a.do("for fd in watched: os.close(fd)")


def test_names_of_one_are_unknown_to_the_other(two):
    a, b = two
    made = a.do(r"""
s = socket.socket(socket.AF_UNIX); s.bind("\0side-by-side"); s.listen()
shm = open("/dev/shm/side", "w"); shm.write("x"); shm.flush()
open("/tmp/side", "w").write("x"); open("/home/user/side", "w").write("x")
t = socket.socket(); t.bind(("127.0.0.1", 45454)); t.listen()
tell([libc.shmget(4711, 4096, 0o1666), libc.msgget(4711, 0o1666), libc.semget(4711, 1, 0o1666)])
""")
    seen = b.do(r"""
s = socket.socket(socket.AF_UNIX); t = socket.socket()
tell({"abstract": no(s.connect, "\0side-by-side"), "tcp": no(t.connect, ("127.0.0.1", 45454)),
      "files": [p for p in ("/dev/shm/side", "/tmp/side", "/home/user/side") if os.path.exists(p)],
      "ipc": [libc.shmget(4711, 4096, 0o666), libc.msgget(4711, 0o666), libc.semget(4711, 1, 0o666)],
      "bind": no(socket.socket(socket.AF_UNIX).bind, "\0side-by-side")})
""")
    assert seen == {"abstract": "ECONNREFUSED", "tcp": "ECONNREFUSED", "files": [], "ipc": [-1, -1, -1],
                    "bind": None}, made


# What counts for the whole host shows nobody's doings: it is static, or cannot be read.
COUNTED = ["cpuinfo", "loadavg", "stat", "meminfo", "uptime", "vmstat", "zoneinfo", "slabinfo", "interrupts", "softirqs",
           "locks", "keys", "key-users", "timer_list", "sched_debug", "schedstat", "diskstats", "buddyinfo",
           "pagetypeinfo", "swaps",
           "pressure/cpu", "pressure/memory", "pressure/io", "sysvipc/shm", "sysvipc/msg", "sysvipc/sem",
           "net/unix", "net/dev", "sys/kernel/ns_last_pid", "sys/fs/file-nr", "sys/fs/inode-nr",
           "sys/fs/inode-state", "sys/fs/dentry-state", "sys/fs/aio-nr", "sys/kernel/pty/nr",
           "sys/kernel/random/entropy_avail", "sys/fs/quota/syncs",
           "net/sockstat", "net/sockstat6", "net/protocols", "net/softnet_stat"]


def test_counters_of_the_host_do_not_move(two):
    a, b = two
    look = f"""
seen = {{}}
for name in {COUNTED!r}:
    try:
        seen[name] = open("/proc/" + name).read()
    except OSError as e:
        seen[name] = errno.errorcode[e.errno]
tell(seen)
"""
    b.do(look)
    before = b.do(look)
    a.do("""
many = [subprocess.Popen(["sleep", "100"]) for _ in range(20)]
fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(300)] + [os.memfd_create("x") for _ in range(150)]
ptys = [no(os.openpty) for _ in range(5)]
block = bytearray(64 << 20)
""")
    moved = {n for n, v in b.do(look).items() if v != before[n]}
    a.do("""
for p in many: p.kill(); p.wait()
for fd in fds + [fd for p in ptys if not isinstance(p, str) for fd in p]: os.close(fd)
del block
""")
    assert moved == set()


def test_what_one_reads_leaves_no_mark_that_the_other_sees(two):
    a, b = two
    look = """
stats = {p: os.stat(p) for p in FILES if p[:5] != "/dev/"}
tell({p: [s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns, s.st_nlink] for p, s in stats.items()})
"""
    before = b.do(look)
    a.do("for p in FILES[:3] + FILES[6:]: open(p, 'rb').read()")
    assert b.do(look) == before


def test_terminals_are_each_ones_own(two):
    a, b = two
    get = "master, slave = os.openpty(); tell([os.ttyname(slave), sorted(os.listdir('/dev/pts'))])"
    first = a.do(get)
    assert b.do(get) == first       # the same number: neither knows of the other's
    for side in two:
        side.do("os.close(master); os.close(slave)")


def test_the_page_cache_is_not_told_page_by_page(two):
    """How long a read takes tells it; no call does."""
    a, b = two
    b.do("""
def cached(path, page):
    fd = os.open(path, os.O_RDONLY)
    try:
        return no(os.preadv, fd, [bytearray(4096)], page * 4096, os.RWF_NOWAIT)
    finally:
        os.close(fd)

def resident(path):
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        at = libc.mmap
        at.restype = ctypes.c_void_p
        at.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        p = at(None, size, mmap.PROT_READ, mmap.MAP_SHARED, f.fileno(), 0)
        libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
        seen = ctypes.create_string_buffer(size // 4096 + 1)
        rc = libc.mincore(p, size, seen)
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        libc.munmap(p, size)
        return [rc, sorted({x & 1 for x in seen.raw[:-1]})]
""")
    path = "/data/set/table.csv"
    look = f"tell([[cached({path!r}, i) for i in range(8)], resident({path!r})])"
    before = b.do(look)
    a.do(f"f = open({path!r}, 'rb'); f.seek(4 * 4096); f.read(100); f.close()")
    assert b.do(look) == before
    answers = set(before[0])
    assert len(answers) == 1 and len(before[1][1]) <= 1, before
