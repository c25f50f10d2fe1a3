"""Homes of sessions: on the host's disk or in memory, as large as they say, gone with the session."""

import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import hidden
from channels import Channels
from disks import disk_of_our_own, free_mb, homes, homes_on_disk, loops_below, mounts_of_host, no_loops
from server import BIN, Server, free_port, read, wait_for


@pytest.fixture
def on_disk(server_with):
    """Factory of servers with homes on disk, by their default; skips where the machine has none."""
    def make(*options, **kw):
        s = server_with(*options, **kw)
        if not homes_on_disk(s):
            pytest.skip("no homes on disk here: " + next(x for x in s.log().splitlines() if "homes_in_memory" in x))
        return s
    return make


FILL = """
import errno, os
def fill(path, most):
    n = 0
    try:
        with open(path, "wb", buffering=0) as f:
            while n < most:
                n += f.write(bytes(1 << 20)) / (1 << 20)
    except OSError as e:
        return errno.errorcode[e.errno], round(n)
def make(folder, most):
    os.makedirs(folder)
    try:
        for i in range(most):
            open(f"{folder}/{i}", "w").close()
    except OSError as e:
        return errno.errorcode[e.errno], i
"""


@pytest.mark.guest
def test_a_home_larger_than_the_memory_is_full_by_enospc_and_the_kernel_lives(on_disk):
    s = on_disk("--memory-mb", "256", "--disk-mb", "400", "--tmp-mb", "32", "--inodes", "3000")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        c.run(FILL + "secret = 4711")
        why, n = eval(c.run("fill('big', 600)").result)
        assert why == "ENOSPC" and 390 < n <= 402
        c.run("os.unlink('big')")
        why, n = eval(c.run("make('many', 5000)").result)
        assert why == "ENOSPC" and 2500 < n <= 3100
        assert c.run("import shutil; shutil.rmtree('many'); secret").result == "4711"
        # What was written comes back from the disk when memory kept only some of it.
        assert c.run("piece = bytes(range(256)) * 4096\n"
                     "with open('part', 'wb') as f:\n    for i in range(350): f.write(piece)\n"
                     "with open('part', 'rb') as f:\n    same = all(f.read(1 << 20) == piece for i in range(350))\n"
                     "same").result == "True"
    assert "out_of_memory" not in s.log() and s.delete_kernel(kid) == 204


@pytest.mark.guest
def test_a_session_sees_neither_device_nor_host_path(on_disk):
    s = on_disk("--disk-mb", "50")              # what others gave back may not be there yet
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        table = eval(c.run("open('/proc/self/mountinfo').read()").result)
        assert s.state not in table and "loop" not in table and "holdcell" not in table.replace("opt/holdcell/runtime", "")
        line, = [x for x in table.splitlines() if " /home/user " in x]
        assert " rw,nosuid,nodev" in line and " - ext4 " in line
        assert c.run("import os; sorted(x for x in os.listdir('.') if x[0] != '.'), os.stat('outputs').st_uid, "
                     "os.stat('.').st_uid, os.getuid(), os.access('outputs', os.W_OK)").result == "(['outputs'], 1000, 1000, 1000, True)"
        assert "ext4" not in c.run("import glob; glob.glob('/proc/fs/*/*'), os.path.exists('/sys')").result


@pytest.mark.guest
def test_a_delete_gives_the_space_back_without_writing_it_first(on_disk, tmp_path):
    on_disk()                                   # or not at all
    with disk_of_our_own(tmp_path, 1500) as disk:
        s = Server("--disk-mb", "500")
        s.state = disk + "/state"
        try:
            s.start()
            before = free_mb(disk)
            kid = s.start_kernel("python3")
            assert before - free_mb(disk) > 400     # taken at once: nobody can take it away
            assert len(loops_below(s.state)) == 1
            with Channels(s, kid) as c:
                c.run("open('f', 'wb').write(bytes(300 << 20))")
            began = time.monotonic()
            assert s.delete_kernel(kid) == 204
            took = time.monotonic() - began
            no_loops(s)
            wait_for(lambda: before - free_mb(disk) < 200)
            assert os.listdir(s.state + "/gateway") is not None and not [n for n in os.listdir(s.state) if "home" in n]
            print(f"deleted in {took:.2f} s")
        finally:
            s.close()


