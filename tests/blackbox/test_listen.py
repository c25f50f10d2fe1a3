"""Unix sockets beside and instead of TCP."""

import grp
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess

import pytest
import websocket

from server import BIN, Server, wait_for


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(path, target="/api", headers=None, method="GET", body=None):
    c = UnixConnection(path)
    try:
        c.request(method, target, headers=headers or {}, body=body)
        r = c.getresponse()
        return r.status, r.read()
    finally:
        c.close()


@pytest.fixture(scope="module")
def both():
    s = Server(unix=True).start()
    yield s
    s.close()


def auth(s):
    return {"Authorization": f"token {s.token}"}


def refused(*args):
    out = subprocess.run([BIN, "serve", "--no-auth", *args], capture_output=True, text=True, timeout=60)
    assert out.returncode != 0 and out.stdout == ""
    return out.stderr


def test_both_are_announced_and_answer(both):
    for said in (f"serving on http://127.0.0.1:{both.port}/", f"serving on unix:{both.socket}:/"):
        wait_for(lambda: said in both.log())       # the gateway answers a moment earlier
    assert both.request("GET", "/api/kernels").status == 200
    assert ask(both.socket, "/api/kernels", auth(both))[0] == 200
    assert ask(both.socket, "/api/kernels")[0] == 401
    assert re.search(r'peer="?unix:uid=0,pid=\d+', both.log())


def test_a_websocket_runs_cells_over_the_unix_socket(both):
    kid = json.loads(ask(both.socket, "/api/kernels", auth(both), "POST", b"{}")[1])["id"]
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(both.socket)
    ws = websocket.create_connection(f"ws://localhost/api/kernels/{kid}/channels?token={both.token}", socket=sock,
                                     timeout=60)
    ws.send(json.dumps({"header": {"msg_id": "m", "msg_type": "execute_request", "session": "s", "username": "u",
                                   "version": "5.4", "date": ""}, "parent_header": {}, "metadata": {},
                        "content": {"code": "print(6 * 7)", "silent": False}, "channel": "shell"}))
    while True:
        m = json.loads(ws.recv())
        if m["header"]["msg_type"] == "stream":
            break
    assert m["content"]["text"] == "42\n"
    ws.close()
    assert both.delete_kernel(kid) == 204


def test_the_socket_stays_while_the_gateway_is_replaced(both):
    pid = both.process("gateway")
    os.kill(pid, signal.SIGKILL)
    assert ask(both.socket, "/api", auth(both))[0] == 200       # waits in the backlog
    assert both.process("gateway") != pid


def test_the_file_has_the_mode_and_group_that_were_asked_for(server_with, both):
    st = os.stat(both.socket)
    assert stat.S_ISSOCK(st.st_mode) and stat.S_IMODE(st.st_mode) == 0o660 and st.st_gid == 0
    g = grp.getgrnam("daemon")
    s = server_with("--listen-mode", "0620", "--listen-group", "daemon", unix=True)
    st = os.stat(s.socket)
    assert stat.S_IMODE(st.st_mode) == 0o620 and st.st_gid == g.gr_gid


def test_the_file_goes_with_its_server_alone(server_with):
    s = server_with(unix=True)
    assert s.stop() == 0 and not os.path.exists(s.socket)
    s.start()
    os.unlink(s.socket)
    other = socket.socket(socket.AF_UNIX)
    other.bind(s.socket)
    assert s.stop() == 0
    assert os.path.exists(s.socket)
    other.close()


def test_what_a_killed_server_left_is_replaced_and_a_living_one_is_not(server_with):
    s = server_with(unix=True)
    said = refused("--listen", f"unix:{s.socket}", "--state-dir", s.state + "2")
    assert "--listen" in said and "somebody listens" in said
    assert ask(s.socket, "/api", auth(s))[0] == 200
    s.proc.kill()
    s.proc.wait(30)
    assert stat.S_ISSOCK(os.stat(s.socket).st_mode)
    s.start()
    assert ask(s.socket, "/api", auth(s))[0] == 200


def test_a_server_on_a_unix_socket_alone(tmp_path):
    path, state = str(tmp_path / "x.sock"), str(tmp_path / "state")
    p = subprocess.Popen([BIN, "serve", "--listen", f"unix:{path}", "--no-auth", "--state-dir", state],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert p.stdout.readline() == f"holdcell serving on unix:{path}:/\n"
        assert ask(path)[0] == 200
        # names that are not of this host: a page could have come by them, through a proxy
        assert ask(path, headers={"Host": "evil.example"})[0] == 403
        status, body = ask(path, headers={"Host": "localhost", "Origin": "http://evil.example"})[:2]
        assert status == 404 and b"this Origin is not allowed (--allow-origin)" in body
    finally:
        p.terminate()
        p.wait(30)
    assert not os.path.exists(path)


def test_what_is_wrong_is_told(tmp_path):
    plain = tmp_path / "file"
    plain.write_text("precious")
    os.symlink("/nowhere", tmp_path / "link")
    for listen, words in ((f"unix:{plain}", "is no socket"), (f"unix:{tmp_path}/link", "is no socket"),
                          ("unix:relative", "ABSOLUTE"), ("unix:", "ABSOLUTE"), ("unix:/" + "x" * 200, "longer than"),
                          (f"unix:{tmp_path}/no/such/dir", "No such file"), ("127.0.0.1:0,", "no list"),
                          (",".join(["127.0.0.1:0"] * 5), "more than 4"), ("", "ADDRESS:PORT"),
                          (f"unix:{tmp_path}/a,0.0.0.0:0", "--no-auth")):
        said = refused("--listen", listen, "--state-dir", str(tmp_path / "state"))
        assert words in said, (listen, said)
    assert plain.read_text() == "precious"
    sock = f"unix:{tmp_path}/s"
    for args, words in ((("--listen-mode", "rw"), "--listen-mode"), (("--listen-mode", "4777"), "--listen-mode"),
                        (("--listen-group", "no-such-group"), "--listen-group")):
        assert words in refused("--listen", sock, *args)
    assert not os.path.exists(tmp_path / "s")


def test_tls_is_for_tcp_and_the_unix_socket_is_plain(server_with, tmp_path):
    from certs import Authority
    ca = Authority(tmp_path)
    cert, key = ca.issue("server")
    s = server_with("--tls-cert", cert, "--tls-key", key, tls=ca.client(), unix=True)
    assert s.request("GET", "/api").status == 200
    assert ask(s.socket, "/api", auth(s))[0] == 200


def test_four_sockets_at_once(server_with):
    s = Server()
    more = [f"{s.dir}/{n}.sock" for n in "abc"]
    argv = s.argv()
    argv[argv.index("--listen") + 1] += "".join(f",unix:{p}" for p in more)
    s.argv = lambda: argv
    try:
        s.start()
        for p in more:
            assert ask(p, "/api", auth(s))[0] == 200
        before = len(os.listdir(f"/proc/{s.process('gateway')}/fd"))
        for _ in range(50):
            for p in more:
                c = socket.socket(socket.AF_UNIX)
                c.connect(p)
                c.close()
        wait_for(lambda: len(os.listdir(f"/proc/{s.process('gateway')}/fd")) <= before + 1)
    finally:
        s.close()
