"""@jupyterlab/services, the library under JupyterLab and VS Code, in Node: with the v1 subprotocol and without."""

import os
import signal

import pytest

V1 = "v1.kernel.websocket.jupyter.org"

pytestmark = pytest.mark.skipif("HCONF_NODE_MODULES" not in os.environ, reason="no packages of tests/node (HCONF_NODE_MODULES)")


@pytest.fixture(params=[False, True], ids=["v1", "legacy"])
def run(request, node, server):
    def run(scenario):
        got = node(server, scenario, request.param).result()
        if "protocol" in got:
            assert got["protocol"] == ("" if request.param else V1)
        return got
    run.legacy = request.param
    return run


def test_the_states_go_from_starting_to_idle_and_by_busy_to_idle(run):
    got = run("statuses")["statuses"]
    before, after = got[:got.index("|")], got[got.index("|") + 1:]
    assert before[0] in ("unknown", "starting") and before[-1] == "idle", got
    assert "dead" not in got and "autorestarting" not in got, got
    assert "busy" in after and after[-1] == "idle", got


def test_managers_list_start_and_shut_down(run):
    got = run("kernel")
    assert "python3" in got["specNames"] and got["def"] == "python3" and got["language"] == "python"
    assert got["one"]["result"] == "42" and got["listed"] and got["statusAfter"] == "dead"


def test_sessions_are_made_renamed_moved_and_ended(run):
    got = run("sessions")
    assert got["one"]["result"] == "7" and got["two"]["result"] == "8" and got["changed"]
    assert "n2.ipynb" in got["paths"] and "n1.ipynb" not in got["paths"] and "n2.ipynb" not in got["left"]


@pytest.mark.both
def test_interrupt_restart_and_input(run):
    got = run("interrupt_restart")
    assert got["broken"]["ename"] == "KeyboardInterrupt"
    assert got["after"]["result"] == "False" and got["input"]["result"] == "'typed'"


def test_a_dying_kernel_is_seen_to_restart_and_works_again(run):
    got = run("autorestart")
    assert got["seen"] and got["back"] and got["one"]["result"] == "2"
    states = got["statuses"]
    assert "idle" in states[states.index("autorestarting"):] and "dead" not in states[:-1]


def test_comm_messages_carry_buffers_both_ways(run):
    got = run("comm")
    assert got["n"] == 42 and got["bytes"] == [3, 2, 1]


@pytest.mark.full
def test_a_hundred_requests_at_once_a_big_output_and_the_other_requests(run):
    got = run("many")
    assert got["results"] == [str(i + 1) for i in range(100)] and got["texts"] == [str(i) for i in range(100)]
    assert "import" in got["matches"] and got["found"] is True and got["whole"] == "incomplete"
    assert len(got["history"]) == 1
    assert got["big"] == 20_000_001 and got["failed"]["ename"] == "ValueError"


def test_two_connections_to_one_kernel(run):
    got = run("twoConnections")
    assert got["two"]["result"] == "3"
    kinds = [kind for channel, kind in got["seen"] if channel == "iopub"]
    assert "stream" in kinds and "execute_input" in kinds
    assert [kind for channel, kind in got["seen"] if channel == "shell"] == ["execute_reply"]


@pytest.mark.both
def test_the_gateway_is_killed_and_kernel_and_session_are_found_again(node, server, run):
    one = node(server, "survive", run.legacy)
    assert one.until("READY"), one.proc.communicate(timeout=60)
    os.kill(server.process("gateway"), signal.SIGKILL)
    got = one.result()
    assert got["lost"] and got["back"] and got["one"]["result"] == "499500" and got["listed"]
    assert got["protocol"] == ("" if run.legacy else V1)
    assert "kept.ipynb" in got["paths"]
