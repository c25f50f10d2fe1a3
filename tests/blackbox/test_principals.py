"""Several principals: each sees and touches its own alone, whatever it knows of the others."""

import json
import os
import re
import signal
import subprocess
import threading
import time
import uuid

import pytest
import websocket

from channels import Channels, Ended
from principals import As, PrincipalServer, belongings, digest, entry, token_of
from rawhttp import Raw
from server import BIN, DEADLINE, free_port, read, wait_for

LINES = [
    "# who may ask",
    "",
    entry("alice", limits={"max_kernels": 4}),
    entry("bob", note="the other one"),
    entry("watcher", role="observer", observes="alice"),
    entry("auditor", role="observer", observes="*"),
    entry("small", limits={"max_kernels": 2, "memory_mb": 300, "cpus": 0.5, "pids": 50, "disk_mb": 20}),
]


@pytest.fixture(scope="module")
def server():
    s = PrincipalServer(LINES, own="t0ken-of-default").start()
    yield s
    s.close()


@pytest.fixture
def own_server():
    """Factory: a server of the test's own, with these lines."""
    made = []

    def make(lines=LINES, *options, **kw):
        made.append(PrincipalServer(lines, *options, **kw).start())
        return made[-1]
    yield make
    for s in made:
        s.close()


@pytest.fixture(scope="module")
def alice(server):
    return server.as_("alice")


@pytest.fixture(scope="module")
def bob(server):
    return server.as_("bob")


@pytest.fixture(scope="module")
def hers(alice):
    with belongings(alice) as what:
        yield what


# --- who is who ------------------------------------------------------------------------------

def test_each_token_is_its_name(server):
    for name in ("alice", "bob", "watcher"):
        me = server.as_(name).request("GET", "/api/me").json()["identity"]
        assert me["username"] == me["name"] == me["display_name"] == name
        assert me["initials"] == name[0].upper() + name[1]
    assert server.request("GET", "/api/me").json()["identity"]["username"] == "anonymous"
    for token in ("", "nonsense", digest(token_of("alice")), token_of("alice")[:-1], token_of("alice") + "x"):
        assert As(server, "nobody", token or " ").request("GET", "/api/kernels").status == 401


def test_the_list_has_what_is_ones_own(server, alice, bob, hers):
    mine = bob.start_kernel("python3")
    try:
        assert bob.ids() == {mine}
        assert alice.ids() == {hers.kernel, hers.notebook_kernel}
        assert [s["id"] for s in alice.request("GET", "/api/sessions").json()] == [hers.session]
        assert bob.request("GET", "/api/sessions").json() == []
        assert bob.request("GET", "/api/status").json()["kernels"] == 1
        assert server.request("GET", "/api/kernels").json() == []
    finally:
        bob.delete_kernel(mine)


# --- attempts to cross -------------------------------------------------------------------------

BODY_PATCHES = [{"path": "b.ipynb"}, {"name": "b"}, {"type": "console"}, {"kernel": {"name": "python3"}}, {}]

