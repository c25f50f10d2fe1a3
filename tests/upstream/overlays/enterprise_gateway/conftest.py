"""The server that enterprise_gateway's integration tests expect at $GATEWAY_HOST. Their
client knows neither tokens nor session ids."""

import os

from holdcell_app import Process, free_port

port = free_port()
os.environ["GATEWAY_HOST"] = f"127.0.0.1:{port}"
os.environ["ITEST_HOSTNAME_PREFIX"] = "cell"  # what every sandbox is called
server = None


def pytest_sessionstart():
    global server
    kernels = os.path.join(os.path.dirname(__file__), "enterprise_gateway", "itests")
    server = Process(["--kernel-path", kernels], port, None, no_auth=True)


def pytest_sessionfinish():
    if server is not None:
        server.stop()
