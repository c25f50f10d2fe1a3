"""Our request parser against h11's, on the table of malformed requests and mutations."""
import collections
import random

import h11
import pytest

from conftest import ROUNDS, SEED, mutate, vectors

BODY_MAX = 1 << 20  # of the driver
ROWS = vectors("http_malformed.tsv")

# What we refuse and h11 takes, by our error text. The reasons are RFC 9110 and 9112 unless said.
STRICTER = {
    "CR without LF": "h11 takes CR as part of a line",
    "a header line begins with white space": "obs-fold: h11 joins the lines",
    "the request does not begin with a method": "h11 takes LF alone before a request",
    "malformed method": "LF alone as a line end",
    "malformed version in the request line": "LF alone as a line end",
    "malformed field value": "control characters other than NUL; LF alone as a line end",
    "malformed field name": "LF alone as the empty line",
    "neither HTTP/1.1 nor HTTP/1.0": "h11 takes any digits",
    "the request target does not begin with '/'": "absolute form, authority form, '*' without OPTIONS",
    "the path has a malformed percent escape": "h11 does not look into targets",
    "the path has a backslash": "h11 does not look into targets",
    "malformed request target": "fragment, quotation mark, angle brackets",
    "the method is too long": "a limit of ours",
    "too many header fields": "a limit of ours",
    "the header fields are too large": "a limit of ours, lifted in h11 here",
    "the request line is too long": "a limit of ours, lifted in h11 here",
    "the body is too large": "a limit of ours",
    "malformed Host field": "h11 does not look into Host",
    "more than one content-length field": "h11 takes equal ones",
    "more than one content-type field": "h11 does not count",
    "more than one authorization field": "h11 does not count",
    "more than one origin field": "h11 does not count",
    "more than one host field": "h11 does not count in HTTP/1.0",
    "Content-Length is not a number": "a list of equal numbers",
    "Content-Length is beyond all limits": "numbers of up to 20 digits",
    "both Content-Length and Transfer-Encoding": "h11 lets chunked win",
    "Transfer-Encoding in HTTP/1.0": "h11 takes it",
    "an expectation other than 100-continue": "h11 does not look",
    "malformed Connection field": "h11 does not look",
    "malformed chunk size": "blanks behind the size; LF alone as a line end",
    "a chunk size of too many digits": "h11 allows 20",
    "malformed chunk extension": "control characters; LF alone as a line end",
    "too many chunk extensions": "a limit of ours",
    "malformed line end in a chunked body": "LF alone as a line end",
    "malformed trailer field": "obs-fold, control characters, LF alone as a line end",
    "a framing field among the trailers": "Host; one right Content-Length or Transfer-Encoding",
    "the trailer fields are too large": "a limit of ours",
}

TOKENS = [
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\0", b" ", b"\t", b":", b",", b";", b"=", b'"', b"%", b"%41", b"#", b"?",
    b"\\", b"\xe9", b"\x7f", b"\x01", b"0", b"1", b"5", b"ffffffffffffffff", b"-", b"+", b"0x", b"_", b"chunked",
    b"identity", b"gzip", b"close", b"keep-alive", b"upgrade", b"100-continue", b"HTTP/1.0", b"HTTP/1.1", b"HTTP/1.2",
    b"Host: a\r\n", b"Content-Length: 2\r\n", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Expect: 100-continue\r\n", b"Upgrade: websocket\r\n",
    b"0\r\n\r\n", b"2\r\n{}\r\n", b"X: y\r\n", b"GET / HTTP/1.1\r\n", b"http://a", b"OPTIONS", b"CONNECT", b"HEAD",
]


def ours(verdict):
    """The driver's JSON with bytes, in the shape of theirs()."""
    requests = [{
        "method": bytes.fromhex(r["method"]), "target": bytes.fromhex(r["target"]), "minor": r["minor"],
        "fields": [(bytes.fromhex(n).lower(), bytes.fromhex(v)) for n, v in r["fields"]],
        "body": bytes.fromhex(r["body"]), "complete": r["complete"], "keep_alive": r["keep_alive"],
        "expect_continue": r["expect_continue"], "upgrade": r["upgrade"],
    } for r in verdict["requests"]]
    end = "refused" if verdict["status"] else "partial" if verdict["partial"] else "done"
    return requests, end