HTTP_ATTEMPTS = [
    ("GET", "/api/kernels/{k}", None, {}),
    ("HEAD", "/api/kernels/{k}", None, {}),
    ("GET", "/api/kernels/{k}/", None, {}),
    ("GET", "/api/kernels/{K}", None, {}),
    ("GET", "/api/kernels/{k%}", None, {}),
    ("GET", "/api/kernels/{k}?user=alice/python3", None, {}),
    ("GET", "/api/kernels/{k}?permissions={{}}", None, {}),
    ("GET", "/api/kernels/{k}", None, {"X-Forwarded-User": "alice", "X-Remote-User": "alice", "Remote-User": "alice"}),
    ("GET", "/api/kernels/{k}", None, {"Cookie": "token=alice; user=alice"}),
    ("DELETE", "/api/kernels/{k}", None, {}),
    ("DELETE", "/api/kernels/{k}/", None, {}),
    ("DELETE", "/api/kernels/{K}", None, {}),
    ("POST", "/api/kernels/{k}/interrupt", None, {}),
    ("POST", "/api/kernels/{k}/interrupt", {}, {}),
    ("POST", "/api/kernels/{K}/interrupt", {}, {}),
    ("POST", "/api/kernels/{k}/restart", None, {}),
    ("POST", "/api/kernels/{k}/restart", {}, {}),
    ("POST", "/api/kernels/{k%}/restart", {}, {}),
    ("PUT", "/api/kernels/{k}", {}, {}),
    ("PATCH", "/api/kernels/{k}", {"name": "x"}, {}),
    ("POST", "/api/kernels/{k}", {}, {}),
    ("GET", "/api/kernels/{k}/interrupt", None, {}),
    ("GET", "/api/kernels/{k}/channels", None, {}),
    ("GET", "/api/kernels/{k}/channels?session_id=alices-own-session", None, {}),
    ("POST", "/api/kernels/{k}/channels", {}, {}),
    ("GET", "/api/kernels/{k}/limits", None, {}),
    ("GET", "/api/kernels/{K}/limits", None, {}),
    ("GET", "/api/kernels/{n}/limits", None, {}),
    ("POST", "/api/kernels/{k}/limits", {}, {}),
    ("GET", "/api/kernels/{k}/nothing", None, {}),
    ("OPTIONS", "/api/kernels/{k}", None, {}),
    ("GET", "/api/kernels/{n}", None, {}),
    ("DELETE", "/api/kernels/{n}", None, {}),
    ("POST", "/api/kernels/{n}/restart", {}, {}),
    ("GET", "/api/sessions/{s}", None, {}),
    ("HEAD", "/api/sessions/{s}", None, {}),
    ("GET", "/api/sessions/{s}/", None, {}),
    ("GET", "/api/sessions/{S}", None, {}),
    ("GET", "/api/sessions/{k}", None, {}),
    ("DELETE", "/api/sessions/{s}", None, {}),
    ("DELETE", "/api/sessions/{S}", None, {}),
    ("DELETE", "/api/sessions/{k}", None, {}),
    *[("PATCH", "/api/sessions/{s}", body, {}) for body in BODY_PATCHES],
    ("PATCH", "/api/sessions/{s}", b"{", {}),
    ("PUT", "/api/sessions/{s}", {}, {}),
    ("POST", "/api/sessions/{s}", {}, {}),
]


class Ids:
    """Fills an attempt with ids; puts names in their place in what comes back."""

    def __init__(self, kernel, notebook_kernel, session):
        self.all = {"k": kernel, "n": notebook_kernel, "s": session}

    @classmethod
    def of(cls, hers):
        return cls(hers.kernel, hers.notebook_kernel, hers.session)

    @classmethod
    def unknown(cls):
        return cls(*(str(uuid.uuid4()) for _ in range(3)))

    def fill(self, path):
        percent = "".join(f"%{ord(c):02X}" for c in self.all["k"][:4]) + self.all["k"][4:]
        return path.format(**self.all, **{"K": self.all["k"].upper(), "S": self.all["s"].upper(), "k%": percent})

    def strip(self, text):
        for name, value in self.all.items():
            text = text.replace(value, f"<{name}>").replace(value.upper(), f"<{name.upper()}>")
        return text


