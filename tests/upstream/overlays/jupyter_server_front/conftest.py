"""In the place of jupyter_server's tests/conftest.py: its own application in this process,
with this server behind it, as `jupyter server --gateway-url` sets it up."""

import pytest
from holdcell_app import IMPLEMENTATIONS, Process, free_port, readable_by_all
from jupyter_server.gateway.gateway_client import GatewayClient
from traitlets.config import Config

pytest_plugins = ["jupyter_server.pytest_plugin"]


@pytest.fixture
def gateway(jp_data_dir):
    readable_by_all(jp_data_dir)
    process = Process(["--kernel-path", str(jp_data_dir)], free_port(), "behind")
    GatewayClient.clear_instance()
    yield process
    GatewayClient.clear_instance()
    process.stop()


@pytest.fixture
def jp_configurable_serverapp(jp_configurable_serverapp, gateway, jp_server_config):
    def make(config=jp_server_config, **kw):
        c = Config()
        for section, values in dict(config).items():
            for name, value in dict(values).items():
                if f"{section}.{name}" not in IMPLEMENTATIONS or name == "jpserver_extensions":
                    c[section][name] = value
        c.GatewayClient.url = f"http://127.0.0.1:{gateway.port}"
        c.GatewayClient.auth_token = gateway.token
        return jp_configurable_serverapp(config=c, **kw)

    return make


@pytest.fixture(autouse=True)
def jp_server_cleanup(gateway, jp_server_cleanup):
    """Their application ends its kernels before the server goes."""
    yield
