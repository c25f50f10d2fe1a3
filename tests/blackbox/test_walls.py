"""The walls, read from inside a cell and from outside."""

import os

import pytest

from channels import Channels
from server import read

LOOK = r"""
import os, json, re
s = dict(l.split(':\t', 1) for l in open('/proc/self/status').read().splitlines() if ':\t' in l)
json.dumps({
 'uid': os.getuid(), 'euid': os.geteuid(), 'cap': s['CapEff'], 'bnd': s['CapBnd'],
 'nnp': s['NoNewPrivs'], 'seccomp': s['Seccomp'],
 'pid': os.getpid(),
 'processes': [[int(p), os.stat('/proc/' + p).st_uid, open(f'/proc/{p}/cmdline').read().split('\0')[:-1]]
               for p in os.listdir('/proc') if p.isdigit()],
 'net': sorted(os.listdir('/proc/self/net') and [l.split(':')[0].strip() for l in open('/proc/self/net/dev').read().splitlines()[2:]]),
 'home': os.path.expanduser('~'), 'cwd': os.getcwd(), 'root': sorted(os.listdir('/')),
 'env': dict(os.environ), 'mountinfo': open('/proc/self/mountinfo').read(), 'cgroup': open('/proc/self/cgroup').read(),
 'passwd': open('/etc/passwd').read(),
})
"""


@pytest.fixture(scope="module")
def inside(shared):
    import json
    kid = shared.start_kernel("python3")
    with Channels(shared, kid) as c:
        run = c.run(LOOK)
        assert run.status == "ok", run.messages
        yield json.loads(eval(run.result))
    shared.delete_kernel(kid)


@pytest.mark.guest
def test_the_kernel_is_an_ordinary_user_without_any_power(inside):
    assert inside["uid"] == inside["euid"] == 1000
    assert int(inside["cap"], 16) == 0 and int(inside["bnd"], 16) == 0
    assert inside["nnp"] == "1" and inside["seccomp"] == "2"


@pytest.mark.guest
def test_the_kernel_sees_only_its_own_processes_and_only_lo(inside):
    own, uid, words = inside["processes"][0]            # pid 1, of another user, is not even seen
    assert len(inside["processes"]) == 1, inside["processes"]
    assert own == inside["pid"] and uid == 1000
    assert os.path.basename(words[0]).startswith("python3") and "holdcell_kernel" in words, words
    assert inside["net"] == ["lo"]


@pytest.mark.guest
def test_no_path_of_the_host_shows_in_the_mount_table_or_the_cgroup(inside, shared):
    for text in (inside["mountinfo"], inside["cgroup"]):
        assert "/dev/vd" not in text and "/dev/sd" not in text
        assert shared.dir not in text and shared.state not in text
        assert "holdcell-" not in text
    assert "root:" not in inside["passwd"] or "/root" not in inside["passwd"]


def test_the_environment_holds_nothing_of_the_server(inside, shared):
    text = str(inside["env"])
    assert shared.token not in text and inside["env"]["HOME"] == "/home/user"
    for name in os.environ:
        if name not in ("PATH", "HOME", "LANG", "USER", "LOGNAME", "TERM", "TZ", "SHELL", "PWD", "TMPDIR",
                        "OPENBLAS_NUM_THREADS", "PYTHONDONTWRITEBYTECODE"):
            assert name not in inside["env"], name


@pytest.mark.guest
def test_the_root_is_read_only_and_home_is_writable(chan):
    run = chan.run("import os, errno\nout = {}\n"
                   "for p in ('/x', '/usr/x', '/etc/x', '/dev/x', '/proc/x'):\n"
                   "    try: open(p, 'w'); out[p] = 'written'\n"
                   "    except OSError as e: out[p] = errno.errorcode[e.errno]\n"
                   "open('ok.txt', 'w').write('x'); open('/tmp/ok', 'w').write('x'); out")
    out = eval(run.result)
    # Of proc it is the file system that has no place for it; for all others a wall, before anybody asks who the user is.
    assert out.pop("/proc/x") in ("ENOENT", "EACCES"), out
    assert out == dict.fromkeys(("/x", "/usr/x", "/etc/x", "/dev/x"), "EROFS")


