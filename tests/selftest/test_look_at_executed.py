"""What looks at executed notebooks sees each thing that one can lack."""

import base64
import json
import pathlib
import struct
import subprocess
import sys
import zlib

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS))
import look_at_executed  # noqa: E402

FRAME = ('<div><table border="1" class="dataframe"><tr><th>0</th><td>1.5</td><td>2.5</td></tr></table></div>')


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width=80, height=60, pixels=None, ihdr=None):
    if pixels is None:
        pixels = b"".join(b"\0" + bytes((x * y) % 256 for x in range(width)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", ihdr or struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b""))


def picture(data):
    return {"output_type": "display_data", "metadata": {}, "data": {"image/png": base64.b64encode(data).decode()}}


def cell(count, *outputs, tags=()):
    return {"cell_type": "code", "source": "x", "metadata": {"tags": list(tags)}, "execution_count": count,
            "outputs": list(outputs)}


def error():
    return {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []}


def good():
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        {"cell_type": "markdown", "source": "# text", "metadata": {}},
        cell(2, {"output_type": "stream", "name": "stdout", "text": "12 rows\n"}),
        cell(3, {"output_type": "execute_result", "execution_count": 3, "metadata": {},
                 "data": {"text/plain": "x", "text/html": FRAME}}),
        cell(4, picture(png())),
        cell(5, picture(png(120, 90)), error(), tags=["raises-exception"]),
    ]}


def without_pixels(notebook, data):
    notebook["cells"][3]["outputs"] = [picture(data)]


def change(what):
    """A notebook that lacks one thing."""
    notebook = good()
    cells = notebook["cells"]
    cut = png()
    {
        "stream": lambda: cells[1].update(outputs=[]),
        "empty stream": lambda: cells[1]["outputs"][0].update(text=" \n"),
        "html": lambda: cells[2]["outputs"][0]["data"].pop("text/html"),
        "other html": lambda: cells[2]["outputs"][0]["data"].update({"text/html": "<table><td>1</td></table>"}),
        "empty frame": lambda: cells[2]["outputs"][0]["data"].update({"text/html": '<table class="dataframe"></table>'}),
        "one picture": lambda: cells[3].update(outputs=[]),
        "text as picture": lambda: without_pixels(notebook, b"not a picture at all"),
        "picture cut": lambda: without_pixels(notebook, cut[:len(cut) // 2]),
        "picture without its end": lambda: without_pixels(notebook, cut[:-12]),
        "a bit turned": lambda: without_pixels(notebook, cut[:60] + bytes([cut[60] ^ 1]) + cut[61:]),
        "a small picture": lambda: without_pixels(notebook, png(8, 8)),
        "a blank picture": lambda: without_pixels(notebook, png(pixels=(b"\0" + b"\xff" * 80) * 60)),
        "too few rows": lambda: without_pixels(notebook, png(pixels=b"".join(b"\0" + bytes([y] * 80) for y in range(59)))),
        "an error": lambda: cells[3]["outputs"].append(error()),
        "no count": lambda: cells[3].update(execution_count=None),
        "a count twice": lambda: cells[3].update(execution_count=3),
        "a count too many": lambda: [cells[3].update(execution_count=6), cells[4].update(execution_count=7)],
        "counts the other way": lambda: [cells[3].update(execution_count=5), cells[4].update(execution_count=4)],
    }[what]()
    return notebook


SAID = {
    "stream": "no stream",
    "empty stream": "no stream",
    "html": "no DataFrame",
    "other html": "no DataFrame",
    "empty frame": "no DataFrame",
    "one picture": "1 pictures",
    "text as picture": "no PNG signature",
    "picture cut": "ends within",
    "picture without its end": "does not end with IEND",
    "a bit turned": "check sum",
    "a small picture": "8 x 8 pixels",
    "a blank picture": "shows nothing",
    "too few rows": "bytes of pixels",
    "an error": "code cell 3 failed: ValueError",
    "no count": "code cell 3 has no execution count",
    "a count twice": "code cell 3 has execution count 3 after 3",
    "a count too many": "code cell 3 has execution count 6 after 3",
    "counts the other way": "code cell 4 has execution count 4 after 5",
}


def test_a_notebook_that_holds_everything_passes():
    assert look_at_executed.faults(good()) == []


@pytest.mark.parametrize("what", SAID)
def test_a_notebook_that_lacks_something_is_told_so(what):
    found = look_at_executed.faults(change(what))
    assert any(SAID[what] in fault for fault in found), found


def test_the_program_says_it_by_its_status(tmp_path):
    (tmp_path / "good").write_text(json.dumps(good()))
    (tmp_path / "bad").write_text(json.dumps(change("stream")))
    (tmp_path / "none").write_text("no notebook")
    (tmp_path / "good.png").write_bytes(png())
    (tmp_path / "bad.png").write_bytes(png()[:-1])

    def status(*names):
        return subprocess.run([sys.executable, TOOLS / "look_at_executed.py", *(tmp_path / n for n in names)],
                              stdout=subprocess.DEVNULL).returncode
    assert [status("good"), status("good", "bad"), status("bad", "good"), status("none"), status("nowhere")] == [0, 1, 1, 2, 2]
    assert [status("good.png"), status("good.png", "bad.png")] == [0, 1]
