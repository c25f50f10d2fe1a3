"""What a server inherits from who starts it, and neither dies of nor hands on to its sessions."""

import errno
import os
import resource
import subprocess

import pytest

from channels import Channels
from disks import homes, homes_on_disk, no_loops
from server import BIN, LIBC, free_port, read, status_of

FILES = resource.RLIMIT_FSIZE
SYS_RESOURCE = 24
PR_CAPBSET_DROP = 24
MIB = 1 << 20


def file_size_of(pid):
    """Soft and hard limit, as /proc writes them."""
    line, = [x for x in read(f"/proc/{pid}/limits").splitlines() if x.startswith("Max file size")]
    return line.split()[3:5]


def without_power_to_raise(size):
    """As in a container without CAP_SYS_RESOURCE, under a limit of file sizes."""
    def prepare():
        resource.setrlimit(FILES, (size, size))
        assert LIBC.prctl(PR_CAPBSET_DROP, SYS_RESOURCE, 0, 0, 0) == 0    # the exec takes it away
    return prepare


# --- the limit of file sizes ---------------------------------------------------------------

@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_a_limit_of_file_sizes_below_a_home_ends_nobody_and_binds_no_session(server_with, kind):
    if kind == "hard" and not int(status_of("self")["CapEff"], 16) >> SYS_RESOURCE & 1:
        pytest.skip("we may not raise hard limits here, and so may no server of ours")
    size = 8 * MIB
    hard = size if kind == "hard" else resource.RLIM_INFINITY
    s = server_with("--disk-mb", "64", prepare=lambda: resource.setrlimit(FILES, (size, hard)))
    kid = s.start_kernel("python3")
    assert [file_size_of(s.process(n)) for n in ("launcher", "gateway")] == [["unlimited"] * 2] * 2
    assert homes(s) == (["disk"] if homes_on_disk(s) else ["memory"])
    with Channels(s, kid) as c:
        assert c.run(f"open('f', 'wb').write(bytes({4 * size}))").result == str(4 * size)
        why = c.run("import errno\ntry:\n    open('g', 'wb').write(bytes(100 << 20))\n"
                    "except OSError as e: print(errno.errorcode[e.errno])").text
        assert why == "ENOSPC\n", "the session has its own limit, above what its home holds"
    assert s.process("launcher") and "launcher_ended" not in s.log()


def test_a_soft_limit_alone_is_lifted_without_any_power(server_with):
    def prepare():
        without_power_to_raise(resource.RLIM_INFINITY)()
        resource.setrlimit(FILES, (8 * MIB, resource.RLIM_INFINITY))
    s = server_with("--disk-mb", "64", prepare=prepare)
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run(f"open('f', 'wb').write(bytes({32 * MIB}))").result == str(32 * MIB)


@pytest.mark.parametrize("option, file", [("--disk-mb", "a home of a session"), ("--tmp-mb", "/tmp of a session"),
                                          ("--shm-mb", "/dev/shm of a session"), ("--workspace-mb", "a workspace")])
@pytest.mark.parametrize("home", ["auto", "tmpfs"])
def test_a_limit_that_may_not_be_raised_and_is_too_low_is_refused_at_the_start(tmp_path, option, file, home):
    sizes = {"--disk-mb": "16", "--tmp-mb": "16", "--shm-mb": "16", option: "300"}
    argv = [BIN, "serve", "--listen", f"127.0.0.1:{free_port()}", "--no-auth", "--state-dir", str(tmp_path / "state"),
            "--home", home, "--workspaces", str(tmp_path / "w")]
    if option != "--workspace-mb":
        sizes["--workspace-mb"] = "16"
    r = subprocess.run(argv + [w for o in sizes.items() for w in o], capture_output=True, text=True, timeout=120,
                       preexec_fn=without_power_to_raise(200 * MIB))
    assert r.returncode == 1, r
    assert f"the limit of file sizes (ulimit -f, LimitFSIZE) is {200 << 10} KiB and may not be raised, {file}" in r.stderr
    assert option in r.stderr and "serving on" not in r.stdout


