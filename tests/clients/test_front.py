"""jupyter_server with its kernels in this server, as JupyterLab's `--gateway-url` sets it up: every act of a user by way of it,
with and without a token between the two, with and without KERNEL_USERNAME."""

import json
import os
import subprocess
import sys
import types

import pytest
import websocket
from channels import Channels
from server import DEADLINE, Server, ends_with_us, free_port, wait_for

FRONT_TOKEN = "fr0nt-t0ken"


@pytest.fixture(params=["token", "no-token"])
def behind(request, server, open_server):
    return server if request.param == "token" else open_server


def end(proc):
    proc.terminate()
    try:
        proc.wait(10)
    except subprocess.TimeoutExpired:
        proc.kill()
        proc.wait()


@pytest.fixture(params=[None, pytest.param("ann", marks=pytest.mark.full)], ids=["no-user", "user"])
def front(request, behind, tmp_path):
    """A jupyter_server with REST and channels as a Server of the black-box tests has them."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KERNEL_", "JUPYTER_"))}
    env.update(HOME=str(tmp_path), JUPYTER_GATEWAY_AUTH_TOKEN=behind.token)
    if request.param:
        env["KERNEL_USERNAME"] = request.param
    port = free_port()
    argv = [os.path.join(os.path.dirname(sys.executable), "jupyter-server"), "--no-browser", "--allow-root",
            "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={FRONT_TOKEN}", f"--ServerApp.root_dir={tmp_path}",
            "--ServerApp.terminals_enabled=False", f"--gateway-url=http://127.0.0.1:{behind.port}"]
    with open(tmp_path / "front.log", "wb") as log:
        proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=tmp_path,
                                preexec_fn=ends_with_us(None))
    s = types.SimpleNamespace(port=port, token=FRONT_TOKEN, tls=None, user=request.param, behind=behind)
    for name in ("connection", "request", "start_kernel", "kernel", "delete_kernel", "interrupt", "restart", "wait_state"):
        setattr(s, name, types.MethodType(getattr(Server, name), s))

    def answers():
        """jupyter_server answering GET /api"""
        assert proc.poll() is None, (tmp_path / "front.log").read_text()[-3000:]
        try:
            return s.request("GET", "/api").status == 200
        except OSError:
            return False
    try:
        wait_for(answers, 3 * DEADLINE)
        yield s
    finally:
        end(proc)
        for k in behind.request("GET", "/api/kernels").json():      # of a test that failed: the next ones count theirs alone
            behind.delete_kernel(k["id"])


def test_every_act_of_a_user_works_by_way_of_jupyter_server(front):
    specs = front.request("GET", "/api/kernelspecs").json()
    assert specs["default"] == "python3" and "python3" in specs["kernelspecs"]
    r = front.request("GET", "/api/kernelspecs/python3")
    assert r.status == 200 and r.json()["name"] == "python3" and r.json()["spec"]["language"] == "python", r
    kid = front.start_kernel("python3")
    assert [k["id"] for k in front.request("GET", "/api/kernels").json()] == [kid]
    assert [k["id"] for k in front.behind.request("GET", "/api/kernels").json()] == [kid], "it is the same kernel"
    with Channels(front, kid) as c:
        assert c.run("import os; x = 6 * 7\nos.environ.get('KERNEL_USERNAME'), os.environ.get('KERNEL_GATEWAY'), x").result \
            == f"({front.user!r}, '1', 42)"
        assert c.run("input()", answer="typed").result == "'typed'"
        cell = c.start("print('in', flush=True)\nimport time; time.sleep(600)")
        c.until(lambda m: m["header"]["msg_type"] == "stream")
        assert front.interrupt(kid) == 204
        assert c.finish(cell).ename == "KeyboardInterrupt"
        assert c.run("x").result == "42"
    assert front.restart(kid).status == 200
    with Channels(front, kid) as c:
        assert c.run("x").ename == "NameError"
        assert c.run("2 + 2").result == "4"
    r = front.request("POST", "/api/sessions", {"path": "a.ipynb", "type": "notebook", "name": "a", "kernel": {"id": kid}})
    assert r.status == 201 and r.json()["kernel"]["id"] == kid, r
    assert front.request("DELETE", f"/api/sessions/{r.json()['id']}").status == 204      # its kernel goes with it
    assert front.kernel(kid) is None and front.behind.kernel(kid) is None
    kid = front.start_kernel("python3")
    assert front.delete_kernel(kid) == 204
    assert front.kernel(kid) is None and front.behind.request("GET", "/api/kernels").json() == []


@pytest.mark.full
def test_a_kernel_that_is_gone_behind_jupyter_server_is_gone_before_it_too(front):
    kid = front.start_kernel("python3")
    with Channels(front, kid) as c:
        assert c.run("6 * 7").result == "42"
    assert front.behind.delete_kernel(kid) == 204
    # The list is what pages poll: it makes jupyter_server ask for those that it misses in ours.
    assert front.request("GET", "/api/kernels").json() == [] and front.kernel(kid) is None
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        Channels(front, kid)
    assert refused.value.status_code == 404
    kid = front.start_kernel("python3")
    assert front.delete_kernel(kid) == 204


GONE = """
import asyncio, json, os, urllib.request
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.gateway.managers import GatewayKernelManager

GatewayClient.instance().url = os.environ["URL"]


async def main():
    manager = GatewayKernelManager()
    await manager.start_kernel(kernel_name="python3")
    told = [await manager.is_alive()]
    urllib.request.urlopen(urllib.request.Request(manager.kernel_url, method="DELETE"))
    await manager.is_alive()        # asks, and still says what it knew before
    told += [await manager.is_alive(), await manager.refresh_model()]
    await manager.shutdown_kernel()
    print(json.dumps(told))
asyncio.run(main())
"""


def test_a_kernel_that_is_gone_is_dead_to_its_gateway_manager(open_server, program, no_kernels_left):
    assert json.loads(program("python3", "-c", GONE, URL=f"http://127.0.0.1:{open_server.port}").stdout) == [True, False, None]
