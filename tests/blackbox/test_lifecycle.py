"""Ends, interrupts and the surroundings of a kernel's process, and which kernelspec a request gets."""

import os
import time

import pytest

from channels import Channels
from server import SLOW, descendants_of, read, wait_for
from test_metrics import Metrics

IPYKERNEL = ["python3", "-P", "-m", "ipykernel_launcher", "-f", "{connection_file}"]

DEAF = """
import signal, time
for s in range(1, 65):
    try:
        signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
time.sleep(1e6)
"""

ASKED = """
import sys
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp

sys.modules["asked"] = sys      # the cell reads sys.asked
sys.asked = 0

class Asked(IPythonKernel):
    async def interrupt_request(self, stream, ident, parent):
        sys.asked += 1
        self.session.send(stream, "interrupt_reply", {"status": "ok"}, parent, ident=ident)

IPKernelApp.launch_instance(kernel_class=Asked)
"""


def called(server, word):
    """Pids of processes below the launcher with that word on their command line."""
    return [p for p in descendants_of(server.process("launcher")) if word in read(f"/proc/{p}/cmdline")]


def test_whatever_a_gateway_left_the_next_server_starts(server_with):
    s = server_with()
    s.stop()
    at = os.open(s.state + "/gateway", os.O_RDONLY)
    for _ in range(500):
        os.mkdir("d", 0o700, dir_fd=at)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=at))
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    s.start()
    assert not {"d", "f"} & set(os.listdir(s.state + "/gateway"))


# --- ends --------------------------------------------------------------------------------

def test_a_kernel_that_ignores_everything_is_deleted_in_time(server_with, kernel_path):
    kernel_path.add("deaf", ["python3", "{resource_dir}/deaf.py", "{connection_file}"], {"deaf.py": DEAF})
    s = server_with("--kernel-path", kernel_path.path)
    kid = s.start_kernel("deaf")
    assert len(wait_for(lambda: called(s, "deaf.py"))) == 1
    start = time.monotonic()
    assert s.delete_kernel(kid) == 204
    assert time.monotonic() - start < 11 * SLOW
    assert called(s, "deaf.py") == []
    assert s.delete_kernel(kid) == 404


def test_a_busy_kernel_is_deleted_in_time_with_all_that_it_started(server_with):
    s = server_with()
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        c.start("import subprocess, time\n"
                "for i in range(3): subprocess.Popen(['sleep', '98765'], start_new_session=i % 2 == 0)\n"
                "time.sleep(600)")
        wait_for(lambda: len(called(s, "98765")) == 3)
        start = time.monotonic()
        assert s.delete_kernel(kid) == 204
        assert time.monotonic() - start < 6 * SLOW
    assert called(s, "98765") == [] and s.kernels() == []


@pytest.mark.full
def test_a_kernel_that_only_exits_is_started_again_five_times(server_with, kernel_path):
    kernel_path.add("brief", ["/bin/false", "{connection_file}"])
    s = server_with("--kernel-path", kernel_path.path)
    start = time.monotonic()
    kid = s.start_kernel("brief")
    wait_for(lambda: s.kernel(kid) is None)
    assert time.monotonic() - start < 25 * SLOW
    assert s.log().count(f"event=kernel_died kernel={kid}") == 6
    assert f"event=kernel_dead kernel={kid}" in s.log()


def test_a_program_that_is_not_there_is_an_answer_and_no_kernel(server_with, kernel_path):
    kernel_path.add("absent", ["no-such-program", "{connection_file}"])
    s = server_with("--kernel-path", kernel_path.path)
    before = s.counters()
    r = s.request("POST", "/api/kernels", {"name": "absent"})
    assert r.status == 500 and "no-such-program" in r.json()["message"]
    assert s.request("GET", "/api/kernels").json() == []
    wait_for(lambda: all(now <= before[k] for k, now in s.counters().items()))    # a connection closed meanwhile


# --- restarts ------------------------------------------------------------------------------

# Whether it ends by the interrupt before a restart, or only with its process.
RUNNING = {"gives-way": "stale_0 = 1\nprint('in', flush=True)\nimport time; time.sleep(600)",
           "stays": "stale_0 = 1\nprint('in', flush=True)\nimport time\nwhile True:\n    try:\n        time.sleep(600)\n"
                    "    except KeyboardInterrupt:\n        pass"}


