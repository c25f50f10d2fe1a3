"""Fixtures: a holdcell, JupyterLab before it in two ways, one Chromium, a notebook of the test's own."""

import shutil

import pytest
from playwright.sync_api import sync_playwright

from labpage import SHOTS, Notebook, Page
from labserver import LabServer
from server import Server

pytest_plugins = ["tiers"]

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def pytest_collection_modifyitems(config, items):
    for item in items:
        way = getattr(item, "callspec", None) and item.callspec.params.get("lab")
        if way == "direct" and not item.get_closest_marker("both"):
            item.add_marker("full")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    item.failed = getattr(item, "failed", False) or report.failed


@pytest.fixture(scope="session")
def gateway():
    server = Server().start()
    yield server
    server.close()


@pytest.fixture(scope="session")
def browser():
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert program, "no Chromium: apt-get install chromium"
    with sync_playwright() as driver:
        # No sandbox of its own: the tests run as root, and open nothing but their own pages.
        chromium = driver.chromium.launch(executable_path=program, args=["--disable-dev-shm-usage"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session", params=["gateway-url", "direct"])
def lab(request, gateway):
    server = LabServer(gateway, request.param).start()
    yield server
    server.close()


@pytest.fixture(scope="session")
def tabs(browser, lab):
    """The open pages; a test that fails throws them away."""
    pages = []
    yield pages
    for page in pages:
        page.close()


@pytest.fixture
def page(request, browser, lab, tabs):
    if not tabs:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        tabs.append(Page(context, lab).open())
    page = tabs[0]
    page.console.clear()
    yield page
    if getattr(request.node, "failed", False):
        page.shot(f"FAILED-{request.node.originalname}")
        print("statuses:", page.js("() => [window.held.kernel()?.status, window.held.kernel()?.connectionStatus, ...window.held.statuses]"))
        print("the page's console:", *page.console[-20:], sep="\n  ")
        print("JupyterLab's log:", lab.log()[-3000:], sep="\n")
        print("holdcell's log:", lab.gateway.log()[-3000:], sep="\n")
        tabs.remove(page)
        page.close()


@pytest.fixture
def nb(request, page):
    notebook = Notebook.new(page)
    yield notebook
    if not getattr(request.node, "failed", False):
        notebook.close()
