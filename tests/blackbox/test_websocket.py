"""The channels WebSocket of the real server: hostile frames, slow readers, sudden ends."""

import json
import random
import struct
import threading
import uuid

import pytest

from channels import V1, Channels
from rawhttp import Raw, frame, upgrade
from server import DEADLINE, SLOW, wait_for


def open_raw(s, kid, sid="raw", extra=b"", protocol=None):
    c = Raw(s, 60)
    c.send(upgrade(s, kid, sid, protocol) + extra)
    status, headers, _ = c.answer()
    assert status == 101 and headers["connection"] == "Upgrade"
    assert headers.get("sec-websocket-protocol") == protocol
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


def v1_parts(kind, content, msg_id=None):
    header = {"msg_id": msg_id or uuid.uuid4().hex, "msg_type": kind, "session": "raw", "username": "t", "version": "5.4"}
    return [b"shell", json.dumps(header).encode(), b"{}", b"{}", content]


def v1_message(offsets, parts, count=None):
    """A payload of v1.kernel.websocket.jupyter.org with these offsets, which need not be true."""
    return struct.pack(f"<{1 + len(offsets)}Q", len(offsets) if count is None else count, *offsets) + b"".join(parts)


def v1_offsets(parts):
    at = [8 * (len(parts) + 2)]
    for part in parts:
        at.append(at[-1] + len(part))
    return at


def v1_received(c):
    """(channel, header, content) of the next message."""
    while True:
        op, payload = read_frame(c)
        assert op != 8, payload
        if op == 2:
            break
    n = struct.unpack_from("<Q", payload)[0]
    at = struct.unpack_from(f"<{n}Q", payload, 8)
    parts = [payload[a:b] for a, b in zip(at, at[1:])]
    return parts[0].decode(), json.loads(parts[1]), parts[4]


def v1_result(c, code):
    """What a cell on that socket gives."""
    parts = v1_parts("execute_request", json.dumps({"code": code, "silent": False}).encode())
    c.send(frame(v1_message(v1_offsets(parts), parts), 0x82))
    while True:
        _, header, content = v1_received(c)
        if header["msg_type"] == "execute_result":
            return json.loads(content)["data"]["text/plain"]


def false_v1_messages():
    parts = v1_parts("execute_request", b'{"code": "never = 1", "silent": false}')
    true = v1_offsets(parts)
    whole = v1_message(true, parts)
    for count in (0, 1, 2, 5, 7, 1 << 20, 1 << 32, 1 << 60, (1 << 60) + 6, 1 << 61, (1 << 61) + 6, (1 << 63) + 6, (1 << 64) - 1):
        yield f"count {count}", v1_message(true, parts, count)
    yield "descending", v1_message(true[::-1], parts)
    for i in range(len(true)):
        for other in (0, 7, 1 << 31, 1 << 32, 1 << 60, 1 << 63, (1 << 64) - 1, len(whole) + 1):
            yield f"offset {i} is {other}", v1_message(true[:i] + [other] + true[i + 1:], parts)
        if i:
            yield f"offset {i} before the one before", v1_message(true[:i] + [true[i - 1] - 1] + true[i + 1:], parts)
    for n in range(8 * 8):
        yield f"cut after {n}", whole[:n]


def test_false_offsets_of_v1_are_dropped_each_for_itself_and_the_next_cell_runs(shared, kernel):
    kid = kernel("python3")
    c = open_raw(shared, kid, protocol=V1)
    assert v1_result(c, "1 + 1") == "2"
    tries = 0
    for name, payload in false_v1_messages():
        c.send(frame(payload, 0x82))
        tries += 1
        if tries % 16 == 0:
            assert v1_result(c, f"{tries} + 0") == str(tries), name
    assert tries > 100 and v1_result(c, "'never' in globals()") == "False"
    c.close()


def test_what_is_nested_a_hundred_deep_reaches_a_v1_client_byte_for_byte(server_with, kernel_path):
    s = server_with("--kernel-path", kernel_path.add_scripted().path)
    c = open_raw(s, s.start_kernel("scripted"), protocol=V1)
    deep = b"[" * 98 + b'{"n":[1,-2,"\xc3\xa9"]}' + b"]" * 98     # in two objects
    sent = b'{"comm_id":"x","data":{"deep":' + deep + b"}}"
    parts = v1_parts("comm_msg", sent)
    c.send(frame(v1_message(v1_offsets(parts), parts), 0x82))
    while True:
        channel, header, content = v1_received(c)
        if header["msg_type"] == "comm_msg":
            break
    assert channel == "iopub" and content == sent
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
    for i in range(200):                        # half of them resets
        c = open_raw(shared, kid, sid=f"s{i % 5}")
        c.send(whole[:rng.randrange(len(whole) + 1)])
        assert 1 <= connections(shared, kid) <= i % 20 + 1
        (c.reset, c.close)[i % 2]()
        if i % 20 == 19:
            wait_for(lambda: connections(shared, kid) == 0)
    with Channels(shared, kid) as c:
        assert c.run("1 + 1").result == "2"


@pytest.mark.full
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


def test_a_control_request_is_not_held_up_by_a_message_near_the_ceiling(shared, kernel):
    """From another socket while it is pushed, and right behind it on the same one."""
    kid = kernel("python3")
    big = open_raw(shared, kid, "big")
    ask = {"parent_header": {}, "metadata": {}, "content": {}}
    head = {"session": "big", "username": "t", "version": "5.4"}
    big_id, behind_id = uuid.uuid4().hex, uuid.uuid4().hex
    large = json.dumps({**ask, "header": {**head, "msg_id": big_id, "msg_type": "comm_info_request"}, "channel": "shell",
                        "content": {"target_name": "none", "more": "m" * (60 << 20)}}).encode()
    behind = json.dumps({**ask, "header": {**head, "msg_id": behind_id, "msg_type": "kernel_info_request"},
                         "channel": "control"}).encode()
    with Channels(shared, kid) as c:
        assert c.run("1 + 1").result == "2"
        begun, go_on = threading.Event(), threading.Event()

        def push():
            whole = frame(large, mask=None) + frame(behind)
            big.sock.settimeout(DEADLINE)
            big.sock.sendall(whole[:30 << 20])
            begun.set()
            go_on.wait(DEADLINE)
            big.sock.sendall(whole[30 << 20:])
        pushing = threading.Thread(target=push)
        pushing.start()
        assert begun.wait(DEADLINE)
        for i in range(20):
            if i == 3:
                go_on.set()         # the first with half of it there, the others while the rest comes and is passed on
            asked = c.send("kernel_info_request", {}, "control")
            c.until(lambda m: m["header"]["msg_type"] == "kernel_info_reply" and m["parent_header"]["msg_id"] == asked, 20 * SLOW)
        answered = set()
        big.sock.settimeout(20 * SLOW)
        while {big_id, behind_id} - answered:
            op, payload = read_frame(big)
            assert op in (1, 9), (op, payload)
            m = json.loads(payload) if op == 1 else {"msg_type": "ping"}
            if m["msg_type"] in ("comm_info_reply", "kernel_info_reply"):
                answered.add(m["parent_header"]["msg_id"])
        pushing.join(DEADLINE)
    big.close()