def attempt(who, ids, method, path, body, headers):
    """Everything that tells one answer from another."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    path = ids.fill(path)
    head = "".join(f"{k}: {v}\r\n" for k, v in {"Authorization": f"Bearer {who.token}", **headers}.items())
    raw = Raw(who)
    try:
        length = f"Content-Length: {len(data)}\r\n" if data is not None else ""
        raw.send(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}{length}\r\n".encode() + (data or b""))
        status, fields, answer = raw.answer(method)
    finally:
        raw.close()
    for private in ("date", "x-request-id"):
        fields.pop(private, None)
    return status, sorted(fields.items()), ids.strip(answer.decode())


@pytest.mark.parametrize("method, path, body, headers", HTTP_ATTEMPTS)
def test_a_foreign_id_is_answered_like_an_unknown_one(bob, hers, method, path, body, headers):
    foreign = attempt(bob, Ids.of(hers), method, path, body, headers)
    unknown = attempt(bob, Ids.unknown(), method, path, body, headers)
    assert foreign == unknown
    assert foreign[0] in (200, 404, 405) and (foreign[0] != 200 or method == "OPTIONS")


@pytest.mark.parametrize("query, protocols", [
    ("", None),
    ("?session_id=alices-own-session", None),
    ("?session_id=alices-own-session", ["v1.kernel.websocket.jupyter.org"]),
    ("?session_id=x&token=", None),
])
def test_a_foreign_socket_is_refused_like_an_unknown_one(bob, hers, query, protocols):
    def answer(kid):
        with pytest.raises(websocket.WebSocketBadStatusException) as e:
            websocket.create_connection(f"ws://127.0.0.1:{bob.port}/api/kernels/{kid}/channels{query}",
                                        header=[f"Authorization: token {bob.token}"], subprotocols=protocols,
                                        timeout=DEADLINE)
        ids = Ids(kid, "-", "-")
        fields = {k.lower(): v for k, v in e.value.resp_headers.items() if k.lower() not in ("date", "x-request-id")}
        return e.value.status_code, fields, ids.all["k"] and (e.value.resp_body or b"").decode().replace(kid, "<k>")
    assert answer(hers.kernel) == answer(str(uuid.uuid4()))
    assert hers.socket.run("secret").result == "4711"       # her own socket was not taken over


def shape(model):
    """What is left of an answer that made something."""
    if isinstance(model, dict):
        return {k: shape(v) for k, v in model.items() if k not in ("id", "last_activity", "execution_state")}
    return model


@pytest.mark.parametrize("upper", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_kernel_with_a_foreign_id_is_a_kernel_of_ones_own(alice, bob, hers, upper):
    """POST /api/kernels with a kernel_id that another principal has: two kernels with one id."""
    foreign = hers.kernel.upper() if upper else hers.kernel
    unknown = str(uuid.uuid4())
    made = [bob.request("POST", "/api/kernels", {"name": "python3", "kernel_id": i}) for i in (foreign, unknown)]
    try:
        assert [m.status for m in made] == [201, 201]
        assert shape(made[0].json()) == shape(made[1].json())
        assert made[0].headers["Location"].replace(foreign, "") == made[1].headers["Location"].replace(unknown, "")
        with Channels(bob, foreign) as c:
            assert c.run("secret").ename == "NameError"
            assert c.run("secret = 'bobs'").status == "ok"
        assert hers.socket.run("secret").result == "4711"
        assert bob.request("POST", f"/api/kernels/{foreign}/restart", {}).status == 200
        assert hers.socket.run("secret").result == "4711"
    finally:
        assert [bob.delete_kernel(i) for i in (foreign, unknown)] == [204, 204]
    assert alice.kernel(hers.kernel) and hers.socket.run("secret").result == "4711"
    assert bob.kernel(hers.kernel) is None


def test_a_session_with_a_foreign_kernel_id_has_a_kernel_of_its_own(alice, bob, hers):
    """POST /api/sessions with kernel.id of another principal."""
    model = {"path": "b.ipynb", "type": "notebook", "name": ""}
    made = [bob.request("POST", "/api/sessions", {**model, "path": f"{i}.ipynb", "kernel": {"id": i}})
            for i in (hers.kernel, str(uuid.uuid4()))]
    try:
        assert [m.status for m in made] == [201, 201]
        with Channels(bob, hers.kernel) as c:
            assert c.run("secret").ename == "NameError"
    finally:
        assert [bob.request("DELETE", f"/api/sessions/{m.json()['id']}").status for m in made] == [204, 204]
    assert hers.socket.run("secret").result == "4711"
    assert alice.kernel(hers.kernel)


def test_a_session_cannot_be_moved_to_a_foreign_kernel(alice, bob, hers):
    """PATCH /api/sessions with kernel.id of another principal."""
    mine = bob.request("POST", "/api/sessions", {"path": "c.ipynb", "type": "notebook", "kernel": {"name": "python3"}})
    sid = mine.json()["id"]
    try:
        answers = []
        for kid in (hers.kernel, hers.notebook_kernel, str(uuid.uuid4())):
            r = bob.request("PATCH", f"/api/sessions/{sid}", {"kernel": {"id": kid}})
            answers.append((r.status, r.body.decode().replace(kid, "<k>")))
        assert answers[0] == answers[1] == answers[2]
        assert answers[0][0] == 400
        assert bob.request("GET", f"/api/sessions/{sid}").json()["kernel"]["id"] == mine.json()["kernel"]["id"]
    finally:
        assert bob.request("DELETE", f"/api/sessions/{sid}").status == 204


def test_the_same_path_is_another_session_for_each(alice, bob, hers):
    r = bob.request("POST", "/api/sessions", {"path": "a.ipynb", "type": "notebook", "kernel": {"name": "python3"}})
    assert r.status == 201 and r.json()["id"] != hers.session
    assert bob.request("DELETE", f"/api/sessions/{r.json()['id']}").status == 204
    assert alice.request("GET", f"/api/sessions/{hers.session}").status == 200


def test_after_all_attempts_she_has_what_she_had(alice, hers):
    assert alice.ids() == {hers.kernel, hers.notebook_kernel}
    assert hers.socket.run("secret").result == "4711"


# --- observers ---------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["watcher", "auditor"])
def test_an_observer_reads_what_another_has(server, hers, name):
    who = server.as_(name)
    assert who.ids() == {hers.kernel, hers.notebook_kernel}
    assert who.request("GET", f"/api/kernels/{hers.kernel}").status == 200
    assert [s["id"] for s in who.request("GET", "/api/sessions").json()] == [hers.session]
    assert who.request("GET", f"/api/sessions/{hers.session}").status == 200
    asked = {"permissions": json.dumps({"kernels": ["read", "write", "execute"]})}
    got = who.request("GET", "/api/me?permissions=" + asked["permissions"].replace(" ", "").replace('"', "%22"))
    assert got.json()["permissions"] == {"kernels": ["read"], "updatable_fields": []}


def test_an_observer_of_one_does_not_see_another(server, bob, hers):
    mine = bob.start_kernel("python3")
    try:
        watcher, auditor = server.as_("watcher"), server.as_("auditor")
        assert mine in auditor.ids() and mine not in watcher.ids()
        ids = [attempt(watcher, Ids(k, k, k), "GET", "/api/kernels/{k}", None, {}) for k in (mine, str(uuid.uuid4()))]
        assert ids[0] == ids[1] and ids[0][0] == 404
    finally:
        bob.delete_kernel(mine)


@pytest.mark.parametrize("method, path, body", [
    ("POST", "/api/kernels", {"name": "python3"}),
    ("POST", "/api/kernels", None),
    ("DELETE", "/api/kernels/{k}", None),
    ("POST", "/api/kernels/{k}/interrupt", {}),
    ("POST", "/api/kernels/{k}/restart", {}),
    ("POST", "/api/sessions", {"path": "o.ipynb", "type": "notebook", "kernel": {"name": "python3"}}),
    ("PATCH", "/api/sessions/{s}", {"name": "o"}),
    ("DELETE", "/api/sessions/{s}", None),
])
def test_an_observer_changes_nothing(server, hers, method, path, body):
    watcher = server.as_("watcher")
    for ids in (Ids.of(hers), Ids.unknown()):
        r = watcher.request(method, ids.fill(path), body)
        assert r.status == 403 and r.json()["message"] == "an observer only reads"
    assert hers.socket.run("secret").result == "4711"


def test_an_observers_socket_hears_iopub_and_says_nothing(server, alice, hers):
    """What it sends is dropped and counted; a session_id does not take another socket's place."""
    with Channels(server.as_("watcher"), hers.kernel, sid=hers.socket.sid) as ear:
        for kind, channel, content in (
                ("execute_request", "shell", {"code": "secret = 0", "silent": False, "store_history": True,
                                              "user_expressions": {}, "allow_stdin": False}),
                ("kernel_info_request", "shell", {}), ("interrupt_request", "control", {}),
                ("shutdown_request", "control", {"restart": False}), ("input_reply", "stdin", {"value": "x"})):
            ear.send(kind, content, channel)
        ear.ws.send("nonsense")
        wait_for(lambda: 'holdcell_messages_dropped_total{reason="observer"} 6' in
                 server.request("GET", "/metrics").body.decode())
        assert server.events("observer_frame")
        run = hers.socket.start("print('for all to hear'); input('?'); secret", allow_stdin=True)
        said = ear.until(lambda m: m["header"]["msg_type"] == "stream")
        assert said["content"]["text"] == "for all to hear\n" and said["channel"] == "iopub"
        done = hers.socket.finish(run, answer="hers")
        assert done.status == "ok" and done.result == "4711"
        ear.until(lambda m: m["header"]["msg_type"] == "status" and m["content"]["execution_state"] == "idle"
                  and m["parent_header"].get("msg_id") == run)
        assert {m["channel"] for m in ear.seen} == {"iopub"}
        assert not [m for m in ear.seen if m["header"]["msg_type"].endswith("_reply")]
    assert hers.socket.run("secret").result == "4711"
    assert alice.kernel(hers.kernel)


