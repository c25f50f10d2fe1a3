"""Two principals on one server: whatever one of them takes, keeps or refuses to read, the other one goes on."""

import socket
import struct

import pytest

from channels import Channels, Ended
from principals import PrincipalServer, entry
from server import DEADLINE, read, status_of, wait_for

LINES = [entry("greedy"), entry("other"), entry("watcher", role="observer", observes="other")]


@pytest.fixture(scope="module")
def server():
    s = PrincipalServer(LINES).start()
    yield s
    s.close()


@pytest.fixture
def both(server):
    """(greedy, other); their kernels are gone after the test."""
    two = server.as_("greedy"), server.as_("other")
    yield two
    for one in two:
        for kid in one.ids():
            one.delete_kernel(kid)


def connect(server, small=False):
    s = socket.socket()
    if small:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(DEADLINE)
    s.connect(("127.0.0.1", server.port))
    return s


def head(who, method, path, *fields):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: token {who.token}", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def upgrade_head(who, kid, sid):
    return head(who, "GET", f"/api/kernels/{kid}/channels?session_id={sid}", "Connection: Upgrade",
                "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")


def upgrade(who, kid, sid, small=False):
    """A bare WebSocket, of which nothing but the 101 is read."""
    s = connect(who, small)
    s.sendall(upgrade_head(who, kid, sid))
    assert s.recv(12) == b"HTTP/1.1 101"
    return s


def close_all(sockets):
    for s in sockets:
        s.close()


def all_taken(server):
    """Waits until the gateway has read whatever was sent to it."""
    def empty():
        rows = [line.split() for line in read("/proc/net/tcp").splitlines()[1:]]
        return not any(int(r[1].split(":")[1], 16) == server.port and r[3] == "01" and r[4].split(":")[1] != "00000000"
                       for r in rows)
    wait_for(empty)


def works(who):
    """REST and a cell of the other one, as if nothing were."""
    assert who.request("GET", "/api/kernels").status == 200
    kid = who.start_kernel()
    with Channels(who, kid) as ch:
        assert ch.run("6 * 7").result == "42"
    assert who.delete_kernel(kid) == 204


def test_requests_that_never_end_leave_connections_for_others(server, both):
    greedy, other = both
    sockets = [connect(server) for _ in range(4150)]    # the table has 4096
    try:
        for s in sockets:
            try:
                s.sendall(head(greedy, "POST", "/api/kernels", "Content-Length: 10") + b"{")
            except OSError:
                pass                                    # refused already
        # While they come in, before their heads tell whose they are, anybody may be asked to come again.
        wait_for(lambda: other.request("GET", "/api/kernels").status == 200)
        works(other)
        with pytest.raises(AssertionError, match="503"):
            greedy.start_kernel()
    finally:
        close_all(sockets)
    wait_for(lambda: greedy.request("GET", "/api/kernels").status == 200)
    works(greedy)


def test_bodies_that_never_end_leave_room_for_others(server, both):
    greedy, other = both
    sockets = []
    try:
        for _ in range(64):                             # 64 MiB are for all
            sockets.append(connect(server))
            sockets[-1].sendall(head(greedy, "POST", "/api/kernels", f"Content-Length: {1 << 20}"))
            try:
                sockets[-1].sendall(b" " * ((1 << 20) - 1))
            except OSError:
                pass
        all_taken(server)
        kid = other.start_kernel(env={f"KERNEL_{i}": "x" * 1000 for i in range(20)})
        assert other.delete_kernel(kid) == 204
    finally:
        close_all(sockets)


@pytest.mark.full
def test_messages_that_never_end_leave_room_for_others(server, both):
    greedy, other = both
    kid, sockets = greedy.start_kernel(), []
    try:
        for i in range(4):                              # 512 MiB are for all
            sockets.append(upgrade(greedy, kid, f"s{i}"))
            sockets[-1].sendall(struct.pack(">BBQI", 0x82, 0xff, 128 << 20, 0))
            try:
                for _ in range(127):
                    sockets[-1].sendall(bytes(1 << 20))
                sockets[-1].sendall(bytes((1 << 20) - 1))
            except OSError:
                pass                                    # closed with 1013
        all_taken(server)
        theirs = other.start_kernel()
        with Channels(other, theirs) as ch:
            assert ch.run(f"len({'x' * 3_000_000!r})").result == "3000000"
    finally:
        close_all(sockets)


