"""`serve --on-exit keep`: kernels outlive an orderly end of their server, the next server with the same state
directory takes them over, and what nobody takes over ends without a trace."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import time

import pytest

from channels import Channels, Ended
from server import (BIN, DEADLINE, ID_BASE, ID_BLOCK, SLOW, Server, assert_slot_is_left, cgroups_of, descendants_of,
                    links_of, read, status_of, wait_for)
from test_deletion import held as held_by_a_debugger
from test_supervision import alive
from tiers import full_after

GAP = "output from meanwhile may be missing"


class Kept(Server):
    """A server that keeps; heir() is the next one on its state directory."""

    def __init__(self, *options, **kw):
        super().__init__("--on-exit", "keep", *options, **kw)

    def heir(self, *options, keep=True, **kw):
        h = Kept(*options, **kw) if keep else Server(*options, **kw)
        h.state = self.state
        return h

    def process(self, name):
        """A launcher that was taken over is no child of its server: the log tells it."""
        there = super().process(name)
        lines = [x for x in self.log().splitlines() if "event=launcher_taken_over" in x]
        launcher = int(lines[-1].rsplit("pid=", 1)[1]) if lines else 0
        if there or not alive(launcher):
            return there
        if name == "launcher":
            return launcher
        gateways = [p for p in descendants_of(launcher) if read(f"/proc/{p}/cmdline").split("\0")[1:2] == ["gateway"]]
        return gateways[0] if gateways else 0

    def keeper(self):
        """Its pid, by the lock of the state directory."""
        return int(read(os.path.join(self.state, "lock")).split()[1])

    def kept_slot(self):
        """The instance's slot, likewise."""
        return int(read(os.path.join(self.state, "lock")).split()[3])


def stop_command(state, **kw):
    return subprocess.run([BIN, "stop", "--state-dir", state], capture_output=True, text=True, timeout=DEADLINE, **kw)


@pytest.fixture
def kept():
    """Factory: a started server with --on-exit keep; whatever is kept at the end is ended."""
    own = []

    def make(*options, **kw):
        own.append(Kept(*options, **kw).start())
        return own[-1]

    def new(*options, **kw):
        own.append(Kept(*options, **kw))
        return own[-1]

    def heir(s, *options, **kw):
        own.append(s.heir(*options, **kw))
        return own[-1]
    make.heir, make.new = heir, new
    yield make
    for state in {s.state for s in own}:
        for s in own:
            if s.proc is not None and s.state == state:
                s.stop()
        if os.path.isdir(state):
            assert stop_command(state).returncode == 0
    for s in own:
        s.close()


def assert_nothing_left(slot, state, pids):
    wait_for(lambda: not any(alive(p) for p in pids))
    with open(os.path.join(state, "lock")) as f:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert_slot_is_left(slot, state)
    assert f"holdcell-{slot}/" not in read("/proc/self/mountinfo")
    assert not os.path.exists(os.path.join(state, "keeper"))


def kernel_with(s, code):
    kid = s.start_kernel("python3")
    c = Channels(s, kid)
    assert c.run(code).status == "ok"
    return kid, c


def stopped_with_x(kept):
    """A server that has ended and keeps a kernel with x == 41; (server, id of the kernel)."""
    s = kept()
    kid, _ = kernel_with(s, "x = 41")
    assert s.stop() == 0
    return s, kid


def value(s, kid, what):
    with Channels(s, kid) as c:
        return c.run(what).result


def assert_works(s):
    """New kernels."""
    kid, _ = kernel_with(s, "y = 1")
    assert value(s, kid, "y") == "1"


# --- the way it is meant ------------------------------------------------------------

def test_variables_are_there_after_a_restart_under_another_port_and_token(kept):
    s = kept()
    kid, c = kernel_with(s, "x = 41; import os")
    kernels = s.kernels()
    pid = value(s, kid, "os.getpid()")
    assert s.stop() == 0
    with pytest.raises(Ended) as end:
        while True:
            c.recv(DEADLINE)
    assert "1012" in str(end.value)
    assert all(alive(p) for p in kernels)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", s.port), timeout=5)
    heir = kept.heir(s, "--max-kernels", "7", token="another").start()
    assert heir.port != s.port
    assert [k["id"] for k in heir.request("GET", "/api/kernels").json()] == [kid]
    assert value(heir, kid, "x + 1") == "42" and value(heir, kid, "os.getpid()") == pid
    assert heir.request("GET", "/api/kernels", headers={"Authorization": f"token {s.token}"}).status in (401, 403)
    # All that a server does works on: new kernels, restarts, deletion.
    other = heir.start_kernel("python3")
    assert value(heir, other, "6 * 7") == "42"
    assert heir.restart(kid).status == 200
    assert value(heir, kid, "'x' in dir()") == "False"
    assert heir.delete_kernel(kid) == 204 and heir.delete_kernel(other) == 204


