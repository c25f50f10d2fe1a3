#!/usr/bin/env python3
"""Hostile gateways on a real launcher: storm.py [--seed N] [--minutes M | --lives N] [--build DIR]

The launcher (built with sanitizers) starts tests/tools/hostile as its gateway, again and again. Each process is one
life: it sends requests, requests with something wrong in them, noise, wrong descriptors, and ends in some way that
no gateway should. After so many lives comes a sane one, which ends what they left, then asks for a session from its
creation to its end; while it sits still, processes, descriptors, cgroups and mounts are counted, and must be what
they were at first. A life follows from the seed and its number; what else happens depends on time too.

--replay FILE runs a line `SEED LIVES` after the other, each on a launcher of its own. The last line is
`passed=N failed=N skipped=0`."""

import argparse
import ctypes
import fcntl
import glob
import json
import mmap
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "blackbox"))
from server import cgroups_of, children_of, read, status_of, wait_for  # noqa: E402

SLOTS = "/run/holdcell/instances"
SLOTS_MAX = 512
ID_BASE, ID_BLOCK, GATEWAY_ID = 0x70000000, 0x10000, 1      # protocol/hostids.h
PR_SET_CHILD_SUBREAPER = 36
STUCK_S = 240           # without a new life, or the end of a sane one
RSS_GROWTH_KB = 64 * 1024
ENDINGS = ["", "noise", "exit", "killed", "closed", "deaf", "blind", "parting", "empty", "settled", "flood", "stopped"]
VERBS = ["", "create", "start", "seal", "signal", "stop", "status", "list", "note", "deadline", "room", "audit"]


class Page:
    """The memory that the lives share with us: struct page of tests/tools/hostile/page.h."""
    NAMES = ["seed", "fuzz_until", "lives", "sane", "messages", "mutated", "answers", "errors", "events", "created",
             "started", "ended", "slowest_sane_ms", "slowest_ms"]
    FAILED = (len(NAMES) + 32) * 8

    def __init__(self, seed):
        self.fd = os.memfd_create("storm")
        os.ftruncate(self.fd, 4096)
        self.memory = mmap.mmap(self.fd, 4096)
        self["seed"] = seed

    def __getitem__(self, name):
        return struct.unpack_from("<Q", self.memory, self.NAMES.index(name) * 8)[0]

    def __setitem__(self, name, value):
        struct.pack_into("<Q", self.memory, self.NAMES.index(name) * 8, value)

    def row(self, which, names):
        at = (len(self.NAMES) + 16 * which) * 8
        return {n: struct.unpack_from("<Q", self.memory, at + i * 8)[0] for i, n in enumerate(names) if n}

    def failure(self):
        if not struct.unpack_from("<Q", self.memory, self.FAILED)[0]:
            return ""
        return self.memory[self.FAILED + 8:self.FAILED + 520].split(b"\0")[0].decode("utf-8", "replace")

    def close(self):
        self.memory.close()
        os.close(self.fd)


class Broken(Exception):
    pass


def take_slot():
    """(number, locked file): from the top of the table, where servers come last."""
    os.makedirs(SLOTS, mode=0o700, exist_ok=True)
    for slot in reversed(range(SLOTS_MAX)):
        f = open(os.path.join(SLOTS, str(slot)), "a+")
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            f.close()
            continue
        f.truncate(0)
        f.write(f"pid {os.getpid()}\nstorm\n")
        f.flush()
        return slot, f
    raise Broken("no slot is free")


