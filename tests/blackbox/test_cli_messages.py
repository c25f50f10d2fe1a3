"""What the command line says: every option of the help is taken, and a wrong value gets a sentence that
names the option, what was given, and what would be right."""

import os
import pwd
import re
import subprocess

import pytest

from server import BIN, free_port


def holdcell(*argv, **more):
    return subprocess.run([BIN, *argv], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **more)


def serve_options():
    """{name: metavar or None} of `holdcell serve --help`."""
    lines = holdcell("serve", "--help").stdout.splitlines()
    found = [re.match(r"  --([a-z-]+)(?: (\S+))?  ", line) for line in lines]
    return {m.group(1): m.group(2) for m in found if m}


# --- help ------------------------------------------------------------------------------

def test_help_is_one_text_however_it_is_asked_for():
    texts = {holdcell(*argv).stdout for argv in (["serve", "--help"], ["serve", "-h"], ["help", "serve"])}
    assert len(texts) == 1 and "--listen ADDR:PORT,..." in texts.pop()
    lists = {holdcell(*argv).stdout for argv in (["help"], ["--help"], ["-h"], ["help", "help"], ["help", "--help"], ["help", "-h"])}
    assert len(lists) == 1 and "serve" in lists.pop()


def commands():
    """The commands that the list shows."""
    return re.findall(r"^  ([a-z]+) ", holdcell("help").stdout, re.M)


def test_each_command_of_the_list_has_a_help_of_its_own_however_it_is_asked_for():
    assert {"serve", "stop", "doctor", "token", "profiles", "audit", "version", "help"} == set(commands())
    for command in set(commands()) - {"help"}:
        ways = [holdcell(*argv) for argv in ([command, "--help"], [command, "-h"], ["help", command])]
        assert {(got.returncode, got.stderr) for got in ways} == {(0, "")}, (command, ways)
        texts = {got.stdout for got in ways}
        assert len(texts) == 1 and texts.pop().startswith(f"usage: holdcell {command}"), (command, texts)


def test_the_help_is_a_table():
    lines = [line for line in holdcell("serve", "--help").stdout.splitlines() if line.startswith("  --")]
    assert len(lines) == len(serve_options()) > 30
    assert len({re.match(r"  --\S+(?: \S+)?  +", line).end() for line in lines}) == 1
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("argv, said", [
    ([], "usage: holdcell COMMAND"),
    (["serv"], "unknown command 'serv'"),
    (["help", "serv"], "unknown command 'serv'"),
    (["version", "--all"], "holdcell version: unexpected argument '--all'"),
])
def test_what_is_no_command_is_refused_with_the_list(argv, said):
    got = holdcell(*argv)
    assert got.returncode == 2 and got.stdout == ""
    assert said in got.stderr


def test_doctor_has_a_help_of_its_own():
    texts = {holdcell(*argv).stdout for argv in (["doctor", "--help"], ["doctor", "-h"], ["help", "doctor"])}
    assert len(texts) == 1
    text = texts.pop()
    assert text.startswith("usage: holdcell doctor") and "--accept-missing WALL,..." in text
    assert max(map(len, text.splitlines())) <= 100
    shared = {name: metavar for name, metavar in serve_options().items() if f"--{name} " in text}
    assert {"isolation", "accept-missing", "cgroup-parent", "state-dir", "runtime", "fds"} <= set(shared)


@pytest.mark.parametrize("options, said", [
    (["--jsn"], "unknown option --jsn; did you mean --json?"),
    (["walls"], "unexpected argument 'walls'"),
    (["--isolation"], "option --isolation needs a value"),
    (["--isolation", "oci"], "option --isolation: level 'oci' does not work yet"),
    (["--accept-missing", "pidfd"], "option --accept-missing: 'pidfd' cannot be accepted as missing: "),
    (["--json=yes"], "option --json takes no value"),
])
def test_doctor_says_what_is_wrong_with_its_use(options, said):
    got = holdcell("doctor", *options)
    assert got.returncode == 2 and got.stdout == ""
    assert got.stderr.startswith("holdcell doctor: " + said)


# --- good values -----------------------------------------------------------------------

