#!/usr/bin/env python3
"""Looks at what an executed notebook holds, not at how large it is.

look_at_executed.py NOTEBOOK|PICTURE.png ...

A picture must decode and show something. Each notebook must hold streams, a DataFrame as text/html, at least two PNG pictures that decode and show something, no error
beside those of cells tagged `raises-exception`, and execution counts that rise by one from cell to cell. Needs the
standard library alone. Exit status: 0 when all are so, 1 when one is not (each fault a line), 2 when one cannot be read."""

import base64
import binascii
import json
import re
import struct
import sys
import zlib

PICTURES = 2                    # at least
SIDES = range(50, 10001)        # sane pixels of a chart's side
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}       # by colour type, PNG 11.2.2


class NotAPicture(Exception):
    pass


def chunks(data):
    """(type, body) of each chunk, whose check sum holds."""
    at = 8
    while at < len(data):
        if at + 12 > len(data):
            raise NotAPicture("ends within a chunk")
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if at + 12 + size > len(data):
            raise NotAPicture(f"ends within its chunk {kind.decode('latin-1')}")
        body = data[at + 8:at + 8 + size]
        if zlib.crc32(kind + body) != struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0]:
            raise NotAPicture(f"the check sum of its chunk {kind.decode('latin-1')} is wrong")
        yield kind, body
        at += 12 + size


def decode_png(data):
    """Width and height; NotAPicture says what is wrong with it."""
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        raise NotAPicture("no PNG signature")
    parts = list(chunks(data))
    if not parts or parts[0][0] != b"IHDR" or len(parts[0][1]) != 13:
        raise NotAPicture("it does not begin with IHDR")
    if parts[-1][0] != b"IEND":
        raise NotAPicture("it does not end with IEND")
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", parts[0][1])
    if width not in SIDES or height not in SIDES:
        raise NotAPicture(f"{width} x {height} pixels")
    if colour not in CHANNELS or interlace != 0:
        raise NotAPicture(f"colour type {colour}, interlace {interlace}")
    try:
        pixels = zlib.decompress(b"".join(body for kind, body in parts if kind == b"IDAT"))
    except zlib.error as error:
        raise NotAPicture(f"its pixels do not decompress: {error}") from None
    row = 1 + (width * CHANNELS[colour] * depth + 7) // 8
    if len(pixels) != row * height:
        raise NotAPicture(f"{len(pixels)} bytes of pixels, {row * height} expected")
    if max(pixels[at] for at in range(0, len(pixels), row)) > 4:
        raise NotAPicture("a row has a filter that does not exist")
    # One colour all over is a blank page: then every row is the first one or, filtered, nothing at all.
    rows = {pixels[at + 1:at + row] for at in range(0, len(pixels), row)}
    if len(rows - {bytes(row - 1)}) < 2:
        raise NotAPicture("it shows nothing")
    return width, height


def joined(text):
    return "".join(text) if isinstance(text, list) else text


def faults_of_counts(cells):
    last = None
    for number, cell in enumerate(cells, 1):
        if not joined(cell["source"]).strip():
            continue
        count = cell.get("execution_count")
        if not isinstance(count, int):
            yield f"code cell {number} has no execution count"
        elif last is not None and count != last + 1 or count < 1:
            yield f"code cell {number} has execution count {count} after {last}"
        last = count if isinstance(count, int) else last


def faults_of_errors(cells):
    for number, cell in enumerate(cells, 1):
        if "raises-exception" in cell.get("metadata", {}).get("tags", []):
            continue
        for output in cell["outputs"]:
            if output["output_type"] == "error":
                yield f"code cell {number} failed: {output.get('ename')}: {output.get('evalue')}"


def is_frame(page):
    """Whether HTML is a DataFrame as pandas writes it, with values in it."""
    table = re.search(r'<table [^>]*class="dataframe".*?</table>', page, re.S)
    return bool(table) and len(re.findall(r"<td[^>]*>[^<]+</td>", table.group())) > 1


def faults_of_picture(data):
    try:
        decode_png(data)
        return []
    except NotAPicture as error:
        return [str(error)]


def faults_of_pictures(found):
    good = 0
    for number, text in enumerate(found, 1):
        try:
            decode_png(base64.b64decode(joined(text), validate=False))
            good += 1
        except (NotAPicture, binascii.Error) as error:
            yield f"picture {number} is none: {error}"
    if good < PICTURES:
        yield f"{good} pictures, at least {PICTURES} are asked for"


def faults(notebook):
    """What is wrong with it, a line each; none when it is as it must be."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    data = [output["data"] for output in outputs if "data" in output]
    found = [*faults_of_counts(cells), *faults_of_errors(cells)]
    if not any(joined(o.get("text", "")).strip() for o in outputs if o["output_type"] == "stream"):
        found.append("no stream")
    if not any(is_frame(joined(d["text/html"])) for d in data if "text/html" in d):
        found.append("no DataFrame as text/html")
    found += faults_of_pictures([d["image/png"] for d in data if "image/png" in d])
    return found


def main(paths):
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    status = 0
    for path in paths:
        try:
            with open(path, "rb") as f:
                data = f.read()
            found = faults_of_picture(data) if path.endswith(".png") else faults(json.loads(data))
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"{path}: cannot be read as an executed notebook: {type(error).__name__}: {error}")
            status = 2
            continue
        for fault in found:
            print(f"{path}: {fault}")
        if not found:
            print(f"{path}: as it must be")
        status = status or (1 if found else 0)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
