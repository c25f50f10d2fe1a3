"""Real kernels that are not the runtime's, each from an environment of its own below its kernelspec: what clients see of
them (docs/CLIENTS.md)."""

import json
import os
import subprocess
import tempfile
import time

import pytest

from channels import Channels
from server import DEADLINE, ROOT, Server, wait_for

pytestmark = pytest.mark.full

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FRAMINGS = [False, True]


class Kind:
    """What to write in a kernel's language, and what comes back."""

    def __init__(self, module, **words):
        self.module = module
        self.__dict__.update(words)


PYTHON = {
    "language": "python", "set": "x = 41", "get": "print(x + 1)", "unset": "NameError", "streams": "import sys\nprint('out')\n"
    "print('err', file=sys.stderr)\n6 * 7", "result": "42", "error": "1/0", "wrong": "ZeroDivisionError",
    "picture": f"import base64\nfrom IPython.display import Image, display\ndisplay(Image(data=base64.b64decode('{PNG}')))",
    "sleep": "print('in', flush=True)\nimport time\ntime.sleep(1000)", "busy": "print('in', flush=True)\nwhile True: pass",
    "end": "import os\nos._exit(3)", "ended": "exited with code 3", "part": "prin", "whole": "print",
}
BASH = {
    "language": "bash", "set": "x=41", "get": "echo $((x + 1))", "unset": None, "streams": "echo out; echo err >&2", "result": None,
    "error": "false", "wrong": "", "picture": f"echo {PNG} | base64 -d | display", "sleep": "echo in; sleep 1000",
    "busy": "echo in; while :; do :; done", "end": "kill -9 $PPID", "ended": "SIGKILL", "part": "ech", "whole": "echo",
}
KINDS = {
    "ipykernel-6": Kind("ipykernel_launcher", **PYTHON, version="5.3", stopped=("error", "KeyboardInterrupt")),
    "bash": Kind("bash_kernel", **BASH, version="5.3", stopped=("abort", None)),
    "xeus-python": Kind("xpython_launcher", **{**PYTHON, "wrong": "<class 'ZeroDivisionError'>", "unset": "<class 'NameError'>"},
                        version="5.6", stopped=("error", "KernelDied")),
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Where tests/requirements/kernels.txt is installed."""
    made = subprocess.run(
        ["bash", "-c", '. "$1/scripts/common.sh"; make_venv "$1/tests/requirements/kernels.txt"', "bash", ROOT],
        env={**os.environ, "LOGS": str(tmp_path_factory.mktemp("logs"))}, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return os.path.dirname(os.path.dirname(made.stdout.split()[-1]))


def make_spec(top, name, kind, environment):
    """Only what lies in the kernelspec's own directory is in the sandbox, so the environment is there too: as links to the
    same files where the file system is the same."""
    d = os.path.join(top, "kernels", name)
    os.makedirs(d)
    subprocess.run(["sh", "-c", 'cp -al "$1" "$2" 2>/dev/null || { rm -rf "$2"; cp -a "$1" "$2"; }', "sh",
                    environment, os.path.join(d, "env")], check=True)
    with open(os.path.join(d, "kernel.json"), "w", encoding="utf-8") as f:
        json.dump({"argv": ["{resource_dir}/env/bin/python3", "-m", kind.module, "-f", "{connection_file}"],
                   "display_name": name, "language": kind.language}, f)


@pytest.fixture(scope="module")
def server(environment):
    with tempfile.TemporaryDirectory(prefix="holdcell-specs-") as top:
        os.chmod(top, 0o755)
        for name, kind in KINDS.items():
            make_spec(top, name, kind, environment)
        s = Server("--kernel-path", top).start()
        yield s
        s.close()


def ask(c, kind, content, channel="shell"):
    msg = c.send(f"{kind}_request", content, channel)
    return c.until(lambda m: m["header"]["msg_type"] == f"{kind}_reply" and m["parent_header"].get("msg_id") == msg,
                   3 * DEADLINE)["content"]     # jedi's first completion reads much


def start_and_wait(c, code, kind="stream"):
    """Until the cell has said something."""
    msg = c.start(code, allow_stdin=kind == "input_request")
    c.until(lambda m: m["header"]["msg_type"] == kind and m["parent_header"].get("msg_id") == msg)
    return msg


@pytest.mark.parametrize("v1", FRAMINGS, ids=["legacy", "v1"])
@pytest.mark.parametrize("name", KINDS)
def test_cells_keep_state_and_show_streams_results_errors_and_pictures(server, name, v1):
    kind = KINDS[name]
    with Channels(server, server.start_kernel(name), v1=v1) as c:
        assert c.run(kind.set).status == "ok"
        assert c.run(kind.get).text == "42\n"
        for channel in ("shell", "control"):
            info = ask(c, "kernel_info", {}, channel)
            assert info["status"] == "ok" and info["protocol_version"] == kind.version
        run = c.run(kind.streams)
        # bash_kernel has one terminal for both
        assert "out\n" in run.text and "err\n" in run.text + run.stream("stderr") and run.result == kind.result
        run = c.run(kind.error)
        assert (run.status, run.ename) == ("error", kind.wrong) and len(run.of("error")) == 1
        shown, = c.run(kind.picture).of("display_data")
        assert shown["content"]["data"]["image/png"].strip() == PNG
        done = ask(c, "complete", {"code": kind.part, "cursor_pos": len(kind.part)})
        assert done["status"] == "ok" and kind.whole in done["matches"]


@pytest.mark.parametrize("name", ["ipykernel-6", "xeus-python"])
def test_a_question_is_answered_where_the_kernel_asks(server, name):
    with Channels(server, server.start_kernel(name)) as c:
        assert c.run("print('you said', input('who? '))", answer="Ada").text == "you said Ada\n"


@pytest.mark.parametrize("what", ["sleep", "busy"])
@pytest.mark.parametrize("name", KINDS)
def test_an_interrupt_ends_the_cell_or_as_with_xeus_python_the_kernel(server, name, what):
    kind, kid = KINDS[name], server.start_kernel(name)
    with Channels(server, kid) as c:
        assert c.run(kind.set).status == "ok"
        msg = start_and_wait(c, getattr(kind, what))
        assert server.interrupt(kid) == 204
        run = c.finish(msg)
        assert (run.status, run.ename) == kind.stopped
        after = c.run(kind.get)
        if name == "xeus-python":       # SIGINT ends it, everywhere
            assert "exited with code 0 when it was interrupted" in run.stream("stderr") and after.ename == kind.unset
        else:
            assert after.text == "42\n", "its variables are there"
        server.wait_state(kid, "idle")


def test_bash_is_freed_from_a_question_that_it_cannot_ask(server):
    kid = server.start_kernel("bash")
    with Channels(server, kid) as c:
        # It has no questions for clients: `read` waits for a terminal that nobody types at.
        msg = start_and_wait(c, "echo in; read -p 'who? ' who")
        assert server.interrupt(kid) == 204
        assert c.finish(msg).status == "abort"
        assert c.run("echo still here").text == "still here\n"


@pytest.mark.parametrize("name", KINDS)
def test_a_restart_forgets_the_variables_and_an_end_by_itself_is_told(server, name):
    kind, kid = KINDS[name], server.start_kernel(name)
    with Channels(server, kid) as c:
        for end in ("restart", "death"):
            assert c.run(kind.set).status == "ok" and c.run(kind.get).text == "42\n"
            if end == "restart":
                restarted = server.restart(kid)
                assert restarted.status == 200 and restarted.json()["id"] == kid
            else:
                run = c.run(kind.end)
                assert run.ename == "KernelDied" and kind.ended in run.stream("stderr")
            run = c.run(kind.get)
            assert run.ename == kind.unset if kind.unset else run.text == "1\n"


@pytest.mark.parametrize("name", KINDS)
def test_a_deleted_kernel_leaves_nothing(server, name):
    def one(code):
        kid = server.start_kernel(name)
        with Channels(server, kid) as c:
            assert c.run(KINDS[name].set).status == "ok"
            if code:
                c.start(code)
                server.wait_state(kid, "busy")
        assert server.delete_kernel(kid) == 204
    one(None)                           # what a server makes once and keeps
    time.sleep(1)
    before = server.counters()
    one(KINDS[name].busy)

    def same():
        """nothing left"""
        return server.counters() == before
    wait_for(same)
