"""runtime/holdcell_kernel: the kernel whose sockets are handed to it."""

import base64
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest
import zmq
from conftest import CELL, CHANNELS, DEADLINE, RUNTIME, connection_memfd, listeners, of_type, start_process, streams

PNG = b"\x89PNG\r\n\x1a\n"


def test_kernel_info_tells_python_and_the_debugger(kernel):
    info = kernel.info()
    assert info["language_info"]["name"] == "python"
    assert "debugger" in info["supported_features"]
    assert "kernel subshells" in info["supported_features"]


def test_variables_live_from_cell_to_cell(kernel):
    for i in range(20):
        kernel.text(f"v{i} = {i}")
    assert kernel.text("print(sum(v for k, v in globals().items() if k[0] == 'v' and k[1:].isdigit()))") == "190\n"


def test_a_result_comes_with_its_execution_count(kernel):
    reply, seen = kernel.run("6 * 7")
    result, = of_type(seen, "execute_result")
    assert result["data"]["text/plain"] == "42"
    assert result["execution_count"] == reply["execution_count"]


def test_an_error_in_a_cell_is_told_twice(kernel):
    reply, seen = kernel.run("print('before'); 1 / 0")
    assert (reply["status"], reply["ename"]) == ("error", "ZeroDivisionError")
    assert of_type(seen, "error")[0]["ename"] == "ZeroDivisionError"
    assert streams(seen) == "before\n"


def test_the_connection_data_is_nowhere_to_be_read(kernel):
    code = """
import os, glob
def read(p):
    try: return open(p, 'rb').read()
    except OSError: return b''
places = [f'/proc/self/{n}' for n in ('environ', 'cmdline')] + glob.glob('/proc/self/fd/*')
links = [os.readlink(p) for p in glob.glob('/proc/self/fd/*') if os.path.lexists(p)]
print([l for l in links if 'memfd' in l], KEY in b''.join(read(p) for p in places[:2]))
""".replace("KEY", repr(kernel.key.encode()))
    assert kernel.text(code) == "[] False\n"


def test_programs_started_by_a_cell_inherit_no_socket(kernel):
    assert kernel.text("import subprocess; print(subprocess.run('ls -l /proc/self/fd', shell=True, close_fds=False,"
                       " capture_output=True, text=True).stdout.count('socket:'))") == "0\n"


def test_connection_file_functions_do_no_harm(kernel):
    assert kernel.text("import ipykernel; print(ipykernel.get_connection_file())") == "kernel.json\n"
    info = json.loads(kernel.text("print(ipykernel.get_connection_info())"))
    assert info["key"] == ""
    reply, seen = kernel.run("%connect_info")
    assert reply["status"] == "ok" and kernel.key not in str(seen)


def test_input_asks_the_client_and_gets_its_answer(kernel):
    msg_id = kernel.request("name = input('who? '); print('hello', name)", allow_stdin=True)
    request = kernel.receive("stdin")
    assert request["content"] == {"prompt": "who? ", "password": False}
    kernel.session.send(kernel.sockets["stdin"], "input_reply", {"value": "Ada"}, parent=request)
    assert kernel.reply("shell", msg_id)["content"]["status"] == "ok"
    assert "hello Ada\n" in streams(kernel.outputs(msg_id))


def test_input_without_a_client_that_answers_fails_at_once(kernel):
    reply, _ = kernel.run("input()")
    assert reply["ename"] == "StdinNotImplementedError"


def test_the_heartbeat_echoes_while_a_cell_runs(kernel):
    msg_id = kernel.request("import time; print('go', flush=True); time.sleep(2)")
    kernel.wait_for_output(msg_id, "go")
    kernel.sockets["hb"].send(b"ping")
    assert kernel.sockets["hb"].poll(DEADLINE * 1000)
    assert kernel.sockets["hb"].recv() == b"ping"
    kernel.reply("shell", msg_id)
    kernel.outputs(msg_id)


