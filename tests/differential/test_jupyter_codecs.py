"""The JSON scanner, signatures and WebSocket codecs against Python's json,
jupyter_client and jupyter_server."""

import codecs
import json
import random
import string
import struct
import subprocess
import sys

import pytest
from conftest import ROUNDS, SEED, driver_path
from jupyter_client.session import DELIM, Session
from jupyter_server.services.kernels.connection.base import (
    deserialize_binary_message,
    deserialize_msg_from_ws_v1,
    serialize_binary_message,
    serialize_msg_to_ws_v1,
)

NAN, BAD_UTF8 = 1, 2
EPARSE, EAUTH = -5000, -5001
DATE = "2025-01-02T03:04:05.000006Z"
CHANNELS = ["shell", "control", "stdin", "iopub"]

if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)  # the scanner has no such limit either


class Codec:
    """The C program; one request, one answer."""

    def __init__(self):
        self.p = subprocess.Popen(
            [driver_path("jupyter_codec")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, verb, *fields):
        fields = [f if isinstance(f, bytes) else str(f).encode() for f in fields]
        out = [verb.encode(), struct.pack("<I", len(fields))]
        for f in fields:
            out += [struct.pack("<I", len(f)), f]
        self.p.stdin.write(b"".join(out))
        self.p.stdin.flush()
        rc, count = struct.unpack("<iI", self.p.stdout.read(8))
        answer = []
        for _ in range(count):
            (size,) = struct.unpack("<I", self.p.stdout.read(4))
            answer.append(self.p.stdout.read(size))
        return rc, answer


@pytest.fixture(scope="module")
def codec():
    c = Codec()
    yield c
    c.p.stdin.close()
    assert c.p.wait(timeout=60) == 0  # ASan tells of leaks here


# --- JSON ------------------------------------------------------------------------


class Generator:
    """Random JSON texts with what real and hostile messages contain."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def space(self):
        return self.r.choice(["", "", "", " ", "\n", "\t", "\r\n", "  "])

    def character(self):
        r = self.r
        kind = r.random()
        if kind < 0.6:
            c = r.choice(string.ascii_letters + string.digits + " _-/'{}[],:")
        elif kind < 0.8:
            c = chr(r.choice([r.randrange(0x80, 0xD800), r.randrange(0xE000, 0x110000)]))
        elif kind < 0.9:
            return r.choice(['\\"', "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"])
        elif kind < 0.95:
            # Any unit, most often a surrogate, with a partner or without.
            unit = r.choice([r.randrange(1, 0x10000), r.randrange(0xD800, 0xE000)])
            return r.choice(["\\u%04x", "\\u%04X"]) % unit
        else:
            c = r.choice(["\u2028", "\u0085", "\x7f", "\ufeff", "\ufffd", "😀", "\uffff"])
        return c

    def string(self):
        return '"' + "".join(self.character() for _ in range(self.r.randrange(12))) + '"'

    def number(self):
        r = self.r
        text = r.choice(["", "-"]) + r.choice(["0", str(r.randrange(1, 10 ** r.randrange(1, 40)))])
        if r.random() < 0.3:
            text += "." + str(r.randrange(1000)).zfill(r.randrange(1, 5))
        if r.random() < 0.2:
            text += r.choice("eE") + r.choice(["", "+", "-"]) + str(r.randrange(400))
        return text

    def value(self, depth=0):
        r = self.r
        kind = r.random()
        if depth > 6 or kind < 0.35:
            scalars = [
                self.string,
                self.number,
                lambda: r.choice(["true", "false", "null"]),
                lambda: r.choice(["NaN", "Infinity", "-Infinity"]),
            ]
            return r.choices(scalars, [5, 4, 2, 1])[0]()
        members = range(r.randrange(5))
        if kind < 0.6:
            items = [self.space() + self.value(depth + 1) + self.space() for _ in members]
            return "[" + ",".join(items or [self.space()]) + "]"
        items = [
            self.space() + self.key() + self.space() + ":" + self.space() + self.value(depth + 1)
            for _ in members
        ]
        return "{" + ",".join(i + self.space() for i in items or [self.space()]) + "}"

    def key(self):
        if self.r.random() < 0.5:
            return self.r.choice(['"a"', '"b"', '"\\u0061"', '"header"', '"h\\u0065ader"', '""'])
        return self.string()

    def document(self):
        return (self.space() + self.value() + self.space()).encode()

    def broken(self):
        """A document with some bytes changed, lost, added or doubled."""
        b = bytearray(self.document())
        for _ in range(self.r.randrange(1, 4)):
            i = self.r.randrange(len(b) + 1)
            kind = self.r.randrange(5)
            if kind == 0:
                b[i:i] = self.r.choice([b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"0", b"-"])
            elif kind == 1:
                b[i : i + 1] = bytes([self.r.randrange(256)])
            elif kind == 2:
                del b[i : i + self.r.randrange(1, 4)]
            elif kind == 3:
                b[i:i] = bytes(self.r.randrange(0x80, 0x100) for _ in range(self.r.randrange(1, 5)))
            else:
                j = self.r.randrange(len(b) + 1)
                b[i:i] = b[min(i, j) : max(i, j)][:20]
        return bytes(b)


class Counter:
    """Decodes with U+FFFD and counts the invalid sequences."""

    count = 0

    @classmethod
    def handle(cls, error):
        cls.count += 1
        return "\ufffd", error.end


codecs.register_error("holdcell-count", Counter.handle)


def refuse_constant(name):
    raise ValueError(name)


def python_verdict(doc, flags):
    """(value, invalid sequences), or None when Python refuses the text."""
    Counter.count = 0
    text = doc.decode("utf-8", "holdcell-count")
    if Counter.count and not flags & BAD_UTF8:
        return None
    try:
        constant = None if flags & NAN else refuse_constant
        return json.loads(text, parse_constant=constant), Counter.count
    except ValueError:
        return None


def without_surrogates(value):
    """What lone surrogates decode to. json.loads has joined the pairs."""
    if isinstance(value, str):
        return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in value)
    if isinstance(value, list):
        return [without_surrogates(v) for v in value]
    if isinstance(value, dict):
        return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
    return value


def same(a, b):
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)  # NaN equals NaN here


KINDS = {dict: b"an object", list: b"an array", str: b"a string", int: b"an integer"}
KINDS |= {float: b"a number", type(None): b"null"}


def compare_scan(codec, doc, flags):
    expected = python_verdict(doc, flags)
    rc, answer = codec.ask("J", flags, 512, doc)
    if expected is None:
        assert rc == EPARSE, (doc, flags, answer)
        return False
    value, bad = expected
    assert rc == 0, (doc, flags, answer)
    if isinstance(value, bool):
        assert answer[0] == (b"true" if value else b"false"), doc
    else:
        assert answer[0] == KINDS[type(value)], doc
    assert int(answer[1]) == bad, doc
    if len(answer) > 5 and b"\\u0000" not in doc:
        again = json.loads(answer[5].decode())
        assert same(without_surrogates(again), without_surrogates(value)), (doc, answer[5])
        assert set(answer[5]) & set(range(0x20)) == set()
        assert len(answer[5].decode().splitlines()) <= 1
    return True


def test_generated_documents_have_the_meaning_that_python_sees(codec):
    g = Generator(SEED)
    accepted = 0
    for i in range(4000 * ROUNDS):
        accepted += compare_scan(codec, g.document(), i % 4)
    assert accepted > 1000 * ROUNDS


def test_broken_documents_are_refused_when_python_refuses_them(codec):
    g = Generator(SEED + 1)
    verdicts = [0, 0]
    for i in range(8000 * ROUNDS):
        verdicts[compare_scan(codec, g.broken(), i % 4)] += 1
    assert min(verdicts) > 500 * ROUNDS  # both happen often, or the test says little


def test_every_cut_of_a_document_gets_python_s_verdict(codec):
    g = Generator(SEED + 2)
    for i in range(60 * ROUNDS):
        doc = g.document()[:300]
        for n in range(len(doc) + 1):
            compare_scan(codec, doc[:n], i % 4)


def test_every_single_byte_in_a_string_and_outside_gets_python_s_verdict(codec):
    for c in range(256):
        for flags in range(4):
            for form in (b'"%c"', b'"x\\%c"', b'"\\u00%c0"', b"%c", b"[1%c2]", b"1%c", b'{"a"%c1}'):
                compare_scan(codec, form % c, flags)


def test_the_last_of_duplicate_keys_counts_as_in_python(codec):
    g = Generator(SEED + 3)
    keys = ["a", "b", "header", "", "é", "missing"]
    for _ in range(2000 * ROUNDS):
        doc = ("{" + ",".join(g.key() + ":" + g.value(4) for _ in range(g.r.randrange(8))) + "}").encode()
        expected = json.loads(doc)
        rc, answer = codec.ask("O", doc, *keys)
        assert rc == 0, doc
        for key, text in zip(keys, answer):
            if key in expected:
                assert same(json.loads(text), expected[key]), (doc, key)
                assert text == text.strip() and text in doc
            else:
                assert text == b"", (doc, key)


# --- signatures ------------------------------------------------------------------


def session_of(key, scheme="hmac-sha256"):
    return Session(key=key, signature_scheme=scheme)


def random_parts(g):
    """Header, parent_header, metadata, content as a kernel may write them."""
    header = {"msg_id": "id-%d" % g.r.randrange(10**9), "msg_type": "stream", "session": "s"}
    header |= {"username": "ü", "date": DATE, "version": "5.4", "subshell_id": None}
    ascii_only = g.r.random() < 0.5
    objects = []
    for _ in range(3):
        value = {"v": json.loads(g.value(3))} if g.r.random() < 0.8 else {}
        try:
            objects.append(json.dumps(value, ensure_ascii=ascii_only).encode())
        except UnicodeEncodeError:
            objects.append(json.dumps(value).encode())
    return [json.dumps(header, ensure_ascii=ascii_only).encode(), *objects]


def random_buffers(g):
    return [g.r.randbytes(g.r.choice([0, 1, 7, 2000])) for _ in range(g.r.choice([0, 0, 1, 3, 20]))]


@pytest.mark.parametrize(
    "scheme", ["sha256", "sha512", "md5", "sha1", "sha3_256", "blake2b", "blake2s", "sha224"]
)
def test_signatures_are_those_of_jupyter_client(codec, scheme):
    g = Generator(SEED + 4)
    for size in (1, 36, 64, 65, 128, 129, 200):
        key = g.r.randbytes(size)
        session = session_of(key, "hmac-" + scheme)
        parts = random_parts(g)
        rc, (hexdigest,) = codec.ask("S", "hmac-" + scheme, key, *parts)
        assert hexdigest == session.sign(parts) and rc == len(hexdigest)


@pytest.mark.filterwarnings("ignore:Message serialization failed")  # NaN
def test_a_message_of_jupyter_client_is_received(codec):
    g = Generator(SEED + 5)
    session = session_of(b"some-key")
    for i in range(200 * ROUNDS):
        content = json.loads(g.value(3))
        msg = session.msg("execute_request", {"v": without_surrogates(content)})
        routing = [b"topic"] * (i % 4)
        buffers = random_buffers(g)
        frames = session.serialize(msg, ident=routing or None) + buffers
        rc, answer = codec.ask("R", "hmac-sha256", b"some-key", *frames)
        assert rc == 0, answer
        assert int(answer[0]) == len(routing)
        assert answer[1:] == frames[len(routing) + 2 :]


def test_what_we_sign_jupyter_client_accepts(codec):
    g = Generator(SEED + 6)
    session = session_of(b"some-key")
    for _ in range(200 * ROUNDS):
        fields = ["id%d" % g.r.randrange(10**9), "status", 'se"ss\\ion', "näme\x00\n", DATE]
        rc, (header,) = codec.ask("H", *fields)
        assert rc == 0
        parts = [header, b"{}", b"{}", b'{"execution_state":"dead"}']
        _, (signature,) = codec.ask("S", "hmac-sha256", b"some-key", *parts)
        message = session.deserialize([signature, *parts])
        assert message["content"] == {"execution_state": "dead"}
        assert [message["msg_id"], message["msg_type"]] == fields[:2]
        assert [message["header"]["session"], message["header"]["username"]] == fields[2:4]
        assert message["header"]["version"] == "5.4"


def test_verdicts_on_signatures_are_those_of_jupyter_client(codec):
    g = Generator(SEED + 7)
    for i in range(300 * ROUNDS):
        key = g.r.choice([b"", b"some-key"])
        session = session_of(key)
        parts = random_parts(g)
        signature = session_of(g.r.choice([b"some-key", b"other"])).sign(parts)
        signature = g.r.choice([signature, signature, b"", signature[:-1], signature.upper()])
        if i % 5 == 0:
            parts[g.r.randrange(4)] = b'{"another": 1}'
        try:
            session.deserialize([signature, *parts])
            ok = True
        except (ValueError, KeyError) as e:  # KeyError: a header without msg_id
            ok = isinstance(e, KeyError)
        rc, answer = codec.ask("R", "hmac-sha256", key, DELIM, signature, *parts)
        assert rc == (0 if ok else EAUTH), answer


# --- WebSocket -------------------------------------------------------------------


def test_v1_payloads_are_those_of_jupyter_server(codec):
    g = Generator(SEED + 8)
    for i in range(500 * ROUNDS):
        parts, buffers = random_parts(g), random_buffers(g)
        rc, (binary, payload) = codec.ask("E", 1, CHANNELS[i % 4], DATE, *parts, *buffers)
        assert binary == b"1"
        assert payload == serialize_msg_to_ws_v1(parts + buffers, CHANNELS[i % 4])
        rc, answer = codec.ask("D", 1, 0, payload)
        assert rc == 0, answer
        channel, fields = deserialize_msg_from_ws_v1(payload)
        assert answer == [channel.encode(), *fields]


def test_legacy_payloads_mean_the_same_to_jupyter_server(codec):
    g = Generator(SEED + 9)
    for i in range(500 * ROUNDS):
        parts, buffers = random_parts(g), random_buffers(g)
        names = ["header", "parent_header", "metadata", "content"]
        expected = {n: json.loads(p) for n, p in zip(names, parts)}
        expected |= {"channel": CHANNELS[i % 4], "msg_type": "stream"}
        expected["msg_id"] = expected["header"]["msg_id"]
        rc, (binary, payload) = codec.ask("E", 0, CHANNELS[i % 4], DATE, *parts, *buffers)
        assert rc == 0 and binary == (b"1" if buffers else b"0")
        if buffers:
            message = deserialize_binary_message(payload)
            message["header"]["date"] = expected["header"]["date"]  # a datetime by now
        else:
            message = json.loads(payload)
        assert message.pop("buffers") == buffers
        assert same(message, expected)
        rc, answer = codec.ask("D", 0, 1 if not buffers else 0, payload)
        assert rc == 0, answer
        assert answer == [CHANNELS[i % 4].encode(), *parts, *buffers]


def test_legacy_payloads_of_jupyter_server_decode(codec):
    g = Generator(SEED + 10)
    for i in range(500 * ROUNDS):
        parts, buffers = random_parts(g), random_buffers(g)
        names = ["header", "parent_header", "metadata", "content"]
        message = {n: json.loads(p) for n, p in zip(names, parts)}
        message |= {"channel": CHANNELS[i % 4], "buffers": buffers}
        if buffers:
            payload = serialize_binary_message(message)
        else:
            payload = json.dumps(message).encode()
        for framing, text in ((0, int(not buffers)), (0, 1), (1, 1)):  # T6, T48
            rc, answer = codec.ask("D", framing, text, payload)
            assert rc == 0, answer
            assert answer[0].decode() == CHANNELS[i % 4]
            for name, part in zip(names, answer[1:5]):
                assert same(json.loads(part), message[name])
            assert answer[5:] == buffers


def test_a_v1_payload_that_we_accept_means_the_same_to_jupyter_server(codec):
    """Random damage: we may refuse more, but never read something else."""
    g = Generator(SEED + 11)
    accepted = 0
    for i in range(2000 * ROUNDS):
        parts, buffers = random_parts(g), random_buffers(g)[:3]
        b = bytearray(serialize_msg_to_ws_v1(parts + buffers, CHANNELS[i % 4]))
        for _ in range(g.r.randrange(3)):
            at = g.r.randrange(min(len(b), 120))
            b[at] = g.r.choice([0, 1, 255, b[at] ^ 1, b[at] + 1 & 255, b[at] - 1 & 255])
        rc, answer = codec.ask("D", 1, 0, bytes(b))
        if rc != 0:
            continue
        accepted += 1
        channel, fields = deserialize_msg_from_ws_v1(bytes(b))
        assert answer[0] == channel.encode()
        assert answer[5:] == fields[4:]
        for ours, theirs in zip(answer[1:5], fields):
            assert ours == theirs or (ours == b"{}" and theirs.strip() in (b"", b"null"))
    assert accepted > 400 * ROUNDS


def test_a_legacy_payload_that_we_accept_means_the_same_to_jupyter_server(codec):
    g = Generator(SEED + 12)
    accepted = 0
    names = ["header", "parent_header", "metadata", "content"]
    for i in range(2000 * ROUNDS):
        message = {n: json.loads(p) for n, p in zip(names, random_parts(g))}
        message |= {"channel": CHANNELS[i % 4], "buffers": random_buffers(g)[:3] or [b"x"]}
        b = bytearray(serialize_binary_message(message))
        for _ in range(g.r.randrange(3)):
            at = g.r.randrange(min(len(b), 40))
            b[at] = g.r.choice([0, 1, 255, b[at] ^ 1, b[at] + 1 & 255, b[at] - 1 & 255])
        rc, answer = codec.ask("D", 0, 0, bytes(b))
        if rc != 0:
            continue
        # What we default, the reference needs.
        (n, start) = struct.unpack("!II", b[:8])
        end = struct.unpack("!I", b[8:12])[0] if n > 1 else len(b)
        try:
            doc = json.loads(b[start:end].decode())
        except UnicodeDecodeError:
            continue  # passed to the kernel as it is; jupyter_client repairs it there
        if not all(isinstance(doc.get(k), dict) for k in names):
            continue
        accepted += 1
        theirs = deserialize_binary_message(bytes(b))
        for name, part in zip(names[2:], answer[3:5]):
            assert same(json.loads(part), theirs[name])
        assert same(json.loads(answer[1]), doc["header"])
        assert answer[5:] == theirs["buffers"]
    assert accepted > 400 * ROUNDS


def test_raw_invalid_utf8_of_a_kernel_is_repaired_as_python_would(codec):
    g = Generator(SEED + 13)
    for _ in range(300 * ROUNDS):
        parts = random_parts(g)
        dirt = g.r.randbytes(g.r.randrange(1, 12)).translate(None, b'"\\' + bytes(range(32)))
        parts[3] = b'{"text":"caf' + dirt + b'"}'
        repaired = parts[:3] + [parts[3].decode("utf-8", "replace").encode()]
        _, (_, payload) = codec.ask("E", 1, "iopub", DATE, *parts, b"\xff\xfe")
        assert payload == serialize_msg_to_ws_v1([*repaired, b"\xff\xfe"], "iopub")
        _, (_, payload) = codec.ask("E", 0, "iopub", DATE, *parts)
        assert json.loads(payload)["content"] == json.loads(repaired[3])
        _, answer = codec.ask("R", "hmac-sha256", b"", DELIM, b"", *parts)
        assert answer[1:] == parts  # received as it is


def test_headers_of_old_kernels_are_completed_for_legacy_clients(codec):
    g = Generator(SEED + 14)
    defaults = {"date": DATE, "version": "5.0", "username": "kernel"}
    for i in range(27):
        header = {"msg_id": "x", "msg_type": "status", "session": "s"}
        for n, key in enumerate(defaults):
            state = i // 3**n % 3
            if state:
                header[key] = None if state == 1 else "given"
        parts = [json.dumps(header, indent=g.r.choice([None, 2])).encode(), b"{}", b"{}", b"{}"]
        _, (_, payload) = codec.ask("E", 0, "iopub", DATE, *parts)
        expected = {k: v for k, v in header.items() if v is not None}
        assert json.loads(payload)["header"] == defaults | expected
