"""The life of the three processes: supervisor, launcher, gateway. Most tests put the console in the
gateway's place (HOLDCELL_GATEWAY), so that they say nothing about HTTP."""

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import threading

import pytest

from server import (BIN, ID_BASE, Server, assert_slot_is_left, cgroup_roots, cgroups_of, children_of, descendants_of,
                    free_port, read, slot_file, status_of, wait_for)

TOOLS = os.path.join(os.path.dirname(os.path.dirname(BIN)), "tests")

CREATE = "create"
KERNEL = "start python3 1 1 fds {python} -P -m holdcell_kernel -f {{connection_file}}"
STAY = "wait gone"


def runtime():
    for place in (os.environ.get("HOLDCELL_RUNTIME"), os.path.join(os.path.dirname(BIN), "..", "runtime"),
                  "/opt/holdcell/runtime/current"):
        if place and os.path.isdir(place):
            return os.path.realpath(place)
    pytest.skip("no runtime is built")


def script(*lines):
    return "\n".join(lines).format(python=runtime() + "/bin/python3")


class Supervised(Server):
    """A server whose gateway is the console with these scripts."""

    def __init__(self, *options, first=(CREATE, KERNEL, STAY), then=("list", STAY), **kw):
        env = {"HOLDCELL_GATEWAY": TOOLS + "/zconsole", "SCRIPT": script(*first), "SCRIPT2": script(*then)}
        super().__init__("--env-inherit", "SCRIPT,SCRIPT2", *options, env=env, **kw)

    def says(self, text, count=1):
        def said():
            if self.proc.poll() is not None:
                raise AssertionError(f"server ended with {self.proc.returncode}:\n{self.log()[-3000:]}")
            return self.log().count(text) >= count
        said.__doc__ = f"{text!r} in the log"
        try:
            return wait_for(said)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.log()[-3000:]}") from None

    def ready(self):
        self.spawn()
        self.says(f"holdcell serving on http://127.0.0.1:{self.port}/")
        return self

    def process(self, name):
        if name != "gateway":
            return super().process(name)
        launcher = super().process("launcher")
        for pid in children_of(launcher) if launcher else []:
            if read(f"/proc/{pid}/cmdline").split("\0")[1:2] == ["gateway"]:
                return pid
        return 0

    def sandboxed(self):
        """Host pids of all processes that belong to sessions."""
        skip = {self.process("launcher"), self.process("gateway")}
        return [p for p in descendants_of(self.proc.pid) if p not in skip]


@pytest.fixture
def supervised():
    own = []

    def make(*options, **kw):
        own.append(Supervised(*options, **kw))
        return own[-1]
    yield make
    for s in own:
        s.close()


def alive(pid):
    """The process runs: it is there and no zombie."""
    return status_of(pid).get("State", "Z")[0] not in "ZX"


def assert_nothing_left(slot, state, pids):
    wait_for(lambda: not any(alive(p) for p in pids))
    assert_slot_is_left(slot, state)
    assert f"holdcell-{slot}" not in read("/proc/self/mountinfo")


# --- the gateway ------------------------------------------------------------------

def test_a_killed_gateway_comes_back_and_finds_the_sandbox_with_its_note(supervised):
    s = supervised(first=(CREATE, KERNEL, "note remembered", STAY)).ready()
    s.says("ready: kernel=1")
    kernels, gateway = s.sandboxed(), s.process("gateway")
    os.kill(gateway, signal.SIGKILL)
    s.says("listed: note=remembered fds=1 kernel=1-1 running=1")
    assert s.process("gateway") not in (0, gateway)
    assert s.sandboxed() == kernels and all(alive(p) for p in kernels)


def test_a_gateway_that_sends_nonsense_is_replaced_and_nothing_else_happens(supervised):
    s = supervised(first=(CREATE, KERNEL, "note kept", "crash", STAY)).ready()
    s.says("listed: note=kept fds=1 kernel=1-1 running=1")
    launcher = s.process("launcher")
    assert "event=gateway_ended" in s.log()
    assert all(alive(p) for p in s.sandboxed()) and alive(launcher)
    assert "event=launcher_ended" not in s.log()


def test_connections_wait_while_the_gateway_is_replaced(supervised):
    s = supervised().ready()
    s.says("ready: kernel=1")
    os.kill(s.process("gateway"), signal.SIGKILL)
    with socket.create_connection(("127.0.0.1", s.port), timeout=10):
        pass
    s.says("listed:")


def test_the_gateway_has_no_power(supervised):
    s = supervised().ready()
    st = status_of(s.process("gateway"))
    assert st["Uid"].split() == [str(ID_BASE + s.slot() * 0x10000 + 1)] * 4
    assert st["Gid"].split() == [str(ID_BASE + s.slot() * 0x10000 + 1)] * 4
    assert st["Groups"].split() == []
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(st[name], 16) == 0, name
    assert st["NoNewPrivs"].strip() == "1"


