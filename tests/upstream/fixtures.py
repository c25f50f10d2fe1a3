"""Fixtures that take the place of pytest_jupyter's: the application is a `holdcell
serve` of the test's own, reached over TCP. Everything else (jp_fetch, jp_ws_fetch, the
base URL /a%40b/, directories) is upstream's."""

import pytest
from holdcell_app import App, free_port, readable_by_all
from tornado.simple_httpclient import SimpleAsyncHTTPClient


class Client(SimpleAsyncHTTPClient):
    """Fetches a path from the application of the test."""

    def initialize(self, *, app=None, **kw):
        super().initialize(**kw)
        self.app = app

    def fetch(self, path, **kw):
        self.app.start()
        return super().fetch(f"http://127.0.0.1:{self.app.port}{path}", **kw)


@pytest.fixture
def jp_http_port():
    return free_port()


@pytest.fixture
def upstream_defaults():
    """Traits whose default here is another than upstream's; a conftest overrides it."""
    return {}


@pytest.fixture
def jp_configurable_serverapp(
    jp_environ, jp_server_config, jp_argv, jp_http_port, jp_base_url, jp_data_dir, upstream_defaults
):
    """A factory. The server starts at once; a refusal to start is an exception."""
    own = []

    def make(config=jp_server_config, argv=jp_argv, at_once=True, **_):
        readable_by_all(jp_data_dir)
        own.append(App(config, argv, jp_http_port, jp_base_url, jp_data_dir, upstream_defaults))
        if at_once:
            own[-1].start()
        return own[-1]

    yield make
    for app in own:
        app.stop()


@pytest.fixture
def jp_serverapp(jp_configurable_serverapp):
    return jp_configurable_serverapp(at_once=False)


@pytest.fixture
def http_server_client(jp_serverapp, jp_asyncio_loop):
    async def make():
        return Client(app=jp_serverapp, force_instance=True)

    client = jp_asyncio_loop.run_until_complete(make())
    yield client
    client.close()


@pytest.fixture(autouse=True)
def jp_server_cleanup():
    """There is no application in this process to clean up after."""
    yield


@pytest.fixture
def jp_auth_header(jp_serverapp):
    return {"Authorization": f"token {jp_serverapp.identity_provider.token}"}
