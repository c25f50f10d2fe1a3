"""From the acceptance of a DELETE on nobody finds the kernel, yet it takes its room until it is gone."""

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import threading

import pytest
import websocket

from channels import Channels, Ended
from server import wait_for
from tiers import full_after

STUBBORN = """
import os, signal, time
for s in signal.SIGINT, signal.SIGTERM:
    signal.signal(s, signal.SIG_IGN)
get_ipython().kernel.do_interrupt = lambda: None
print('stubborn', flush=True)
while True:
    time.sleep(1)
"""


class Call(threading.Thread):
    """A request in the background; .status, and .said, when it is answered."""

    def __init__(self, server, method, path, *body):
        super().__init__(daemon=True)
        self.args = server, method, path, *body
        self.status = self.said = None
        self.start()

    def run(self):
        server, *args = self.args
        try:
            answer = server.request(*args)
            self.said = answer.json() if answer.body else None
            self.status = answer.status
        except (OSError, http.client.HTTPException):
            self.status = "ended"


def stubborn_kernel(s, **model):
    """A kernel whose end takes the whole ladder; its id."""
    kid = s.start_kernel("python3", **model)
    with Channels(s, kid) as c:
        c.start(STUBBORN)
        c.until(lambda m: m["header"]["msg_type"] == "stream" and "stubborn" in m["content"]["text"])
    return kid


def accepted(s, kid):
    """The DELETE was taken: the kernel is not found any more."""
    wait_for(lambda: s.request("GET", f"/api/kernels/{kid}").status == 404, every=0.01)


@pytest.mark.full
def test_a_kernel_that_is_being_deleted_is_not_found_but_takes_its_place(server_with):
    s = server_with("--max-kernels", "1")
    kid = stubborn_kernel(s)
    first = Call(s, "DELETE", f"/api/kernels/{kid}")
    accepted(s, kid)
    assert first.status is None, "GET gives 404 before the end"
    second = Call(s, "DELETE", f"/api/kernels/{kid}")
    assert s.request("GET", "/api/kernels").json() == []
    for path in ("interrupt", "restart"):
        assert s.request("POST", f"/api/kernels/{kid}/{path}", {}).status == 404
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        Channels(s, kid)
    assert refused.value.status_code == 404
    assert s.request("POST", "/api/kernels", {}).status == 403, "its place is not free yet"
    assert first.status is None and second.status is None
    assert len(s.kernels()) == 1, "its process still lives"
    first.join(60)
    second.join(60)
    assert (first.status, second.status) == (204, 204), "both waited for the same end"
    assert s.kernels() == []
    assert s.delete_kernel(kid) == 404
    assert s.start_kernel("python3")


@pytest.mark.full
def test_a_path_whose_kernel_is_being_deleted_gets_a_new_one_at_once(server_with):
    s = server_with()
    body = {"path": "a.ipynb", "name": "a", "type": "notebook", "kernel": {"name": "python3"}}
    old = s.request("POST", "/api/sessions", body).json()
    with Channels(s, old["kernel"]["id"]) as c:
        c.start(STUBBORN)
        c.until(lambda m: m["header"]["msg_type"] == "stream")
    ending = Call(s, "DELETE", f"/api/kernels/{old['kernel']['id']}")
    accepted(s, old["kernel"]["id"])
    assert s.request("GET", f"/api/sessions/{old['id']}").status == 404
    new = s.request("POST", "/api/sessions", body).json()
    assert new["kernel"]["id"] != old["kernel"]["id"] and new["id"] != old["id"]
    with Channels(s, new["kernel"]["id"]) as c:
        assert c.run("1 + 1").result == "2"
    ending.join(60)
    assert ending.status == 204
    assert [m["id"] for m in s.request("GET", "/api/sessions").json()] == [new["id"]]


@pytest.mark.full
def test_the_id_of_a_kernel_that_is_being_deleted_can_be_taken_again(server_with):
    s = server_with()
    kid = stubborn_kernel(s)
    ending = Call(s, "DELETE", f"/api/kernels/{kid}")
    accepted(s, kid)
    r = s.request("POST", "/api/kernels", {"name": "python3", "kernel_id": kid})
    assert r.status == 201 and r.json()["id"] == kid
    with Channels(s, kid) as c:
        assert c.run("'new'").result == "'new'"
    ending.join(60)
    assert ending.status == 204
    with Channels(s, kid) as c:
        assert c.run("'still'").result == "'still'"
    assert s.delete_kernel(kid) == 204