@pytest.mark.full
def test_outputs_that_nobody_takes_are_bounded(server, both):
    greedy, other = both
    kid, theirs = greedy.start_kernel(), other.start_kernel()
    gateway = server.process("gateway")
    sockets = [upgrade(greedy, kid, f"s{i}", small=True) for i in range(24)]
    try:
        with Channels(other, theirs) as ch:
            with Channels(greedy, kid) as own:
                own.start("from IPython.display import publish_display_data as p\np({'text/plain': 'x' * (45 << 20)})")
                with pytest.raises((Ended, TimeoutError)):
                    while True:                         # the display, or the end of a socket that is too much
                        if own.recv(5)["header"]["msg_type"] == "display_data":
                            raise TimeoutError
            wait_for(lambda: "event=answers_not_taken" in server.log())
            assert int(status_of(gateway)["VmRSS"].split()[0]) < 800 * 1024     # all of them: 1,080 MiB
            assert ch.run("6 * 7").result == "42"
        assert server.process("gateway") == gateway
    finally:
        close_all(sockets)


def make(who, kid, path, name=""):
    return who.request("POST", "/api/sessions", {"path": path, "name": name, "type": "notebook", "kernel": {"id": kid}})


def test_paths_of_notebook_sessions_are_bounded_in_all(server, both):
    greedy, other = both
    kid, theirs = greedy.start_kernel(), other.start_kernel()
    made = []
    for i in range(200):
        made.append(make(greedy, kid, f"{i:04}" + "p" * 4000, "n" * 4000))
        if made[-1].status != 201:
            break
    assert made[-1].status == 403 and "Resource Limit" in made[-1].json()["message"], made[-1]
    assert len(made) > 50
    assert len(greedy.request("GET", "/api/sessions").body) < 4 << 20
    # A change is no way around, and what is smaller is welcome.
    short = make(greedy, kid, "short")
    assert short.status == 201, short
    longer = greedy.request("PATCH", f"/api/sessions/{short.json()['id']}", {"path": "q" * 4096, "name": "r" * 4096})
    assert longer.status == 403, longer
    assert greedy.request("GET", f"/api/sessions/{short.json()['id']}").json()["path"] == "short"
    assert make(other, theirs, "p" * 4000, "n" * 4000).status == 201


def test_sessions_of_kernels_that_have_gone_take_no_room(server, both):
    greedy, _ = both
    for _ in range(2):                                  # nobody asks for the list in between
        kid = greedy.start_kernel()
        made = [make(greedy, kid, f"{kid[:8]}{i:04}" + "p" * 4000, "n" * 4000).status for i in range(60)]
        assert set(made) == {201}
        assert greedy.delete_kernel(kid) == 204


def test_a_crowd_of_observers_does_not_touch_the_kernel(server, both):
    _, other = both
    watcher = server.as_("watcher")
    kid = other.start_kernel()
    with Channels(other, kid) as ch:
        count = "import os\nlen(os.listdir('/proc/self/fd'))"
        ch.run(count)
        before = int(ch.run(count).result)
        sockets = [upgrade(watcher, kid, f"s{i}") for i in range(600)]  # a process may have 1,024 descriptors
        try:
            assert int(ch.run(count).result) <= before + 2
            assert len(other.request("GET", "/api/kernels").json()) == 1
        finally:
            close_all(sockets)
        assert ch.run("6 * 7").result == "42"


def test_a_crowd_of_clients_is_refused_before_the_kernel_runs_out_of_descriptors(server, both):
    greedy, _ = both
    kid = greedy.start_kernel()
    sockets = []
    with Channels(greedy, kid, sid="first") as ch:
        pid = ch.run("import os, time\nt = time.time()\nos.getpid()").result
        try:
            for i in range(300):
                sockets.append(connect(greedy))
                sockets[-1].sendall(upgrade_head(greedy, kid, f"s{i}"))
            said = [s.recv(12) for s in sockets]
            assert said.count(b"HTTP/1.1 101") == 255 and said.count(b"HTTP/1.1 403") == 45, set(said)
            # A place that is taken can be taken over, and one that is left is free.
            with Channels(greedy, kid, sid="s7") as again:
                assert again.run("os.getpid()").result == pid
            sockets[8].close()
            wait_for(lambda: greedy.kernel(kid)["connections"] < 255)
            with Channels(greedy, kid) as late:
                assert late.run("time.time() > t").result == "True"
        finally:
            close_all(sockets)