# --- the launcher -----------------------------------------------------------------

def test_a_killed_launcher_takes_all_sandboxes_along_and_comes_back(supervised):
    s = supervised(first=(CREATE, KERNEL, STAY)).ready()
    s.says("ready: kernel=1")
    old = s.sandboxed()
    launcher = s.process("launcher")
    assert len(old) >= 2
    os.kill(launcher, signal.SIGKILL)
    s.says("ready: kernel=1", 2)            # the new launcher works
    assert s.process("launcher") not in (0, launcher)
    assert not any(os.path.exists(f"/proc/{p}") for p in old)   # reaped too
    groups = [g for g in cgroups_of(s.slot()) if re.search(r"/s/[^/]+$", g)]
    assert len({os.path.basename(g) for g in groups}) <= 1, groups   # of the new session only


@pytest.mark.guest
def test_a_killed_supervisor_takes_everything_along_and_the_next_one_sweeps(supervised):
    s = supervised().ready()
    s.says("ready: kernel=1")
    slot, below = s.slot(), descendants_of(s.proc.pid)
    s.proc.kill()
    s.proc.wait()
    wait_for(lambda: not any(alive(p) for p in below))
    s.ready()
    s.says("ready: kernel=1", 2)
    again = s.slot()
    assert again == slot or s.state not in read(slot_file(slot)), "the last slot is taken again unless somebody else had it"
    s.stop()
    assert_nothing_left(again, s.state, below)


def test_a_launcher_that_cannot_start_ends_the_server_with_its_reason(supervised):
    s = supervised()
    s.env["HOLDCELL_GATEWAY"] = "/there/is/no/such/program"
    s.spawn()
    assert s.proc.wait(60) == 1
    assert "/there/is/no/such/program" in s.log()
    assert "serving on" not in s.log()


def test_a_gateway_that_cannot_start_ends_the_server(supervised):
    s = supervised()
    s.env["HOLDCELL_GATEWAY"] = "/bin/false"
    s.spawn()
    assert s.proc.wait(60) == 1
    assert "event=gateway_does_not_start" in s.log()


# --- the end ------------------------------------------------------------------------

@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGINT])
def test_at_the_end_nothing_is_left(supervised, signo):
    s = supervised(first=(CREATE, KERNEL, CREATE, KERNEL, STAY)).ready()
    s.says("ready: kernel=1", 2)
    slot, pids = s.slot(), descendants_of(s.proc.pid)
    assert cgroups_of(slot) != []
    s.proc.send_signal(signo)
    assert s.proc.wait(10) == 0, s.log()
    assert_nothing_left(slot, s.state, pids)
    assert sorted(os.listdir(s.state)) == ["gateway", "lock"] and os.listdir(os.path.join(s.state, "gateway")) == []


@pytest.mark.full
@pytest.mark.parametrize("signals, level, reason", [(1, "error", "did not end in time"),
                                                    (2, "warn", "another signal came while it ended")])
def test_the_end_comes_in_time_when_the_launcher_hangs_and_says_why_it_was_killed(supervised, signals, level, reason):
    s = supervised().ready()
    s.says("ready: kernel=1")
    slot, pids = s.slot(), descendants_of(s.proc.pid)
    os.kill(s.process("launcher"), signal.SIGSTOP)
    for n in range(signals):                # the second one says: now
        s.proc.send_signal(signal.SIGTERM)
        s.says("event=signal signo=15", n + 1)
    assert s.proc.wait(30) == 0, s.log()
    killed, = [line for line in s.log().splitlines() if "event=launcher_killed" in line]
    assert f"level={level} " in killed and f'reason="{reason}"' in killed
    assert_nothing_left(slot, s.state, pids)


def test_the_gateways_directory_is_its_own_and_emptied_at_the_start(supervised):
    s = supervised()
    os.makedirs(s.state + "/gateway/old/deep")
    os.symlink("/etc", s.state + "/gateway/old/link")
    open(s.state + "/gateway/old/deep/file", "w").close()
    s.ready()
    st = os.stat(s.state + "/gateway")
    assert (st.st_uid, st.st_mode & 0o777) == (ID_BASE + s.slot() * 0x10000 + 1, 0o700)
    assert os.listdir(s.state + "/gateway") == []
    assert os.path.exists("/etc/passwd")


# --- several -------------------------------------------------------------------------

