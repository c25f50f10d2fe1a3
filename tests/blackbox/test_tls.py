"""TLS of the real server: clients, client certificates, what is refused, reload."""

import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time

import pytest

from certs import Authority, openssl
from channels import Channels
from rawhttp import Raw, request
from server import BIN, SLOW, Server, read, wait_for


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def pair(ca):
    return ca.issue("server")


def options(pair, *more):
    return ("--tls-cert", pair[0], "--tls-key", pair[1], *more)


@pytest.fixture(scope="module")
def secure(ca, pair):
    s = Server(*options(pair), tls=ca.client()).start()
    yield s
    s.close()


class RawTLS(Raw):
    """Raw bytes inside TLS."""

    def __init__(self, server, context=None, timeout=20):
        super().__init__(server, timeout)
        self.sock = (context or server.tls).wrap_socket(self.sock, server_hostname="127.0.0.1")


def gateway_fds(s):
    return len(os.listdir(f"/proc/{s.process('gateway')}/fd"))


# --- what works -----------------------------------------------------------------

def test_the_announced_url_is_https(secure):
    wait_for(lambda: f"holdcell serving on https://127.0.0.1:{secure.port}/" in secure.log())


def test_cells_run_over_wss_and_large_outputs_come_whole(secure):
    kid = secure.start_kernel("python3")
    with Channels(secure, kid) as c:
        assert c.run("6 * 7").result == "42"
        run = c.run("import sys\nfor i in range(40): print(chr(65 + i % 26) * 100_000)")
        assert run.status == "ok"
        assert run.text == "".join(chr(65 + i % 26) * 100_000 + "\n" for i in range(40))
        assert len(c.run(f"'{'x' * 1_000_000}'").result) == 1_000_002
    assert secure.delete_kernel(kid) == 204


def test_both_versions_and_nothing_older(secure, ca):
    v = ssl.TLSVersion
    for version, works in ((v.TLSv1_3, True), (v.TLSv1_2, True), (v.TLSv1_1, False)):
        context = ca.client()
        context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning) if not works else _nothing():
            context.minimum_version = context.maximum_version = version
        if not works:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                RawTLS(secure, context)
            continue
        with RawTLS(secure, context) as c:
            c.send(request(secure, "GET", "/api"))
            assert c.answer()[0] == 200
            assert c.sock.version() == {ssl.TLSVersion.TLSv1_3: "TLSv1.3", ssl.TLSVersion.TLSv1_2: "TLSv1.2"}[version]
            assert "GCM" in c.sock.cipher()[0] or "CHACHA20" in c.sock.cipher()[0]


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def test_http_1_1_is_the_protocol_that_is_offered(secure, ca):
    context = ca.client()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with RawTLS(secure, context) as c:
        assert c.sock.selected_alpn_protocol() == "http/1.1"
    context.set_alpn_protocols(["h2"])
    with pytest.raises((ssl.SSLError, ConnectionError)):
        RawTLS(secure, context)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_curl_verifies_and_keeps_the_connection(secure, ca):
    url = f"https://localhost:{secure.port}/api"
    out = subprocess.run(["curl", "-sS", "--cacert", ca.cert, "-w", "%{num_connects} ",
                          "-H", f"Authorization: token {secure.token}", url, url],
                         capture_output=True, text=True, timeout=60)
    assert out.returncode == 0 and out.stdout.count('"version"') == 2, out
    assert re.findall(r"\}\s*(\d) ", out.stdout) == ["1", "0"]
    bad = subprocess.run(["curl", "-sS", url], capture_output=True, text=True, timeout=60)
    assert bad.returncode == 60, bad        # the authority is not known


def test_a_session_is_resumed(secure, ca):
    context = ca.client()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with RawTLS(secure, context) as c:
        c.send(request(secure, "GET", "/api"))
        assert c.answer()[0] == 200
        session = c.sock.session
    s = socket.create_connection(("127.0.0.1", secure.port), timeout=20)
    with context.wrap_socket(s, server_hostname="127.0.0.1", session=session) as again:
        assert again.session_reused


# --- what is refused --------------------------------------------------------------

def test_plain_http_on_the_port_is_told_so(secure):
    with Raw(secure) as c:
        c.send(request(secure, "GET", "/api"))
        status, _, body = c.answer()
        assert status == 400 and "https://" in json.loads(body)["message"]
        assert c.ended()


