"""Behind a reverse proxy: a small one of ours with exactly the headers of a test, and nginx by the
configuration that docs/NETWORK.md shows."""

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import threading

import pytest

from certs import Authority
from channels import Channels
from server import ROOT, Server, free_port, wait_for


class Proxy:
    """Puts header lines into the first head of each connection, then carries bytes."""

    def __init__(self, target, *lines):
        self.target = target            # a port, or the path of a Unix socket
        self.lines = "".join(line + "\r\n" for line in lines).encode()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        family = socket.AF_UNIX if isinstance(self.target, str) else socket.AF_INET
        with client, socket.socket(family) as server:
            try:
                server.connect(self.target if family == socket.AF_UNIX else ("127.0.0.1", self.target))
                head = b""
                while b"\r\n\r\n" not in head:
                    more = client.recv(65536)
                    if not more:
                        return
                    head += more
                line, rest = head.split(b"\r\n", 1)
                server.sendall(line + b"\r\n" + self.lines + rest)
                back = threading.Thread(target=pump, args=(server, client), daemon=True)
                back.start()
                pump(client, server)
                back.join()
            except OSError:
                pass

    def close(self):
        self.listener.close()


def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.fixture
def proxy():
    own = []

    def make(*args):
        own.append(Proxy(*args))
        return own[-1]
    yield make
    for p in own:
        p.close()


def ask(port, path="/api", headers=None, method="GET", body=None, context=None):
    c = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context) if context else \
        http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    c.request(method, path, body=body, headers=headers or {})
    r = c.getresponse()
    try:
        return r.status, r.read()
    finally:
        c.close()


def peers_of(s, marker):
    """The address that the log has for the request whose path holds the marker."""
    lines = wait_for(lambda: [x for x in s.log().splitlines() if marker in x])
    return re.search(r'peer="?([^\s"]*)', lines[-1]).group(1)


FORWARDED = ("X-Forwarded-For: 203.0.113.7", "X-Forwarded-Host: lab.example", "X-Forwarded-Proto: https")


def test_the_client_behind_a_trusted_proxy_is_the_one_in_the_log(server_with, proxy):
    s = server_with("--trusted-proxy", "127.0.0.1", "--access-log", "info")
    p = proxy(s.port, *FORWARDED)
    assert ask(p.port, "/api/marker-1")[0] == 404
    assert peers_of(s, "marker-1") == "203.0.113.7"
    p = proxy(s.port, "X-Forwarded-For: 8.8.8.8, 203.0.113.7, 127.0.0.1")      # the first is the client's invention
    assert ask(p.port, "/api/marker-2")[0] == 404
    assert peers_of(s, "marker-2") == "203.0.113.7"


def test_nobody_else_is_believed(server_with, proxy):
    s = server_with("--trusted-proxy", "10.0.0.0/8,unix", "--access-log", "info")
    p = proxy(s.port, *FORWARDED)
    assert ask(p.port, "/api/marker-3")[0] == 404
    assert peers_of(s, "marker-3").startswith("127.0.0.1:")


def test_host_and_origin_are_those_of_the_client(server_with, proxy):
    s = server_with("--trusted-proxy", "127.0.0.1", "--allow-hosts", "lab.example", token=None)
    p = proxy(s.port, *FORWARDED)
    own = {"Host": "127.0.0.1:1"}
    assert ask(p.port, "/api/kernels", own)[0] == 200
    assert ask(p.port, "/api/kernels", {**own, "Origin": "https://lab.example"})[0] == 200
    assert ask(p.port, "/api/kernels", {**own, "Origin": "http://lab.example"})[0] == 404     # another scheme
    assert ask(p.port, "/api/kernels", {**own, "Origin": "https://127.0.0.1:1"})[0] == 404
    strange = proxy(s.port, "X-Forwarded-Host: evil.example")
    assert ask(strange.port, "/api/kernels", own)[0] == 403
    # from others the fields say nothing
    assert ask(s.port, "/api/kernels", own)[0] == 200


def test_a_proxy_by_the_unix_socket(server_with, proxy):
    s = server_with("--trusted-proxy", "unix", "--access-log", "info", unix=True)
    p = proxy(s.socket, *FORWARDED)
    assert ask(p.port, "/api/marker-4")[0] == 404
    assert peers_of(s, "marker-4") == "203.0.113.7"
    assert ask(s.port, "/api/marker-5", {"X-Forwarded-For": "203.0.113.8"})[0] == 404
    assert peers_of(s, "marker-5").startswith("127.0.0.1:")


