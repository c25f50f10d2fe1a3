"""pytest plugin: fixtures, the JSON file of results, comparison of a
reference's run with its recorded table."""

import fnmatch
import json
import os
import shutil
import signal
import tempfile

import pytest

from .jmsg import chan_open
from .server import HERE, Server, Unsupported, traits

TOKEN = "c0nf0rmance-t0ken"
_pool = {}          # settings -> Server, oldest first
_outcomes = {}
_kernel_dir = None


def pytest_addoption(parser):
    parser.addoption("--server", required=False, default=os.environ.get("HCONF_SERVER", ""),
                     help="adapter in servers/, or a path to one")
    parser.addoption("--results", default=os.environ.get("HCONF_RESULTS", ""),
                     help="JSON file: case id -> passed/failed/skipped")
    parser.addoption("--later", default="",
                     help="file of case ids (or prefix*) and reasons: skipped, and shown as such")
    parser.addoption("--references", default="", help="JSON file with the references' results")


def pytest_configure(config):
    config.addinivalue_line("markers", "case(id, line, differs, unsandboxed, timeout): a conformance case")


def case_of(item):
    m = item.get_closest_marker("case")
    if m is None:
        return None
    c = dict(m.kwargs)
    if hasattr(item, "callspec"):
        c["id"] += ":" + item.callspec.id
    return c


def later_cases(path):
    """[(pattern, reason)] of a --later file"""
    out = []
    if path:
        with open(path) as f:
            for line in f:
                words = line.split(None, 1)
                if words and not words[0].startswith("#"):
                    out.append((words[0], words[1].strip()))
    return out


def pytest_collection_modifyitems(config, items):
    seen = set()
    later = later_cases(config.getoption("--later"))
    unused = {pattern for pattern, _ in later}
    sandboxed = traits(config.getoption("--server")).get("sandboxed") if config.getoption("--server") else False
    for item in items:
        c = case_of(item)
        if c is None:
            raise pytest.UsageError(f"{item.nodeid} carries no @case")
        if c["id"] in seen:
            raise pytest.UsageError(f"case id {c['id']} is used twice")
        seen.add(c["id"])
        if c["unsandboxed"] and sandboxed:
            item.add_marker(pytest.mark.skip(reason="kernels of this server are sandboxed"))
        for pattern, reason in later:
            if fnmatch.fnmatchcase(c["id"], pattern):
                unused.discard(pattern)
                item.add_marker(pytest.mark.skip(reason="later: " + reason))
    if unused:
        raise pytest.UsageError(f"--later names no case: {sorted(unused)}")
    wanted = os.environ.get("HCONF_IDS")        # a file with one case id a line
    if wanted:
        with open(wanted) as f:
            ids = set(f.read().split())
        items[:] = [i for i in items if case_of(i)["id"] in ids]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    limit = min(case_of(item)["timeout"], int(os.environ.get("HCONF_TIMEOUT", "600")))

    def late(*_):
        raise TimeoutError(f"case took longer than {limit} s")

    old = signal.signal(signal.SIGALRM, late)
    signal.alarm(limit)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    out = yield
    rep = out.get_result()
    cid = case_of(item)["id"]
    if rep.when == "setup" and rep.outcome != "passed":
        _outcomes[cid] = "skipped" if rep.outcome == "skipped" else "failed"
    elif rep.when == "call":
        _outcomes[cid] = rep.outcome
    elif rep.when == "teardown" and rep.outcome == "failed":
        _outcomes[cid] = "failed"
    if rep.when == "teardown":
        write_results(item.config)


def write_results(config):
    path = config.getoption("--results")
    if path and _outcomes:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "w") as f:
            json.dump(dict(sorted(_outcomes.items())), f, indent=1)
            f.write("\n")


def pytest_sessionfinish(session):
    for s in list(_pool.values()):
        s.end()
    _pool.clear()
    if _kernel_dir:
        shutil.rmtree(_kernel_dir, ignore_errors=True)
    write_results(session.config)


def pytest_terminal_summary(terminalreporter, config):
    path = config.getoption("--references")
    name = os.path.basename(config.getoption("--server"))
    if not path or not os.path.exists(path):
        return
    with open(path) as f:
        table = json.load(f).get(name)
    if table is None:
        return
    diff = [f"{k}: recorded {table.get(k)}, now {v}" for k, v in sorted(_outcomes.items())
            if table.get(k) != v]
    terminalreporter.write_line(f"against the recorded table of {name}: {len(diff)} difference(s)")
    for d in diff:
        terminalreporter.write_line("  " + d)


# --- kernelspecs of the harness -------------------------------------------

def write_spec(root, name, argv, files=(), **more):
    d = os.path.join(root, "kernels", name)
    os.makedirs(d, exist_ok=True)
    spec = {"argv": argv, "display_name": more.pop("display_name", name), "language": "fake"}
    spec.update(more)
    with open(os.path.join(d, "kernel.json"), "w") as f:
        json.dump(spec, f)
    for fn, data in dict(files).items():
        with open(os.path.join(d, fn), "wb") as f:
            f.write(data)
    return d


def fake_argv(mode="normal"):
    return ["python3", "{resource_dir}/fake_kernel.py", "{connection_file}", mode]


PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
                    "0000000d49444154789c6360000002000001e221bc330000000049454e44ae426082")


