"""`holdcell doctor` tells what this host has of the walls, and `holdcell serve` refuses to start without those that
its level demands. What is missing is really taken away from the program (hidden.py)."""

import errno
import json
import os
import pwd
import re
import resource
import signal
import subprocess

import pytest

import hidden
from channels import Channels
from server import BIN, SLOW, Server, cgroup_roots, children_of, read, status_of, wait_for

STATES = {"present", "weaker", "missing", "absent"}
KEYS = {"name": str, "group": str, "state": str, "demanded": bool, "acceptable": bool, "detail": str, "purpose": str,
        "without": str, "remedy": str, "duration_us": int}


def run(*argv, prepare=None, env=None, before=()):
    return subprocess.run([*before, BIN, "doctor", *argv], capture_output=True, text=True, timeout=600 * SLOW,
                          stdin=subprocess.DEVNULL, preexec_fn=prepare, env={**os.environ, **(env or {})})


class Doctor:
    def __init__(self, *argv, **more):
        got = run("--json", *argv, **more)
        assert got.stderr == "" and got.stdout.count("\n") == 1
        self.status, self.text = got.returncode, json.loads(got.stdout)
        self.walls = {w["name"]: w for w in self.text["walls"]}

    def state(self, name):
        return self.walls[name]["state"]

    def missing(self):
        return {n for n, w in self.walls.items() if w["state"] == "missing"}


def traces():
    """What a probe could leave: groups, mounts, loop devices, processes of this program. Other programs of the
    machine have such things too: what counts is what is there after and was not before."""
    # doctor takes the last free number; servers take the first
    found = {os.path.join(top, d) for root in cgroup_roots() for top, dirs, _ in os.walk(root)
             for d in dirs if re.fullmatch(r"holdcell-(4\d\d|5[01]\d)", d)}
    found |= {line for line in read("/proc/self/mountinfo").splitlines()
              if re.search(r" - (tmpfs|overlay|ext4|proc) (probe|layers|root|dev|proc|/dev/loop\d+) ", line)}
    for d in os.listdir("/sys/block"):
        file = read(f"/sys/block/{d}/loop/backing_file").strip()
        if re.match(r"/var(/lib(/holdcell)?)?/#\d+ ", file):     # where --state-dir is not given
            found.add(f"{d} {file}")
    return found | {p for p in os.listdir("/proc") if p.isdigit() and "doctor-fd" in read(f"/proc/{p}/cmdline")}


@pytest.fixture(scope="module")
def here():
    return Doctor()


# --- a host that has all --------------------------------------------------------------

@pytest.mark.guest
def test_this_host_has_all_that_is_demanded(here):
    assert here.status == 0, {n: here.walls[n]["detail"] for n in here.missing()}
    assert here.text["ok"] is True and here.text["level"] == "hardened"
    assert here.text["refused"] == here.text["accepted"] == []
    assert {w["state"] for w in here.walls.values() if w["demanded"]} <= {"present", "weaker"}
    assert here.state("sandbox") == here.state("memory-limit") == here.state("seccomp") == "present"


@pytest.mark.guest
def test_the_json_keeps_its_form(here):
    assert set(here.text) == {"ok", "level", "refused", "accepted", "walls"}
    assert len(here.walls) == len(here.text["walls"]) > 40
    for w in here.text["walls"]:
        assert {k: type(v) for k, v in w.items()} == KEYS and w["state"] in STATES
        assert w["purpose"] and w["without"] and w["remedy"]
    assert {n for n, w in here.walls.items() if w["acceptable"]} == {"landlock", "seccomp"}
    assert [w["group"] for w in here.text["walls"] if not w["demanded"]].count("host") == \
        len([w for w in here.text["walls"] if w["group"] == "host"])


def test_settings_of_the_host_are_told_as_they_are(here):
    def setting(path):
        return read(f"/proc/sys/{path}").strip()
    for name, path, good in (("ptrace-scope", "kernel/yama/ptrace_scope", lambda v: v >= 1),
                             ("dmesg-restrict", "kernel/dmesg_restrict", lambda v: v >= 1),
                             ("perf-paranoid", "kernel/perf_event_paranoid", lambda v: v >= 2),
                             ("legacy-tiocsti", "dev/tty/legacy_tiocsti", lambda v: v == 0),
                             ("io-uring", "kernel/io_uring_disabled", lambda v: v >= 1)):
        value = setting(path)
        assert here.state(name) == ("absent" if value == "" else "present" if good(int(value)) else "weaker"), name
        assert value == "" or here.walls[name]["detail"].endswith(f" is {value}")
    assert here.state("core-pattern") == ("weaker" if setting("kernel/core_pattern").startswith(("|", "@")) else "present")
    assert here.walls["kernel"]["detail"].startswith("Linux " + os.uname().release)


