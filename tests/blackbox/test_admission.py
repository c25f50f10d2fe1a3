"""A host without room: sessions are refused in time, those that run are left alone, and it passes."""

import mmap
import os
import signal

import pytest

from channels import Channels
from server import cgroups_of, children_of, read, wait_for
from test_metrics import Metrics

FULL = ("--memory-reserve-mb", str(1 << 24))        # 16 TiB
MIB = 1 << 20


def available():
    return int(read("/proc/meminfo").split("MemAvailable:")[1].split()[0]) << 10


def has_room(server):
    r = server.request("GET", "/readyz", token=False)
    assert (r.status == 200) == (r.json()["checks"]["room"] == "ok"), r
    return r.status == 200


def assert_busy(r):
    assert r.status == 503, r
    assert set(r.json()) == {"reason", "message", "retry_after"} and "memory" in r.json()["message"]
    assert r.json()["retry_after"] == int(r.headers["Retry-After"]) >= 1
    assert r.headers["Content-Type"] == "application/json"


def test_a_host_that_is_full_refuses_by_every_route(server_with):
    s = server_with(*FULL, "--prespawn", "2")
    assert_busy(s.request("POST", "/api/kernels", {}))
    assert_busy(s.request("POST", "/api/kernels", {"limits": {"memory_mb": 64}}))
    assert_busy(s.request("POST", "/api/sessions", {"path": "a", "type": "console", "kernel": {"name": "python3"}}))
    assert s.request("GET", "/api/kernels").json() == [] == s.request("GET", "/api/sessions").json()
    assert s.request("POST", "/api/kernels", {"name": "none"}).status == 500       # that would not pass
    wait_for(lambda: not has_room(s))
    m = wait_for(lambda: m if (m := Metrics(s))("admissions_refused_total") >= 5 else None)    # two of them prespawned
    assert m("admission_open") == 0 and m("ready") == 0 and m("memory_reserve_bytes") == 1 << 44
    assert abs(m("host_memory_available_bytes") - available()) < available() / 2 and m("sessions_limit") == 1024
    assert s.log().count("event=admission_closed lack=memory") == 1
    assert "event=prespawn_waits kernels=0 of=2" in s.log()
    assert s.request("GET", "/healthz", token=False).status == 200


def test_limits_that_stay_are_403_also_then(server_with):
    s = server_with("--max-kernels", "1", "--memory-reserve-mb", "0")
    s.start_kernel("python3")
    r = s.request("POST", "/api/kernels", {})
    assert r.status == 403 and r.headers["Retry-After"] is None
    m = wait_for(lambda: m if (m := Metrics(s))("memory_promised_bytes") == 0 else None)
    assert m("memory_reserve_bytes") == 0 and m("admission_open") == 1


def test_the_reserve_without_an_option(shared):
    total = int(read("/proc/meminfo").split("MemTotal:")[1].split()[0]) << 10
    m = wait_for(lambda: m if (m := Metrics(shared))("host_memory_available_bytes") > 0 else None)
    assert m("memory_reserve_bytes") <= max(512 * MIB, total / 20)
    assert m("admission_open") == 1


def of_all_sessions(server):
    """Limits of the group that all sessions of the server are in: (memory, processes); None: no limit."""
    memory, sockets, pids = 1 << 62, 0, "max"
    for d in cgroups_of(server.slot()):
        if os.path.basename(d) == "s":
            text = read(f"{d}/memory.max") or read(f"{d}/memory.limit_in_bytes")
            memory = int(text) if text and text.strip() != "max" else memory
            sockets += int(read(f"{d}/memory.kmem.tcp.limit_in_bytes") or 0)    # beside the other, with v1
            pids = (read(f"{d}/pids.max") or pids).strip()
    return memory + sockets if memory < 1 << 60 else None, int(pids) if pids != "max" else None


def most_tasks(server):
    """Processes that the host, and the groups which the server was started in, let there be."""
    found = [int(read("/proc/sys/kernel/threads-max")), int(read("/proc/sys/kernel/pid_max"))]
    for d in cgroups_of(server.slot()):
        if os.path.basename(d) == "s":
            while (d := os.path.dirname(d)) != "/":
                found += [int(pids) for pids in read(f"{d}/pids.max").split() if pids != "max"]
    return min(found)