# --- limits --------------------------------------------------------------------------------------

@pytest.mark.full
def test_the_slots_of_a_principal_hold_against_requests_at_once(server, bob):
    small = server.as_("small")
    got = []
    threads = [threading.Thread(target=lambda: got.append(small.request("POST", "/api/kernels", {"name": "python3"})))
               for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(r.status for r in got) == [201] * 2 + [403] * 6
    refused = next(r for r in got if r.status == 403)
    assert re.fullmatch(r"Resource Limit: \d kernels are running, the limit is 2", refused.json()["message"])
    mine = [r.json()["id"] for r in got if r.status == 201]
    assert small.ids() == set(mine)
    other = bob.start_kernel("python3")     # who has room left is not held up
    bob.delete_kernel(other)
    small.delete_kernel(mine[0])
    mine[0] = small.start_kernel("python3")
    for kid in mine:
        assert small.delete_kernel(kid) == 204


def test_the_limits_of_a_principal_hold_in_its_sandboxes(server):
    small = server.as_("small")
    kid = small.start_kernel("python3")
    try:
        with Channels(small, kid) as c:
            disk = c.run("import os; s = os.statvfs('/home/user'); s.f_blocks * s.f_frsize >> 20")
            assert disk.result == "20"
            c.start("x = bytearray(600 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1")
            c.until(lambda m: "out of memory (limit 300 MiB" in json.dumps(m["content"]))
    finally:
        small.delete_kernel(kid)


def test_the_limit_of_the_server_holds_for_all_and_tells_nobody_of_the_others(own_server):
    s = own_server([entry("alice"), entry("bob")], "--max-kernels", "2")
    alice, bob = s.as_("alice"), s.as_("bob")
    alice.start_kernel("python3"), alice.start_kernel("python3")
    assert alice.request("POST", "/api/kernels", {}).json()["message"] == \
        "Resource Limit: 2 kernels are running, the limit is 2"
    r = bob.request("POST", "/api/kernels", {})
    assert (r.status, r.json()["message"]) == (403, "Resource Limit: the server runs as many kernels as it may")


# --- changes while the server runs -----------------------------------------------------------------

def test_a_revoked_token_loses_its_sockets_and_requests_and_its_kernels_stay(own_server):
    s = own_server()
    alice, bob = s.as_("alice"), s.as_("bob")
    kid, other = alice.start_kernel("python3"), bob.start_kernel("python3")
    c, d = Channels(alice, kid), Channels(bob, other)
    assert c.run("x = 1").status == d.run("x = 2").status == "ok"
    without = [x for x in LINES if '"alice"' not in x.split("sha256")[0]]
    s.reload(without)
    with pytest.raises(Ended) as e:
        while True:
            c.recv()
    assert e.value.args == (1008,)
    assert alice.request("GET", "/api/kernels").status == 401
    assert d.run("x").result == "2"
    assert len(s.kernels()) == 2
    assert bob.request("GET", f"/api/kernels/{kid}").status == 404
    s.reload(LINES)                     # the name comes back
    with Channels(alice, kid) as again:
        assert again.run("x").result == "1"


def test_a_request_that_waits_ends_when_its_token_is_revoked(own_server, kernel_path):
    """The handshake with a kernel that never says anything waits for kernel-info-timeout."""
    kernel_path.add("mute", ["sleep", "1000"])
    s = own_server(LINES, "--kernel-path", kernel_path.path, "--kernel-info-timeout", "600")
    alice, bob = s.as_("alice"), s.as_("bob")
    kid = alice.start_kernel("mute")
    bob_kid = bob.start_kernel("mute")

    def handshake(who, of):
        raw = Raw(who, timeout=DEADLINE)
        raw.send(f"GET /api/kernels/{of}/channels HTTP/1.1\r\nHost: x\r\nAuthorization: token {who.token}\r\n"
                 "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode())
        return raw
    hers, his = handshake(alice, kid), handshake(bob, bob_kid)
    assert not hers.ended(within=1)         # it waits
    s.reload([x for x in LINES if not x.startswith('{"name": "alice"')])
    assert hers.answer()[0] == 401 and hers.ended()
    assert not his.ended(within=1) and his.buf == b""
    hers.close(), his.close()


def test_a_changed_token_is_a_revoked_one_and_two_hashes_let_both_in(own_server):
    s = own_server([entry("alice")])
    old, new = s.as_("alice"), s.as_("alice", token_of("alice", 2))
    kid = old.start_kernel("python3")
    with Channels(old, kid) as c:
        assert c.run("x = 1").status == "ok"
        s.reload([entry("alice", tokens=[token_of("alice"), token_of("alice", 2)])])
        assert (old.request("GET", "/api/kernels").status, new.request("GET", "/api/kernels").status) == (200, 200)
        assert c.run("x").result == "1"
        with Channels(new, kid) as d:
            s.reload([entry("alice", tokens=[token_of("alice", 2)])])
            with pytest.raises(Ended) as e:
                while True:
                    c.recv()
            assert e.value.args == (1008,)
            assert d.run("x").result == "1"
    assert (old.request("GET", "/api/kernels").status, new.request("GET", "/api/kernels").status) == (401, 200)


def test_a_request_whose_body_is_on_its_way_at_a_reload_has_the_new_limits(own_server):
    s = own_server([entry("alice")])
    alice = s.as_("alice")
    alice.start_kernel("python3")
    raw = Raw(alice, timeout=DEADLINE)
    raw.send(f"POST /api/kernels HTTP/1.1\r\nHost: x\r\nAuthorization: token {alice.token}\r\n"
             "Expect: 100-continue\r\nContent-Length: 18\r\n\r\n".encode())
    assert raw.answer()[0] == 100           # the head is through
    raw.send(b'{"name":"')
    s.reload([entry("alice", limits={"max_kernels": 1})])
    raw.send(b'python3"}')
    status, _, body = raw.answer()
    assert status == 403 and b"Resource Limit" in body
    assert len(alice.ids()) == 1
    raw.close()


def test_who_becomes_an_observer_loses_the_sockets_of_before(own_server):
    s = own_server([entry("alice")])
    alice = s.as_("alice")
    with Channels(alice, alice.start_kernel("python3")) as c:
        assert c.run("1").status == "ok"
        s.reload([entry("alice", role="observer", observes="alice")])
        with pytest.raises(Ended):
            while True:
                c.recv()
    assert alice.request("POST", "/api/kernels", {}).status == 403


@pytest.mark.full
def test_an_expired_token_loses_its_sockets_at_its_time(own_server):
    at = time.time() + 6
    s = own_server([entry("alice", expires=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at + 1))), entry("bob")])
    alice = s.as_("alice")
    with Channels(alice, alice.start_kernel("python3")) as c:
        with pytest.raises(Ended) as e:
            while True:
                c.recv()
        assert e.value.args == (1008,)
    assert time.time() >= at
    assert alice.request("GET", "/api/kernels").status == 401
    assert s.as_("bob").request("GET", "/api/kernels").status == 200


