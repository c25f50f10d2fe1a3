"""What our own processes have taken from themselves: read back from the kernel, and tried by system calls made in
their name (tests/tools/inject.c)."""

import errno
import os
import platform
import subprocess

import pytest

from channels import Channels
from server import BIN, LIBC, Server, cgroups_of, descendants_of, read, status_of

INJECT = os.path.join(os.path.dirname(os.path.dirname(BIN)), "tests", "inject")
LINUX = tuple(int(n) for n in platform.release().split(".")[:2])
X86_64 = platform.machine() == "x86_64"

CAPS = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8, "SYS_CHROOT": 18,
        "SYS_ADMIN": 21, "SYS_RESOURCE": 24, "MKNOD": 27}
DAEMON = "CHOWN DAC_OVERRIDE FOWNER KILL SETGID SETUID SETPCAP SYS_ADMIN SYS_RESOURCE MKNOD"
INIT = "KILL SETGID SETUID SETPCAP SYS_CHROOT"       # of its own user namespace

# capabilities; oom_score_adj; whether others of the same id may look into it; filters: its own and those it inherited
EXPECTED = {
    "supervisor": {"caps": DAEMON, "bounding": DAEMON, "oom": -900, "dumpable": False, "filters": 1},
    "launcher": {"caps": DAEMON, "bounding": DAEMON, "oom": -900, "dumpable": False, "filters": 2},
    "gateway": {"caps": "", "bounding": "", "oom": -800, "dumpable": False, "filters": 4},
    "init": {"caps": INIT, "bounding": "", "oom": 400, "dumpable": False, "filters": 3},
    "kernel": {"caps": "", "bounding": "", "oom": 500, "dumpable": True, "filters": 3},
}

AT_FDCWD = -100
AF_UNIX, AF_INET, AF_NETLINK, AF_PACKET, AF_ALG, AF_VSOCK = 1, 2, 16, 17, 38, 40
SOCK_STREAM, SOCK_DGRAM, SOCK_RAW = 1, 2, 3
OPENAT, EXECVE, EXECVEAT, SOCKET, CLONE, UNSHARE, KILL = 257, 59, 322, 41, 56, 272, 62
GETPID, PTRACE, PROCESS_VM_READV, PRCTL, PR_GET_DUMPABLE = 39, 101, 310, 157, 3
MMAP, MPROTECT, MUNMAP, MAP_PRIVATE_ANONYMOUS = 9, 10, 11, 0x22
PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
# never needed by anybody here; refused before an argument is looked at
NOBODYS = {"ptrace": (PTRACE, 0), "process_vm_readv": (PROCESS_VM_READV, 1), "process_vm_writev": (311, 1), "bpf": (321, 0), "perf_event_open": (298, 0),
           "init_module": (175, 0), "finit_module": (313, -1), "delete_module": (176, 0), "kexec_load": (246, 0),
           "kexec_file_load": (320, -1), "io_uring_setup": (425, 1), "keyctl": (250, 0), "add_key": (248, 0), "request_key": (249, 0),
           "open_by_handle_at": (304, -1), "name_to_handle_at": (303, -1), "userfaultfd": (323, 1), "iopl": (172, 3), "ioperm": (173, 0),
           "settimeofday": (164, 0), "clock_settime": (227, 99), "adjtimex": (159, 0), "swapon": (167, 0), "swapoff": (168, 0), "acct": (163, 0),
           "reboot": (169, 0), "syslog": (103, 10), "quotactl": (179, -1), "fanotify_init": (300, 0), "pidfd_getfd": (438, -1),
           "kcmp": (312, 1), "mbind": (237, 0), "vmsplice": (278, -1), "modify_ldt": (154, 99), "lookup_dcookie": (212, 0),
           "shmget": (29, 0), "msgget": (68, 0), "semget": (64, 0), "memfd_secret": (447, 99)}


@pytest.fixture(scope="module", autouse=True)
def not_sanitized():
    with open(BIN, "rb") as f:
        sanitized = b"__asan_init" in f.read()
    if sanitized:
        pytest.skip("a sanitizer traces its own program, which the walls would not let it (sandbox/self/harden.h)")


def find(server, who):
    if who == "supervisor":
        return server.proc.pid
    if who == "kernel":
        return server.kernels()[0]
    if who == "init":
        return next(p for p in descendants_of(server.proc.pid) if read(f"/proc/{p}/cmdline").startswith("holdcell-init"))
    return server.process(who)


def bits(names):
    return sum(1 << CAPS[name] for name in names.split())


def core_limit(pid):
    line = next(x for x in read(f"/proc/{pid}/limits").splitlines() if x.startswith("Max core file size"))
    return line.split()[4:6]


