"""input() in the first cell, whatever the kernel's stdin connection is doing meanwhile: a kernel drops
a question to whom it does not know yet, and the cell would wait for ever."""

import os
import shutil
import signal
import time

import pytest

from channels import Channels
from server import BIN, wait_for

HOLD = 1.5

# Stands before a kernel's sockets and does to the stdin connections what HOW says. What comes is passed on
# in the order of its coming, as if it was not there.
RELAY = """
import json, os, selectors, socket, sys, tempfile, time

how, hold, program, path = sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4]
with open(path) as f:
    facts = json.load(f)
place = tempfile.mkdtemp()
inner = os.path.join(place, "s")
with open(os.path.join(place, "connection"), "w") as f:
    json.dump({**facts, "ip": inner}, f)
watched = selectors.EpollSelector()
for name in "shell", "control", "stdin", "iopub", "hb":
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{facts['ip']}-{facts[name + '_port']}")
    listener.listen(64)
    watched.register(listener, selectors.EVENT_READ, (name, None))
if os.fork():
    os.execv(program, [program, os.path.join(place, "connection")])

waiting, kept = [], []                      # (when, name, client)

def accept(name, listener):
    client = listener.accept()[0]
    kept.append(name)
    if name == "stdin" and how == "closed" and kept.count(name) < 3:
        client.close()
    elif name != "stdin" or how != "never":
        waiting.append((time.monotonic() + (hold if name == "stdin" else 0), name, client))
    else:
        kept.append(client)

def connect(name, client):
    kernel = socket.socket(socket.AF_UNIX)
    try:
        kernel.connect(f"{inner}-{facts[name + '_port']}")
    except OSError:                         # it has not bound it yet
        waiting.append((time.monotonic() + 0.01, name, client))
        return
    for source, to in (client, kernel), (kernel, client):
        watched.register(source, selectors.EVENT_READ, (name, {"to": to, "seen": 0}))

def pump(source, state):
    try:
        data = source.recv(65536)
        seen = state["seen"]
        if how == "old" and seen <= 10 < seen + len(data):      # the greeting's version: ZMTP 2.0
            data = data[:10 - seen] + b"\\1" + data[11 - seen:]
        state["seen"] += len(data)
        state["to"].sendall(data)
    except OSError:
        data = b""
    if not data:
        for s in source, state["to"]:
            watched.unregister(s)
            s.close()

while True:
    ready = watched.select(0.01 if waiting else None)
    for key, _ in sorted(ready, key=lambda r: r[0].data[0] != "stdin"):
        name, state = key.data
        if state is None:
            accept(name, key.fileobj)
        elif key.fileobj.fileno() >= 0:
            pump(key.fileobj, state)
    due = [w for w in waiting if w[0] <= time.monotonic()]
    waiting = [w for w in waiting if w not in due]
    for _, name, client in due:
        connect(name, client)
"""


@pytest.fixture
def relayed(server_with, kernel_path):
    """Factory: relayed(how, hold) -> a server and a kernel behind such a relay."""
    def make(how, hold=0.0):
        here = "{resource_dir}"
        kernel_path.add("relayed", ["python3", here + "/relay.py", how, str(hold), here + "/scripted-kernel",
                                    "{connection_file}"], {"relay.py": RELAY})
        path = os.path.join(kernel_path.path, "kernels", "relayed", "scripted-kernel")
        shutil.copy(os.path.join(os.path.dirname(BIN), "..", "tests", "scripted-kernel"), path)
        os.chmod(path, 0o755)
        s = server_with("--kernel-path", kernel_path.path)
        return s, s.start_kernel("relayed")
    return make


def ask_and_answer(c):
    """A cell that asks, as the first thing on this connection."""
    msg_id = c.start("input name?\nprint end", allow_stdin=True)
    ask = c.until(lambda m: m["header"]["msg_type"] == "input_request")
    assert ask["parent_header"]["msg_id"] == msg_id
    c.send("input_reply", {"value": "Ada"}, "stdin", ask["header"])
    run = c.finish(msg_id)
    assert run.status == "ok" and run.text == "Ada\nend\n", (run.status, run.text, run.stream("stderr"))


