"""What only a machine of the customers' kind shows: Debian 12 with its own kernel (6.1), cgroup v2 alone.
Collected in the guests of tests/vm.sh only (HOLDCELL_GUEST=direct or systemd)."""

import ctypes
import json
import os
import re
import subprocess

import pytest

from channels import Channels
from server import BIN, SLOW, Server, V2_ROOT, cgroup_roots, cgroups_of, descendants_of, group_of, read
from test_doctor import Doctor

pytestmark = pytest.mark.guest
SYSTEMD = os.environ["HOLDCELL_GUEST"] == "systemd"


def test_the_guest_is_what_the_customers_have():
    assert os.uname().release.startswith("6.1.")
    assert cgroup_roots() == [V2_ROOT]
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.syscall(444, None, ctypes.c_size_t(0), 1) == 2, "landlock_create_ruleset: the version"


def test_landlock_holds_inside(chan):
    """These files are the session's own in a file system that is mounted for writing: only Landlock refuses."""
    run = chan.run("import os, errno\nout = [l.split()[3].split(',')[0] for l in open('/proc/self/mounts') if l.split()[1] == '/proc']\n"
                   "for name in ('comm', 'oom_score_adj', 'coredump_filter'):\n"
                   "    path = f'/proc/self/{name}'\n    s = os.stat(path)\n"
                   "    try: os.close(os.open(path, os.O_WRONLY)); why = None\n"
                   "    except OSError as e: why = errno.errorcode[e.errno]\n"
                   "    out.append((s.st_uid == os.getuid() and bool(s.st_mode & 0o200), why))\nout")
    assert eval(run.result) == ["rw"] + 3 * [(True, "EACCES")]


def test_doctor_names_what_is_weaker_on_such_a_machine():
    got = subprocess.run([BIN, "doctor", "--json"], capture_output=True, text=True, timeout=600 * SLOW)
    found = json.loads(got.stdout)
    walls = {w["name"]: w for w in found["walls"]}
    assert got.returncode == 0 and found["ok"], [w for w in found["walls"] if w["state"] == "missing"]
    assert walls["landlock"]["state"] == "weaker"
    assert walls["landlock"]["detail"] == ("ABI 2: no truncate (Linux 6.2) and no ioctl of devices (6.10); permissions "
                                           "and seccomp have those")
    assert walls["cgroups"]["detail"].startswith("cgroup v2, below " + V2_ROOT)
    states = {n: walls[n]["state"] for n in ("io-uring", "legacy-tiocsti", "ptrace-scope", "kptr-restrict", "kernel",
                                             "memory-limit", "pids-limit", "cpu-limit", "clone-into-cgroup",
                                             "cgroup-kill", "cgroup-freeze", "sandbox")}
    assert states == {"io-uring": "absent", "legacy-tiocsti": "absent", "ptrace-scope": "weaker", "kptr-restrict": "weaker",
                      **dict.fromkeys(("kernel", "memory-limit", "pids-limit", "cpu-limit", "clone-into-cgroup",
                                       "cgroup-kill", "cgroup-freeze", "sandbox"), "present")}
    assert "no kernel.io_uring_disabled" in walls["io-uring"]["detail"]
    bases = [d for top, dirs, _ in os.walk(V2_ROOT) for d in dirs if re.fullmatch("holdcell-[0-9]+", d)]
    assert "holdcell-511" not in bases


@pytest.mark.parametrize("kind, wall", [("user", "user-namespace"), ("pid", "pid-namespace"), ("mnt", "mount-namespace"),
                                        ("net", "network-namespace"), ("ipc", "ipc-namespace"), ("uts", "uts-namespace"),
                                        ("cgroup", "cgroup-namespace")])
def test_a_namespace_of_which_the_host_allows_none_is_found_missing(kind, wall):
    path = f"/proc/sys/user/max_{kind}_namespaces"      # of the whole host: it is ours
    before = read(path)
    try:
        with open(path, "w") as f:
            f.write("0")
        got = Doctor()
    finally:
        with open(path, "w") as f:
            f.write(before)
    assert got.status == 1 and {wall, "sandbox"} <= set(got.text["refused"])
    assert "No space left" in got.walls[wall]["detail"]     # user_namespaces(7)
    assert got.state("seccomp") == got.state("pidfd") == "present", "it tries the others all the same"


@pytest.fixture(scope="module")
def limited():
    """A server with odd limits, with one Python kernel that has run a cell."""
    s = Server("--memory-mb", "333", "--pids", "77", "--cpus", "0.75", "--disk-mb", "32", "--tmp-mb", "32").start()
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        c.run("0")
    yield s
    s.close()


def test_the_limits_are_in_the_unified_tree(limited):
    kernel, = limited.kernels()
    leaf = group_of(kernel)
    session, name = os.path.split(leaf)
    assert name == "k1-1" and re.fullmatch(rf"{V2_ROOT}(/.*)?/holdcell-{limited.slot()}/s/[0-9]+-[0-9]+", session)
    limits = {f: read(f"{session}/{f}").strip() for f in
              ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max", "cgroup.subtree_control")}
    assert limits == {"memory.max": str(333 << 20), "memory.swap.max": limits["memory.swap.max"],
                      "memory.oom.group": "0", "pids.max": "77", "cpu.max": "75000 100000", "cgroup.subtree_control": ""}
    assert limits["memory.swap.max"] in ("0", "")           # empty: a kernel without swap accounting
    assert [p for p in descendants_of(limited.process("launcher")) if group_of(p) == session + "/init"]


def test_the_servers_own_processes_are_outside_of_every_limit(limited):
    base = next(g for g in cgroups_of(limited.slot()) if g.endswith(f"/holdcell-{limited.slot()}"))
    own = [limited.proc.pid, limited.process("launcher"), limited.process("gateway")]
    for pid in own:
        assert not (group_of(pid) + "/").startswith(base + "/")
        assert read(group_of(pid) + "/memory.max").strip() in ("max", "")
    # Who answers and who kills comes before those that burn processor time.
    assert read(base + "/cpu.weight").strip() == "50"
    if SYSTEMD:     # the scope is ours alone: nothing outside of it was touched
        scope = os.path.dirname(base)
        assert read(scope + "/holdcell-main/cpu.weight").strip() == "1000"
        assert read(scope + "/holdcell-main/memory.low").strip() == str(256 << 20)
        assert re.search(r"\.scope$", scope)
        assert {group_of(p) for p in own} == {scope + "/holdcell-main"}
        assert not [d for d in os.listdir(V2_ROOT) if d.startswith("holdcell-")]
    else:
        assert os.path.dirname(base) == V2_ROOT


def test_the_sandboxes_go_below_the_cgroup_parent_that_was_named(server_with):
    parent = V2_ROOT + "/operators-own"
    os.mkdir(parent)
    with open(V2_ROOT + "/cgroup.subtree_control", "w") as f:
        f.write("+memory +pids +cpu")
    try:
        s = server_with("--cgroup-parent", parent)
        s.start_kernel("python3")
        kernel, = s.kernels()
        assert group_of(kernel).startswith(f"{parent}/holdcell-{s.slot()}/s/")
        s.stop()
        assert not [d for d in os.listdir(parent) if os.path.isdir(os.path.join(parent, d))]
    finally:
        os.rmdir(parent)