@pytest.mark.guest
@pytest.mark.parametrize("who", EXPECTED)
def test_each_process_holds_exactly_what_it_needs(shared, kernel, who):
    kernel("python3")
    pid, want = find(shared, who), EXPECTED[who]
    got = status_of(pid)
    assert got["NoNewPrivs"] == "1" and got["Seccomp"] == "2"
    if "Seccomp_filters" in got:        # Linux 5.9
        assert int(got["Seccomp_filters"]) == want["filters"]
    # what the tests' root has not got (in containers), its daemons have not either
    ours = int(status_of("self")["CapPrm"], 16) if who in ("supervisor", "launcher") else -1
    for name in ("CapEff", "CapPrm"):
        assert int(got[name], 16) == bits(want["caps"]) & ours, (name, got[name])
    assert int(got["CapBnd"], 16) == bits(want["bounding"]) & ours, got["CapBnd"]
    assert int(got["CapInh"], 16) == int(got["CapAmb"], 16) == 0
    may_lower = int(status_of("self")["CapEff"], 16) & bits("SYS_RESOURCE")
    inherited = int(read("/proc/self/oom_score_adj"))
    assert int(read(f"/proc/{pid}/oom_score_adj")) == (want["oom"] if want["oom"] > 0 or may_lower else inherited)
    # 1, for a core_pattern that is a pipe does not look at 0
    assert core_limit(pid) == ["1", "1"]
    uid = int(got["Uid"].split()[0])
    if uid != 0:    # root's own files belong to root either way
        # init's belong to the root of its session, which is init itself; with another id than the kernel's
        outside = 0 if who == "gateway" else uid
        assert os.stat(f"/proc/{pid}/fd").st_uid == (uid if want["dumpable"] else outside)


@pytest.fixture(scope="module")
def victim():
    """A server whose processes calls are put into."""
    server = Server().start()
    server.start_kernel("python3")
    yield server
    server.close()


def landlock():
    return LIBC.syscall(444, None, 0, 1) > 0        # landlock_create_ruleset: the ABI