def test_every_option_of_the_help_is_taken(server_with, kernel_path):
    kernel_path.add("other", ["python3", "-c", "0"])
    good = {
        "runtime": os.path.realpath(os.path.join(os.path.dirname(BIN), "..", "runtime")),
        "base-url": "/jupyter", "kernel-path": kernel_path.path,
        "allowed-kernels": "python3,other", "default-kernel": "other", "force-kernel": "python3", "max-kernels": "1",
        "env-allow": "A,_B2", "env-inherit": "LANG,NOT_SET_ANYWHERE", "kernel-info-timeout": "7.5",
        "ws-ping-interval": "0", "orphan-timeout": "60", "allow-origin": "https://lab.example:8443", "allow-credentials": "true",
        "allow-headers": "Authorization, Content-Type", "allow-methods": "GET, POST", "expose-headers": "X-A",
        "cors-max-age": "600", "memory-mb": "512", "cpus": "0.5", "pids": "64", "disk-mb": "64", "tmp-mb": "32",
        "memory-reserve-mb": "256", "isolation": "hardened", "accept-missing": "landlock,seccomp",
        "memory-reserve-mb": "256", "home": "tmpfs", "disk-reserve-mb": "100", "data": "words=/usr/share",
        "log-format": "json", "log-level": "debug", "access-log": "info", "inodes": "1000", "fds": "256", "shm-mb": "16",
        "output-mb": "100", "on-exit": "stop", "iopub-msg-rate": "10000", "iopub-data-rate": "10000000",
        "iopub-rate-window": "2.5", "allowed-message-types": "execute_request,kernel_info_request",
    }
    good |= {"listen-mode": "0600", "listen-group": "0", "trusted-proxy": "127.0.0.1,10.0.0.0/8,::1,unix",
             "allow-hosts": "lab.example", "cell-timeout": "600", "stdin-timeout": "60.5", "max-lifetime": "86400",
             "create-timeout": "60", "drain-timeout": "2.5", "max-memory-mb": "1024", "max-cpus": "1", "max-pids": "64",
             "max-disk-mb": "128", "max-tmp-mb": "32", "max-shm-mb": "16", "max-inodes": "2000", "max-fds": "512",
             "max-output-mb": "200"}
    own = {"workspaces", "workspace-mb", "cgroup-parent", "help", "help-kernel-gateway", "listen", "ip", "port", "port-retries", "state-dir", "token", "token-file", "no-auth", "no-list-kernels", "no-tracebacks", "metrics-open", "audit-log", "audit-required", "principals",
           "profiles", "identity-header", "identity-unknown",
           "prespawn", "seed-notebook", "seed-timeout", "cull-idle-timeout", "cull-interval", "cull-connected", "cull-busy", "tls-cert", "tls-key", "tls-client-ca"}
    assert set(serve_options()) == set(good) | own, "an option that this test does not know"

    given = [word for name, value in good.items() for word in (f"--{name}", value)]
    s = server_with(*given, "--no-list-kernels")
    got = s.request("GET", "/jupyter/api/kernelspecs").json()
    assert got["default"] == "other" and sorted(got["kernelspecs"]) == ["other", "python3"]
    assert s.request("GET", "/jupyter/api/kernels").status == 403
    assert s.request("GET", "/jupyter/api").headers["Access-Control-Allow-Origin"] == "https://lab.example:8443"
    assert "level=warn" not in s.log() and "level=error" not in s.log()


def test_a_kernelspec_that_does_not_exist_yet_is_a_warning(server_with):
    s = server_with("--allowed-kernels", "python3,pithon", "--default-kernel", "nothing")
    assert "event=no_kernelspec option=--allowed-kernels name=pithon" in s.log()
    assert "event=no_kernelspec option=--default-kernel name=nothing" in s.log()
    assert "name=python3" not in s.log()


def test_a_path_of_jupyters_is_a_warning_where_kernel_path_has_not_the_same_directories(server_with, kernel_path):
    kernel_path.add("other", ["python3", "-c", "0"])
    jupyters = {"JUPYTER_PATH": f"{kernel_path.path}:/nowhere/jupyter", "JUPYTER_DATA_DIR": kernel_path.path}
    s = server_with(env=jupyters)
    assert list(s.request("GET", "/api/kernelspecs").json()["kernelspecs"]) == ["python3"]
    warned = [line for line in s.log().splitlines() if "event=variable_not_read" in line]
    assert [re.search(r" name=(\S+) ", line).group(1) for line in warned] == list(jupyters)
    assert all("level=warn" in line and "--kernel-path" in line for line in warned)
    s = server_with("--kernel-path", kernel_path.path, env=jupyters)
    assert sorted(s.request("GET", "/api/kernelspecs").json()["kernelspecs"]) == ["other", "python3"]
    assert s.log().count("event=variable_not_read name=JUPYTER_PATH ") == s.log().count("variable_not_read") == 1
    s = server_with("--kernel-path", jupyters["JUPYTER_PATH"], env=jupyters)
    assert "variable_not_read" not in s.log()


