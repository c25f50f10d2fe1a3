"""An interrupt that was answered 204 ends the cell that was accepted before it, at whatever moment it comes, and no
other: many rounds of each moment, over both framings. docs/STATES.md has the table of moments."""

import collections
import json
import os
import struct
import time
import uuid

import pytest
import websocket

from channels import Channels, Run
from server import DEADLINE
from tiers import FULL

ROUNDS = 50 if FULL else 10
# One that is not interrupted runs on for seconds and says so: what it is held against.
LONG = "for _ in range(40): time.sleep(0.1)\nslept.append({})"
PROTOCOL = "v1.kernel.websocket.jupyter.org"
NAMES = ["shell", "control", "stdin", "iopub"]


class Framed(Channels):
    """The same client over the binary framing."""

    def __init__(self, server, kid):
        self.sid, self.seen = uuid.uuid4().hex, []
        self.ws = websocket.create_connection(
            f"ws://127.0.0.1:{server.port}/api/kernels/{kid}/channels?session_id={self.sid}",
            header=[f"Authorization: token {server.token}"], timeout=DEADLINE, subprotocols=[PROTOCOL])
        assert self.ws.getsubprotocol() == PROTOCOL

    def send(self, kind, content, channel="shell", parent=None):
        msg_id = uuid.uuid4().hex
        header = {"msg_id": msg_id, "msg_type": kind, "session": self.sid, "username": "test", "version": "5.4",
                  "date": "2026-01-01T00:00:00.000000Z"}
        parts = [channel.encode(), *(json.dumps(p).encode() for p in (header, parent or {}, {}, content))]
        at, offsets = 8 * (1 + 6), []
        for p in [*parts, b""]:
            offsets.append(at)
            at += len(p)
        self.ws.send_binary(struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets) + b"".join(parts))
        return msg_id

    def recv(self, timeout=DEADLINE):
        self.ws.settimeout(timeout)
        try:
            data = self.ws.recv()
        except websocket.WebSocketTimeoutException:
            raise TimeoutError("no message") from None
        count, = struct.unpack_from("<Q", data)
        at = [*struct.unpack_from(f"<{count}Q", data, 8), len(data)]
        parts = [data[a:b] for a, b in zip(at, at[1:])]
        m = dict(zip(("header", "parent_header", "metadata", "content"), map(json.loads, parts[1:5])))
        m["channel"] = parts[0].decode()
        self.seen.append(m)
        return m


CLIENTS = pytest.mark.parametrize("client", [pytest.param(Channels, marks=pytest.mark.full, id="legacy"), pytest.param(Framed, id="v1")])


def says(kind, msg_id, state=None):
    return lambda m: (m["header"]["msg_type"] == kind and m["parent_header"].get("msg_id") == msg_id
                      and (state is None or m["content"]["execution_state"] == state))


def finish_all(c, *cells):
    """The runs of several that were sent together: what is said of one may come before the reply to another."""
    runs = {m: Run() for m in cells}
    while not all(r.reply and r.idle for r in runs.values()):
        m = c.recv()
        run = runs.get((m.get("parent_header") or {}).get("msg_id"))
        if run:
            run.messages.append(m)
            run.reply = m if m["header"]["msg_type"] == "execute_reply" else run.reply
            run.idle |= m["header"]["msg_type"] == "status" and m["content"]["execution_state"] == "idle"
    return [runs[m] for m in cells]


def judge(c, ends, i, run):
    """Counts how a round ended; what the reply says is held against what the cell did."""
    slept = c.run(f"{i} in slept")
    assert slept.status == "ok", "the cell behind it is not hit"
    ends[run.status, run.ename, "ran to its end" if slept.result == "True" else "was ended"] += 1


def all_ended(ends, rounds):
    assert dict(ends) == {("error", "KeyboardInterrupt", "was ended"): rounds}


# --- one cell ---------------------------------------------------------------------------------

def right_away(c, s, kid, m):
    assert s.interrupt(kid) == 204


def at_busy(c, s, kid, m):
    c.until(says("status", m, "busy"))
    assert s.interrupt(kid) == 204


def at_input(c, s, kid, m):
    c.until(says("execute_input", m))
    assert s.interrupt(kid) == 204


