"""Deadlines: of a cell, of a question, of a session. Limits are short here; how long an end takes beyond them is
bounded by the ladder (interrupt, again, SIGTERM, kill), and a slow machine gets its share on top."""

import json
import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from channels import Channels, Ended
from server import BIN, SLOW, Server, descendants_of, read, status_of, wait_for
from test_gateway_restart import Story, drain, follow, kill_gateway, reconnect

LIMIT = int(2 * SLOW)   # seconds for a cell; a first one in a new kernel takes one on a busy machine
LADDER = 10 * SLOW      # seconds after a limit in which whatever a cell does is over

SWALLOW = """
import time
while True:
    try:
        while True: time.sleep(0.01)
    except BaseException: pass
"""
# PyDLL keeps the interpreter's lock while C sleeps: no Python code of the kernel runs any more.
LOCKED = """
import ctypes, signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
for n in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT): signal.signal(n, signal.SIG_IGN)
ctypes.PyDLL(None).sleep(100000)
"""
STOPPED = """
import os, signal, subprocess, sys, time
child = [sys.executable, '-c', "import time; open('/proc/self/comm', 'w').write(%r); time.sleep(1000)"]
subprocess.Popen(child, start_new_session=True); subprocess.Popen(child)
time.sleep(0.3)
os.kill(-1, signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)
"""
NEVER_BUSY = """
kernel = get_ipython().kernel
publish = kernel._publish_status
kernel._publish_status = lambda state, *args, **more: state == 'busy' or publish(state, *args, **more)
"""
HOSTILE = {"swallows-interrupts": SWALLOW, "holds-the-lock-with-signals-blocked": LOCKED, "stops-everything": STOPPED,
           "never-says-busy": SWALLOW}
BEFORE = {"never-says-busy": NEVER_BUSY}


def named(name):
    """Processes of that name below the servers of these tests, which are our own children."""
    return [p for p in descendants_of(os.getpid()) if read(f"/proc/{p}/comm").strip() == name]


def reason(server, kid):
    return server.kernel(kid).get("reason", "")


@pytest.fixture(scope="module")
def clocks():
    s = Server("--ws-ping-interval", "0").start()       # a socket whose test is not yet there answers none
    yield s
    s.close()


class Case:
    """A hostile cell: its kernel, its socket, the name of the processes that it starts."""

    def __init__(self, server, name, code):
        self.kid = server.start_kernel("python3", limits={"cell_timeout": LIMIT, "cpus": 0.5})
        self.chan = Channels(server, self.kid)
        assert self.chan.run("kept = 1" + BEFORE.get(name, "")).status == "ok"
        self.comm = "ck" + self.kid[:8]
        self.code = code % self.comm if "%r" in code else code

    def go(self):
        began = time.monotonic()
        return self.chan.run(self.code), time.monotonic() - began


@pytest.fixture(scope="module")
def hostile(clocks):
    """All of them at once, beside the other tests: each takes the whole ladder."""
    cases = {name: Case(clocks, name, code) for name, code in HOSTILE.items()}
    with ThreadPoolExecutor(len(cases)) as pool:
        for case in cases.values():
            case.end = pool.submit(case.go)
        yield cases
    for case in cases.values():
        case.chan.close()
        clocks.delete_kernel(case.kid)


@pytest.fixture
def limited(clocks):
    """Factory: a kernel with these limits and a socket to it; gone after the test."""
    own = []

    def make(name="python3", **limits):
        kid = clocks.start_kernel(name, limits=limits)
        own.append((kid, Channels(clocks, kid)))
        assert own[-1][1].run("import time; kept = 4711").status == "ok"
        return own[-1]
    yield make
    for kid, c in own:
        c.close()
        clocks.delete_kernel(kid)


def test_a_cell_that_runs_too_long_is_interrupted_and_its_variables_are_kept(clocks, limited, hostile):
    kid, c = limited(cell_timeout=LIMIT)
    run = c.run("print('begun', flush=True)\nwhile True: pass")
    assert (run.status, run.ename, run.text) == ("error", "KeyboardInterrupt", "begun\n")
    assert f"cell stopped after {LIMIT} s by the session's cell timeout; variables are kept" in run.stream("stderr")
    assert "holdcell" not in run.reply["metadata"], "it is the kernel's own reply"
    last = run.messages[-1]["header"]["msg_type"], run.messages[-2]["header"]["msg_type"]
    assert "status" in last, "nothing of the run comes after its end"
    assert c.run("kept").result == "4711"
    assert 'state=timed_out' in clocks.log()
    assert reason(clocks, kid) == ""