def test_a_list_that_is_none_is_told(tmp_path):
    from server import BIN
    out = subprocess.run([BIN, "serve", "--listen", "127.0.0.1:0", "--trusted-proxy", "10.0.0.0/8,proxy.example",
                          "--state-dir", str(tmp_path / "s"), "--no-auth"], capture_output=True, text=True, timeout=60)
    assert out.returncode != 0 and "option --trusted-proxy: 'proxy.example'" in out.stderr
    out = subprocess.run([BIN, "serve", "--listen", "127.0.0.1:0", "--no-auth"], capture_output=True, text=True,
                         timeout=60, env={**os.environ, "KG_TRUST_XHEADERS": "True"})
    assert out.returncode != 0 and "KG_TRUST_XHEADERS" in out.stderr and "--trusted-proxy" in out.stderr


# --- nginx --------------------------------------------------------------------------

def snippet():
    """The server block of docs/NETWORK.md."""
    with open(os.path.join(ROOT, "docs", "NETWORK.md"), encoding="utf-8") as f:
        block, = re.findall(r"```nginx\n(.*?)```", f.read(), re.S)
    return block


@pytest.fixture
def nginx(server_with, tmp_path):
    if not shutil.which("nginx"):
        pytest.skip("nginx is not installed (the full tier's set-up does)")
    ca = Authority(tmp_path)
    cert, key = ca.issue("lab")
    port = free_port()
    s = server_with("--base-url", "/jupyter/", "--trusted-proxy", "unix", "--access-log", "info",
                    "--listen-group", "www-data", unix=True)
    conf = snippet()
    for a, b in (("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"), ("/etc/ssl/lab.pem", cert),
                 ("/etc/ssl/lab.key", key), ("/run/holdcell/holdcell.sock", s.socket)):
        assert a in conf, a
        conf = conf.replace(a, b)
    path = tmp_path / "nginx.conf"
    temp = "".join(f"{x}_temp_path {tmp_path}/{x};\n" for x in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    path.write_text(f"user www-data;\npid {tmp_path}/pid;\nerror_log {tmp_path}/error.log;\ndaemon off;\n"
                    f"events {{}}\nhttp {{\naccess_log off;\n{temp}{conf}}}\n")
    for d in (tmp_path, *tmp_path.parents[:2]):
        os.chmod(d, 0o755)
    p = subprocess.Popen(["nginx", "-c", str(path), "-e", str(tmp_path / "error.log")])
    try:
        s.tls_port, s.ca, s.nginx_log = port, ca, tmp_path / "error.log"

        def up():
            assert p.poll() is None, s.nginx_log.read_text()
            return socket.socket().connect_ex(("127.0.0.1", port)) == 0
        wait_for(up)
        yield s
    finally:
        p.terminate()
        p.wait(30)


@pytest.mark.full
def test_nginx_by_the_configuration_of_the_docs(nginx):
    s, context = nginx, nginx.ca.client()
    auth = {"Authorization": f"token {s.token}"}
    status, body = ask(s.tls_port, "/jupyter/api/status", auth, context=context)
    assert status == 200, s.nginx_log.read_text()
    status, body = ask(s.tls_port, "/jupyter/api/kernels", auth, "POST", b"{}", context)
    assert status == 201
    kid = json.loads(body)["id"]
    assert ask(s.tls_port, "/jupyter/api/kernels", {}, context=context)[0] == 401

    class Front:                        # what Channels needs of a server
        token, tls, port = s.token, context, s.tls_port
    with Channels(Front, kid, base="/jupyter") as c:
        assert c.run("6 * 7").result == "42"
        assert len(c.run("print('x' * 3_000_000)").text) == 3_000_001
        assert len(c.run(f"'{'y' * 2_000_000}'").result) == 2_000_002      # a large message of a client
    ask(s.tls_port, "/jupyter/api/marker-6", {**auth, "X-Forwarded-For": "8.8.8.8"}, context=context)
    assert peers_of(s, "marker-6") == "127.0.0.1"                      # whom nginx saw, not what was claimed
    assert ask(s.tls_port, f"/jupyter/api/kernels/{kid}", auth, "DELETE", context=context)[0] == 204