def test_a_limit_below_what_the_server_itself_writes_is_refused_at_once(tmp_path):
    r = subprocess.run([BIN, "serve", "--listen", f"127.0.0.1:{free_port()}", "--no-auth", "--state-dir", str(tmp_path / "s")],
                       capture_output=True, text=True, timeout=60, preexec_fn=without_power_to_raise(0))
    assert r.returncode == 1 and "the limit of file sizes (ulimit -f, LimitFSIZE) is 0 KiB and may not be raised" in r.stderr, r
    assert not os.path.exists(tmp_path / "s")


def test_a_limit_that_may_not_be_raised_and_is_enough_holds_for_sessions_too(server_with):
    size = 200 * MIB
    s = server_with("--disk-mb", "16", "--tmp-mb", "16", "--shm-mb", "16", "--memory-mb", "512",
                    prepare=without_power_to_raise(size))
    kid = s.start_kernel("python3")
    assert file_size_of(s.process("launcher")) == [str(size)] * 2
    assert s.delete_kernel(kid) == 204
    no_loops(s)


def test_one_file_too_large_is_the_error_of_its_session_and_names_the_limit(server_with):
    s = server_with("--disk-mb", "64", "--home", "disk")
    kid = s.start_kernel("python3")
    launcher = s.process("launcher")
    resource.prlimit(launcher, FILES, (32 * MIB, resource.RLIM_INFINITY))      # as if somebody had lowered it meanwhile
    r = s.request("POST", "/api/kernels", {})
    assert r.status == 500 and "the limit of file sizes (ulimit -f, LimitFSIZE) is 32768 KiB" in r.json()["message"], r
    assert s.process("launcher") == launcher and s.kernel(kid), "nobody else is touched"
    resource.prlimit(launcher, FILES, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert s.request("POST", "/api/kernels", {}).status == 201


# --- scheduling ------------------------------------------------------------------------------

POLICIES = {"other": os.SCHED_OTHER, "batch": os.SCHED_BATCH, "idle": os.SCHED_IDLE}
REAL_TIME = {"fifo": os.SCHED_FIFO, "rr": os.SCHED_RR}


def may_be_real_time():
    pid = os.fork()
    if pid == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def policies_of(server):
    pids = [server.proc.pid, server.process("launcher"), server.process("gateway"), *server.kernels()]
    return {os.sched_getscheduler(int(tid)) for pid in pids for tid in os.listdir(f"/proc/{pid}/task")}


@pytest.mark.parametrize("name", ["batch", "idle"])
def test_a_server_that_is_to_take_less_of_the_processors_lives_and_so_do_its_kernels(server_with, name):
    policy = POLICIES[name]
    s = server_with(prepare=lambda: os.sched_setscheduler(0, policy, os.sched_param(0)))
    gateway = s.process("gateway")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("import os; os.sched_getscheduler(0)").result == str(policy)
        assert policies_of(s) == {policy}
        assert c.run("import threading; t = threading.Thread(target=print, args=('on',)); t.start(); t.join()").text == "on\n"
    assert s.process("gateway") == gateway and "gateway_ended" not in s.log()


@pytest.mark.parametrize("name", REAL_TIME)
def test_real_time_is_for_no_session(server_with, name):
    if not may_be_real_time():
        pytest.skip("nobody may be real-time here")
    s = server_with(prepare=lambda: os.sched_setscheduler(0, REAL_TIME[name], os.sched_param(1)))
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("1").status == "ok"
        assert policies_of(s) == {os.SCHED_OTHER}
        assert c.run("import os\ntry: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))\n"
                     "except OSError as e: print(e.errno)").text == f"{errno.EPERM}\n"
    assert "event=scheduling" in s.log()


def test_niceness_is_handed_on(server_with):
    s = server_with(prepare=lambda: os.setpriority(os.PRIO_PROCESS, 0, 15))
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run("import os; os.getpriority(os.PRIO_PROCESS, 0)").result == "15"
    assert status_of(s.process("launcher"))["State"][0] in "SRD"
