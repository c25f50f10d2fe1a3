"""HTTP of the real server under hands that mean no good."""

import json
import os
import random
import time

import pytest

from rawhttp import Raw, request, upgrade
from server import wait_for

HOST = b"Host: 127.0.0.1\r\n"


def gateway_fds(s):
    return len(os.listdir(f"/proc/{s.process('gateway')}/fd"))


def gateway_rss_kb(s):
    with open(f"/proc/{s.process('gateway')}/status", encoding="ascii") as f:
        return int(next(ln for ln in f if ln.startswith("VmRSS")).split()[1])


# The right answers to malformed requests: docs/SECURITY.md. {AUTH} is a line.
MALFORMED = {
    "no-host": (b"GET /api HTTP/1.1\r\n{AUTH}\r\n", 400),
    "two-hosts": (b"GET /api HTTP/1.1\r\n{AUTH}" + HOST + HOST + b"\r\n", 400),
    "blank-before-colon": (b"GET /api HTTP/1.1\r\n{AUTH}" + HOST + b"X : a\r\n\r\n", 400),
    "nul-in-value": (b"GET /api HTTP/1.1\r\n{AUTH}" + HOST + b"X: a\0b\r\n\r\n", 400),
    "bare-lf": (b"GET /api HTTP/1.1\n{AUTH}Host: a\n\n", 400),
    "folded": (b"GET /api HTTP/1.1\r\n{AUTH}" + HOST + b"X: a\r\n b\r\n\r\n", 400),
    "length-and-chunked": (b"POST /api/kernels HTTP/1.1\r\n{AUTH}" + HOST
                           + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "two-lengths": (b"POST /api/kernels HTTP/1.1\r\n{AUTH}" + HOST
                    + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
    "length-plus": (b"POST /api/kernels HTTP/1.1\r\n{AUTH}" + HOST + b"Content-Length: +2\r\n\r\n{}", 400),
    "xchunked": (b"POST /api/kernels HTTP/1.1\r\n{AUTH}" + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    "bad-chunk": (b"POST /api/kernels HTTP/1.1\r\n{AUTH}" + HOST
                  + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400),
    "absolute-form": (b"GET http://127.0.0.1/api HTTP/1.1\r\n{AUTH}" + HOST + b"\r\n", 400),
    "http-2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "tls": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    "long-line": (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n{AUTH}" + HOST + b"\r\n", 414),
    "long-field": (b"GET /api HTTP/1.1\r\n{AUTH}" + HOST + b"X: " + b"a" * 64000 + b"\r\n\r\n", 431),
    "many-fields": (b"GET /api HTTP/1.1\r\n{AUTH}" + HOST + b"X: a\r\n" * 200 + b"\r\n", 431),
    "bad-escape": (b"GET /api/%zz HTTP/1.1\r\n{AUTH}" + HOST + b"\r\n", 400),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_requests_get_one_json_answer_and_the_end(shared, name):
    data, status = MALFORMED[name]
    with Raw(shared) as c:
        c.send(data.replace(b"{AUTH}", b"Authorization: token " + shared.token.encode() + b"\r\n"))
        c.send(request(shared, "GET", "/api"))          # must not be answered
        got = c.answer()
        assert got is not None and got[0] == status, got
        assert set(json.loads(got[2])) >= {"reason", "message"}
        assert got[1]["content-type"] == "application/json"
        assert c.ended() and b"HTTP/1.1" not in c.buf
    assert shared.request("GET", "/api").status == 200


def test_a_request_cut_anywhere_is_the_same_request(shared):
    data = request(shared, "GET", "/api?cut=1") + request(shared, "GET", "/api/kernelspecs/none-such")
    for cut in range(1, len(data), 11):
        with Raw(shared) as c:
            c.send(data[:cut])
            c.send(data[cut:])
            assert c.answer()[0] == 200
            assert c.answer()[0] == 404


def test_a_pipelined_flood_is_answered_in_order(shared):
    with Raw(shared) as c:
        c.send(b"".join(request(shared, "GET", f"/api/kernels/0-0-0-0-{i}") for i in range(500)))
        for i in range(500):
            status, _, body = c.answer()
            assert status == 404 and json.loads(body)["message"].endswith(f"0-0-0-0-{i}")


def test_who_never_reads_its_answers_does_not_cost_memory(shared):
    before = gateway_rss_kb(shared)
    cs = [Raw(shared) for _ in range(20)]
    for c in cs:
        c.sock.setblocking(False)
        flood = request(shared, "GET", "/api/kernelspecs") * 2000
        try:
            while flood:
                flood = flood[c.sock.send(flood):]
        except BlockingIOError:
            pass
    assert shared.request("GET", "/api").status == 200
    assert gateway_rss_kb(shared) - before < 64 * 1024
    for c in cs:
        c.reset()


def test_resets_at_any_moment_leave_no_descriptor(shared):
    rng = random.Random(4711)
    assert shared.request("GET", "/api").status == 200
    before = gateway_fds(shared)
    data = request(shared, "POST", "/api/kernels", body=b'{"name": "none-such"}') + request(shared, "GET", "/api")
    for _ in range(300):
        c = Raw(shared)
        c.send(data[:rng.randrange(len(data) + 1)])
        c.reset() if rng.random() < 0.7 else c.close()
    wait_for(lambda: gateway_fds(shared) <= before + 2)


def test_deep_nesting_is_an_answer_not_a_crash(shared):
    pid = shared.process("gateway")
    for body in (b"[" * 100000, b'{"a":' * 100000, b'{"env":' + b"[" * 1000 + b"]" * 1000 + b"}"):
        r = shared.request("POST", "/api/kernels", body)
        assert r.status == 400 and set(r.json()) >= {"reason", "message"}
    assert shared.process("gateway") == pid


def test_paths_that_lead_elsewhere_lead_nowhere(shared):
    for path in ("/kernelspecs/python3/../../../etc/passwd", "/kernelspecs/python3/%2e%2e/%2e%2e/etc/passwd",
                 "/kernelspecs/python3/..%2f..%2fetc%2fpasswd", "/kernelspecs/python3/%2fetc/passwd",
                 "/kernelspecs/..%00/x", "/api/kernels/%00", "/kernelspecs/python3//etc/passwd"):
        with Raw(shared) as c:
            c.send(request(shared, "GET", path))
            status, _, body = c.answer()
            assert 400 <= status < 500 and b"root:" not in body, (path, status)


def test_a_thousand_connections_that_do_nothing_hurt_nobody(shared):
    cs = [Raw(shared) for _ in range(1000)]
    for i, c in enumerate(cs):
        c.send((b"", b"G", b"GET /api HTTP/1.1\r\n")[i % 3])
    t0 = time.monotonic()
    assert shared.request("GET", "/api").status == 200
    assert time.monotonic() - t0 < 5
    before = gateway_fds(shared)
    for i, c in enumerate(cs):
        c.reset() if i % 2 else c.close()
    wait_for(lambda: gateway_fds(shared) <= before - 900)


@pytest.mark.full
def test_slow_heads_and_bodies_end_with_408(shared):
    """The limits of the product: 10 s for a head, 30 s between two bytes of a body."""
    head, body, silent = Raw(shared, 60), Raw(shared, 60), Raw(shared, 60)
    t0 = time.monotonic()
    head.send(b"GET /api HTTP/1.1\r\n")
    body.send(request(shared, "POST", "/api/kernels", "Content-Length: 5\r\n") + b"{")
    assert silent.ended(30) and silent.buf == b""
    assert head.answer()[0] == 408 and head.ended()
    assert time.monotonic() - t0 > 8
    assert body.answer()[0] == 408 and body.ended()
    assert time.monotonic() - t0 > 25


def test_upgrades_to_unknown_kernels_leak_nothing(shared):
    before = gateway_fds(shared)

    def knock():
        for i in range(3000):
            if i % 500 == 0:
                c = Raw(shared)
            c.send(upgrade(shared, f"0-0-0-0-{i}"))
            assert c.answer()[0] == 404
        c.close()
        return gateway_rss_kb(shared)
    first = knock()
    assert knock() - first < 2000
    wait_for(lambda: gateway_fds(shared) <= before + 8)
