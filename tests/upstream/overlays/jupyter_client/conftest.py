"""jupyter_client's Session with our signatures, and our parser of what comes from a
socket: the library's tests then check those (the program is tests/tools/jupyter_codec.c)."""

import os
import struct
import subprocess

import pytest
from jupyter_client.session import Session

pytest_plugins = ["pytest_jupyter.jupyter_core"]


class Codec:
    def __init__(self):
        path = os.path.join(os.path.dirname(os.environ["HOLDCELL_BIN"]), "..", "tests", "jupyter_codec")
        self.child = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, verb, *fields):
        out = verb.encode() + struct.pack("<I", len(fields))
        self.child.stdin.write(out + b"".join(struct.pack("<I", len(f)) + bytes(f) for f in fields))
        self.child.stdin.flush()
        result, count = struct.unpack("<iI", self.child.stdout.read(8))
        answer = [self.child.stdout.read(*struct.unpack("<I", self.child.stdout.read(4))) for _ in range(count)]
        if result < 0:
            raise ValueError(answer[0].decode())
        return answer


@pytest.fixture(autouse=True)
def ours(monkeypatch):
    codec = Codec()

    def sign(self, parts):
        return codec.ask("S", self.signature_scheme.encode(), self.key, *parts)[0]

    def feed_identities(self, frames, copy=True):
        frames = [bytes(f) if copy else f.bytes for f in frames]
        routing, *rest = codec.ask("R", self.signature_scheme.encode(), self.key, *frames)
        n = int(routing)
        assert rest == frames[n + 2 :]
        return frames[:n], [frames[n + 1], *rest]

    monkeypatch.setattr(Session, "sign", sign)
    monkeypatch.setattr(Session, "feed_identities", feed_identities)
    yield
    codec.child.stdin.close()
    assert codec.child.wait(timeout=60) == 0
