"""A pytest plugin: holdcell in the place of the server that jupyter_kernel_client's own tests start."""

import pytest
from server import Server


@pytest.fixture(scope="session")
def holdcell():
    server = Server().start()
    yield server
    server.close()


@pytest.fixture
def jupyter_server(holdcell):
    return str(holdcell.port), holdcell.token
