"""Limits that a request asks for: only downwards, in force in the cgroup, told by a route of their own."""

import hashlib
import json
import os
import signal

import pytest

from channels import Channels
from server import cgroups_of, read, wait_for

GIVEN = {"memory_mb": 2048, "cpus": 1, "pids": 256, "disk_mb": 1024, "tmp_mb": 256, "shm_mb": 128, "inodes": 32768, "fds": 4096,
         "output_mb": 1024}
GHOST = "00000000-0000-4000-8000-000000000000"


def told(server, kid):
    r = server.request("GET", f"/api/kernels/{kid}/limits")
    assert r.status == 200, r
    return r.json()


def in_force(server):
    """Values of the groups of the server's one session, by the names of the limits."""
    got = {}
    for d in cgroups_of(server.slot()):
        if os.path.basename(os.path.dirname(d)) != "s":
            continue
        for name in ("memory.max", "memory.limit_in_bytes"):
            if read(f"{d}/{name}"):
                got["memory_mb"] = int(read(f"{d}/{name}")) >> 20
        if read(f"{d}/pids.max"):
            got["pids"] = int(read(f"{d}/pids.max"))
        if read(f"{d}/cpu.cfs_quota_us"):
            got["cpus"] = int(read(f"{d}/cpu.cfs_quota_us")) / int(read(f"{d}/cpu.cfs_period_us"))
        elif read(f"{d}/cpu.max"):
            quota, period = read(f"{d}/cpu.max").split()
            got["cpus"] = int(quota) / int(period)
    return got


PROBE = """
import os, resource
def size(path):
    s = os.statvfs(path)
    return s.f_blocks * s.f_frsize >> 20, s.f_bavail * s.f_frsize >> 20, s.f_files
[size('/home/user')[1:], size('/tmp')[::2], size('/dev/shm')[::2], resource.getrlimit(resource.RLIMIT_NOFILE)[1]]
"""


@pytest.fixture
def own(server_with):
    return server_with()


def test_limits_are_those_that_were_asked_for(own):
    asked = {"memory_mb": 512, "cpus": 0.5, "pids": 64, "disk_mb": 100, "tmp_mb": 50, "shm_mb": 20, "inodes": 1000, "fds": 256,
             "output_mb": 5}
    kid = own.start_kernel("python3", limits=asked)
    assert told(own, kid) == asked
    assert in_force(own) == {"memory_mb": 512, "cpus": 0.5, "pids": 64}
    with Channels(own, kid) as c:
        (home, home_files), *rest = eval(c.run(PROBE).result)
        assert rest == [(50, 1000), (20, 1000), 256]
        assert 98 <= home <= 101 and 1000 <= home_files < 1100     # what IPython wrote, and whole blocks of inodes
        assert c.run("x = bytearray(1 << 30)").status == "error"        # more than 512 MiB
    assert own.delete_kernel(kid) == 204
    kid = own.start_kernel("python3", limits={"memory_mb": 256, "cpus": None})
    assert told(own, kid) == {**GIVEN, "memory_mb": 256, "tmp_mb": 32, "shm_mb": 16}
    assert own.delete_kernel(kid) == 204
    kid = own.start_kernel("python3")
    assert told(own, kid) == GIVEN
    assert in_force(own) == {"memory_mb": 2048, "cpus": 1, "pids": 256}
    assert set(own.kernel(kid)) == {"id", "name", "last_activity", "execution_state", "connections"}
    assert own.request("GET", f"/api/kernels/{GHOST}/limits").status == 404


def test_limits_stay_at_a_restart_and_for_the_next_gateway(own):
    kid = own.start_kernel("python3", limits={"memory_mb": 512})
    assert own.restart(kid).status == 200
    assert told(own, kid)["memory_mb"] == 512 == in_force(own)["memory_mb"]
    assert own.start_kernel("python3", kernel_id=kid, limits={"memory_mb": 128}) == kid     # it runs already
    old = own.process("gateway")
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: own.process("gateway") not in (0, old) and own.answers() and own.kernel(kid))
    assert told(own, kid)["memory_mb"] == 512 == in_force(own)["memory_mb"]


@pytest.mark.parametrize("limits,word", [
    ({"memory_mb": 2049}, "limits.memory_mb"), ({"cpus": 1.5}, "limits.cpus"), ({"pids": 257}, "limits.pids"),
    ({"disk_mb": 1025}, "limits.disk_mb"), ({"tmp_mb": 257}, "limits.tmp_mb"), ({"inodes": 40000}, "limits.inodes"),
    ({"fds": 5000}, "limits.fds"), ({"shm_mb": 129}, "limits.shm_mb"), ({"output_mb": 1025}, "limits.output_mb"),
    ({"ram": 1}, "limits.ram"), ({"memory_mb": 1}, "limits.memory_mb"),
    ({"memory_mb": "512"}, "limits.memory_mb"), ([], "limits"), (5, "limits"), ({"pids": 2 ** 62}, "limits.pids")])
