"""nbclient, and what is built on it, with its kernels behind a gateway: each notebook gets
jupyter_server's GatewayKernelManager, as `kernel_manager_class` does it in a configuration."""

import json

import jupyter_client.client
import jupyter_client.manager
import pytest
from holdcell_app import Process, free_port
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.gateway.managers import GatewayKernelClient, GatewayKernelManager
from nbclient import NotebookClient

# The variables that the tests set for their kernels.
VARIABLES = "COLUMNS,LINES,IPYKERNEL_CELL_NAME,NBEXECUTE_TEST_PARALLEL_TMPDIR"

plain_init = NotebookClient.__init__


def init(self, nb, km=None, **kw):
    if km is None and "config" not in kw:
        kw.setdefault("kernel_manager_class", GatewayKernelManager)
    plain_init(self, nb, km=km, **kw)


NotebookClient.__init__ = init

# Its client asks this of its manager when a cell takes too long; jupyter_server 2.21.1 leaves it to the manager of
# local processes, which fails an assertion then.
GatewayKernelManager._async_is_alive = GatewayKernelManager.is_alive

# For the tests that make or subclass a manager themselves, imported after this.
jupyter_client.manager.KernelManager = jupyter_client.manager.AsyncKernelManager = GatewayKernelManager
jupyter_client.client.KernelClient = GatewayKernelClient


@pytest.fixture(scope="session", autouse=True)
def gateway(tmp_path_factory):
    """Without a token: GatewayKernelClient opens its WebSocket without one."""
    work = tmp_path_factory.mktemp("workspaces")
    process = Process(
        ["--env-allow", VARIABLES, "--workspaces", str(work), "--workspace-mb", "64"], free_port(), None, no_auth=True
    )
    client = GatewayClient.instance()
    client.url = f"http://127.0.0.1:{process.port}"
    client.allowed_envs = VARIABLES
    yield process
    process.stop()


@pytest.fixture(autouse=True)
def kernels_end_with_their_test(gateway):
    """Some tests leave theirs to the end of their process."""
    yield
    for kernel in json.loads(gateway.request("GET", "api/kernels")[1]):
        gateway.request("DELETE", f"api/kernels/{kernel['id']}")