def test_garbage_of_all_kinds_hurts_nobody(secure):
    rng = random.Random(20)
    pid, before = secure.process("gateway"), gateway_fds(secure)
    hello = client_hello()
    for i in range(200):
        with Raw(secure) as c:
            kind = i % 4
            if kind == 0:
                data = rng.randbytes(rng.randrange(1, 3000))
            elif kind == 1:
                data = bytearray(hello)
                for _ in range(rng.randrange(1, 6)):
                    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            elif kind == 2:
                data = hello[:rng.randrange(len(hello))]
            else:
                data = b"\x16\x03\x01\xff\xff" + rng.randbytes(100)
            c.send(bytes(data))
    assert secure.request("GET", "/api").status == 200
    assert secure.process("gateway") == pid
    wait_for(lambda: gateway_fds(secure) <= before + 2)


def client_hello():
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        context.wrap_bio(incoming, outgoing).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def test_connections_dropped_in_mid_handshake_leave_nothing(secure):
    hello, rng = client_hello(), random.Random(21)
    assert secure.request("GET", "/api").status == 200
    before = gateway_fds(secure)
    for i in range(200):
        c = Raw(secure)
        c.send(hello[:rng.randrange(len(hello) + 1)])
        c.reset() if i % 2 else c.close()
    wait_for(lambda: gateway_fds(secure) <= before + 2)
    assert secure.request("GET", "/api").status == 200


def test_many_half_handshakes_keep_nobody_out(secure):
    hello = client_hello()
    before = gateway_fds(secure)
    cs = [Raw(secure) for _ in range(300)]
    for i, c in enumerate(cs):
        c.send(hello if i % 2 else hello[:1])
    t0 = time.monotonic()
    assert secure.request("GET", "/api").status == 200
    assert time.monotonic() - t0 < 10
    for c in cs:
        c.close()
    wait_for(lambda: gateway_fds(secure) <= before + 2)


@pytest.mark.full
def test_a_handshake_byte_by_byte_ends_after_ten_seconds(secure):
    hello = client_hello()
    with Raw(secure, 60) as c:
        t0 = time.monotonic()
        for b in hello:
            c.send(bytes([b]))
            if c.ended(0.2):
                break
        assert 8 < time.monotonic() - t0 < 30


def test_client_certificates_are_demanded(server_with, ca, pair, tmp_path):
    mine = ca.client(ca.issue("client"))
    stranger = Authority(tmp_path, "strangers")
    s = server_with(*options(pair, "--tls-client-ca", ca.cert), tls=mine)
    assert s.request("GET", "/api/kernels").status == 200
    other = ca.client(stranger.issue("other"))
    for context in (ca.client(), other):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            with RawTLS(s, context) as c:           # TLS 1.3 tells it after the handshake
                c.sock.sendall(request(s, "GET", "/api"))
                if not c.sock.recv(100):
                    raise ConnectionError("closed")
    assert "client certificate" in s.log()
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("1 + 1").result == "2"


def refused(*args):
    try:
        out = subprocess.run([BIN, "serve", "--listen", "127.0.0.1:0", "--no-auth", *args], capture_output=True,
                             text=True, timeout=30 * SLOW)
    except subprocess.TimeoutExpired as e:
        raise AssertionError(f"{args} is not refused: {e.stderr}") from None
    assert out.returncode != 0 and "serving on" not in out.stdout, out
    return out.stderr


def test_what_is_wrong_is_told_at_the_start(ca, pair, tmp_path):
    cert, key = pair
    state = ("--state-dir", str(tmp_path / "state"))
    old, old_key = ca.issue("old", days="-1")
    encrypted, readable, empty = (str(tmp_path / n) for n in ("encrypted.key", "readable.key", "empty"))
    openssl("pkcs8", "-topk8", "-in", key, "-passout", "pass:x", "-out", encrypted)
    os.chmod(encrypted, 0o600)
    shutil.copy(key, readable)
    os.chmod(readable, 0o644)
    open(empty, "w").close()
    other_key = ca.issue("other")[1]
    for args, words in (
            (("--tls-key", key), ("--tls-key", "no --tls-cert")),
            (("--tls-client-ca", ca.cert), ("--tls-client-ca", "no --tls-cert")),
            (("--tls-cert", "/none/such", "--tls-key", key), ("--tls-cert", "/none/such")),
            (("--tls-cert", cert, "--tls-key", "/none/such"), ("--tls-key", "/none/such")),
            (("--tls-cert", empty, "--tls-key", key), ("--tls-cert", "no certificate")),
            (("--tls-cert", cert, "--tls-key", cert), ("--tls-key",)),
            (("--tls-cert", cert, "--tls-key", other_key), ("--tls-key", "does not belong")),
            (("--tls-cert", cert, "--tls-key", encrypted), ("--tls-key", "encrypted")),
            (("--tls-cert", cert, "--tls-key", readable), ("--tls-key", "mode 0644")),
            (("--tls-cert", old, "--tls-key", old_key), ("--tls-cert", "expired")),
            (("--tls-cert", cert, "--tls-key", key, "--tls-client-ca", empty), ("--tls-client-ca", "no certificate"))):
        said = refused(*state, *args)
        assert all(w in said for w in words), (args, said)
        assert "PRIVATE KEY" not in said