def test_control_answers_while_a_cell_runs(kernel):
    msg_id = kernel.request("print('go', flush=True); input()", allow_stdin=True)
    kernel.wait_for_output(msg_id, "go")
    info = kernel.send("control", "kernel_info_request")
    assert kernel.reply("control", info)["content"]["status"] == "ok"
    request = kernel.receive("stdin")
    kernel.session.send(kernel.sockets["stdin"], "input_reply", {"value": ""}, parent=request)
    assert kernel.reply("shell", msg_id)["content"]["status"] == "ok"
    kernel.outputs(msg_id)


def test_the_debugger_attaches_and_stops_at_a_breakpoint(new_kernel):
    kernel = new_kernel()
    sequence = iter(range(1, 100))

    def debug(command, **arguments):
        msg_id = kernel.send("control", "debug_request", {
            "type": "request", "seq": next(sequence), "command": command, "arguments": arguments})
        return kernel.reply("control", msg_id)["content"]

    assert debug("initialize", clientID="test", adapterID="", pathFormat="path", linesStartAt1=True,
                 columnsStartAt1=True)["success"]
    assert debug("attach")["success"]
    code = "a = 1\nb = a + 1\nprint('b is', b)"
    path = debug("dumpCell", code=code)["body"]["sourcePath"]
    assert debug("setBreakpoints", source={"path": path}, breakpoints=[{"line": 2}],
                 sourceModified=False)["success"]
    assert debug("configurationDone")["success"]
    msg_id = kernel.request(code)
    while True:
        msg = kernel.receive("iopub")
        if msg["msg_type"] == "debug_event" and msg["content"].get("event") == "stopped":
            break
    thread = msg["content"]["body"]["threadId"]
    frame = debug("stackTrace", threadId=thread)["body"]["stackFrames"][0]
    assert frame["line"] == 2
    assert debug("continue", threadId=thread)["success"]
    assert kernel.reply("shell", msg_id)["content"]["status"] == "ok"
    assert "b is 2" in streams(kernel.outputs(msg_id))
    assert debug("disconnect", restart=False, terminateDebuggee=True)["success"]
    reply, seen = kernel.run("print('after')")
    assert streams(seen) == "after\n"


def test_a_plot_is_a_png_and_says_nothing_about_fonts(new_kernel):
    kernel = new_kernel()
    reply, seen = kernel.run("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3]); plt.title('Tempé °C')")
    assert reply["status"] == "ok"
    assert streams(seen, "stderr") == ""
    png, = [d["data"]["image/png"] for d in of_type(seen, "display_data")]
    assert base64.b64decode(png).startswith(PNG)
    assert kernel.text("import matplotlib.font_manager as f; print(f.get_font_names()[:0])") == "[]\n"
    assert "font" not in kernel.log().lower()
    # the list came from the runtime: nothing newer lies beside it
    assert kernel.text("import os, matplotlib; d = matplotlib.get_cachedir(); print(os.listdir(d))") == \
        str([p.name for p in (RUNTIME / "share/matplotlib").iterdir()]) + "\n"


def test_the_magics_of_matplotlib_work(kernel):
    for magic in ("%matplotlib inline", "%config InlineBackend.figure_formats = ['svg']"):
        assert kernel.run(magic)[0]["status"] == "ok"
    _, seen = kernel.run("import matplotlib.pyplot as plt; plt.plot([1, 2]);")
    assert "image/svg+xml" in of_type(seen, "display_data")[0]["data"]
    assert kernel.run("%config InlineBackend.figure_formats = ['png']")[0]["status"] == "ok"


def test_a_data_frame_is_html(kernel):
    _, seen = kernel.run("import pandas as pd; pd.DataFrame({'a': [1, 2]})")
    assert "<table" in of_type(seen, "execute_result")[0]["data"]["text/html"]