def kernel_dir():
    """Data directory with the harness's kernelspecs, made once."""
    global _kernel_dir
    if _kernel_dir is None:
        _kernel_dir = tempfile.mkdtemp(prefix="hconf-kernels-")
        os.chmod(_kernel_dir, 0o755)
        with open(os.path.join(HERE, "kernels", "fake_kernel.py"), "rb") as f:
            src = {"fake_kernel.py": f.read()}
        write_spec(_kernel_dir, "fake", fake_argv(), dict(src, **{
            "logo-64x64.png": PNG, "logo-svg.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
            "kernel.js": b"// nothing\n"}), display_name="Fake (harness)",
            metadata={"answer": 42})
        for mode in ("noinfo", "stubborn", "v4", "slow"):
            write_spec(_kernel_dir, "fake-" + mode, fake_argv(mode), src)
        write_spec(_kernel_dir, "fake-msgint", fake_argv(), src, interrupt_mode="message")
        write_spec(_kernel_dir, "fake-false", ["/bin/false", "{connection_file}"])
        write_spec(_kernel_dir, "fake-missing", ["/nonexistent/kernel", "{connection_file}"])
        write_spec(_kernel_dir, "envspec",
                   ["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python",
                   env={"SPEC_PLAIN": "p", "SPEC_HOME": "${HOME}/x", "SPEC_NONE": "${NO_SUCH_VAR_1}",
                        "KERNEL_BOTH": "spec"})
    return _kernel_dir


# --- fixtures ---------------------------------------------------------------

class Sick(Exception):
    pass


def get_server(config, **settings):
    name = config.getoption("--server")
    if not name:
        raise pytest.UsageError("--server NAME is needed")
    full = {"TOKEN": TOKEN, "KERNEL_PATH": kernel_dir()}
    full.update(settings)
    full = {k: v for k, v in full.items() if v is not None}
    key = tuple(sorted(full.items()))
    s = _pool.pop(key, None)
    if s is not None and not (s.alive() and s.answers()):
        s.end()
        s = None
    if s is None:
        while len(_pool) >= 2:
            default = tuple(sorted({"TOKEN": TOKEN, "KERNEL_PATH": kernel_dir()}.items()))
            old = next((k for k in _pool if k != default), next(iter(_pool)))
            _pool.pop(old).end()
        try:
            s = Server(name, full).start()
        except Unsupported as e:
            pytest.skip(f"unsupported setting: {e}")
        except RuntimeError as e:
            if not settings:
                pytest.exit(f"the server does not start: {e}", returncode=3)
            raise
    _pool[key] = s
    return s


@pytest.fixture
def srv(request):
    """The server with default settings: a token, kernels listed."""
    return get_server(request.config)


@pytest.fixture
def server_with(request):
    """Factory: a server with other settings; kept for the next case that
    asks for the same ones. fresh=True: not shared, stopped after the case."""
    own = []

    def make(fresh=False, **settings):
        if not fresh:
            return get_server(request.config, **settings)
        full = {"TOKEN": TOKEN, "KERNEL_PATH": kernel_dir()}
        full.update(settings)
        try:
            s = Server(request.config.getoption("--server"),
                       {k: v for k, v in full.items() if v is not None}).start()
        except Unsupported as e:
            pytest.skip(f"unsupported setting: {e}")
        own.append(s)
        return s

    yield make
    for s in own:
        if s.alive():
            s.end()


@pytest.fixture
def kernels(srv):
    """start(name=None, **model) -> id; shut down after the case."""
    own = []

    def start(name=None, server=None, **model):
        kid = (server or srv).start_kernel(name, **model)
        own.append((server or srv, kid))
        return kid

    yield start
    for s, kid in own:
        try:
            if s.alive():
                s.delete(f"/api/kernels/{kid}", timeout=30)
        except Exception:
            pass


@pytest.fixture
def kid(kernels):
    """A python3 kernel of this case's own."""
    return kernels("python3")


@pytest.fixture
def chan(srv, kid):
    """A legacy socket on `kid`, kernel answering."""
    c = chan_open(srv, kid)
    yield c
    c.close()


@pytest.fixture
def fake(srv, kernels):
    """A scripted kernel with a legacy socket: (kernel id, Chan)."""
    k = kernels("fake")
    c = chan_open(srv, k)
    yield k, c
    c.close()


@pytest.fixture
def fake_v1(srv, kernels):
    k = kernels("fake")
    c = chan_open(srv, k, v1=True)
    yield k, c
    c.close()


@pytest.fixture
def sandboxed(request):
    return bool(traits(request.config.getoption("--server")).get("sandboxed"))


@pytest.fixture
def specs_dir(tmp_path):
    """A writable data directory for kernelspecs, readable by everyone."""
    d = tempfile.mkdtemp(prefix="hconf-specs-")
    os.chmod(d, 0o755)
    os.mkdir(d + "/kernels")
    yield d
    shutil.rmtree(d, ignore_errors=True)


@pytest.fixture
def front():
    """jupyter_server --gateway-url in front of the server under test."""
    own = []

    def make(back, **env):
        f = Server("jupyter-server-front", {"TOKEN": TOKEN, "GATEWAY_URL": back.url,
                                            "GATEWAY_TOKEN": back.token,
                                            **{"E_" + k: v for k, v in env.items()}})
        own.append(f.start())
        return f

    yield make
    for f in own:
        f.end()
