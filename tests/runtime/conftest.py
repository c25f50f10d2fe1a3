"""A kernel of the runtime started as the gateway starts it, without a sandbox.

Five listening unix sockets and a memfd with the connection data go to the child as
descriptors 3 to 8; the tests talk to the sockets by their paths. The runtime under
test is HOLDCELL_RUNTIME, else build/release/runtime, else what build.sh names.
"""

import json
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import threading

import pytest
import zmq
from jupyter_client.session import Session

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHANNELS = ("shell", "control", "stdin", "iopub", "hb")
DEADLINE = 60  # for whatever should be quick: only a hang is a failure
CELL = {"silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False, "stop_on_error": False}


def runtime_dir():
    for candidate in (os.environ.get("HOLDCELL_RUNTIME"), ROOT / "build" / "release" / "runtime"):
        if candidate and (pathlib.Path(candidate) / ".complete").exists():
            return pathlib.Path(candidate).resolve()
    out = subprocess.run([ROOT / "runtime" / "build.sh"], check=True, capture_output=True, text=True)
    return pathlib.Path(out.stdout.splitlines()[-1])


RUNTIME = runtime_dir()


def listeners(directory):
    made = {}
    for channel in CHANNELS:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(str(directory / channel))
        sock.listen(16)
        made[channel] = sock
    return made


def connection_memfd(text):
    fd = os.memfd_create("connection", os.MFD_CLOEXEC)
    os.write(fd, text.encode())
    return fd


def start_process(fds, home, argv=None, env=None, stderr=subprocess.PIPE):
    """Exec the kernel with fds as 3, 4, ...; the numbers above stay closed."""

    def place():
        spare = [os.dup2(fd, 200 + i, inheritable=True) for i, fd in enumerate(fds)]
        for i, fd in enumerate(spare):
            os.dup2(fd, 3 + i, inheritable=True)
        os.closerange(3 + len(spare), 400)

    environment = {
        "HOME": str(home),
        "PATH": f"{RUNTIME}/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TMPDIR": str(home.parent / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
        **(env or {}),
    }
    spec = json.loads((RUNTIME / "share/jupyter/kernels/python3/kernel.json").read_text())
    words = [w.replace("{connection_file}", "/proc/self/fd/3") for w in spec["argv"]]
    return subprocess.Popen(
        argv or [str(RUNTIME / "bin" / words[0]), *words[1:]],
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        preexec_fn=place,
        close_fds=False,
        start_new_session=True,
    )


class LogReader(threading.Thread):
    """Drains a pipe of the kernel, as the gateway does with its bounded log."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe = pipe
        self.data = b""

    def run(self):
        while piece := os.read(self.pipe.fileno(), 65536):
            self.data += piece


class Client:
    """One kernel process and the sockets of one client to it."""

    def __init__(self, directory, env=None, fill=None, argv=None):
        self.directory = directory
        self.home = directory / "home"
        self.home.mkdir()
        (directory / "tmp").mkdir()
        if fill:
            fill(self)
        self.key = secrets.token_hex(16)
        sockets = listeners(directory)
        info = {"transport": "ipc", "signature_scheme": "hmac-sha256", "key": self.key, "kernel_name": "python3"}
        memfd = connection_memfd(json.dumps(info))
        self.process = start_process([memfd, *(sockets[c].fileno() for c in CHANNELS)], self.home, argv, env)
        os.close(memfd)
        for sock in sockets.values():
            sock.close()
        self.logs = [LogReader(self.process.stdout), LogReader(self.process.stderr)]
        for log in self.logs:
            log.start()
        self.context = zmq.Context()
        self.session = Session(key=self.key.encode(), signature_scheme="hmac-sha256")
        self.sockets = {}
        identity = secrets.token_hex(8).encode()
        for channel, kind in (("iopub", zmq.SUB), ("shell", zmq.DEALER), ("control", zmq.DEALER),
                              ("stdin", zmq.DEALER), ("hb", zmq.REQ)):
            sock = self.context.socket(kind)
            sock.linger = 0
            sock.rcvhwm = 0
            if kind == zmq.DEALER:
                sock.identity = identity
            if kind == zmq.SUB:
                sock.subscribe(b"")
            sock.connect(f"ipc://{directory}/{channel}")
            self.sockets[channel] = sock

    def send(self, channel, msg_type, content=None, **header):
        msg = self.session.msg(msg_type, content or {})
        msg["header"].update(header)
        self.session.send(self.sockets[channel], msg)
        return msg["header"]["msg_id"]

    def receive(self, channel, seconds=DEADLINE):
        assert self.sockets[channel].poll(seconds * 1000), f"nothing on {channel} within {seconds} s; {self.log()}"
        _, msg = self.session.recv(self.sockets[channel], zmq.NOBLOCK, copy=True)
        return msg

    def reply(self, channel, msg_id):
        while True:
            msg = self.receive(channel)
            if msg["parent_header"].get("msg_id") == msg_id:
                return msg

    def outputs(self, msg_id):
        """iopub messages of a request, up to its idle."""
        seen = []
        while True:
            msg = self.receive("iopub")
            if msg["parent_header"].get("msg_id") != msg_id:
                continue
            seen.append(msg)
            if msg["msg_type"] == "status" and msg["content"]["execution_state"] == "idle":
                return seen

    def request(self, code, **content):
        return self.send("shell", "execute_request", {
            "code": code, "silent": False, "store_history": True, "user_expressions": {},
            "allow_stdin": False, "stop_on_error": True, **content})

    def run(self, code, **content):
        msg_id = self.request(code, **content)
        reply = self.reply("shell", msg_id)["content"]
        return reply, self.outputs(msg_id)

    def text(self, code, name="stdout"):
        reply, seen = self.run(code)
        assert reply["status"] == "ok", reply
        return streams(seen, name)

    def wait_for_output(self, msg_id, text):
        got = ""
        while text not in got:
            msg = self.receive("iopub")
            if msg["msg_type"] == "stream" and msg["parent_header"].get("msg_id") == msg_id:
                got += msg["content"]["text"]

    def info(self):
        msg_id = self.send("shell", "kernel_info_request")
        content = self.reply("shell", msg_id)["content"]
        self.outputs(msg_id)
        return content

    def interrupt(self):
        os.kill(self.process.pid, signal.SIGINT)

    def log(self):
        return b"".join(log.data for log in self.logs).decode(errors="replace")

    def shutdown(self):
        msg_id = self.send("control", "shutdown_request", {"restart": False})
        reply = self.reply("control", msg_id)
        self.process.wait(DEADLINE)
        return reply

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for log in self.logs:
            log.join(DEADLINE)
            log.pipe.close()
        self.context.destroy(linger=0)


def streams(seen, name="stdout"):
    return "".join(m["content"]["text"] for m in seen if m["msg_type"] == "stream" and m["content"]["name"] == name)


def of_type(seen, msg_type):
    return [m["content"] for m in seen if m["msg_type"] == msg_type]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    client = Client(tmp_path_factory.mktemp("k"))
    assert client.info()["status"] == "ok"
    yield client
    client.close()


@pytest.fixture
def new_kernel(tmp_path):
    made = []

    def make(**options):
        directory = tmp_path / str(len(made))
        directory.mkdir()
        made.append(Client(directory, **options))
        return made[-1]

    yield make
    for client in made:
        client.close()