@pytest.mark.parametrize("lines, told", [
    (["nonsense"], "option --principals: line 1: no JSON object on one line"),
    ([entry("alice"), '{"name": "bob"}'], "line 2: field 'sha256' is missing"),
    ([entry("alice"), "", entry("alice", tokens=["another-token-of-her"])], "line 3: field 'name'"),
    ([entry("alice", role="king")], "line 1: field 'role'"),
    ([entry("alice", limits={"memory_mb": 1 << 20})], "line 1: field 'limits.memory_mb' is above"),
    ([entry("default")], "line 1: field 'name': 'default' has its token by --token, --token-file or a variable already"),
    ([entry("eve", tokens=["t0ken-of-default"])], "line 1: field 'sha256': the same hash is there already"),
])
def test_a_broken_file_keeps_the_old_state_and_is_told(server, hers, alice, lines, told):
    server.write(lines)
    try:
        line = server.hang_up("reload_refused")
        assert told in line.replace("\\", "") and "the old settings stay in force" in line
        assert alice.request("GET", f"/api/kernels/{hers.kernel}").status == 200
        assert hers.socket.run("secret").result == "4711"
    finally:
        server.write(LINES)


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o620, 0o602])
def test_a_file_that_others_may_read_or_change_is_refused(server, mode):
    server.write(LINES, mode)
    try:
        assert f"has mode {mode:04o}" in server.hang_up("reload_refused")
    finally:
        os.chmod(server.file, 0o600)


