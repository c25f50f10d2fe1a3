"""Our UTF-8 validation and repair against Python's codec."""
import random

from conftest import ROUNDS, SEED

EDGES = [0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
         0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff]


def some_text(rng):
    kind = rng.randrange(4)
    if kind == 0:
        return bytes(rng.choice(EDGES) for _ in range(rng.randrange(1, 12)))
    if kind == 1:
        return rng.randbytes(rng.randrange(1, 20))
    ranges = ((32, 127), (128, 0xd800), (0xe000, 0x110000))
    text = "".join(chr(rng.randrange(*rng.choice(ranges))) for _ in range(rng.randrange(30)))
    data = bytearray(b"a" * rng.randrange(20) + text.encode())
    if kind == 2 and data:
        data[rng.randrange(len(data))] = rng.choice(EDGES)
    return bytes(data)


def prefix(data):
    try:
        data.decode()
        return len(data)
    except UnicodeDecodeError as e:
        return e.start


def test_repair_is_pythons_replace(driver):
    rng = random.Random(SEED)
    texts = [some_text(rng) for _ in range(30000 * ROUNDS)]
    verdicts = driver(b"U", [(text, rng.choice((0, 1, 2, 5))) for text in texts])
    broken = 0
    for text, verdict in zip(texts, verdicts):
        good = prefix(text) == len(text)
        broken += not good
        assert verdict["valid"] == good, text
        assert verdict["changed"] == (not good), text
        assert verdict["prefix"] == prefix(text), text
        assert bytes.fromhex(verdict["text"]) == text.decode("utf-8", "replace").encode(), text
    assert 1000 < broken < len(texts) - 1000
