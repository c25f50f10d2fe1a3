"""The operator's directories (--data): read-only, for whom the file of principals says, no path of the host."""

import os
import subprocess

import pytest

from channels import Channels
from principals import PrincipalServer, entry
from server import BIN, free_port, wait_for


@pytest.fixture
def data(tmp_path):
    for name in ("weather", "prices"):
        d = tmp_path / name
        d.mkdir()
        (d / "table.csv").write_text(f"what\n{name}\n")
        (d / "run").write_text("#!/bin/sh\necho ran\n")
        os.chmod(d / "run", 0o755)
    (tmp_path / "file").write_text("no directory")
    for p in [tmp_path, *tmp_path.parents][:3]:
        os.chmod(p, 0o755)
    return tmp_path


LOOK = """
import os, subprocess
def look():
    return {n: open(f"/data/{n}/table.csv").read() for n in sorted(os.listdir("/data"))} if os.path.exists("/data") else {}
"""


@pytest.mark.guest
def test_kernels_see_them_read_only_under_their_names(server_with, data):
    s = server_with("--data", f"weather={data}/weather", "--data", f"p={data}/prices")
    kid = s.start_kernel("python3")
    with Channels(s, kid) as c:
        assert c.run(LOOK + "look()").result == "{'p': 'what\\nprices\\n', 'weather': 'what\\nweather\\n'}"
        for change in ("open('/data/p/table.csv', 'a')", "open('/data/p/new', 'w')", "os.unlink('/data/p/table.csv')",
                       "os.mkdir('/data/new')", "os.chmod('/data/p/run', 0o777)"):
            assert c.run(change).ename in ("OSError", "PermissionError"), change
        assert c.run("subprocess.run(['/data/p/run'])").ename == "PermissionError"
        table = eval(c.run("open('/proc/self/mountinfo').read()").result)
        assert str(data) not in table and "holdcell-" not in table
        assert all(" ro,nosuid,nodev,noexec," in x for x in table.splitlines() if " /data/" in x)
    (data / "prices" / "late.csv").write_text("late")
    with Channels(s, kid) as c:
        assert c.run("open('/data/p/late.csv').read()").result == "'late'"


def test_no_mount_tells_the_free_space_of_the_hosts_disks(server_with, data):
    """It moves with what others write; of /kernelspecs and the runtime too."""
    s = server_with("--data", f"weather={data}/weather")
    with Channels(s, s.start_kernel("python3")) as c:
        seen = eval(c.run("""
import os, sys
places = [line.split()[4] for line in open('/proc/self/mountinfo')] + [sys.prefix, '/usr/lib']
{p: (os.statvfs(p).f_blocks * os.statvfs(p).f_frsize, os.statvfs(p).f_bavail) for p in places}
""").result)
    assert {"/", "/usr", "/data/weather", "/kernelspecs/0"} < set(seen) and len(seen) > 10
    disks = [os.statvfs(p) for p in ("/", "/usr", data, s.state)]
    assert not {p for p, (size, _) in seen.items() if size and size in [d.f_blocks * d.f_frsize for d in disks]}


@pytest.mark.full
def test_locks_of_two_sessions_on_one_file_do_not_meet(server_with, data):
    s = server_with("--data", f"weather={data}/weather")
    take = "import fcntl; f = open('/data/weather/table.csv'); fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)"
    with Channels(s, s.start_kernel("python3")) as a, Channels(s, s.start_kernel("python3")) as b:
        assert a.run(take).status == "ok"
        assert a.run("g = open('/data/weather/table.csv'); fcntl.flock(g, fcntl.LOCK_EX | fcntl.LOCK_NB)").status == "error"
        assert b.run(take).status == "ok"


@pytest.mark.full
def test_each_principal_sees_those_of_its_line(data):
    lines = [entry("all"), entry("one", data=["weather"]), entry("none", data=[])]
    s = PrincipalServer(lines, "--data", f"weather={data}/weather:prices={data}/prices").start()
    try:
        seen = {}
        for name in ("all", "one", "none"):
            who = s.as_(name)
            kid = who.start_kernel("python3")
            with Channels(who, kid) as c:
                seen[name] = sorted(eval(c.run(LOOK + "look()").result))
        assert seen == {"all": ["prices", "weather"], "one": ["weather"], "none": []}
        # Also in a sandbox that is made anew, after the next gateway has taken it over.
        one = s.as_("one")
        kid = next(iter(one.ids()))
        old = s.process("gateway")
        os.kill(old, 9)
        wait_for(lambda: s.process("gateway") not in (0, old) and s.answers() and one.kernel(kid))
        with Channels(one, kid) as c:
            assert c.run("x = 5; x").result == "5"
        launcher = s.process("launcher")
        os.kill(launcher, 9)
        wait_for(lambda: s.process("launcher") not in (0, launcher) and s.answers())
        # The file may name only what the server has.
        line = s.reload(lines + [entry("late", data=["prices"])])
        assert "settings_taken" in line
        s.write([entry("wrong", data=["nothing"])])
        assert "field 'data' has a name (number 1) that the server does not have" in s.hang_up("reload_refused")
    finally:
        s.close()


@pytest.mark.parametrize("value, said", [
    ("weather", "option --data: 'weather' is not NAME=/PATH"),
    ("=/usr", "option --data: '=/usr' is not NAME=/PATH"),
    ("../x=/usr", "option --data: '../x=/usr' is not NAME=/PATH"),
    ("w=weather", "option --data: 'w=weather' names no absolute path"),
    ("w=/no/such", "option --data: w: '/no/such': No such file or directory"),
    ("w=/etc/passwd", "option --data: w: '/etc/passwd' is no directory"),
    ("w=/usr:w=/etc", "option --data: w: there are two of this name"),
    ("", "option --data: the value is empty"),
])
def test_what_cannot_be_given_is_named(value, said):
    got = subprocess.run([BIN, "serve", "--listen", f"127.0.0.1:{free_port()}", "--no-auth", "--data", value],
                         capture_output=True, text=True, timeout=60)
    assert got.returncode in (1, 2) and got.stderr.startswith("holdcell serve: " + said), got.stderr


def test_a_mount_below_is_named_at_the_start(tmp_path):
    got = subprocess.run([BIN, "serve", "--listen", f"127.0.0.1:{free_port()}", "--no-auth", "--state-dir",
                          str(tmp_path / "state"), "--data", "root=/"], capture_output=True, text=True, timeout=60)
    assert got.returncode == 1
    assert "option --data: root: /" in got.stderr and "is a mount of its own" in got.stderr, got.stderr


def test_the_environment_names_them_too(server_with, data):
    s = server_with(env={"HOLDCELL_DATA": f"weather={data}/weather:p={data}/prices"})
    with Channels(s, s.start_kernel("python3")) as c:
        assert c.run(LOOK + "sorted(look())").result == "['p', 'weather']"