# --- values that are missing or wrong -----------------------------------------------------

def refused(*options):
    got = holdcell("serve", "--listen", f"127.0.0.1:{free_port()}", "--no-auth", *options,
                   env={**os.environ, "HOLDCELL_GATEWAY": "/bin/false"})
    assert got.returncode in (1, 2) and got.stdout == ""
    line, = got.stderr.splitlines()
    assert line.startswith("holdcell serve: ")
    return line.removeprefix("holdcell serve: ")


@pytest.mark.parametrize("name", [n for n, metavar in serve_options().items() if metavar])
def test_a_forgotten_value_is_told(name):
    assert refused(f"--{name}") == f"option --{name} needs a value"
    # the next option is not taken for it
    assert refused(f"--{name}", "--no-list-kernels").startswith(f"option --{name} needs a value; ")


@pytest.mark.parametrize("name", [n for n, metavar in serve_options().items() if not metavar])
def test_a_flag_takes_no_value(name):
    assert refused(f"--{name}=yes") == f"option --{name} takes no value"


@pytest.mark.parametrize("options, said", [
    (["--memory-mb", "1"], "option --memory-mb: '1' is not in 64..16777216"),
    (["--memory-mb", "9" * 40], f"option --memory-mb: '{'9' * 40}' is not in 64..16777216"),
    (["--memory-mb", "2GB"], "option --memory-mb: '2GB' is not a number"),
    (["--cpus", "0"], "option --cpus: '0' is not in 0.01..4096"),
    (["--cpus", "1.5.2"], "option --cpus: '1.5.2' is not a number"),
    (["--iopub-msg-rate", "many"], "option --iopub-msg-rate: 'many' is not a number"),
    (["--iopub-rate-window", "0"], "option --iopub-rate-window: '0' is not in 0.01..86400"),
    (["--allowed-message-types", "a b"], "option --allowed-message-types: 'a b' is not a list of types of messages"),
    (["--cell-timeout", "0.01"], "option --cell-timeout: 0.01 is below the least, 0.1; 0 is none"),
    (["--stdin-timeout", "0.099"], "option --stdin-timeout: 0.099 is below the least, 0.1; 0 is none"),
    (["--max-lifetime", "0.05"], "option --max-lifetime: 0.05 is below the least, 0.1; 0 is none"),
    (["--memory"], "unknown option --memory; did you mean --memory-mb?"),
    (["--x"], "unknown option --x"),
    (["--"], "unknown option --"),
    (["--listen", "::1:8888"], "option --listen: '::1:8888': an IPv6 address stands in brackets, [::1]:8888"),
    (["--allow-origin", "lab.example"], "option --allow-origin: 'lab.example' is not an origin"),
    (["--allow-origin", "https://lab.example/"], "option --allow-origin: 'https://lab.example/' is not an origin"),
    (["--allow-methods", "GET\r\nX: y"], "option --allow-methods: the value holds a control character"),
    (["--cors-max-age", "long"], "option --cors-max-age: 'long' is not a number of seconds in 0..999999999"),
    (["--cell-timeout", "-1"], "option --cell-timeout: '-1' is not in 0.."),
    (["--max-kernels", "1.5"], "option --max-kernels: '1.5' is not a whole number"),
    (["--env-allow", "A B"], "option --env-allow: 'A B' is not a list of names of variables"),
    (["--env-allow", "2A"], "option --env-allow: '2A' is not a list of names of variables"),
    (["--allowed-kernels", ""], "option --allowed-kernels: '' is not the name of a kernelspec"),
    (["--default-kernel", "../x"], "option --default-kernel: '../x' is not the name of a kernelspec"),
    (["--log-format", "xml"], "option --log-format: 'xml' is none of text, json"),
    (["--log-level", ""], "option --log-level: '' is none of debug, info, warn, error"),
    (["--access-log", "inf"], "option --access-log: 'inf' is none of auto, debug, info, off"),
    (["--isolation", "strong"], "option --isolation: 'strong' is none of namespaces, hardened"),
    (["--isolation", "process"], "option --isolation: level 'process' has no walls: nothing is served so"),
    (["--isolation", "oci"], "option --isolation: level 'oci' does not work yet"),
    (["--accept-missing", "landlock,lsm"], "option --accept-missing: 'lsm' is no wall"),
    (["--accept-missing", "proc"],
     "option --accept-missing: 'proc' cannot be accepted as missing: no session can be built without it"),
    (["--accept-missing", "disk-home"],
     "option --accept-missing: 'disk-home' cannot be accepted as missing: no level demands it"),
    (["--state-dir", ""], "option --state-dir: the name is empty"),
    (["--identity-header", "X-User"], "option --identity-header: --trusted-proxy names no proxy"),
    (["--identity-header", "X User"], "option --identity-header: 'X User' is not the name of a header"),
    (["--identity-header", "X-User", "--trusted-proxy", "127.0.0.1"], "option --identity-header contradicts --no-auth"),
    (["--identity-unknown", "create"], "option --identity-unknown: --identity-header is not given"),
    (["--identity-header", "X-User", "--trusted-proxy", "unix", "--identity-unknown", "make"],
     "option --identity-unknown: 'make' is not refuse or create"),
    (["--workspaces", "here"], "option --workspaces: 'here' is no absolute path"),
    (["--workspace-mb", "5"], "option --workspace-mb needs --workspaces"),
    (["--home", "ram"], "option --home: 'ram' is not auto, disk or tmpfs"),
    (["--home", "tmpfs", "--disk-mb", "1537"],
     "option --disk-mb: file systems in a session's memory would be 1921 MiB together, and 1920 is the most of 2048"),
    (["--memory-mb", "256", "--tmp-mb", "177"], "option --tmp-mb: file systems in a session's memory would be 193"),
    (["--memory-mb", "64", "--shm-mb", "64"], "option --shm-mb: file systems in a session's memory would be 72"),
    (["--disk-reserve-mb", "all"], "option --disk-reserve-mb: 'all' is not a number"),
    (["--token-file", "/tmp"], "option --no-auth contradicts --token, --token-file and --principals"),
], ids=lambda v: " ".join(v)[:40] if isinstance(v, list) else "")
def test_a_wrong_value_gets_a_sentence(options, said):
    assert refused(*options).startswith(said)