def test_nothing_grows_over_many_restarts(kept):
    s = kept()
    kid, c = kernel_with(s, "n = 0")
    c.close()
    seen = []
    for i in range(5):
        assert s.stop() == 0
        heir = kept.heir(s).start()
        assert value(heir, kid, "n") == str(i)
        assert value(heir, kid, f"exec('n = {i + 1}')") is None
        assert s.keeper() == heir.proc.pid      # once taken over, the lock names the server
        launcher = heir.process("launcher")
        wait_for(lambda: heir.kernel(kid)["connections"] == 0)
        time.sleep(0.2)
        seen.append({
            "launcher_fds": len(os.listdir(f"/proc/{launcher}/fd")),
            "mounts": len(read(f"/proc/{launcher}/mountinfo").splitlines()),
            "processes": len(descendants_of(launcher)),
            "files": sum(len(f) + len(d) for _, d, f in os.walk(s.state)),
            "supervisor_fds": len(os.listdir(f"/proc/{heir.proc.pid}/fd")),
        })
        s = heir
    assert seen[1:] == seen[:1] * 4, seen


@pytest.mark.full
def test_a_cell_over_the_restart_ends_truthfully(kept):
    s = kept()
    kid, c = kernel_with(s, "0")
    msg_id = c.start("import time\nfor i in range(40):\n    print('line', i)\n    time.sleep(0.1)\ndone = 'yes'")
    while "line 5" not in str(c.recv()["content"]):
        pass
    assert s.stop() == 0
    heir = kept.heir(s).start()
    assert heir.kernel(kid)["execution_state"] == "busy"
    with Channels(heir, kid, c.sid) as c2:
        reply = c2.until(lambda m: m["header"]["msg_type"] == "execute_reply" and m["parent_header"]["msg_id"] == msg_id)
        assert reply["content"]["status"] == "ok" and not reply["metadata"].get("holdcell", {}).get("synthetic")
        text = "".join(m["content"]["text"] for m in c2.seen if m["header"]["msg_type"] == "stream")
        assert "line 39" in text and GAP in text
    heir.wait_state(kid, "idle")
    assert value(heir, kid, "done") == "'yes'"


@pytest.mark.full
def test_a_cell_that_ended_while_no_server_was_there_is_told_as_lost(kept):
    s = kept()
    kid, c = kernel_with(s, "0")
    msg_id = c.start("import time; time.sleep(1); done = 'yes'")
    c.until(lambda m: m["header"]["msg_type"] == "execute_input")
    assert s.stop() == 0
    time.sleep(2.5)
    heir = kept.heir(s).start()
    with Channels(heir, kid, c.sid) as c2:
        reply = c2.until(lambda m: m["header"]["msg_type"] == "execute_reply" and m["parent_header"]["msg_id"] == msg_id)
        assert reply["content"]["ename"] == "RunLost"
    assert value(heir, kid, "done") == "'yes'"


def held(pid):
    """What walls and limits a process has, as the kernel tells it."""
    status = status_of(pid)
    names = ("Uid", "Gid", "NoNewPrivs", "Seccomp", "Seccomp_filters", "CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")
    return {name: status.get(name) for name in names} | {name: read(f"/proc/{pid}/{name}") for name in ("cgroup", "limits", "oom_score_adj")}


def limits_of(slot):
    """The files of limits of all groups of an instance."""
    return {(d, name): read(os.path.join(d, name)) for d in cgroups_of(slot) for name in os.listdir(d)
            if name.endswith((".max", ".limit_in_bytes", ".cfs_quota_us"))}


def test_the_keeper_and_what_it_keeps_have_the_walls_and_limits_that_they_had(kept):
    s = kept()
    s.start_kernel("python3")
    slot, launcher = s.slot(), s.process("launcher")
    pids = [launcher] + [p for p in descendants_of(launcher) if p != s.process("gateway")]
    before = {p: held(p) for p in pids}, limits_of(slot)
    assert len(pids) == 3 and before[1], "launcher, init, kernel"
    assert s.stop() == 0
    assert s.keeper() == launcher
    assert ({p: held(p) for p in pids}, limits_of(slot)) == before


