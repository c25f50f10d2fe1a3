"""Starts and stops the real `holdcell serve`, and counts what it leaves behind."""

import ctypes
import fcntl
import glob
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("HOLDCELL_BIN", os.path.join(ROOT, "build", "release", "bin", "holdcell"))
TOKEN = "bl4ckb0x-t0ken"
SLOW = float(os.environ.get("HOLDCELL_SLOW", "1"))      # an emulated machine is slower
DEADLINE = 60 * SLOW    # seconds for anything that should take one
# Variables of the test runner, which are no options of the server: it would warn of them.
OURS = ["HOLDCELL_" + name for name in ("BIN", "GUEST", "KEEP", "KILLS", "LOGS", "NO_SETUP", "ROOT", "SLOW", "START_WITH", "TIER", "CYCLES", "SEED")]
START_WITH = shlex.split(os.environ.get("HOLDCELL_START_WITH", ""))     # must exec the server in its own place


PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def ends_with_us(prepare):
    """What runs in a child before its exec: SIGTERM reaches it when the test's process is killed; then prepare."""
    def run():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if prepare:
            prepare()
    return run


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, timeout=DEADLINE, every=0.05):
    """Calls what() until it gives something true; returns that."""
    end = time.monotonic() + timeout
    while True:
        got = what()
        if got:
            return got
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout} s in vain for {getattr(what, '__doc__', None) or what}")
        time.sleep(every)


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read().decode("utf-8", "replace")
    except OSError:
        return ""


def whole_lines(text):
    """Of a file that a process writes: a line across two pages of it can be seen by half, and is no line yet."""
    return text.rpartition("\n")[0].splitlines()


def status_of(pid):
    """/proc/PID/status as a dict, {} when the process is gone."""
    return dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)


def children_of(pid):
    """Of all its threads; none of a process that is gone, or goes meanwhile."""
    try:
        tids = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(p) for tid in tids for p in read(f"/proc/{pid}/task/{tid}/children").split()]


def descendants_of(pid):
    out, todo = [], [pid]
    while todo:
        for kid in children_of(todo.pop()):
            out.append(kid)
            todo.append(kid)
    return out


def cgroup_roots():
    """Every cgroup hierarchy that is mounted here."""
    return [line.split()[1] for line in read("/proc/mounts").splitlines() if line.split()[2] in ("cgroup", "cgroup2")]


def cgroups_of(slot):
    """Directories of the instance's cgroup base, in every hierarchy."""
    out = []
    for root in cgroup_roots():
        for top, dirs, _ in os.walk(root):
            if f"/holdcell-{slot}/" in top + "/":
                out.append(top)
            dirs[:] = [d for d in dirs if len(top) - len(root) < 200]
    return sorted(out)


ID_BASE, ID_BLOCK = 0x70000000, 0x10000     # protocol/hostids.h


def uids_of_slot(slot):
    """Processes anywhere on the host that run under one of the instance's ids."""
    ids = range(ID_BASE + slot * ID_BLOCK, ID_BASE + (slot + 1) * ID_BLOCK)
    return [int(pid) for pid in os.listdir("/proc")
            if pid.isdigit() and int(status_of(pid).get("Uid", "0").split()[0]) in ids]


def left_of_slot(slot):
    """What still runs under its ids, zombies aside, as a failure is to tell it."""
    left = []
    for pid in uids_of_slot(slot):
        of = status_of(pid)
        if of.get("State", "Z")[0] not in "ZX":
            left.append({"pid": pid, **{k: of.get(k) for k in ("Name", "State", "PPid", "Uid")},
                         "argv": read(f"/proc/{pid}/cmdline").split("\0")[:4], "groups": read(f"/proc/{pid}/cgroup")})
    return left


def slot_file(slot):
    """Its lock, with the state directory of who had it last."""
    return f"/run/holdcell/instances/{slot}"


