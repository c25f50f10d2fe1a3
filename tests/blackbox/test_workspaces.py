"""Workspaces (--workspaces): what lies in /home/user/work outlives kernels and servers, with a quota, for its principal alone."""

import os
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

from channels import Channels
from disks import loops_below
from principals import PrincipalServer, entry
from server import BIN, free_port, wait_for
from test_sandbox_gone import init_of


@pytest.fixture
def place():
    """Where workspaces lie: on a disk, root's alone."""
    path = tempfile.mkdtemp(prefix="holdcell-work-", dir="/var/tmp")
    yield path
    wait_for(lambda: not loops_below(path))
    shutil.rmtree(path)


def server_of(place, lines, *options):
    s = PrincipalServer(lines, "--workspaces", place, "--disk-mb", "32", *options)
    try:
        return s.start()
    except AssertionError:
        log = s.log()
        s.close()
        if "option --workspaces" in log:
            pytest.skip("no workspaces here: " + log.splitlines()[-3])
        raise


def run(who, code, kid=None):
    own = kid or who.start_kernel("python3")
    try:
        with Channels(who, own) as c:
            r = c.run(code)
            return r.result if r.status == "ok" else r.ename
    finally:
        if kid is None:
            assert who.delete_kernel(own) == 204


@pytest.mark.guest
def test_it_outlives_kernels_and_servers_and_is_seen_by_nobody_else(place):
    lines = [entry("ann", limits={"workspace_mb": 20}), entry("bob")]
    s = server_of(place, lines, "--workspace-mb", "40")
    try:
        ann, bob = s.as_("ann"), s.as_("bob")
        assert run(ann, "import os; open('work/table.csv', 'w').write('a,b'); os.stat('work').st_uid, os.listdir('work')") == \
            "(1000, ['table.csv'])"
        assert run(ann, "open('work/table.csv').read()") == "'a,b'"                   # another kernel, other host ids
        assert run(bob, "import os; os.listdir('work')") == "[]"
        assert run(bob, "open('work/bobs', 'w').write('x'); import os; print(sorted(os.listdir('work')))\n"
                   "sorted(x for x in os.listdir('.') if x[0] != '.')") == "['outputs', 'work']"
        s.stop()
        wait_for(lambda: not loops_below(place))
        assert sorted(os.listdir(place)) == ["ann.img", "bob.img"]
        s.start()
        assert run(ann, "open('work/table.csv').read()") == "'a,b'"
        # Nor does the launcher's death lose what was closed, or leave a mount.
        kid = ann.start_kernel("python3")
        run(ann, "f = open('work/late', 'w'); f.write('late'); f.flush(); import os; os.fsync(f.fileno())", kid)
        old = s.process("launcher")
        os.kill(old, signal.SIGKILL)
        wait_for(lambda: s.process("launcher") not in (0, old) and s.answers())
        assert run(ann, "open('work/late').read()") == "'late'"
        mounts = open("/proc/self/mountinfo").read()
        assert place not in mounts
    finally:
        s.close()


@pytest.mark.guest
@pytest.mark.full
def test_the_quota_is_that_of_the_principal(place):
    s = server_of(place, [entry("ann", limits={"workspace_mb": 20}), entry("bob")], "--workspace-mb", "40")
    fill = """
import errno, os
n = 0
try:
    with open('work/big', 'wb', buffering=0) as f:
        while n < 100:
            n += f.write(bytes(1 << 20)) / (1 << 20)
except OSError as e:
    why = errno.errorcode[e.errno]
open('still', 'w').write('the home goes on')
os.unlink('work/big')
(why, round(n))
"""
    try:
        why, n = eval(run(s.as_("ann"), fill))
        assert why == "ENOSPC" and 19 <= n <= 21
        why, n = eval(run(s.as_("bob"), fill))
        assert why == "ENOSPC" and 39 <= n <= 41
        s.write([entry("ann", limits={"workspace_mb": 41})])
        assert "limits.workspace_mb' is above the server's own limit, 40" in s.hang_up("reload_refused")
    finally:
        s.close()


def test_two_kernels_of_one_principal_share_it(place):
    s = server_of(place, [entry("ann")], "--workspace-mb", "20")
    try:
        ann = s.as_("ann")
        a, b = ann.start_kernel("python3"), ann.start_kernel("python3")
        run(ann, "open('work/shared', 'w').write('from a')", a)
        assert run(ann, "import os; open('work/shared').read(), os.stat('work/shared').st_uid", b) == "('from a', 1000)"
        with Channels(ann, a) as c:
            full = c.run("raise OSError(28, 'full')")
            assert re.search("disk full: .* files in each; /home/user/work has its own\n", full.stream("stderr")), full.messages
        assert len(loops_below(place)) == 1
        assert ann.delete_kernel(a) == 204
        assert run(ann, "open('work/shared').read()", b) == "'from a'"
    finally:
        s.close()