class Silent(threading.Thread):
    """Connects to the gateway's port and reads nothing: sockets that take long to close."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.over, self.all = port, threading.Event(), []

    def run(self):
        while not self.over.wait(0.5):
            try:
                s = socket.socket()
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                s.settimeout(2)
                s.connect(("127.0.0.1", self.port))
                self.all.append(s)
            except OSError:
                pass
            while len(self.all) > 8:
                self.all.pop(0).close()

    def end(self):
        self.over.set()
        self.join()
        for s in self.all:
            s.close()


# What the launcher keeps for the next session, and how many of each: the workspaces of alice and bob, mounted, and
# empty file systems of so many sizes, for homes (sandbox/homes.h) and for workspaces.
CACHED = {"/": 2, "/dev/loopN": 2, "/memfd:extN-template (deleted)": 2 * 8}


class Launcher:
    def __init__(self, build, seed):
        self.dir = tempfile.mkdtemp(prefix="holdcell-storm-")
        os.chmod(self.dir, 0o755)
        self.page = Page(seed)
        self.slot, self.lock = take_slot()
        self.reports = os.path.join(self.dir, "reports")        # the lives have one too, if they are at fault
        os.mkdir(self.reports)
        os.chmod(self.reports, 0o1777)
        spec = os.path.join(self.dir, "kernels", "storm")
        os.makedirs(spec)
        with open(os.path.join(spec, "kernel.json"), "w") as f:
            json.dump({"argv": ["sh"], "display_name": "storm", "language": "none"}, f)
        for name in ("left", "right", "state", "workspaces"):
            os.mkdir(os.path.join(self.dir, name), 0o711)
        private = os.path.join(self.dir, "gateway")
        os.mkdir(private, 0o700)
        uid = ID_BASE + self.slot * ID_BLOCK + GATEWAY_ID
        os.chown(private, uid, uid)
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(16)
        self.silent = Silent(self.listener.getsockname()[1])
        self.start(build, private)
        self.silent.start()

    def start(self, build, private):
        ready, ready_end = os.pipe()
        dir_fd = os.open(private, os.O_RDONLY | os.O_DIRECTORY)
        state_fd = os.open(os.path.join(self.dir, "state"), os.O_RDONLY | os.O_DIRECTORY)
        fds = {"listen": self.listener.fileno(), "settings": self.page.fd, "ready": ready_end, "dir": dir_fd, "state-dir": state_fd}
        argv = [os.path.join(build, "bin", "holdcell-launcher"), f"--slot={self.slot}",
                "--init=" + os.path.join(build, "bin", "holdcell-init"),
                "--gateway=" + os.path.join(build, "tests", "hostile-gateway"), "--gateway-pause-max-ms=1",
                "--runtime=/usr/lib/python3", f"--kernel-path={self.dir}", f"--audit-log={self.dir}/audit.log",
                "--max-sessions=16", "--memory-mb=128", "--max-memory-mb=160", "--cpu-millis=150",
                "--max-cpu-millis=200", "--pids=64", "--max-pids=128", "--disk-mb=4", "--max-disk-mb=8",
                "--tmp-mb=4", "--max-tmp-mb=8", "--inodes=256", "--max-inodes=1024", "--max-deadline=100",
                "--memory-reserve-mb=0", f"--data=left={self.dir}/left:right={self.dir}/right",
                f"--workspaces={self.dir}/workspaces", "--workspace-mb=8"] + [f"--{name}-fd={fd}" for name, fd in fds.items()]
        options = f"log_path={self.reports}/of:abort_on_error=0:exitcode=99"
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
               "ASAN_OPTIONS": options + ":detect_leaks=0:quarantine_size_mb=16",
               "UBSAN_OPTIONS": options + ":print_stacktrace=1"}
        self.log_path = os.path.join(self.dir, "log")
        with open(self.log_path, "wb") as log:
            self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
                                         pass_fds=list(fds.values()), start_new_session=True)
        self.pid = self.proc.pid
        for fd in (ready, ready_end, dir_fd, state_fd):
            os.close(fd)

    def counters(self):
        links = sorted(re.sub(r"\d+", "N", os.readlink(f"/proc/{self.pid}/fd/{fd}"))
                       for fd in os.listdir(f"/proc/{self.pid}/fd"))
        for link, most in CACHED.items():
            if links.count(link) > most:
                raise Broken(f"{links.count(link)} of {link} are kept, {most} may be")
        return {
            "descriptors": [link for link in links if link not in CACHED],
            "children": len(children_of(self.pid)),
            "threads": len(os.listdir(f"/proc/{self.pid}/task")),
            "cgroups": cgroups_of(self.slot),
            "mounts": len(read(f"/proc/{self.pid}/mountinfo").splitlines()),
            "host_mounts": sum(self.dir in line for line in read("/proc/self/mountinfo").splitlines()),
        }

    def rss(self):
        return int(status_of(self.pid)["VmRSS"].split()[0])

    def check(self):
        if self.proc.poll() is not None:
            raise Broken(f"the launcher ended with {self.proc.returncode}")
        if self.page.failure():
            raise Broken(self.page.failure())
        for report in glob.glob(f"{self.reports}/*"):
            raise Broken("a report of the sanitizers:\n" + read(report))

    def wait_sane(self):
        """Until a sane life was content."""
        before, lives, last = self.page["sane"], -1, time.monotonic()
        while self.page["sane"] == before:
            self.check()
            if self.page["lives"] != lives:
                lives, last = self.page["lives"], time.monotonic()
            if time.monotonic() - last > STUCK_S:
                raise Broken(f"life {lives} does not end, and nobody ends it")
            time.sleep(0.02)
        self.check()

    def stop(self):
        self.proc.send_signal(signal.SIGTERM)
        try:
            code = self.proc.wait(60)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            raise Broken("the launcher did not end within 60 s of SIGTERM") from None
        if code:
            raise Broken(f"the launcher ended with {code} at SIGTERM")
        self.page["fuzz_until"] = 0
        for report in glob.glob(f"{self.reports}/*"):
            raise Broken("a report of the sanitizers:\n" + read(report))
        if cgroups_of(self.slot):
            raise Broken(f"cgroups are left: {cgroups_of(self.slot)}")
        wait_for(lambda: not reap(), 20)

    def close(self, keep):
        self.silent.end()
        if self.proc.poll() is None:
            self.proc.terminate()
            try:
                self.proc.wait(30)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
        self.listener.close()
        self.lock.close()
        self.page.close()
        if not keep:
            shutil.rmtree(self.dir, ignore_errors=True)


def reap():
    """Orphans come to us; pids of those that live."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break
    return children_of(os.getpid())


