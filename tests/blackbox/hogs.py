"""Cells that use up what there is, or send on their kernel's own connections what no kernel sends; for the tests that
look at what it does to others, and for bench/neighbours.py."""

import multiprocessing
import statistics
import time
import traceback

from channels import Channels
from server import SLOW, read, wait_for

SMALL = {"memory_mb": 300, "disk_mb": 32, "tmp_mb": 32, "shm_mb": 16, "pids": 64}

# ---- resources ----

CHILD = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', %r])"
MEMORY = "b = []\nwhile True:\n    b.append(bytearray(16 << 20))"
FORKS = "import os\nwhile True: os.fork()"
STOP = "import os, signal\nos.kill(-1, signal.SIGSTOP)"
FILES = "for i in range(100_000):\n    open(f'/tmp/{i}', 'w').close()"
DISK = "with open('/home/user/full', 'wb') as f:\n    while True: f.write(bytes(1 << 20))"
FLOOD = "import sys\nfor i in range(1000):\n    sys.stdout.write('x' * 1_000_000); sys.stdout.flush()"
BLOCKED = """import ctypes
libc, everything = ctypes.CDLL(None), (ctypes.c_ulong * 16)(*[2 ** 64 - 1] * 16)
libc.pthread_sigmask(0, everything, None)
%swhile True: pass"""
IGNORED = "import signal\nfor n in (2, 3, 15): signal.signal(n, signal.SIG_IGN)\n"

# ---- frames ----

# The gateway's ends are of no process that is seen inside. What is written goes on until it is refused, in a thread
# each, so that the cell itself can be interrupted. The kernel is renamed once something was sent or cut off: a message
# of its own would get stuck behind that.
CONNECTIONS = """
import ctypes, os, select, socket, struct, threading, time
def unix():
    found = []
    for f in os.listdir('/proc/self/fd'):
        try: s = socket.socket(fileno=os.dup(int(f)))
        except OSError: continue
        if s.family == socket.AF_UNIX and s.type == socket.SOCK_STREAM: found.append(s)
    return found
def connections():
    found = []
    for s in unix():
        try: s.getpeername()
        except OSError: continue
        if struct.unpack('3i', s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0] == 0: found.append(s)
    return found
def listening():
    return [s for s in unix() if s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)]
begun = threading.Event()
def mark():
    ctypes.CDLL(None).prctl(15, b'poured', 0, 0, 0)
def pour(s, chunks):
    for c in chunks:
        left = memoryview(c)
        while left:
            try:
                left = left[s.send(left):]
                begun.set()
            except BlockingIOError: select.select([], [s], [])
            except OSError: return
def everywhere(chunks):
    threads = [threading.Thread(target=pour, args=(s, chunks()), daemon=True) for s in connections()]
    assert threads, 'the kernel has no connection'
    for t in threads: t.start()
    return threads
def forever(chunk, first=b''):
    def chunks():
        yield first
        while True: yield chunk
    return chunks
def chunks_of(first, slowly=b''):
    def chunks():
        yield first
        while True:
            time.sleep(0.01)
            yield slowly
    return chunks
def head(n, flags=0):
    return bytes([flags | 2]) + n.to_bytes(8, 'big')
"""
WAIT = "\nbegun.wait()\nmark()\nfor t in threads: t.join()\nwhile True: time.sleep(1)\n"


def frames(chunks):
    return CONNECTIONS + f"threads = everywhere({chunks})" + WAIT


ACCEPTING = CONNECTIONS + """
def serve(s):
    s.setblocking(True)
    while True:
        c, _ = s.accept()
        kept.append(c)
        if first: c.sendall(first)
kept, first = [], %r
threads = [threading.Thread(target=serve, args=(s,), daemon=True) for s in listening()]
assert threads and connections(), 'the kernel listens nowhere, or has no connection'
for t in threads: t.start()
while True:         # the kernel itself takes some of those that come then
    for c in connections():
        try: c.shutdown(socket.SHUT_RDWR)
        except OSError: continue
        mark()
    time.sleep(1)
"""

