"""What a client that was away gets when it comes back: all of it, or an exact word of what is missing; the end always."""

import contextlib
import json
import re
import struct
import uuid

import pytest
import websocket

from channels import Channels, start_in
from server import DEADLINE, SLOW, wait_for

LONG = 600 * SLOW
GONE = re.compile(r"\[holdcell\] (\d+) messages with (\d+) bytes of output were dropped here"
                  r"(?: \((\d+) of text, (\d+) displays and results, (\d+) others\))?")


def dropped(run):
    """(text, displays, others) that the notices of a cell count."""
    total = [0, 0, 0]
    for m in run.of("stream"):
        for found in GONE.finditer(m["content"]["text"]):
            n = found.groups()
            for i, more in enumerate(n[2:] if n[2] is not None else (n[0], 0, 0)):
                total[i] += int(more)
    return tuple(total)


def check_end(run):
    """The idle is the last of iopub. The reply comes by another socket: how far that may run ahead is the kernel's."""
    assert run.status and run.messages[-1]["header"]["msg_type"] in ("execute_reply", "status")
    last = [m for m in run.messages if m["header"]["msg_type"] != "execute_reply"][-1]
    assert last["content"].get("execution_state") == "idle"


def is_notice(m):
    return (m.get("metadata") or {}).get("holdcell", {}).get("synthetic") is True


def leave(server, kid, code):
    """A client that sends a cell and goes; (session_id, msg_id). Only while the kernel is held: what comes before it has
    gone was sent to it, and is nobody's."""
    with Channels(server, kid) as c:
        return c.sid, c.start(code)


def begin(client, code):
    """Starts a cell; back when the kernel works on it."""
    msg = client.start(code)
    client.until(lambda m: m["header"]["msg_type"] == "execute_input" and m["parent_header"].get("msg_id") == msg)
    return msg


HOLD = """
import os, time
while not os.path.exists('/tmp/go'):
    time.sleep(0.01)
os.unlink('/tmp/go')
print('held')
"""


def release(server, kid, client):
    """Lets the kernel go on, when nobody is there any more but this client."""
    wait_for(lambda: server.kernel(kid)["connections"] == 1)
    open_gate(client, "go")


def hear(client, cell, state):
    """Until the client has heard that the kernel is busy with a cell, or has ended it; of others' cells it hears too."""
    def said(m):
        return (m["header"]["msg_type"] == "status" and m["content"]["execution_state"] == state
                and m["parent_header"].get("msg_id") == cell)
    if not any(map(said, client.seen)):
        client.until(said, LONG)


@contextlib.contextmanager
def held(server, kid, client):
    """The kernel works on nothing that is sent meanwhile, until those who sent it are gone."""
    cell = begin(client, HOLD)
    yield
    release(server, kid, client)
    hear(client, cell, "idle")


def await_idle(server, kid):
    server.wait_state(kid, "idle", LONG)


# ---- one cell's many messages ----

MANY = 200_000
# Signed by hand: 200,000 prints would take minutes.
LINES = f"""
import os, sys, time
K = get_ipython().kernel
S, parent = K.session, K.get_parent()
made = S.msg('stream', {{}}, parent=parent)
head = [S.pack(made[part]) for part in ('header', 'parent_header', 'metadata')]
signer = S.auth.copy()
for part in head:
    signer.update(part)
for i in range({MANY}):
    content = b'{{"name":"stdout","text":"%d\\\\n","filler":"%s"}}' % (i, filler.encode())
    own = signer.copy()
    own.update(content)
    K.iopub_socket.send_multipart([b'stream', b'<IDS|MSG>', own.hexdigest().encode(), *head, content])
    if i % 500 == 0:
        sys.stdout.flush()
    while i == 2000 and not os.path.exists('/tmp/gone'):
        time.sleep(0.01)
"""


def check_order(run):
    """Each number once and in order; the lines that are missing are counted by notices where they were."""
    expected = 0
    for m in run.of("stream"):
        if is_notice(m):
            expected += sum(int(found.group(1)) for found in GONE.finditer(m["content"]["text"]))
        else:
            assert m["content"]["text"] == f"{expected}\n"
            expected += 1
    assert expected == MANY
    check_end(run)


