"""What a session could do to others by what they share without a file in common: the gateway's thread, the host's
memory and root, the pages of the runtime. And that programs live with the refusals."""

import ctypes
import errno
import mmap
import os
import re

import pytest

from channels import Channels
from server import LIBC

LINGERING = """
import os, socket, struct
listening = socket.create_server(('127.0.0.1', 0))
sender = socket.create_connection(listening.getsockname())
receiver, _ = listening.accept()
sender.setblocking(False)
try:
    while True: sender.send(b'x' * 65536)
except BlockingIOError: pass
sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 600))
print('lingers', struct.unpack('ii', sender.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))[0])
outside = []
for f in os.listdir('/proc/self/fd'):
    try:
        s = socket.socket(fileno=os.dup(int(f)))
        s.getpeername()
        pid, _, _ = struct.unpack('3i', s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if s.family == socket.AF_UNIX and pid == 0: outside.append(s)    # of no process that is seen here
    except OSError: pass
print('outside', len(outside) > 0)
"""
SENDING = """
refused = set()
for s in outside:
    try: socket.send_fds(s, [b'\\0'], [sender.fileno()])
    except OSError as e: refused.add(e.errno)
sender.close()
print('refused', sorted(refused))
"""


def linux():
    return tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups()))


@pytest.mark.guest
def test_descriptors_sent_to_the_gateway_hold_nobody_up(shared, kernel, chan):
    """It reads bytes alone, so the kernel of the host closes what comes with them, in the thread that reads for all."""
    with Channels(shared, kernel("python3")) as other:
        assert other.run("1 + 1").result == "2"
        assert chan.run(LINGERING).text == "lingers 0\noutside True\n"
        if linux() >= (6, 16):
            assert chan.run(SENDING).text == f"refused [{errno.EPERM}]\n"
            assert chan.run("'still here'").result == "'still here'"
        else:
            chan.start(SENDING)         # ends its own connections: a byte stands among them that is no message's
        for _ in range(3):
            assert other.run("1 + 1", timeout=60).result == "2"
        assert shared.request("GET", "/api/kernels", timeout=60).status == 200


@pytest.mark.guest
def test_no_file_gets_attributes_and_the_tools_do_not_mind(chan):
    run = chan.run("""
import errno, os, shutil, subprocess, tempfile
top = tempfile.mkdtemp()
os.mkdir(top + '/from'); os.mkdir(top + '/out'); open(top + '/from/a', 'w').write('text')
os.chmod(top + '/from/a', 0o640); os.utime(top + '/from/a', (1e9, 1e9))
for where in (top, os.path.expanduser('~'), '/dev/shm'):
    for name in ('user.x', 'system.posix_acl_access', 'system.posix_acl_default', 'security.x', 'trusted.x'):
        for follow in (True, False):
            try: os.setxattr(where, name, b'x', follow_symlinks=follow); print('set', where, name)
            except OSError as e:
                if e.errno != errno.EOPNOTSUPP: print(where, name, e)
shutil.copy2(top + '/from/a', top + '/b'); shutil.copytree(top + '/from', top + '/tree'); shutil.move(top + '/b', os.path.expanduser('~/b'))
def sh(line):
    done = subprocess.run(line, shell=True, cwd=top, capture_output=True, text=True)
    if done.returncode or done.stderr and '--acls' not in line: print(line, done)     # which warns, and unpacks
sh('cp -a from copied'); sh('cp -p from/a p'); sh('cp --preserve=mode,timestamps from/a q')
sh('tar -cf x.tar from && tar -C out -xpf x.tar'); sh('tar --acls --xattrs -cf y.tar from && tar -C out --acls --xattrs -xpf y.tar')
sh('install -m 640 from/a installed'); sh("sed -i s/text/text/ copied/a"); sh('mv copied/a /dev/shm/a')
for p in ('tree/a', 'p', 'q', 'out/from/a', 'installed', os.path.expanduser('~/b'), '/dev/shm/a'):
    s = os.stat(os.path.join(top, p)); print(os.path.basename(p), oct(s.st_mode & 0o777), open(os.path.join(top, p)).read().strip())
print(os.listxattr(top), 'done')
""")
    lines = run.text.splitlines()
    assert run.status == "ok" and lines[-1] == "[] done", run.messages
    assert len(lines) == 8 and all(line.endswith(" 0o640 text") for line in lines[:-1]), run.text


