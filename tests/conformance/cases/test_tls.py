"""TLS: https and wss by certificate and key, client certificates."""

import ssl
import subprocess

import pytest

from hconf import Conn, case
from hconf.clients import nbclient, node, python
from hconf.http import Closed, head
from hconf.ws import ws_open
from hconf.util import ch


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, stdin=subprocess.DEVNULL, capture_output=True)


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    """Paths: CERT, KEY of an authority that is the server too, and a client's of it."""
    top = tmp_path_factory.mktemp("certs")
    cert, key, own, own_key, request = (str(top / n) for n in ("ca.pem", "ca.key", "me.pem", "me.key", "me.csr"))
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert)
    openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=me", "-keyout", own_key, "-out", request)
    openssl("x509", "-req", "-in", request, "-CA", cert, "-CAkey", key, "-CAcreateserial", "-days", "2", "-out", own)
    return {"CERT": cert, "KEY": key, "own": own, "own_key": own_key}


@case("tls-01", 18)
def test_https_and_wss(server_with, certs):
    s = server_with(CERT=certs["CERT"], KEY=certs["KEY"])
    assert s.get("/api").status == 200
    kid = s.start_kernel("fake")
    r, ws = ws_open(s, ch(kid))
    assert r.status == 101
    ws.close()


@case("tls-02", 18)
def test_a_client_without_a_certificate_is_refused(server_with, certs):
    s = server_with(CERT=certs["CERT"], KEY=certs["KEY"], CLIENT_CA=certs["CERT"],
                    X_CLIENT_CERT=certs["own"], X_CLIENT_KEY=certs["own_key"])
    assert s.get("/api").status == 200
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.raises((ssl.SSLError, ConnectionError, Closed)):
        with Conn(s, tls=context) as c:         # with TLS 1.3 the client hears of it after its handshake
            c.send(head(s, "GET", "/api"))
            c.response()


# Clients that check the certificate.

@case("tls-03", 18, timeout=90)
def test_jupyter_kernel_client_over_https(server_with, certs):
    s = server_with(CERT=certs["CERT"], KEY=certs["KEY"])
    out = python("""
        import json, os
        from jupyter_kernel_client import JupyterKernelClient
        with JupyterKernelClient(server_url=os.environ["URL"], token=os.environ["TOK"]) as k:
            print(json.dumps(k.execute("6 * 7")))
        """, URL=s.url, TOK=s.token, REQUESTS_CA_BUNDLE=certs["CERT"], SSL_CERT_FILE=certs["CERT"])
    assert out["status"] == "ok" and out["outputs"][0]["data"]["text/plain"] == "42"


@case("tls-04", 18, timeout=90)
def test_nbclient_over_https(server_with, certs):
    s = server_with(TOKEN="", CERT=certs["CERT"], KEY=certs["KEY"])
    out = nbclient(s, ["2 * 21"], SSL_CERT_FILE=certs["CERT"])
    assert out["err"] is None and out["outputs"][0][0]["data"]["text/plain"] == "42"


@case("tls-05", 18, timeout=90)
def test_jupyterlab_services_over_https(server_with, certs):
    s = server_with(CERT=certs["CERT"], KEY=certs["KEY"])
    out = node(s, "kernel", NODE_EXTRA_CA_CERTS=certs["CERT"])
    assert out["one"]["result"] == "42" and out["one"]["status"] == "ok"
