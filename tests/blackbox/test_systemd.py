"""`holdcell serve` as a unit of systemd, with a group of its own (Delegate=yes) and without.
Run in the guest of tests/vm.sh with systemd only (HOLDCELL_GUEST=systemd)."""

import os
import re
import shutil
import signal
import subprocess

import pytest

from channels import Channels
from server import (BIN, DEADLINE, ROOT, Server, TOKEN, V2_ROOT, cgroups_of, descendants_of, group_of, read, status_of,
                    wait_for)

# They change the machine's /etc and /run, so a name on the command line does not suffice to run them.
pytestmark = [pytest.mark.guest,
              pytest.mark.skipif(os.environ.get("HOLDCELL_GUEST") != "systemd", reason="for the guest with systemd only")]


def alive(pid):
    return status_of(pid).get("State", "Z")[0] not in "ZX"


def systemctl(*words):
    return subprocess.run(["systemctl", *words], capture_output=True, text=True, timeout=DEADLINE)


class Unit(Server):
    """`holdcell serve` as a transient unit of its own; no child of ours."""

    def __init__(self, *properties, scope=False, options=()):
        super().__init__(*options)
        self.name = f"holdcell-test-{self.port}." + ("scope" if scope else "service")
        self.how = ["systemd-run", "--quiet", "--collect", f"--unit={self.name.split('.')[0]}",
                    *(["--scope"] if scope else ["--property=Type=exec", f"--setenv=HOLDCELL_RUNTIME={os.environ['HOLDCELL_RUNTIME']}",
                                                 f"--property=StandardError=append:{self.log_path}"]),
                    *[f"--property={p}" for p in properties], "--"]
        self.scope = scope

    def spawn(self):
        with open(self.log_path, "ab") as log:
            self.proc = subprocess.Popen(self.how + self.argv(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if not self.scope:
            assert self.proc.wait(DEADLINE) == 0, self.log()
            self.proc = Main(self)
        return self

    def show(self, what):
        return systemctl("show", "--value", "--property", what, self.name).stdout.strip()

    def close(self):
        if self.scope:
            super().close()
        else:
            systemctl("stop", self.name)
            shutil.rmtree(self.dir, ignore_errors=True)


class Main:
    """The unit's main process, with as much of Popen as Server asks for."""

    def __init__(self, unit):
        self.unit = unit

    @property
    def pid(self):
        return int(self.unit.show("MainPID"))

    def poll(self):
        return None if alive(self.pid) else 1


@pytest.fixture
def unit():
    own = []

    def make(*properties, **kw):
        own.append(Unit(*properties, **kw).start())
        return own[-1]
    yield make
    for u in own:
        u.close()


def gone(slot, pids):
    wait_for(lambda: not any(alive(p) for p in pids))
    wait_for(lambda: cgroups_of(slot) == [])


def cell(s, kid, code):
    with Channels(s, kid) as c:
        return c.run(code)


def test_a_stopped_service_leaves_nothing(unit):
    u = unit("Delegate=yes")
    kid = u.start_kernel("python3")
    assert cell(u, kid, "import subprocess; subprocess.Popen(['setsid', 'sleep', '1000']); 6 * 7").status == "ok"
    group, slot, pids = group_of(u.process("launcher")), u.slot(), [u.proc.pid, *descendants_of(u.proc.pid)]
    assert group.endswith(f"/{u.name}/holdcell-main")
    stopped = systemctl("stop", u.name)
    assert stopped.returncode == 0, stopped.stderr
    assert u.show("Result") == "success"
    gone(slot, pids)
    assert not os.path.exists(os.path.dirname(group))


def test_a_service_that_is_killed_comes_back_clean(unit):
    u = unit("Delegate=yes", "Restart=always", "RestartSec=100ms")
    kid = u.start_kernel("python3")
    assert cell(u, kid, "1").status == "ok"
    slot, pids = u.slot(), [u.proc.pid, *descendants_of(u.proc.pid)]
    os.kill(pids[0], signal.SIGKILL)
    wait_for(lambda: not any(alive(p) for p in pids))
    wait_for(lambda: u.proc.pid not in (0, pids[0]) and u.answers())
    assert u.slot() == slot and u.kernel(kid) is None
    assert [g for g in cgroups_of(slot) if re.search(r"/s/[^/]+$", g)] == []
    assert cell(u, u.start_kernel("python3"), "2 + 2").result == "4"


def test_without_delegation_the_groups_go_below_the_root(unit):
    """What a person at a shell gets; systemd goes on ordering its own groups meanwhile."""
    u = unit(scope=True)
    kid = u.start_kernel("python3")
    assert cell(u, kid, "kept = 5").status == "ok"
    base = f"{V2_ROOT}/holdcell-{u.slot()}"
    assert base in cgroups_of(u.slot())
    kernel, = u.kernels()
    session = os.path.dirname(group_of(kernel))
    before = {f: read(f"{session}/{f}") for f in ("memory.max", "pids.max", "cpu.max")}
    assert all(before.values()) and not any(v.startswith("max") for v in before.values())
    assert systemctl("daemon-reload").returncode == 0
    assert subprocess.run(["systemd-run", "--quiet", "--wait", "--property=CPUWeight=50", "true"], timeout=DEADLINE).returncode == 0
    assert {f: read(f"{session}/{f}") for f in before} == before
    assert cell(u, kid, "kept").result == "5"
    slot, pids = u.slot(), [u.proc.pid, *descendants_of(u.proc.pid)]
    assert u.stop() == 0
    gone(slot, pids)


class Installed(Unit):
    """scripts/holdcell.service, installed as docs/SERVICE.md says."""

    def __init__(self):
        super().__init__()
        self.name = "holdcell.service"
        os.makedirs("/opt/holdcell/bin", exist_ok=True)
        os.makedirs("/opt/holdcell/runtime", exist_ok=True)
        for program in ("holdcell", "holdcell-launcher", "holdcell-init"):
            shutil.copy(os.path.join(os.path.dirname(BIN), program), "/opt/holdcell/bin/")
        current = "/opt/holdcell/runtime/current"
        if not os.path.lexists(current):
            os.symlink(os.environ["HOLDCELL_RUNTIME"], current)
        os.makedirs("/etc/holdcell", mode=0o700, exist_ok=True)
        with open("/etc/holdcell/token", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            f.write(TOKEN + "\n")
        with open("/etc/holdcell/environment", "w") as f:
            f.write(f"HOLDCELL_LISTEN=unix:/run/holdcell/holdcell.sock,127.0.0.1:{self.port}\n"
                    f"HOLDCELL_TOKEN_FILE=/etc/holdcell/token\nHOLDCELL_STATE_DIR={self.state}\n"
                    "HOLDCELL_AUDIT_LOG=/var/log/holdcell/audit\nHOLDCELL_MEMORY_MB=256\n")
        shutil.copy(f"{ROOT}/scripts/holdcell.service", "/etc/systemd/system/")
        os.makedirs("/etc/systemd/system/holdcell.service.d", exist_ok=True)
        with open("/etc/systemd/system/holdcell.service.d/log.conf", "w") as f:
            f.write(f"[Service]\nStandardError=append:{self.log_path}\n")

    def spawn(self):
        for words in (["daemon-reload"], ["start", self.name]):
            got = systemctl(*words)
            assert got.returncode == 0, got
        self.proc = Main(self)
        return self


@pytest.mark.boot
def test_the_unit_file_serves_reloads_outlives_a_full_memory_and_stops_clean():
    shutil.rmtree("/run/holdcell", ignore_errors=True)      # as after a boot
    u = Installed()
    try:
        u.start()
        kid = u.start_kernel("python3")
        assert cell(u, kid, "6 * 7").result == "42"
        main, slot, pids = u.proc.pid, u.slot(), [u.proc.pid, *descendants_of(u.proc.pid)]
        assert group_of(u.process("launcher")).endswith("/holdcell.service/holdcell-main")
        hog = u.start_kernel("python3")
        with Channels(u, hog) as c:
            c.run("x = bytearray(1 << 30)")
        wait_for(lambda: "event=out_of_memory" in u.log())
        assert systemctl("reload", u.name).returncode == 0
        wait_for(lambda: "event=signal signo=1" in u.log())
        assert u.proc.pid == main and cell(u, kid, "2 + 2").result == "4"
        assert "kernel_create" in read("/var/log/holdcell/audit")
        assert os.path.exists("/run/holdcell/holdcell.sock")
        assert systemctl("stop", u.name).returncode == 0
        assert u.show("Result") == "success"
        gone(slot, pids)
    finally:
        u.close()


class Keeping(Unit):
    """With a unit file: a transient unit cannot start again while processes of it are there."""

    def __init__(self, *properties, options=()):
        super().__init__(options=options)
        self.path = f"/run/systemd/system/{self.name}"
        self.properties = properties

    def spawn(self):
        with open(self.path, "w") as f:
            f.write("\n".join(["[Service]", "Type=exec", f"Environment=HOLDCELL_RUNTIME={os.environ['HOLDCELL_RUNTIME']}",
                               f"StandardError=append:{self.log_path}", *self.properties,
                               "ExecStart=" + " ".join(self.argv()), ""]))
        assert systemctl("daemon-reload").returncode == 0
        self.started = systemctl("start", self.name)
        self.proc = Main(self)
        return self

    def stop_kept(self):
        return subprocess.run([BIN, "stop", "--state-dir", self.state], timeout=DEADLINE).returncode

    def close(self):
        systemctl("stop", self.name)
        self.stop_kept()
        os.unlink(self.path)
        systemctl("daemon-reload")
        shutil.rmtree(self.dir, ignore_errors=True)


@pytest.fixture
def keeping():
    own = []

    def make(*properties):
        own.append(Keeping("KillMode=process", *properties, options=("--on-exit", "keep")).start())
        return own[-1]
    yield make
    for u in own:
        u.close()


def test_kernels_are_kept_over_a_restart_of_the_service(keeping):
    """Without Delegate=: systemd before 254 puts no process into a group that hands out controllers."""
    u = keeping()
    kid = u.start_kernel("python3")
    assert cell(u, kid, "kept = 5").status == "ok"
    slot, kernels = u.slot(), u.kernels()
    assert systemctl("stop", u.name).returncode == 0
    assert u.show("Result") == "success"
    assert kernels and all(alive(p) for p in kernels)
    u.start()
    assert cell(u, kid, "kept").result == "5"
    assert systemctl("stop", u.name).returncode == 0
    assert all(alive(p) for p in kernels)
    assert u.stop_kept() == 0
    gone(slot, kernels)


def test_a_delegated_service_that_keeps_needs_a_newer_systemd(keeping):
    """What docs/OPERATING.md says about it, and that nothing is lost."""
    if int(systemctl("--version").stdout.split()[1]) >= 254:
        pytest.skip("DelegateSubgroup= is there")
    u = keeping("Delegate=yes")
    u.start_kernel("python3")
    kernels = u.kernels()
    assert systemctl("stop", u.name).returncode == 0
    u.spawn()
    assert u.started.returncode != 0
    assert u.show("ExecMainStatus") == "219"
    assert kernels and all(alive(p) for p in kernels)
