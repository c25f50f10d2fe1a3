"""Fixtures of the black-box tests: one shared server, or one of the test's own."""

import os

import pytest

from channels import Channels
from server import Server


def pytest_collection_modifyitems(config, items):
    if os.environ.get("HOLDCELL_TIER") == "full":
        return
    for item in items:
        if item.get_closest_marker("full"):
            item.add_marker(pytest.mark.skip(reason="full tier only"))


@pytest.fixture(scope="session")
def shared():
    """The server that most tests use; nothing but kernels may be changed in it."""
    s = Server().start()
    yield s
    s.close()


@pytest.fixture
def server_with():
    """Factory: a server of the test's own, with these options."""
    own = []

    def make(*options, **kw):
        own.append(Server(*options, **kw).start())
        return own[-1]
    yield make
    for s in own:
        s.close()


@pytest.fixture
def kernel(shared):
    """Factory on the shared server: start(name, **model) -> id; deleted after the test."""
    own = []

    def start(name=None, **model):
        own.append(shared.start_kernel(name, **model))
        return own[-1]
    yield start
    for kid in own:
        shared.delete_kernel(kid)


@pytest.fixture
def chan(shared, kernel):
    """A socket to a new Python kernel that has answered once."""
    c = Channels(shared, kernel("python3"))
    assert c.run("0").status == "ok"
    yield c
    c.close()