def test_shell_commands_print_into_the_cell(kernel):
    assert "hi there" in kernel.text("!echo hi there")
    assert kernel.text("import subprocess; subprocess.run('echo from a child; echo too >&2', shell=True)"
                       "; import time; time.sleep(0.5)") == "from a child\n"


def test_children_may_be_given_the_streams_of_the_cell(kernel):
    assert kernel.text("import subprocess, sys, time\n"
                       "subprocess.run(['echo', 'through sys.stdout'], stdout=sys.stdout); time.sleep(0.5)") == \
        "through sys.stdout\n"
    assert "through sys.stdout" not in kernel.log()


def test_a_forked_child_that_prints_is_heard(kernel):
    assert "from the fork" in kernel.text("""
import os, time
pid = os.fork()
if pid == 0:
    print('from the fork', flush=True)
    os._exit(0)
os.waitpid(pid, 0); time.sleep(0.5)""")


def test_a_pool_of_processes_works(kernel):
    assert kernel.text("from multiprocessing import get_context\nimport math\n"
                       "with get_context('fork').Pool(2) as p: print(p.map(math.factorial, [3, 4]))") == "[6, 24]\n"


def test_two_hundred_kilobytes_on_a_descriptor_neither_block_nor_reach_the_log(kernel):
    reply, seen = kernel.run("import os, time\n"
                             "for _ in range(50): os.write(2, b'x' * 3999 + b'\\n')\n"
                             "time.sleep(1)")
    assert reply["status"] == "ok"
    assert len(streams(seen, "stderr")) == 200_000
    assert "xxx" not in kernel.log()


def test_no_output_is_lost_on_a_subscriber_that_reads_slowly(kernel):
    slow = kernel.context.socket(zmq.SUB)
    slow.rcvhwm = 1
    slow.subscribe(b"")
    slow.subscribe(b"slow")  # XPUB tells of new subscriptions only
    slow.connect(f"ipc://{kernel.directory}/iopub")
    assert slow.poll(DEADLINE * 1000), "no iopub_welcome"
    msg_id = kernel.request("from IPython.display import display\n"
                            "for i in range(5000): display({'text/plain': f'{i:01000d}'}, raw=True)")
    assert kernel.reply("shell", msg_id)["content"]["status"] == "ok"
    kernel.outputs(msg_id)
    seen = []
    while len(seen) < 5000:
        assert slow.poll(DEADLINE * 1000), f"only {len(seen)} arrived"
        _, parts = kernel.session.feed_identities(slow.recv_multipart())
        msg = json.loads(parts[4])
        if "data" in msg:
            seen.append(int(msg["data"]["text/plain"]))
    slow.close()
    assert seen == list(range(5000))


def test_characters_split_between_two_writes_arrive_whole(kernel):
    text = kernel.text("import os, time\nfor b in 'Zürich €'.encode(): os.write(1, bytes([b])); time.sleep(0.01)\n"
                       "time.sleep(0.5)")
    assert text == "Zürich €"


def test_history_is_kept_in_memory(kernel):
    kernel.text("a_line_to_remember = 1")
    msg_id = kernel.send("shell", "history_request", {"hist_access_type": "tail", "n": 5, "output": False, "raw": True})
    lines = [entry[2] for entry in kernel.reply("shell", msg_id)["content"]["history"]]
    kernel.outputs(msg_id)
    assert "a_line_to_remember = 1" in lines


def test_store_magic_works(kernel):
    kernel.text("stored = [1, 2]")
    assert kernel.run("%store stored")[0]["status"] == "ok"
    assert kernel.text("del stored\n%store -r stored\nprint(stored)") == "[1, 2]\n"


def test_argv_holds_no_option_of_ours(kernel):
    assert kernel.text("import sys; print(sys.argv[1:])") == "[]\n"


def test_modules_of_the_session_import_from_its_home(kernel):
    (kernel.home / "own_module.py").write_text("answer = 42\n")
    assert kernel.text("import own_module; print(own_module.answer)") == "42\n"


