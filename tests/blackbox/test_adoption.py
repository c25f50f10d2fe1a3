"""What outlives a gateway that was killed: kernels of other runtimes, notebook sessions; and what ends
a session when no gateway comes back."""

import os
import shutil
import signal
import tempfile
import time

import pytest

from channels import Channels
from server import BIN, wait_for

FOREIGN = ["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"]      # binds in its run folder


def kill_gateway(s):
    old = s.process("gateway")
    os.kill(old, signal.SIGKILL)
    s.wait_next("gateway", old)


# --- a kernel of another runtime -----------------------------------------------------

@pytest.mark.guest
def test_a_foreign_kernel_is_adopted_with_its_variables(server_with, kernel_path):
    s = server_with("--kernel-path", kernel_path.add("foreign", FOREIGN).path)
    kid = s.start_kernel("foreign")
    with Channels(s, kid) as c:
        assert c.run("marker = 'alive'").status == "ok"
    for _ in range(2):                      # an adopted one can be adopted again
        kill_gateway(s)
        assert s.kernel(kid)["name"] == "foreign"
        with Channels(s, kid) as c:
            assert c.run("marker").result == "'alive'"
            assert c.run("input()", answer="typed").result == "'typed'"
            # An interrupt before the code of the cell begins is what ipykernel itself may lose.
            cell = c.start("import time; print('in', flush=True); time.sleep(60)")
            c.until(lambda m: m["header"]["msg_type"] == "stream")
            assert s.interrupt(kid) == 204
            assert c.finish(cell).ename == "KeyboardInterrupt"
    assert s.restart(kid).status == 200
    with Channels(s, kid) as c:
        assert c.run("marker").ename == "NameError"
        assert c.run("input()", answer="again").result == "'again'"
    assert s.delete_kernel(kid) == 204
    assert "event=orphan " not in s.log()


@pytest.mark.guest
def test_a_foreign_kernel_that_works_meanwhile_ends_its_cell(server_with, kernel_path):
    s = server_with("--kernel-path", kernel_path.add("foreign", FOREIGN).path)
    kid = s.start_kernel("foreign")
    with Channels(s, kid) as c:
        c.start("import os, time\nprint('begun', flush=True)\n"
                "while not os.path.exists('/tmp/go'): time.sleep(0.05)\ndone = 'done'")
        c.until(lambda m: m["header"]["msg_type"] == "stream")
        kill_gateway(s)
    assert s.kernel(kid)["execution_state"] == "busy"
    with Channels(s, kid) as c:
        assert s.interrupt(kid) == 204      # reaches the cell that the old gateway sent
        assert c.run("'done' in globals()").result == "False"
    s.wait_state(kid, "idle")


# --- notebook sessions ------------------------------------------------------------------

def sessions(s):
    """What clients see of them, without what moves."""
    return [(m["id"], m["path"], m["name"], m["type"], m["kernel"]["id"], m["kernel"]["name"], m["notebook"])
            for m in s.request("GET", "/api/sessions").json()]


def make(s, path, **more):
    r = s.request("POST", "/api/sessions", {"path": path, "name": path, "type": "notebook",
                                            "kernel": {"name": "python3"}, **more})
    assert r.status == 201, r
    return r.json()