def test_a_file_of_another_user_is_refused(server):
    os.chown(server.file, 65534, 0)
    try:
        assert "belongs to user 65534, not to root" in server.hang_up("reload_refused")
    finally:
        os.chown(server.file, 0, 0)


def test_a_gateway_after_a_reload_and_a_kill_knows_the_new_tokens_and_whose_kernels_live(own_server):
    s = own_server([entry("alice"), entry("bob")])
    alice, bob = s.as_("alice"), s.as_("bob")
    hers, his = alice.start_kernel("python3"), bob.start_kernel("python3")
    s.reload([entry("alice", tokens=[token_of("alice", 2)]), entry("bob")])
    old = s.process("gateway")
    os.kill(old, signal.SIGKILL)
    alice = s.as_("alice", token_of("alice", 2))
    s.wait_next("gateway", old)
    assert alice.ids() == {hers} and bob.ids() == {his}
    assert s.as_("alice").request("GET", "/api/kernels").status == 401


@pytest.mark.parametrize("lines, told", [
    (["{"], "holdcell serve: option --principals: line 1: no JSON object"),
    ([entry("a", profile="gpu")], "line 1: field 'profile' has to be"),
])
def test_a_broken_file_at_the_start_is_told_before_anything_runs(lines, told):
    s = PrincipalServer(lines)
    try:
        s.spawn()
        assert s.proc.wait(DEADLINE) == 2
        assert told in s.log() and "launcher_started" not in s.log()
    finally:
        s.close()


