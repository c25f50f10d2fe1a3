"""A server with a file of principals, and one of them as a client."""

import contextlib
import hashlib
import json
import os
import re
import signal

from channels import Channels
from server import Server, wait_for


def token_of(name, version=1):
    return f"t0ken-of-{name}-{version}-{hashlib.sha256(f'{name}{version}'.encode()).hexdigest()[:16]}"


def digest(token):
    return hashlib.sha256(token.encode()).hexdigest()


def entry(name, *, tokens=None, **fields):
    """A line of the file."""
    tokens = [token_of(name)] if tokens is None else tokens
    return json.dumps({"name": name, "sha256": [digest(t) for t in tokens], **fields})


class As:
    """The server with another token, for Channels and requests; the processes are the server's own."""

    def __init__(self, server, name, token=None):
        self.server, self.name, self.token = server, name, token or token_of(name)

    def __getattr__(self, what):
        return getattr(self.server, what)

    def request(self, method, path, body=None, headers=None, **kw):
        headers = {"Authorization": f"token {self.token}", **(headers or {})}
        return self.server.request(method, path, body, headers=headers, token=False, **kw)

    start_kernel, kernel, delete_kernel = Server.start_kernel, Server.kernel, Server.delete_kernel
    wait_state = Server.wait_state

    def ids(self):
        return {k["id"] for k in self.request("GET", "/api/kernels").json()}


class PrincipalServer(Server):
    """Started with --principals; `own` is the token of the principal "default", or None."""

    def __init__(self, lines, *options, own=None, **kw):
        super().__init__(*options, token=own, **kw)
        self.file = os.path.join(self.dir, "principals")
        self.write(lines)

    def argv(self):
        argv = [a for a in super().argv() if a != "--no-auth"]
        return argv + ["--principals", self.file]

    def write(self, lines, mode=0o600):
        with open(self.file, "w") as f:
            os.fchmod(f.fileno(), mode)
            f.write("".join(line + "\n" for line in lines))

    def events(self, name):
        return [x for x in self.log().splitlines() if re.search(rf"event={name}\b", x)]

    def hang_up(self, event="settings_taken"):
        """SIGHUP; waits for the next line of that event and gives it."""
        before = len(self.events(event))
        self.proc.send_signal(signal.SIGHUP)
        return wait_for(lambda: self.events(event)[before:])[0]

    def reload(self, lines):
        self.write(lines)
        return self.hang_up()

    def as_(self, name, token=None):
        return As(self, name, token)


@contextlib.contextmanager
def belongings(alice):
    """What Alice has: a kernel, a notebook session with another one, a socket with its session_id."""
    r = alice.request("POST", "/api/sessions", {"path": "a.ipynb", "type": "notebook", "name": "a",
                                                "kernel": {"name": "python3"}})
    assert r.status == 201, r
    kid = alice.start_kernel("python3")
    c = Channels(alice, kid, sid="alices-own-session")
    assert c.run("secret = 4711").status == "ok"

    class Hers:
        kernel, session, notebook_kernel, socket = kid, r.json()["id"], r.json()["kernel"]["id"], c
    yield Hers
    c.close()