def test_a_file_in_the_home_cannot_stop_the_start(new_kernel):
    def fill(client):
        for name in ("random", "zmq", "pkgutil", "holdcell_kernel", "IPython", "signal"):
            (client.home / f"{name}.py").write_text("raise SystemExit('shadowed')\n")

    assert new_kernel(fill=fill).text("print(1 + 1)") == "2\n"


def test_the_home_stays_empty(new_kernel):
    kernel = new_kernel()
    kernel.run("import matplotlib.pyplot as plt; plt.plot([1, 2])")
    kernel.text("1")
    assert kernel.text("import os; print(os.listdir(os.path.expanduser('~')), os.getcwd() == os.path.expanduser('~'))") \
        == "[] True\n"
    kernel.shutdown()
    assert list(kernel.home.iterdir()) == []


def test_start_up_files_in_the_home_are_run(new_kernel):
    def fill(client):
        startup = client.home / ".ipython/profile_default/startup"
        startup.mkdir(parents=True)
        (startup / "00.py").write_text("from_startup = 7\n")

    assert new_kernel(fill=fill).text("print(from_startup)") == "7\n"


PLACE = "import sys, holdcell_kernel.places as p; p.SHARED = (sys.argv[1],); print(p.private_directory('ipython'))"


def prepare_link(first, other):
    other.mkdir(0o700)
    (other / "ipython").mkdir(0o700)
    (first / ".holdcell").symlink_to(other)


def prepare_tree(first, mode, of_top=0o700, uid=None):
    made = first / ".holdcell/ipython"
    made.mkdir(parents=True)
    made.chmod(mode)
    made.parent.chmod(of_top)
    if uid:
        os.chown(made, uid, uid)


@pytest.mark.parametrize("prepare, taken", [
    (lambda first, other: None, "first"),
    (lambda first, other: prepare_tree(first, 0o755), "first"),
    (lambda first, other: prepare_tree(first, 0o777), "second"),
    (lambda first, other: prepare_tree(first, 0o720), "second"),
    (lambda first, other: prepare_tree(first, 0o700, of_top=0o777), "second"),
    (lambda first, other: (first / ".holdcell").write_text(""), "second"),
    (prepare_link, "second"),
    pytest.param(lambda first, other: prepare_tree(first, 0o700, uid=65534), "second",
                 marks=pytest.mark.skipif(os.geteuid() != 0, reason="who is not root gives no files away")),
], ids=["nothing", "its own", "for all", "for a group", "top for all", "a file", "a link", "of another"])
def test_a_directory_that_somebody_else_prepared_is_not_used(tmp_path, prepare, taken):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    prepare(first, tmp_path / "other")
    out = subprocess.run([RUNTIME / "bin/python3", "-P", "-c", PLACE, second], check=True, capture_output=True, text=True,
                         env={"TMPDIR": str(first), "PYTHONDONTWRITEBYTECODE": "1"})
    assert out.stdout == f"{tmp_path / taken}/.holdcell/ipython\n"


def test_a_kernel_starts_where_nothing_can_be_written(new_kernel):
    """No directory can be made and no file written anywhere: as with full disks."""
    nowhere = "/proc/self/fdinfo/none"
    probe = """
import os, sys, tempfile
tempfile._get_default_tempdir = lambda *a: (_ for _ in ()).throw(FileNotFoundError('no usable directory'))
def full(*a, **k): raise OSError(28, 'No space left on device')
os.mkdir = os.makedirs = full
import holdcell_kernel.__main__ as m
sys.argv[:] = ['holdcell_kernel', '-f', '/proc/self/fd/3']
m.main()
"""
    kernel = new_kernel(env={"TMPDIR": nowhere, "HOME": nowhere}, argv=[str(RUNTIME / "bin/python3"), "-P", "-c", probe])
    assert kernel.text("print('up')") == "up\n"
    assert kernel.run("1 / 0")[0]["ename"] == "ZeroDivisionError"
    assert kernel.run("%store up")[0]["status"] in ("ok", "error")
    assert kernel.text("print('still up')") == "still up\n"
    assert "CRITICAL" not in kernel.log()


