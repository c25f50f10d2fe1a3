"""In the place of kernel_gateway's tests/conftest.py, and of the three classes of its
own that its tests name: their counterparts here ask the program."""

import asyncio
import json
import os

import kernel_gateway.gatewayapp
import kernel_gateway.mixins
import nbformat
import pytest
from fixtures import *  # noqa: F403
from fixtures import jp_configurable_serverapp as _serverapp  # noqa: F401
from holdcell_app import Process, Refused, free_port, query
from jupyter_client.kernelspec import NoSuchKernel

pytest_plugins = ["pytest_jupyter.jupyter_core", "pytest_jupyter.jupyter_server"]


@pytest.fixture
def upstream_defaults():
    return {"JupyterWebsocketPersonality.list_kernels": False}


@pytest.fixture
def jp_configurable_serverapp(_serverapp):
    def make(*args, **kw):
        try:
            return _serverapp(*args, **kw)
        except Refused as e:
            if "KernelGatewayApp.api" in str(e):
                raise ImportError(str(e)) from None
            raise

    return make


class KernelGatewayApp:
    """What the tests that make an application by hand use of it: attributes are flags
    of the program, the environment is its environment."""

    own = []

    def __init__(self):
        self.__dict__["flags"] = {}
        self.__dict__["process"] = None

    def __setattr__(self, name, value):
        self.flags[name] = value

    def init_io_loop(self):
        pass

    def init_configurables(self):
        words = [f"--KernelGatewayApp.{name}={value}" for name, value in self.flags.items()]
        try:
            self.__dict__["process"] = Process(words, free_port(), "fake-token")
        except Refused as e:
            seed = self.flags.get("seed_uri")
            if seed and nbformat.read(seed, 4).metadata.kernelspec.name in str(e):
                raise NoSuchKernel(str(e)) from None
            raise
        KernelGatewayApp.own.append(self.process)

    @property
    def seed_notebook(self):
        """The notebook, when the program took it."""
        assert self.process.child.poll() is None
        return nbformat.read(os.environ["KG_SEED_URI"], 4)

    @property
    def trust_xheaders(self):
        """Whether the program starts with what the environment says of it."""
        self.init_configurables()
        return os.environ.get("KG_TRUST_XHEADERS", "false") == "true"

    @classmethod
    def clear_instance(cls):
        while cls.own:
            cls.own.pop().stop()


@pytest.fixture(autouse=True)
def no_application_is_left():
    yield
    KernelGatewayApp.clear_instance()


class TokenAuthorizationMixin:
    """Does with a handler what the program does with a request like the handler's."""

    programs = {}

    def program(self):
        token = self.settings["kg_auth_token"]
        if token not in self.programs:
            self.programs[token] = Process([], free_port(), token, no_auth=not token)
        return self.programs[token]

    def prepare(self):
        headers, method = (getattr(self.request, name, None) for name in ("headers", "method"))
        status, _ = self.program().request(
            method if isinstance(method, str) else "GET",
            "api",
            headers=headers if isinstance(headers, dict) else {},
            query=query(token=self.get_argument("token")),
        )
        if status < 400:
            super().prepare()
        else:
            self.send_error(status)


class JSONErrorsMixin:
    """Finishes with the body that the program sends for a route it does not know."""

    def write_error(self, status_code, **kw):
        assert status_code == 404 and not kw
        handler = TokenAuthorizationMixin()
        handler.settings = {"kg_auth_token": "YouKnowMe"}
        status, body = handler.program().request("GET", "no/such/route")
        self.set_status(status)
        self.finish(json.dumps(json.loads(body)))


kernel_gateway.gatewayapp.KernelGatewayApp = KernelGatewayApp
kernel_gateway.mixins.TokenAuthorizationMixin = TokenAuthorizationMixin
kernel_gateway.mixins.JSONErrorsMixin = JSONErrorsMixin


@pytest.fixture
def jp_asyncio_loop():
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    loop.close()


def pytest_sessionfinish():
    for process in list(Process.alive):
        process.stop()