SOCKETS = """
import errno, os, socket, subprocess, sys

def bind(path):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.bind(path)
        return 'bound'
    except OSError as e:
        return errno.errorcode[e.errno]

def into_work(how):
    try:
        how('/tmp/s', '/home/user/work/s')
        return 'moved'
    except OSError as e:
        return errno.errorcode[e.errno]

os.symlink('/home/user/work', '/tmp/way')
got = [bind(p) for p in ('work/s', '/home/user/work/s', '/tmp/way/s', '/home/user/s', '/tmp/s', '/dev/shm/s')]
got += [into_work(os.rename), into_work(os.link)]
got.append(subprocess.run([sys.executable, '-c', "import socket; socket.socket(socket.AF_UNIX).bind('/home/user/work/s')"],
                          stderr=subprocess.PIPE, text=True).stderr.splitlines()[-1].split(':')[0])
got.append(os.listdir('work'))
got
"""


@pytest.mark.guest
def test_no_socket_is_bound_where_sessions_meet(place):
    s = server_of(place, [entry("ann")], "--workspace-mb", "20")
    try:
        got = eval(run(s.as_("ann"), SOCKETS))
        assert got == ["EACCES"] * 4 + ["bound"] * 2 + ["EXDEV"] * 2 + ["PermissionError"] + [[]]
    finally:
        s.close()


@pytest.mark.full
def test_an_image_that_was_removed_is_made_anew(place):
    s = server_of(place, [entry("ann")], "--workspace-mb", "20")
    try:
        ann = s.as_("ann")
        run(ann, "open('work/old', 'w').write('old')")
        os.unlink(place + "/ann.img")       # while it is mounted, for the next session
        assert run(ann, "import os; os.listdir('work')") == "[]"
        assert os.listdir(place) == ["ann.img"]
    finally:
        s.close()


@pytest.mark.full
def test_the_quota_of_a_principal_outlives_the_gateway(place):
    s = server_of(place, [entry("ann", limits={"workspace_mb": 20})], "--workspace-mb", "80")
    try:
        ann = s.as_("ann")
        kid = ann.start_kernel("python3")
        old = s.process("gateway")
        os.kill(old, signal.SIGKILL)
        wait_for(lambda: s.process("gateway") not in (0, old) and s.answers())
        assert run(ann, "1 + 1", kid) == "2"
        os.unlink(place + "/ann.img")
        os.kill(init_of(s), signal.SIGKILL)     # the sandbox is made anew, and its workspace with it
        wait_for(lambda: os.path.exists(place + "/ann.img"))
        assert run(ann, "import os; os.listdir('work')", kid) == "[]"
        assert 20 <= os.stat(place + "/ann.img").st_size >> 20 < 40
    finally:
        s.close()


def test_without_room_the_kernel_is_refused(place):
    free = os.statvfs(place)
    mb = free.f_bavail * free.f_frsize >> 20
    s = server_of(place, [entry("ann")], "--workspace-mb", "4000", "--disk-reserve-mb", str(mb - 2000), "--home", "tmpfs")
    try:
        r = s.as_("ann").request("POST", "/api/kernels")
        assert r.status == 503 and "no room for the workspace" in r.json()["message"], r
        assert os.listdir(place) == []
    finally:
        s.close()


@pytest.mark.parametrize("options, said", [
    (["--workspaces", "work"], "option --workspaces: 'work' is no absolute path"),
    (["--workspace-mb", "10"], "option --workspace-mb needs --workspaces"),
    (["--workspaces", "/tmp"], "option --workspaces: '/tmp' must belong to root and be writable by root only"),
    (["--workspaces", "/etc/passwd"], "option --workspaces: open '/etc/passwd': Not a directory"),
])
def test_what_cannot_be_is_named_at_the_start(options, said, tmp_path):
    got = subprocess.run([BIN, "serve", "--listen", f"127.0.0.1:{free_port()}", "--no-auth", "--state-dir",
                          str(tmp_path / "s"), *options], capture_output=True, text=True, timeout=60)
    assert got.returncode in (1, 2) and said in got.stderr, got.stderr