def test_a_start_that_fails_says_why_in_the_log(new_kernel):
    probe = """
import sys, holdcell_kernel.app as app, holdcell_kernel.__main__ as m
def broken(self): raise RuntimeError('no kernel today')
app.KernelApp.init_path = broken
sys.argv[:] = ['holdcell_kernel', '-f', '/proc/self/fd/3']
m.main()
"""
    kernel = new_kernel(argv=[str(RUNTIME / "bin/python3"), "-P", "-c", probe])
    assert kernel.process.wait(DEADLINE) == 1
    kernel.logs[1].join(DEADLINE)
    assert "RuntimeError: no kernel today" in kernel.log()


def test_shutdown_ends_the_process(new_kernel):
    kernel = new_kernel()
    kernel.text("import matplotlib.pyplot as plt")
    reply = kernel.shutdown()
    assert reply["content"] == {"status": "ok", "restart": False}
    assert kernel.process.returncode == 0
    assert kernel.log() == ""


def test_exit_is_answered_and_ends_the_process(new_kernel):
    kernel = new_kernel()
    reply, _ = kernel.run("exit()")
    assert reply["status"] == "ok"
    assert reply["payload"][0]["source"] == "ask_exit"
    assert kernel.process.wait(DEADLINE) == 0


def test_exit_in_a_subshell_is_answered_and_ends_the_process(new_kernel):
    kernel = new_kernel()
    made = kernel.send("control", "create_subshell_request")
    subshell = kernel.reply("control", made)["content"]["subshell_id"]
    left = kernel.send("shell", "execute_request", {"code": "exit()", **CELL}, subshell_id=subshell)
    reply = kernel.reply("shell", left)["content"]
    assert (reply["status"], reply["payload"][0]["source"]) == ("ok", "ask_exit")
    assert kernel.process.wait(DEADLINE) == 0


@pytest.mark.parametrize("leave", ["exit()", "quit", "get_ipython().ask_exit(); import time; time.sleep(0.5)"])
def test_no_cell_is_run_after_exit(new_kernel, leave):
    kernel = new_kernel()
    kernel.info()
    left = kernel.request(leave)
    late = kernel.request("import pathlib; pathlib.Path('late').touch()")
    assert kernel.reply("shell", left)["content"]["status"] == "ok"
    assert kernel.process.wait(DEADLINE) == 0
    assert not (kernel.home / "late").exists()
    assert not kernel.sockets["shell"].poll(0), "a reply to it"
    while kernel.sockets["iopub"].poll(0):
        assert kernel.receive("iopub")["parent_header"].get("msg_id") != late


def test_exit_that_keeps_the_kernel_ends_nothing(kernel):
    reply, _ = kernel.run("kept = 1; exit(keep_kernel=True)")
    assert reply["status"] == "ok"
    assert kernel.text("print(kept)") == "1\n"


def test_sys_exit_ends_nothing(kernel):
    reply, _ = kernel.run("import sys; sys.exit(3)")
    assert reply["ename"] == "SystemExit"
    assert kernel.text("print('alive')") == "alive\n"


def test_a_value_that_cannot_be_shown_is_the_fault_of_its_own_cell_alone(kernel):
    kernel.text("import asyncio\nclass Bad:\n    def __repr__(self): raise LookupError('no words')")
    for code in ("Bad()", "await asyncio.sleep(0)\nBad()"):
        reply, seen = kernel.run(code)
        assert (reply["status"], of_type(seen, "error")[0]["ename"]) == ("error", "LookupError")
        reply, seen = kernel.run("await asyncio.sleep(0, 6 * 7)")
        assert (reply["status"], of_type(seen, "execute_result")[0]["data"]["text/plain"]) == ("ok", "42")