# The log keeps 256 MiB. Beside a flood of 360 MiB of text there is not room for all of it.
@pytest.mark.full
@pytest.mark.parametrize("more", [0, 1800])
def test_of_two_hundred_thousand_messages_all_are_there_or_counted_after_the_return(server_with, more):
    server = server_with("--output-mb", "2048")
    kid = server.start_kernel("python3")
    with Channels(server, kid) as client:
        assert client.run(f"filler = 'z' * {more}").status == "ok"
        msg = client.start(LINES)
        # All that was sent until now is read: what is under way when a connection ends is nobody's.
        client.until(lambda m: m["header"]["msg_type"] == "stream" and m["content"]["text"] == "2000\n", LONG)
        sid, seen = client.sid, [m for m in client.seen if (m.get("parent_header") or {}).get("msg_id") == msg]
    with Channels(server, kid) as other:
        open_gate(other, "gone")
    await_idle(server, kid)
    with Channels(server, kid, sid=sid) as back:
        run = back.finish(msg, LONG)
    run.messages[:0] = seen
    assert run.status == "ok"
    check_order(run)
    assert (dropped(run)[0] > 0) == (more > 0) and dropped(run)[1:] == (0, 0)


def run_in(client, subshell, code):
    """Runs a cell in a subshell; the Run."""
    return client.finish(start_in(client, subshell, code))


def open_gate(client, name):
    """Lets a cell of the main shell go on that waits for /tmp/NAME."""
    client.send("create_subshell_request", {}, "control")
    sub = client.until(lambda m: m["header"]["msg_type"] == "create_subshell_reply")["content"]["subshell_id"]
    assert run_in(client, sub, f"open('/tmp/{name}', 'w').close()").status == "ok"


# ---- the bounded log ----

MIB = 1 << 20
DISPLAYS = """
from IPython.display import display
for i in range({count}):
    display({{'text/plain': str(i) + ' ' + 'x' * ({size})}}, raw=True)
"""