def assert_slot_is_left(slot, state):
    """Of the instance with that state directory nothing runs or stands under the slot any more.

    The slot may be another instance's at once, so it is looked at while it is locked. What is dying is waited for: the
    init of an instance that another test killed outlives its groups until its children are reaped."""
    with open(slot_file(slot)) as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            assert state not in read(f.name)
            return
        try:
            wait_for(lambda: not left_of_slot(slot))
        except AssertionError:
            assert left_of_slot(slot) == []
        assert cgroups_of(slot) == []


def links_of(pid):
    """What each descriptor of the process leads to."""
    links = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            pass                                # closed meanwhile
    return links


V2_ROOT = "/sys/fs/cgroup"      # where cgroup2 is mounted when it is alone


def group_of(pid):
    """The process' cgroup there, as a directory."""
    return V2_ROOT + re.search(r"^0::(.*)$", read(f"/proc/{pid}/cgroup"), re.M).group(1)


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class Server:
    """A `holdcell serve` of its own: port, token, state directory."""

    def __init__(self, *options, token=TOKEN, env=None, prepare=None, tls=None, unix=False):
        self.token = token
        self.tls = tls                      # a client's ssl.SSLContext: the server speaks https
        self.options = list(options)
        self.env = env or {}
        self.prepare = prepare              # runs in the child before the exec
        self.port = free_port()
        self.dir = tempfile.mkdtemp(prefix="holdcell-test-")
        os.chmod(self.dir, 0o755)
        self.state = os.path.join(self.dir, "state")
        self.socket = os.path.join(self.dir, "s.sock") if unix else None    # listens there too
        self.log_path = os.path.join(self.dir, "log")
        self.proc = None

    # --- life ---------------------------------------------------------------
    def argv(self):
        auth = ["--token", self.token] if self.token else ["--no-auth"]
        listen = f"127.0.0.1:{self.port}" + (f",unix:{self.socket}" if self.socket else "")
        return [BIN, "serve", "--listen", listen, "--state-dir", self.state] + auth + self.options

    def spawn(self):
        with open(self.log_path, "ab") as log:
            self.proc = subprocess.Popen(START_WITH + self.argv(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                         start_new_session=True, preexec_fn=ends_with_us(self.prepare),
                                         env={**{k: v for k, v in os.environ.items() if k not in OURS}, **self.env})
        return self

    def start(self):
        self.spawn()

        def ready():
            """the server answering GET /api"""
            if self.proc.poll() is not None:
                raise AssertionError(f"server ended with {self.proc.returncode}:\n{self.log()[-3000:]}")
            return self.answers()
        wait_for(ready)
        return self

    def answers(self):
        try:
            return self.request("GET", "/api", timeout=10 * SLOW).status < 500
        except (OSError, http.client.HTTPException):
            return False

    def stop(self, timeout=30 * SLOW):
        """SIGTERM; returns the exit status."""
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
        try:
            return self.proc.wait(timeout)
        except subprocess.TimeoutExpired:
            for pid in descendants_of(self.proc.pid) + [self.proc.pid]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.proc.wait(10 * SLOW)
            raise AssertionError(f"the server did not end within {timeout} s of SIGTERM:\n{self.log()[-3000:]}") from None

    def close(self):
        try:
            if self.proc is not None:
                self.stop()
        finally:
            if not os.environ.get("HOLDCELL_KEEP"):
                shutil.rmtree(self.dir, ignore_errors=True)

    def log(self):
        return read(self.log_path)

    # --- the processes --------------------------------------------------------
    def process(self, name):
        """Pid of the launcher or gateway below this server, 0 when there is none."""
        for pid in descendants_of(self.proc.pid):
            words = read(f"/proc/{pid}/cmdline").split("\0")
            base = os.path.basename(words[0])
            if name == "launcher" and base == "holdcell-launcher":
                return pid
            if name == "gateway" and base == "holdcell" and words[1:2] == ["gateway"]:
                return pid
        return 0

    def wait_next(self, name, old):
        """Until another launcher or gateway than that pid is there, and the server answers."""
        def there():
            return self.process(name) not in (0, old) and self.answers()
        there.__doc__ = f"another {name}"
        wait_for(there)

    def kernels(self):
        """Pids of the Python kernels."""
        return [p for p in descendants_of(self.process("launcher")) if "holdcell_kernel" in read(f"/proc/{p}/cmdline")]

    def slot(self):
        """Number of the instance: its cgroup base is holdcell-<slot>."""
        launcher = self.process("launcher")
        m = re.search(r"--slot[= \0](\d+)", read(f"/proc/{launcher}/cmdline"))
        return int(m.group(1)) if m else None

    def is_copied(self, mount):
        """A launcher begins with a copy of what is mounted just then: directories of other tests among it."""
        others = ("/tmp/holdcell-", "/var/tmp/holdcell-", "/tmp/pytest-of-")
        return mount.split()[4].startswith(others) and self.dir not in mount

    def loops(self):
        """Loop devices over files of this server: homes and workspaces on disk."""
        return [f for f in glob.glob("/sys/block/loop*/loop/backing_file") if read(f).startswith((self.state, self.dir))]

    def counters(self):
        """What must be back at the start when all sessions are gone."""
        pids = {n: self.process(n) for n in ("launcher", "gateway")}
        return {
            "processes": len(descendants_of(self.proc.pid)),
            "supervisor_fds": len(os.listdir(f"/proc/{self.proc.pid}/fd")),
            "launcher_fds": len(os.listdir(f"/proc/{pids['launcher']}/fd")),
            "gateway_fds": len(os.listdir(f"/proc/{pids['gateway']}/fd")),
            "launcher_mounts": sum(not self.is_copied(line) for line in read(f"/proc/{pids['launcher']}/mountinfo").splitlines()),
            "cgroups": len(cgroups_of(self.slot())),
            "host_mounts": sum(self.dir in line or self.state in line for line in read("/proc/self/mountinfo").splitlines()),
            "loops": len(self.loops()),
            # The gateway's, and by the range the session's own ids: whose process is gone gives its ids back.
            "ids": len(uids_of_slot(self.slot())),
            # Event logs beyond memory, in files without a name.
            "spool_files": sum(link.startswith(self.state) and link.endswith(" (deleted)") for link in links_of(pids["gateway"])),
            "private_files": sum(len(f) + len(d) for _, d, f in os.walk(self.state)),
        }

    # --- REST -----------------------------------------------------------------
    def connection(self, timeout=DEADLINE):
        if self.tls:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, timeout=DEADLINE, headers=None, token=True):
        c = self.connection(timeout)
        h = dict(headers or {})
        if token and self.token:
            h.setdefault("Authorization", f"token {self.token}")
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        try:
            c.request(method, path, body=data, headers=h)
            r = c.getresponse()
            return Response(r.status, r.headers, r.read())
        finally:
            c.close()

    def start_kernel(self, name=None, **model):
        if name:
            model["name"] = name
        r = self.request("POST", "/api/kernels", model)
        assert r.status == 201, r
        return r.json()["id"]

    def kernel(self, kid):
        r = self.request("GET", f"/api/kernels/{kid}")
        return r.json() if r.status == 200 else None

    def delete_kernel(self, kid):
        return self.request("DELETE", f"/api/kernels/{kid}").status

    def interrupt(self, kid):
        return self.request("POST", f"/api/kernels/{kid}/interrupt", {}).status

    def restart(self, kid):
        return self.request("POST", f"/api/kernels/{kid}/restart", {})

    def wait_state(self, kid, state, timeout=DEADLINE):
        def reached():
            model = self.kernel(kid)
            return model is not None and model["execution_state"] == state
        reached.__doc__ = f"kernel state {state}"
        return wait_for(reached, timeout)