def test_the_table_has_a_line_for_each_wall_and_fits(here):
    got = run()
    assert got.returncode == 0 and got.stderr == ""
    rows = re.findall(r"^  (present|weaker|missing|absent) +([a-z-]+) +\S.*$", got.stdout, re.M)
    assert {name: state for state, name in rows} == {n: w["state"] for n, w in here.walls.items()}
    starts = {re.match(r"  \S+ +[a-z-]+ +", line).end() for line in got.stdout.splitlines() if re.match(r"  [a-z]", line)}
    assert len(starts) == 1                                 # purposes stand in one column
    assert max(map(len, got.stdout.splitlines())) <= 100
    assert got.stdout.splitlines()[-1] == "Level hardened: what it demands is there."
    for name, w in here.walls.items():
        advice = re.search(rf"^  {w['state']} +{name} .*\n((?: {{20}}.*\n)*)", got.stdout, re.M).group(1)
        assert ("  help " in advice) == (w["state"] in ("weaker", "missing")), name


def test_nothing_is_left_behind():
    before = traces()
    assert run().returncode == 0
    assert run(prepare=hidden.calls("pivot_root")).returncode == 1
    assert wait_for(lambda: traces() <= before)


@pytest.mark.full
def test_a_program_that_hangs_is_a_missing_wall_and_leaves_nothing(tmp_path):
    before = traces()
    program = tmp_path / "mkfs"
    program.write_text("#!/bin/sh\nsleep 3600 & sleep 3601\n")
    program.chmod(0o755)
    got = Doctor(prepare=hidden.covered(os.path.realpath("/usr/sbin/mkfs.ext4"), str(program)))
    assert got.status == 0 and got.state("disk-home") == "missing"
    assert re.search("does not end|no answer within", got.walls["disk-home"]["detail"])
    assert wait_for(lambda: traces() <= before)
    assert not [p for p in os.listdir("/proc") if p.isdigit() and re.search("sleep\0360[01]", read(f"/proc/{p}/cmdline"))]


def stop_a_probe(doctor):
    """Stops a process that tries a wall, as one that hangs in the kernel; 0 when none was met."""
    while doctor.poll() is None:
        for launcher in children_of(doctor.pid):
            for probe in children_of(launcher):
                try:
                    os.kill(probe, signal.SIGSTOP)
                    return probe
                except ProcessLookupError:
                    pass
    return 0


@pytest.mark.full
def test_a_probe_that_hangs_has_a_deadline_and_leaves_nothing():
    before = traces()
    for _ in range(10):     # it may have said its word already
        with subprocess.Popen([BIN, "doctor", "--json"], stdout=subprocess.PIPE, text=True) as doctor:
            pid = stop_a_probe(doctor)
            walls = json.loads(doctor.communicate(timeout=300 * SLOW)[0])["walls"]
        hung = [w for w in walls if re.fullmatch("no answer within [36]0000 ms", w["detail"])]
        if hung:
            break
    assert len(hung) == 1 and hung[0]["state"] == "missing" and hung[0]["duration_us"] >= 30_000_000
    assert {w["name"] for w in walls if w["demanded"] and w["state"] == "missing"} <= {hung[0]["name"]}     # the others were tried
    assert wait_for(lambda: traces() <= before) and not os.path.exists(f"/proc/{pid}")


@pytest.mark.full
def test_it_disturbs_no_server(shared, kernel):
    kid = kernel("python3")
    with Channels(shared, kid) as c:
        assert c.run("x = 41").status == "ok"
        assert run().returncode == 0
        assert c.run("x + 1").result == "42"
    assert run(env={"HOLDCELL_STATE_DIR": shared.state}).returncode == 0


def test_without_root_it_says_so():
    nobody = pwd.getpwnam("nobody")
    got = subprocess.run([BIN, "doctor"], capture_output=True, text=True, timeout=60, user=nobody.pw_uid,
                         group=nobody.pw_gid, extra_groups=[])
    assert got.returncode == 1 and got.stdout == ""
    assert got.stderr == "holdcell doctor: must be started as root, as the server; try sudo\n"


# --- a host that lacks something --------------------------------------------------------