def test_what_cannot_be_had_is_400_and_names_the_field(shared, limits, word):
    before = shared.request("GET", "/api/kernels").json()
    r = shared.request("POST", "/api/kernels", {"limits": limits})
    assert r.status == 400 and r.json()["message"].startswith(word), r
    r = shared.request("POST", "/api/sessions", {"path": "l", "type": "console", "kernel": {"limits": limits}})
    assert r.status == 400 and r.json()["message"].startswith(word), r
    assert shared.request("GET", "/api/kernels").json() == before
    assert "l" not in [s["path"] for s in shared.request("GET", "/api/sessions").json()]


def test_sessions_ask_for_limits_of_their_kernel(own):
    r = own.request("POST", "/api/sessions", {"path": "a", "type": "console", "kernel": {"limits": {"memory_mb": 300}}})
    assert r.status == 201 and told(own, r.json()["kernel"]["id"])["memory_mb"] == 300
    url = f"/api/sessions/{r.json()['id']}"
    r = own.request("PATCH", url, {"kernel": {"name": "python3", "limits": {"memory_mb": 4000}}})
    assert r.status == 400 and "limits.memory_mb" in r.json()["message"]
    r = own.request("PATCH", url, {"kernel": {"name": "python3", "limits": {"memory_mb": 200}}})
    assert r.status == 200 and told(own, r.json()["kernel"]["id"])["memory_mb"] == 200 == in_force(own)["memory_mb"]


def test_the_maxima_are_the_options(server_with):
    s = server_with("--memory-mb", "256", "--disk-mb", "32", "--tmp-mb", "32", "--cpus", "0.5", "--fds", "512",
                    "--shm-mb", "8", "--output-mb", "4")
    kid = s.start_kernel("python3", limits={"fds": 300})
    assert told(s, kid) == {**GIVEN, "memory_mb": 256, "disk_mb": 32, "tmp_mb": 32, "cpus": 0.5, "fds": 300, "shm_mb": 8,
                            "output_mb": 4}
    for limits in ({"memory_mb": 257}, {"cpus": 0.51}, {"disk_mb": 33}, {"tmp_mb": 33}, {"fds": 513}, {"shm_mb": 9},
                   {"output_mb": 5}):
        r = s.request("POST", "/api/kernels", {"limits": limits})
        assert r.status == 400 and f"limits.{next(iter(limits))}" in r.json()["message"], r


def test_files_in_memory_leave_some_of_it(server_with):
    s = server_with("--home", "tmpfs", "--memory-mb", "512", "--disk-mb", "288")        # neither /tmp nor /dev/shm
    kid = s.start_kernel("python3")
    assert told(s, kid) == {**GIVEN, "memory_mb": 512, "disk_mb": 288, "tmp_mb": 64, "shm_mb": 32}
    r = s.request("POST", "/api/kernels", {"limits": {"memory_mb": 128, "disk_mb": 73}})
    assert r.status == 400 and "limits.disk_mb" in r.json()["message"] and " 72 " in r.json()["message"], r
    r = s.request("POST", "/api/kernels", {"limits": {"memory_mb": 64, "tmp_mb": 60}})
    assert r.status == 400 and r.json()["message"].startswith("limits.tmp_mb"), r
    kid = s.start_kernel("python3", limits={"memory_mb": 256, "disk_mb": 100})
    assert told(s, kid) == {**GIVEN, "memory_mb": 256, "disk_mb": 100, "tmp_mb": 32, "shm_mb": 16}


def test_a_principal_asks_within_its_own(server_with, tmp_path):
    path = tmp_path / "principals"
    path.write_text(json.dumps({"name": "ann", "sha256": hashlib.sha256(b"anns-t0ken-0123456789").hexdigest(),
                                "limits": {"memory_mb": 512, "pids": 64}}) + "\n")
    os.chmod(path, 0o600)
    s = server_with("--principals", str(path))
    ann = {"Authorization": "token anns-t0ken-0123456789"}
    r = s.request("POST", "/api/kernels", {"limits": {"memory_mb": 513}}, headers=ann)
    assert r.status == 400 and "512" in r.json()["message"], r
    r = s.request("POST", "/api/kernels", {"limits": {"memory_mb": 300}}, headers=ann)
    assert r.status == 201
    url = f"/api/kernels/{r.json()['id']}/limits"
    assert s.request("GET", url, headers=ann).json() == {**GIVEN, "memory_mb": 300, "pids": 64, "tmp_mb": 37, "shm_mb": 18}
    assert s.request("GET", url).status == 404          # somebody else's