@contextlib.contextmanager
def no_start_proceeds(s):
    """The launcher is stopped: who asks for a kernel waits."""
    launcher = s.process("launcher")
    os.kill(launcher, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(launcher, signal.SIGCONT)


def session_on(s):
    body = {"path": "a.ipynb", "name": "a", "type": "notebook", "kernel": {"name": "python3"}}
    return f"/api/sessions/{s.request('POST', '/api/sessions', body).json()['id']}"


STARTS = {
    "a session": lambda s: ("POST", "/api/sessions", {"path": "b.ipynb", "type": "notebook", "kernel": {"name": "python3"}}),
    "a kernel": lambda s: ("POST", "/api/kernels", {"name": "python3"}),
    "a session's next kernel": lambda s: ("PATCH", session_on(s), {"kernel": {"name": "python3"}}),
}


@pytest.mark.parametrize("start", full_after(1, STARTS))
def test_a_request_whose_kernel_is_deleted_while_it_starts_finds_none(server_with, start):
    s = server_with()
    request = STARTS[start](s)
    before = s.request("GET", "/api/kernels").json()
    with no_start_proceeds(s):
        asked = Call(s, *request)
        kid = wait_for(lambda: {m["id"] for m in s.request("GET", "/api/kernels").json()} - {m["id"] for m in before}).pop()
        deleted = Call(s, "DELETE", f"/api/kernels/{kid}")
        accepted(s, kid)
        assert asked.status is None and deleted.status is None
    asked.join(60)
    deleted.join(60)
    assert (asked.status, deleted.status) == (404, 204), asked.said
    assert asked.said == {"reason": "Not Found", "message": "the kernel was deleted"}
    assert [m["id"] for m in s.request("GET", "/api/kernels").json()] == [m["id"] for m in before], "the old one stays"
    assert len(s.request("GET", "/api/sessions").json()) == len(before)
    assert s.request(*request).status in (200, 201), "it can be asked again"


@pytest.mark.full
def test_a_request_whose_server_stops_while_its_kernel_starts_is_told_so(server_with):
    s = server_with()
    with no_start_proceeds(s):
        asked = Call(s, "POST", "/api/sessions", {"path": "b.ipynb", "type": "notebook"})
        wait_for(lambda: s.request("GET", "/api/kernels").json())
        os.kill(s.process("gateway"), signal.SIGTERM)       # from the launcher, otherwise
        wait_for(lambda: "gateway_stopping" in s.log())
    asked.join(60)
    assert (asked.status, asked.said["message"]) == (503, "the server is stopping")


def test_open_sockets_hear_of_the_end(server_with):
    s = server_with()
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("0").status == "ok"
        assert s.delete_kernel(kid) == 204
        with pytest.raises(Ended) as end:
            while True:
                c.recv()
        assert end.value.args == (1000,)


def test_a_deletion_is_finished_by_the_next_gateway(server_with):
    s = server_with()
    kid, other = stubborn_kernel(s), s.start_kernel("python3")
    ending = Call(s, "DELETE", f"/api/kernels/{kid}")
    accepted(s, kid)
    assert len(s.kernels()) == 2
    old = s.process("gateway")
    os.kill(old, signal.SIGKILL)
    s.wait_next("gateway", old)
    wait_for(lambda: len(s.kernels()) == 1)
    assert [m["id"] for m in s.request("GET", "/api/kernels").json()] == [other]
    assert s.delete_kernel(kid) == 404
    ending.join(60)
    assert ending.status == "ended"


@pytest.mark.full
def test_kernels_that_are_asked_to_end_do_so_by_themselves(server_with):
    """Each that does not costs its user the 2.5 s until it is told by a signal."""
    s = server_with()
    kid = s.start_kernel("python3")
    for i in range(30):
        with Channels(s, kid) as c:
            assert c.run("1").result == "1"
        if i % 2:
            assert s.restart(kid).status == 200
        else:
            assert s.delete_kernel(kid) == 204
            kid = s.start_kernel("python3")
    ends = [line for line in s.log().splitlines() if "event=kernel_exited" in line]
    assert len(ends) == 30
    assert [line for line in ends if " signal=0 " not in line] == []


@contextlib.contextmanager
def held(pid):
    """A debugger of the host: the process ends as ever, but nobody reaps it meanwhile."""
    seize = ("import ctypes, sys\n"
             "libc = ctypes.CDLL(None, use_errno=True)\n"
             "libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]\n"
             "print(libc.ptrace(0x4206, int(sys.argv[1]), None, None), flush=True)\n"      # PTRACE_SEIZE
             "sys.stdin.read()\n")
    debugger = subprocess.Popen([sys.executable, "-c", seize, str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert debugger.stdout.readline() == "0\n"
        yield
    finally:
        debugger.stdin.close()
        debugger.wait()


@pytest.mark.full
def test_what_is_killed_and_not_gone_keeps_its_place(server_with):
    s = server_with("--max-kernels", "1", "--drain-timeout", "1")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        c.run("1")
    with held(s.kernels()[0]):
        assert s.request("DELETE", f"/api/kernels/{kid}", timeout=120).status == 204
        assert s.request("GET", f"/api/kernels/{kid}").status == 404 and s.request("GET", "/api/kernels").json() == []
        assert s.request("POST", "/api/kernels", {}).status == 403, "its place is not free yet"
    wait_for(lambda: "event=remains_gone" in s.log())
    assert s.delete_kernel(s.start_kernel("python3")) == 204
