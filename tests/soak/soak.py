"""Soak test: mixed traffic of many well-behaved clients for a while, rude clients among them. Nothing of a well-behaved
client is lost or out of order, and what the server takes stays flat.

    soak.py [--kernels 50] [--clients 4] [--seconds 600] [--python 5] [--tls] [--seed N]

The last line is `passed=N failed=N skipped=N`: one count for the messages, one for how much was looked at, one for what the
server takes, one for what it takes when all have gone, one for its processes and its log."""

import argparse
import asyncio
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "blackbox")]

from certs import Authority                                 # noqa: E402
from client import Client                                   # noqa: E402
from dialects import Python, Scripted                       # noqa: E402
from gauge import Gauge                                     # noqa: E402
from ledger import DEADLINE, Kernel, Ledger                 # noqa: E402
from principals import PrincipalServer, entry, token_of     # noqa: E402
from rude import Rude                                       # noqa: E402
from server import BIN, wait_for                            # noqa: E402
from wire import Rest, Target                               # noqa: E402

PRINCIPALS = 4
# Every kind of rude client that there has to be: rude.py's list is held against it.
KINDS = ("half_open", "half_open_http", "reset", "stalled", "stalled_http", "half_message", "bad_frames", "bad_messages", "too_big",
         "big_head", "slowloris", "bad_requests", "half_body", "tls_garbage", "unknown_kernel", "wrong_token")
FILL = 7000, 100      # outputs, bytes: what a kernel prints before, so that its event log is full in memory


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--kernels", type=int, default=50)
    p.add_argument("--clients", type=int, default=4, help="of each kernel")
    p.add_argument("--seconds", type=int, default=600)
    p.add_argument("--python", type=int, default=5, help="how many of the kernels are ipykernels")
    p.add_argument("--pause", type=float, default=10, help="seconds between two acts of a client, about")
    p.add_argument("--rude", type=int, default=12, help="rude clients at a time")
    p.add_argument("--tls", action="store_true")
    p.add_argument("--seed", type=int, default=None)
    return p.parse_args()


def scripted_spec(top):
    d = os.path.join(top, "kernels", "scripted")
    os.makedirs(d)
    shutil.copy(os.path.join(os.path.dirname(BIN), "..", "tests", "scripted-kernel"), d)
    with open(os.path.join(d, "kernel.json"), "w") as f:
        f.write('{"argv": ["{resource_dir}/scripted-kernel", "{connection_file}"], "display_name": "scripted",'
                ' "language": "none"}')
    os.chmod(top, 0o755)
    return top