# --- secrets ---------------------------------------------------------------------------------------

def test_no_token_and_no_hash_reaches_log_command_line_or_environment(server, alice, hers):
    bob = server.as_("bob")
    for path in (f"/api/kernels?token={bob.token}", f"/api/kernels/x?token={bob.token}", "/api/kernels"):
        bob.request("GET", path)
        As(server, "x", bob.token + "-wrong").request("GET", path)
    secrets = [t for name in ("alice", "bob", "watcher", "auditor", "small") for t in (token_of(name), digest(token_of(name)))]
    texts = {"log": server.log()}
    for pid in [server.proc.pid, server.process("launcher"), server.process("gateway"), *server.kernels()]:
        for what in ("cmdline", "environ"):
            texts[f"{pid}/{what}"] = read(f"/proc/{pid}/{what}")
    for where, text in texts.items():
        assert not [s for s in secrets if s in text], where
    assert "principal=alice" in texts["log"]


# --- holdcell token --------------------------------------------------------------------------------

def holdcell_token(*argv):
    return subprocess.run([BIN, "token", *argv], capture_output=True, text=True, timeout=DEADLINE)


def test_a_new_token_and_its_line_belong_together(tmp_path):
    file = tmp_path / "principals"
    lines = []
    for argv in (["--name", "carol"], ["--name", "o@x.org", "--role", "observer", "--observes", "*"],
                 ["--name", "hub", "--role", "proxy"]):
        got = holdcell_token("new", *argv)
        assert got.returncode == 0, got
        line, token = got.stdout.rstrip("\n"), got.stderr.split(": ", 1)[1].strip()
        assert json.loads(line)["sha256"] == [digest(token)] and token not in line and len(token) >= 32
        lines.append(line)
    file.write_text("\n".join(lines))
    file.chmod(0o600)
    assert holdcell_token("check", str(file)).stdout == f"{file}: 3 principals\n"
    file.write_text("\n".join([*lines, lines[0]]))
    got = holdcell_token("check", str(file))
    assert got.returncode == 2 and f"{file}: line 4: field 'name': 'carol' is there already" in got.stderr