@pytest.mark.parametrize("how", [pytest.param("gives-way", marks=pytest.mark.full), "stays"])
def test_what_was_asked_before_a_restart_is_never_run_by_the_new_kernel(shared, kernel, how):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        sent = [c.start(RUNNING[how])]
        c.until(lambda m: m["header"]["msg_type"] == "stream")
        sent += [c.start(f"stale_{i} = 1") for i in range(1, 21)]
        asked = c.send("kernel_info_request", {}, "control")    # its answer: all before it is in the server's hands
        c.until(lambda m: m["header"]["msg_type"] == "kernel_info_reply" and m["parent_header"]["msg_id"] == asked)
        assert shared.restart(kid).status == 200
        after = c.start("runs = globals().get('runs', 0) + 1\nprint('run', runs, flush=True)")
        assert c.finish(after).status == "ok"
        assert c.run("[n for n in dir() if n.startswith('stale_')], runs").result == "([], 1)"
        for msg_id in [*sent, after]:
            own = [m for m in c.seen if m["parent_header"].get("msg_id") == msg_id]
            ends = [m["content"]["status"] for m in own if m["header"]["msg_type"] == "execute_reply"]
            assert len(ends) == 1, ends
            if msg_id in sent and (how == "stays" or msg_id == sent[0]):
                assert ends[0] in ("error", "aborted"), "nobody ran it: no kernel, old or new"
            states = [m["content"]["execution_state"] for m in own if m["header"]["msg_type"] == "status"]
            assert states.count("idle") == 1 and states[-1] == "idle", states
        assert "".join(m["content"]["text"] for m in c.seen if m["header"]["msg_type"] == "stream"
                       and m["parent_header"].get("msg_id") == after) == "run 1\n"


def test_a_client_that_asks_for_a_restart_by_message_gets_a_fresh_kernel_every_time(server_with):
    """shutdown_request with restart: one time more than a kernel may die in a row, and none of them counts as a death."""
    s = server_with()
    kid = s.start_kernel("python3")
    pids = set()
    with Channels(s, kid) as c:
        for i in range(6):
            assert c.run(f"marker = {i}").status == "ok"
            pids |= set(s.kernels())
            asked = c.send("shutdown_request", {"restart": True}, "control")
            reply = c.until(lambda m: m["header"]["msg_type"] == "shutdown_reply")
            assert reply["parent_header"]["msg_id"] == asked and reply["content"]["restart"] is True
            c.until(lambda m: m["header"]["msg_type"] == "status" and m["content"]["execution_state"] == "restarting")
            assert c.run("'marker' in globals()").result == "False"
        assert len(pids | set(s.kernels())) == 7, "a process of its own each time"
        assert s.kernel(kid)["id"] == kid
        assert Metrics(s).all("kernel_restarts_total") == {(("cause", "requested"),): 6}
        assert "died" not in "".join(m["content"]["text"] for m in c.seen if m["header"]["msg_type"] == "stream")
        assert c.run("import os; os._exit(3)").status == "error"
        assert c.run("'first death'").result == "'first death'", "it has all its restarts left"
    assert Metrics(s)("kernel_restarts_total", cause="automatic") == 1


# --- interrupts ------------------------------------------------------------------------------

def test_a_kernel_that_wants_a_message_gets_no_signal(server_with, kernel_path):
    kernel_path.add("asked", ["python3", "{resource_dir}/asked.py", "-f", "{connection_file}"], {"asked.py": ASKED},
                    interrupt_mode="message", language="python")
    s = server_with("--kernel-path", kernel_path.path)
    kid = s.start_kernel("asked")
    with Channels(s, kid) as c:
        assert c.run("import sys, time").status == "ok"
        sent = c.start("print('in')\nwhile not sys.asked: time.sleep(0.05)\ntime.sleep(1)\nsys.asked")
        c.until(lambda m: m["header"]["msg_type"] == "stream")
        assert s.interrupt(kid) == 204
        run = c.finish(sent)
        assert run.status == "ok" and run.result in ("1", "2")      # an interrupt without effect is sent once more


# --- the process -------------------------------------------------------------------------------

def inside(s, code, **model):
    kid = s.start_kernel(model.pop("name", "python3"), **model)
    with Channels(s, kid) as c:
        run = c.run(f"import os\n{code}")
    s.delete_kernel(kid)
    assert run.status == "ok", run.reply
    return eval(run.result)


def test_variables_come_from_who_may_give_them(server_with):
    s = server_with("--env-allow", "ALLOWED", "--env-inherit", "PASSED,UNSET_ANYWHERE",
                    env={"PASSED": "yes", "SECRET": "no", "KG_AUTH_TOKEN": "t"})
    got = inside(s, "dict(os.environ)", env={"KERNEL_X": "1", "ALLOWED": "2", "OTHER": "3", "KERNEL_GATEWAY": "9",
                                             "PASSED": "4", "KG_AUTH_TOKEN": "5"})
    assert (got["KERNEL_X"], got["ALLOWED"], got["KERNEL_GATEWAY"], got["PASSED"]) == ("1", "2", "1", "yes")
    assert not {"OTHER", "SECRET", "KG_AUTH_TOKEN", "UNSET_ANYWHERE", "HOLDCELL_TOKEN"} & set(got)


def test_a_kernelspecs_variables_are_expanded_and_beat_the_requests(server_with, kernel_path):
    kernel_path.add("env", IPYKERNEL, language="python", env={"A": "${HOME}/x", "B": "${NOPE}", "KERNEL_C": "spec"})
    s = server_with("--kernel-path", kernel_path.path)
    got = inside(s, "{k: os.environ.get(k) for k in ('A', 'B', 'KERNEL_C', 'HOME')}", name="env",
                 env={"KERNEL_C": "request"})
    assert got == {"A": got["HOME"] + "/x", "B": "${NOPE}", "KERNEL_C": "spec", "HOME": got["HOME"]}