@pytest.mark.guest
def test_nothing_is_left_when_the_launcher_is_killed(on_disk):
    mounts = mounts_of_host()
    s = on_disk("--disk-mb", "100")
    kids = [s.start_kernel("python3") for _ in range(3)]
    assert len(loops_below(s.state)) == 3
    with Channels(s, kids[0]) as c:
        c.run("open('f', 'wb').write(bytes(50 << 20))")
    old = s.process("launcher")
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: s.process("launcher") not in (0, old) and s.answers())
    no_loops(s)
    s.start_kernel("python3")
    assert len(loops_below(s.state)) == 1
    s.stop()
    no_loops(s)
    assert mounts_of_host() == mounts


@pytest.mark.full
def test_many_homes_come_and_go(on_disk, kernel_path):
    kernel_path.add("quick", ["sleep", "1000"])
    s = on_disk("--disk-mb", "64", "--kernel-path", kernel_path.path)
    descriptors = f"/proc/{s.process('launcher')}/fd"
    before = len(os.listdir(descriptors))
    for _ in range(30):
        r = s.request("POST", "/api/kernels", {"name": "python3"})
        assert r.status == 201 and s.delete_kernel(r.json()["id"]) == 204
    no_loops(s)
    # The last session is taken apart behind the answer to its deletion. One more: the template of homes.
    wait_for(lambda: len(os.listdir(descriptors)) <= before + 1)


# --- choices -----------------------------------------------------------------------------

def disk_of(s, kid):
    return s.request("GET", f"/api/kernels/{kid}/limits").json()["disk_mb"]


def kind_inside(s, kid):
    with Channels(s, kid) as c:
        return c.run("next(x.split()[2] for x in open('/proc/mounts') if x.split()[1] == '/home/user')").result.strip("'")


def test_memory_when_it_is_asked_for(server_with):
    s = server_with("--home", "tmpfs")
    kid = s.start_kernel("python3")
    assert homes(s) == ["memory"] and kind_inside(s, kid) == "tmpfs" and disk_of(s, kid) == 512
    kid = s.start_kernel("python3", limits={"memory_mb": 256})
    assert disk_of(s, kid) == 64
    assert "homes_in_memory" not in s.log() and not loops_below(s.state)
    r = s.request("POST", "/api/kernels", {"limits": {"disk_mb": 513}})
    assert r.status == 400 and "limits.disk_mb" in r.json()["message"]


@pytest.fixture
def small_disk():
    """Factory: a server whose state lies on a disk of its own, which nobody else fills or empties."""
    top = tempfile.mkdtemp(prefix="holdcell-disk-", dir="/var/tmp")
    os.chmod(top, 0o755)
    image, point, made = top + "/image", top + "/disk", []
    os.mkdir(point)
    subprocess.run(["truncate", "-s", "2G", image], check=True)
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-F", "-m", "0", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, point]).returncode != 0:
        shutil.rmtree(top)
        pytest.skip("no loop device here")

    def make(*options):
        s = Server(*options)
        s.state = point + "/state"
        made.append(s)
        s.start()
        if not homes_on_disk(s):
            pytest.skip("no homes on disk here")
        return s
    yield make
    for s in made:
        s.close()
    wait_for(lambda: not loops_below(point))
    subprocess.run(["umount", point], check=True)
    shutil.rmtree(top)


def test_without_room_on_the_disk_homes_are_in_memory(small_disk):
    s = small_disk("--disk-reserve-mb", "1200")     # of 2 GiB
    kid = s.start_kernel("python3")
    assert homes(s) == ["memory"] and kind_inside(s, kid) == "tmpfs" and disk_of(s, kid) == 512
    assert s.log().count("event=homes_in_memory") == 1
    kid = s.start_kernel("python3", limits={"disk_mb": 200})     # which fits
    assert homes(s)[-1] == "disk" and disk_of(s, kid) == 200
    r = s.request("POST", "/api/kernels", {"limits": {"disk_mb": 900}})    # which does not, and is meant
    assert r.status == 503 and "disk" in r.json()["message"] and int(r.headers["Retry-After"]) > 0