def test_a_server_without_kernels_leaves_no_keeper(kept):
    s = kept()
    launcher, slot, pids = s.process("launcher"), s.slot(), descendants_of(s.proc.pid)
    assert s.stop() == 0
    assert not alive(launcher)
    assert_nothing_left(slot, s.state, pids)
    assert "no kernels are kept" in stop_command(s.state).stdout


@pytest.mark.full
def test_the_next_server_may_end_them_at_its_own_end(kept):
    s = kept()
    kid, c = kernel_with(s, "x = 1")
    slot, pids = s.slot(), descendants_of(s.proc.pid)
    assert s.stop() == 0
    heir = kept.heir(s, keep=False).start()
    assert value(heir, kid, "x") == "1"
    assert heir.stop() == 0
    assert_nothing_left(slot, s.state, pids)


def test_a_kernel_of_another_runtime_is_kept_too(kept, kernel_path):
    kernel_path.add_scripted()
    s = kept("--kernel-path", kernel_path.path)
    kid = s.start_kernel("scripted")
    assert value(s, kid, "result 7") == "7"
    pids = descendants_of(s.process("launcher"))
    assert s.stop() == 0
    heir = kept.heir(s, "--kernel-path", kernel_path.path).start()
    assert value(heir, kid, "result 8") == "8"
    assert sum(alive(p) for p in pids) == len(pids) - 1     # but for the gateway


# --- what ends them -------------------------------------------------------------------

@pytest.mark.full
def test_the_orphan_timeout_ends_all_and_leaves_nothing(kept):
    s = kept("--orphan-timeout", "3")
    kernel_with(s, "x = 1")
    kernel_with(s, "x = 2")
    slot, pids = s.slot(), descendants_of(s.proc.pid)
    assert s.stop() == 0
    assert alive(s.keeper())
    assert_nothing_left(slot, s.state, pids)
    assert s.log().count('reason="deadline"') >= 2
    heir = kept.heir(s).start()
    assert heir.request("GET", "/api/kernels").json() == []


@pytest.mark.parametrize("how", full_after(1, ["holdcell stop", "SIGTERM"]))
def test_an_operator_ends_them_at_once(kept, how):
    s = kept()
    kernel_with(s, "x = 1")
    slot, pids = s.slot(), descendants_of(s.proc.pid)
    assert s.stop() == 0
    gateway_dir = os.path.join(s.state, "gateway")
    assert os.listdir(gateway_dir) != [], "sockets of the kept kernel"
    if how == "SIGTERM":
        os.kill(s.keeper(), signal.SIGTERM)
        wait_for(lambda: not any(alive(p) for p in pids))
    else:
        done = stop_command(s.state)
        assert done.returncode == 0, done
    assert os.listdir(gateway_dir) == []
    assert_nothing_left(slot, s.state, pids)
    told, = [line for line in s.log().splitlines() if "event=keeper_told_to_end " in line]
    assert " signo=15 " in told
    assert "not_taken_over" not in s.log(), "nobody tried to"


@pytest.mark.full
def test_the_end_of_kept_kernels_waits_for_what_goes_slowly(kept):
    s = kept()
    kernel_with(s, "x = 1")
    slot, pids, kernel = s.slot(), descendants_of(s.proc.pid), s.kernels()[0]
    assert s.stop() == 0
    with held_by_a_debugger(kernel):
        os.kill(s.keeper(), signal.SIGTERM)
        wait_for(lambda: "event=session_stuck" in s.log() or "event=sessions_left" in s.log())
    assert_nothing_left(slot, s.state, pids)
    assert "event=session_gone" in s.log() and "event=sessions_left" not in s.log()


@pytest.mark.full
def test_stop_says_when_processes_are_left(kept):
    s = kept()
    kernel_with(s, "x = 1")
    assert s.stop() == 0
    uid = ID_BASE + s.kept_slot() * ID_BLOCK + 100
    with subprocess.Popen(["sleep", "1000"], user=uid) as left:     # the keeper knows nothing of it
        done = stop_command(s.state)
        left.kill()
    assert done.returncode == 1 and "the keeper has ended, but 1 killed processes of its sessions are not gone" in done.stderr
    done = stop_command(s.state)
    assert done.returncode == 0 and "no kernels are kept" in done.stdout