def test_the_key_stands_nowhere(secure, pair):
    secret = "".join(read(pair[1]).splitlines()[1:-1])[:40]
    for name in ("launcher", "gateway"):
        pid = secure.process(name)
        assert secret not in read(f"/proc/{pid}/environ") + read(f"/proc/{pid}/cmdline")
    assert secret not in secure.log()


# --- reload -----------------------------------------------------------------------

def serial(s, context):
    with RawTLS(s, context) as c:
        return c.sock.getpeercert()["serialNumber"]


def hang_up(s, event):
    before = len(re.findall(rf"event={event}\b", s.log()))
    s.proc.send_signal(signal.SIGHUP)
    wait_for(lambda: len(re.findall(rf"event={event}\b", s.log())) > before)


def test_a_new_certificate_is_taken_at_sighup_and_a_broken_one_is_not(server_with, ca, tmp_path):
    here = (str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
    first, second = ca.issue("first"), ca.issue("second")

    def put(cert, key):
        for src, dst in zip((cert, key), here):
            shutil.copy(src, dst + ".new")
            os.rename(dst + ".new", dst)
    put(*first)
    s = server_with(*options(here), tls=ca.client())
    kid = s.start_kernel("python3")
    old = serial(s, s.tls)
    with Channels(s, kid) as c:
        c.run("x = 5")
        put(*second)
        hang_up(s, "settings_taken")
        new = serial(s, s.tls)
        assert new != old
        assert c.run("x").result == "5"             # a connection of before goes on
        put(second[0], first[1])
        hang_up(s, "reload_refused")
        assert serial(s, s.tls) == new and "does not belong" in s.log()
        os.unlink(here[0])
        hang_up(s, "reload_refused")
        assert serial(s, s.tls) == new
        assert c.run("x + 1").result == "6"
        put(*first)
        hang_up(s, "settings_taken")
        assert serial(s, s.tls) == old
        os.kill(s.process("gateway"), signal.SIGKILL)
        wait_for(s.answers)
        assert serial(s, s.tls) == old


def is_let_in(s, context, session=None):
    """Whether a request with that certificate is answered; what the client has for a resumption of it."""
    raw = socket.create_connection(("127.0.0.1", s.port), timeout=20)
    try:
        with context.wrap_socket(raw, server_hostname="127.0.0.1", session=session) as c:
            c.sendall(request(s, "GET", "/api"))
            return c.session if c.recv(100).startswith(b"HTTP/1.1 200 ") else None      # TLS 1.3 tells it only here
    except (ssl.SSLError, ConnectionError):
        return None


def test_a_new_client_authority_is_taken_at_sighup_and_a_broken_one_is_not(server_with, ca, pair, tmp_path):
    here = str(tmp_path / "clients.pem")
    first, second = Authority(tmp_path, "first"), Authority(tmp_path, "second")

    def put(text):
        with open(here + ".new", "w") as f:
            f.write(text)
        os.rename(here + ".new", here)
    put(read(first.cert))
    old, new = ca.client(first.issue("old")), ca.client(second.issue("new"))
    old_1_2 = ca.client(first.issue("older"))
    old_1_2.maximum_version = ssl.TLSVersion.TLSv1_2
    s = server_with(*options(pair, "--tls-client-ca", here), tls=old)
    session = is_let_in(s, old_1_2)
    assert session and is_let_in(s, old) and not is_let_in(s, new)
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("x = 5").status == "ok"
        put(read(second.cert))
        hang_up(s, "settings_taken")
        assert is_let_in(s, new) and not is_let_in(s, old)
        assert not is_let_in(s, old_1_2) and not is_let_in(s, old_1_2, session), "nor by what it kept from before"
        assert c.run("x").result == "5"             # a connection of before goes on
        s.tls = new
        for broken in ("", "no certificate\n", read(first.cert)[:200], read(first.cert).replace("M", "N", 5)):
            put(broken)
            hang_up(s, "reload_refused")
            assert is_let_in(s, new) and not is_let_in(s, old), broken
            assert not is_let_in(s, ca.client()), "a client without a certificate"
        assert "--tls-client-ca" in [x for x in s.log().splitlines() if "event=reload_refused" in x][-1]
        os.unlink(here)
        hang_up(s, "reload_refused")
        assert is_let_in(s, new) and not is_let_in(s, old)
        put(read(first.cert) + read(second.cert))
        hang_up(s, "settings_taken")
        assert is_let_in(s, new) and is_let_in(s, old)