def their_request(stream):
    """One request from the beginning of the stream: (request or None, rest, end, h11's text)."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    request = None
    connection.receive_data(stream)
    try:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                return request, b"", "partial", ""
            if isinstance(event, h11.Request):
                request = {
                    "method": event.method, "target": event.target, "minor": int(event.http_version.decode()[2:]),
                    "fields": list(event.headers), "body": b"", "complete": False,
                    "expect_continue": connection.they_are_waiting_for_100_continue}
            elif isinstance(event, h11.Data):
                request["body"] += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                request["complete"] = True
                rest = connection.trailing_data[0]
                connection.send(h11.Response(status_code=400, headers=[(b"Content-Length", b"0")]))
                connection.send(h11.EndOfMessage())
                request["keep_alive"] = connection.our_state is h11.DONE
                return request, rest, "done", ""
            else:
                raise AssertionError(event)
    except h11.RemoteProtocolError as e:
        return request, b"", "refused", str(e)


def theirs(stream):
    """All requests of the stream. One empty line before a request is dropped: RFC 9112 2.2 wants
    that, ours does it, h11 refuses it (or not, depending on how the stream is cut)."""
    requests, end, why = [], "done", ""
    while stream and end == "done" and all(r["keep_alive"] for r in requests):
        if stream.startswith(b"\r\n"):
            stream = stream[2:]
        if stream in (b"", b"\r"):
            return requests, "partial", ""
        request, stream, end, why = their_request(stream)
        if request:
            requests.append(request)
    return requests, end, why


def same(a, b):
    """One request of ours and of theirs, when both took it."""
    for key in ("method", "target", "minor", "fields", "body", "keep_alive"):
        left, right = a[key], b[key]
        if key == "keep_alive" and a["minor"] == 0:
            right = left  # h11 closes after every HTTP/1.0 request
        if key == "fields":  # h11 gives the coding in small letters
            left = [(n, v.lower() if n == b"transfer-encoding" else v) for n, v in left]
        assert left == right, key
    if a["expect_continue"]:
        assert b["expect_continue"]


def compare(stream, verdict):
    """Raises AssertionError on a difference that is not a known one; returns a label."""
    we, our_end = ours(verdict)
    they, their_end, why = theirs(stream)
    for i, request in enumerate(we):
        if request["complete"]:
            assert i < len(they) and they[i]["complete"], "we take what h11 refuses: " + why
            same(request, they[i])
            if request["upgrade"]:
                return "upgraded"
            if request["minor"] == 0 and request["keep_alive"]:
                return "kept alive in HTTP/1.0"
    if our_end == their_end and sum(r["complete"] for r in we) == sum(r["complete"] for r in they):
        return "both " + our_end
    # We may refuse early what h11 still waits to see whole.
    assert our_end == "refused", f"{our_end}, but {their_end}: {why}"
    assert verdict["text"] in STRICTER or their_end == "partial", verdict["text"]
    return verdict["text"]


def run(driver, streams):
    labels = collections.Counter()
    for (stream, piece), verdict in zip(streams, driver(b"H", streams)):
        try:
            labels[compare(stream, verdict)] += 1
        except AssertionError as e:
            pytest.fail(f"{e}\nstream {stream!r}\npiece {piece}\nours {verdict}\ntheirs {theirs(stream)}")
    return labels


@pytest.mark.parametrize("row", ROWS, ids=[name for _, name, _ in ROWS])
def test_each_row_has_its_verdict_and_h11_differs_only_where_known(driver, row):
    wanted, _, stream = row
    [verdict] = driver(b"H", [(stream, 0)])
    count = sum(r["complete"] for r in verdict["requests"])
    if wanted.split()[0] in ("ok", "cut"):
        end = "partial" if wanted.startswith("cut") else "done"
        assert (ours(verdict)[1], count) == (end, int(wanted.split()[1]))
    else:
        assert verdict["status"] == int(wanted)
    run(driver, [(stream, 0)])


def some_request(rng):
    """A right request: whatever differs in one of these is a difference in what was understood."""
    version = rng.choice((b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0"))
    method = rng.choice((b"GET", b"POST", b"PUT", b"DELETE", b"PATCH", b"HEAD", b"OPTIONS", b"x!#$%&'*+-.^_`|~9"))
    target = b"/" + bytes(rng.choice(b"az09/-._~@:!$&'()*+,;=") for _ in range(rng.randrange(12)))
    if rng.random() < 0.3:
        target += b"?" + bytes(rng.choice(b"ab=&%+?/[]{}|^`1\\") for _ in range(rng.randrange(12)))
    fields = [b"Host: " + rng.choice((b"a", b"a.b-c:80", b"[::1]:8888", b"127.0.0.1"))]
    for _ in range(rng.randrange(4)):
        name = bytes(rng.choice(b"xX-_.1!~") for _ in range(rng.randrange(1, 6)))
        value = bytes(rng.choice(b"abc ,;=\"\t\xe9\xff!{}") for _ in range(rng.randrange(10)))
        fields.append(name + b":" + rng.choice((b"", b" ", b"\t ")) + value)
    if rng.random() < 0.3:
        fields.append(b"connection:" + rng.choice((b"close", b"Keep-Alive", b"x, Close", b"keep-alive,x", b"upgrade")))
    body = rng.randbytes(rng.choice((0, 1, 5, 300)))
    framing = rng.randrange(3) if version == b"HTTP/1.1" else rng.randrange(2)
    if framing == 0:
        body = b""
    elif framing == 1:
        fields.append(b"Content-Length: %d" % len(body))
    else:
        fields.append(b"transfer-encoding: chunked")
        body = some_chunks(rng, body)
    if rng.random() < 0.1:
        fields.append(b"Expect: 100-continue")
    rng.shuffle(fields)
    return method + b" " + target + b" " + version + b"\r\n" + b"\r\n".join(fields) + b"\r\n\r\n" + body


def some_chunks(rng, body):
    out = b""
    while body:
        n = rng.randrange(1, len(body) + 1)
        out += rng.choice((b"%x", b"%X", b"0%x", b"%x;a=b", b'%x;q="; x"')) % n + b"\r\n" + body[:n] + b"\r\n"
        body = body[n:]
    return out + rng.choice((b"0", b"000", b"0;x")) + b"\r\n" + rng.choice((b"", b"", b"T: v\r\n")) + b"\r\n"


def test_right_requests_are_understood_alike(driver):
    rng = random.Random(SEED)
    streams = [(b"".join(some_request(rng) for _ in range(rng.randrange(1, 4))), rng.choice((0, 1, 2, 3, 11)))
               for _ in range(6000 * ROUNDS)]
    labels = run(driver, streams)
    print(labels)
    assert labels["both done"] + labels["kept alive in HTTP/1.0"] + labels["upgraded"] == len(streams)


def test_mutated_requests(driver):
    rng = random.Random(SEED)
    seeds = [s for _, _, s in ROWS if len(s) < 1000]
    good = [s for v, _, s in ROWS if len(s) < 1000 and v.startswith("ok")]
    streams = []
    for _ in range(20000 * ROUNDS):
        kind = rng.random()
        seed = some_request(rng) if kind < 0.5 else rng.choice(good if kind < 0.8 else seeds)
        if rng.random() < 0.2:
            seed += rng.choice(good)
        streams.append((mutate(rng, seed, seeds, TOKENS), rng.choice((0, 0, 1, 2, 7))))
    labels = run(driver, streams)
    print(labels)
    # The corpus is worth something only if it reaches both sides.
    assert labels["both done"] > 1000 * ROUNDS and labels["both refused"] > 1000 * ROUNDS
