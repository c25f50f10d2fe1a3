"""A kernel that dies is noticed, reported as what it was, and comes back under its id."""

import ctypes
import datetime
import os
import re
import signal
import time

import pytest
import websocket

from channels import Channels, Ended
from server import SLOW, descendants_of, read, status_of, wait_for
from tiers import full_after


def said_until_restarting(c):
    """What a socket says from now on up to `restarting`: the kernel's own words about its death, all messages."""
    before = len(c.seen)
    c.until(lambda m: m["header"]["msg_type"] == "status"
            and m["content"]["execution_state"] == "restarting")
    said = c.seen[before:]
    return "".join(m["content"]["text"] for m in said if m["header"]["msg_type"] == "stream"
                   and m["content"]["name"] == "stderr"), said


def death_of(c, code):
    """Runs a cell that kills its kernel; what the socket said up to `restarting`."""
    c.start(code)
    return said_until_restarting(c)


@pytest.mark.parametrize("code, words", full_after(3, [
    ("import os; os._exit(1)", r"exited with code 1\b"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", r"killed by signal 9 \(SIGKILL\)"),
    ("import ctypes; ctypes.string_at(0)", r"killed by signal 11 \(SIGSEGV\)"),
    ("import os; os._exit(0)", r"exited with code 0\b"),
    ("import os; os._exit(17)", r"exited with code 17\b"),
]), ids=["exit-1", "sigkill", "sigsegv", "exit-0", "exit-17"])
def test_a_death_is_reported_as_what_it_was_to_every_socket(shared, kernel, code, words):
    kid = kernel("python3")
    with Channels(shared, kid) as c, Channels(shared, kid) as other:
        c.run("marker = 1")
        text, said = death_of(c, code)
        for text in (text, said_until_restarting(other)[0]):
            assert re.search(words, text) and "memory" not in text, text
        assert not [m for m in said if m["header"]["msg_type"] == "execute_reply"
                    and m["content"]["status"] == "ok"], "a dead kernel's cell is never ok"
        assert shared.kernel(kid)["id"] == kid
        assert c.run("'marker' in globals()").result == "False"
        shared.wait_state(kid, "idle")
        model = shared.kernel(kid)
        assert re.search(words, model.get("reason", "")), model


def test_the_death_of_an_idle_kernel_is_told_once_with_its_reason(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        assert c.run("import os, threading; threading.Timer(1, os._exit, [9]).start()").status == "ok"
        _, said = said_until_restarting(c)
        told = [m for m in said if m["header"]["msg_type"] == "stream"]
        assert [m["content"]["text"] for m in told] == ["\n[holdcell] the kernel died: exited with code 9\n"]
        assert told[0]["parent_header"] == {}, "it belongs to no cell"


@pytest.mark.guest
def test_a_memory_bomb_is_reported_as_out_of_memory_with_the_limit_to_every_socket(server_with):
    s = server_with("--memory-mb", "512", "--disk-mb", "64", "--tmp-mb", "64")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c, Channels(s, kid) as other:
        c.run("x = 1")
        for text in death_of(c, "b = []\nwhile True:\n    b.append(bytearray(16 << 20))")[0], said_until_restarting(other)[0]:
            assert "out of memory" in text and "512" in text, text
        assert c.run("1 + 1").result == "2"
        assert "out of memory" in s.kernel(kid)["reason"]


def test_a_child_that_is_out_of_memory_leaves_the_kernel_alive_or_says_so(server_with):
    s = server_with("--memory-mb", "512", "--disk-mb", "64", "--tmp-mb", "64")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        run = c.run("import subprocess, sys\n"
                    "subprocess.run([sys.executable, '-c', 'b=[]\\nwhile True: b.append(bytearray(16<<20))']).returncode")
        assert run.result == "-9", run.messages
        assert c.run("2").result == "2"


@pytest.mark.guest
def test_a_child_that_is_out_of_memory_is_told_in_the_cell_and_the_session_survives(server_with):
    s = server_with("--memory-mb", "512", "--disk-mb", "64", "--tmp-mb", "64")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        c.run("kept = 42")
        init = next(p for p in descendants_of(s.proc.pid) if read(f"/proc/{p}/cmdline").startswith("holdcell-init"))
        run = c.run("import subprocess, sys, time\n"
                    "code = subprocess.run([sys.executable, '-c', 'b=[]\\nwhile True: b.append(bytearray(16<<20))']).returncode\n"
                    "time.sleep(2)\ncode")
        assert run.result == "-9", run.messages
        told = [m["content"]["text"] for m in run.messages if m["header"]["msg_type"] == "stream" and "[holdcell]" in m["content"]["text"]]
        assert len(told) == 1 and "out of memory (limit 512 MiB, peak" in told[0], run.messages
        assert c.run("kept").result == "42"
        assert "reason" not in s.kernel(kid) and "event=out_of_memory" in s.log()
        assert os.path.exists(f"/proc/{init}/exe"), "pid 1 goes last"


class HeldAtItsEnd:
    """A process of the host that cannot go, once it is killed, before let_go()."""

    SEIZE, DETACH, CONT, TRACE_EXIT, WALL = 0x4206, 17, 7, 0x40, 0x40000000

    def __init__(self, pid):
        self.pid, self.libc = pid, ctypes.CDLL(None, use_errno=True)
        self.ptrace(self.SEIZE, self.TRACE_EXIT)

    def ptrace(self, request, data=0):
        if self.libc.ptrace(request, self.pid, ctypes.c_void_p(0), ctypes.c_void_p(data)) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def stands(self):
        """it stands at its end"""
        pid, status = os.waitpid(self.pid, os.WNOHANG | self.WALL)
        if pid == 0:
            return False
        assert os.WIFSTOPPED(status), status
        if status >> 16 != 0:
            return True
        self.ptrace(self.CONT, os.WSTOPSIG(status))
        return False

    def let_go(self):
        self.ptrace(self.DETACH)


@pytest.mark.guest
def test_a_kernel_that_takes_long_to_go_is_told_as_out_of_memory_and_as_nothing_else(server_with):
    s = server_with("--memory-mb", "512", "--disk-mb", "64", "--tmp-mb", "64")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        inside = c.run("import os; os.getpid()").result
        pid, = [p for p in descendants_of(s.proc.pid) if status_of(p).get("NSpid", "").split()[1:][-1:] == [inside]]
        held = HeldAtItsEnd(pid)
        c.start("x = bytearray(1 << 30)")
        wait_for(held.stands)
        wait_for(lambda: "event=out_of_memory session=" in s.log())
        time.sleep(3)       # longer than anybody waits for an end that is no kernel's
        assert "event=kernel_exited" not in s.log()
        held.let_go()
        _, said = said_until_restarting(c)
        told = [m["content"]["text"] for m in said if m["header"]["msg_type"] == "stream"]
        assert len(told) == 1 and "the kernel was killed: out of memory (limit 512 MiB, peak 512 MiB)" in told[0], told
        assert s.kernel(kid)["reason"].startswith("out of memory: limit")


BOMB = """
b = []
while True:
    b.append(bytearray(16 << 20))
"""


@pytest.mark.guest
def test_a_kernelspec_whose_first_act_is_a_memory_bomb_is_stopped(server_with, kernel_path):
    kernel_path.add("bomb", ["python3", "{resource_dir}/bomb.py", "{connection_file}"], {"bomb.py": BOMB})
    s = server_with("--memory-mb", "256", "--disk-mb", "32", "--tmp-mb", "32", "--kernel-path", kernel_path.path)
    r = s.request("POST", "/api/kernels", {"name": "bomb"})
    assert r.status == 201, r           # it was started; what it does then is its own affair
    kid = r.json()["id"]
    wait_for(lambda: s.kernel(kid) is None or "out of memory" in s.kernel(kid).get("reason", ""))
    s.delete_kernel(kid)
    assert "out_of_memory=1" in s.log()
    assert s.start_kernel("python3"), "the server is unharmed"


def test_a_kernel_that_cannot_live_is_given_up_and_removed(server_with, kernel_path):
    kernel_path.add("false", ["/bin/false", "{connection_file}"])
    s = server_with("--kernel-path", kernel_path.path)
    before = s.counters()
    r = s.request("POST", "/api/kernels", {"name": "false"})
    assert r.status == 201, r           # its process was started; what becomes of it is told by its states
    kid = r.json()["id"]
    wait_for(lambda: s.request("GET", f"/api/kernels/{kid}").status == 404)

    def back():
        """counters no higher than before (a connection may have been closing then)"""
        now = s.counters()
        return all(now[k] <= before[k] for k in before)
    wait_for(back)


# A kernel at first; every later process of it ends at once.
DIES_LATER = ["sh", "-c", "test -e ~/died && exit 3; : >~/died; exec {resource_dir}/scripted-kernel {connection_file}"]
PAUSES = [0, 0.5, 1, 2, 4]              # seconds before each start, as gateway/records/restarts.c has them


def date_of(m):
    """When the gateway says that this was."""
    return datetime.datetime.fromisoformat(m["header"]["date"].replace("Z", "+00:00"))


def states_until_the_end(c):
    """(statuses that belong to no request, the close code)"""
    try:
        while True:
            c.recv()
    except Ended as e:
        return [m for m in c.seen if m["header"]["msg_type"] == "status" and m["parent_header"] == {}
                and m["content"]["execution_state"] in ("restarting", "dead")], e.args[0]


@pytest.mark.full
def test_an_open_socket_sees_five_restarts_with_growing_pauses_and_one_dead(server_with, kernel_path):
    kernel_path.add_scripted().add_scripted("dies", DIES_LATER)
    s = server_with("--kernel-path", kernel_path.path)
    kid, other = s.start_kernel("dies"), s.start_kernel("scripted")
    with Channels(s, kid) as c, Channels(s, kid) as second, Channels(s, other) as bystander:
        assert c.run("result 1").result == "1"
        cell = c.start("exit 3")
        for told, code in states_until_the_end(c), states_until_the_end(second):
            assert [m["content"]["execution_state"] for m in told] == ["restarting"] * 5 + ["dead"]
            assert code is None             # a close without a code: the client may ask again, and gets the 404
            times = [date_of(m) for m in told]
            for pause, before, after in zip(PAUSES, times, times[1:]):
                # The dates have microseconds, the timers milliseconds.
                assert (after - before).total_seconds() >= pause - 0.01, (pause, before, after)
        assert {m["content"]["status"] for m in c.seen if m["header"]["msg_type"] == "execute_reply"
                and m["parent_header"]["msg_id"] == cell} == {"error"}
        assert s.request("GET", f"/api/kernels/{kid}").status == 404
        with pytest.raises(websocket.WebSocketBadStatusException) as refused:
            Channels(s, kid)
        assert refused.value.status_code == 404
        assert bystander.run("result 2").result == "2"
    assert s.log().count(f"event=kernel_died kernel={kid}") == 6
    assert s.log().count(f"event=kernel_dead kernel={kid}") == 1


# What a kernel says of the protocol, and how the refusal names it; version 4 sent a list of numbers.
VERSIONS = {"list": ("[4,1]", "[4,1]"), "text": ('"4.1"', "4.1"), "newer": ('"6.0"', "6.0"), "nonsense": ('"five"', "five")}


def refusal_of(named):
    return f"the kernel speaks version {named} of the messaging protocol, not 5"


@pytest.mark.parametrize("says, named", full_after(1, VERSIONS.values()), ids=VERSIONS)
def test_a_kernel_of_another_protocol_version_is_refused_and_the_others_go_on(server_with, kernel_path, says, named):
    kernel_path.add_scripted()
    kernel_path.add_scripted("other", ["{resource_dir}/scripted-kernel", "{connection_file}", says])
    s = server_with("--kernel-path", kernel_path.path)
    bystander = s.start_kernel("scripted")
    with Channels(s, bystander) as c:
        assert c.run("result 1").result == "1"
        kid = s.start_kernel("other")
        wait_for(lambda: s.request("GET", f"/api/kernels/{kid}").status == 404)
        told = [x for x in s.log().splitlines() if f"event=kernel_dead kernel={kid}" in x]
        assert len(told) == 1 and "level=error" in told[0] and f'reason="{refusal_of(named)}"' in told[0], told
        assert f"event=kernel_died kernel={kid}" not in s.log(), "no start would make it better"
        assert c.run("result 2").result == "2"
        wait_for(lambda: not [p for p in descendants_of(s.process("launcher"))
                              if read(f"/proc/{p}/cmdline").rstrip("\0").endswith("\0" + says)])


@pytest.mark.full
def test_a_kernel_that_comes_back_with_another_protocol_version_ends_its_cells_with_the_reason(server_with, kernel_path):
    run = "exec {resource_dir}/scripted-kernel {connection_file}"
    kernel_path.add_scripted("turns", ["sh", "-c", f"test -e ~/died && {run} '[4,1]'; : >~/died; {run}"])
    s = server_with("--kernel-path", kernel_path.path)
    kid, other = s.start_kernel("turns"), s.start_kernel("turns")
    with Channels(s, kid) as c, Channels(s, other) as bystander:
        assert c.run("result 1").result == "1"
        c.start("exit 3")
        c.until(lambda m: m["header"]["msg_type"] == "status" and m["content"]["execution_state"] == "restarting")
        held = c.start("result 2")
        told, code = states_until_the_end(c)
        assert [m["content"]["execution_state"] for m in told] == ["restarting", "dead"] and code is None
        own = [m for m in c.seen if m["parent_header"].get("msg_id") == held]
        replies = [m["content"] for m in own if m["header"]["msg_type"] == "execute_reply"]
        assert [(r["status"], r["evalue"]) for r in replies] == [("error", refusal_of("[4,1]"))], own
        assert refusal_of("[4,1]") in "".join(m["content"]["text"] for m in own if m["header"]["msg_type"] == "stream")
        assert s.request("GET", f"/api/kernels/{kid}").status == 404
        assert bystander.run("result 3").result == "3"


def test_a_cell_after_exit_is_never_ok_in_the_kernel_that_goes(shared, kernel):
    with Channels(shared, kernel("python3")) as c:
        leaving, later = c.start("kept = 1; exit()"), c.start("lost = 2")
        assert c.finish(leaving).status == "ok"
        late = c.finish(later)
        assert (late.status, late.ename) == ("error", "KernelDied") and "exited with code 0" in late.stream("stderr")
        assert c.run("'lost' in globals(), 'kept' in globals()").result == "(False, False)"


@pytest.mark.guest
def test_kill_9_of_the_kernel_from_outside_is_noticed(shared, kernel):
    kid = kernel("python3")
    name, took = "kt" + kid[:8], []
    with Channels(shared, kid) as c:
        for _ in range(3):
            c.run(f"import ctypes; ctypes.CDLL(None).prctl(15, b'{name}', 0, 0, 0)")
            pids = [p for p in descendants_of(shared.proc.pid) if read(f"/proc/{p}/comm").strip() == name]
            assert len(pids) == 1
            began = time.monotonic()
            os.kill(pids[0], signal.SIGKILL)
            said_until_restarting(c)            # no cell ran, whose output could tell of it
            took.append(time.monotonic() - began)
            assert "killed by signal 9 (SIGKILL)" in shared.kernel(kid)["reason"]
            assert c.run("3").result == "3"
    assert min(took) < 2 * SLOW, f"it is noticed at once, whatever else the machine does at times: {took}"


@pytest.mark.guest
def test_kill_9_of_the_gateway_keeps_kernels_and_variables(server_with):
    s = server_with()
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("marker = 'alive'").status == "ok"
        old = s.process("gateway")
        os.kill(old, signal.SIGKILL)
        with pytest.raises(Ended):
            while True:
                c.recv()
    s.wait_next("gateway", old)
    assert s.kernel(kid)["id"] == kid
    with Channels(s, kid) as c:
        assert c.run("marker").result == "'alive'"
        assert c.run("input()", answer="typed").result == "'typed'"
    assert s.restart(kid).status == 200
    with Channels(s, kid) as c:
        assert c.run("marker").ename == "NameError"
    assert s.delete_kernel(kid) == 204


@pytest.mark.guest
def test_kill_9_of_the_launcher_ends_every_sandbox_and_a_new_one_serves(server_with):
    s = server_with()
    held, busy = s.start_kernel("python3"), s.start_kernel("python3")
    with Channels(s, held) as c, Channels(s, busy) as d:
        c.run("import subprocess\nchild = subprocess.Popen(['sleep', '98764'], start_new_session=True)")
        d.start("print('in', flush=True)\nwhile True: pass")
        d.until(lambda m: m["header"]["msg_type"] == "stream")
        below = descendants_of(s.process("launcher"))
        assert len([p for p in below if "98764" in read(f"/proc/{p}/cmdline")]) == 1 and len(s.kernels()) == 2
        old = s.process("launcher")
        os.kill(old, signal.SIGKILL)
        # The bound is part of what is promised: no program of a tenant outlives who watches it.
        wait_for(lambda: not any(os.path.exists(f"/proc/{p}") for p in below), 3 * SLOW)
        for socket in c, d:
            with pytest.raises(Ended):
                while True:
                    socket.recv()
    s.wait_next("launcher", old)
    assert s.kernel(held) is None and s.kernel(busy) is None
    new = s.start_kernel("python3")
    with Channels(s, new) as c:
        assert c.run("4").result == "4"