class Soak:
    def __init__(self, args):
        self.args = args
        self.seed = args.seed if args.seed is not None else random.randrange(1 << 30)
        self.rng = random.Random(self.seed)
        self.ledger = Ledger()
        self.until = asyncio.Event()
        self.kernels, self.own = [], {}         # own: ids of each principal
        self.targets, self.loud = [], []
        self.top = tempfile.mkdtemp(prefix="holdcell-soak-")
        os.chmod(self.top, 0o755)       # the gateway reads kernelspecs there
        self.server = None

    def start_server(self):
        names = [f"p{i}" for i in range(PRINCIPALS)]
        more, tls = [], None
        if self.args.tls:
            ca = Authority(self.top)
            cert, key = ca.issue("server")
            more, tls = ["--tls-cert", cert, "--tls-key", key], ca.client()
        specs = os.path.join(self.top, "specs")
        os.mkdir(specs)
        self.server = PrincipalServer([entry(n) for n in names], "--kernel-path", scripted_spec(specs),
                                      "--ws-ping-interval", "5", "--log-level", "info", *more, tls=tls)
        self.server.start()
        self.targets = [Target(self.server.port, tls, token_of(n)) for n in names]

    # --- set-up
    async def make(self, i):
        """One kernel with its log full."""
        target = self.targets[i % PRINCIPALS]
        dialect = Python() if i < self.args.python else Scripted()
        rest = Rest(target)
        status, model = await rest.ask("POST", "/api/kernels", {"name": dialect.name}, timeout=DEADLINE)
        rest.close()
        assert status == 201, (status, model)
        kernel = Kernel(self.ledger, target, model["id"], dialect)
        first = Client(kernel, f"filler-{i}", False, random.Random(0))
        await first.connect()
        assert await (await first.run((dialect.setup(), []))).end() == "ok"
        cell = await first.run((dialect.fill(*FILL), ["x" * FILL[1]] * FILL[0]))
        assert await cell.end() == "ok"
        first.forget()
        await first.leave()
        kernel.clients.remove(first)
        return kernel

    async def set_up(self):
        made = []
        for i in range(0, self.args.kernels + PRINCIPALS, 4):       # a few at a time
            made += await asyncio.gather(*(self.make(j) for j in range(i, min(i + 4, self.args.kernels + PRINCIPALS))))
        self.kernels, self.loud = made[:self.args.kernels], made[self.args.kernels:]
        self.loud.sort(key=lambda k: self.targets.index(k.target))
        for kernel in made:
            self.own.setdefault(kernel.target.token, set()).add(kernel.id)
        for n, kernel in enumerate(self.kernels):
            for i in range(self.args.clients):
                Client(kernel, f"k{n}c{i}", bool(i % 2), random.Random(self.rng.random()))
        for kernel in self.loud:        # somebody who reads all that stalled readers ask for, and asks as well
            Client(kernel, f"loud-{kernel.id[:4]}", True, random.Random(self.rng.random()))
        for kernel in made:
            for client in kernel.clients:
                await client.connect()

    # --- who acts beside the clients
    async def poll(self, target):
        """REST, as a launcher page asks for it."""
        rest, own = Rest(target), self.own[target.token]
        foreign = next(k.id for k in self.kernels if k.target is not target)
        while not self.until.is_set():
            kid = self.rng.choice(sorted(own))
            for path, wanted in (("/api", 200), ("/api/status", 200), ("/api/kernels", 200), ("/api/kernelspecs", 200),
                                 (f"/api/kernels/{kid}", 200), ("/api/sessions", 200), ("/api/me", 200),
                                 (f"/api/kernels/{foreign}", 404), ("/nothing", 404)):
                status, got = await rest.ask("GET", path)
                self.ledger.note("REST answers checked")
                if status != wanted:
                    self.ledger.breach(f"GET {path}: {status}, not {wanted}")
                elif path == "/api/kernels":
                    listed = {k["id"] for k in got}
                    others = set().union(*(ids for t, ids in self.own.items() if t != target.token))
                    if not own <= listed or listed & others:
                        self.ledger.breach(f"GET /api/kernels: {len(listed)} listed, {len(own - listed)} missing,"
                                           f" {len(listed & others)} of others")
            await asyncio.sleep(self.rng.uniform(1, 3))
        rest.close()

    async def come_and_go(self, target):
        """Kernels and notebook sessions of short lives."""
        rest = Rest(target)
        while not self.until.is_set():
            path = f"soak-{uuid.uuid4().hex}.ipynb"
            status, model = await rest.ask("POST", "/api/sessions", {
                "path": path, "type": "notebook", "name": path, "kernel": {"name": "scripted"}}, timeout=DEADLINE)
            if status != 201:
                self.ledger.breach(f"POST /api/sessions: {status} {model}")
                await asyncio.sleep(0.1)
                continue
            kernel = Kernel(self.ledger, target, model["kernel"]["id"], Scripted())
            client = Client(kernel, "brief", bool(self.rng.randrange(2)), self.rng)
            await client.connect()
            await client.act_lines()
            await client.act_input()
            if self.rng.random() < 0.5:
                client.forget()
                await client.leave()
            client.socket.leaving = True
            status, _ = await rest.ask("DELETE", f"/api/sessions/{model['id']}", timeout=DEADLINE)
            if status != 204:
                self.ledger.breach(f"DELETE of a session: {status}")
            await client.reading
            client.rest.close()
            self.ledger.note("short lives")
            await asyncio.sleep(self.rng.uniform(3, 8))
        rest.close()

    async def restart(self):
        """A kernel now and then."""
        rests = {t.token: Rest(t) for t in self.targets}
        while not self.until.is_set():
            await asyncio.sleep(self.rng.uniform(3, 9))
            kernel = self.rng.choice(self.kernels)

            async def act(kernel=kernel):
                status, got = await rests[kernel.target.token].ask(
                    "POST", f"/api/kernels/{kernel.id}/restart", {}, timeout=DEADLINE)
                if status != 200:
                    self.ledger.breach(f"restart: {status} {got}")
            await kernel.disturb(act)
            self.ledger.note("restarts")
        for r in rests.values():
            r.close()

    async def watch(self, gauge):
        while True:
            try:
                row = gauge.sample()
            except (FileNotFoundError, ProcessLookupError):     # a process ended under the look
                await asyncio.sleep(0.1)
                continue
            for kernel in self.kernels + self.loud:
                kernel.overdue()
            if len(gauge.rows) % 12 == 1:
                c = self.ledger.counts
                print(f"{gauge.rows[-1][0]:5.0f} s  gateway {row['gateway rss KiB'] >> 10} MiB, {row['gateway fds']} fds;"
                      f" launcher {row['launcher rss KiB'] >> 10} MiB, {row['launcher fds']} fds; {row['processes']} processes;"
                      f" {c['messages']} messages, {c['requests']} requests, {c['breaches']} breaches", flush=True)
            await asyncio.sleep(5 if self.args.seconds > 120 else 1)

    def too_little(self):
        """What was looked at less than it had to be: a run in which nobody does anything finds no fault."""
        a, c = self.args, self.ledger.counts
        acts = a.kernels * a.clients * a.seconds / (a.pause + 10)      # an act takes a pause and its own time, on a busy machine
        least = {"replies checked": acts / 4, "outputs checked": acts, "idles checked": acts / 4, "REST answers checked": a.seconds,
                 "short lives": a.seconds / 60, "restarts": a.seconds / 60, "rude answers checked": a.rude}
        # All together go through all kinds, if there is the time for that.
        least |= {f"rude {name}": 1 for name in KINDS} if a.rude * a.seconds >= 20 * len(KINDS) else {}
        tries = sum(c[f"rude {name}"] for name in KINDS)
        return ([f"{what}: {c[what]}, at least {n:.0f} were to be" for what, n in least.items() if c[what] < n]
                + [f"rude ones cut short: {c['rude ones cut short']} of {tries}, more than half"
                   for _ in [0] if c["rude ones cut short"] > tries / 2])

    # --- all of it
    async def traffic(self, gauge):
        await self.set_up()
        begin = time.monotonic() - gauge.began
        print(f"set up after {begin:.0f} s; traffic for {self.args.seconds} s", flush=True)
        watching = asyncio.create_task(self.watch(gauge))
        tasks = [c.live(self.until, self.args.pause) for k in self.kernels + self.loud for c in k.clients]
        tasks += [self.poll(t) for t in self.targets] + [self.come_and_go(t) for t in self.targets] + [self.restart()]
        deck = list(Rude.ATTEMPTS)
        for i in range(self.args.rude):
            n = i % PRINCIPALS
            tasks.append(Rude(self.ledger, self.targets[n], [k.id for k in self.kernels if k.target is self.targets[n]],
                              self.loud[n], random.Random(self.rng.random()), self.args.tls, deck).live(self.until, 2))
        asyncio.get_running_loop().call_later(self.args.seconds, self.until.set)
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, BaseException):
                self.ledger.breach(f"a task of the test ended: {result!r}")
        end = time.monotonic() - gauge.began
        await self.last_idles()
        if watching.done():
            self.ledger.breach(f"the measuring ended: {watching.exception()!r}")
        watching.cancel()
        await asyncio.gather(*(self.say_bye(c) for k in self.kernels + self.loud for c in k.clients))
        return begin, end

    async def last_idles(self):
        end = time.monotonic() + DEADLINE
        while any(k.cells for k in self.kernels + self.loud) and time.monotonic() < end:
            await asyncio.sleep(0.2)
        for kernel in self.kernels + self.loud:
            for cell in kernel.cells.values():
                if not cell.disturbed:
                    self.ledger.breach(f"{cell!r}: no idle for {[str(c) for c in cell.waiting]}")

    async def say_bye(self, client):
        client.rest.close()
        client.socket.leaving = True
        try:
            await client.leave()
        except Exception as e:          # noqa: BLE001
            self.ledger.breach(f"{client}: no clean end: {e!r}")

    def gone(self, before):
        """Deletes all; what is left above the start, or nothing."""
        for target in self.targets:
            auth = {"Authorization": f"token {target.token}"}
            for k in self.server.request("GET", "/api/kernels", headers=auth).json():
                self.server.request("DELETE", f"/api/kernels/{k['id']}", headers=auth)
        left = {}

        def back():
            now = self.server.counters()
            left.clear()
            left.update({k: (before[k], now[k]) for k in before
                         if now[k] > before[k] + (4 if k.endswith("_fds") else 0)})
            return not left
        try:
            wait_for(back, 180, 0.5)
        except AssertionError:
            pass
        return left

    def run(self):
        failed = 0
        self.start_server()
        try:
            before = self.server.counters()
            gauge = Gauge(self.server)
            gauge.sample()
            begin, end = asyncio.run(self.traffic(gauge))
            table, drift = gauge.drift(begin, end)
            failed += self.tell("messages", self.ledger.broken)
            failed += self.tell("enough was looked at", self.too_little())
            failed += self.tell("flat", drift)
            print(f"\n{'':22} {'start':>10} {'warm':>10} {'late':>10} {'end':>10}", *table, sep="\n")
            failed += self.tell("what is left when all have gone", [f"{k}: {v}" for k, v in self.gone(before).items()])
            log = [x for x in self.server.log().splitlines() if " error " in x or "ERROR" in x or "runtime error" in x]
            failed += self.tell("the server's processes and log",
                                ([] if gauge.alive() else ["a process of the server was replaced"]) + log[:20])
        finally:
            print("\n" + "\n".join(f"{k:28} {v}" for k, v in sorted(self.ledger.counts.items())))
            print(f"slowest reply {self.ledger.longest[0]:.1f} s ({self.ledger.longest[1]}), seed {self.seed}")
            try:
                if failed and os.environ.get("HOLDCELL_LOGS"):
                    shutil.copy(self.server.log_path, os.path.join(os.environ["HOLDCELL_LOGS"], "soak-server.log"))
                self.server.close()
            finally:
                shutil.rmtree(self.top)
        print(f"passed={5 - failed} failed={failed} skipped=0")
        return failed

    @staticmethod
    def tell(what, findings):
        print(f"{'FAILED' if findings else 'ok    '} {what}", *findings, sep="\n       ", flush=True)
        return bool(findings)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))      # by way of every `finally`
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    sys.exit(1 if Soak(options()).run() else 0)
