"""In the place of nbclient's tests/conftest.py. Two of its tests look at what is printed alone, and not at what becomes
of the notebooks that they start in threads and processes; here those have to end well."""

import os
import threading
from concurrent.futures import ProcessPoolExecutor

import jupyter_core.utils
import nbformat
import pytest
from gateway_manager import *  # noqa: F403
from nbclient import NotebookClient

os.environ["IPYKERNEL_CELL_NAME"] = "<IPY-INPUT>"  # as theirs

# A forked process cannot use the event loop of its parent: the loop's threads, which resolve names, are not there.
os.register_at_fork(after_in_child=lambda: jupyter_core.utils._loop.set(None))

plain_map = ProcessPoolExecutor.map


@pytest.fixture
def tmpdir(request):
    """Where two kernels of a test meet: a folder in what they share, not one of this machine."""
    path = f"/home/user/work/{request.node.name}"
    cell = nbformat.v4.new_code_cell(f"import os\nos.mkdir({path!r})")
    NotebookClient(nbformat.v4.new_notebook(cells=[cell])).execute()
    return path


@pytest.fixture(autouse=True)
def notebooks_beside_end_well(monkeypatch):
    failed = []
    monkeypatch.setattr(ProcessPoolExecutor, "map", lambda *args: list(plain_map(*args)))
    monkeypatch.setattr(threading, "excepthook", lambda args: failed.append(args.exc_value))
    yield
    for thread in threading.enumerate():
        if "(run_notebook)" in thread.name:
            thread.join(timeout=60)
            assert not thread.is_alive()
    assert failed == []
