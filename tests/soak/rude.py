"""Clients without manners. Each attempt is one coroutine; what the server owes to it is checked where that is exact,
and else only that nobody else notices."""

import asyncio
import ctypes
import os
import socket
import struct
import uuid

from wire import BINARY, Channels, Closed, Refused, frame, read_answer

WAIT = 120


def go_deaf(sock):
    """Every packet for this socket is dropped from now on, acknowledgements too: its peer sees a machine that is gone."""
    code = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))     # BPF_RET 0
    sock.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HxxxxxxP", 1, ctypes.addressof(code)))    # SO_ATTACH_FILTER


def vanish(sock):
    """Ends a socket without a FIN or a reset."""
    sock.setsockopt(socket.IPPROTO_TCP, 19, 1)      # TCP_REPAIR
    sock.close()


class Rude:
    """ids: kernels of this principal; loud: one of them that prints for stalled readers; deck: what is to be tried next,
    of all rude clients together."""

    def __init__(self, ledger, target, ids, loud, rng, tls, deck):
        self.deck = deck
        self.ledger, self.target, self.ids, self.loud, self.rng, self.tls = ledger, target, ids, loud, rng, tls
        self.ping_silence = 30

    async def channels(self, v1=False, kid=None, **kw):
        """A socket of a session of its own."""
        return await asyncio.wait_for(Channels(uuid.uuid4().hex, v1).open(self.target, kid or self.rng.choice(self.ids), **kw), WAIT)

    @staticmethod
    def raw(writer):
        """The socket itself: a duplicate that outlives the transport's."""
        return socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno()))

    def expect(self, what, got, *wanted):
        self.ledger.note("rude answers checked")
        if got not in wanted:
            self.ledger.breach(f"rude: {what}: {got!r}, not {wanted!r}")

    @staticmethod
    async def ended(reader, writer):
        """The status of what was answered before the server closed; None when it just closed."""
        try:
            status, _, _ = await asyncio.wait_for(read_answer(reader), WAIT)
            await asyncio.wait_for(reader.read(), WAIT)
            return status
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        finally:
            writer.close()

    async def close_code(self, c):
        try:
            while True:
                await asyncio.wait_for(c.receive(), WAIT)
        except Closed as e:
            return e.args[0]
        finally:
            c.reset()

    # --- machines that vanish
    async def half_open(self):
        """An open channels socket whose machine is gone: found by pings."""
        c = await self.channels()
        sock = self.raw(c.writer)
        go_deaf(sock)
        c.writer.transport.pause_reading()
        await asyncio.sleep(self.rng.uniform(10, 50))
        vanish(sock)
        c.reset()

    async def half_open_http(self):
        """The same in the middle of a request, and after an answer."""
        reader, writer = await self.target.open()
        writer.write(self.target.head("GET", "/api/kernels"))
        if self.rng.random() < 0.5:
            await asyncio.wait_for(read_answer(reader), WAIT)
        sock = self.raw(writer)
        go_deaf(sock)
        await asyncio.sleep(self.rng.uniform(5, 30))
        vanish(sock)
        writer.transport.abort()

    async def reset(self):
        """Connect and reset, at some point of the way."""
        reader, writer = await self.target.open()
        stage = self.rng.randrange(4)
        head = self.target.head("GET", f"/api/kernels/{self.rng.choice(self.ids)}/channels?session_id={uuid.uuid4().hex}",
                                "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
        if stage:
            writer.write(head[:self.rng.randrange(1, len(head))] if stage == 1 else head)
        if stage == 3:
            await asyncio.wait_for(read_answer(reader), WAIT)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    # --- readers that stall
    async def stalled(self):
        """Asks for more than all buffers hold, and reads none of it."""
        c = await self.channels(kid=self.loud.id)
        c.writer.transport.pause_reading()
        await c.send(c.message("execute_request", {
            "code": self.loud.dialect.fill(40, 60000), "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": False, "stop_on_error": False}))
        await asyncio.sleep(self.rng.uniform(5, 40))
        c.reset()

    async def stalled_http(self):
        """Sends requests and never reads an answer."""
        _, writer = await self.target.open()
        writer.transport.pause_reading()
        for _ in range(200):
            writer.write(self.target.head("GET", "/api/kernels"))
        await asyncio.sleep(self.rng.uniform(5, 40))
        writer.transport.abort()

    async def half_message(self):
        """A large message in fragments that never ends."""
        c = await self.channels(v1=True)
        c.writer.write(frame(bytes(1 << 20), BINARY, fin=False))
        for _ in range(2):
            c.writer.write(frame(bytes(1 << 20), 0, fin=False))
        await asyncio.wait_for(c.writer.drain(), WAIT)
        await asyncio.sleep(self.rng.uniform(1, 20))
        c.reset()

    # --- garbage
    async def bad_frames(self):
        """Each of these ends the socket with 1002 or 1007."""
        bad = self.rng.choice([
            (b"\x81\x05hello", 1002),                                   # not masked
            (b"\x83\x80abcd", 1002),                                    # opcode 3
            (b"\xf1\x80abcd", 1002),                                    # reserved bits
            (b"\x89\xfe\x00\x80abcd" + bytes(128), 1002),               # a ping of 128 bytes
            (b"\x09\x80abcd", 1002),                                    # a ping in fragments
            (b"\x80\x80abcd", 1002),                                    # goes on with nothing
            (b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xffabcd", 1002),    # a length above 63 bits
            (frame(b"\xff\xfe"), 1007),                                 # text that is not UTF-8
        ])
        c = await self.channels()
        c.writer.write(bad[0])
        self.expect(f"frame {bad[0][:8]!r}", await self.close_code(c), bad[1])

    async def bad_messages(self):
        """These cost themselves: the next good message on the same socket is answered."""
        c = await self.channels(v1=self.rng.random() < 0.5)
        for junk in (b"[]", b"null", b"", b"{", b'{"header": 1}', b'{"channel": "shell"}', b"\0" * 40, b"[" * 5000):
            c.writer.write(frame(junk, 1))
        for junk in (b"", b"\xff" * 7, struct.pack("<3Q", 1 << 60, 8, 16), struct.pack("<Q", 6) + b"\xff" * 48,
                     os.urandom(300)):
            c.writer.write(frame(junk, BINARY))
        m = c.message("kernel_info_request", {})
        await c.send(m)
        try:
            while (await asyncio.wait_for(c.receive(), WAIT * 2))["parent_header"].get("msg_id") != m["header"]["msg_id"]:
                pass
            self.ledger.note("rude answers checked")
        except Closed as e:
            self.expect("garbage messages", e.args[0], "an answer")
        c.reset()

    async def too_big(self):
        """A message that says it is above the ceiling: 1009 before it is read."""
        c = await self.channels()
        if self.rng.random() < 0.5:
            c.writer.write(b"\x81\xff" + struct.pack(">Q", (128 << 20) + 1) + b"abcd")
        else:
            c.writer.write(b"\x01\xfe\xff\xffabcd" + bytes(65535) + b"\x80\xff" + struct.pack(">Q", 128 << 20) + b"abcd")
        self.expect("a message above the ceiling", await self.close_code(c), 1009)

    async def big_head(self):
        reader, writer = await self.target.open()
        kind = self.rng.randrange(3)
        writer.write([f"GET /{'a' * 40000} HTTP/1.1\r\n".encode(),
                      b"GET /api HTTP/1.1\r\nHost: localhost\r\nX: " + b"b" * 40000,
                      b"GET /api HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(200)) + b"\r\n"][kind])
        self.expect("an oversized head", await self.ended(reader, writer), [414, 431, 431][kind])

    async def slowloris(self):
        """A byte now and then: 408 after the time for a head."""
        reader, writer = await self.target.open()
        answer = asyncio.create_task(self.ended(reader, writer))
        for byte in self.target.head("GET", "/api/status") * 10:
            if answer.done():
                break
            writer.write(bytes([byte]))
            await asyncio.sleep(0.5)
        self.expect("slowloris", await answer, 408, None)

    async def bad_requests(self):
        reader, writer = await self.target.open()
        data = self.rng.choice([b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(200), b"\0" * 100 + b"\r\n\r\n",
                                b"GET / HTTP/9.9\r\n\r\n", b"GET /api HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                                b"POST /api/kernels HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
                                b"POST /api/kernels HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n"])
        writer.write(data)
        status = await self.ended(reader, writer)
        self.expect(f"request {data[:20]!r}", status is None or 400 <= status < 600, True)

    async def half_body(self):
        """Says more than it sends."""
        _, writer = await self.target.open()
        writer.write(self.target.head("POST", "/api/kernels", "Content-Type: application/json\r\nContent-Length: 60000\r\n"))
        writer.write(b'{"name": "' + b"x" * 1000)
        await asyncio.sleep(self.rng.uniform(1, 20))
        writer.transport.abort()

    async def tls_garbage(self):
        """Over TLS: what is no handshake, half of one, and nothing at all. Else: a handshake for a plain server."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.target.port)
        kind = self.rng.randrange(4)
        if kind == 0:
            writer.write(os.urandom(300))
        elif kind == 1:
            writer.write(b"GET /api HTTP/1.1\r\nHost: localhost\r\n\r\n")
        elif kind == 2:
            writer.write(b"\x16\x03\x01\x40\x00" + os.urandom(100))
        await asyncio.sleep(self.rng.uniform(0, 15))
        writer.transport.abort()

    # --- strangers
    async def unknown_kernel(self):
        for _ in range(10):
            try:
                await self.channels(kid=str(uuid.uuid4()))
                self.expect("an unknown kernel", 101, 404)
            except Refused as e:
                self.expect("an unknown kernel", e.args[0], 404)

    async def wrong_token(self):
        for path in ("/api/kernels", f"/api/kernels/{self.ids[0]}", "/api/sessions"):
            reader, writer = await self.target.open()
            writer.write(self.target.as_("wrong" + uuid.uuid4().hex).head("GET", path, "Connection: close\r\n"))
            self.expect("a wrong token", await self.ended(reader, writer), 401, 403)

    # From the back. Those that last long are begun last, so that a short run gets to all of them too.
    ATTEMPTS = ("half_open", "stalled", "stalled_http", "half_open_http", "half_message", "slowloris", "tls_garbage", "half_body",
                "reset", "bad_frames", "bad_messages", "too_big", "big_head", "bad_requests", "unknown_kernel", "wrong_token")

    async def live(self, until, pause):
        while not until.is_set():
            name = self.deck.pop()
            if not self.deck:
                self.deck += self.rng.sample(self.ATTEMPTS, len(self.ATTEMPTS))
            self.ledger.note(f"rude {name}")
            try:
                await getattr(self, name)()
            except (ConnectionError, asyncio.IncompleteReadError, Closed):
                self.ledger.note("rude ones cut short")
            except Exception as e:      # noqa: BLE001
                self.ledger.breach(f"rude {name}: {type(e).__name__} {e}")
            await asyncio.sleep(self.rng.uniform(0, 2) * pause)