def flood(client, mib, size=4 * MIB):
    """Displays of other cells, in the log of one that is away."""
    for _ in range(mib // 48):
        run = client.run(DISPLAYS.format(count=48 * MIB // size, size=size - 64), LONG)
        assert run.status == "ok"
        client.seen.clear()


@pytest.mark.full
def test_displays_that_fill_the_log_cost_a_client_that_is_away_no_reply_and_no_idle(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as other:
        assert other.run("pass").status == "ok"
        with held(shared, kid, other):
            sid, msg = leave(shared, kid, "print('mine'); 6 * 7")
        hear(other, msg, "idle")
        flood(other, 480)
    with Channels(shared, kid, sid=sid) as back:
        run = back.finish(msg, LONG)
        assert run.status == "ok"
        kinds = [m["header"]["msg_type"] for m in run.messages]
        assert "execute_input" in kinds
        assert run.text == "mine\n"     # it is small: what fills the log goes
        # What others showed meanwhile is there or counted, in the place where it was.
        back.run("pass", LONG)
        everything = [m for m in back.seen if m["header"]["msg_type"] == "display_data"]
        told = sum(int(n) for m in back.seen if m["header"]["msg_type"] == "stream"
                   for _, _, _, n, _ in GONE.findall(m["content"]["text"]) if n)
        assert told > 0 and len(everything) + told == 480 // 4


@pytest.mark.full
def test_displays_of_the_cell_itself_are_counted_and_its_end_comes(server_with):
    server = server_with("--output-mb", "1024")
    kid = server.start_kernel("python3")
    with Channels(server, kid) as client:
        assert client.run("pass").status == "ok"
        count = 88      # of 4 MiB: more than the log keeps
        code = "print('first')" + DISPLAYS.format(count=count, size=4 * MIB - 64) + "print('last'); 42"
        with held(server, kid, client):
            sid, msg = leave(server, kid, code)
        hear(client, msg, "busy")
    await_idle(server, kid)
    with Channels(server, kid, sid=sid) as back:
        run = back.finish(msg, LONG)
    text, displays, others = dropped(run)
    assert run.status == "ok" and run.result == "42"
    assert (text, others) == (0, 0) and run.text == "first\nlast\n"
    shown = [int(m["content"]["data"]["text/plain"].split()[0]) for m in run.of("display_data")]
    assert displays > 0 and shown == list(range(displays, count)), "the oldest go first"
    kinds = ["notice" if is_notice(m) else m["header"]["msg_type"] for m in run.messages]
    assert kinds.index("notice") < kinds.index("display_data")
    assert kinds.index("notice") > kinds.index("stream")
    check_end(run)


# ---- clients that are away ----

def away(server, kid, n):
    """So many clients with a cell each, the first of which holds the kernel until it is told; [(sid, msg_id)]."""
    out = []
    for i in range(n):
        out.append(leave(server, kid, f"print('cell {i}')"))
    return out


def test_forty_clients_that_are_away_keep_their_running_cells(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as other:
        assert other.run("pass").status == "ok"
        with Channels(shared, kid) as first:
            mine = (first.sid, begin(first, HOLD))
        clients = [mine] + away(shared, kid, 39)
        for _ in range(30):         # those that wait for nothing cost nobody a place
            Channels(shared, kid).close()
        release(shared, kid, other)
    await_idle(shared, kid)
    for i, (sid, msg) in enumerate(clients):
        with Channels(shared, kid, sid=sid) as back:
            run = back.finish(msg)
            assert run.status == "ok", f"client {i}: {run.ename}"
            assert run.text == ("held\n" if i == 0 else f"cell {i - 1}\n")


@pytest.mark.full
def test_whoever_is_cut_off_because_too_many_are_away_is_told_and_gets_an_end(shared, kernel):
    kid, count = kernel("python3"), 80      # 64 of them keep their sockets
    with Channels(shared, kid) as other:
        assert other.run("pass").status == "ok"
        with Channels(shared, kid) as first:
            clients = [(first.sid, begin(first, HOLD))]
        clients += away(shared, kid, count - 1)
        release(shared, kid, other)
        await_idle(shared, kid)
    ends = []
    for i, (sid, msg) in enumerate(clients):
        with Channels(shared, kid, sid=sid) as back:
            run = back.finish(msg)
            told = any("too many clients are away" in m["content"].get("text", "") for m in back.seen)
            ends.append(run.ename or run.status)
            assert (run.ename == "RunLost") == told, f"client {i}: {run.ename}, told {told}"
            assert run.text.strip() == ("held" if i == 0 else f"cell {i - 1}"), "outputs are kept"
    assert ends.count("RunLost") == count - 64 and ends.count("ok") == 64


@pytest.mark.full
def test_whoever_loses_its_place_is_told_that_its_end_is_lost(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as other:
        assert other.run("pass").status == "ok"
        with held(shared, kid, other):
            sid, msg = leave(shared, kid, "print('early')")
        for _ in range(5):          # the cells of all of them end unread
            with held(shared, kid, other):
                last = [leave(shared, kid, "1") for _ in range(52)][-1]
            hear(other, last[1], "idle")
    with Channels(shared, kid, sid=sid) as back:
        run = back.finish(msg)
        assert run.ename == "RunLost"
        assert any("place was given up" in m["content"].get("text", "") for m in back.seen)
        assert back.run("6 * 7").result == "42"


# ---- large outputs ----

BIG = 30 * MIB
SHOW = f"""
from IPython.display import display
display({{'text/plain': 'x' * {BIG}}}, raw=True)
display({{'text/plain': 'y' * {BIG}}}, raw=True)
"""


class V1:
    """A client of the v1 subprotocol; messages are (channel, header, parent, metadata, content, buffers)."""

    def __init__(self, server, kid, sid):
        self.ws = websocket.create_connection(
            f"ws://127.0.0.1:{server.port}/api/kernels/{kid}/channels?session_id={sid}",
            header=[f"Authorization: token {server.token}"], timeout=DEADLINE,
            subprotocols=["v1.kernel.websocket.jupyter.org"], skip_utf8_validation=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ws.close()

    def recv(self):
        data = self.ws.recv()
        count = struct.unpack_from("<Q", data)[0]
        at = struct.unpack_from(f"<{count}Q", data, 8)
        parts = [data[a:b] for a, b in zip(at, at[1:])]
        return [parts[0].decode(), *(json.loads(p) for p in parts[1:5]), parts[5:]]

    def until_end(self, msg_id):
        """All messages of that request, until reply and idle came."""
        out, reply, idle = [], None, False
        while not (reply and idle):
            m = self.recv()
            if m[2].get("msg_id") != msg_id:
                continue
            out.append(m)
            reply = m if m[1]["msg_type"] == "execute_reply" else reply
            idle |= m[1]["msg_type"] == "status" and m[4]["execution_state"] == "idle"
        return out, reply


def big_of(messages):
    """Length and letter of each display."""
    texts = [c["data"]["text/plain"] for kind, c in messages if kind == "display_data"]
    assert all(set(t) == {t[0]} for t in texts)
    return [(len(t), t[0]) for t in texts]


@pytest.mark.full
@pytest.mark.parametrize("how, framing", [("slow", "legacy"), ("slow", "v1"), ("returns", "legacy"), ("returns", "v1")])
def test_displays_of_30_mib_reach_a_client_that_is_slow_or_was_away(shared, kernel, framing, how):
    kid = kernel("python3")
    with Channels(shared, kid) as probe:
        assert probe.run("pass").status == "ok"
    sid = uuid.uuid4().hex
    with Channels(shared, kid, sid=sid) as first:
        msg = first.start(SHOW)
        if how == "slow":           # nothing of it is read before all of it was said
            await_idle(shared, kid)
            if framing == "legacy":
                run = first.finish(msg, LONG)
                got, status = [(m["header"]["msg_type"], m["content"]) for m in run.messages], run.status
    if (how, framing) == ("returns", "legacy"):
        await_idle(shared, kid)
        with Channels(shared, kid, sid=sid) as back:
            run = back.finish(msg, LONG)
        got, status = [(m["header"]["msg_type"], m["content"]) for m in run.messages], run.status
    elif framing == "v1":
        sid, status, got = v1_run(shared, kid, sid, msg, how)
    shown = big_of(got)
    assert status == "ok" and shown == [(BIG, "x"), (BIG, "y")]


def v1_run(server, kid, sid, msg, how):
    """The cell over v1: the one that waits already, or of a client that sends it and does not read for a while."""
    await_idle(server, kid)
    if how == "returns":
        with V1(server, kid, sid) as client:
            messages, reply = client.until_end(msg)
    else:
        sid, msg = uuid.uuid4().hex, uuid.uuid4().hex
        header = {"msg_id": msg, "msg_type": "execute_request", "session": sid, "username": "test",
                  "version": "5.4", "date": "2026-01-01T00:00:00.000000Z"}
        content = {"code": SHOW, "silent": False, "store_history": True, "user_expressions": {},
                   "allow_stdin": False, "stop_on_error": False}
        parts = [b"shell", *(json.dumps(p).encode() for p in (header, {}, {}, content))]
        at = [8 * (len(parts) + 2)]
        for p in parts:
            at.append(at[-1] + len(p))
        with V1(server, kid, sid) as client:
            client.ws.send_binary(struct.pack(f"<Q{len(at)}Q", len(at), *at) + b"".join(parts))
            client_waits(server, kid)
            messages, reply = client.until_end(msg)
    return sid, reply[4]["status"], [(m[1]["msg_type"], m[4]) for m in messages]


def client_waits(server, kid):
    """Until the kernel has worked and is done, seen from outside."""
    with Channels(server, kid) as probe:
        assert probe.run("pass", LONG).status == "ok"