@pytest.mark.guest
def test_all_sessions_together_leave_the_reserve(server_with):
    total = int(read("/proc/meminfo").split("MemTotal:")[1].split()[0]) << 10
    s = server_with("--memory-reserve-mb", "300")
    memory, tasks = of_all_sessions(s)
    most = most_tasks(s)
    assert total - 301 * MIB < memory <= total - 300 * MIB
    assert most // 2 < tasks < most - most // 25
    assert f"event=limit_of_all_sessions memory={memory} " in s.log()
    s = server_with("--memory-reserve-mb", "0")
    assert of_all_sessions(s) == (None, tasks)


class Ballast:
    """Memory that is taken from the host for a while."""

    def __init__(self):
        self.blocks = []

    def take(self, size):
        block = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
        self.blocks.append(block)

    def drop(self):
        while self.blocks:
            self.blocks.pop().close()


@pytest.fixture
def ballast():
    b = Ballast()
    yield b
    b.drop()


def fill(server, ballast, step):
    """Takes memory until the server has no room."""
    for _ in range(20):
        ballast.take(step)
        for _ in range(25):
            if not has_room(server):
                return
            signal.sigtimedwait([], 0.1)
    raise AssertionError("the host does not fill up")


@pytest.mark.full
def test_prespawned_kernels_wait_for_room(server_with, ballast):
    margin = min(1024 * MIB, available() // 3)
    reserve = (available() - margin) // MIB
    ballast.take(margin)
    s = server_with("--memory-reserve-mb", str(reserve), "--prespawn", "2")
    if "prespawn_waits" not in s.log():         # others gave memory back: nothing to be seen
        wait_for(lambda: "event=prespawned" in s.log() or "prespawn_waits" in s.log())
    ballast.drop()
    wait_for(lambda: len(s.request("GET", "/api/kernels").json()) == 2)
    wait_for(lambda: "event=prespawned kernels=2 failed=0" in s.log())


def inits(server):
    """Pids of the sandboxes' first processes."""
    return [p for p in children_of(server.process("launcher")) if read(f"/proc/{p}/cmdline").startswith("holdcell-init")]


def lose_sandbox(server, kid, ballast, step):
    """Until the kernel waits for room. What others on this machine give back just then may be room for it after all: it
    has another sandbox then, which is lost as well."""
    while True:
        old, = inits(server)
        os.kill(old, signal.SIGKILL)
        wait_for(lambda: set(inits(server)) - {old} or "start failed" in server.kernel(kid).get("reason", ""))
        if not set(inits(server)) - {old}:
            return
        server.wait_state(kid, "idle")
        fill(server, ballast, step)


@pytest.mark.full
def test_room_comes_and_goes(server_with, ballast):
    margin = min(1024 * MIB, available() // 3)
    s = server_with("--memory-reserve-mb", str((available() - margin) // MIB))
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("x = 41").status == "ok"
        fill(s, ballast, margin)
        # What the lost sandbox gives back, or others on this machine, is not enough.
        ballast.take(margin if available() > 8 * margin else margin // 4)
        assert_busy(s.request("POST", "/api/kernels", {}))
        assert c.run("x + 1").result == "42"                # who is in stays
        assert s.restart(kid).status == 200                 # and needs no new sandbox
        assert c.run("1").result == "1"

        # The sandbox is lost: its kernel waits until there is room again.
        lose_sandbox(s, kid, ballast, margin // 4)
        assert s.kernel(kid)["execution_state"] == "restarting"
        assert_busy(s.restart(kid))
        ballast.drop()
        wait_for(lambda: has_room(s))
        s.wait_state(kid, "idle")
        assert c.run("2").result == "2"
    assert s.log().count("event=admission_open") >= 1
    other = s.start_kernel("python3")
    assert s.delete_kernel(other) == s.delete_kernel(kid) == 204