@pytest.mark.parametrize("path, cwd", [("nb.ipynb", ""), ("no/such/nb.ipynb", ""), ("../../etc/nb.ipynb", ""),
                                       ("/etc/x.ipynb", "")])
def test_a_path_leads_nowhere_but_home(shared, path, cwd):
    got = inside(shared, "(os.getcwd(), os.path.expanduser('~'))", path=path)
    assert got[0] == got[1] + cwd


def test_the_process_begins_with_nothing_open_and_nothing_blocked(shared):
    got = inside(shared, """
import signal, sys
ppid = os.environ.get("JPY_PARENT_PID")
{"fds": [os.path.basename(os.readlink(f"/proc/self/fd/{n}")) for n in os.listdir("/proc/self/fd")
         if os.path.exists(f"/proc/self/fd/{n}") and os.readlink(f"/proc/self/fd/{n}").startswith("/")
         and not os.readlink(f"/proc/self/fd/{n}").startswith(("/proc/", "/dev/null", "/memfd:", "/dev/urandom"))],
 "stdin": os.read(0, 1), "leader": os.getsid(0) == os.getpid() == os.getpgid(0),
 "parent": ppid in (None, "1", str(os.getppid())), "mask": signal.pthread_sigmask(signal.SIG_BLOCK, []),
 "chld": signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL}
""")
    assert got == {"fds": [f for f in got["fds"] if f.startswith("history.sqlite")], "stdin": b"", "leader": True,
                   "parent": True, "mask": set(), "chld": True}


# --- which kernelspec ------------------------------------------------------------------------------

def names_by_all_routes(s, asked):
    """What a kernel is called that is asked for by that name (None: by none), on every route that makes one."""
    kernel = {} if asked is None else {"name": asked}
    out = []
    r = s.request("POST", "/api/kernels", kernel)
    out.append(r.json()["name"] if r.status == 201 else r.status)
    r = s.request("POST", "/api/sessions", {"path": f"{asked}.ipynb", "type": "notebook", "kernel": kernel})
    out.append(r.json()["kernel"]["name"] if r.status == 201 else r.status)
    r = s.request("POST", "/api/sessions", {"path": f"{asked}2.ipynb", "type": "notebook", "kernel": {"name": "python3"}})
    if asked is not None and r.status == 201:
        r = s.request("PATCH", f"/api/sessions/{r.json()['id']}", {"kernel": kernel})
        out.append(r.json()["kernel"]["name"] if r.status == 200 else r.status)
    for k in s.request("GET", "/api/kernels").json():
        s.delete_kernel(k["id"])
    return out


@pytest.mark.full
def test_the_default_kernelspec_is_for_who_names_none(server_with, kernel_path):
    kernel_path.add("other", IPYKERNEL, language="python")
    s = server_with("--kernel-path", kernel_path.path, "--default-kernel", "other")
    assert s.request("GET", "/api/kernelspecs").json()["default"] == "other"
    assert names_by_all_routes(s, None) == ["other", "other"]
    assert names_by_all_routes(s, "python3") == ["python3", "python3", "python3"]
    assert names_by_all_routes(s, "nosuch") == [500, 501, 501]


def test_a_forced_kernelspec_is_for_everybody(server_with, kernel_path):
    kernel_path.add("other", IPYKERNEL, language="python")
    s = server_with("--kernel-path", kernel_path.path, "--force-kernel", "other", "--default-kernel", "python3")
    assert names_by_all_routes(s, None) == ["other", "other"]
    assert names_by_all_routes(s, "python3") == ["other", "other", "other"]
    assert names_by_all_routes(s, "nosuch") == ["other", "other", "other"]


def test_a_hidden_kernelspec_is_unknown_everywhere(server_with, kernel_path):
    kernel_path.add("hidden", IPYKERNEL, {"logo-64x64.png": "x"}, language="python")
    s = server_with("--kernel-path", kernel_path.path, "--allowed-kernels", "python3")
    assert list(s.request("GET", "/api/kernelspecs").json()["kernelspecs"]) == ["python3"]
    for path in ("/api/kernelspecs/hidden", "/api/kernelspecs/HIDDEN", "/api/kernelspecs?user=bob/hidden",
                 "/kernelspecs/hidden/logo-64x64.png"):
        r, unknown = s.request("GET", path), s.request("GET", path.replace("hidden", "nosuch").replace("HIDDEN", "NOSUCH"))
        assert r.status == unknown.status == 404, path
        assert r.body == unknown.body.replace(b"nosuch", b"hidden").replace(b"NOSUCH", b"HIDDEN"), path
    assert names_by_all_routes(s, "hidden") == names_by_all_routes(s, "nosuch") == [500, 501, 501]