@pytest.mark.parametrize("prepare, refused, why", [
    (hidden.calls("landlock_create_ruleset"), {"landlock", "sandbox"}, "no Landlock"),
    (hidden.calls("landlock_create_ruleset", code=errno.EOPNOTSUPP), {"landlock", "sandbox"}, "not enabled at boot"),
    (hidden.calls("seccomp"), {"seccomp", "sandbox"}, "load the filter"),
    (hidden.calls("pivot_root", code=errno.EPERM), {"own-root", "no-user-namespaces-inside", "sandbox"}, "pivot_root"),
    (hidden.calls("fsopen"), {"overlay", "devices", "proc", "own-root", "no-user-namespaces-inside", "sandbox"}, "fsopen"),
    (hidden.calls("pidfd_open"), {"pidfd", "sandbox"}, "open a pidfd"),
    (hidden.covered("/proc/meminfo", "/dev/null"), {"proc", "own-root", "no-user-namespaces-inside", "sandbox"},
     "fully visible"),
], ids=["landlock", "landlock off", "seccomp", "pivot_root", "fsopen", "pidfd", "proc"])
def test_what_is_missing_is_told_and_nothing_else(prepare, refused, why):
    got = Doctor(prepare=prepare)
    assert got.status == 1 and got.text["ok"] is False
    assert set(got.text["refused"]) == refused
    first = got.text["refused"][0]
    assert why in got.walls[first]["detail"]


ANY, NEW_CGROUP, NO_NEW_PRIVS, DROP_FROM_BOUNDING_SET, SET_INTERFACE_FLAGS = 0xffffffff, 0x02000000, 38, 24, 0x8914


@pytest.mark.parametrize("wall, prepare", [
    ("cgroup-namespace", hidden.calls("unshare", first=(NEW_CGROUP, NEW_CGROUP), code=errno.EINVAL)),
    ("uts-namespace", hidden.calls("sethostname", code=errno.EPERM)),
    ("loopback", hidden.calls("ioctl", first=(ANY, SET_INTERFACE_FLAGS), code=errno.EPERM)),
    ("no-new-privs", hidden.calls("prctl", first=(ANY, NO_NEW_PRIVS), code=errno.EINVAL)),
    ("capabilities", hidden.calls("prctl", first=(ANY, DROP_FROM_BOUNDING_SET), code=errno.EPERM)),
], ids=lambda v: v if isinstance(v, str) else "")
def test_each_of_these_is_found_missing(wall, prepare):
    got = Doctor(prepare=prepare)
    assert got.status == 1 and {wall, "sandbox"} <= set(got.text["refused"]), got.text["refused"]
    assert got.state("memory-limit") == "present"       # it tries the others all the same
    assert got.walls[wall]["without"] and got.walls[wall]["detail"]


NAMESPACES = {"user-namespace", "nested-user-namespace", "pid-namespace", "mount-namespace", "network-namespace", "ipc-namespace",
              "uts-namespace", "cgroup-namespace"}


@pytest.mark.parametrize("prepare, missing", [
    (hidden.calls("listen", code=errno.EPERM), {"network-namespace", "loopback", "listener-in-namespace"}),
    (hidden.calls("mount_setattr"), {"overlay", "devices", "proc", "own-root", "no-user-namespaces-inside", "idmapped-mount", "sandbox"}),
    (hidden.calls("clone3"), NAMESPACES | {
        "id-maps", "loopback", "devices", "proc", "own-root", "no-user-namespaces-inside", "clone-into-cgroup", "memory-limit",
        "pids-limit", "cpu-limit", "cgroup-kill", "cgroup-freeze", "pidfd", "disk-home", "idmapped-mount", "listener-in-namespace",
        "sandbox"}),
], ids=["listen", "mount_setattr", "clone3"])
def test_all_walls_that_stand_on_it_are_found_missing(prepare, missing):
    got = Doctor(prepare=prepare)
    assert got.status == 1 and got.missing() == missing
    assert set(got.text["refused"]) == {n for n in missing if got.walls[n]["demanded"]}


def test_groups_that_are_not_mounted_are_missing():
    got = Doctor(prepare=hidden.unmounted(*[r for r in cgroup_roots() if "/cgroup/memory" in r or r == "/sys/fs/cgroup"]))
    assert got.status == 1
    assert {"cgroups", "memory-limit", "pids-limit", "cpu-limit", "cgroup-kill", "sandbox"} <= set(got.text["refused"])
    assert "memory" in got.walls["cgroups"]["detail"]
    assert got.state("landlock") != "missing" and got.state("own-root") == "present"


def test_a_user_namespace_of_somebody_is_no_host():
    got = Doctor(before=["unshare", "--user", "--map-root-user"])
    assert got.status == 1 and got.text["refused"][0] == "privileges"
    assert "user namespace" in got.walls["privileges"]["detail"]