LIMITS = re.findall(r"^\| `--([a-z-]+)` \| ([0-9.]+)[^|]* \| ([0-9.]+) to ([0-9]+) \|",
                    open(os.path.join(os.path.dirname(__file__), "../../docs/OPERATING.md")).read(), re.M)


@pytest.mark.parametrize("name, default, least, most", LIMITS, ids=lambda v: v)
def test_the_table_of_limits_says_what_the_options_say(name, default, least, most):
    below, above = ("0.009", "4096.1") if name == "cpus" else (str(int(least) - 1), str(int(most) + 1))
    for value in (below, above):
        assert refused(f"--{name}", value) == f"option --{name}: '{value}' is not in {least}..{most}"
    line, = [x for x in holdcell("serve", "--help").stdout.splitlines() if x.startswith(f"  --{name} ")]
    assert re.search(rf"\({re.escape(default)}[;)]", line)


def test_every_limit_of_a_session_is_in_that_table():
    rows = open(os.path.join(os.path.dirname(__file__), "../../protocol/limit.h")).read()
    given = {"cpus" if name == "cpu-millis" else name for name in re.findall(r'ROW\([A-Z]+, .*?"[a-z_]+", "([a-z-]+)"', rows)}
    assert len(given) >= 8 and given == {name for name, *_ in LIMITS}


def test_without_root_it_says_so():
    nobody = pwd.getpwnam("nobody")
    got = holdcell("serve", "--listen", f"127.0.0.1:{free_port()}", user=nobody.pw_uid, group=nobody.pw_gid,
                   extra_groups=[])
    assert got.returncode == 1
    assert "must be started as root" in got.stderr and "sudo" in got.stderr


def test_a_runtime_that_is_none_is_named(tmp_path):
    assert refused("--runtime", str(tmp_path)).startswith(f"option --runtime: no runtime at '{tmp_path}' (bin/python3,")


def test_more_directories_of_kernelspecs_than_are_read_are_refused(tmp_path):
    """The runtime's own is the last of the list: it would be the one that is left out."""
    many = ":".join(f"/srv/jupyter{n}" for n in range(64))
    assert refused("--kernel-path", many, "--state-dir", str(tmp_path / "state")) == \
        "option --kernel-path: more than 63 directories"