@pytest.mark.guest
@pytest.mark.full
def test_notebook_sessions_are_as_before_when_the_gateway_comes_back(server_with):
    s = server_with()
    first = make(s, "sub/erste \u00fc\u4e2d.ipynb")
    made = [first, make(s, "console-1", type="console", kernel={"id": first["kernel"]["id"]}), make(s, "second.ipynb"),
            make(s, "third.ipynb")]
    assert s.request("PATCH", f"/api/sessions/{made[2]['id']}", {"path": "renamed.ipynb", "name": "new"}).status == 200
    assert s.request("PATCH", f"/api/sessions/{made[3]['id']}", {"kernel": {"name": "python3"}}).status == 200
    gone = make(s, "gone.ipynb")
    assert s.request("DELETE", f"/api/sessions/{gone['id']}").status == 204
    before = sessions(s)
    assert len(before) == 4 and before[2][1:3] == ("renamed.ipynb", "new")
    with Channels(s, first["kernel"]["id"]) as c:
        assert c.run("marker = 1").status == "ok"
    for _ in range(2):
        kill_gateway(s)
        assert sessions(s) == before
        assert s.request("GET", f"/api/sessions/{first['id']}").json()["path"] == first["path"]
    # ... and they are what they were: the same path is the same session with the same variables
    assert make(s, first["path"])["id"] == first["id"]
    with Channels(s, first["kernel"]["id"]) as c:
        assert c.run("marker").result == "1"
    assert s.request("DELETE", f"/api/sessions/{made[2]['id']}").status == 204
    later = make(s, "later.ipynb")
    assert [row[0] for row in sessions(s)] == [made[0]["id"], made[1]["id"], made[3]["id"], later["id"]]


@pytest.mark.full
def test_more_sessions_than_a_note_holds_cost_only_themselves(server_with):
    s = server_with()
    first = make(s, "first.ipynb")
    for i in range(8):
        make(s, f"{i}" * 3000, kernel={"id": first["kernel"]["id"]})
    assert len(sessions(s)) == 9
    assert "event=session_not_kept" in s.log()
    kill_gateway(s)
    left = sessions(s)
    assert left[0][1] == "first.ipynb" and 1 < len(left) < 9
    with Channels(s, first["kernel"]["id"]) as c:
        assert c.run("1").result == "1"


# --- no gateway comes back ---------------------------------------------------------------

@pytest.fixture
def breakable(server_with):
    """Factory: a server whose gateway is a copy of the program, which .break_gateway() makes unusable."""
    d = tempfile.mkdtemp(prefix="holdcell-gateway-")
    os.chmod(d, 0o755)
    path = os.path.join(d, "holdcell")

    shutil.copy(BIN, path)                  # the launcher has it open: another file there changes nothing
    os.chmod(path, 0o755)

    def make_server(*options):
        s = server_with(*options, env={"HOLDCELL_GATEWAY": path})
        s.break_gateway = lambda: os.chmod(path, 0o644)
        s.mend_gateway = lambda: os.chmod(path, 0o755)
        return s
    yield make_server
    shutil.rmtree(d)


@pytest.mark.full
def test_an_orphaned_session_ends_at_its_deadline(breakable):
    s = breakable("--orphan-timeout", "3")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("marker = 1").status == "ok"
    time.sleep(5)                           # a gateway that lives moves the deadline on
    with Channels(s, kid) as c:
        assert c.run("marker").result == "1"
    s.break_gateway()
    os.kill(s.process("gateway"), signal.SIGKILL)
    wait_for(lambda: s.kernels() == [])
    assert "deadline" in s.log()
    s.mend_gateway()
    wait_for(s.answers)
    assert s.request("GET", "/api/kernels").json() == []


@pytest.mark.parametrize("options", [(), pytest.param(("--orphan-timeout", "0"), marks=pytest.mark.full)], ids=["default", "never"])
def test_a_gateway_that_comes_back_in_time_finds_the_session(breakable, options):
    s = breakable(*options)
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("marker = 1").status == "ok"
    s.break_gateway()
    os.kill(s.process("gateway"), signal.SIGKILL)
    wait_for(lambda: s.log().count("event=gateway_not_started") >= 3)
    s.mend_gateway()
    wait_for(s.answers)
    with Channels(s, kid) as c:
        assert c.run("marker").result == "1"


@pytest.mark.full
def test_who_was_stopped_together_with_the_gateway_ends_nothing(server_with):
    s = server_with("--orphan-timeout", "3")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("marker = 1").status == "ok"
    both = [s.process("gateway"), s.process("launcher")]
    for pid in both:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(9)                           # as a paused container
    for pid in reversed(both):
        os.kill(pid, signal.SIGCONT)
    wait_for(s.answers)
    time.sleep(4)
    with Channels(s, kid) as c:
        assert c.run("marker").result == "1"
