"""jupyter_kernel_client: its own tests with holdcell as their server, and what they leave out."""

import functools
import json
import os
import pathlib
import subprocess
import sys
import threading
import xml.etree.ElementTree as tree

import look_at_executed
import pytest
import requests
from jupyter_kernel_client import JupyterKernelClient
from server import DEADLINE, ROOT, wait_for
from tiers import full_after

# Their reason is the test, not the server; everything else must pass.
NOT_APPLICABLE = {
    "test_execution_as_context_manager": "compares the host name in the kernel with its own: a sandbox has another",
    "test_execution_no_context_manager": "the same",
    "test_multi_execution_in_event_loop": "needs pytest-asyncio; below it runs without",
}


@pytest.fixture(scope="module")
def url(server):
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def kernel(url, server):
    with JupyterKernelClient(server_url=url, token=server.token) as client:
        client.execute = functools.partial(client.execute, timeout=DEADLINE)
        yield client


DATA = '''\
import pathlib
pathlib.Path("data").mkdir()
for name, data in {files!r}.items():
    pathlib.Path("data", name).write_bytes(data)
'''


@pytest.mark.parametrize("name", full_after(1, ["births", "economy", "weather"]))
def test_an_example_runs_cell_by_cell_through_the_package_as_it_comes(url, server, name):
    """notebooks/run_notebook.py, which the other tests of the examples run, has classes of its own over it."""
    notebook = json.loads(pathlib.Path(ROOT, "notebooks", f"{name}.ipynb").read_text())
    files = {n: pathlib.Path(ROOT, "notebooks/data", n).read_bytes() for n in notebook["metadata"]["holdcell"]["data"]}
    with JupyterKernelClient(server_url=url, token=server.token) as client:
        assert client.execute(DATA.format(files=files), timeout=DEADLINE)["status"] == "ok"
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            got = client.execute("".join(cell["source"]), timeout=5 * DEADLINE)
            assert got["status"] == "ok" or "raises-exception" in cell["metadata"].get("tags", []), (cell["source"], got)
            cell["outputs"], cell["execution_count"] = got["outputs"], got["execution_count"]
    assert look_at_executed.faults(notebook) == []


@pytest.mark.full          # most of the time is the client's own: each stop() may wait ten seconds for a thread
def test_its_own_tests_pass(tmp_path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.join(ROOT, "tests", d) for d in ("clients", "blackbox"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", "-p", "upstream", "--tb=short",
         f"--junit-xml={tmp_path}/junit.xml", "--pyargs", "jupyter_kernel_client.tests"],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900)
    verdicts = {}
    for case in tree.parse(tmp_path / "junit.xml").iter("testcase"):
        verdicts[case.get("name")] = not {child.tag for child in case} & {"failure", "error", "skipped"}
    failed = {name for name, good in verdicts.items() if not good}
    assert failed <= set(NOT_APPLICABLE), done.stdout[-6000:]
    assert len(verdicts) - len(failed) >= 35, done.stdout[-3000:]


def test_outputs_of_every_kind_and_the_count(kernel):
    before = kernel.execute("0")["execution_count"]
    got = kernel.execute("import sys\nprint('out')\nprint('err', file=sys.stderr)\n"
                         "from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))\n6 * 7")
    assert got["status"] == "ok" and got["execution_count"] == 1 + before
    kinds = [(o["output_type"], o.get("name")) for o in got["outputs"]]
    assert kinds == [("stream", "stdout"), ("stream", "stderr"), ("display_data", None), ("execute_result", None)]
    assert got["outputs"][2]["data"]["text/html"] == "<b>x</b>" and got["outputs"][3]["data"]["text/plain"] == "42"


def test_an_error_comes_with_what_was_printed_before(kernel):
    got = kernel.execute("print('before')\n1 / 0")
    assert got["status"] == "error"
    assert [o["output_type"] for o in got["outputs"]] == ["stream", "error"]
    assert got["outputs"][1]["ename"] == "ZeroDivisionError"
    assert kernel.execute("1 + 1")["status"] == "ok"