def differences(first, now):
    out = []
    for name, value in now.items():
        if value != first[name]:
            if isinstance(value, list):
                gone = list(value)
                for v in first[name]:
                    if v in gone:
                        gone.remove(v)
                out.append(f"{name}: {len(first[name])} before, {len(value)} now; new: {gone[:20]}")
            else:
                out.append(f"{name}: {first[name]} before, {value} now")
    return out


def run(build, seed, lives, minutes, epoch):
    """One launcher; raises Broken. Returns the numbers of the run."""
    launcher = Launcher(build, seed)
    began, keep, page = time.monotonic(), True, launcher.page
    try:
        launcher.wait_sane()
        first, rss = launcher.counters(), launcher.rss()
        done = 0
        while done < lives if minutes is None else time.monotonic() - began < minutes * 60:
            until = page["lives"] + (epoch if minutes is not None else min(epoch, lives - done))
            done += until - page["lives"]
            page["fuzz_until"] = until
            launcher.wait_sane()
            # A page of a mount namespace or a cgroup goes a moment after its last process.
            try:
                wait_for(lambda: not differences(first, launcher.counters()), 20)
            except AssertionError:
                raise Broken("left behind: " + "; ".join(differences(first, launcher.counters()))) from None
            if launcher.rss() > rss + RSS_GROWTH_KB:
                raise Broken(f"the launcher's memory grew from {rss} to {launcher.rss()} KB")
            if minutes is not None:
                print(f"{time.monotonic() - began:6.0f} s  lives {page['lives']}  messages {page['messages']}  mutants "
                      f"{page['mutated']}  rss {launcher.rss()} KB  slowest answer {page['slowest_ms']} ms", flush=True)
        numbers = {n: page[n] for n in Page.NAMES if n not in ("fuzz_until",)}
        numbers.update(verbs=page.row(0, VERBS), endings=page.row(1, ENDINGS), descriptors=len(first["descriptors"]),
                       rss_kb=[rss, launcher.rss()])
        launcher.stop()
        keep = bool(os.environ.get("HOLDCELL_KEEP"))
        return numbers
    except Broken:
        print(f"seed {seed}, lives {page['lives']}; the end of {launcher.log_path}:")
        print(read(launcher.log_path)[-3000:])
        raise
    finally:
        launcher.close(keep)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "asan"))
    parser.add_argument("--seed", type=int)
    parser.add_argument("--lives", type=int, default=100)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--epoch", type=int, default=50, help="lives between two counts")
    parser.add_argument("--replay")
    a = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    seed = a.seed if a.seed is not None else int.from_bytes(os.urandom(6), "little")
    runs = [(seed, a.lives)]
    if a.replay:
        with open(a.replay) as f:
            runs = [tuple(map(int, line.split()[:2])) for line in f if line.strip() and line[0] != "#"]
    passed = failed = 0
    for seed, lives in runs:
        print(f"seed {seed}", flush=True)
        try:
            print(json.dumps(run(a.build, seed, lives, a.minutes, a.epoch)))
            passed += 1
        except Broken as e:
            print(f"BROKEN: {e}")
            failed += 1
    print(f"passed={passed} failed={failed} skipped=0")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
