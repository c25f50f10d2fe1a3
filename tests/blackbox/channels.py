"""A plain client of the channels WebSocket, in the legacy JSON framing or in that of v1."""

import json
import struct
import time
import uuid

import websocket

from server import DEADLINE


V1 = "v1.kernel.websocket.jupyter.org"


class Ended(Exception):
    """The WebSocket closed; args: close code or None."""


class Run:
    """What came back for one execute_request."""

    def __init__(self):
        self.messages, self.reply, self.idle = [], None, False

    def of(self, kind):
        return [m for m in self.messages if m["header"]["msg_type"] == kind]

    def stream(self, name):
        return "".join(m["content"]["text"] for m in self.of("stream") if m["content"]["name"] == name)

    @property
    def text(self):
        return self.stream("stdout")

    @property
    def result(self):
        got = self.of("execute_result")
        return got[-1]["content"]["data"]["text/plain"] if got else None

    @property
    def status(self):
        return self.reply["content"]["status"] if self.reply else None

    @property
    def ename(self):
        return self.reply["content"].get("ename") if self.reply else None


def v1_pack(m):
    parts = [m["channel"].encode()] + [json.dumps(m[k]).encode() for k in ("header", "parent_header", "metadata", "content")]
    at = [8 * (len(parts) + 2)]
    for part in parts:
        at.append(at[-1] + len(part))
    return struct.pack(f"<{len(at) + 1}Q", len(at), *at) + b"".join(parts)


def v1_unpack(data):
    count, = struct.unpack_from("<Q", data)
    at = struct.unpack_from(f"<{count}Q", data, 8)
    channel, header, parent, metadata, content, *_ = (data[a:b] for a, b in zip(at, at[1:]))
    header = json.loads(header)
    return {"channel": channel.decode(), "header": header, "msg_type": header["msg_type"], "parent_header": json.loads(parent),
            "metadata": json.loads(metadata), "content": json.loads(content)}


class Channels:
    def __init__(self, server, kid, sid=None, header=(), base="", v1=False, nameless=False):
        self.v1 = v1
        self.sid = sid or uuid.uuid4().hex
        header = [*header] + ([f"Authorization: token {server.token}"] if server.token else [])
        self.ws = websocket.create_connection(
            f"{'wss' if server.tls else 'ws'}://127.0.0.1:{server.port}{base}/api/kernels/{kid}/channels"
            + ("" if nameless else f"?session_id={self.sid}"),
            header=header, timeout=DEADLINE, sslopt={"context": server.tls} if server.tls else None,
            subprotocols=[V1] if v1 else None, skip_utf8_validation=True)      # json does that, and faster
        self.seen = []                      # every message, in order

    def close(self):
        self.ws.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, kind, content, channel="shell", parent=None):
        msg_id = uuid.uuid4().hex
        message = {
            "header": {"msg_id": msg_id, "msg_type": kind, "session": self.sid, "username": "test",
                       "version": "5.4", "date": "2026-01-01T00:00:00.000000Z"},
            "parent_header": parent or {}, "metadata": {}, "content": content,
            "channel": channel, "buffers": []}
        if self.v1:
            self.ws.send_binary(v1_pack(message))
        else:
            self.ws.send(json.dumps(message))
        return msg_id

    def recv(self, timeout=DEADLINE):
        end = time.monotonic() + timeout
        op = websocket.ABNF.OPCODE_PING     # of the server: one every 30 s is no message
        try:
            while op in (websocket.ABNF.OPCODE_PING, websocket.ABNF.OPCODE_PONG):
                self.ws.settimeout(max(0.01, end - time.monotonic()))
                op, data = self.ws.recv_data(control_frame=True)
        except websocket.WebSocketTimeoutException:
            raise TimeoutError("no message") from None
        except (websocket.WebSocketException, OSError) as e:
            raise Ended(None) from e
        if op == websocket.ABNF.OPCODE_CLOSE:
            raise Ended(int.from_bytes(data[:2], "big") if len(data) >= 2 else None)
        if op == websocket.ABNF.OPCODE_BINARY and self.v1:
            self.seen.append(v1_unpack(data))
            return self.seen[-1]
        if op == websocket.ABNF.OPCODE_BINARY:
            off = int.from_bytes(data[4:8], "big")
            data = data[off:int.from_bytes(data[8:12], "big")]
        m = json.loads(data)
        self.seen.append(m)
        return m

    def until(self, wanted, timeout=DEADLINE):
        """The first message for which wanted() is true."""
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("the message did not come")
            m = self.recv(left)
            if wanted(m):
                return m

    def start(self, code, allow_stdin=False):
        return self.send("execute_request", {"code": code, "silent": False, "store_history": True,
                                             "user_expressions": {}, "allow_stdin": allow_stdin,
                                             "stop_on_error": False})

    def finish(self, msg_id, timeout=DEADLINE, answer=None):
        """Collects until both reply and idle came."""
        run = Run()
        end = time.monotonic() + timeout
        while not (run.reply and run.idle):
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no end of the cell: reply={run.status} idle={run.idle}")
            m = self.recv(left)
            if (m.get("parent_header") or {}).get("msg_id") != msg_id:
                continue
            kind = m["header"]["msg_type"]
            run.messages.append(m)
            if kind == "execute_reply":
                assert run.reply is None, "two replies to one request"
                run.reply = m
            elif kind == "status" and m["content"]["execution_state"] == "idle":
                run.idle = True
            elif kind == "input_request":
                self.send("input_reply", {"value": answer}, "stdin", m["header"])
        return run

    def run(self, code, timeout=DEADLINE, answer=None):
        return self.finish(self.start(code, answer is not None), timeout, answer)


def start_in(client, subshell, code):
    """Sends a cell to a subshell; its msg_id."""
    msg_id = uuid.uuid4().hex
    client.ws.send(json.dumps({
        "header": {"msg_id": msg_id, "msg_type": "execute_request", "session": client.sid, "username": "test",
                   "version": "5.4", "date": "2026-01-01T00:00:00.000000Z", "subshell_id": subshell},
        "parent_header": {}, "metadata": {}, "channel": "shell", "buffers": [],
        "content": {"code": code, "silent": False, "store_history": False, "user_expressions": {},
                    "allow_stdin": False, "stop_on_error": False}}))
    return msg_id