def test_one_level_of_user_namespaces_is_weaker():
    got = Doctor(prepare=hidden.calls("setns", code=errno.EPERM))
    assert got.state("nested-user-namespace") == "weaker"
    assert got.state("user-namespace") == got.state("id-maps") == "present"
    assert got.state("idmapped-mount") == Doctor().state("idmapped-mount")      # workspaces ask for no second level


def test_what_no_level_demands_may_be_missing():
    got = Doctor(prepare=hidden.covered("/dev/loop-control", "/dev/null"))
    assert got.status == 0 and got.missing() == {"disk-home"}
    text = run(prepare=hidden.covered("/dev/loop-control", "/dev/null")).stdout
    assert re.search(r"^  missing +disk-home ", text, re.M) and "MISSING" not in text


@pytest.mark.parametrize("env, options, refused", [
    ({"HOLDCELL_HOME": "disk", "HOLDCELL_STATE_DIR": "/dev/shm/holdcell-none"}, [], {"disk-home"}),
    ({"HOLDCELL_HOME": "auto", "HOLDCELL_STATE_DIR": "/dev/shm/holdcell-none"}, [], set()),
    ({"HOLDCELL_WORKSPACES": "/dev/shm/holdcell-none"}, [], {"idmapped-mount"}),
    ({}, ["--home", "disk", "--state-dir", "/dev/shm/holdcell-none", "--workspaces", "/dev/shm/holdcell-none"],
     {"disk-home", "idmapped-mount"}),
], ids=["home", "auto", "workspaces", "options"])
def test_what_the_options_of_the_server_need_is_demanded(env, options, refused):
    got = Doctor(*options, env=env)
    assert set(got.text["refused"]) == refused and got.status == (1 if refused else 0)
    for name in refused:
        assert got.walls[name]["demanded"] and "in memory" in got.walls[name]["detail"]
    assert not os.path.exists("/dev/shm/holdcell-none")


def test_values_that_no_server_takes_are_wrong_use():
    got = run(env={"HOLDCELL_HOME": "ram"})
    assert got.returncode == 2 and got.stderr == "holdcell doctor: option --home: 'ram' is not auto, disk or tmpfs\n"
    got = run("--workspaces", "work")
    assert got.returncode == 2 and "'work' is no absolute path" in got.stderr


def test_a_runtime_that_is_not_there_is_a_wall_too(tmp_path):
    got = run("--runtime", str(tmp_path))
    assert got.returncode == 1 and got.stderr.startswith("holdcell doctor: option --runtime: no runtime at")


def test_what_is_accepted_is_missing_and_well(here):
    prepare = hidden.calls("landlock_create_ruleset")
    got = Doctor("--accept-missing", "landlock", prepare=prepare)
    assert got.status == 0 and got.text["ok"] is True
    assert got.text["accepted"] == ["landlock"] and got.state("landlock") == "missing"
    assert got.state("sandbox") == "present"        # and it was built without Landlock
    lower = Doctor("--isolation", "namespaces", prepare=prepare)
    assert lower.status == 0 and lower.text["level"] == "namespaces" and lower.text["accepted"] == []
    assert lower.walls["landlock"]["demanded"] is False
    by_variable = Doctor(prepare=prepare, env={"HOLDCELL_ACCEPT_MISSING": "landlock"})
    assert by_variable.status == 0
    there = Doctor("--accept-missing", "landlock,seccomp")
    assert there.status == 0 and there.text["accepted"] == []


def test_a_missing_wall_is_explained_in_the_table():
    got = run(prepare=hidden.calls("landlock_create_ruleset"))
    assert got.returncode == 1
    block = re.search(r"^  MISSING +landlock .*\n((?: {20}.*\n)+)", got.stdout, re.M).group(1)
    assert [word for word in ("found", "means", "help") if re.search(rf"^ +{word} ", block, re.M)] == ["found", "means", "help"]
    assert "landlock in lsm=" in " ".join(block.split())
    assert got.stdout.endswith("Level hardened demands what is missing: landlock, sandbox.\n`holdcell serve` refuses to start.\n"
                               "--accept-missing landlock would serve without it.\n")


# --- the server -----------------------------------------------------------------------

def refused(*options, prepare):
    """The log of a server that does not start."""
    s = Server(*options, prepare=prepare)
    try:
        s.spawn()
        assert s.proc.wait(60 * SLOW) == 1
        assert "serving on" not in s.log()
        return s.log()
    finally:
        s.close()


@pytest.mark.parametrize("name, prepare", [("landlock", hidden.calls("landlock_create_ruleset")),
                                           ("seccomp", hidden.calls("seccomp"))])
