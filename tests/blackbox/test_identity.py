"""A trusted proxy (JupyterHub, oauth2-proxy) names the principal by a header; nobody else does."""

import http.client
import json
import socket

import pytest
import websocket

from channels import Channels, Ended
from principals import As, PrincipalServer, entry, token_of
from server import DEADLINE, Response

LINES = [
    entry("hub", role="proxy"),
    entry("alice", tokens=[]),
    entry("bob"),
    entry("eye", role="observer", observes="alice", tokens=[]),
    entry("late", tokens=[], expires="2020-01-01"),
]


class In(As):
    """The proxy's requests in the name of somebody."""

    def __init__(self, server, user, by="hub", field="X-User"):
        super().__init__(server, by)
        self.user, self.field = user, field

    def request(self, method, path, body=None, headers=None, **kw):
        return super().request(method, path, body, {self.field: self.user, **(headers or {})}, **kw)

    def header(self):
        return [f"{self.field}: {self.user}"]


def server_of(*options, lines=LINES, trusted="127.0.0.0/8,::1", unknown=None, **kw):
    more = ["--identity-unknown", unknown] if unknown else []
    return PrincipalServer(lines, "--trusted-proxy", trusted, "--identity-header", "X-User", *more, *options, **kw)


@pytest.fixture(scope="module")
def server():
    s = server_of(own="t0ken-of-default").start()
    yield s
    s.close()


def who(client, **kw):
    r = client.request("GET", "/api/me", **kw)
    return r.json()["identity"]["username"] if r.status == 200 else r.status


def test_the_proxy_asks_in_the_name_of_others(server):
    assert [who(In(server, name)) for name in ("alice", "bob", "eye")] == ["alice", "bob", "eye"]
    assert who(In(server, "alice", field="x-uSER")) == "alice"
    alice = In(server, "alice")
    kid = alice.start_kernel("python3")
    try:
        assert alice.ids() == {kid} and In(server, "bob").ids() == set() and In(server, "eye").ids() == {kid}
        assert In(server, "bob").request("GET", f"/api/kernels/{kid}").status == 404
        assert In(server, "eye").delete_kernel(kid) == 403
        with Channels(alice, kid, header=alice.header()) as c:
            assert c.run("6 * 7").result == "42"
    finally:
        assert alice.delete_kernel(kid) == 204


@pytest.mark.parametrize("user", ["carol", "late", "default", "hub", "", "a b", "alice,bob", "../alice", "alice\t", "x" * 64])
def test_a_name_that_is_none_or_nobodys_is_refused(server, user):
    got = who(In(server, user))
    assert got == (401 if user != "alice\t" else "alice")       # HTTP takes blanks off a value's end


def test_without_a_name_or_with_two_the_proxy_is_refused(server):
    assert who(server.as_("hub")) == 401
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)
    c.putrequest("GET", "/api/me")
    for user in ("alice", "bob"):
        c.putheader("X-User", user)
    c.putheader("Authorization", f"token {token_of('hub')}")
    c.endheaders()
    assert c.getresponse().status == 401
    c.close()


def test_of_all_others_the_header_says_nothing(server):
    assert who(server.as_("bob"), headers={"X-User": "alice"}) == "bob"
    assert who(server, headers={"X-User": "alice"}) == "anonymous"
    assert who(As(server, "x", "no-token"), headers={"X-User": "alice"}) == 401
    assert server.request("GET", "/api/me", headers={"X-User": "alice"}, token=False).status == 401


def test_the_proxys_token_from_another_address_is_refused():
    s = server_of(trusted="192.0.2.0/24").start()
    try:
        r = In(s, "alice").request("GET", "/api/me")
        assert r.status == 401 and "--trusted-proxy" in r.json()["message"]
        assert who(s.as_("bob"), headers={"X-User": "alice"}) == "bob"
    finally:
        s.close()


def test_without_the_option_a_proxys_token_is_good_for_nothing():
    s = PrincipalServer(LINES, "--trusted-proxy", "127.0.0.1").start()
    try:
        assert who(In(s, "alice")) == 401
    finally:
        s.close()