def by_message(c, s, kid, m):
    c.send("interrupt_request", {}, "control")


@CLIENTS
@pytest.mark.parametrize("moment", [right_away, at_busy, at_input, by_message])
def test_the_cell_that_was_accepted_is_ended(shared, kernel, client, moment):
    kid = kernel("python3")
    ends = collections.Counter()
    with client(shared, kid) as c:
        assert c.run("import time; kept, slept = 'yes', []").status == "ok"
        for i in range(ROUNDS):
            m = c.start(LONG.format(i))
            moment(c, shared, kid, m)
            judge(c, ends, i, c.finish(m))
        all_ended(ends, ROUNDS)
        assert c.run("kept").result == "'yes'"
        assert not [m for m in c.seen if m["parent_header"].get("msg_type") == "interrupt_request"
                    and m["parent_header"].get("session") != c.sid], "the gateway's own interrupts are no client's affair"


@CLIENTS
@pytest.mark.full
def test_a_cell_that_waits_for_the_start_of_its_kernel_is_ended_when_it_runs(shared, client):
    """The run is held back by the gateway when it is interrupted."""
    rounds, ends = 3, collections.Counter()
    for i in range(rounds):
        kid = shared.start_kernel("python3")
        with client(shared, kid) as c:
            m = c.start("import time; slept = []\n" + LONG.format(i))
            behind = c.start("'not hit'")
            assert shared.interrupt(kid) == 204
            run, then = finish_all(c, m, behind)
            assert then.result == "'not hit'"
            ends[run.status, run.ename, c.run("'slept' in globals() and slept != []").result] += 1
        shared.delete_kernel(kid)
    assert dict(ends) == {("error", "KeyboardInterrupt", "False"): rounds}


@CLIENTS
def test_a_cell_sent_after_an_interrupt_is_not_hit(shared, kernel, client):
    kid = kernel("python3")
    with client(shared, kid) as c:
        assert c.run("import time").status == "ok"
        for i in range(ROUNDS):
            assert shared.interrupt(kid) == 204
            assert c.run(f"time.sleep(0.01); {i}").result == str(i)


# --- several ----------------------------------------------------------------------------------

@CLIENTS
def test_the_running_cell_is_ended_and_what_is_queued_behind_it_goes_on(shared, kernel, client):
    kid = kernel("python3")
    ends = collections.Counter()
    with client(shared, kid) as c, Channels(shared, kid) as other:
        assert c.run("import time; slept = []").status == "ok"
        for i in range(ROUNDS):
            m, behind = c.start(LONG.format(i)), c.start(f"time.sleep(0.02); {i}")
            c.until(says("status", m, "busy"))
            more = other.start(f"time.sleep(0.02); -{i + 1}")
            assert shared.interrupt(kid) == 204
            run, then = finish_all(c, m, behind)
            assert (then.result, other.finish(more).result) == (str(i), str(-i - 1))
            judge(c, ends, i, run)
    all_ended(ends, ROUNDS)


@CLIENTS
def test_an_interrupt_at_the_sight_of_a_reply_is_for_the_cell_behind(shared, kernel, client):
    """The idle of the one before is still to come, and the kernel has not taken the next one."""
    kid = kernel("python3")
    ends = collections.Counter()
    with client(shared, kid) as c:
        assert c.run("import time; slept = []").status == "ok"
        for i in range(ROUNDS):
            first = c.start("1")
            m = c.start(LONG.format(i))
            c.until(says("execute_reply", first))
            assert shared.interrupt(kid) == 204
            while c.seen[-1]["header"]["msg_type"] != "execute_reply" or c.seen[-1]["parent_header"]["msg_id"] != m:
                c.recv()
            mine = [x for x in c.seen if x["parent_header"].get("msg_id") == m]
            if not [x for x in mine if x["content"].get("execution_state") == "idle"]:
                c.until(says("status", m, "idle"))
            run = Run()
            run.reply = mine[-1]
            judge(c, ends, i, run)
    all_ended(ends, ROUNDS)