def test_the_server_refuses_to_start_and_says_what_would_accept_it(name, prepare):
    line, = re.findall(r".*event=wall_missing .*", refused(prepare=prepare))
    assert f"level=error process=launcher event=wall_missing wall={name} isolation=hardened" in line
    assert f"wall '{name}' is missing: " in line and "; without it: " in line
    assert f"to serve all the same: --accept-missing {name}" in line


@pytest.mark.parametrize("name, prepare", [("proc", hidden.covered("/proc/meminfo", "/dev/null")),
                                           ("own-root", hidden.calls("pivot_root")),
                                           ("cgroups", hidden.unmounted("/sys/fs/cgroup")),
                                           ("devices", hidden.calls("fsopen"))],
                         ids=["proc", "pivot_root", "cgroups", "fsopen"])
def test_the_server_names_the_wall_that_no_option_accepts(name, prepare):
    log = refused("--accept-missing", "landlock,seccomp", "--isolation", "namespaces", prepare=prepare)
    line, = re.findall(rf".*event=wall_missing wall={name} .*", log)
    assert "no option accepts that; what helps: " in line


@pytest.mark.skipif(int(status_of("self")["CapEff"], 16) >> 24 & 1, reason="CAP_SYS_RESOURCE raises the limit again")
def test_too_few_open_files_are_told_before_any_session_fails():
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    assert {"open-files", "sandbox"} == set(Doctor(prepare=few).text["refused"])
    assert Doctor("--fds", "512", prepare=few).state("open-files") == "weaker"
    line, = re.findall(r".*event=wall_missing .*", refused(prepare=few))
    assert "wall=open-files" in line and "1024 at most, sessions are to have 4096" in line and "or lower --fds" in line


@pytest.mark.parametrize("options", [["--accept-missing", "landlock"], ["--isolation", "namespaces"]], ids=" ".join)
def test_the_server_does_without_landlock_when_it_is_accepted(server_with, options):
    s = server_with(*options, prepare=hidden.calls("landlock_create_ruleset"))
    assert len(re.findall("level=warn .*event=wall_missing_accepted wall=landlock", s.log())) == 1
    assert s.request("GET", "/readyz", token=False).json()["isolation"] == "reduced"
    assert "\nholdcell_walls_missing 1\n" in s.request("GET", "/metrics").body.decode()
    with Channels(s, s.start_kernel("python3")) as c:
        assert c.run("6 * 7").result == "42"
        assert c.run("import subprocess; subprocess.run(['echo', 'x'], capture_output=True).stdout").result == "b'x\\n'"
    kernel, = s.kernels()
    assert status_of(kernel)["Seccomp"] == "2"      # the other walls are all there
    assert status_of(kernel)["NoNewPrivs"] == "1"


def test_the_server_does_without_seccomp_when_it_is_accepted(server_with):
    s = server_with("--accept-missing", "seccomp", prepare=hidden.calls("seccomp"))
    assert "event=wall_missing_accepted wall=seccomp" in s.log()
    with Channels(s, s.start_kernel("python3")) as c:
        assert c.run("6 * 7").result == "42"
    for pid in (*s.kernels(), s.process("gateway")):
        # the filter that hides seccomp is the only one
        assert status_of(pid)["Seccomp_filters"] == "1" and status_of(pid)["NoNewPrivs"] == "1"


@pytest.mark.guest
def test_a_server_with_all_walls_says_so_once_and_nobody_else_is_told(server_with):
    s = server_with("--accept-missing", "landlock")
    assert len(re.findall("event=walls isolation=hardened duration_us=[0-9]+ missing=0", s.log())) == 1
    assert "wall_missing" not in s.log()
    assert "isolation" not in s.request("GET", "/readyz", token=False).json()
    assert "\nholdcell_walls_missing 0\n" in s.request("GET", "/metrics").body.decode()


def test_kept_kernels_without_a_wall_are_not_taken_over_by_who_demands_it(server_with):
    first = server_with("--on-exit", "keep", "--accept-missing", "landlock", prepare=hidden.calls("landlock_create_ruleset"))
    kid = first.start_kernel("python3")
    assert first.stop() == 0
    second = Server("--on-exit", "keep")
    second.state, second.port = first.state, first.port
    try:
        second.spawn()
        assert second.proc.wait(60 * SLOW) == 1
        assert "option --accept-missing: the kept kernels do without landlock, which level 'hardened' demands" in second.log()
    finally:
        second.close()
    third = Server("--accept-missing", "landlock")
    third.state, third.port = first.state, first.port
    try:
        third.start()
        assert third.kernel(kid)["id"] == kid
        assert third.request("GET", "/readyz", token=False).json()["isolation"] == "reduced"
    finally:
        third.close()
