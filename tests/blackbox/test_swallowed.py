"""Requests that ipykernel throws away before it says anything of them: their runs end, and only theirs."""

import json
import os
import signal
import time
import uuid

import pytest

from channels import Channels
from server import SLOW, wait_for

SILENT = 8 * SLOW       # twice the time after which a free kernel's silence is understood
CODE = {"code": "print('ran')", "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
UNREADABLE = {"version": "five"}        # int() of it fails in jupyter_client


def send(c, header=(), content=None):
    msg_id = uuid.uuid4().hex
    h = {"msg_id": msg_id, "msg_type": "execute_request", "session": c.sid, "username": "", "version": "5.4",
         "date": "2026-01-01T00:00:00Z", **dict(header)}
    c.ws.send(json.dumps({"channel": "shell", "header": h, "parent_header": {}, "metadata": {}, "buffers": [],
                          "content": CODE if content is None else content}))
    return h["msg_id"]


def dropped(server):
    name = 'holdcell_messages_dropped_total{reason="client_malformed"}'
    for line in server.request("GET", "/metrics").body.decode().splitlines():
        if line.startswith(name):
            return float(line.split()[-1])
    return 0


def state(server, kid):
    return server.kernel(kid)["execution_state"]


@pytest.fixture
def kid(kernel):
    return kernel("python3")


@pytest.fixture
def chan(shared, kid):
    with Channels(shared, kid) as c:
        assert c.run("0").status == "ok"
        yield c


@pytest.mark.parametrize("header, says", [
    ({"version": 5}, "header.version is an integer, not a string"),
    ({"msg_id": "\ud800"}, "half of a surrogate pair"),
    ({"username": "\udfff"}, "half of a surrogate pair"),
    ({"x": ["\ud800"]}, "half of a surrogate pair"),
], ids=["version", "msg_id", "username", "unknown"])
def test_a_header_that_no_kernel_reads_is_refused_and_nothing_else_is(shared, kid, chan, header, says):
    before = dropped(shared)
    run = chan.finish(send(chan, header))
    assert run.ename == "MalformedMessage" and says in run.reply["content"]["evalue"]
    assert run.reply["metadata"]["holdcell"]["synthetic"]
    assert says in run.stream("stderr") and "ran" not in run.text
    assert dropped(shared) == before + 1
    assert state(shared, kid) == "idle"
    assert chan.run("print('still')").text == "still\n"


def test_pairs_of_surrogates_and_fields_that_kernels_take_as_they_are_pass(chan):
    fine = {"username": "\U0001f600", "date": 1767225600, "session": chan.sid, "subshell_id": None}
    run = chan.finish(send(chan, fine))     # json.dumps() writes the name as a pair of escapes
    assert (run.status, run.text) == ("ok", "ran\n")


def test_a_request_without_code_ends_with_an_error_and_the_kernel_is_idle(shared, kid, chan):
    run = chan.finish(send(chan, content={}))
    assert run.ename == "RunLost" and "without a reply" in run.reply["content"]["evalue"]
    wait_for(lambda: state(shared, kid) == "idle")
    assert chan.run("print('still')").text == "still\n"


def test_requests_that_the_kernel_swallowed_end_by_themselves_beside_those_of_others(shared, kid, chan):
    with Channels(shared, kid) as other:
        lost = [send(chan, UNREADABLE) for _ in range(20)]
        assert other.run("print('mine')").text == "mine\n"
        kept = other.start("import time; time.sleep(0.5); print('kept')")
        for msg_id in lost:
            run = chan.finish(msg_id)
            assert run.ename == "RunLost"
            assert run.reply["content"]["evalue"] == "the kernel ignored the request"
        assert other.finish(kept).text == "kept\n"
        assert "holdcell" not in json.dumps([m["content"] for m in other.seen])
        wait_for(lambda: state(shared, kid) == "idle")
        assert chan.run("print('still')").text == "still\n"


@pytest.mark.full
def test_a_kernel_that_swallowed_a_request_is_culled_though_its_client_went(server_with):
    s = server_with("--cull-idle-timeout", "2", "--cull-interval", "0.5")
    kid = s.start_kernel()
    with Channels(s, kid) as c:
        assert c.run("0").status == "ok"
        send(c, UNREADABLE)
        wait_for(lambda: state(s, kid) == "busy")

    def culled():
        """the kernel culled"""
        return s.kernel(kid) is None
    wait_for(culled)


def silent_for(c, msg_ids):
    """No run of these ends."""
    end = time.monotonic() + SILENT
    while time.monotonic() < end:
        try:
            m = c.recv(end - time.monotonic())
        except TimeoutError:
            return
        parent = (m.get("parent_header") or {}).get("msg_id")
        assert parent not in msg_ids, m


@pytest.mark.full
def test_a_stopped_kernel_loses_no_run(shared, kernel):
    before = set(shared.kernels())
    kid = kernel("python3")
    (pid,) = set(shared.kernels()) - before
    with Channels(shared, kid) as c:
        assert c.run("0").status == "ok"
        os.kill(pid, signal.SIGSTOP)
        try:
            waits = c.start("print('took its time')")
            silent_for(c, [waits])
            assert state(shared, kid) == "busy"
        finally:
            os.kill(pid, signal.SIGCONT)
        assert c.finish(waits).text == "took its time\n"


@pytest.mark.full
def test_what_waits_behind_the_cell_of_another_client_loses_nothing(shared, kid, chan):
    with Channels(shared, kid) as other:
        holds = other.start("print(input())", allow_stdin=True)
        ask = other.until(lambda m: m["header"]["msg_type"] == "input_request")
        waits, lost = chan.start("print('after it')"), send(chan, UNREADABLE)
        silent_for(chan, [waits, lost])
        other.send("input_reply", {"value": "go"}, "stdin", ask["header"])
        assert other.finish(holds).text == "go\n"
        assert chan.finish(waits).text == "after it\n"
        assert chan.finish(lost).ename == "RunLost"
