"""Homes and workspaces have their blocks for themselves: whoever else fills the disk, a session that fills its home meets
ENOSPC at its own size, and no file system that only says so is believed."""

import contextlib
import errno
import itertools
import os
import shutil
import subprocess
import tempfile
import threading

import pytest

from channels import Channels
from disks import free_mb, homes, homes_on_disk, loops_below
from server import BIN, Server, free_port, read, wait_for

MKFS = {"ext4": ["mkfs.ext4", "-q", "-F", "-m", "0"], "few-files": ["mkfs.ext4", "-q", "-F", "-m", "0", "-N", "256"],
        "btrfs": ["mkfs.btrfs", "-q", "-f"], "xfs": ["mkfs.xfs", "-q", "-f"],
        "no-fallocate": ["mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^extent,^64bit,^flex_bg"]}
SIZE = 64       # MiB of a home, and of a workspace


def skip_without(kind):
    """Where the machine lacks what a file system of that kind needs; a mount that fails elsewhere is a failure."""
    name = "ext4" if kind in ("no-fallocate", "few-files") else kind
    if shutil.which(MKFS[kind][0]) is None:
        pytest.skip(f"{MKFS[kind][0]} is not installed")
    for module in (name, "loop"):
        with contextlib.suppress(OSError):      # no modprobe: it is built in, or is not there
            subprocess.run(["modprobe", "-q", module], capture_output=True)
    if name not in read("/proc/filesystems").split():
        pytest.skip(f"this kernel has no {name}")
    if not os.path.exists("/dev/loop-control"):
        pytest.skip("no loop devices here")


@contextlib.contextmanager
def disk(kind, mb=1200):
    """A file system of that kind on a loop device: the folder where it is mounted."""
    skip_without(kind)
    top = tempfile.mkdtemp(prefix="holdcell-disk-", dir="/var/tmp")
    os.chmod(top, 0o755)
    image, point = top + "/image", top + "/disk"
    os.mkdir(point)
    try:
        subprocess.run(["truncate", "-s", f"{mb}M", image], check=True)
        subprocess.run(MKFS[kind] + [image], check=True)
        r = subprocess.run(["mount", "-o", "loop", image, point], capture_output=True, text=True)
        assert r.returncode == 0, f"{kind} is not mounted: {r.stderr}"
        os.chmod(point, 0o755)
        yield point
        wait_for(lambda: not loops_below(point))
        subprocess.run(["umount", point], check=True)
    finally:
        # After a failure it may be in use yet: at least nothing of it is in the way of those that come next.
        if os.path.ismount(point):
            subprocess.run(["umount", "-l", point], check=True)
        shutil.rmtree(top)


@contextlib.contextmanager
def server_on(point, *options):
    s = Server("--disk-mb", str(SIZE), "--disk-reserve-mb", "100", *options)
    s.state = point + "/state"
    try:
        yield s
    finally:
        if s.proc is not None:
            s.close()