def test_unknown_users_are_made_where_that_was_chosen():
    s = server_of(unknown="create").start()
    try:
        carol = In(s, "carol@example.org")
        assert who(carol) == "carol@example.org"
        kid = carol.start_kernel("python3")
        assert carol.ids() == {kid} and In(s, "dave").ids() == set()
        assert [who(In(s, name)) for name in ("late", "hub", "default", "-x")] == [401] * 4
        with Channels(carol, kid, header=carol.header()) as c:
            assert c.run("1").status == "ok"
            s.reload([x for x in LINES if '"alice"' not in x])
            assert c.run("2").status == "ok"
    finally:
        s.close()


@pytest.mark.full
def test_sockets_end_when_the_user_or_the_proxy_is_taken_out():
    s = server_of().start()
    try:
        alice, bob = In(s, "alice"), In(s, "bob")
        c = Channels(alice, alice.start_kernel("python3"), header=alice.header())
        d = Channels(bob, bob.start_kernel("python3"), header=bob.header())
        assert c.run("1").status == d.run("1").status == "ok"
        s.reload([x for x in LINES if not x.startswith('{"name": "alice"')])
        with pytest.raises(Ended) as e:
            while True:
                c.recv()
        assert e.value.args == (1008,) and d.run("2").status == "ok"
        s.reload([x for x in LINES if not x.startswith('{"name": "hub"')])
        with pytest.raises(Ended) as e:
            while True:
                d.recv()
        assert e.value.args == (1008,)
    finally:
        s.close()


def test_a_foreign_page_does_not_get_through_the_proxy(server):
    """The browser's cookie is enough for the proxy, so the proxy's token proves nothing of the page."""
    alice = In(server, "alice")
    kid = alice.start_kernel("python3")
    try:
        url = f"ws://127.0.0.1:{server.port}/api/kernels/{kid}/channels"
        head = [f"Authorization: token {alice.token}", *alice.header()]
        with pytest.raises(websocket.WebSocketBadStatusException) as e:
            websocket.create_connection(url, header=head, origin="https://evil.example", timeout=DEADLINE)
        assert e.value.status_code == 403
        websocket.create_connection(url, header=head, origin=f"http://127.0.0.1:{server.port}", timeout=DEADLINE).close()
        assert alice.request("DELETE", f"/api/kernels/{kid}", headers={"Origin": "https://evil.example"}).status == 404
        assert server.log().count("event=origin_refused origin=https://evil.example host=127.0.0.1:") == 2
    finally:
        assert alice.delete_kernel(kid) == 204


# --- over a Unix socket --------------------------------------------------------------------------

class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=DEADLINE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def ask_unix(path, method, url, headers):
    c = UnixConnection(path)
    try:
        c.request(method, url, headers=headers)
        r = c.getresponse()
        return Response(r.status, r.headers, r.read())
    finally:
        c.close()


def test_a_trusted_unix_socket_stands_for_the_proxys_token(tmp_path):
    path = str(tmp_path / "holdcell.sock")

    class Both(PrincipalServer):
        def argv(self):
            argv = super().argv()
            i = argv.index("--listen")
            argv[i + 1] += f",unix:{path}"
            return argv
    s = Both(LINES, "--trusted-proxy", "unix", "--identity-header", "X-User").start()
    try:
        def status(**headers):
            return ask_unix(path, "GET", "/api/me", {k.replace("_", "-"): v for k, v in headers.items()})
        assert status(X_User="alice").json()["identity"]["username"] == "alice"
        assert status(X_User="alice", Authorization=f"token {token_of('hub')}").json()["identity"]["username"] == "alice"
        assert status(X_User="alice", Authorization=f"token {token_of('bob')}").json()["identity"]["username"] == "bob"
        assert status(X_User="alice", Authorization="token nonsense").status == 401
        assert status(X_User="carol").status == 401
        assert status().status == 401
        assert who(In(s, "alice")) == 401                       # TCP is not in the list
        assert s.request("GET", "/api/me", headers={"X-User": "alice"}, token=False).status == 401
    finally:
        s.close()


def test_the_whole_servers_numbers_are_for_who_sees_all(server):
    assert server.request("GET", "/metrics").status == 200
    assert server.as_("bob").request("GET", "/metrics").status == 403
    assert In(server, "eye").request("GET", "/metrics").status == 403
    assert json.loads(server.request("GET", "/healthz", token=False).body) == {"status": "ok"}
