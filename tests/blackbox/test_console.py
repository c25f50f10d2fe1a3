"""The C console and the scripted kernel, both on czmq, talk to each other without any gateway."""

import json
import os
import subprocess

import pytest

from server import BIN, wait_for

TOOLS = os.path.join(os.path.dirname(os.path.dirname(BIN)), "tests")


@pytest.fixture
def connection_file(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"transport": "ipc", "ip": str(tmp_path / "s"), "shell_port": 1, "control_port": 2,
                                "stdin_port": 3, "iopub_port": 4, "hb_port": 5, "key": "k-1",
                                "signature_scheme": "hmac-sha256"}))
    kernel = subprocess.Popen([TOOLS + "/scripted-kernel", str(path)])
    wait_for(lambda: os.path.exists(tmp_path / "s-5"))
    yield str(path)
    kernel.kill()
    kernel.wait()


def console(path, text):
    return subprocess.run([TOOLS + "/zconsole", "attach", path], input=text, capture_output=True, text=True,
                          timeout=60)


def test_the_console_shows_streams_results_and_errors_in_order(connection_file):
    got = console(connection_file, "print hello\nresult 42\nerror Oops\n")
    assert got.returncode == 0, got.stderr
    assert got.stdout.splitlines() == ["stdout: hello\\n", "reply: ok", "result: 42", "reply: ok",
                                       "error: Oops", "reply: error"]


def test_the_console_refuses_a_message_that_nobody_signed(connection_file):
    got = console(connection_file, "unsigned\n")
    assert got.returncode == 1
    assert "FORGED" not in got.stdout and "signature" in got.stdout
