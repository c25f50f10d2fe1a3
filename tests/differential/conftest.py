"""The C driver, the vectors, and mutation of byte streams."""
import json
import os
import pathlib
import random
import re
import struct
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = int(os.environ.get("DIFFERENTIAL_ROUNDS", "1"))
SEED = int(os.environ.get("DIFFERENTIAL_SEED", "0"))
ESCAPES = {"r": b"\r", "n": b"\n", "t": b"\t", "\\": b"\\"}


def driver_path(name="protocol_verdict"):
    builds = [os.environ["HOLDCELL_BUILD"]] if "HOLDCELL_BUILD" in os.environ else [
        ROOT / "build" / preset for preset in ("asan", "dev", "release")]
    for build in builds:
        path = pathlib.Path(build) / "tests" / name
        if path.exists():
            return path
    pytest.exit(f"{name} is not built: cmake --build --preset asan", returncode=2)


@pytest.fixture(scope="session")
def driver():
    """verdicts(kind, [(stream, piece), ...]) -> one dict each."""
    path = driver_path()

    def verdicts(kind, streams):
        orders = b"".join(kind + struct.pack("<II", piece, len(s)) + s for s, piece in streams)
        done = subprocess.run([path], input=orders, stdout=subprocess.PIPE, check=True, timeout=600)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(found) == len(streams)
        return found

    return verdicts


def vector_bytes(text):
    """The format of tests/vectors/README.md."""
    out, i = bytearray(), 0
    while i < len(text):
        if text[i] != "\\":
            out += text[i].encode("ascii")
            i += 1
        elif text[i + 1] == "x":
            out.append(int(text[i + 2:i + 4], 16))
            i += 4
        elif text[i + 1] == "{":
            repeat = re.compile(r"\\\{(\d+)\*([^}]*)\}").match(text, i)
            out += vector_bytes(repeat[2]) * int(repeat[1])
            i = repeat.end()
        else:
            out += ESCAPES[text[i + 1]]
            i += 2
    return bytes(out)


def vectors(name):
    """[(verdict, name, bytes), ...] of a table in tests/vectors."""
    rows = []
    for line in (ROOT / "tests" / "vectors" / name).read_text("ascii").splitlines():
        if not line.startswith("#"):
            verdict, what, text = line.split("\t")
            rows.append((verdict, what, vector_bytes(text)))
    return rows


def mutate(rng: random.Random, stream: bytes, others, tokens) -> bytes:
    """One to four small changes: bytes, tokens of the protocol, pieces of other streams."""
    s = bytearray(stream)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        at = rng.randrange(len(s) + 1)
        kind = rng.randrange(7)
        if kind == 0 and at < len(s):
            s[at] = rng.randrange(256)
        elif kind == 1:
            s[at:at] = rng.choice(tokens)
        elif kind == 2 and at < len(s):
            del s[at:at + rng.choice((1, 1, 2, 5))]
        elif kind == 3:
            n = rng.randrange(1, 20)
            s[at:at] = s[at:at + n]
        elif kind == 4:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            s[at:at] = other[start:start + rng.randrange(1, 40)]
        elif kind == 5 and at < len(s):
            s[at] ^= 1 << rng.randrange(8)
        elif kind == 6:
            token = rng.choice(tokens)
            s[at:at + len(token)] = token
    return bytes(s)
