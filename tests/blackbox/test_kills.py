"""kill -9 of any process of a server at any moment of a session's life: everything is swept.

HOLDCELL_CYCLES=N HOLDCELL_SEED=S ... pytest test_kills.py: another number of cycles, another order."""

import collections
import http.client
import os
import random
import signal
import threading
import time

import pytest

from channels import Channels, Ended
from server import SLOW, assert_slot_is_left, descendants_of, read, wait_for
from test_keep import Kept, stop_command
from test_supervision import alive

THREE = ["kernel", "gateway", "launcher"]
VICTIMS = THREE * 3 + ["init", "child", "supervisor", "keeper", "any"]
POINTS = ["create", "start", "run", "restart", "delete"]
CYCLES = int(os.environ.get("HOLDCELL_CYCLES", "500"))
SEED = int(os.environ.get("HOLDCELL_SEED", "11"))
SERVED = (OSError, http.client.HTTPException)       # what a request meets when its server dies


def words_of(pid):
    return read(f"/proc/{pid}/cmdline").split("\0")


def named(s, what):
    """Pids of the server's processes of this kind."""
    launcher = s.process("launcher")
    if what == "supervisor":
        return [s.proc.pid]
    if what in ("launcher", "gateway"):
        return [p for p in [s.process(what)] if p]
    inside = descendants_of(launcher) if launcher else []
    if what == "kernel":
        return [p for p in inside if any("holdcell_kernel" in w or "scripted-kernel" in w for w in words_of(p))]
    if what == "init":
        return [p for p in inside if os.path.basename(words_of(p)[0]) == "holdcell-init"]
    if what == "child":
        return [p for p in inside if words_of(p)[0] == "sleep"]
    return inside + [p for p in (launcher, s.proc.pid) if p]


class Storm:
    def __init__(self, s, rng):
        self.s, self.rng = s, rng
        self.killed = collections.Counter()     # by what was meant and where: of each session at most one
        self.kinds = collections.Counter()      # by what the process really was

    def quietly(self, request, *args):
        """A request on its way, whose server may die meanwhile."""
        def ask():
            try:
                request(*args)
            except SERVED + (AssertionError,):  # or an error that says what died
                pass
        t = threading.Thread(target=ask, daemon=True)
        t.start()
        return t

    def kill(self, what, where):
        pids = named(self.s, what)
        if not pids:
            return
        pid = self.rng.choice(pids)
        kind = next((k for k in THREE + ["init", "child", "supervisor"] if pid in named(self.s, k)), "other")
        # What goes along: until it is gone the old gateway may answer once more.
        after = {self.s.proc.pid: ("launcher", "gateway"), self.s.process("launcher"): ("gateway",)}.get(pid, ())
        doomed = [pid] + [p for p in map(self.s.process, after) if p]
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.killed[f"{what} at {where}"] += 1
        self.kinds[kind] += 1
        wait_for(lambda: self.s.proc.poll() is not None or pid != self.s.proc.pid)
        wait_for(lambda: not any(map(alive, doomed)))

    def kill_keeper(self):
        """The server ends and leaves its kernels to a keeper, which dies, before or while the next server comes."""
        s = self.s
        assert s.stop() == 0
        try:
            keeper = s.keeper()
        except (IndexError, ValueError):
            return
        if not alive(keeper) or "launcher" not in words_of(keeper)[0]:
            return
        if self.rng.random() < 0.5:
            s.spawn()
            time.sleep(self.rng.random() * 0.2)
        try:
            os.kill(keeper, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.killed["keeper"] += 1
        self.kinds["keeper"] += 1

    def recover(self):
        """A server that answers, and holds no kernel."""
        s = self.s

        def empty():
            """a server without kernels"""
            if s.proc.poll() is not None:
                s.start()
            try:
                for k in s.request("GET", "/api/kernels").json():
                    s.delete_kernel(k["id"])
                return s.request("GET", "/api/kernels").json() == []
            except SERVED:
                return False
        wait_for(empty)

    def start(self, python):
        return self.s.start_kernel("python3" if python else "scripted")

    def run_code(self, kid, python):
        """Something runs in it, below it too."""
        with Channels(self.s, kid) as c:
            if python:
                c.run("import subprocess; p = subprocess.Popen(['sleep', '1000'], start_new_session=True)")
                c.start("import time; time.sleep(1000)")
            else:
                c.start("sleep 100000")

    def cycle(self):
        s, rng = self.s, self.rng
        victim, python = rng.choice(VICTIMS), rng.random() < 0.25
        point = "run" if victim in ("child", "keeper") else rng.choice(POINTS)
        python = python or victim == "child"
        way = None
        if point == "create":
            way = self.quietly(self.start, python)
            time.sleep(rng.random() * 0.15)
        else:
            kid = self.start(python)
            if point == "run":
                self.run_code(kid, python)
            elif point == "restart":
                way = self.quietly(s.restart, kid)
            elif point == "delete":
                way = self.quietly(s.delete_kernel, kid)
            time.sleep(rng.random() * 0.05)
        if victim == "keeper":
            self.kill_keeper()
        else:
            self.kill(victim, point)
        if way:
            way.join(60 * SLOW)
            assert not way.is_alive(), f"a request that met the death of {victim} at {point} got no end"
        self.recover()


@pytest.mark.parametrize("cycles", [
    pytest.param(8, id="few"),
    pytest.param(CYCLES, marks=pytest.mark.full, id="many"),
])
def test_sessions_whose_server_is_killed_anywhere_leave_nothing(kernel_path, cycles):
    kernel_path.add_scripted()
    s = Kept("--kernel-path", kernel_path.path).start()
    storm = Storm(s, random.Random(SEED))
    try:
        storm.recover()
        for _ in range(2):                      # what is made once is made now
            with Channels(s, storm.start(False)) as c:
                assert c.run("result 1").status == "ok"
            storm.recover()
        wait_for(lambda: s.process("gateway") and s.process("launcher"))
        before = s.counters()

        def back():
            now = s.counters()
            return all(now[k] <= before[k] + (2 if k.endswith("_fds") else 0) for k in before)
        for i in range(cycles):
            try:
                storm.cycle()
            except Ended:
                pass                            # its WebSocket: a death that came early
                storm.recover()
            if i % 25 == 24 or i == cycles - 1:
                wait_for(lambda: s.process("gateway") and s.process("launcher"))
                try:
                    wait_for(back)
                except AssertionError:
                    raise AssertionError(f"cycle {i}: before {before}\nnow    {s.counters()}") from None
                print(f"{i + 1} sessions, killed:", dict(storm.kinds), dict(sorted(storm.killed.items())), flush=True)
        # A session whose victim was not there yet is one without a kill.
        three = sum(storm.kinds[what] for what in THREE)
        assert three >= (cycles // 2 if cycles >= 100 else 1), f"of {cycles} sessions {three} had a kill -9 of kernel, gateway or launcher"
        assert cycles < 100 or all(storm.kinds[what] > cycles // 10 for what in THREE), storm.kinds
        slot = s.slot()                         # not the first one, where another server was quicker
        assert s.stop() == 0                    # holding no kernel, it keeps nothing
        assert_slot_is_left(slot, s.state)
        assert s.loops() == []
        assert s.state not in read("/proc/self/mountinfo")
    finally:
        try:
            s.stop()
        finally:
            stop_command(s.state)               # what a failure left to a keeper
            s.close()