def inject(pid, call, *arguments):
    done = subprocess.run([INJECT, str(pid), str(call)] + [str(a & (1 << 64) - 1) if isinstance(a, int) else "s" + a for a in arguments],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    return int(words[1]) if words[0] == "=" else done.stdout.strip()


traced = pytest.mark.skipif(not X86_64, reason="the tool knows x86-64 alone")


@pytest.mark.guest
@traced
@pytest.mark.parametrize("who", [w for w in EXPECTED if w != "kernel"])
def test_a_call_that_is_put_into_a_process_is_carried_out(victim, who):
    pid = find(victim, who)
    assert inject(pid, GETPID) == (1 if who == "init" else pid)     # else all the refusals below would mean nothing


@traced
@pytest.mark.parametrize("call", NOBODYS)
@pytest.mark.parametrize("who", ["supervisor", "launcher", "gateway", "init"])
def test_what_nobody_needs_is_refused_to_each(victim, who, call):
    number, argument = NOBODYS[call]
    assert inject(find(victim, who), number, argument, 0, 0, 0, 0, 0) in (-errno.EPERM, -errno.ENOSYS)


@traced
@pytest.mark.parametrize("who, families", [("supervisor", [AF_PACKET, AF_ALG, AF_VSOCK]), ("launcher", [AF_PACKET, AF_ALG, AF_VSOCK]),
                                           ("gateway", [AF_INET, 10, AF_PACKET, AF_ALG, AF_VSOCK]), ("init", [AF_PACKET, AF_ALG, AF_VSOCK])])
def test_socket_families_beyond_the_list_are_refused(victim, who, families):
    for family in families:
        for kind in (SOCK_STREAM, SOCK_DGRAM, SOCK_RAW):
            assert inject(find(victim, who), SOCKET, family, kind, 0) == -errno.EPERM, (family, kind)
    assert inject(find(victim, who), SOCKET, AF_NETLINK, SOCK_RAW, 0) == -errno.EOPNOTSUPP
    assert inject(find(victim, who), SOCKET, AF_INET, SOCK_RAW, 1) == -errno.EPERM


@pytest.mark.guest
@traced
@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/shadow", "/proc/1/environ", "/proc/self/environ", "/usr/bin/env"])
@pytest.mark.parametrize("who", ["gateway", "init"])
def test_gateway_and_init_open_no_file(victim, who, path):
    if who == "gateway" and not landlock():
        pytest.skip("this kernel has no Landlock: file modes are all that holds the gateway")
    got = inject(find(victim, who), OPENAT, AT_FDCWD, path, os.O_RDONLY, 0)
    assert got == (-errno.EACCES if who == "gateway" else -errno.ENOENT)


@traced
@pytest.mark.parametrize("who", ["gateway", "init"])
def test_gateway_and_init_make_no_file(victim, who):
    for path in ("/tmp/holdcell-injected", "/dev/shm/holdcell-injected", "/home/user/injected"):
        got = inject(find(victim, who), OPENAT, AT_FDCWD, path, os.O_WRONLY | os.O_CREAT, 0o600)
        assert got in (-errno.EACCES, -errno.ENOENT, -errno.EROFS), got
        assert not os.path.exists(path)


@pytest.mark.guest
@traced
@pytest.mark.parametrize("program", ["/bin/sh", "/usr/bin/env", "/proc/self/exe"])
@pytest.mark.parametrize("who", ["gateway", "init"])
def test_gateway_and_init_exec_nothing(victim, who, program):
    want = -errno.EPERM if who == "gateway" else -errno.ENOENT
    assert inject(find(victim, who), EXECVE, program, 0, 0) == want
    assert inject(find(victim, who), EXECVEAT, AT_FDCWD, program, 0, 0, 0) == want
    if who == "gateway":        # what its start needed
        assert inject(find(victim, who), EXECVEAT, 3, "", 0, 0, 0x1000) == -errno.EPERM


@pytest.mark.guest
@traced
@pytest.mark.parametrize("who", [w for w in EXPECTED if w != "kernel"])
def test_no_other_process_of_the_same_id_can_look_into_it(victim, who):
    assert inject(find(victim, who), PRCTL, PR_GET_DUMPABLE, 0, 0, 0, 0) == int(EXPECTED[who]["dumpable"])


@pytest.mark.guest
@traced
@pytest.mark.parametrize("protection", [PROT_EXEC, PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC])
def test_the_gateway_makes_no_memory_executable(victim, protection):
    pid, page = find(victim, "gateway"), 4096
    assert inject(pid, MMAP, 0, page, protection, MAP_PRIVATE_ANONYMOUS, -1, 0) == -errno.EPERM
    mine = inject(pid, MMAP, 0, page, PROT_READ | PROT_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0)
    assert mine > 0
    assert inject(pid, MPROTECT, mine, page, protection) == -errno.EPERM
    assert inject(pid, MPROTECT, mine, page, PROT_READ) == 0
    assert inject(pid, MUNMAP, mine, page) == 0


@traced
@pytest.mark.skipif(LINUX < (6, 6), reason="Linux 6.6 is the first that can refuse it to a process and not to its children")
@pytest.mark.parametrize("who", ["supervisor", "launcher", "init"])
def test_no_memory_of_root_and_init_is_writable_and_executable(victim, who):
    pid, page = find(victim, who), 4096
    assert inject(pid, MMAP, 0, page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE_ANONYMOUS, -1, 0) == -errno.EACCES
    mine = inject(pid, MMAP, 0, page, PROT_READ | PROT_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0)
    assert mine > 0
    assert inject(pid, MPROTECT, mine, page, PROT_READ | PROT_EXEC) == -errno.EACCES
    assert inject(pid, MUNMAP, mine, page) == 0


def test_kernels_may_run_what_they_compile(shared, kernel):
    with Channels(shared, kernel("python3")) as c:      # what holds their parents is not inherited
        assert c.run("import mmap\nlen(mmap.mmap(-1, 4096, prot=7))").result == "4096"


@traced
def test_the_gateway_makes_no_process_and_signals_none(victim):
    pid = find(victim, "gateway")
    assert inject(pid, CLONE, 17, 0, 0, 0, 0) == -errno.EPERM       # 17: SIGCHLD, a plain fork
    assert inject(pid, KILL, 1, 0) == -errno.EPERM
    for flag in (0x20000, 0x10000000, 0x40000000):
        assert inject(pid, UNSHARE, flag) == -errno.EPERM


@traced
def test_init_makes_no_namespace_and_enters_none(victim):
    pid = find(victim, "init")
    for flag in (0x20000, 0x10000000, 0x40000000, 0x8000000):
        assert inject(pid, UNSHARE, flag) == -errno.EPERM
        assert inject(pid, CLONE, flag | 17, 0, 0, 0, 0) == -errno.EPERM
    assert inject(pid, 308, 0, 0) == -errno.EPERM       # setns
    assert inject(pid, 165, 0, "/", 0, 0, 0) == -errno.EPERM        # mount


@traced
@pytest.mark.parametrize("who", ["supervisor", "launcher"])
def test_roots_daemons_make_no_block_device_and_hold_no_other_capability(victim, who, tmp_path):
    pid, node = find(victim, who), str(tmp_path / "disk")
    assert inject(pid, 259, AT_FDCWD, node, 0o60600, 0x800) == -errno.EPERM     # mknodat
    assert not os.path.exists(node)
    assert inject(pid, PRCTL, 23, 25, 0, 0, 0) == 0       # PR_CAPBSET_READ, CAP_SYS_TIME: no exec brings it back


@pytest.mark.guest
@pytest.mark.parametrize("program", ["holdcell", "holdcell-launcher", "holdcell-init"])
def test_nothing_in_this_build_can_leave_a_wall_out(program):
    with open(os.path.join(os.path.dirname(BIN), program), "rb") as f:
        assert b"HOLDCELL_TEST_WITHOUT" not in f.read()     # sandbox/self/walls.h: the build of the suite walls-off alone has it


def test_sessions_weigh_less_than_who_serves_them(shared):
    weights = {}
    for group in cgroups_of(shared.slot()):
        if group.endswith(f"/holdcell-{shared.slot()}"):
            for name in ("cpu.weight", "cpu.shares"):
                if os.path.exists(f"{group}/{name}"):
                    weights[name] = read(f"{group}/{name}").strip()
    assert weights in ({"cpu.weight": "50"}, {"cpu.shares": "512"})


@traced
def test_it_goes_on_serving_after_all_that(victim):
    kid = victim.start_kernel("python3")
    assert victim.delete_kernel(kid) == 204
