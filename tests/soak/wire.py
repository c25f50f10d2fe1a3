"""HTTP and WebSocket by hand on asyncio streams: what a test must control (when a socket is read, how it ends)
no client library gives. Both framings of the channels WebSocket."""

import asyncio
import base64
import json
import os
import socket
import struct
import uuid

V1 = "v1.kernel.websocket.jupyter.org"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
CHANNELS = ("shell", "control", "stdin", "iopub")


class Refused(Exception):
    """The handshake was answered with another status; args: that status."""


class Closed(Exception):
    """The WebSocket ended; args: close code, or None without a Close."""


class Target:
    """Where the server is: address, TLS context or None, token."""

    def __init__(self, port, tls=None, token=None):
        self.port, self.tls, self.token = port, tls, token

    def as_(self, token):
        return Target(self.port, self.tls, token)

    async def open(self, **kw):
        host = {"server_hostname": "localhost"} if self.tls else {}
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.tls, limit=1 << 20, **host, **kw)

    def head(self, method, path, headers=""):
        auth = f"Authorization: token {self.token}\r\n" if self.token else ""
        return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{auth}{headers}\r\n".encode()


async def read_answer(reader):
    """(status, headers, body) of an answer with a length."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {k.lower(): v.strip() for k, v in (x.split(":", 1) for x in lines[1:] if x)}
    status = int(lines[0].split(" ")[1])
    n = 0 if status in (101, 204) else int(headers.get("content-length", 0))
    return status, headers, await reader.readexactly(n) if n else b""


class Rest:
    """One keep-alive connection; made anew when the server had closed it between two requests."""

    def __init__(self, target):
        self.target, self.pair = target, None

    async def ask(self, method, path, body=None, timeout=120):
        """(status, JSON or bytes)"""
        data = b"" if body is None else json.dumps(body).encode()
        more = f"Content-Length: {len(data)}\r\nContent-Type: application/json\r\n" if method in ("POST", "PATCH") else ""
        status, headers, got = await asyncio.wait_for(
            self.exchange(self.target.head(method, path, more) + data), timeout)
        if headers.get("connection", "").lower() == "close":
            self.close()
        return status, json.loads(got) if "json" in headers.get("content-type", "") and got else got

    async def exchange(self, data):
        for last in (False, True):
            fresh = self.pair is None
            if fresh:
                self.pair = await self.target.open()
            reader, writer = self.pair
            try:
                writer.write(data)
                await writer.drain()
                return await read_answer(reader)
            except (asyncio.IncompleteReadError, ConnectionError) as e:
                self.close()
                # Only an idle connection that ended before any byte of an answer may be tried again.
                if fresh or last or getattr(e, "partial", b""):
                    raise
        raise AssertionError("unreachable")

    def close(self):
        if self.pair:
            self.pair[1].close()
        self.pair = None


def xor(data, mask):
    n = len(data)
    key = int.from_bytes((mask * (n // 4 + 1))[:n], "big")
    return (int.from_bytes(data, "big") ^ key).to_bytes(n, "big")


def frame(payload, op=TEXT, fin=True, mask=None):
    """A client's frame."""
    n = len(payload)
    size = bytes([0x80 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n) if n < 65536 else b"\xff" + struct.pack(">Q", n)
    mask = mask or os.urandom(4)
    return bytes([(0x80 if fin else 0) | op]) + size + mask + xor(payload, mask)


def pack_v1(m):
    parts = [m["channel"].encode()] + [json.dumps(m[k]).encode() for k in ("header", "parent_header", "metadata", "content")]
    parts += m["buffers"]
    offsets, at = [], 8 * (len(parts) + 2)
    for p in parts:
        offsets.append(at)
        at += len(p)
    offsets.append(at)
    return struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets) + b"".join(parts)


def unpack_v1(data):
    n = struct.unpack_from("<Q", data)[0]
    at = struct.unpack_from(f"<{n}Q", data, 8)
    parts = [data[a:b] for a, b in zip(at, at[1:])]
    m = dict(zip(("header", "parent_header", "metadata", "content"), map(json.loads, parts[1:5])))
    return {"channel": parts[0].decode(), **m, "buffers": parts[5:]}