@pytest.mark.guest
def test_two_instances_share_neither_ids_nor_groups_nor_ends(supervised):
    a, b = supervised().ready(), supervised().ready()
    a.says("ready: kernel=1")
    b.says("ready: kernel=1")
    assert a.slot() != b.slot()
    uids = [{status_of(p)["Uid"].split()[0] for p in s.sandboxed()} for s in (a, b)]
    assert not uids[0] & uids[1]
    slot, pids = a.slot(), descendants_of(a.proc.pid)
    others = b.sandboxed()
    assert a.stop() == 0
    assert_nothing_left(slot, a.state, pids)
    assert all(alive(p) for p in others) and cgroups_of(b.slot()) != []


def test_a_state_directory_in_use_is_named_with_its_holder(supervised):
    a = supervised().ready()
    b = supervised()
    b.state = a.state
    b.spawn()
    assert b.proc.wait(30) == 1
    assert a.state in b.log() and f"pid {a.proc.pid}" in b.log()
    assert a.process("gateway")


def test_a_port_in_use_is_named(supervised):
    a = supervised().ready()
    b = supervised()
    b.port = a.port
    b.spawn()
    assert b.proc.wait(30) == 1
    assert f"--listen: bind 127.0.0.1:{a.port}" in b.log()


def test_a_port_whose_holder_is_about_to_go_is_waited_for(supervised):
    a = supervised()
    with socket.socket() as s:
        s.bind(("127.0.0.1", a.port))
        s.listen()
        threading.Timer(0.7, s.close).start()
        a.ready()
    assert a.process("gateway")


def private_run():
    """The table of instances as a container sees it that has the host's cgroups and a /run of its own."""
    check_libc("unshare", CLONE_NEWNS)
    check_libc("mount", b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    check_libc("mount", b"tmpfs", b"/run/holdcell", b"tmpfs", ctypes.c_ulong(0), None)


CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
LIBC = ctypes.CDLL(None, use_errno=True)


def check_libc(name, *args):
    if getattr(LIBC, name)(*args) != 0:
        raise OSError(ctypes.get_errno(), name)


def test_an_instance_with_a_table_of_its_own_does_not_touch_the_cgroups_of_another(supervised):
    a = supervised().ready()
    a.says("ready: kernel=1 generation=1")
    before = (a.sandboxed(), cgroups_of(a.slot()))
    b = supervised(prepare=private_run)
    os.makedirs(b.state, 0o711)
    with open(os.path.join(b.state, "lock"), "w") as f:
        f.write(f"pid 1\nslot {a.slot()}\n")         # the number that its last run had
    os.chmod(os.path.join(b.state, "lock"), 0o600)
    b.spawn()
    assert b.proc.wait(60) == 1
    why = rf"'holdcell-{a.slot()}' is in use by another holdcell.*/run/holdcell"
    assert re.search("event=launcher_ends .*" + why, b.log())
    assert (a.sandboxed(), cgroups_of(a.slot())) == before


# --- options ---------------------------------------------------------------------------

def serve(*options, env=None):
    port = free_port()
    return subprocess.run([BIN, "serve", "--listen", f"127.0.0.1:{port}", *options], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "HOLDCELL_GATEWAY": "/bin/false", **(env or {})})


def test_a_cgroup_parent_that_cannot_be_used_is_refused_by_the_name_of_the_option():
    got = serve("--no-auth", "--cgroup-parent", "/tmp")
    why = "works with cgroup v2 alone" if len(cgroup_roots()) > 1 else "'/tmp' is no directory of a cgroup2 mount"
    assert got.returncode == 1
    assert re.search(rf'event=launcher_ends exit=1 text="start: --cgroup-parent:? *{why}', got.stderr), got.stderr