def test_the_stdin_hook_answers_input(kernel):
    asked = []

    def answer(message):
        asked.append(message["content"])
        kernel._manager.client.input("Ada")

    got = kernel.execute("name = input('Who? ')\nname.upper()", allow_stdin=True, stdin_hook=answer)
    assert got["status"] == "ok" and got["outputs"][-1]["data"]["text/plain"] == "'ADA'"
    assert asked == [{"prompt": "Who? ", "password": False}]


def test_without_stdin_input_is_an_error(kernel):
    got = kernel.execute("input('Who? ')", allow_stdin=False)
    assert got["status"] == "error" and got["outputs"][0]["ename"] == "StdinNotImplementedError"


def test_updates_and_clearing_are_folded(kernel):
    got = kernel.execute("h = display('one', display_id='d')\nh.update('two')")
    assert [o["data"]["text/plain"] for o in got["outputs"]] == ["'two'"]
    got = kernel.execute("from IPython.display import clear_output\nprint('old')\nclear_output(wait=True)\nprint('new')")
    assert [o["text"] for o in got["outputs"]] == ["new\n"]


def test_interrupt_from_another_thread(kernel):
    began = threading.Event()

    def stop():
        assert began.wait(DEADLINE)
        kernel.interrupt()

    thread = threading.Thread(target=stop)
    thread.start()
    seen = []
    reply = kernel.execute_interactive("import time\nprint('go', flush=True)\ntime.sleep(600)", timeout=DEADLINE,
                                       output_hook=lambda m: (seen.append(m["msg_type"]), m["msg_type"] == "stream" and began.set()))
    thread.join()
    assert reply["content"]["status"] == "error" and reply["content"]["ename"] == "KeyboardInterrupt"
    assert kernel.execute("'alive'")["status"] == "ok"


def test_restart_forgets_and_keeps_the_id(kernel):
    kernel.execute("x = 1")
    before = kernel.id
    kernel.restart()
    assert kernel.execute("x")["status"] == "error" and kernel.id == before


@pytest.mark.full
def test_a_second_client_shares_the_kernel_and_leaves_it(kernel, url, server):
    kernel.execute("x = 41")
    with JupyterKernelClient(server_url=url, token=server.token, kernel_id=kernel.id) as other:
        assert other.execute("x + 1")["outputs"][0]["data"]["text/plain"] == "42"
        assert kernel.id in [k["id"] for k in other.list_kernels()]
    assert server.kernel(kernel.id) is not None
    assert kernel.execute("x")["outputs"][0]["data"]["text/plain"] == "41"


@pytest.mark.full
def test_stop_deletes_the_kernel_it_started(url, server):
    client = JupyterKernelClient(server_url=url, token=server.token)
    client.start()
    kid = client.id
    assert client.is_alive() and client.kernel_info["language_info"]["name"] == "python"
    client.stop()
    answer = requests.get(f"{url}/api/kernels/{kid}", headers={"Authorization": f"Bearer {server.token}"}, timeout=DEADLINE)
    assert answer.status_code == 404 and kid in answer.json()["message"]


def test_stop_by_a_message_ends_the_kernel_for_good(url, server):
    """It sends shutdown_request, and asks for the kernel until that is a 404."""
    client = JupyterKernelClient(server_url=url, token=server.token)
    client.start()
    kid = client.id
    client.execute("1")
    client._manager.client.shutdown()
    wait_for(lambda: server.kernel(kid) is None)
    client.stop(shutdown_kernel=False)


def test_a_wrong_token_is_refused(url):
    with pytest.raises(Exception, match="401|Unauthorized|403"):
        JupyterKernelClient(server_url=url, token="wrong").start()


def test_a_kernel_that_dies_ends_the_execution_and_comes_back(kernel):
    assert kernel.execute("import os\nos._exit(1)")["status"] == "error"
    assert kernel.execute("1 + 1")["status"] == "ok"
    wait_for(lambda: kernel._manager.refresh_model()["execution_state"] == "idle")