def test_stop_refuses_what_is_no_state_directory(tmp_path):
    done = stop_command(str(tmp_path / "none"))
    assert done.returncode == 1 and "none" in done.stderr
    done = subprocess.run([BIN, "stop"], capture_output=True, text=True)
    assert done.returncode == 2 and "--state-dir" in done.stderr


def test_stop_leaves_a_server_alone(kept):
    s = kept()
    done = stop_command(s.state)
    assert done.returncode == 1 and f"a server runs in '{s.state}' (pid {s.proc.pid}): SIGTERM ends it" in done.stderr
    assert s.answers()


def test_stop_finds_nothing_to_do_where_a_server_has_been(server_with):
    s = server_with()
    assert s.stop() == 0
    done = stop_command(s.state)
    assert done.returncode == 0 and "no kernels are kept" in done.stdout


# --- what goes wrong -------------------------------------------------------------------

@pytest.mark.full
def test_a_killed_keeper_takes_its_kernels_along_and_the_next_server_starts_clean(kept):
    s = kept()
    kernel_with(s, "x = 1")
    slot, pids = s.slot(), descendants_of(s.proc.pid)
    assert s.stop() == 0
    os.kill(s.keeper(), signal.SIGKILL)
    wait_for(lambda: not any(alive(p) for p in pids))
    heir = kept.heir(s).start()
    assert heir.request("GET", "/api/kernels").json() == []
    assert_works(heir)


@pytest.mark.full
def test_a_taken_over_launcher_that_dies_is_replaced(kept):
    s = kept()
    kernel_with(s, "x = 1")
    pids = descendants_of(s.proc.pid)
    assert s.stop() == 0
    heir = kept.heir(s).start()
    os.kill(heir.process("launcher"), signal.SIGKILL)
    wait_for(lambda: not any(alive(p) for p in pids))
    wait_for(lambda: heir.process("gateway") and heir.answers())
    wait_for(lambda: heir.request("GET", "/api/kernels").json() == [])
    kid, _ = kernel_with(heir, "y = 1")
    assert value(heir, kid, "y") == "1"
    assert heir.stop() == 0                     # and that one keeps again
    last = kept.heir(heir).start()
    assert value(last, kid, "y") == "1"


@pytest.mark.full
def test_of_two_servers_one_takes_them_over(kept):
    s = kept()
    kid, _ = kernel_with(s, "x = 41")
    for _ in range(3):
        assert s.stop() == 0
        two = [kept.heir(s), kept.heir(s)]
        for h in two:
            h.spawn()
        wait_for(lambda: any(h.proc.poll() is not None for h in two))
        loser, winner = sorted(two, key=lambda h: h.proc.poll() is None)
        assert loser.proc.returncode == 1
        assert "is in use by another holdcell" in loser.log()
        wait_for(winner.answers)
        assert value(winner, kid, "x + 1") == "42"
        s = winner


def test_two_signals_are_no_loss(kept):
    s = kept()
    kid, c = kernel_with(s, "x = 41")
    gateway = s.process("gateway")
    os.kill(gateway, signal.SIGSTOP)            # it would take its time
    s.proc.send_signal(signal.SIGTERM)
    wait_for(lambda: "event=keeping" in s.log())
    assert s.proc.poll() is None
    s.proc.send_signal(signal.SIGTERM)
    assert s.proc.wait(5 * SLOW) == 0
    heir = kept.heir(s).start()
    assert value(heir, kid, "x + 1") == "42"


@pytest.mark.full
@pytest.mark.parametrize("after", [0, 0.01, 0.02, 0.03, 0.05, 0.1])
def test_a_server_that_is_killed_while_it_takes_over_leaves_a_usable_state(kept, after):
    s = kept()
    kid, _ = kernel_with(s, "x = 41")
    pids = descendants_of(s.proc.pid)
    assert s.stop() == 0
    h = kept.heir(s).spawn()
    time.sleep(after * SLOW)
    h.proc.kill()
    heir = kept.heir(s).start()                 # at once
    there = [k["id"] for k in heir.request("GET", "/api/kernels").json()]
    if there:
        assert value(heir, kid, "x + 1") == "42"
    else:                                       # it had come so far that they were its own
        wait_for(lambda: not any(alive(p) for p in pids))
    assert_works(heir)


def naps(server):
    """Its process waits for a while, and for nothing else."""
    return read(f"/proc/{server.proc.pid}/syscall").split()[1:3] == ["0x0", "0x0"]