def test_a_cell_that_takes_the_interrupt_for_its_own_is_ok_and_told_of_it(limited, hostile):
    """As `!command` does, whose child gets it too."""
    kid, c = limited(cell_timeout=LIMIT)
    run = c.run("try:\n    while True: time.sleep(0.1)\nexcept KeyboardInterrupt: print('caught')")
    assert (run.status, run.text) == ("ok", "caught\n")
    told = run.stream("stderr")
    assert told.count(f"the cell was interrupted by the server after {LIMIT} s, the session's cell timeout") == 1, told
    assert "cell stopped" not in told
    assert c.run("kept").result == "4711"


@pytest.mark.full
def test_a_question_that_nobody_answers_ends_its_cell(limited, hostile):
    _, c = limited(stdin_timeout=LIMIT)
    asked = c.start("input('name? ')", allow_stdin=True)
    c.until(lambda m: m["header"]["msg_type"] == "input_request")
    run = Channels.finish.__get__(c)(asked)
    assert (run.status, run.ename) == ("error", "KeyboardInterrupt")
    assert f"nobody answered input() within {LIMIT} s, the session's stdin timeout; variables are kept" in run.stream("stderr")
    assert c.run(f"time.sleep({LIMIT} + 0.5); kept").result == "4711", "cells have no limit here"


@pytest.mark.full
def test_time_in_the_queue_does_not_count(limited, hostile):
    _, c = limited(cell_timeout=2 * LIMIT)
    runs = [c.start(f"time.sleep({LIMIT} / 2 + 0.2); n{i} = {i}") for i in range(4)]
    for r in runs:
        assert c.finish(r).status == "ok"
    assert c.run("n0 + n3").result == "3"


@pytest.mark.full
def test_time_in_which_a_person_thinks_does_not_count_for_the_cell(limited, hostile):
    _, c = limited(cell_timeout=LIMIT, stdin_timeout=60)
    asked = c.start("print('hello', input('name? '))", allow_stdin=True)
    ask = c.until(lambda m: m["header"]["msg_type"] == "input_request")
    time.sleep(LIMIT + 1)
    c.send("input_reply", {"value": "Ada"}, "stdin", ask["header"])
    run = c.finish(asked)
    assert (run.status, run.text) == ("ok", "hello Ada\n")


@pytest.mark.guest
@pytest.mark.parametrize("name", HOSTILE)
def test_a_cell_that_heeds_nothing_ends_with_its_kernel(clocks, hostile, name):
    case = hostile[name]
    kid, c = case.kid, case.chan
    run, took = case.end.result()
    assert took < LIMIT + LADDER
    assert (run.status, run.ename) == ("error", "CellTimeout")
    assert f"the cell timeout of {LIMIT} s" in run.stream("stderr") and "variables are lost" in run.stream("stderr")
    assert run.reply["metadata"]["holdcell"]["synthetic"] is True
    assert ("the cell stood at" in run.stream("stderr")) == (name != "stops-everything"), "what is stopped says nothing"
    order = [m for m in c.seen if m["header"]["msg_type"] == "execute_reply" or
             m["content"].get("execution_state") == "restarting"]
    assert [m["header"]["msg_type"] for m in order[-2:]] == ["status", "execute_reply"]
    assert c.run("'kept' in globals()").result == "False", "the kernel was started again by itself"
    assert reason(clocks, kid) == f"time-out: the cell timeout of {LIMIT} s"
    assert not named(case.comm), "what it started is gone with it"
    states = [m["content"]["execution_state"] for m in c.seen if m["header"]["msg_type"] == "status"]
    assert states.count("restarting") == 1


@pytest.mark.full
def test_what_waited_behind_it_ends_too_and_says_why(limited):
    _, c = limited(cell_timeout=LIMIT)
    first = c.start(SWALLOW)
    second = c.start("1 + 1")
    runs = {first: Story(first), second: Story(second)}
    while not all(s.ended for s in runs.values()):
        m = c.recv()
        for s in runs.values():
            s.take(m)
    assert [runs[i].replies[0]["content"]["ename"] for i in (first, second)] == ["CellTimeout", "KernelDied"]
    assert "time-out" in runs[second].err
    assert c.run("2").result == "2"


