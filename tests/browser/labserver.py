"""JupyterLab of a test's own, with its kernels in holdcell: by `--gateway-url`, or straight."""

import asyncio
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.request

from server import DEADLINE, free_port, read, wait_for

LAB_TOKEN = "lab-t0ken"
SETTINGS = {"@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
            "@jupyterlab/docmanager-extension/plugin": {"autosave": False, "renameUntitledFileOnSave": False}}


class SplitProxy:
    """One origin for two servers, as a reverse proxy in front of both makes it: the kernels' routes go
    to holdcell, everything else to JupyterLab. So the page's own requests and WebSockets, with the v1
    subprotocol, reach holdcell unchanged; only to logos, which a page asks for without its token, the token
    is added. One request a connection."""

    HOLDCELL = ("/api/kernels", "/api/kernelspecs", "/kernelspecs/", "/api/sessions")

    def __init__(self, lab_port, holdcell_port, token):
        self.ports, self.token = (lab_port, holdcell_port), token
        self.port = free_port()
        self.upgrades = []                  # offered subprotocol and answer's head, one a WebSocket
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self.thread.start()
        assert started.wait(DEADLINE)

    def _run(self, started):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", self.port))
        started.set()
        self.loop.run_forever()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
            self.loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        self.loop.close()

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(DEADLINE)

    async def _serve(self, reader, writer):
        other = None
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            lower = head.lower()
            to_holdcell = path.startswith(self.HOLDCELL)
            upgrade = b"\r\nupgrade: websocket" in lower
            if not upgrade:
                lines = [x for x in head[:-4].split(b"\r\n") if not x.lower().startswith(b"connection:")]
                if path.startswith("/kernelspecs/"):
                    lines.append(f"Authorization: token {self.token}".encode())
                head = b"\r\n".join(lines + [b"Connection: close", b"", b""])
            back, other = await asyncio.open_connection("127.0.0.1", self.ports[to_holdcell])
            other.write(head)
            if upgrade and to_holdcell:
                answer = await back.readuntil(b"\r\n\r\n")
                self.upgrades.append((b"v1.kernel.websocket" in lower, answer.decode()))
                writer.write(answer)
            await asyncio.gather(self._pipe(reader, other), self._pipe(back, writer))
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass                            # one of the two is gone: so is the other, below
        finally:
            for end in (writer, other):
                if end is not None:
                    end.close()

    @staticmethod
    async def _pipe(source, drain):
        try:
            while data := await source.read(65536):
                drain.write(data)
                await drain.drain()
        finally:
            drain.close()


class LabServer:
    """`jupyter lab` with an empty home. way: "gateway-url" = its own proxy stands between the page and
    holdcell and speaks the old framing; "direct" = the page itself speaks to holdcell."""

    def __init__(self, gateway, way):
        self.gateway, self.way = gateway, way
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="holdcell-lab-"))
        self.root = self.home / "root"
        self.log_path = self.home / "log"
        self.port = free_port()
        self.split = None
        self.token = LAB_TOKEN if way == "gateway-url" else gateway.token

    def start(self):
        self.root.mkdir()
        for name, values in SETTINGS.items():
            path = self.home / "settings" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values))
        env = {name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")}
        env.update(HOME=str(self.home), JUPYTER_CONFIG_DIR=str(self.home / "config"), JUPYTER_DATA_DIR=str(self.home / "data"),
                   JUPYTER_RUNTIME_DIR=str(self.home / "runtime"), JUPYTERLAB_SETTINGS_DIR=str(self.home / "settings"),
                   JUPYTERLAB_WORKSPACES_DIR=str(self.home / "workspaces"))
        words = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={self.port}",
                 "--ServerApp.port_retries=0", f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={self.root}",
                 "--expose-app-in-browser", "--LabApp.extension_manager=readonly"]
        if self.way == "gateway-url":
            env["JUPYTER_GATEWAY_AUTH_TOKEN"] = self.gateway.token
            words.append(f"--gateway-url=http://127.0.0.1:{self.gateway.port}")
        else:
            # The page's token goes with its WebSockets too, which a cookie of JupyterLab's would not do for holdcell.
            config = self.home / "config/labconfig/page_config.json"
            config.parent.mkdir(parents=True)
            config.write_text(json.dumps({"appendToken": "true", "token": self.token}))
            self.split = SplitProxy(self.port, self.gateway.port, self.gateway.token)
        with open(self.log_path, "wb") as log:
            self.proc = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        wait_for(self.answers)
        return self

    def answers(self):
        """JupyterLab answering GET /api"""
        assert self.proc.poll() is None, f"JupyterLab ended:\n{self.log()[-3000:]}"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api", timeout=10) as answer:
                return answer.status == 200
        except OSError:
            return False

    def url(self, path):
        port = self.split.port if self.split else self.port
        return f"http://127.0.0.1:{port}{path}?token={self.token}"

    def log(self):
        return read(self.log_path)

    def close(self):
        if self.split:
            self.split.close()
        self.proc.send_signal(signal.SIGTERM)
        try:
            self.proc.wait(30)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
        shutil.rmtree(self.home, ignore_errors=True)
