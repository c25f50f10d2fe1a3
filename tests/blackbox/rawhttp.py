"""Raw bytes to the server: what no client library would send."""

import socket
import struct
import time


class Raw:
    """One TCP connection; answers are read by hand."""

    def __init__(self, server, timeout=20):
        self.server = server
        self.sock = socket.create_connection(("127.0.0.1", server.port), timeout=timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buf = b""

    def send(self, data):
        """The server may close at any time: that shows when the answer is read."""
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def fill(self):
        try:
            more = self.sock.recv(65536)
        except ConnectionResetError:
            more = b""
        self.buf += more
        return bool(more)

    def answer(self, method="GET"):
        """(status, headers, body), or None when the connection ended first."""
        while b"\r\n\r\n" not in self.buf:
            if not self.fill():
                return None
        head, self.buf = self.buf.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        headers = {k.lower(): v.strip() for k, v in (ln.split(":", 1) for ln in lines[1:])}
        n = 0 if method == "HEAD" or status in (101, 204) else int(headers.get("content-length", 0))
        while len(self.buf) < n:
            if not self.fill():
                return None
        body, self.buf = self.buf[:n], self.buf[n:]
        return status, headers, body

    def ended(self, within=20):
        """True when the peer closes; what still comes is kept in buf."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            self.sock.settimeout(max(0.01, end - time.monotonic()))
            try:
                if not self.fill():
                    return True
            except TimeoutError:
                return False
        return False

    def close(self):
        self.sock.close()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def request(server, method, path, headers="", body=b"", token=True):
    auth = f"Authorization: token {server.token}\r\n" if token else ""
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{auth}{headers}{length}\r\n".encode() + body


def frame(payload, first=0x81, mask=b"\1\2\3\4"):
    """A client's WebSocket frame; mask None: of zeros, which costs no time."""
    n = len(payload)
    size = bytes([0x80 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n) if n < 65536 else b"\xff" + struct.pack(">Q", n)
    if mask is None:
        return bytes([first]) + size + bytes(4) + payload
    return bytes([first]) + size + mask + bytes(b ^ mask[i & 3] for i, b in enumerate(payload))


def upgrade(server, kid, sid="raw", protocol=None):
    return request(server, "GET", f"/api/kernels/{kid}/channels?session_id={sid}",
                   "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                   + (f"Sec-WebSocket-Protocol: {protocol}\r\n" if protocol else "") +
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