@pytest.mark.parametrize("code, status", [("import os; os._exit(17)", 17),
                                          ("import ctypes; ctypes.string_at(0)", -signal.SIGSEGV)])
def test_the_way_a_kernel_dies_shows_in_its_status(new_kernel, code, status):
    kernel = new_kernel()
    kernel.info()
    kernel.request(code)
    assert kernel.process.wait(DEADLINE) == status
    if status == -signal.SIGSEGV:
        kernel.logs[1].join(DEADLINE)
        assert "Segmentation fault" in kernel.log()


def test_atexit_functions_run_at_shutdown(new_kernel):
    kernel = new_kernel()
    kernel.text("import atexit; atexit.register(lambda: open('left', 'w').write('bye'))")
    kernel.shutdown()
    assert (kernel.home / "left").read_text() == "bye"


FILES = """
import atexit, threading, types, sys
module = sys.modules['mine'] = types.ModuleType('mine')
module.file = open('of_a_module', 'w'); module.file.write('kept')
file = open('of_a_cell', 'w'); file.write('kept')
atexit.register(lambda: open('of_atexit', 'w').write('kept'))
"""


def test_a_thread_that_never_ends_does_not_hold_up_the_end_and_files_are_written(new_kernel):
    kernel = new_kernel()
    kernel.text(FILES + "import holdcell_kernel.ending as ending; ending.THREADS_S = 1")
    reply, _ = kernel.run("threading.Thread(target=threading.Event().wait, name='Käfer').start(); exit()")
    assert reply["status"] == "ok"
    assert kernel.process.wait(DEADLINE) == 0
    for name in ("of_a_module", "of_a_cell", "of_atexit"):
        assert (kernel.home / name).read_text() == "kept", name
    kernel.logs[1].join(DEADLINE)
    assert kernel.log() == r"holdcell_kernel: ended beside threads that did not end within 1 s: 'K\xe4fer'" + "\n"


def test_the_end_waits_for_a_thread_that_ends_and_idle_workers_do_not_hold_it_up(new_kernel):
    kernel = new_kernel()
    kernel.text("import threading, time\nfrom concurrent.futures import ThreadPoolExecutor\n"
                "pool = ThreadPoolExecutor(2); pool.submit(len, 'abc').result()\n"
                "import holdcell_kernel.ending as ending; ending.THREADS_S = 50")
    began = time.monotonic()
    kernel.run("def late():\n    time.sleep(1)\n    open('late', 'w').write('kept')\n"
               "threading.Thread(target=late).start(); exit()")
    assert kernel.process.wait(DEADLINE) == 0
    assert time.monotonic() - began < 40, "idle workers are waited for"
    assert (kernel.home / "late").read_text() == "kept"
    assert kernel.log() == ""


def test_what_hangs_at_the_very_end_is_told_and_ended(new_kernel):
    kernel = new_kernel()
    kernel.text("import atexit, threading, holdcell_kernel.ending as ending; ending.REST_S = 1\n"
                "def hangs(): threading.Event().wait()\natexit.register(hangs)")
    kernel.run("exit()")
    assert kernel.process.wait(DEADLINE) == 1
    kernel.logs[1].join(DEADLINE)
    assert "in hangs" in kernel.log()


RING = """
class Ring:
    def __init__(self): self.me = self; self.file = open('left', 'w'); self.file.write('kept')
"""


@pytest.mark.parametrize("code", [
    "file = open('left', 'w'); file.write('kept')",
    RING + "ring = Ring()",
    RING + "Ring()",                                        # in Out
    RING + "def fails():\n    ring = Ring()\n    1 / 0\nfails()",
    "class Last:\n    def __init__(self): self.me = self\n"
    "    def __del__(self): print('kept', end='', file=open('left', 'w'), flush=True)\nlast = Last()",
], ids=["variable", "cycle", "result", "error", "del"])
def test_what_a_cell_left_is_finished_at_shutdown(new_kernel, code):
    kernel = new_kernel()
    kernel.run(code)
    kernel.shutdown()
    assert (kernel.home / "left").read_text() == "kept"
    assert kernel.log() == ""