@pytest.mark.parametrize("options, part", [
    *[([f"--{name}", "1"], f"--{name}") for name in ("tls-cert", "tls-key", "tls-client-ca")],
    *[([f"--{name}", "soon"], f"--{name}") for name in ("cell-timeout", "stdin-timeout", "max-lifetime")],
    (["--on-exit", "explode"], "--on-exit"),
    (["--memory-md", "5"], "did you mean --memory-mb?"),
    (["--memory-mb", "lots"], "--memory-mb"),
    (["--memory-mb", "1"], "--memory-mb"),
    (["--cpus", "0"], "--cpus"),
    (["--pids"], "--pids"),
    (["--no-auth=1"], "--no-auth"),
    (["--no-auth", "--token", "t"], "--no-auth"),
    (["--token", ""], "--token"),
    (["--token", "two words"], "--token"),
    (["--token-file", "/no/such/file"], "--token-file"),
    (["--base-url", "nothing"], "--base-url"),
    (["--base-url", "/a?b"], "--base-url"),
    (["--listen", "somewhere:80"], "--listen"),
    (["--listen", "127.0.0.1:65536"], "--listen"),
    (["--listen", "0.0.0.0:0"], "--listen"),
    (["--listen", "[::]:0", "--no-auth"], "--no-auth"),
    (["--kernel-path", "/a::/b"], "--kernel-path"),
    (["--env-inherit", "A,,B"], "--env-inherit"),
    (["--runtime", "/no/such/runtime"], "--runtime"),
    (["--state-dir", "/proc/nope"], "state directory (--state-dir): make directory '/proc/nope'"),
    (["word"], "word"),
], ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_a_wrong_option_is_named_and_nothing_starts(options, part):
    got = serve(*options)
    assert got.returncode in (1, 2), got.stderr
    assert part in got.stderr
    assert "launcher_started" not in got.stderr and "serving" not in got.stdout


def test_the_default_state_directory_is_per_port(supervised):
    s = supervised()
    at = s.argv().index("--state-dir")
    s.argv = lambda: Supervised.argv(s)[:at] + Supervised.argv(s)[at + 2:]
    s.ready()
    assert os.stat(f"/var/lib/holdcell/{s.port}").st_mode & 0o777 == 0o711
    s.stop()
    for name in ("lock", "gateway"):
        path = f"/var/lib/holdcell/{s.port}/{name}"
        (os.rmdir if os.path.isdir(path) else os.remove)(path)
    os.rmdir(f"/var/lib/holdcell/{s.port}")


# --- the token ---------------------------------------------------------------------------

def assert_nowhere(s, secret):
    for pid in [s.proc.pid] + descendants_of(s.proc.pid):
        for name in ("cmdline", "environ"):
            assert secret not in read(f"/proc/{pid}/{name}"), (pid, name)
    assert secret not in s.log()


@pytest.mark.parametrize("how", ["--token T", "--token=T", "--token-file", "HOLDCELL_TOKEN", "KG_AUTH_TOKEN"])
def test_the_token_shows_in_no_command_line_environment_or_log(supervised, tmp_path, how):
    secret = "s3cret-that-nobody-may-see"
    s = supervised(token=None)
    argv = [a for a in s.argv() if a != "--no-auth"]
    if how.startswith("--token-file"):
        (tmp_path / "t").write_text(secret + "\n")
        (tmp_path / "t").chmod(0o600)
        argv += ["--token-file", str(tmp_path / "t")]
    elif how.startswith("--"):
        argv += how.replace("T", secret).split(" ")
    else:
        s.env[how] = secret
    s.argv = lambda: argv
    s.ready()
    assert_nowhere(s, secret)
    assert "token of this run" not in s.log()


def test_without_a_token_one_is_made_and_told_once(supervised):
    s = supervised(token=None)
    argv = [a for a in s.argv() if a != "--no-auth"]
    s.argv = lambda: argv
    s.ready()
    told = re.findall(r"^token of this run: ([0-9a-f]{48})$", s.log(), re.M)
    assert len(told) == 1
    for pid in [s.proc.pid] + descendants_of(s.proc.pid):
        assert told[0] not in read(f"/proc/{pid}/cmdline") + read(f"/proc/{pid}/environ")


def test_ipv6_loopback_and_a_port_of_the_kernels_choice(supervised):
    s = supervised()
    argv = s.argv()
    argv[argv.index("--listen") + 1] = "[::1]:0"
    s.argv = lambda: argv
    s.spawn()
    s.says("holdcell serving on http://[::1]:")
    port = int(re.search(r"http://\[::1\]:(\d+)/", s.log()).group(1))
    with socket.create_connection(("::1", port), timeout=10):
        pass


# --- version ------------------------------------------------------------------------------

def test_version_tells_commit_libraries_and_build():
    got = subprocess.run([BIN, "version"], capture_output=True, text=True, timeout=60)
    assert got.returncode == 0
    for part in ("commit ", "libuv ", "libzmq ", "jansson ", "OpenSSL ", "build "):
        assert part in got.stdout


def test_version_names_a_commit_of_the_clone_that_it_was_built_in():
    """The one that was there when the build was configured: what is there now may be another."""
    tree = os.path.realpath(os.path.join(os.path.dirname(BIN), "..", "..", ".."))

    def git(*words):
        return subprocess.run(["git", "-C", tree, *words], capture_output=True, text=True, timeout=60).stdout.strip()
    if shutil.which("git") is None or git("rev-parse", "--show-toplevel") != tree:
        pytest.skip("it was built in no clone")
    got = subprocess.run([BIN, "version"], capture_output=True, text=True, timeout=60)
    named, = re.findall(r"\(commit (.+)\)", got.stdout)
    found = git("rev-parse", "--verify", "--quiet", named.removesuffix("-dirty") + "^{commit}")
    assert re.fullmatch("[0-9a-f]{40,}", found), f"git knows no commit {named} there"


def test_an_unknown_command_shows_the_known_ones():
    got = subprocess.run([BIN, "srve"], capture_output=True, text=True, timeout=60)
    assert got.returncode == 2
    assert "srve" in got.stderr and "serve" in got.stderr and "gateway " not in got.stderr