@pytest.mark.guest
def test_no_file_of_the_host_is_there(chan, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("host secret")
    secret.chmod(0o644)
    paths = [str(secret), "/etc/shadow", "/root", "/var/log", "/var/lib", "/run/holdcell", "/sys", "/boot"]
    run = chan.run(f"import os\n[p for p in {paths!r} if os.path.exists(p)]")
    assert run.result == "[]"


FULL_CONNECTION = """
import os, socket

def setting(name):
    return [int(n) for n in open('/proc/sys/net/ipv4/' + name).read().split()]

with socket.create_server(('127.0.0.1', 0)) as server:
    client = socket.create_connection(server.getsockname())
    peer = server.accept()[0]
    client.setblocking(False)
    sent = 0
    try:
        while True:
            sent += client.send(bytes(65536))
    except BlockingIOError:
        pass
(setting('tcp_rmem'), setting('tcp_wmem'), sent)
"""


@pytest.mark.guest
def test_a_connection_that_nobody_reads_keeps_less_than_the_host_lets_it(chan):
    of_host = [read(f"/proc/sys/net/ipv4/{name}") for name in ("tcp_rmem", "tcp_wmem")]
    received, sent, bytes_kept = eval(chan.run(FULL_CONNECTION).result)
    assert received[2] <= 512 << 10 and sent[2] <= 512 << 10
    assert bytes_kept <= 2 << 20
    assert of_host == [read(f"/proc/sys/net/ipv4/{name}") for name in ("tcp_rmem", "tcp_wmem")]


@pytest.mark.guest
def test_the_memory_limit_is_hit_for_real(server_with):
    s = server_with("--memory-mb", "400", "--disk-mb", "32", "--tmp-mb", "32")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        run = c.run("import subprocess, sys\n"
                    "child = subprocess.run([sys.executable, '-c', 'x = bytearray(600 << 20)'], stderr=subprocess.PIPE, text=True)\n"
                    "child.returncode == -9 or child.returncode == 1 and 'MemoryError' in child.stderr or child")
        assert run.result == "True", run.result
        assert c.run("x = bytearray(100 << 20); len(x)").result == str(100 << 20)


@pytest.mark.guest
def test_the_pids_limit_is_hit_for_real(server_with):
    s = server_with("--pids", "40")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        run = c.run("import os, errno, signal\nkids = []\n"
                    "try:\n    while len(kids) < 200:\n        p = os.fork()\n"
                    "        if p == 0:\n            signal.pause(); os._exit(0)\n        kids.append(p)\n"
                    "except OSError as e:\n    why = errno.errorcode[e.errno]\n"
                    "for p in kids: os.kill(p, 9); os.waitpid(p, 0)\n(why, 5 < len(kids) < 40)")
        assert run.result == "('EAGAIN', True)"


@pytest.mark.guest
def test_the_cpu_limit_holds(server_with):
    s = server_with("--cpus", "0.5")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        run = c.run("import time\nw, p = time.monotonic(), time.process_time()\n"
                    "while time.monotonic() - w < 4: pass\n(time.process_time() - p) / (time.monotonic() - w)")
        assert float(run.result) < 0.75


@pytest.mark.guest
def test_a_full_home_gives_enospc_and_the_kernel_lives(server_with):
    s = server_with("--disk-mb", "48", "--inodes", "4000")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        run = c.run("import errno\nn = 0\ntry:\n    with open('big', 'wb') as f:\n"
                    "        while n < 200:\n            f.write(bytes(1 << 20)); f.flush(); n += 1\n"
                    "except OSError as e: why = errno.errorcode[e.errno]\n(why, n <= 48)")
        assert run.result == "('ENOSPC', True)"
        run = c.run("import os\nos.unlink('big')\nmade = 0\ntry:\n    while made < 5000:\n"
                    "        open(f'f{made}', 'w').close(); made += 1\nexcept OSError as e: why = errno.errorcode[e.errno]\n(why, 100 < made <= 4016)")
        assert run.result == "('ENOSPC', True)"
        assert c.run("7").result == "7"