@pytest.mark.full
def test_the_next_gateway_goes_on_with_the_deadline(server_with):
    limit, after = 4 * SLOW, 3 * SLOW
    s = server_with("--cell-timeout", str(limit), "--stdin-timeout", "2")
    kid = s.start_kernel("python3")
    c = Channels(s, kid)
    assert c.run("kept = 1").status == "ok"
    story = Story(c.start("while True: pass"))
    began = time.monotonic()
    c.until(lambda m: m["header"]["msg_type"] == "execute_input")
    time.sleep(after)
    kill_gateway(s)
    for m in drain(c):
        story.take(m)
    c = reconnect(s, kid, c.sid)
    follow(c, story)
    assert time.monotonic() - began < after + limit, "its time did not begin anew"
    assert story.status == "error" and f"cell stopped after {limit:g} s" in story.err, story.err
    assert c.run("kept").result == "1"
    c.close()


@pytest.mark.full
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("after", [1, 3.5, 6, 7.8])      # before it, and on each rung
def test_no_death_of_the_gateway_keeps_a_hostile_cell_alive(server_with, name, after):
    s = server_with("--cell-timeout", "2")
    kid = s.start_kernel("python3")
    c = Channels(s, kid)
    assert c.run("kept = 1" + BEFORE.get(name, "")).status == "ok"
    code = HOSTILE[name]
    story = Story(c.start(code % "ckgw" if "%r" in code else code))
    time.sleep(after)
    kill_gateway(s)
    for m in drain(c):
        story.take(m)
    c = reconnect(s, kid, c.sid)
    follow(c, story)
    assert story.status == "error" and len(story.replies) == 1
    assert wait_for(lambda: c.run("'kept' in globals()").result == "False")
    assert not named("ckgw")
    c.close()


@pytest.mark.full
def test_a_question_outlives_the_gateway_and_so_does_its_time(server_with):
    s = server_with("--stdin-timeout", "3")
    kid = s.start_kernel("python3")
    c = Channels(s, kid)
    assert c.run("kept = 1").status == "ok"
    story = Story(c.start("input('name? ')", allow_stdin=True))
    c.until(lambda m: m["header"]["msg_type"] == "input_request")
    time.sleep(0.5)
    kill_gateway(s)
    for m in drain(c):
        story.take(m)
    c = reconnect(s, kid, c.sid)
    follow(c, story)
    assert story.status == "error" and "stdin timeout" in story.err, story.err
    assert c.run("kept").result == "1"
    c.close()


@pytest.mark.full
def test_a_cell_that_ends_at_its_deadline_is_what_the_kernel_says(limited):
    _, c = limited(cell_timeout=LIMIT)
    ends = {"ok": 0, "error": 0}
    for i in range(24):
        run = c.run(f"done = -1\ntime.sleep({LIMIT - 0.2 + 0.02 * i})\ndone = {i}")
        ends[run.status] += 1
        told = "cell stopped" in run.stream("stderr")
        done = c.run("done")            # never hit by an interrupt that was meant for the cell before it
        assert done.status == "ok"
        assert (done.result == str(i)) == (run.status == "ok") != told, (i, run.status, done.result)
    assert ends["ok"] and ends["error"]


