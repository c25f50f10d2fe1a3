"""What the walls cost: the same ipykernel behind holdcell and behind Jupyter Kernel Gateway, which has none.

    walls.py [--rounds N] [--loops N]

The contenders take turns in every round, so that what the machine does beside hits them alike; their order turns with the
rounds. Shown are medians, the 99th percentile, and the ratio of medians to the gateway without walls. Prints Markdown.

  create to ready   POST /api/kernels, the WebSocket, and a first cell `1` until its reply and idle are there
  cell              the round trip of `1` in that session, 30 times
  delete            DELETE /api/kernels/ID until its 204
  system calls      a cell that makes one call many times over and divides; Python's own part is in both, so the difference
                    of the medians is what the walls add to one call, and their ratio says less than that

Started by bench/run.sh.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("HOLDCELL_BIN", os.path.join(ROOT, "build/release/bin/holdcell"))
sys.path.insert(0, os.path.join(ROOT, "tests/blackbox"))
from channels import Channels  # noqa: E402
from server import Server, free_port, wait_for  # noqa: E402

CALLS = {
    "getppid": ("", "os.getppid()", 1),
    "stat of a file in /usr": ("", "os.stat('/usr/bin/env')", 1),
    "open and close it": ("", "os.close(os.open('/usr/bin/env', os.O_RDONLY))", 1),
    "read 1 byte of /dev/zero": ("fd = os.open('/dev/zero', os.O_RDONLY)", "os.read(fd, 1)", 1),
    "a byte through a pipe": ("r, w = os.pipe()", "os.write(w, b'x'); os.read(r, 1)", 1),
    "socketpair and close both": ("import socket", "a, b = socket.socketpair(); a.close(); b.close()", 10),
    "map and unmap 64 KiB": ("import mmap", "mmap.mmap(-1, 65536).close()", 5),
    "make and remove a file at home": ("", "os.close(os.open('bench', os.O_CREAT | os.O_WRONLY)); os.unlink('bench')", 10),
    "write 64 KiB at home": ("fd, data = os.open('bench', os.O_CREAT | os.O_WRONLY), bytes(65536)", "os.pwrite(fd, data, 0)", 5),
    "start and join a thread": ("import threading", "t = threading.Thread(target=int); t.start(); t.join()", 30),
    "fork, exit, wait": ("", "p = os.fork() or os._exit(0); os.waitpid(p, 0)", 300),
    "run /usr/bin/true": ("import subprocess", "subprocess.run(['/usr/bin/true'])", 1000),
}


class Holdcell(Server):
    def __init__(self, name, *options):
        super().__init__("--max-kernels", "20", *options)
        self.name = name


class KernelGateway:
    """Jupyter Kernel Gateway on the same ipykernel: the runtime's interpreter, as whoever runs this."""
    name, tls, socket = "Jupyter Kernel Gateway", None, None
    connection, request = Server.connection, Server.request

    def __init__(self, python):
        self.token, self.port, self.dir = "bench", free_port(), tempfile.mkdtemp(prefix="holdcell-bench-")
        spec = os.path.join(self.dir, "share/kernels/python3")
        os.makedirs(spec)
        with open(os.path.join(spec, "kernel.json"), "w") as f:
            json.dump({"argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "Python 3",
                       "language": "python"}, f)
        self.log = open(os.path.join(self.dir, "log"), "wb")

    def start(self):
        self.proc = subprocess.Popen(
            [sys.executable, "-m", "kernel_gateway", "--KernelGatewayApp.ip=127.0.0.1", f"--KernelGatewayApp.port={self.port}",
             f"--KernelGatewayApp.auth_token={self.token}", "--KernelGatewayApp.port_retries=0"],
            env={**os.environ, "JUPYTER_PATH": os.path.join(self.dir, "share"), "JUPYTER_DATA_DIR": self.dir, "HOME": self.dir},
            cwd=self.dir, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

        def ready():
            try:
                return self.request("GET", "/api").status < 500
            except OSError:
                return False
        wait_for(ready)
        return self

    def close(self):
        self.proc.terminate()
        self.proc.wait()


def ask(who, method, path, wanted, **body):
    r = who.request(method, path, body or None)
    assert r.status == wanted, r
    return r


def since(began):
    return (time.perf_counter() - began) * 1000


def life(who, took):
    """One session, from its creation to its end; adds to took in milliseconds."""
    began = time.perf_counter()
    kid = ask(who, "POST", "/api/kernels", 201, name="python3").json()["id"]
    with Channels(who, kid) as c:
        assert c.run("1").result == "1"
        took["create to ready"].append(since(began))
        for _ in range(30):
            began = time.perf_counter()
            assert c.run("1").result == "1"
            took["cell"].append(since(began))
    began = time.perf_counter()
    ask(who, "DELETE", f"/api/kernels/{kid}", 204)
    took["delete"].append(since(began))


def p99(values):
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]