def test_disk_alone_is_refused_without_room_and_comes_back(small_disk):
    s = small_disk("--home", "disk", "--disk-mb", "600", "--disk-reserve-mb", "800")
    kid = s.start_kernel("python3")
    wait_for(lambda: s.request("GET", "/readyz").status == 503)
    r = s.request("POST", "/api/kernels")
    assert r.status == 503 and "no disk left" in r.json()["message"] and int(r.headers["Retry-After"]) > 0
    assert "event=admission_closed lack=disk" in s.log() and "lack of disk" in s.log()
    assert s.delete_kernel(kid) == 204
    wait_for(lambda: s.request("GET", "/readyz").status == 200)
    wait_for(lambda: s.request("POST", "/api/kernels").status == 201)


def take_loop_devices(s):
    """As when others use all that a container's /dev has."""
    for node in glob.glob(f"/proc/{s.process('launcher')}/root/dev/loop[0-9]*"):
        os.unlink(node)


@pytest.mark.full
def test_with_no_loop_device_left_homes_are_in_memory(on_disk):
    s = on_disk("--disk-mb", "20", prepare=hidden.static_dev())
    s.start_kernel("python3")
    take_loop_devices(s)
    kid = s.start_kernel("python3")
    s.start_kernel("python3")
    assert homes(s) == ["disk", "memory", "memory"] and kind_inside(s, kid) == "tmpfs" and disk_of(s, kid) == 20
    line, = [x for x in s.log().splitlines() if "event=homes_in_memory" in x]     # told once
    assert "open /dev/loop" in line


def test_disk_alone_waits_for_a_loop_device(on_disk):
    s = on_disk("--home", "disk", "--disk-mb", "20", prepare=hidden.static_dev())
    take_loop_devices(s)
    r = s.request("POST", "/api/kernels")
    assert r.status == 503 and "no room" in r.json()["message"] and int(r.headers["Retry-After"]) > 0, r
    assert "event=session_not_built" in s.log() and not loops_below(s.state)


@pytest.fixture
def in_memory():
    """A state directory that is memory."""
    if not os.path.isdir("/dev/shm"):
        pytest.skip("there is no /dev/shm")
    path = tempfile.mkdtemp(prefix="holdcell-test-", dir="/dev/shm")
    os.chmod(path, 0o755)
    yield path + "/state"
    shutil.rmtree(path)


def test_a_state_directory_in_memory_is_no_disk(in_memory, server_with):
    got = subprocess.run([BIN, "serve", "--listen", f"127.0.0.1:{free_port()}", "--no-auth", "--state-dir", in_memory,
                          "--home", "disk"], capture_output=True, text=True, timeout=60)
    assert got.returncode == 1 and "option --home disk: the state directory is in memory" in got.stderr
    s = Server()
    s.state = in_memory
    s.start()
    try:
        assert "event=homes_in_memory" in s.log()
        kid = s.start_kernel("python3")
        assert homes(s) == ["memory"] and disk_of(s, kid) == 512
    finally:
        s.close()


@pytest.mark.full
def test_homes_of_kept_kernels_stay_and_new_ones_are_as_the_new_server_says(on_disk):
    s = on_disk("--on-exit", "keep", "--disk-mb", "100")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        c.run("open('kept', 'w').write('kept')")
    s.stop()
    assert len(loops_below(s.state)) == 1
    s.options = ["--on-exit", "stop", "--home", "tmpfs"]
    s.start()
    with Channels(s, kid) as c:
        assert c.run("open('kept').read()").result == "'kept'"
    s.start_kernel("python3")
    assert homes(s) == ["disk", "memory"]
    s.stop()
    no_loops(s)