def test_what_is_printed_at_the_very_end_holds_up_nothing(new_kernel):
    kernel = new_kernel()
    kernel.run("class Last:\n    def __init__(self): self.me = self\n    def __del__(self): print('bye ' * 100_000)\nlast = Last()")
    kernel.shutdown()
    assert kernel.process.returncode == 0


def test_a_variable_that_cannot_go_does_not_hold_up_the_end(new_kernel):
    kernel = new_kernel()
    kernel.run("class Stays:\n    def __del__(self): raise KeyboardInterrupt\nstays = [Stays(), Stays()]\n"
               "import sys; sys.modules['__main__'].__dict__['odd'] = 1; get_ipython().displayhook = None")
    kernel.shutdown()
    assert kernel.process.returncode == 0


def test_the_collector_is_on_and_sees_what_the_kernel_is_made_of(kernel):
    kernel.text("import gc, weakref\nclass Ring: pass\nring = Ring(); ring.itself = ring; seen = weakref.ref(ring); del ring\ngc.collect()")
    assert kernel.text("print(gc.isenabled(), seen())") == "True None\n"
    assert kernel.text("print(type(get_ipython().kernel) in map(type, gc.get_objects()))") == "True\n"


def test_interrupts_during_the_start_do_no_harm(new_kernel):
    kernel = new_kernel()
    proc = pathlib.Path(f"/proc/{kernel.process.pid}")
    deadline = time.monotonic() + DEADLINE
    while b"holdcell_kernel" not in (proc / "cmdline").read_bytes():
        assert time.monotonic() < deadline, "until then it is a fork of this process, which has libzmq too"
    maps = proc / "maps"
    while b"libzmq" not in maps.read_bytes() and b"zmq/backend" not in maps.read_bytes():
        assert time.monotonic() < deadline, "it imports what takes time behind the first lines, which set our handler"
    for _ in range(20):
        kernel.interrupt()
        time.sleep(0.02)
    assert kernel.text("print('up')") == "up\n"


def test_a_subshell_runs_beside_a_busy_cell(kernel):
    made = kernel.send("control", "create_subshell_request")
    subshell = kernel.reply("control", made)["content"]["subshell_id"]
    busy = kernel.request("input()", allow_stdin=True)
    request = kernel.receive("stdin")  # before the other request: ipykernel keeps one allow_stdin for all
    beside = kernel.send("shell", "execute_request", {"code": "print('beside')", "allow_stdin": False},
                         subshell_id=subshell)
    assert kernel.reply("shell", beside)["content"]["status"] == "ok"
    kernel.session.send(kernel.sockets["stdin"], "input_reply", {"value": ""}, parent=request)
    assert kernel.reply("shell", busy)["content"]["status"] == "ok"
    kernel.outputs(busy)
    kernel.send("control", "delete_subshell_request", {"subshell_id": subshell})


def test_thousands_of_waiting_requests_do_not_hold_up_a_subshell(new_kernel):
    kernel = new_kernel()
    made = kernel.send("control", "create_subshell_request")
    subshell = kernel.reply("control", made)["content"]["subshell_id"]
    first = kernel.request("import time\nprint('on', flush=True)\ntry: time.sleep(1000)\nexcept KeyboardInterrupt: pass")
    kernel.wait_for_output(first, "on")
    waiting = [kernel.request("pass") for _ in range(2500)]     # a pair of sockets that is not told otherwise holds 2,000
    beside = kernel.send("shell", "execute_request", {"code": "1", "allow_stdin": False}, subshell_id=subshell)
    assert kernel.reply("shell", beside)["content"]["status"] == "ok", "while all of them wait"
    kernel.interrupt()
    for request in (first, waiting[0]):
        assert kernel.reply("shell", request)["content"]["status"] == "ok"