@pytest.mark.full
def test_a_question_waits_for_a_stdin_connection_that_comes_late(relayed):
    s, kid = relayed("late", HOLD)
    with Channels(s, kid) as c:
        ask_and_answer(c)
        # Again with sockets that the kernel never saw: of another process, of another gateway.
        assert s.request("POST", f"/api/kernels/{kid}/restart").status == 200
        ask_and_answer(c)
    old = s.process("gateway")
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: s.process("gateway") not in (0, old) and s.answers())
    with Channels(s, kid) as c:
        ask_and_answer(c)


@pytest.mark.full
def test_cells_of_one_client_keep_their_order_behind_one_that_waits_for_it(relayed):
    s, kid = relayed("late", HOLD)
    with Channels(s, kid) as c:
        first = c.start("input name?\nresult 1", allow_stdin=True)
        second = c.start("result 2")
        ask = c.until(lambda m: m["header"]["msg_type"] == "input_request")
        c.send("input_reply", {"value": "Ada"}, "stdin", ask["header"])
        c.until(lambda m: m["header"]["msg_type"] == "status" and m["content"]["execution_state"] == "idle"
                and m["parent_header"]["msg_id"] == second)
        results = [(m["parent_header"]["msg_id"], m["content"]["data"]["text/plain"]) for m in c.seen
                   if m["header"]["msg_type"] == "execute_result"]
        assert results == [(first, "1"), (second, "2")]


def test_a_cell_that_may_not_ask_waits_for_no_stdin_connection(relayed):
    s, kid = relayed("never")
    with Channels(s, kid) as c:
        assert c.run("result 1").result == "1"


def test_a_stdin_connection_that_was_closed_is_made_anew(relayed):
    s, kid = relayed("closed")
    with Channels(s, kid) as c:
        ask_and_answer(c)


@pytest.mark.full
def test_a_kernel_of_an_old_zmtp_that_tells_no_handshake_is_asked_too(relayed):
    s, kid = relayed("old")
    with Channels(s, kid) as c:
        assert c.run("result 1").result == "1"
        time.sleep(1)       # nothing tells when its stdin is connected
        ask_and_answer(c)


@pytest.mark.parametrize("name", ["python3", "scripted"])
def test_an_interrupt_frees_a_cell_that_waits_for_an_answer(server_with, kernel_path, name):
    first, more = {"python3": ("x = input('first')", "print(input('next'))"),
                   "scripted": ("input first", "input next")}[name]
    s = server_with("--kernel-path", kernel_path.add_scripted().path)
    kid = s.start_kernel(name)
    with Channels(s, kid) as c:
        for _ in range(3):
            cell = c.start(first, allow_stdin=True)
            c.until(lambda m: m["header"]["msg_type"] == "input_request" and m["parent_header"]["msg_id"] == cell)
            s.wait_state(kid, "busy")
            assert s.interrupt(kid) == 204
            run = c.finish(cell)
            assert (run.status, run.ename) == ("error", "KeyboardInterrupt"), run.reply
            assert run.of("input_request") == [], "a cell that ended asks nothing"
            run = c.run(more, answer="typed")
            assert (run.status, run.text) == ("ok", "typed\n"), (run.reply, run.text)
            assert [m["content"]["prompt"] for m in run.of("input_request")] == ["next"]


@pytest.mark.full
def test_a_kernel_that_never_takes_the_stdin_connection_gets_no_cell_that_may_ask(relayed):
    s, kid = relayed("never")
    with Channels(s, kid) as c:
        assert c.run("result 1").result == "1"
        run = c.finish(c.start("input name?", allow_stdin=True), timeout=180)
        assert run.status == "error" and run.ename == "StdinUnreachable", (run.status, run.ename)
        assert "the cell was not run" in run.stream("stderr")
        # It is known from then on: nobody waits again. And the others go on.
        began = time.monotonic()
        for _ in range(5):
            assert c.finish(c.start("result 2", allow_stdin=True)).ename == "StdinUnreachable"
        assert time.monotonic() - began < 60
        assert c.run("result 3").result == "3"
        s.wait_state(kid, "idle")
