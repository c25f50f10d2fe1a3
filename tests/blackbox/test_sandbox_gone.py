"""A sandbox that ends from outside: its kernel comes back in a new one, and clients are told the truth."""

import os
import signal

import pytest

from channels import Channels
from server import descendants_of, read, wait_for


def init_of(s):
    """Host pid of the only sandbox's init."""
    pids = [p for p in descendants_of(s.process("launcher"))
            if os.path.basename(read(f"/proc/{p}/cmdline").split("\0")[0]) == "holdcell-init"]
    assert len(pids) == 1, pids
    return pids[0]


def test_a_killed_init_brings_the_kernel_back_in_a_new_sandbox(server_with):
    s = server_with()
    made = s.request("POST", "/api/sessions", {"path": "a.ipynb", "name": "a", "type": "notebook",
                                               "kernel": {"name": "python3"}}).json()
    kid = made["kernel"]["id"]
    with Channels(s, kid) as c, Channels(s, kid) as other:
        assert c.run("open('/home/user/f', 'w').write('x'); marker = 1").status == "ok"
        old = init_of(s)
        cell = c.start("import time; print('runs', flush=True); time.sleep(100)")
        c.until(lambda m: m["header"]["msg_type"] == "stream")
        os.kill(old, signal.SIGKILL)
        run = c.finish(cell)
        assert run.status == "error" and run.reply["metadata"]["holdcell"]["synthetic"] is True
        assert "the sandbox ended" in run.stream("stderr") and "files are gone" in run.stream("stderr")
        for client in (c, other):
            if not [m for m in client.seen if m["content"].get("execution_state") == "restarting"]:
                client.until(lambda m: m["content"].get("execution_state") == "restarting")
        assert c.run("import os; os.path.exists('/home/user/f'), 'marker' in globals()").result == "(False, False)"
        assert other.run("input()", answer="typed").result == "'typed'"
        assert init_of(s) != old
        assert "the sandbox ended" in s.kernel(kid)["reason"]
    assert [(m["id"], m["path"], m["kernel"]["id"]) for m in s.request("GET", "/api/sessions").json()] == \
        [(made["id"], "a.ipynb", kid)]
    assert s.restart(kid).status == 200
    assert s.delete_kernel(kid) == 204
    wait_for(lambda: s.kernels() == [])


@pytest.mark.full
def test_the_next_gateway_knows_the_new_sandbox_and_its_notebook(server_with):
    s = server_with()
    made = s.request("POST", "/api/sessions", {"path": "a.ipynb", "name": "a", "type": "notebook",
                                               "kernel": {"name": "python3"}}).json()
    kid = made["kernel"]["id"]
    with Channels(s, kid) as c:
        assert c.run("0").status == "ok"
        os.kill(init_of(s), signal.SIGKILL)
        c.until(lambda m: m["content"].get("execution_state") == "restarting")
        assert c.run("marker = 'new'").status == "ok"
    old = s.process("gateway")
    os.kill(old, signal.SIGKILL)
    s.wait_next("gateway", old)
    assert [(m["id"], m["kernel"]["id"]) for m in s.request("GET", "/api/sessions").json()] == [(made["id"], kid)]
    with Channels(s, kid) as c:
        assert c.run("marker").result == "'new'"
