"""Fixtures of the black-box tests: one shared server, or one of the test's own."""

import json
import os
import shutil
import tempfile

import pytest

from channels import Channels
from server import BIN, Server

pytest_plugins = ["tiers"]

# These ask for a machine of another kind: the guests of tests/vm.sh.
collect_ignore = {"systemd": [], "direct": ["test_systemd.py"]}.get(
    os.environ.get("HOLDCELL_GUEST"), ["test_guest.py", "test_systemd.py"])


def pytest_collection_modifyitems(config, items):
    # /run/holdcell is made anew under no server that runs: its table of instances says whose a number is.
    items.sort(key=lambda item: item.get_closest_marker("boot") is None)


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
def not_sanitized():
    with open(BIN, "rb") as f:
        if b"__asan_init" in f.read():
            pytest.skip("a sanitizer has memory of its own, without limit")


@pytest.fixture
def kernel_path():
    """Factory: add(name, argv, {file: text}) makes a kernelspec, add_scripted() that of a test kernel; .path is its
    data directory."""
    top = tempfile.mkdtemp(prefix="holdcell-specs-")    # not tmp_path: the gateway's user must reach it

    class Specs:
        path = top

        def add(self, name, argv, files=(), **more):
            d = os.path.join(top, "kernels", name)
            os.makedirs(d)
            for n, text in dict(files).items():
                with open(os.path.join(d, n), "w") as f:
                    f.write(text)
            with open(os.path.join(d, "kernel.json"), "w") as f:
                json.dump({"argv": argv, "display_name": name, "language": "none", **more}, f)
            return self

        def add_scripted(self, name="scripted", argv=("{resource_dir}/scripted-kernel", "{connection_file}")):
            """tests/tools/scripted_kernel.c, a kernel that is no ipykernel."""
            self.add(name, list(argv))
            shutil.copy(os.path.join(os.path.dirname(BIN), "..", "tests", "scripted-kernel"),
                        os.path.join(top, "kernels", name))
            return self
    os.chmod(top, 0o755)
    yield Specs()
    shutil.rmtree(top)


@pytest.fixture
def chan(shared, kernel):
    """A socket to a new Python kernel that has answered once."""
    c = Channels(shared, kernel("python3"))
    assert c.run("0").status == "ok"
    yield c
    c.close()
