"""A `holdcell serve` in the place of the applications that the upstream tests start
in their own process. It knows their ways of setting it up: flags, traits, the
settings of the web application, attributes of the kernel manager."""

import asyncio
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import types
import urllib.parse

from tornado.web import HTTPError

BIN = os.environ["HOLDCELL_BIN"]
DEADLINE = 60

# What the upstream tests set that chooses among implementations of theirs; here there
# is one of each, so that these tests run on the same server.
IMPLEMENTATIONS = {
    "ServerApp.jpserver_extensions": "which extensions are loaded",
    "ServerApp.kernel_manager_class": "which Python class manages kernels",
    "AsyncMappingKernelManager.use_pending_kernels": "kernels that are told of before they run",
    "KernelManager.shutdown_wait_time": "how long a kernel may take to end",
}

# Settings that tests poke into the running web application, and the trait of each.
POKED = {
    "allow_origin": "KernelGatewayApp.allow_origin",
    "kg_allow_credentials": "KernelGatewayApp.allow_credentials",
    "kg_allow_headers": "KernelGatewayApp.allow_headers",
    "kg_allow_methods": "KernelGatewayApp.allow_methods",
    "kg_allow_origin": "KernelGatewayApp.allow_origin",
    "kg_expose_headers": "KernelGatewayApp.expose_headers",
    "kg_list_kernels": "JupyterWebsocketPersonality.list_kernels",
    "kg_max_age": "KernelGatewayApp.max_age",
    "kg_max_kernels": "KernelGatewayApp.max_kernels",
}


class Refused(RuntimeError):
    """The program ended at its start; the text is what it said."""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def traits_of(config):
    """Flat {"Class.trait": value} of a configuration with nested sections."""
    flat = {}
    for section, values in dict(config).items():
        for name, value in dict(values).items():
            if name[0].isupper():
                flat.update(traits_of({name: value}))
            else:
                flat[f"{section}.{name}"] = value
    return {k: v for k, v in flat.items() if k not in IMPLEMENTATIONS}


def descendants_of(pid):
    found, todo = [], [pid]
    while todo:
        pid = todo.pop()
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as f:
                    todo += [int(p) for p in f.read().split()]
        except OSError:
            continue
        found.append(pid)
    return found[1:]


