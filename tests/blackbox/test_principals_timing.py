"""Whoever knows the id of another's kernel or session learns nothing from how long an answer takes."""

import json
import statistics
import time
import uuid

import pytest

from principals import PrincipalServer, belongings, entry
from rawhttp import Raw
from server import DEADLINE


@pytest.fixture(scope="module")
def server():
    s = PrincipalServer([entry("alice", limits={"max_kernels": 4}), entry("bob")]).start()
    yield s
    s.close()


@pytest.fixture(scope="module")
def bob(server):
    return server.as_("bob")


@pytest.fixture(scope="module")
def hers(server):
    with belongings(server.as_("alice")) as what:
        yield what


# What is asked with an id, and how many times an id of each kind in one try. What makes a kernel makes one of bob's own.
MODEL = {"path": "t.ipynb", "type": "notebook", "name": ""}
UPGRADE = ("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
TIMED = {
    "get-kernel": ("GET", "/api/kernels/{k}", None, 200),
    "get-limits": ("GET", "/api/kernels/{k}/limits", None, 200),
    "delete-kernel": ("DELETE", "/api/kernels/{k}", None, 200),
    "interrupt": ("POST", "/api/kernels/{k}/interrupt", lambda k: {}, 200),
    "restart": ("POST", "/api/kernels/{k}/restart", lambda k: {}, 200),
    "socket": ("UPGRADE", "/api/kernels/{k}/channels?session_id=alices-own-session", None, 200),
    "get-session": ("GET", "/api/sessions/{s}", None, 200),
    "patch-session": ("PATCH", "/api/sessions/{s}", lambda k: {"path": "x.ipynb"}, 200),
    "delete-session": ("DELETE", "/api/sessions/{s}", None, 200),
    "move-own-session": ("PATCH", "/api/sessions/{own}", lambda k: {"kernel": {"id": k}}, 200),
    "chosen-kernel-id": ("POST", "/api/kernels", lambda k: {"name": "python3", "kernel_id": k}, 2),
    "session-with-kernel-id": ("POST", "/api/sessions", lambda k: {**MODEL, "path": f"{k}.ipynb", "kernel": {"id": k}}, 2),
}


class Clock:
    """One connection of bob's; how long the answer to each request takes."""

    def __init__(self, who):
        self.who, self.raw = who, None

    def once(self, method, path, body):
        data = b"" if body is None else json.dumps(body).encode()
        more = UPGRADE if method == "UPGRADE" else f"Content-Length: {len(data)}\r\n" if data else ""
        method = "GET" if method == "UPGRADE" else method
        self.raw = self.raw or Raw(self.who, DEADLINE)
        begin = time.perf_counter_ns()
        self.raw.send(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: token {self.who.token}\r\n{more}\r\n".encode()
                      + data)
        status, headers, answer = self.raw.answer(method)
        took = time.perf_counter_ns() - begin
        if headers.get("connection", "").lower() == "close":
            self.close()
        return took, status, answer

    def close(self):
        if self.raw:
            self.raw.close()
        self.raw = None


# The others take seconds each.
TIMED_IN_QUICK = ("get-kernel", "delete-kernel", "socket")


@pytest.mark.parametrize("method, pattern, body, pairs", [
    pytest.param(*x, id=name, marks=() if name in TIMED_IN_QUICK else pytest.mark.full) for name, x in TIMED.items()])
def test_a_foreign_id_takes_as_long_as_an_unknown_one(bob, hers, method, pattern, body, pairs):
    """Medians of interleaved requests; in most of five tries they are near each other."""
    clock, tries = Clock(bob), []
    own = bob.request("POST", "/api/sessions", {**MODEL, "path": "own.ipynb", "kernel": {"name": "python3"}}).json()["id"]

    def took(kernel, session):
        ns, status, answer = clock.once(method, pattern.format(k=kernel, s=session, own=own), body and body(kernel))
        if status == 201:               # of bob's own now: it goes again, outside of the time
            made = json.loads(answer)
            assert bob.request("DELETE", f"{pattern}/{made['id']}").status == 204
        else:
            assert status == (400 if "{own}" in pattern else 404), (status, answer)
        return ns
    try:
        for _ in range(5):
            foreign, unknown = [], []
            for i in range(pairs):
                pair = [(foreign, hers.kernel, hers.session), (unknown, str(uuid.uuid4()), str(uuid.uuid4()))]
                for out, kernel, session in pair if i % 2 else reversed(pair):
                    out.append(took(kernel, session))
            tries.append((statistics.median(foreign), statistics.median(unknown)))
            assert hers.socket.run("secret").result == "4711"
        near = [abs(a - b) < (0.25 if pairs > 100 else 0.5) * max(a, b) for a, b in tries]
        assert sum(near) >= 3, f"medians in ns, foreign and unknown: {tries}"
    finally:
        clock.close()
        assert bob.request("DELETE", f"/api/sessions/{own}").status == 204