@pytest.fixture
def slow_heir(kept, tmp_path):
    """Factory: (a server that is taking over, its audit file): it waits for that file's lock, a little while only."""
    path = tmp_path / "audit"
    with open(path, "wb") as f:
        fcntl.lockf(f, fcntl.LOCK_EX)

        def make(s):
            h = kept.heir(s, "--audit-log", str(path)).spawn()
            slot = f"/run/holdcell/instances/{s.kept_slot()}"
            wait_for(lambda: slot in links_of(h.proc.pid))
            return h, f
        yield make


@pytest.mark.full
def test_a_server_that_comes_while_another_takes_over_and_dies_gets_them(kept, slow_heir):
    s, kid = stopped_with_x(kept)
    h, _ = slow_heir(s)
    heir = kept.heir(s).spawn()
    wait_for(lambda: naps(heir) or heir.proc.poll() is not None)
    h.proc.kill()
    wait_for(lambda: heir.proc.poll() is not None or heir.answers())
    assert value(heir, kid, "x + 1") == "42"


@pytest.mark.full
def test_a_server_that_comes_when_one_died_right_behind_its_takeover_waits_for_the_end(kept, slow_heir):
    s, kid = stopped_with_x(kept)
    keeper = s.keeper()
    h, audit = slow_heir(s)
    os.kill(keeper, signal.SIGSTOP)
    try:
        fcntl.lockf(audit, fcntl.LOCK_UN)
        wait_for(lambda: read(f"/proc/{h.proc.pid}/syscall").split()[2:3] == ["0x1"])    # for the keeper's answer
        h.proc.send_signal(signal.SIGSTOP)      # it will not read it
    finally:
        os.kill(keeper, signal.SIGCONT)
    wait_for(h.answers)                         # by its gateway: from here on they are its kernels
    h.proc.kill()
    heir = kept.heir(s).start()
    assert not alive(keeper) and heir.request("GET", "/api/kernels").json() == []
    assert_works(heir)


@pytest.mark.full
def test_a_server_that_dies_in_its_takeover_before_its_gateway_has_asked_leaves_the_keeper_in_its_place(kept, slow_heir):
    s, kid = stopped_with_x(kept)
    keeper = s.keeper()
    h, audit = slow_heir(s)
    os.kill(keeper, signal.SIGSTOP)
    try:
        fcntl.lockf(audit, fcntl.LOCK_UN)
        wait_for(lambda: s.keeper() == h.proc.pid)      # it is about to ask for them
        h.proc.kill()
        h.proc.wait()
    finally:
        os.kill(keeper, signal.SIGCONT)
    wait_for(lambda: s.keeper() == keeper)
    heir = kept.heir(s).start()
    assert value(heir, kid, "x + 1") == "42"


@pytest.mark.full
def test_a_server_that_took_over_and_is_killed_ends_them(kept):
    s = kept()
    kernel_with(s, "x = 41")
    slot, pids = s.slot(), descendants_of(s.proc.pid)
    assert s.stop() == 0
    heir = kept.heir(s).start()
    heir.proc.kill()
    heir.proc.wait()
    assert_nothing_left(slot, s.state, pids)


@pytest.mark.full
def test_wrong_options_of_the_next_server_cost_nothing(kept, tmp_path):
    s, kid = stopped_with_x(kept)
    for options, text in [(["--default-kernel", "no such"], "--default-kernel"),
                          (["--seed-notebook", str(tmp_path / "none.ipynb")], "--seed-notebook"),
                          (["--runtime", "/opt"], "--runtime"),
                          (["--cgroup-parent", "/sys/fs/cgroup/none"], "--cgroup-parent")]:
        h = kept.heir(s, *options).spawn()
        assert h.proc.wait(DEADLINE) != 0
        assert text in h.log(), h.log()
    heir = kept.heir(s).start()
    assert value(heir, kid, "x + 1") == "42"


def test_all_about_a_takeover_is_in_the_new_servers_log(kept):
    s, kid = stopped_with_x(kept)
    wait_for(lambda: "event=kept " in s.log())
    before = s.log()
    # It fails in the keeper, behind its check of the options: its own log goes on as it was.
    h = kept.heir(s, "--workspaces", "/proc/none", "--log-format", "json").spawn()
    assert h.proc.wait(DEADLINE) != 0 and "--workspaces" in h.log()
    wait_for(lambda: "event=not_taken_over " in s.log()[len(before):])
    meanwhile = s.log()
    added = meanwhile[len(before):].splitlines()
    assert len(added) == 1 and added[0].startswith("ts="), added
    heir = kept.heir(s, "--log-format", "json").start()
    events = [json.loads(line) for line in heir.log().splitlines() if line.startswith("{")]
    of_launcher = [e["event"] for e in events if e["process"] == "launcher"]
    assert of_launcher[:2] == ["limit_of_all_sessions", "taken_over"], of_launcher
    assert s.log() == meanwhile
    assert value(heir, kid, "x + 1") == "42"


