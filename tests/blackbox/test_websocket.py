"""The channels WebSocket of the real server: hostile frames, slow readers, sudden ends."""

import json
import random
import struct
import uuid

from channels import Channels
from rawhttp import Raw, frame, upgrade
from server import wait_for


def open_raw(s, kid, sid="raw", extra=b""):
    c = Raw(s, 60)
    c.send(upgrade(s, kid, sid) + extra)
    status, headers, _ = c.answer()
    assert status == 101 and headers["connection"] == "Upgrade"
    return c


def execute_bytes(code, msg_id=None):
    return json.dumps({"header": {"msg_id": msg_id or uuid.uuid4().hex, "msg_type": "execute_request", "session": "raw",
                                  "username": "t", "version": "5.4"}, "parent_header": {}, "metadata": {},
                       "channel": "shell", "content": {"code": code, "silent": False}}).encode()


def read_frame(c):
    """(opcode, payload) of the next frame, None at the end."""
    def need(n):
        while len(c.buf) < n:
            if not c.fill():
                return False
        return True
    if not need(2):
        return None
    n, at = c.buf[1] & 127, 2
    if n == 126:
        if not need(4):
            return None
        n, at = struct.unpack(">H", c.buf[2:4])[0], 4
    elif n == 127:
        if not need(10):
            return None
        n, at = struct.unpack(">Q", c.buf[2:10])[0], 10
    if not need(at + n):
        return None
    op, payload = c.buf[0] & 15, c.buf[at:at + n]
    c.buf = c.buf[at + n:]
    return op, payload


def close_code(c):
    while True:
        f = read_frame(c)
        if f is None:
            return "ended"
        if f[0] == 8:
            return struct.unpack(">H", f[1][:2])[0] if len(f[1]) >= 2 else None


def connections(s, kid):
    return s.kernel(kid)["connections"]


def test_frames_behind_the_upgrade_are_messages(shared, kernel):
    kid = kernel("python3")
    c = open_raw(shared, kid, extra=frame(execute_bytes("print('ear' + 'ly')")))
    while True:
        op, payload = read_frame(c)
        if b"early" in payload:
            break
    c.close()


def test_frame_errors_close_with_their_code(shared, kernel):
    kid = kernel("python3")
    for data, code in ((b"\x81\x02{}", 1002), (b"\xc1\x80\1\2\3\4", 1002), (b"\x83\x80\1\2\3\4", 1002),
                       (b"\x09\x80\1\2\3\4", 1002), (b"\x80\x80\1\2\3\4", 1002),
                       (b"\x81\xff" + struct.pack(">Q", 2 << 30) + b"\1\2\3\4", 1009),
                       (b"\x81\xff" + struct.pack(">Q", 1 << 63) + b"\1\2\3\4", 1002),
                       (frame(b"\xff\xfe"), 1007), (frame(b"\x03\xe8", 0x88), 1000), (frame(b"", 0x88), None)):
        c = open_raw(shared, kid)
        c.send(data)
        assert close_code(c) == code, data
        assert c.ended()
        c.close()
    wait_for(lambda: connections(shared, kid) == 0)


def test_garbage_messages_do_not_end_the_socket(shared, kernel):
    c = open_raw(shared, kernel("python3"))
    rng = random.Random(7)
    good = execute_bytes("0")
    for _ in range(200):
        bad = bytearray(good)
        bad[rng.randrange(len(bad))] = rng.randrange(32, 127)
        del bad[rng.randrange(len(bad)):]
        c.send(frame(bytes(bad)))
        c.send(frame(struct.pack("<Q", rng.getrandbits(63)) + bytes(bad), 0x82))
    c.send(frame(execute_bytes("print('still ' + 'here')")))
    while b"still here" not in read_frame(c)[1]:
        pass
    c.close()


def test_a_slow_reader_holds_up_nobody_and_loses_nothing(shared, kernel):
    kid = kernel("python3")
    slow = open_raw(shared, kid, "slow")
    with Channels(shared, kid) as fast:
        run = fast.run("for i in range(1000): print(f'{i:05d}' + 'x' * 8000, flush=True)", timeout=120)
        assert run.status == "ok"
        assert [int(ln[:5]) for ln in run.text.split()] == list(range(1000))
    seen = []
    while len(seen) < 1000:
        op, payload = read_frame(slow)
        m = json.loads(payload) if op == 1 else {"msg_type": None}
        if m["msg_type"] == "stream" and m["content"]["name"] == "stdout":
            seen += [int(ln[:5]) for ln in m["content"]["text"].split()]
    assert seen == list(range(1000))
    slow.close()


def test_sudden_ends_at_any_byte_leave_no_connection(shared, kernel):
    kid = kernel("python3")
    whole = frame(execute_bytes("print('x' * 100000)"))
    rng = random.Random(11)
    for i in range(60):
        c = open_raw(shared, kid, sid=f"s{i % 5}")
        c.send(whole[:rng.randrange(len(whole) + 1)])
        (c.reset, c.close)[i % 2]()
    wait_for(lambda: connections(shared, kid) == 0)
    with Channels(shared, kid) as c:
        assert c.run("1 + 1").result == "2"


def test_an_upgrade_and_then_silence_is_pinged(server_with):
    s = server_with("--ws-ping-interval", "1")
    kid = s.start_kernel("python3")
    c = open_raw(s, kid)
    pings = 0
    while pings < 2:
        op, _ = read_frame(c)
        pings += op == 9
    c.close()


def test_big_messages_pass_both_ways(shared, kernel):
    with Channels(shared, kernel("python3")) as c:
        n = 1 << 20
        run = c.run("s = '" + "a" * n + "'\nprint(len(s))", timeout=120)
        assert run.text == f"{n}\n"
        run = c.run("print('b' * (11 << 20))", timeout=120)
        assert len(run.text) == (11 << 20) + 1
