"""Culling of idle kernels. Times are short here; what must survive is watched for several times as long."""

import os
import re
import signal
import time

import pytest

from channels import Channels, Ended
from server import DEADLINE, SLOW, wait_for

FAST = ("--cull-idle-timeout", "2", "--cull-interval", "0.5")
WATCH = 6 * SLOW        # three times the time-out


def gone(server, kid):
    def is_gone():
        """the kernel culled"""
        return server.kernel(kid) is None
    return wait_for(is_gone)


def lives(server, kid, seconds=WATCH):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert server.kernel(kid) is not None, server.log()[-2000:]
        time.sleep(0.2)


def culled(server, kid):
    """The fields of the line that tells why."""
    m = re.search(rf"event=kernel_culled kernel={kid} (.*)", server.log())
    assert m, server.log()[-2000:]
    return dict(f.split("=") for f in m.group(1).split())


def test_an_idle_kernel_goes_though_it_is_looked_at_and_its_session_goes_with_it(server_with):
    s = server_with(*FAST)
    r = s.request("POST", "/api/sessions", {"path": "a.ipynb", "type": "notebook", "name": "a",
                                            "kernel": {"name": "python3"}})
    assert r.status == 201, r
    kid = r.json()["kernel"]["id"]
    gone(s, kid)                    # which asks for it all the time
    assert s.request("GET", "/api/sessions").json() == []
    assert s.request("GET", f"/api/sessions/{r.json()['id']}").status == 404
    said = culled(s, kid)
    assert (said["limit_s"], said["busy"], said["connections"]) == ("2", "0", "0")
    wait_for(lambda: not s.kernels())


@pytest.mark.full
def test_a_connected_kernel_stays_whatever_its_client_does_not_do(server_with):
    s = server_with(*FAST)
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("x = 5").status == "ok"
        lives(s, kid)
        assert c.run("x").result == "5"
    gone(s, kid)


@pytest.mark.full
def test_a_kernel_at_work_stays_and_its_time_begins_when_the_work_ends(server_with):
    s = server_with(*FAST)
    kid = s.start_kernel("python3")
    c = Channels(s, kid)
    assert c.run("import time").status == "ok"
    c.start(f"time.sleep({WATCH})")
    s.wait_state(kid, "busy")
    c.close()
    start = time.monotonic()
    gone(s, kid)
    assert time.monotonic() - start > WATCH + 1     # 2 s after the end of the cell, not at once
    assert float(culled(s, kid)["idle_s"]) < WATCH


FORGED = """
k = get_ipython().kernel
k.session.send(k.iopub_socket, 'status', {'execution_state': 'busy'}, ident=b'kernel.status',
               parent={'header': {'msg_id': 'nobodys', 'session': 'nobodys', 'msg_type': 'execute_request'}})
"""
PRINTS = """
import threading, time
def go_on():
    while True: time.sleep(0.2); print('still here', flush=True)
threading.Thread(target=go_on, daemon=True).start()
"""


@pytest.mark.parametrize("code", [FORGED, PRINTS], ids=["a-forged-busy", "output-without-end"])
def test_what_a_kernel_says_of_itself_does_not_keep_it(server_with, code):
    s = server_with(*FAST)
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run(code).status == "ok"
    gone(s, kid)
    assert culled(s, kid)["busy"] == "0"


@pytest.mark.full
def test_questions_for_kernel_info_and_reconnects_do_not_keep_it(server_with):
    s = server_with("--cull-connected", *FAST)
    kid = s.start_kernel("python3")

    def ask():
        if s.kernel(kid) is None:
            return True
        with Channels(s, kid) as c:
            c.send("kernel_info_request", {})
            c.until(lambda m: m["header"]["msg_type"] == "kernel_info_reply", DEADLINE)
        return False
    try:
        wait_for(ask, every=0.2)
    except (Ended, OSError):
        pass                        # it was culled under our hands
    except Exception as e:
        assert "404" in str(e), e   # or just before we connected
    gone(s, kid)


@pytest.mark.full
def test_a_connected_kernel_that_is_culled_closes_its_sockets_as_a_deleted_one_does(server_with):
    s = server_with("--cull-connected", *FAST)
    kid = s.start_kernel("python3")
    c = Channels(s, kid)
    with pytest.raises(Ended) as end:
        while True:
            c.recv()
    assert end.value.args == (1000,)
    assert s.kernel(kid) is None
    assert culled(s, kid)["connections"] == "1"


@pytest.mark.full
def test_a_busy_kernel_is_culled_when_that_is_asked_for(server_with):
    s = server_with("--cull-busy", "--cull-connected", *FAST)
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        c.start("import time; time.sleep(600)")
        gone(s, kid)
    assert culled(s, kid)["busy"] == "1"


@pytest.mark.full
def test_a_kernelspec_has_its_own_time(server_with, kernel_path):
    python = ["python3", "-P", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel_path.add("brief", python, metadata={"cull_idle_timeout": 2}, language="python")
    kernel_path.add("lasting", python, metadata={"cull_idle_timeout": 0}, language="python")
    s = server_with("--kernel-path", kernel_path.path, "--cull-idle-timeout", "600", "--cull-interval", "0.5")
    brief, lasting = s.start_kernel("brief"), s.start_kernel("lasting")
    gone(s, brief)
    assert culled(s, brief)["limit_s"] == "2"
    lives(s, lasting, 1)
    s = server_with("--kernel-path", kernel_path.path, *FAST)
    other, lasting = s.start_kernel("python3"), s.start_kernel("lasting")
    gone(s, other)
    lives(s, lasting)


@pytest.mark.full
def test_a_new_gateway_goes_on_with_the_clock(server_with):
    s = server_with("--cull-idle-timeout", "600", "--cull-interval", "0.5")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("x = 5").status == "ok"
    before = s.wait_state(kid, "idle") and s.kernel(kid)["last_activity"]
    time.sleep(12)                  # the note is renewed every 10 s
    gateway = s.process("gateway")
    os.kill(gateway, signal.SIGKILL)
    wait_for(lambda: s.process("gateway") not in (0, gateway) and s.answers())
    s.wait_state(kid, "idle")
    assert s.kernel(kid)["last_activity"] == before


@pytest.mark.parametrize("option, value", [("--cull-idle-timeout", "-1"), ("--cull-interval", "0"),
                                           ("--cull-interval", "soon")])
def test_times_that_are_none_are_refused_by_name(option, value):
    import subprocess
    from server import BIN
    r = subprocess.run([BIN, "serve", option, value], capture_output=True, text=True, timeout=60)
    assert r.returncode == 2 and option in r.stderr, r