PARTS, LARGE, ENDED = "more parts than any may have", "larger than any may be", "a command of ZMTP that is none"
GREETING = "no greeting of ZMTP 2.0 or later"
# name: (the cell, what its clients are told when it is ended for it, or None)
FRAMES = {
    "empty-parts": (frames(r"forever(b'\1\0' * 65536)"), PARTS),
    "small-parts": (frames(r"forever((b'\1\x28' + bytes(40)) * 4096)"), PARTS),
    "large-parts": (frames("forever(head(4 << 20, 1) + bytes(4 << 20))"), LARGE),
    "long-parts-of-one-message": (frames("forever(head(100 << 20, 1) + bytes(100 << 20))"), LARGE),
    "commands-that-are-queued": (frames(r"forever((b'\4\x0a\x09SUBSCRIBE') * 8192)"), ENDED),
    "a-greeting-that-is-none": (ACCEPTING % b"GET / HTTP/1.1\r\n\r\n", GREETING),
    "announced-and-never-sent": (frames("chunks_of(head(120 << 20))"), None),
    "announced-and-sent-slowly": (frames("chunks_of(head(120 << 20), b'x')"), None),
    "endless-small-messages": (frames(r"forever(b'\0\x28' * 1 + bytes(40) + (b'\0\x28' + bytes(40)) * 4096)"), None),
    "endless-large-messages": (frames("forever(head(30 << 20) + bytes(30 << 20))"), None),
    "endless-pings": (frames(r"forever(b'\4\7\4PING\0\0' * 8192)"), None),
    "a-ping-that-ends-us-later": (frames(r"forever(b'\4\7\4PING\0\1' * 8192)"), "a PING with a time to live"),
    "connections-never-greeted": (ACCEPTING % b"", None),
    "connections-greeted-by-half": (ACCEPTING % b"\xff\0\0\0", None),
}


# ---- each in a session of its own, from its start to its end ----

class Case:
    def __init__(self, code, status, told, seconds, kept, ename=None, **limits):
        self.code, self.status, self.ename, self.told = code, status, ename, told
        self.seconds = seconds              # of docs/STATES.md: until the cell has ended
        self.kept = kept                    # the session goes on with its variables
        self.limits = {**SMALL, **limits}

    def live(self, server):
        """A session that does it, from its start to its end; seconds of the cell, and of DELETE."""
        kid = server.start_kernel("python3", limits=self.limits)
        with Channels(server, kid) as c:
            assert c.run("kept = 4711").status == "ok"
            began = time.monotonic()
            run = c.run(self.code, timeout=self.seconds * SLOW * 4)
            took = time.monotonic() - began
            assert (run.status, run.ename) == (self.status, self.ename), run.messages[-5:]
            assert self.told in run.stream("stderr"), run.stream("stderr")
            again = c.run("kept")
            assert again.result == "4711" if self.kept else again.ename == "NameError"
        began = time.monotonic()
        assert server.delete_kernel(kid) == 204
        return took, time.monotonic() - began


def poured(server):
    """Kernels that have sent what no kernel sends, or cut off their connections."""
    return [p for p in server.kernels() if read(f"/proc/{p}/comm").strip() == "poured"]


def goes_on(client, cell, seconds=3):
    """A cell that nobody ends in that time, nor the socket of its client."""
    try:
        run = client.finish(cell, timeout=seconds)
    except TimeoutError:
        return
    raise AssertionError(f"the cell ended: {run.status} {run.ename} {run.messages[-5:]}")


class Frames:
    """As a Case; frames that end no kernel go on for a while, until DELETE."""
    seconds = 10

    def __init__(self, name):
        self.code, self.told = FRAMES[name]

    def live(self, server):
        kid = server.start_kernel("python3", limits={**SMALL, "memory_mb": 1000})
        with Channels(server, kid) as c:
            assert c.run("0").status == "ok"
            began = time.monotonic()
            cell = c.start(self.code)
            if self.told is None:
                wait_for(lambda: poured(server))
                goes_on(c, cell)
            else:
                run = c.finish(cell, timeout=self.seconds * SLOW * 4)
                assert run.ename == "KernelDied" and self.told in run.stream("stderr"), run.messages[-5:]
            took = time.monotonic() - began
        began = time.monotonic()
        assert server.delete_kernel(kid) == 204
        return took, time.monotonic() - began


CASES = {
    "oom-in-the-kernel": Case(MEMORY, "error", "out of memory (limit 300 MiB, peak 300 MiB)", 10, False, "KernelDied"),
    "oom-in-a-child": Case(CHILD % MEMORY + ".returncode", "ok", "out of memory (limit 300 MiB, peak 300 MiB)", 10, True),
    "fork-bomb": Case(FORKS, "error", "process limit: this session may have 64", 10, True,
                      "BlockingIOError", memory_mb=1200),
    "many-files": Case(FILES, "error", "disk full", 20, True, "OSError", inodes=20000),
    "files-that-fit": Case(FILES, "ok", "", 20, True, inodes=120_000, memory_mb=600, disk_mb=128),
    "disk-full": Case(DISK, "error", "/home/user 32 MiB", 10, True, "OSError"),
    "output-flood": Case(FLOOD, "ok", "bytes were dropped (limit 64 MiB)", 60, True, output_mb=64,
                         memory_mb=1500),    # 1,000 messages may wait in the kernel itself
    "signals-blocked": Case(BLOCKED % "", "error", "variables are kept", 10, True, "KeyboardInterrupt", cell_timeout=2),
    "signals-ignored": Case(BLOCKED % IGNORED, "error", "time-out", 10, False, "CellTimeout", cell_timeout=2),
    "everything-stopped": Case(CHILD % STOP, "error", "time-out", 10, False, "CellTimeout", cell_timeout=2),
}
CASES.update({"frames-" + name: Frames(name) for name in FRAMES})


