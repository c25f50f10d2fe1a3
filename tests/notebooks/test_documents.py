"""The Python of README.md and docs/CLIENTS.md runs as it stands, but for the address and the token."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from server import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]

NOTEBOOK = {
    "nbformat": 4, "nbformat_minor": 5,
    # of a kernel that the server has not: docs/CLIENTS.md says who asks for it
    "metadata": {"kernelspec": {"name": "of-my-machine", "display_name": "Mine", "language": "python"}},
    "cells": [
        {"id": "a", "cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": "n = 7", "outputs": [],
         "execution_count": None},
        {"id": "b", "cell_type": "code", "metadata": {}, "source": "print(6 * n)", "outputs": [],
         "execution_count": None},
    ],
}


def blocks():
    found = []
    for name in ("README.md", "docs/CLIENTS.md"):
        text = (ROOT / name).read_text()
        for number, (word, code) in enumerate(re.findall(r"^```python( no-auth)?\n(.*?)^```$", text, re.M | re.S), 1):
            marks = () if name == "README.md" else pytest.mark.full
            found.append(pytest.param(bool(word), code, id=f"{name}-{number}", marks=marks))
    return found


@pytest.fixture(scope="module")
def servers():
    started = {False: Server().start(), True: Server(token="").start()}
    yield started
    for server in started.values():
        server.close()


def test_there_are_blocks():
    assert len(blocks()) >= 6


@pytest.mark.parametrize("no_auth, code", blocks())
def test_a_block_runs(servers, tmp_path, no_auth, code):
    server = servers[no_auth]
    assert "127.0.0.1:8888" in code and ("MY-TOKEN" in code) is not no_auth
    (tmp_path / "notebook.ipynb").write_text(json.dumps(NOTEBOOK))
    code = code.replace("127.0.0.1:8888", f"127.0.0.1:{server.port}").replace("MY-TOKEN", server.token)
    got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=180, cwd=tmp_path)
    assert got.returncode == 0, got.stderr[-3000:]
    results = [got.stdout] + [path.read_text() for path in tmp_path.glob("executed.ipynb")]
    if "print(" in code or "executed.ipynb" in code:
        assert re.search(r"\b(42|60)\\?n?\b", "".join(results)), results
    assert server.request("GET", "/api/kernels").json() == [], "a session is left"


def test_who_asks_for_the_kernel_that_a_notebook_names_is_told_that_it_is_not_there(servers):
    answer = servers[False].request("POST", "/api/kernels", {"name": NOTEBOOK["metadata"]["kernelspec"]["name"]})
    assert answer.status == 500 and answer.json()["message"] == "Kernel spec of-my-machine not found", answer


@pytest.mark.full
def test_nbconvert_alone_asks_for_python3_whatever_the_notebook_names(servers, tmp_path):
    (tmp_path / "notebook.ipynb").write_text(json.dumps(NOTEBOOK))
    command = re.search(r"^ {4}JUPYTER_GATEWAY_URL=(.*?) clients/bin/jupyter (nbconvert .*?)\n\n", (ROOT / "docs/CLIENTS.md").read_text(), re.M | re.S)
    url, arguments = command.groups()
    server = servers[True]
    got = subprocess.run([sys.executable, "-m", *arguments.replace("\\\n", " ").split()], capture_output=True, text=True, timeout=180, cwd=tmp_path,
                         env={**os.environ, "JUPYTER_GATEWAY_URL": url.replace("127.0.0.1:8888", f"127.0.0.1:{server.port}")})
    assert got.returncode == 0, got.stderr[-3000:]
    assert "42\\n" in (tmp_path / "executed.ipynb").read_text()
