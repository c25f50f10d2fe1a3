"""Our frame decoder against the one of websockets, on vectors, generated and mutated streams."""
import collections
import logging
import random
import struct

import pytest
from websockets.frames import Close, Opcode
from websockets.protocol import SERVER, Protocol

from conftest import ROUNDS, SEED, mutate, vectors

ROWS = vectors("ws_frames.tsv")
MESSAGE_MAX = 1 << 20  # of the driver
logging.getLogger("websockets").setLevel(logging.CRITICAL)

# What we refuse and websockets takes (or refuses by another code), by our error text.
STRICTER = {
    "a length that is not in its shortest form": "RFC 6455 5.2 wants it, websockets does not look",
    "a control frame of more than 125 bytes": "the wide form of a length, which may be small: as above; or earlier",
    "a length of more than 63 bits": "RFC 6455 5.2 forbids it (1002), websockets calls it too big (1009)",
}
# What we refuse when two bytes of the header are there, websockets when the whole frame is (or as too big).
EARLIER = {
    "reserved bits without an extension", "unknown opcode", "a client frame without a mask",
    "a fragmented control frame", "a continuation of nothing", "a new message within a fragmented one",
}
# What we take and websockets refuses, by its text.
LAXER = {
    "incomplete fragmented message": "a close between fragments ends the connection anyway (RFC 6455 5.4, 5.5.1)",
}


def frame(opcode, payload, fin=True, mask=b"\x11\x22\x33\x44", rsv=0, masked=True):
    n = len(payload)
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    bit = 0x80 if masked else 0
    if n < 126:
        head += bytes([bit | n])
    elif n < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", n)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", n)
    if masked:
        head += mask
        payload = bytes(b ^ mask[i % 4] for i, b in enumerate(payload))
    return head + payload


def theirs(stream, piece):
    protocol = Protocol(SERVER, max_size=MESSAGE_MAX)
    for at in range(0, len(stream), piece or len(stream) or 1):
        protocol.receive_data(stream[at:at + (piece or len(stream))])
    messages, parts, opcode = [], b"", None
    for event in protocol.events_received():
        if event.opcode in (Opcode.PING, Opcode.PONG, Opcode.CLOSE):
            messages.append((int(event.opcode), bytes(event.data)))
            continue
        opcode = event.opcode if event.opcode is not Opcode.CONT else opcode
        parts += bytes(event.data)
        if event.fin:
            messages.append((int(opcode), parts))
            parts = b""
    failed = protocol.close_sent.code if protocol.parser_exc is not None else 0
    return messages, failed, str(protocol.parser_exc or "")


def compare(stream, piece, verdict):
    we = [(opcode, bytes.fromhex(payload)) for opcode, payload in verdict["messages"]]
    they, failed, why = theirs(stream, piece)
    code = verdict["failed"]
    if we and we[-1][0] == 8 and not verdict["close_valid"]:
        code = verdict["answer"]  # websockets gives no event for a malformed close frame
        we.pop()
        if failed in (1002, 1007) and we == they:
            return "both fail"  # of a bad code and a bad reason each names another one first
    if why in LAXER:
        assert we[:len(they)] == they
        return "laxer"
    text = verdict["text"]
    if code and (code != failed or text in STRICTER):
        assert text in STRICTER or failed in (0, 1009) and text in EARLIER, (code, failed, why)
        assert they[:len(we)] == we
        return text
    assert (we, code) == (they, failed)
    return "both fail" if code else "both take"


def run(driver, streams):
    labels = collections.Counter()
    for (stream, piece), verdict in zip(streams, driver(b"W", streams)):
        try:
            labels[compare(stream, piece, verdict)] += 1
        except AssertionError as e:
            pytest.fail(f"{e}\nstream {stream!r}\npiece {piece}\nours {verdict}\ntheirs {theirs(stream, piece)}")
    return labels


@pytest.mark.parametrize("row", ROWS, ids=[name for _, name, _ in ROWS])
def test_each_row_has_its_verdict_and_websockets_differs_only_where_known(driver, row):
    wanted, _, stream = row
    [verdict] = driver(b"W", [(stream, 0)])
    if wanted.startswith("ok"):
        assert (verdict["failed"], len(verdict["messages"])) == (0, int(wanted.split()[1]))
    else:
        assert verdict["failed"] == int(wanted)
    run(driver, [(stream, 0)])


def some_payload(rng):
    kind = rng.randrange(5)
    if kind == 0:
        return b""
    if kind == 1:
        return rng.randbytes(rng.randrange(1, 140))
    if kind == 2:
        return "naïve €😀"[:rng.randrange(8)].encode()
    if kind == 3:
        return rng.randbytes(rng.choice((124, 125, 126, 127, 128, 1000)))
    return struct.pack(">H", rng.choice((999, 1000, 1001, 1005, 1006, 1007, 1011, 1014, 1015, 2999, 3000, 4999, 5000))
                       ) + rng.choice((b"", b"bye", b"\xff", "é".encode()))


def some_stream(rng):
    """Mostly right frames: fragmented messages with control frames among them."""
    out, open_message = b"", False
    for _ in range(rng.randrange(1, 7)):
        payload = some_payload(rng)
        if rng.random() < 0.25:
            opcode, fin = rng.choice((8, 9, 9, 10)), True
            payload = payload if rng.random() < 0.1 else payload[:125]
        else:
            fin = rng.random() < 0.6
            opcode = 0 if open_message else rng.choice((1, 2))
            open_message = not fin
        if rng.random() < 0.03:
            opcode = rng.randrange(16)
        out += frame(opcode, payload, fin if rng.random() > 0.02 else not fin, rng.randbytes(4),
                     rng.choice((1, 2, 4)) if rng.random() < 0.02 else 0, rng.random() > 0.02)
    return out


def test_generated_and_mutated_streams(driver):
    rng = random.Random(SEED)
    seeds = [s for _, _, s in ROWS if len(s) < 1000]
    tokens = [b"\0", b"\xff", b"\x80", b"\x7f", b"\xfe", b"\x81", b"\x88", b"\x89", b"\x00\x00\x00\x00", b"\x01\x80"]
    streams = []
    for _ in range(20000 * ROUNDS):
        stream = some_stream(rng)
        if rng.random() < 0.4:
            stream = mutate(rng, stream, seeds, tokens)
        streams.append((stream, rng.choice((0, 0, 1, 3, 50))))
    labels = run(driver, streams)
    print(labels)
    assert labels["both take"] > 1000 * ROUNDS and labels["both fail"] > 1000 * ROUNDS


def test_close_payloads_are_judged_alike(driver):
    streams = [(frame(8, struct.pack(">H", code) + reason), 0) for code in range(0, 65536, 1 if ROUNDS > 1 else 7)
               for reason in (b"", b"\xc3\xa9", b"\xc3")]
    for (stream, _), verdict in zip(streams, driver(b"W", streams)):
        payload = bytes.fromhex(verdict["messages"][-1][1])
        try:
            Close.parse(payload)
            valid = True
        except Exception:
            valid = False
        assert verdict["close_valid"] == valid, payload