@pytest.mark.guest
def test_the_limit_of_core_files_is_read_and_stays(chan):
    assert chan.run("""
import errno, os, resource, subprocess
for limit in ((0, 0), (0, 1), (1, 1), (resource.RLIM_INFINITY,) * 2):
    resource.setrlimit(resource.RLIMIT_CORE, limit)         # answered, and nothing is done
    for pid in (0, os.getpid()):
        try: resource.prlimit(pid, resource.RLIMIT_CORE, limit); print('set', limit)    # asks for the old one, too
        except ValueError: pass
print(resource.getrlimit(resource.RLIMIT_CORE), resource.prlimit(0, resource.RLIMIT_CORE))
print(subprocess.run('ulimit -c 0; ulimit -n 100; ulimit -n; grep core /proc/self/limits', shell=True, capture_output=True, text=True).stdout.split())
""").text == "(1, 1) (1, 1)\n['100', 'Max', 'core', 'file', 'size', '1', '1', 'bytes']\n"


def resident(path):
    """How many pages of a file are in memory."""
    mmap_, mincore, munmap = LIBC.mmap, LIBC.mincore, LIBC.munmap
    mmap_.restype = ctypes.c_void_p
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        seen = (ctypes.c_ubyte * (size // mmap.PAGESIZE + 1))()
        at = mmap_(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, f.fileno(), ctypes.c_long(0))
        assert mincore(ctypes.c_void_p(at), ctypes.c_size_t(size), seen) == 0
        munmap(ctypes.c_void_p(at), ctypes.c_size_t(size))
    return sum(page & 1 for page in seen)


def test_advice_of_a_session_takes_no_page_from_others(chan):
    path = chan.run("import json.decoder, os; print(os.path.realpath(json.decoder.__file__))").text.strip()
    with open(path, "rb") as f:         # the same file: what a session sees of it is an overlay
        f.read()
    pages = resident(path)
    assert pages > 0
    assert chan.run(f"""
f = os.open('{path}', os.O_RDONLY)
for advice in range(6): os.posix_fadvise(f, 0, 0, advice)
""").status == "ok"
    assert resident(path) == pages
    with open(path, "rb") as f:         # the advice does what it says, to who may give it
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    assert resident(path) < pages


def test_pages_of_data_that_all_may_write_stay_too(server_with, tmp_path):
    """By its mode the session may write the file, and the overlay in between is not asked."""
    path = tmp_path / "shared"
    path.write_bytes(b"x" * 100 * mmap.PAGESIZE)
    path.chmod(0o666)
    for d in [tmp_path, *tmp_path.parents][:3]:
        d.chmod(0o755)
    server = server_with("--data", f"d={tmp_path}")
    with Channels(server, server.start_kernel("python3")) as c:
        with open(path, "rb") as f:
            os.fsync(f.fileno())        # a page that is not on the disk yet stays anyway
        pages = resident(path)
        assert pages == 100
        assert c.run("""
import mmap
with open('/data/d/shared', 'rb') as f: m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
sum(m[::mmap.PAGESIZE])
for advice in (20, 21, 21, 21):
    try: m.madvise(advice)
    except OSError as e: print(e.errno, end=' ')
""").text == f"{errno.EINVAL} " * 4
        assert resident(path) == pages


def test_pages_are_not_merged_with_those_of_others(chan):
    assert chan.run("""
import mmap
m = mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_WILLNEED)
try: m.madvise(mmap.MADV_MERGEABLE)
except OSError as e: print(e.errno)
""").text == f"{errno.EINVAL}\n"


@pytest.mark.guest
def test_a_socket_keeps_nothing_that_counts_for_nobody(chan):
    """Each such option has a limit for its socket, and none for the number of sockets."""
    assert chan.run("""
import ctypes, errno, socket, struct
code = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 1))
def refused(family, kind, level, option, value):
    with socket.socket(family, kind) as s:
        try: s.setsockopt(level, option, value)
        except OSError as e: return errno.errorcode[e.errno]
ip4 = socket.inet_aton('225.1.1.1') + socket.inet_aton('127.0.0.1')
print(refused(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, ip4),
      refused(socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, 'ff15::1') + struct.pack('I', 1)),
      refused(socket.AF_INET, socket.SOCK_DGRAM, socket.SOL_SOCKET, 26, struct.pack('H6xQ', 1, ctypes.addressof(code))),
      refused(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, socket.TCP_NODELAY, struct.pack('I', 1)),
      refused(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, struct.pack('I', 1)))
""").text == "ENOPROTOOPT ENOPROTOOPT ENOPROTOOPT None None\n"


@pytest.mark.guest
def test_a_kernel_inside_a_kernel_finds_its_ports(chan):
    """jupyter_client tells each socket that it tries not to linger, and does not expect to be refused."""
    run = chan.run("""
import socket, struct
from jupyter_client.connect import write_connection_file
path, info = write_connection_file('/tmp/inner.json')
print(sorted(k for k in info if k.endswith('_port')))
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 0, 0)); s.close()
""")
    assert run.text == "['control_port', 'hb_port', 'iopub_port', 'shell_port', 'stdin_port']\n", run.messages