@pytest.mark.full
def test_an_interrupt_around_the_end_of_a_cell_hits_no_more_than_one(shared, kernel):
    """The first cell ends by itself at about the time; whichever is hit says so, and the third one never is."""
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        assert c.run("import time").status == "ok"
        for i in range(ROUNDS):
            cells = [c.start("time.sleep(0.01); 1"), c.start("time.sleep(0.1); 2"), c.start("time.sleep(0.01); 3")]
            c.until(says("status", cells[0], "busy"))
            time.sleep(0.006 + 0.0004 * (i % 20))
            assert shared.interrupt(kid) == 204
            runs = finish_all(c, *cells)
            hit = [r for r in runs if r.status != "ok"]
            assert len(hit) <= 1 and runs[2].result == "3", (i, [r.reply["content"] for r in runs])
            assert all(r.ename == "KeyboardInterrupt" for r in hit)


def test_a_second_interrupt_reaches_a_cell_that_caught_the_first(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        assert c.run("import time").status == "ok"
        for _ in range(10):
            m = c.start("try:\n    print('within', flush=True)\n    time.sleep(60)\n"
                        "except KeyboardInterrupt: print('caught', flush=True)\ntime.sleep(60)")
            for word in ("within", "caught"):
                c.until(lambda x: says("stream", m)(x) and word in x["content"]["text"])
                assert shared.interrupt(kid) == 204
            assert c.finish(m).ename == "KeyboardInterrupt"


@pytest.mark.full           # the battery has one in both tiers
def test_a_cell_in_code_that_holds_the_interpreter_lock_is_ended(shared, kernel):
    """Its kernel answers no message: the signal does it, and its next cell is not hit as well."""
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        for _ in range(3):
            m = c.start("import re, time\ntime.sleep(0.5)\nre.match('(a+)+$', 'a' * 60 + 'b')")
            c.until(says("execute_input", m))   # while it sleeps: nothing is heard of it later
            time.sleep(1)
            assert shared.interrupt(kid) == 204
            assert c.finish(m).ename == "KeyboardInterrupt"
            assert c.run("import time; time.sleep(1); 'whole'").result == "'whole'"


# --- kernels of others ------------------------------------------------------------------------

STOCK = ["python3", "-P", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
# SIGINT ends this one unless a request is at work.
FRAGILE = """
import signal
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
def ignore(*_): pass
class Kernel(IPythonKernel):
    async def dispatch_shell(self, *args, **more):
        signal.signal(signal.SIGINT, ignore)
        await super().dispatch_shell(*args, **more)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    def post_handler_hook(self):
        signal.signal(signal.SIGINT, ignore)
class App(IPKernelApp):
    kernel_class = Kernel
    def init_signal(self):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
App.launch_instance()
"""


@pytest.mark.full
def test_a_foreign_kernel_is_sent_no_signal_that_would_end_it(server_with, kernel_path):
    kernel_path.add("fragile", ["python3", "-P", "{resource_dir}/fragile.py", "-f", "{connection_file}"],
                    {"fragile.py": FRAGILE}, language="python")
    s = server_with("--kernel-path", kernel_path.path)
    kid = s.start_kernel("fragile")
    assert s.interrupt(kid) == 204          # while it starts
    with Channels(s, kid) as c:
        assert c.run("import time; kept, slept = 'yes', []").status == "ok"
        ends = collections.Counter()
        for i in range(5):
            assert s.interrupt(kid) == 204  # while it is idle
            m = c.start(LONG.format(i))     # the interrupt waits until it is busy
            assert s.interrupt(kid) == 204
            judge(c, ends, i, c.finish(m))
        assert c.run("kept").result == "'yes'"
        all_ended(ends, 5)


@pytest.mark.full
def test_the_cell_of_a_foreign_kernel_is_ended_too(server_with, kernel_path):
    s = server_with("--kernel-path", kernel_path.add("stock", STOCK, language="python").path)
    kid = s.start_kernel("stock")
    ends = collections.Counter()
    with Channels(s, kid) as c:
        assert c.run("import time; slept = []").status == "ok"
        for i in range(ROUNDS):
            m = c.start(LONG.format(i))
            assert s.interrupt(kid) == 204
            judge(c, ends, i, c.finish(m))
    all_ended(ends, ROUNDS)
