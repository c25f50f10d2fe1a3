"""Sessions leave nothing behind, however they end."""

import collections
import os
import random
import signal

import pytest

from channels import Channels, Ended
from server import SLOW, descendants_of, read, wait_for


def kernel_pids(s):
    return [p for p in descendants_of(s.process("launcher"))
            if "holdcell_kernel" in read(f"/proc/{p}/cmdline") or "scripted" in read(f"/proc/{p}/cmdline")]


def drop_everything(s):
    for k in s.request("GET", "/api/kernels").json():
        assert s.delete_kernel(k["id"]) in (204, 404)


def lives(s, count, kill):
    """count sessions; in half of them something is killed with -9 midway. How many, by what was killed."""
    rng, killed = random.Random(7), collections.Counter()
    for i in range(count):
        kid = s.start_kernel("python3")
        victim = rng.choice(["kernel", "gateway", "launcher"]) if kill and i % 2 else None
        if i % 4 == 0:
            with Channels(s, kid) as c:
                assert c.run("1 + 1").result == "2"
        pid = {"kernel": lambda: (kernel_pids(s) or [0])[0], None: lambda: 0}.get(
            victim, lambda: s.process(victim))()
        if pid:
            old = pid
            os.kill(pid, signal.SIGKILL)
            killed[victim] += 1
            if victim != "kernel":
                s.wait_next(victim, old)
        assert s.delete_kernel(kid) in (204, 404)
    drop_everything(s)
    return killed


@pytest.mark.parametrize("count, kill", [
    (12, False),
    pytest.param(12 if SLOW == 1 else 6, True, marks=pytest.mark.guest),
    pytest.param(200, True, marks=pytest.mark.full),
], ids=["quiet", "with-kills", "200-with-kills"])
def test_sessions_leave_processes_descriptors_cgroups_mounts_and_folders_as_before(server_with, count, kill):
    s = server_with()
    lives(s, 2, False)                      # what is made once is made now
    wait_for(lambda: s.process("gateway") and s.process("launcher"))
    before = s.counters()
    killed = lives(s, count, kill)
    print(f"{count} sessions, killed: {dict(killed)}")
    assert sum(killed.values()) == (count // 2 if kill else 0)
    assert count < 100 or all(killed[what] > count // 10 for what in ("kernel", "gateway", "launcher"))

    def back():
        now = s.counters()
        return all(now[k] <= before[k] + (2 if k.endswith("_fds") else 0) for k in before)
    try:
        wait_for(back)
    except AssertionError:
        raise AssertionError(f"before {before}\nnow    {s.counters()}") from None


@pytest.mark.guest
def test_a_stopped_server_leaves_nothing(server_with):
    from server import cgroups_of
    s = server_with()
    slot = s.slot()
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        c.run("import subprocess; subprocess.Popen(['setsid', 'sleep', '1000'])")
    below = descendants_of(s.proc.pid)
    assert s.stop() == 0
    assert not [p for p in below if os.path.exists(f"/proc/{p}")]
    assert cgroups_of(slot) == []
    assert s.state not in read("/proc/self/mountinfo")


def test_sockets_dropped_at_any_moment_leave_the_gateway_as_before(server_with):
    s = server_with()
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        c.run("1")
    before = s.counters()
    for i in range(60):
        c = Channels(s, kid)
        if i % 3 == 0:
            c.start("print('x' * 1000)")
        if i % 2:
            c.ws.sock.close()
        else:
            c.close()
    wait_for(lambda: s.kernel(kid)["connections"] == 0)
    wait_for(lambda: s.counters()["gateway_fds"] <= before["gateway_fds"] + 40)   # 16 parked seats, the rest of 60 gone
