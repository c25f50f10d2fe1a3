"""The Python runtime inside a real sandbox: what its walls must leave alone."""

import base64
import itertools

import pytest

PNG = b"\x89PNG\r\n\x1a\n"


def reply_to(chan, msg_id, kind):
    """The reply on its channel, and the request's idle."""
    reply, idle = None, False
    while not (reply and idle):
        m = chan.recv()
        if (m.get("parent_header") or {}).get("msg_id") != msg_id:
            continue
        if m["header"]["msg_type"] == kind:
            reply = m["content"]
        elif m["header"]["msg_type"] == "status" and m["content"]["execution_state"] == "idle":
            idle = True
    return reply


def test_the_first_plot_is_a_png_and_nothing_else_is_said(chan):
    run = chan.run("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]); plt.title('Größe in °C');")
    assert run.status == "ok"
    assert run.stream("stderr") == "" and run.text == ""
    picture, = run.of("display_data")
    assert base64.b64decode(picture["content"]["data"]["image/png"]).startswith(PNG)
    # the list of fonts is the one that came with the runtime
    inside = chan.run("import os, sys, matplotlib\n"
                      "print(sorted(os.listdir(matplotlib.get_cachedir())) == "
                      "sorted(os.listdir(sys.prefix + '/share/matplotlib')))")
    assert inside.text == "True\n"


def test_the_home_has_outputs_alone_at_first_and_is_the_working_directory(chan):
    assert chan.run("import os; print(os.listdir(os.path.expanduser('~')), os.getcwd() == os.path.expanduser('~'))").text \
        == "['outputs'] True\n"


def test_the_runtime_cannot_be_written(chan):
    run = chan.run("import sys, os\n"
                   "for p in (sys.prefix, sys.prefix + '/bin', os.__file__, sys.prefix + '/share/jupyter'):\n"
                   "    print(os.access(p, os.W_OK), end=' ')\n"
                   "open(sys.prefix + '/new', 'w')")
    assert run.text == "False False False False " and run.ename in ("OSError", "PermissionError")


def test_shell_commands_have_a_terminal_and_print_into_the_cell(chan):
    assert "hi there" in chan.run("!echo hi there").text
    assert chan.run("%%bash\necho from bash; python3 -c 'import numpy; print(numpy.array([1, 2]).sum())'").text == \
        "from bash\n3\n"


@pytest.mark.full
def test_threads_and_processes_of_libraries_work(chan):
    run = chan.run("""
import multiprocessing as mp, concurrent.futures as cf, math
with mp.get_context('fork').Pool(2) as pool: print(pool.map(math.factorial, [3, 4]))
with cf.ThreadPoolExecutor(2) as pool: print(list(pool.map(math.factorial, [5])))
from joblib import Parallel, delayed
print(Parallel(n_jobs=2)(delayed(math.sqrt)(i) for i in (4, 9)))
lock, queue, value = mp.Lock(), mp.Queue(), mp.Value('i', 1)
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=1000); block.close(); block.unlink()
print('shared')
""")
    assert run.text == "[6, 24]\n[120]\n[2.0, 3.0]\nshared\n", run.messages


def test_programs_are_started_with_spawn_too(chan):
    assert chan.run("import multiprocessing as mp, os\n"
                    "with mp.get_context('spawn').Pool(1) as pool: print(pool.map(abs, [-3]))").text == "[3]\n"


def test_a_server_on_loopback_is_reached_by_the_session_itself(chan):
    assert chan.run("""
import http.server, threading, urllib.request
server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f'http://127.0.0.1:{server.server_port}/').status)
server.shutdown()
""").text.strip().endswith("200")