@pytest.mark.parametrize("argv, said", [
    (["new"], "option --name is needed"),
    (["new", "--name", "a b"], "field 'name' has to be"),
    (["new", "--name", 'a"b'], "has no quotes"),
    (["new", "--name", "a", "--role", "king"], "field 'role' has to be"),
    (["new", "--name", "a", "--role", "observer"], "field 'observes' is missing"),
    (["new", "--nam", "a"], "did you mean --name?"),
    (["check", "/nowhere/at/all"], "holdcell token: open '/nowhere/at/all'"),
    (["check"], "holdcell token: check: FILE is missing"),
    (["check", "/a", "/b"], "holdcell token: check: unexpected argument '/b'"),
    (["check", "/a", "--name", "x"], "holdcell token: check: takes no --name"),
    (["new", "alice"], "unexpected argument 'alice'"),
    (["chek"], "holdcell token: 'chek' is not new or check\nusage:"),
    ([], "holdcell token: new or check is missing\nusage:"),
])
def test_what_is_wrong_with_a_token_command_is_told(argv, said):
    got = holdcell_token(*argv)
    assert got.returncode == 2 and said in got.stderr and got.stdout == ""


def lines_of(tmp_path, text):
    file = tmp_path / "principals"
    file.write_text(text)
    file.chmod(0o600)
    return file


def test_default_may_be_a_line_where_the_server_has_no_token_of_its_own_and_that_is_told(tmp_path):
    made = holdcell_token("new", "--name", "default")
    note = "note: a server whose file has 'default' takes no --token"
    assert made.returncode == 0 and note in made.stderr
    s = PrincipalServer([made.stdout], "--prespawn", "1", own=None)
    token = made.stderr.split("token (shown only now): ", 1)[1].strip()
    try:
        s.start().token = token
        assert len(s.request("GET", "/api/kernels").json()) == 1, "those of --prespawn"
        assert s.request("GET", "/metrics").status == 200
        checked = holdcell_token("check", s.file)
        assert checked.returncode == 0 and ": 1 principal\n" in checked.stdout and note in checked.stderr
    finally:
        s.close()
    got = subprocess.run([BIN, "serve", "--listen", f"127.0.0.1:{free_port()}", "--state-dir", str(tmp_path / "state"),
                          "--principals", str(lines_of(tmp_path, made.stdout)), "--token", "one-more"],
                         capture_output=True, text=True, timeout=DEADLINE)
    assert got.returncode != 0 and "line 1: field 'name': 'default' has its token by --token" in got.stderr, got
    assert note not in holdcell_token("new", "--name", "alice").stderr
