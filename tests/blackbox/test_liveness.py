"""A kernel that lives and does not answer is called unresponsive: over REST, reversibly, and nothing else."""

import os
import signal
import time

import pytest

from channels import Channels
from server import descendants_of, read, wait_for

LOSS = 60               # a loss is told after 10 to 20 s on an idle machine


def kernel_process(server):
    """The only ipykernel below a server of the test's own."""
    return next((p for p in descendants_of(server.proc.pid) if "kernel" in read(f"/proc/{p}/cmdline")
                 and "python" in read(f"/proc/{p}/cmdline").split("\0")[0]
                 and "holdcell" not in os.path.basename(read(f"/proc/{p}/cmdline").split("\0")[0])), 0)


def states_told(c):
    return {m["content"].get("execution_state") for m in c.seen if m["header"]["msg_type"] == "status"}


@pytest.mark.full
def test_a_closed_heartbeat_is_told_over_rest_alone_and_the_kernel_goes_on(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        closed = c.run("import gc, ipykernel.heartbeat as hb\n"
                       "found = [o for o in gc.get_objects() if isinstance(o, hb.Heartbeat)]\n"
                       "for o in found: o.socket.close(0)\n"
                       "len(found)")
        assert closed.result == "1"
        shared.wait_state(kid, "unresponsive", LOSS)
        assert "heartbeat" in shared.kernel(kid)["reason"]
        # It is described, not punished: cells run, variables stay, sockets hear nothing of it.
        assert c.run("len(found)").result == "1"
        assert states_told(c) <= {"busy", "idle", "starting"}
        assert shared.restart(kid).status == 200
        assert c.run("1 + 1").result == "2"
        shared.wait_state(kid, "idle")
        assert "reason" not in shared.kernel(kid)


@pytest.mark.full
def test_a_stopped_kernel_is_unresponsive_until_it_goes_on(server_with):
    s = server_with()
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        c.run("x = 41")
        pid = kernel_process(s)
        assert pid, "no kernel process found"

        def fds():
            return len(os.listdir(f"/proc/{s.process('gateway')}/fd"))
        os.kill(pid, signal.SIGSTOP)
        try:
            s.wait_state(kid, "unresponsive", LOSS)
            before = fds()
            # A cell that waits for the stopped kernel is a busy kernel, and the reason stays.
            msg_id = c.start("x + 1")
            s.wait_state(kid, "busy")
            assert s.kernel(kid)["reason"].startswith("unresponsive")
        finally:
            os.kill(pid, signal.SIGCONT)
        assert c.finish(msg_id).result == "42"
        s.wait_state(kid, "idle")
        wait_for(lambda: "reason" not in s.kernel(kid))
        wait_for(lambda: fds() <= before)   # a connection of ours may just be closing
        assert states_told(c) <= {"busy", "idle", "starting"}
    assert "event=kernel_unresponsive" in s.log()


@pytest.mark.full
def test_a_cell_that_holds_the_interpreter_lock_is_busy_and_not_unresponsive(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        c.run("import ctypes")
        # PyDLL keeps the lock: no thread of Python runs meanwhile, the heartbeat's C loop does.
        msg_id = c.start("ctypes.PyDLL(None).sleep(25)")
        shared.wait_state(kid, "busy")
        end = time.monotonic() + 22         # longer than a loss takes
        while time.monotonic() < end:
            model = shared.kernel(kid)
            assert model["execution_state"] == "busy" and "reason" not in model, model
            time.sleep(0.5)
        assert c.finish(msg_id).status == "ok"
        for _ in range(20):
            assert shared.kernel(kid)["execution_state"] in ("busy", "idle")
            time.sleep(0.1)
        assert "unresponsive" not in states_told(c)


@pytest.mark.full
def test_probes_are_no_traffic_of_clients_and_no_activity(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        c.run("1")
        shared.wait_state(kid, "idle")
        before, last = len(c.seen), shared.kernel(kid)["last_activity"]
        with pytest.raises(TimeoutError):
            c.recv(timeout=25)              # several beats and at least one question
        assert len(c.seen) == before
        assert shared.kernel(kid)["last_activity"] == last