def pack_legacy(m):
    """(op, payload): text without buffers, binary with them."""
    text = json.dumps({**m, "buffers": []}).encode()
    if not m["buffers"]:
        return TEXT, text
    parts = [text, *m["buffers"]]
    at, offsets = 4 * (len(parts) + 1), []
    for p in parts:
        offsets.append(at)
        at += len(p)
    return BINARY, struct.pack(f">{len(parts) + 1}I", len(parts), *offsets) + b"".join(parts)


def unpack_legacy(op, data):
    if op == TEXT:
        return json.loads(data)
    n = struct.unpack_from(">I", data)[0]
    at = struct.unpack_from(f">{n}I", data, 4) + (len(data),)
    parts = [data[a:b] for a, b in zip(at, at[1:])]
    return {**json.loads(parts[0]), "buffers": parts[1:]}


class Channels:
    """A channels WebSocket."""

    def __init__(self, sid, v1):
        self.sid, self.v1 = sid, v1
        self.reader = self.writer = None
        self.closing = False        # our Close was sent
        self.leaving = False        # its end is no surprise

    async def open(self, target, kid, **kw):
        self.reader, self.writer = await target.open(**kw)
        key = base64.b64encode(os.urandom(16)).decode()
        offer = f"Sec-WebSocket-Protocol: {V1}\r\n" if self.v1 else ""
        self.writer.write(target.head(
            "GET", f"/api/kernels/{kid}/channels?session_id={self.sid}",
            f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n{offer}"))
        status, headers, _ = await read_answer(self.reader)
        if status != 101:
            self.reset()
            raise Refused(status)
        assert (headers.get("sec-websocket-protocol") == V1) == self.v1, headers
        return self

    def message(self, kind, content, channel="shell", parent=None, buffers=()):
        return {"header": {"msg_id": uuid.uuid4().hex, "msg_type": kind, "session": self.sid, "username": "soak",
                           "version": "5.4", "date": "2026-01-01T00:00:00.000000Z"},
                "parent_header": parent or {}, "metadata": {}, "content": content, "channel": channel,
                "buffers": list(buffers)}

    async def send(self, m):
        op, data = (BINARY, pack_v1(m)) if self.v1 else pack_legacy(m)
        self.writer.write(frame(data, op))
        await self.writer.drain()

    async def read_frame(self):
        """(op, fin, payload)"""
        first, size = await self.reader.readexactly(2)
        if size > 127 or first & 0x70:
            raise AssertionError(f"a frame that no server may send: {first:#x} {size:#x}")
        if size == 126:
            size = struct.unpack(">H", await self.reader.readexactly(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", await self.reader.readexactly(8))[0]
        return first & 15, bool(first & 0x80), await self.reader.readexactly(size) if size else b""

    async def receive(self):
        """The next message. Closed ends it, after everything that came before the Close."""
        kind, parts = None, []
        while True:
            try:
                op, fin, data = await self.read_frame()
            except (asyncio.IncompleteReadError, ConnectionError, OSError) as e:
                raise Closed(None) from e
            if op == PING:
                if not self.closing:
                    self.writer.write(frame(data, PONG))
            elif op == CLOSE:
                if not self.closing:
                    self.writer.write(frame(data[:2], CLOSE))
                self.reset(gently=True)
                raise Closed(int.from_bytes(data[:2], "big") if len(data) >= 2 else None)
            elif op != PONG:
                kind = op or kind
                parts.append(data)
                if fin:
                    data = b"".join(parts)
                    return unpack_v1(data) if self.v1 else unpack_legacy(kind, data)

    def begin_close(self):
        """Sends the Close; what the server had sent before its own still comes from receive()."""
        self.closing = True
        self.writer.write(frame(struct.pack(">H", 1000), CLOSE))

    def reset(self, gently=False):
        if self.writer is None or self.writer.transport.is_closing():
            return
        if gently:
            self.writer.close()
        else:
            sock = self.writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.writer.transport.abort()