@pytest.mark.full
def test_a_program_that_does_not_work_costs_nothing(kept):
    s, kid = stopped_with_x(kept)
    h = kept.heir(s, env={"HOLDCELL_GATEWAY": "/bin/false"}).spawn()
    assert h.proc.wait(DEADLINE) == 1
    assert "event=gateway_does_not_start" in h.log()
    heir = kept.heir(s).start()
    assert value(heir, kid, "x + 1") == "42"


def limits_of_all(slot):
    """What all sessions of the slot may have together."""
    group, = {d for d in cgroups_of(slot) if d.endswith(f"/holdcell-{slot}/s") and read(f"{d}/pids.max")}
    memory = [f"{d}/{name}" for d in cgroups_of(slot) if d.endswith(f"/holdcell-{slot}/s")
              for name in ("memory.max", "memory.limit_in_bytes", "memory.kmem.tcp.limit_in_bytes")]
    return [read(f"{group}/pids.max")] + [read(path) for path in memory]


def test_a_takeover_that_fails_leaves_the_limits_of_all_sessions(kept):
    s, kid = stopped_with_x(kept)
    before = limits_of_all(s.kept_slot())
    h = kept.heir(s, "--memory-reserve-mb", "3000", env={"HOLDCELL_GATEWAY": "/bin/false"}).spawn()
    assert h.proc.wait(DEADLINE) == 1
    assert "event=limit_of_all_sessions" in h.log() and "memory_reserve=3145728000" in h.log()
    wait_for(lambda: s.keeper() != h.proc.pid and "event=kept " in h.log())
    assert limits_of_all(s.kept_slot()) == before
    heir = kept.heir(s, "--memory-reserve-mb", "3000").start()
    assert limits_of_all(s.kept_slot()) != before
    assert value(heir, kid, "x + 1") == "42"


def test_only_root_reaches_the_keeper(kept):
    s, kid = stopped_with_x(kept)
    path = os.path.join(s.state, "keeper")
    assert os.stat(path).st_mode & 0o777 == 0o700 and os.stat(path).st_uid == 0
    done = subprocess.run([BIN, "stop", "--state-dir", s.state], capture_output=True, text=True, user=65534)
    assert done.returncode == 1
    assert alive(s.keeper())


@pytest.mark.full
def test_nonsense_at_the_keepers_socket_costs_nothing(kept):
    s, kid = stopped_with_x(kept)
    for nonsense in (b"", b"x", b"\0" * 64, os.urandom(4096)):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as k:
            k.connect(os.path.join(s.state, "keeper"))
            k.send(nonsense)
            k.settimeout(DEADLINE)
            try:
                k.recv(100)
            except ConnectionResetError:
                pass
    heir = kept.heir(s).start()
    assert value(heir, kid, "x + 1") == "42"


def test_who_reads_the_log_may_go(kept):
    """The keeper's log goes to a pipe that nobody reads any more."""
    s = kept.new()
    r, w = os.pipe()            # takes all that is written until then
    s.proc = subprocess.Popen(s.argv(), stdin=subprocess.DEVNULL, stdout=w, stderr=w, start_new_session=True)
    os.close(w)
    wait_for(s.answers)
    kid, _ = kernel_with(s, "x = 41")
    assert s.stop() == 0
    os.close(r)
    # Lines are written now: a server that comes and is refused.
    h = kept.heir(s, "--default-kernel", "no such").spawn()
    assert h.proc.wait(DEADLINE) != 0
    heir = kept.heir(s).start()
    assert value(heir, kid, "x + 1") == "42"


def test_an_audit_file_is_free_while_nobody_serves(kept, tmp_path):
    audit = tmp_path / "audit"
    first = kept("--audit-log", str(audit))
    kid, _ = kernel_with(first, "x = 7")
    assert first.stop() == 0 and alive(first.keeper())
    other = kept("--audit-log", str(audit))
    assert other.answers() and other.stop() == 0
    heir = kept.heir(first, "--audit-log", str(audit)).start()
    assert value(heir, kid, "x") == "7"
    assert audit.read_text().count('"audit_opened"') == 3