class Process:
    """The program itself."""

    alive = []

    def __init__(self, words, port, token, base_url="/", no_auth=False):
        self.port, self.token, self.base_url = port, token, base_url
        self.dir = tempfile.mkdtemp(prefix="holdcell-upstream-")
        argv = [BIN, "serve", "--listen", f"127.0.0.1:{port}", "--state-dir", self.dir + "/state", "--base-url", base_url]
        argv += ["--no-auth"] if no_auth else []
        argv += ["--token", token] if token else []
        self.log_path = os.path.join(os.environ["UPSTREAM_LOGS"], f"server-{port}.log")
        with open(self.log_path, "ab") as log:
            log.write(f"--- {os.environ.get('PYTEST_CURRENT_TEST', '')}: {' '.join(argv + words)}\n".encode())
            log.flush()         # before the server writes there
            self.mark = log.tell()
            self.child = subprocess.Popen(argv + words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        Process.alive.append(self)
        self.wait_until_ready()

    def said(self):
        with open(self.log_path, "rb") as f:
            f.seek(self.mark)
            return f.read().decode("utf-8", "replace")

    def wait_until_ready(self):
        end = time.monotonic() + DEADLINE
        while True:
            if self.child.poll() is not None:
                self.stop()
                raise Refused(self.said()[-2000:])
            try:
                if self.request("GET", "api")[0] < 500:
                    return
            except (OSError, http.client.HTTPException):
                pass
            if time.monotonic() > end:
                self.stop()
                raise AssertionError(f"the server was not ready in {DEADLINE} s: {self.said()[-2000:]}")
            time.sleep(0.05)

    def request(self, method, path, headers=None, body=None, query=None):
        """(status, body); with the token unless headers are given."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        if headers is None:
            headers = {"Authorization": f"token {self.token}"} if self.token else {}
        try:
            c.request(method, self.base_url.rstrip("/") + "/" + path + (f"?{query}" if query else ""), body, headers)
            r = c.getresponse()
            return r.status, r.read()
        finally:
            c.close()

    def stop(self):
        if self in Process.alive:
            Process.alive.remove(self)
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                for pid in [*descendants_of(self.child.pid), self.child.pid]:
                    os.kill(pid, signal.SIGKILL)
                self.child.wait()
                raise AssertionError("the server did not end after SIGTERM") from None
            finally:
                shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree(self.dir, ignore_errors=True)


class Settings(dict):
    """settings of the web application: a change starts the server anew."""

    def __init__(self, app):
        super().__init__()
        self.app = app

    def __setitem__(self, name, value):
        super().__setitem__(name, value)
        self.app.set_trait(POKED[name], value)


class KernelManager:
    """The few attributes of a MappingKernelManager that tests of the REST API look at."""

    def __init__(self, app, config):
        self.app = app
        self.use_pending_kernels = any(
            dict(section).get("use_pending_kernels") for section in dict(config).values() if isinstance(section, dict)
        )

    @property
    def default_kernel_name(self):
        return self.app.model("api/kernelspecs")["default"]

    @default_kernel_name.setter
    def default_kernel_name(self, name):
        self.app.set_trait("MappingKernelManager.default_kernel_name", name)

    def get_kernel(self, kernel_id):
        return types.SimpleNamespace(**self.app.model(f"api/kernels/{kernel_id}"))


class SessionManager:
    def __init__(self, app):
        self.app = app

    async def get_session(self, session_id):
        return self.app.model(f"api/sessions/{session_id}")


class App:
    """Starts the server at the first request, so that a test may change what it needs
    before: the upstream applications read their settings at each request."""

    def __init__(self, config, argv, port, base_url, kernel_path, defaults=()):
        self.traits = {**dict(defaults), **traits_of(config)}
        self.argv = list(argv)
        self.port, self.base_url, self.kernel_path = port, base_url, kernel_path
        self.own_token = None if "KernelGatewayApp.auth_token" in self.traits else secrets.token_hex(8)
        token = self.own_token or self.traits["KernelGatewayApp.auth_token"]
        self.identity_provider = types.SimpleNamespace(token=token)
        self.settings = Settings(self)
        self.web_app = self
        self.kernel_manager = KernelManager(self, config)
        self.session_manager = SessionManager(self)
        self.process = None

    def words(self):
        given = {word.split("=")[0].lstrip("-") for word in self.argv}
        flags = [f"--{name}={value}" for name, value in self.traits.items() if name not in given]
        if self.kernel_path:
            flags += ["--kernel-path", str(self.kernel_path)]
        return flags + self.argv

    def set_trait(self, name, value):
        self.argv = [word for word in self.argv if word.split("=")[0].lstrip("-") != name]
        self.traits[name] = value
        self.stop()
        try:
            asyncio.get_running_loop().call_soon(self.start)
        except RuntimeError:
            pass

    def start(self):
        if self.process is None:
            self.process = Process(self.words(), self.port, self.own_token, self.base_url)
            self.process.token = self.identity_provider.token

    def stop(self):
        process, self.process = self.process, None
        if process is not None:
            process.stop()

    def model(self, path):
        self.start()
        status, body = self.process.request("GET", path)
        if status != 200:
            raise HTTPError(status, body.decode())
        return json.loads(body)


def readable_by_all(path):
    """The gateway's user must reach the kernelspecs below pytest's private folders."""
    while str(path) != path.root:
        os.chmod(path, os.stat(path).st_mode | 0o055)
        path = path.parent
        if str(path) in ("/tmp", "/var/tmp"):
            break


def query(**values):
    return urllib.parse.urlencode({k: v for k, v in values.items() if v})