def fill_up(point):
    """Everything that is left of the disk, as somebody else would."""
    with open(point + "/others", "wb", buffering=0) as f:
        try:
            for size in (1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while True:
                        f.write(os.urandom(size))
            os.fsync(f.fileno())
        except OSError:
            pass
    assert free_mb(point) < 8


# Writes until it is full, then all again, twice: copy on write would need room for that.
FILL = """
import errno, os
def fill(path):
    n = 0
    f = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        while True: n += os.write(f, os.urandom(1 << 16))
    except OSError as e:
        why = errno.errorcode[e.errno]
    for again in range(2):
        for at in range(0, n, 1 << 16):
            os.pwrite(f, os.urandom(min(1 << 16, n - at)), at)
        os.fsync(f)
    os.close(f)
    return why, n >> 20
"""


@pytest.mark.full
@pytest.mark.parametrize("kind", ["ext4", "btrfs", "xfs"])
def test_a_home_has_its_blocks_whoever_else_fills_the_disk(kind):
    with disk(kind) as point, server_on(point, "--home", "disk", "--workspaces", point + "/w", "--workspace-mb", str(SIZE)) as s:
        s.start()
        kid = s.start_kernel("python3")
        assert homes(s) == ["disk"]
        fill_up(point)
        with Channels(s, kid) as c:
            c.run(FILL + "kept = 4711")
            for path in ("f", "work/f"):
                why, n = eval(c.run(f"fill({path!r})").result)
                assert why == "ENOSPC" and SIZE - 3 <= n <= SIZE + 3, (path, why, n)
            assert c.run("os.unlink('f'); open('g', 'w').write('again'); kept").result == "4711", "no file system went read-only"
        assert "kernel_died" not in s.log()
        r = s.request("POST", "/api/kernels", {})
        assert r.status == 503 and "disk" in r.json()["message"], "the next one has no room, and is told so"


@pytest.mark.full
def test_a_workspace_that_was_copied_with_holes_gets_its_blocks_back():
    with disk("ext4") as point, server_on(point, "--home", "tmpfs", "--workspaces", point + "/w", "--workspace-mb", str(SIZE)) as s:
        s.start()
        kid = s.start_kernel("python3")
        with Channels(s, kid) as c:
            assert c.run("open('work/kept', 'w').write('4711')").result == "4"
        s.stop()
        wait_for(lambda: not loops_below(point))
        image = point + "/w/default.img"
        whole = os.stat(image)
        subprocess.run(["cp", "--sparse=always", image, image + ".copy"], check=True)
        os.rename(image + ".copy", image)
        os.chmod(image, 0o600)
        assert os.stat(image).st_blocks * 512 < whole.st_size // 2
        s.start()
        kid = s.start_kernel("python3")
        with Channels(s, kid) as c:
            assert c.run("open('work/kept').read()").result == "'4711'"
        assert os.stat(image).st_blocks * 512 >= whole.st_size
        assert s.delete_kernel(kid) == 204
        s.stop()
        wait_for(lambda: not loops_below(point))
        subprocess.run(["fallocate", "-d", image], check=True)       # holes again, and now no room
        s.start()
        fill_up(point)
        r = s.request("POST", "/api/kernels", {})
        assert r.status == 503 and "no room for the workspace" in r.json()["message"], r


def use_up_files(point):
    """All inodes of the disk, as somebody else would; the folder to remove."""
    top = point + "/others"
    os.mkdir(top)
    with pytest.raises(OSError) as full:
        for i in range(1 << 20):
            open(f"{top}/{i}", "x").close()
    assert full.value.errno == errno.ENOSPC and os.statvfs(point).f_ffree == 0 and free_mb(point) > 200
    return top


@pytest.mark.parametrize("home, why", [
    ("tmpfs", "the host has no room for another kernel: bind a socket for the kernel: No space left on device"),
    pytest.param("disk", "the host has no room for another session", marks=pytest.mark.full)], ids=["sockets", "homes"])
def test_a_state_directory_without_files_left_refuses_for_now_and_loses_no_kernel(home, why):
    with disk("few-files") as point, server_on(point, "--home", home) as s:
        s.start()
        kid = s.start_kernel("python3")
        others = use_up_files(point)
        for path, body in (("/api/kernels", {}), ("/api/sessions", {"path": "a.ipynb", "type": "notebook"})):
            r = s.request("POST", path, body)
            assert (r.status, r.json()["message"]) == (503, why)
            assert r.headers["Retry-After"] == str(r.json()["retry_after"]) == "5"
        with Channels(s, kid) as c:
            assert c.run("6 * 7").result == "42"
        assert s.request("GET", "/api/sessions").json() == [] and [m["id"] for m in s.request("GET", "/api/kernels").json()] == [kid]
        shutil.rmtree(others)
        for one in (s.start_kernel("python3"), kid):
            assert s.delete_kernel(one) == 204


@pytest.mark.full
def test_a_kernel_whose_restart_finds_no_files_left_waits_until_there_are_some():
    with disk("few-files") as point, server_on(point, "--home", "tmpfs") as s:
        s.start()
        kid = s.start_kernel("python3")
        others, over = use_up_files(point), threading.Event()

        def take_what_the_old_process_gives_back():
            for i in itertools.count(1 << 20):
                with contextlib.suppress(OSError):
                    open(f"{others}/{i}", "x").close()
                if over.is_set():
                    return
        taking = threading.Thread(target=take_what_the_old_process_gives_back)
        taking.start()
        try:
            def refused():
                """a restart that finds nothing left"""
                r = s.request("POST", f"/api/kernels/{kid}/restart", {})
                assert r.status in (200, 503), r
                return r if r.status == 503 else None
            r = wait_for(refused)
            assert r.json()["message"].startswith("the host has no room for another kernel: bind a socket")
            assert s.request("GET", f"/api/kernels/{kid}").json()["execution_state"] == "restarting"
        finally:
            over.set()
            taking.join()
        shutil.rmtree(others)
        with Channels(s, kid) as c:
            assert c.run("6 * 7").result == "42"


def test_a_file_system_that_promises_nothing_is_no_place_for_homes(tmp_path):
    says = "the file system promises no room (it has no fallocate)"
    with disk("no-fallocate", 400) as point:
        for options in (["--home", "disk"], ["--workspaces", point + "/w"]):
            argv = [BIN, "serve", "--listen", f"127.0.0.1:{free_port()}", "--no-auth", "--state-dir", point + "/s", *options]
            r = subprocess.run(argv, capture_output=True, text=True, timeout=120)
            assert r.returncode == 1 and f"option {options[0]}" in r.stderr and says in r.stderr, r
        with server_on(point) as s:
            s.start()
            assert not homes_on_disk(s) and says in s.log()
            s.start_kernel("python3")
            assert homes(s) == ["memory"]