def lives(contenders, rounds):
    took = {who: {"create to ready": [], "cell": [], "delete": []} for who in contenders}
    for n in range(rounds + 1):
        for i in range(len(contenders)):
            who = contenders[(i + n) % len(contenders)]
            life(who, took[who] if n > 0 else {k: [] for k in took[who]})       # the first warms up
    print("| | " + " | ".join(who.name for who in contenders) + " |")
    print("|---|" + "---|" * len(contenders))
    for what in took[contenders[0]]:
        base = statistics.median(took[contenders[0]][what])
        cells = []
        for who in contenders:
            mid = statistics.median(took[who][what])
            ratio = f", ratio {mid / base:.2f}" if who is not contenders[0] else ""
            cells.append(f"{mid:.1f} ms, p99 {p99(took[who][what]):.1f}{ratio}")
        print(f"| {what} | " + " | ".join(cells) + " |")


def calls(contenders, rounds, loops):
    at = {}
    for who in contenders:
        kid = ask(who, "POST", "/api/kernels", 201, name="python3").json()["id"]
        at[who] = (kid, Channels(who, kid))
    print("\n| one | " + " | ".join(who.name for who in contenders) + " | the walls add |")
    print("|---|" + "---|" * (len(contenders) + 1))
    for what, (before, call, weight) in CALLS.items():
        n = max(20, loops // weight)
        code = (f"import os, time\n{before}\ndef many():\n    for _ in range({n}):\n        {call}\n"
                f"many()\nbegan = time.perf_counter(); many(); took = (time.perf_counter() - began) / {n} * 1e9\ntook")
        got = {who: [] for who in contenders}
        for turn in range(rounds):
            for i in range(len(contenders)):
                who = contenders[(i + turn) % len(contenders)]
                run = at[who][1].run(code)
                assert run.status == "ok", run.messages
                got[who].append(float(run.result))
        mids = [statistics.median(got[who]) for who in contenders]
        cells = [f"{m / 1000:.2f} us" + (f", ratio {m / mids[0]:.2f}" if i else "") for i, m in enumerate(mids)]
        print(f"| {what} | " + " | ".join(cells) + f" | {(mids[1] - mids[0]) / 1000:.2f} us |")
    for who, (kid, c) in at.items():
        c.close()
        ask(who, "DELETE", f"/api/kernels/{kid}", 204)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=40, help="sessions of each contender (default 40)")
    options.add_argument("--loops", type=int, default=20000, help="calls in one cell of the cheapest kind (default 20000)")
    o = options.parse_args()
    runtime = os.path.realpath(os.path.join(ROOT, "build/release/runtime"))
    contenders = [KernelGateway(os.path.join(runtime, "bin/python")), Holdcell("holdcell, home on disk", "--home", "disk"),
                  Holdcell("holdcell, home in memory", "--home", "tmpfs")]
    started = []
    try:
        for who in contenders:
            started.append(who)
            who.start()
        lives(contenders, o.rounds)
        calls(contenders, max(5, o.rounds // 3), o.loops)
    finally:
        for who in started:
            who.close()


if __name__ == "__main__":
    main()
