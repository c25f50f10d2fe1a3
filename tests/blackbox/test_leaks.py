"""Sessions leave nothing behind, however they end."""

import collections
import contextlib
import os
import random
import signal
import time

import pytest

from channels import Channels
from server import SLOW, assert_slot_is_left, descendants_of, read, uids_of_slot, wait_for

KINDS = ["kernel", "gateway", "launcher"]
START_CHILD = ("import subprocess; marker = 'kept'; child = subprocess.Popen(['sleep', '1000'], start_new_session=True); "
               "child.poll() is None")


def assert_back(s, before):
    """Nothing more than before, once every connection is closed."""
    wait_for(lambda: s.process("gateway") and s.process("launcher"))

    def back():
        now = s.counters()
        return all(now[k] <= before[k] for k in before)
    try:
        wait_for(back)
    except AssertionError:
        raise AssertionError(f"before {before}\nnow    {s.counters()}") from None


def quiet_life(s, runs):
    kid = s.start_kernel("python3")
    if runs:
        with Channels(s, kid) as c:
            assert c.run("1 + 1").result == "2"
    assert s.delete_kernel(kid) == 204


def quiet_lives(s, count):
    for i in range(count):
        quiet_life(s, i % 4 == 0)
    assert s.request("GET", "/api/kernels").json() == []


def pid_of(s, kind):
    if kind != "kernel":
        return s.process(kind)
    pids = s.kernels()
    assert len(pids) == 1, pids
    return pids[0]


def killed_while_starting(s, kind):
    """The kernel has not answered yet when one of the three is killed: it may have lived, or not."""
    kid = s.start_kernel("python3")
    pid, *_ = wait_for(lambda: s.kernels() if kind == "kernel" else [p for p in [s.process(kind)] if p])
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    if kind != "kernel":
        s.wait_next(kind, pid)
    assert s.delete_kernel(kid) in (204, 404)
    wait_for(lambda: s.request("GET", "/api/kernels").json() == [])


def killed_life(s, kind):
    """Something runs below its kernel when one of the three is killed: what is left of it is what must be."""
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run(START_CHILD).result == "True"
    pid = pid_of(s, kind)
    assert pid, f"no {kind} is there to be killed"
    os.kill(pid, signal.SIGKILL)
    if kind != "kernel":
        s.wait_next(kind, pid)
    if kind == "gateway":                   # the next one adopted it, with all that runs in it
        with Channels(s, kid) as c:
            assert c.run("marker, child.poll()").result == "('kept', None)"
    # A dead kernel comes back under its id; of a dead launcher's sandboxes there is none left.
    assert s.delete_kernel(kid) == (404 if kind == "launcher" else 204)


def lives_with_kills(s, count):
    """count lives, in half of which something is killed with -9; returns how often what was."""
    kinds = [KINDS[i % len(KINDS)] for i in range(count // 2)]
    random.Random(7).shuffle(kinds)
    killed = collections.Counter()
    for i, kind in enumerate(kinds):
        quiet_life(s, i % 2 == 0)
        # Every third one of each kind: those come in turns.
        (killed_while_starting if killed[kind] % 3 == 1 else killed_life)(s, kind)
        killed[kind] += 1
    assert s.request("GET", "/api/kernels").json() == []
    return killed


def settled(s):
    """The counters when what is made once is made, and the connections of those lives are closed."""
    quiet_lives(s, 2)

    def still():
        """counters that stand still"""
        first = s.counters()
        for _ in range(4):
            time.sleep(0.2)
            if s.counters() != first:
                return None
        return first
    return wait_for(still)


@pytest.mark.full
def test_quiet_sessions_leave_all_as_before_in_processes_that_lived_through_them(server_with):
    s = server_with()
    before = settled(s)
    old = s.process("launcher"), s.process("gateway")
    quiet_lives(s, 200)
    assert_back(s, before)
    assert (s.process("launcher"), s.process("gateway")) == old


@pytest.mark.parametrize("count, after", [
    pytest.param(12 if SLOW == 1 else 6, 4, marks=pytest.mark.guest),
    pytest.param(200, 50, marks=pytest.mark.full),
], ids=["few", "200"])
def test_sessions_with_kills_leave_processes_descriptors_cgroups_mounts_and_folders_as_before(server_with, count, after):
    s = server_with()
    before = settled(s)
    killed = lives_with_kills(s, count)
    print(f"{count} sessions, killed: {dict(killed)}")
    assert sum(killed.values()) == count // 2 and set(killed) == set(KINDS), killed
    assert_back(s, before)
    # Launcher and gateway are younger than the last kills, and hold less than the first ones did.
    young = settled(s)
    quiet_lives(s, after)
    assert_back(s, young)


@pytest.mark.guest
def test_a_stopped_server_leaves_nothing(server_with):
    s = server_with()
    slot = s.slot()
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        c.run("import subprocess; subprocess.Popen(['setsid', 'sleep', '1000'])")
    below = descendants_of(s.proc.pid)
    assert below and uids_of_slot(slot)
    assert s.stop() == 0
    assert not [p for p in below if os.path.exists(f"/proc/{p}")]
    assert_slot_is_left(slot, s.state)
    assert s.state not in read("/proc/self/mountinfo")
    assert s.loops() == []


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