# What is refused, each with a line that says why and without the key.

def refused(tmp_path, text='{"key": "k"}', spoil=None):
    home = tmp_path / "home"
    home.mkdir()
    sockets = listeners(tmp_path)
    memfd = connection_memfd(text)
    fds = [memfd, *(sockets[c].fileno() for c in CHANNELS)]
    if spoil:
        spoil(fds)
    process = start_process(fds, home)
    _, err = process.communicate(timeout=DEADLINE)
    os.close(memfd)
    for sock in sockets.values():
        sock.close()
    assert process.returncode == 78
    return err.decode()


def test_a_missing_socket_is_refused(tmp_path):
    assert "descriptor 8 (hb) is missing" in refused(tmp_path, spoil=lambda fds: fds.pop())


def test_a_socket_that_does_not_listen_is_refused(tmp_path):
    plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    assert "descriptor 5 (control) does not listen" in refused(
        tmp_path, spoil=lambda fds: fds.__setitem__(2, plain.fileno()))


def test_something_else_than_a_socket_is_refused(tmp_path):
    null = os.open("/dev/null", os.O_RDONLY)
    assert "descriptor 4 (shell) is not a socket" in refused(tmp_path, spoil=lambda fds: fds.__setitem__(1, null))
    os.close(null)


@pytest.mark.parametrize("text", ["", "[1]", '{"key": 5}', '{"key": "s3cret"', "x" * 70000])
def test_broken_connection_data_is_refused_without_telling_the_key(tmp_path, text):
    err = refused(tmp_path, text=text)
    assert "connection data" in err and "s3cret" not in err


# The runtime itself.

def test_nobody_but_its_owner_can_change_the_runtime():
    out = subprocess.run(["find", RUNTIME, "-not", "-type", "l", "(", "-perm", "/022", "-o", "-not", "-perm", "-004",
                          "-o", "-not", "-uid", str(os.stat(RUNTIME).st_uid), ")"],
                         capture_output=True, text=True, check=True)
    assert out.stdout == ""


def test_every_locked_package_is_installed_and_imports():
    names = ["IPython", "ipykernel", "ipywidgets", "numpy", "pandas", "pyarrow", "scipy", "sklearn", "statsmodels.api",
             "patsy", "matplotlib", "seaborn", "plotly", "PIL", "openpyxl", "lxml.etree", "bs4", "pypdf",
             "sqlalchemy", "requests", "zmq", "debugpy"]
    code = ";".join(f"import {name}" for name in names) + ";print('all')"
    out = subprocess.run([RUNTIME / "bin/python3", "-c", code], capture_output=True, text=True, timeout=600)
    assert out.stdout == "all\n", out.stderr


def test_bytecode_needs_no_writing():
    out = subprocess.run([RUNTIME / "bin/python3", "-v", "-c", "import holdcell_kernel.app, pandas, matplotlib.pyplot"],
                         capture_output=True, text=True, env={"PYTHONDONTWRITEBYTECODE": "1", "HOME": "/nonexistent",
                                                              "MPLCONFIGDIR": "/tmp"}, timeout=600)
    lines = [line for line in out.stderr.splitlines() if line.startswith("# code object from")]
    assert len(lines) > 500
    assert [line for line in lines if str(RUNTIME) in line and ".pyc" not in line] == []


def test_building_again_changes_nothing():
    script = pathlib.Path(__file__).resolve().parents[2] / "runtime/build.sh"
    prefix = RUNTIME.parent.parent
    before = os.stat(RUNTIME / ".complete").st_mtime_ns
    out = subprocess.run([script, "--prefix", prefix], capture_output=True, text=True, check=True, timeout=900)
    if out.stdout.splitlines()[-1] != str(RUNTIME):
        pytest.skip("the runtime under test was built from other sources")
    assert out.stdout == f"{RUNTIME}\n"
    assert os.stat(RUNTIME / ".complete").st_mtime_ns == before