# ---- or that never end by themselves ----

HOT = "import os, signal, threading, time\ndef hot(): print('at it', flush=True)\n"
ENDLESS = {
    "forks": "told = False\nwhile True:\n    try:\n        if os.fork() == 0:\n            while True: pass\n"
             "    except OSError:\n        if not told: hot()\n        told = True",
    "memory": "b = bytearray(250 << 20); hot()\nwhile True:\n    for i in range(0, len(b), 4096): b[i] = (b[i] + 1) % 256",
    "files": "def work(n):\n    while True:\n        for i in range(500): open(f'/home/user/{n}-{i}', 'w').close()\n"
             "        for i in range(500): os.unlink(f'/home/user/{n}-{i}')\n"
             "for n in range(8): threading.Thread(target=work, args=(n,), daemon=True).start()\nhot()\nwhile True: time.sleep(0.001)",
    "disk": "f = os.open('/home/user/f', os.O_RDWR | os.O_CREAT); hot()\n"
            "while True:\n    os.pwrite(f, bytes(16 << 20), 0); os.fsync(f)",
    "output": "hot()\nwhile True: print('x' * 100_000)",
    "signals-ignored": "hot()\n" + BLOCKED % IGNORED,
    "everything-stopped": "hot()\nos.kill(-1, signal.SIGSTOP)\nwhile True: time.sleep(0.001)",
}


def at_its_worst(server, name):
    """A session that never stops what it does: seconds until it was asked for, until an interrupt was taken, and until
    it was deleted."""
    kid = server.start_kernel("python3", limits={**SMALL, "inodes": 8000})
    with Channels(server, kid) as c:
        c.start(HOT + ENDLESS[name])
        c.until(lambda m: m["msg_type"] == "stream" and "at it" in m["content"]["text"])
        times = []
        for ask, answer in ((lambda: server.request("GET", f"/api/kernels/{kid}").status, 200),
                            (lambda: server.interrupt(kid), 204), (lambda: server.delete_kernel(kid), 204)):
            began = time.monotonic()
            assert ask() == answer
            times.append(time.monotonic() - began)
    return times


# ---- and what a neighbour sees of it ----

def round_trip(c):
    began = time.monotonic()
    assert c.run("1").result == "1"
    return (time.monotonic() - began) * 1000


def asked(server):
    """What an operator looks at, and a program that waits for a kernel."""
    began = time.monotonic()
    assert server.request("GET", "/api/kernels").status == 200
    return (time.monotonic() - began) * 1000


FORK = multiprocessing.get_context("fork")


class Hog:
    """Does it again and again, in one session after the other. A process: what its client reads is no burden of ours."""

    def __init__(self, case, server):
        self.ours, self.theirs = FORK.Pipe()
        self.process = FORK.Process(target=self.work, args=(case, server))
        self.took = []

    def work(self, case, server):
        try:
            while True:
                self.theirs.send(case.live(server))
                if self.theirs.poll():
                    return
        except BaseException:
            self.theirs.send(traceback.format_exc())

    def look(self):
        """Takes what it has told; a failure in it is one of ours."""
        while self.ours.poll():
            told = self.ours.recv()
            assert isinstance(told, tuple), told
            self.took.append(told)

    def end(self):
        self.ours.send("enough")
        self.process.join()
        self.look()


def measure(case, servers):
    """Times in ms: a cell of the neighbour before the hog, beside it, of somebody in another instance meanwhile; and
    the answer to a request beside the hog, and meanwhile in the other instance."""
    with Channels(servers[0], servers[0].start_kernel("python3")) as near, \
            Channels(servers[1], servers[1].start_kernel("python3")) as far:
        for c in (near, far):
            round_trip(c)
        quiet = [round_trip(near) for _ in range(30)]
        hog = Hog(case, servers[0])
        hog.process.start()
        beside, elsewhere, status, status_elsewhere = [], [], [], []
        try:
            while hog.process.is_alive() and (len(beside) < 60 or not hog.took):
                beside.append(round_trip(near))
                elsewhere.append(round_trip(far))
                status.append(asked(servers[0]))
                status_elsewhere.append(asked(servers[1]))
                hog.look()
                time.sleep(0.02)
        finally:
            hog.end()
    for s in servers:
        for k in s.request("GET", "/api/kernels").json():
            s.delete_kernel(k["id"])
    return hog.took, (quiet, beside, elsewhere, status, status_elsewhere)


def medians(samples):
    return tuple(map(statistics.median, samples))