@pytest.mark.full
def test_big_libraries_compute(chan):
    run = chan.run("""
import numpy as np, pandas as pd, scipy.linalg, sklearn.linear_model, statsmodels.api as sm, pyarrow as pa, sqlalchemy as sa
a = np.random.default_rng(0).normal(size=(300, 300))
print(np.allclose(a @ scipy.linalg.inv(a), np.eye(300), atol=1e-6))
print(sklearn.linear_model.LinearRegression().fit([[1], [2]], [2, 4]).coef_.round(6))
print(pa.table({'x': [1, 2]}).to_pandas().x.sum())
frame = pd.DataFrame({'x': range(5)}); frame.to_parquet('x.parquet'); frame.to_excel('x.xlsx')
print(len(pd.read_parquet('x.parquet')), len(pd.read_excel('x.xlsx')))
with sa.create_engine('sqlite:///x.db').begin() as c: frame.to_sql('t', c); print(c.execute(sa.text('select sum(x) from t')).scalar())
""", timeout=120)
    assert run.text == "True\n[2.]\n3\n5 5\n10\n", run.messages


def test_the_debugger_stops_at_a_breakpoint(chan):
    sequence = itertools.count(1)

    def debug(command, **arguments):
        return reply_to(chan, chan.send("debug_request", {"type": "request", "seq": next(sequence), "command": command,
                                                          "arguments": arguments}, "control"), "debug_reply")

    assert debug("initialize", clientID="test", adapterID="", pathFormat="path", linesStartAt1=True,
                 columnsStartAt1=True)["success"]
    assert debug("attach")["success"]
    code = "a = 1\nb = a + 1\nprint('b is', b)"
    path = debug("dumpCell", code=code)["body"]["sourcePath"]
    assert debug("setBreakpoints", source={"path": path}, breakpoints=[{"line": 2}], sourceModified=False)["success"]
    assert debug("configurationDone")["success"]
    cell = chan.start(code)
    stopped = chan.until(lambda m: m["header"]["msg_type"] == "debug_event" and m["content"].get("event") == "stopped")
    assert debug("continue", threadId=stopped["content"]["body"]["threadId"])["success"]
    if not any(m["header"]["msg_type"] == "execute_reply" for m in chan.seen):
        chan.until(lambda m: m["header"]["msg_type"] == "execute_reply")
    text = "".join(m["content"]["text"] for m in chan.seen      # a slow kernel sends it in pieces
                   if m["header"]["msg_type"] == "stream" and m["parent_header"].get("msg_id") == cell)
    assert "b is 2\n" in text
    assert chan.run("b").result == "2"


def test_the_usage_of_the_kernel_can_be_asked(chan):
    usage = reply_to(chan, chan.send("usage_request", {}, "control"), "usage_reply")
    assert usage["kernel_memory"] > 1 << 20 and usage["pid"] > 1


def test_a_subshell_can_be_made(chan):
    made = reply_to(chan, chan.send("create_subshell_request", {}, "control"), "create_subshell_reply")
    assert made["status"] == "ok" and made["subshell_id"]


@pytest.mark.parametrize("code", ["%connect_info", "import ipykernel; print(ipykernel.get_connection_info())"])
def test_the_connection_is_not_told(chan, code):
    run = chan.run(code)
    assert run.status == "ok"
    assert "_port" not in str(run.messages[1:]) and "/holdcell" not in run.text


@pytest.mark.full
def test_a_full_home_and_tmp_do_not_stop_the_next_kernel(server_with):
    from channels import Channels
    server = server_with("--disk-mb", "16", "--tmp-mb", "16")
    kid = server.start_kernel("python3")
    with Channels(server, kid) as chan:
        run = chan.run("""
import os
for d in (os.path.expanduser('~'), '/tmp', '/dev/shm', '/var/tmp'):
    try:
        with open(d + '/fill', 'wb', buffering=0) as f:
            while True: f.write(b'x' * 65536)
    except OSError as e: print(d, e.errno)
""", timeout=120)
        assert run.status == "ok", run.messages
        assert server.request("POST", f"/api/kernels/{kid}/restart", timeout=60).status == 200
    with Channels(server, kid) as chan:
        assert chan.run("print('up'); import pandas; 1 + 1", timeout=120).text == "up\n"
        run = chan.run("import matplotlib.pyplot as plt; plt.plot([1, 2]);", timeout=120)
        assert run.of("display_data")