@pytest.mark.full
@pytest.mark.parametrize("mode", ["signal", "message"])
def test_kernels_of_other_runtimes_have_deadlines_too(server_with, kernel_path, mode):
    python = ["python3", "-P", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel_path.add("other", python, interrupt_mode=mode, language="python")
    s = server_with("--kernel-path", kernel_path.path, "--cell-timeout", "1")
    with Channels(s, s.start_kernel("other")) as c:
        assert c.run("kept = 3").status == "ok"
        run = c.run("while True: pass")
        assert run.status == "error" and "variables are kept" in run.stream("stderr")
        assert c.run("kept").result == "3"
        assert c.run(SWALLOW).ename == "CellTimeout"
        assert c.run("'kept' in globals()").result == "False"


# As xeus-python is: SIGINT ends it.
ENDS_AT_SIGINT = """
import os, signal, sys
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
class Kernel(IPythonKernel):
    def pre_handler_hook(self):
        signal.signal(signal.SIGINT, lambda *_: os._exit(0))
IPKernelApp.launch_instance(sys.argv[1:], kernel_class=Kernel)
"""


@pytest.mark.full
def test_a_kernel_that_ends_at_an_interrupt_is_told_with_what_it_was_interrupted_for(server_with, kernel_path):
    kernel_path.add("ends", ["python3", "-P", "{resource_dir}/ends.py", "-f", "{connection_file}"],
                    {"ends.py": ENDS_AT_SIGINT}, language="python")
    s = server_with("--kernel-path", kernel_path.path, "--cell-timeout", "8")
    kid = s.start_kernel("ends")
    with Channels(s, kid) as c:
        asked = c.start("print('in', flush=True)\nwhile True: pass")
        c.until(lambda m: m["header"]["msg_type"] == "stream")
        assert s.interrupt(kid) == 204
        run = c.finish(asked)
        assert run.ename == "KernelDied"
        assert "the kernel died: exited with code 0 when it was interrupted" in run.stream("stderr")
        assert c.run("kept = 1").status == "ok"
        run = c.run("while True: pass")
        assert run.ename == "CellTimeout"
        assert "time-out: the cell timeout of 8 s, exited with code 0" in run.stream("stderr")
        assert s.kernel(kid)["reason"].startswith("time-out: ")
        assert c.run("'kept' in globals()").result == "False"
    assert [re.search("state=([a-z_]+)", line)[1] for line in s.log().splitlines() if "event=run_ended" in line] == [
        "kernel_died", "timed_out"]


@pytest.mark.full
def test_a_client_that_interrupts_in_time_is_told_of_no_time_out(clocks, limited):
    kid, c = limited(cell_timeout=20)
    asked = c.start("while True: pass")
    c.until(lambda m: m["header"]["msg_type"] == "execute_input")
    clocks.interrupt(kid)
    run = c.finish(asked)
    assert run.ename == "KeyboardInterrupt" and not run.stream("stderr")


@pytest.mark.full
def test_a_kernel_that_is_deleted_or_restarted_on_the_ladder_comes_to_the_end_it_was_given(clocks, limited):
    for end in ("restart", "delete"):
        kid, c = limited(cell_timeout=LIMIT)
        c.start(LOCKED)
        wait_for(lambda: "run_not_stopped" in clocks.log() and kid in clocks.log().split("run_not_stopped")[-1])
        if end == "restart":
            assert clocks.restart(kid).status == 200
            assert c.run("'kept' in globals()").result == "False"
        else:
            assert clocks.delete_kernel(kid) == 204
            assert clocks.kernel(kid) is None


@pytest.mark.full
def test_a_paused_host_costs_no_cell_its_time(server_with):
    s = server_with("--cell-timeout", "4")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("import time").status == "ok"
        asked = c.start("for i in range(25): time.sleep(0.1)")
        c.until(lambda m: m["header"]["msg_type"] == "execute_input")
        frozen = [s.process("gateway"), *s.kernels()]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(6)
        for pid in reversed(frozen):
            os.kill(pid, signal.SIGCONT)
        assert c.finish(asked).status == "ok"


def test_a_session_ends_with_its_lifetime_whatever_it_does(clocks):
    r = clocks.request("POST", "/api/sessions", {"path": "l.ipynb", "type": "notebook", "name": "l",
                                                 "kernel": {"name": "python3", "limits": {"max_lifetime": 5}}})
    assert r.status == 201, r
    kid = r.json()["kernel"]["id"]
    with Channels(clocks, kid) as c:
        asked = c.start("import time\nwhile True: time.sleep(0.1)")
        with pytest.raises(Ended) as end:
            while True:
                c.recv()
        assert end.value.args == (1000,), "as when a kernel is deleted"
    said = [m for m in c.seen if m["header"]["msg_type"] == "stream" and "the session's lifetime of 5 s is over" in m["content"]["text"]]
    assert said
    reply, = [m for m in c.seen if m["header"]["msg_type"] == "execute_reply" and m["parent_header"]["msg_id"] == asked]
    assert reply["content"]["status"] == "error"
    assert clocks.kernel(kid) is None
    assert clocks.request("GET", f"/api/sessions/{r.json()['id']}").status == 404
    assert clocks.request("DELETE", f"/api/kernels/{kid}").status in (204, 404)


@pytest.mark.full
@pytest.mark.parametrize("what", ["gateway killed", "kernel restarted"])
def test_nothing_moves_the_end_of_a_session(server_with, what):
    s = server_with("--max-lifetime", "6")
    kid = s.start_kernel("python3")
    began = time.monotonic()
    with Channels(s, kid) as c:
        assert c.run("1").status == "ok"
        if what == "kernel restarted":
            assert s.restart(kid).status == 200
        else:
            kill_gateway(s)
    wait_for(lambda: s.answers() and s.kernel(kid) is None)
    assert time.monotonic() - began < 6 + LADDER
    wait_for(lambda: not s.kernels())


@pytest.mark.full
def test_the_launcher_ends_a_session_that_no_gateway_ends(server_with):
    s = server_with("--max-lifetime", "3")
    s.start_kernel("python3")
    pid = s.kernels()[0]
    gateway = s.process("gateway")
    os.kill(gateway, signal.SIGSTOP)
    try:
        wait_for(lambda: not os.path.exists(f"/proc/{pid}") or "zombie" in read(f"/proc/{pid}/status"))
    finally:
        os.kill(gateway, signal.SIGCONT)
    wait_for(lambda: not s.kernels())


@pytest.mark.full
def test_a_kernel_that_never_makes_its_sockets_is_given_up(server_with, kernel_path):
    kernel_path.add("mute", ["python3", "-c", "import time; time.sleep(100000)"])
    s = server_with("--kernel-path", kernel_path.path)
    kid = s.start_kernel("mute")
    wait_for(lambda: s.kernel(kid) is None, 150 * SLOW)
    assert "made no sockets within 120 s" in s.log()
    wait_for(lambda: "kernel_gone" in s.log())


CREATE = int(15 * SLOW)     # in which a kernel of ours answers, on a busy machine too
MUTE = {"makes-no-sockets": "", "answers-nothing": """
import json, sys, zmq
c, context, sockets = json.load(open(sys.argv[1])), zmq.Context(), []
for name, kind in (("shell", zmq.ROUTER), ("control", zmq.ROUTER), ("stdin", zmq.ROUTER), ("iopub", zmq.PUB), ("hb", zmq.REP)):
    sockets.append(context.socket(kind))
    sockets[-1].bind(f"ipc://{c['ip']}-{c[name + '_port']}" if c["transport"] == "ipc" else f"tcp://{c['ip']}:{c[name + '_port']}")
"""}
DEAF = {"heeds-signals": "", "blocks-all-signals": "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"}


@pytest.mark.full
@pytest.mark.parametrize("deaf", DEAF)
@pytest.mark.parametrize("name", MUTE)
def test_a_kernel_that_never_answers_is_given_up_after_the_create_timeout(server_with, kernel_path, name, deaf):
    kernel_path.add("mute", ["python3", "-P", "-c", DEAF[deaf] + MUTE[name] + "import time; time.sleep(100000)", "{connection_file}"])
    s = server_with("--kernel-path", kernel_path.path, "--create-timeout", str(CREATE))
    other = s.start_kernel("python3")
    s.wait_state(other, "idle")
    began = time.monotonic()
    kid = s.start_kernel("mute")
    wait_for(lambda: s.kernel(kid) is None)
    assert time.monotonic() - began >= CREATE, "not before its time"
    what = {"makes-no-sockets": "made no sockets", "answers-nothing": "answered nothing"}[name]
    assert f"time-out: the kernel {what} within {CREATE} s, the server's create timeout" in s.log()
    wait_for(lambda: f"event=kernel_gone kernel={kid}" in s.log())
    wait_for(lambda: not [p for p in descendants_of(s.proc.pid) if "time.sleep(100000)" in read(f"/proc/{p}/cmdline")])
    with Channels(s, other) as c:
        assert c.run("6 * 7").result == "42", "who has answered has no clock any more"


@pytest.mark.full
def test_no_create_timeout_is_no_limit_and_a_restart_has_one_of_its_own(server_with, kernel_path):
    late = "import time; time.sleep(4)\nfrom ipykernel.kernelapp import launch_new_instance; launch_new_instance()"
    kernel_path.add("late", ["python3", "-P", "-c", late, "-f", "{connection_file}"], language="python")
    s = server_with("--kernel-path", kernel_path.path, "--create-timeout", "0")
    kid = s.start_kernel("late")
    with Channels(s, kid) as c:
        assert c.run("1 + 1").result == "2"
    s.stop()
    s.options = ["--kernel-path", kernel_path.path, "--create-timeout", str(CREATE)]
    s.start()
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        for _ in range(2):
            assert c.run("2 + 2").result == "4"
            assert s.restart(kid).status == 200
        time.sleep(CREATE)
        assert c.run("3").result == "3"
    assert "create timeout" not in s.log()


def lock(s, c):
    """Has the server's only kernel heed no signal any more; its pid."""
    c.start(LOCKED)
    c.until(lambda m: m["header"]["msg_type"] == "execute_input")
    pid, = s.kernels()
    wait_for(lambda: int(status_of(pid).get("SigBlk", "0"), 16) >> 14 & 1)      # SIGTERM
    return pid


def seconds_of_delete(s):
    """For a kernel that heeds nothing; nothing of it is left."""
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        pid = lock(s, c)
        began = time.monotonic()
        assert s.delete_kernel(kid) == 204
        took = time.monotonic() - began
    assert not os.path.exists(f"/proc/{pid}") and not s.kernels()
    return took


@pytest.mark.full
def test_a_kernel_that_blocks_all_signals_is_killed_after_the_drain_timeout(server_with):
    fast = seconds_of_delete(server_with("--drain-timeout", "0.2"))
    slow = seconds_of_delete(server_with("--drain-timeout", "4"))
    assert fast >= 0.2 and slow >= 4, "no kernel is killed before its time"
    assert slow - fast > 2, (fast, slow)
    assert slow < (4 + LADDER) * SLOW


@pytest.mark.full
def test_a_server_that_is_stopped_gives_its_kernels_the_drain_timeout_and_leaves_none(server_with):
    s = server_with("--drain-timeout", "6")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        pid = lock(s, c)
        began = time.monotonic()
        assert s.stop() == 0
        assert time.monotonic() - began >= 6, "all of it was given to a kernel that heeds nothing"
    assert not os.path.exists(f"/proc/{pid}")
    for event in ("gateway_killed", "launcher_killed", "shutdown_late"):
        assert event not in s.log(), "all of it fits into the time that a supervisor gives"


@pytest.mark.full
def test_metrics_count_what_ran_out_of_time(server_with):
    s = server_with("--cell-timeout", str(LIMIT), "--max-lifetime", "40")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("while True: pass").status == "error"
        assert c.run(SWALLOW).ename == "CellTimeout"
        text = s.request("GET", "/metrics").body.decode()
        assert 'holdcell_runs_total{state="timed_out"} 2\n' in text
        assert 'holdcell_kernel_deaths_total{reason="timeout"} 1\n' in text
    wait_for(lambda: s.kernel(kid) is None)
    assert "holdcell_sessions_expired_total 1\n" in s.request("GET", "/metrics").body.decode()


@pytest.mark.parametrize("option", ["--cell-timeout", "--stdin-timeout", "--max-lifetime", "--create-timeout", "--drain-timeout"])
def test_times_that_are_none_are_refused_by_name(option):
    variable = "HOLDCELL_" + option[2:].upper().replace("-", "_")
    for argv, env in (([option, "-1"], {}), ([option, "1e3"], {}), ([option, "31622401"], {}), ([], {variable: "soon"})):
        r = subprocess.run([BIN, "serve", *argv], capture_output=True, text=True, timeout=60, env={**os.environ, **env})
        assert r.returncode in (1, 2) and (option if argv else variable) in r.stderr, r


@pytest.mark.full
def test_limits_of_time_come_from_options_principals_and_requests(tmp_path, server_with):
    import hashlib
    path = tmp_path / "principals"
    path.write_text(json.dumps({"name": "ann", "sha256": hashlib.sha256(b"ann").hexdigest(),
                                "limits": {"cell_timeout": 50, "max_lifetime": 5000}}) + "\n")
    os.chmod(path, 0o600)
    s = server_with("--principals", str(path), "--stdin-timeout", "20", env={"HOLDCELL_CELL_TIMEOUT": "90.5"})
    ann = {"Authorization": "token ann"}

    def told(headers, **limits):
        r = s.request("POST", "/api/kernels", {"limits": limits}, headers=headers)
        if r.status != 201:
            return r.status, r.json()["message"]
        kid = r.json()["id"]
        got = s.request("GET", f"/api/kernels/{kid}/limits", headers=headers).json()
        assert s.request("DELETE", f"/api/kernels/{kid}", headers=headers).status == 204
        return {n: got[n] for n in ("cell_timeout", "stdin_timeout", "max_lifetime") if n in got}
    assert told({}) == {"cell_timeout": 90.5, "stdin_timeout": 20}
    assert told({}, cell_timeout=1.5, max_lifetime=60) == {"cell_timeout": 1.5, "stdin_timeout": 20, "max_lifetime": 60}
    assert told(ann) == {"cell_timeout": 50, "stdin_timeout": 20, "max_lifetime": 5000}
    for headers, limits in (({}, {"cell_timeout": 91}), ({}, {"stdin_timeout": 21}), (ann, {"cell_timeout": 51}),
                            (ann, {"max_lifetime": 5001}), ({}, {"cell_timeout": 0}), ({}, {"cell_timeout": "1"})):
        status, message = told(headers, **limits)
        assert status == 400 and f"limits.{next(iter(limits))}" in message
